//! Seeds and random streams.
//!
//! Everything random comes from a [`Xoshiro256PlusPlus`] whose seed is a hash of what it is for,
//! so that no draw depends on how many came before it elsewhere, nor on the number of threads.
//! The two drawing functions are written out here because those of a library may change from one
//! version to the next, and with them every trace.

use std::fmt;
use std::str::FromStr;

use rand::Rng as _;
use rand::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Which traces a seed belongs to. Training and tuning never touch test traces; evaluation uses
/// nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// Traces to learn from.
    Train,
    /// Traces for choosing between checkpoints.
    Validation,
    /// Traces for reported results.
    Test,
}

/// The two highest bits of a trace seed hold its split, which makes the splits disjoint by
/// construction rather than with high probability. Zero is left for seeds that a user chose.
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
#[error("`{0}` is not a split; the splits are train, validation and test")]
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

/// The random stream `label`, number `index`, of `seed`: independent of every other one.
pub fn stream(seed: u64, label: &str, index: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(fold(hash_label(label), &[seed, index]))
}

/// A number in [0, 1), a multiple of 2^-53.
pub fn uniform(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
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
        if product as u64 >= rejected {
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

/// FNV-1a: short labels far apart.
fn hash_label(label: &str) -> u64 {
    label.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
