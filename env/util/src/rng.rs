//! Seeds and random streams.
//!
//! Every use of randomness has its own [`Xoshiro256PlusPlus`], whose seed is a hash of the purpose.
//! So a draw depends neither on draws for other purposes nor on the number of threads. The two
//! functions that draw numbers are written out here, because those of a library may change from one
//! version to the next and would then change every trace.

use std::fmt;
use std::str::FromStr;

use crate::input::{excerpt, suggestion};
use rand::Rng as _;
use rand::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use crate::convert::{lower_u32, lower_u64};

/// The set of traces that a seed belongs to. Training and tuning never use test traces. Evaluation
/// uses only test traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Traces to learn from.
    Train,
    /// Traces for choosing between checkpoints.
    Validation,
    /// Traces for reported results.
    Test,
}

/// The two highest bits of a trace seed hold its split. So the splits are certainly disjoint. Zero
/// is reserved for seeds that a user chose.
const SPLIT_SHIFT: u32 = 62;

impl Split {
    /// Every split.
    pub const ALL: [Split; 3] = [Split::Train, Split::Validation, Split::Test];

    /// `train`, `validation` or `test`.
    pub const fn name(self) -> &'static str {
        match self {
            Split::Train => "train",
            Split::Validation => "validation",
            Split::Test => "test",
        }
    }

    const fn tag(self) -> u64 {
        match self {
            Split::Train => 1,
            Split::Validation => 2,
            Split::Test => 3,
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no split.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a split{}; the splits are train, validation and test", excerpt(.0), suggestion(.0, &Split::ALL.map(Split::name)))]
pub struct UnknownSplit(pub String);

impl FromStr for Split {
    type Err = UnknownSplit;

    fn from_str(text: &str) -> Result<Split, UnknownSplit> {
        Split::ALL
            .into_iter()
            .find(|split| split.name() == text)
            .ok_or_else(|| UnknownSplit(text.to_owned()))
    }
}

/// The seed of trace `index` of a split under the experiment's `seed`.
///
/// The result depends on nothing else, and [`split_of`] recovers the split from it.
pub fn trace_seed(split: Split, seed: u64, index: u64) -> u64 {
    let hash = fold(hash_label(split.name()), &[seed, index]);
    split.tag() << SPLIT_SHIFT | hash >> (64 - SPLIT_SHIFT)
}

/// The split that a trace seed was made for; `None` for seeds not made by [`trace_seed`].
pub fn split_of(trace_seed: u64) -> Option<Split> {
    Split::ALL
        .into_iter()
        .find(|split| split.tag() == trace_seed >> SPLIT_SHIFT)
}

/// The random stream with a label and an index under `seed`, independent of all other streams.
pub fn stream(seed: u64, label: &str, index: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(fold(hash_label(label), &[seed, index]))
}

/// A number in [0, 1), a multiple of 2^-53.
pub fn uniform(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// Returns [`below`] in four bytes.
///
/// # Panics
/// When `bound` is zero.
pub fn below_u32(rng: &mut Xoshiro256PlusPlus, bound: u32) -> u32 {
    lower_u32(below(rng, bound.into()))
}

/// A whole number in `0..bound`, each with the same probability (Lemire, "Fast random integer
/// generation in an interval", 2019).
///
/// # Panics
/// When `bound` is zero.
pub fn below(rng: &mut Xoshiro256PlusPlus, bound: u64) -> u64 {
    assert!(bound > 0, "no number is below zero");
    let rejected = bound.wrapping_neg() % bound;
    loop {
        let product = u128::from(rng.next_u64()) * u128::from(bound);
        if lower_u64(product) >= rejected {
            return (product >> 64) as u64;
        }
    }
}

/// The output function of SplitMix64 (Steele, Lea, Flood 2014).
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn fold(state: u64, words: &[u64]) -> u64 {
    words.iter().fold(state, |state, word| {
        mix(mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ mix(*word))
    })
}

/// Hashes a label with FNV-1a, which gives short labels very different hashes.
fn hash_label(label: &str) -> u64 {
    label.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_trace_seed_names_its_split_and_splits_never_meet() {
        let mut seen = HashSet::new();
        for split in Split::ALL {
            for seed in [0, 1, 2, u64::MAX] {
                for index in 0..2_000 {
                    let trace_seed = trace_seed(split, seed, index);
                    assert_eq!(split_of(trace_seed), Some(split));
                    assert!(seen.insert(trace_seed), "{split} {seed} {index} collides");
                }
            }
        }
        assert_eq!(split_of(42), None);
    }

    #[test]
    fn every_bit_below_the_split_is_as_often_one_as_zero() {
        let samples = 20_000;
        for bit in 0..SPLIT_SHIFT {
            let ones = (0..samples)
                .filter(|index| trace_seed(Split::Train, 7, *index) >> bit & 1 == 1)
                .count();
            // Six standard deviations of a fair coin: 6 * sqrt(20000) / 2 = 424.
            assert!(
                ones.abs_diff(samples as usize / 2) < 424,
                "bit {bit}: {ones} ones"
            );
        }
    }

    #[test]
    fn streams_differ_by_seed_label_and_index() {
        let first = |mut rng: Xoshiro256PlusPlus| rng.next_u64();
        let draws: HashSet<_> = [
            first(stream(0, "a", 0)),
            first(stream(1, "a", 0)),
            first(stream(0, "b", 0)),
            first(stream(0, "a", 1)),
            first(stream(0, "", 0)),
        ]
        .into();
        assert_eq!(draws.len(), 5);
        assert_eq!(first(stream(3, "a", 9)), first(stream(3, "a", 9)));
    }

    #[test]
    fn whole_numbers_below_a_bound_are_equally_likely() {
        let mut rng = stream(1, "below", 0);
        let mut counts = [0_u32; 7];
        for _ in 0..70_000 {
            counts[below(&mut rng, 7) as usize] += 1;
        }
        // Standard deviation sqrt(70000 * 6 / 49) = 92.6.
        assert!(
            counts.iter().all(|count| count.abs_diff(10_000) < 600),
            "{counts:?}"
        );
        assert_eq!(below(&mut rng, 1), 0);
    }

    #[test]
    fn uniform_numbers_stay_below_one_and_average_one_half() {
        let mut rng = stream(2, "uniform", 0);
        let draws: Vec<_> = (0..100_000).map(|_| uniform(&mut rng)).collect();
        assert!(draws.iter().all(|draw| (0.0..1.0).contains(draw)));
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        assert!((mean - 0.5).abs() < 0.006, "{mean}");
    }

    #[test]
    fn split_names_read_back() {
        for split in Split::ALL {
            assert_eq!(split.name().parse(), Ok(split));
        }
        let error = "tests".parse::<Split>().unwrap_err().to_string();
        assert_eq!(
            error,
            "`tests` is not a split; did you mean `test`?; the splits are train, validation and test"
        );
    }

    /// Seeds are written into reports and manifests, so they must always mean the same trace.
    #[test]
    fn seeds_and_streams_never_change() {
        let seeds = Split::ALL.map(|split| trace_seed(split, 1, 0));
        assert_eq!(
            seeds,
            [
                8_112_578_882_380_782_234,
                10_789_781_039_972_918_636,
                16_183_627_087_075_918_829
            ]
        );
        assert_eq!(stream(1, "trace", 0).next_u64(), 8_639_302_718_106_526_004);
    }
}
