//! Statistics of paired comparisons: all policies run the same traces, so a comparison has one ratio
//! per trace, and the bootstrap resamples traces.

use bufgym_util::convert::{self, index};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// A trace is won if its ratio is below this. Most traces without drops have a ratio of exactly 1.
pub const WON_BELOW: f64 = 0.999;
/// A trace is lost if its ratio is above this. Between the two limits it is a tie.
pub const LOST_ABOVE: f64 = 1.001;
/// Bootstrap resamples behind every published interval.
pub const RESAMPLES: usize = 10_000;

/// Returns the nearest-rank percentile: the smallest value with at least a share `q` of all values at or
/// below it.
///
/// `sorted` must be ascending; `q` lies in `[0, 1]` (`q = 0` gives the minimum). `None` for an
/// empty slice.
pub fn nearest_rank(sorted: &[f64], q: f64) -> Option<f64> {
    let rank = convert::nearest_rank(q, sorted.len() as u64);
    sorted.get(index(rank) - 1).copied()
}

/// Returns the nearest-rank percentiles 0, 0.5, …, 100 of ascending values; empty for an empty slice.
pub fn half_percentiles(sorted: &[f64]) -> Vec<f64> {
    let percentile = |half: u32| nearest_rank(sorted, f64::from(half) / 200.0);
    (0..=200).filter_map(percentile).collect()
}

/// Returns the arithmetic mean, summed in order; `None` for an empty slice.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the geometric mean; `None` for an empty slice.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = values.iter().copied().map(libm::log).collect();
    mean(&logs).map(libm::exp)
}

/// Returns the population variance; zero for a single value, `None` for an empty slice.
pub fn variance(values: &[f64]) -> Option<f64> {
    let centre = mean(values)?;
    let squares = values.iter().map(|v| (v - centre) * (v - centre));
    Some(squares.sum::<f64>() / values.len() as f64)
}

/// Returns the mean of the finite values; `None` if there is none. A trace without a flow of some class has
/// no finite value for that class.
pub fn finite_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let finite: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
    mean(&finite)
}

/// An estimate with its 95 % interval: a mean, a median or a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimate; files call it `mean`.
    #[serde(rename = "mean")]
    pub centre: f64,
    /// 2.5th percentile of the resampled estimates.
    pub low: f64,
    /// 97.5th percentile of the resampled estimates.
    pub high: f64,
}

impl Estimate {
    /// Returns a value that is known exactly.
    pub const fn exact(value: f64) -> Estimate {
        Estimate {
            centre: value,
            low: value,
            high: value,
        }
    }

    /// Returns true if the whole interval is below 1: significantly better than the baseline.
    pub fn is_below_one(&self) -> bool {
        self.high < 1.0
    }

    /// Returns the interval of the inverse ratio.
    #[must_use]
    pub fn inverse(&self) -> Estimate {
        Estimate {
            centre: 1.0 / self.centre,
            low: 1.0 / self.high,
            high: 1.0 / self.low,
        }
    }

    /// Returns true if the whole interval is above 1: significantly worse than the baseline.
    pub fn is_above_one(&self) -> bool {
        self.low > 1.0
    }
}

/// A median with the least and the largest value, such as those of several seeds. It shows the range of the
/// values, and nothing about chance: this is not an [`Estimate`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The least value.
    pub least: f64,
    /// The largest value.
    pub largest: f64,
}

impl Spread {
    /// Summarises these values; `None` if there are none.
    pub fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let (least, largest) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            0 => f64::midpoint(values[middle - 1], values[middle]),
            _ => values[middle],
        };
        Some(Spread {
            median,
            least,
            largest,
        })
    }
}

/// Returns the mean of `values` with a percentile-bootstrap 95 % interval.
///
/// `resamples` times as many values as given are drawn with replacement and averaged; the interval
/// runs from the 2.5th to the 97.5th nearest-rank percentile of those means. The same seed gives
/// the same interval. `None` for an empty slice; with no resamples the interval is the mean.
pub fn bootstrap_mean(values: &[f64], resamples: usize, seed: u64) -> Option<Estimate> {
    let centre = mean(values)?;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut means: Vec<f64> = (0..resamples)
        .map(|_| resampled_mean(values, &mut rng))
        .collect();
    means.sort_by(f64::total_cmp);
    Some(Estimate {
        centre,
        low: nearest_rank(&means, 0.025).unwrap_or(centre),
        high: nearest_rank(&means, 0.975).unwrap_or(centre),
    })
}

fn resampled_mean(values: &[f64], rng: &mut Xoshiro256PlusPlus) -> f64 {
    let count = values.len();
    let draws = (0..count).map(|_| values[random_index(count, rng)]);
    draws.sum::<f64>() / count as f64
}

/// Returns a random index below `count`.
fn random_index(count: usize, rng: &mut Xoshiro256PlusPlus) -> usize {
    // Multiply-shift maps 64 random bits onto 0..count; the bias is below count / 2^64.
    index(((u128::from(rng.next_u64()) * count as u128) >> 64) as u64)
}

/// Returns the ratio of the means of `values` and `of`, which belong together pair by pair, with a
/// percentile-bootstrap 95 % interval over the pairs; [`Estimate::centre`] holds the ratio.
///
/// Resamples like [`bootstrap_mean`]; resamples in which `of` sums to zero have no ratio and are left out.
/// `None` if the slices are empty or differ in length, if a value is not finite, or if `of` sums to zero.
pub fn bootstrap_ratio_of_means(
    values: &[f64],
    of: &[f64],
    resamples: usize,
    seed: u64,
) -> Option<Estimate> {
    let finite = values.iter().chain(of).all(|value| value.is_finite());
    if values.len() != of.len() || !finite {
        return None;
    }
    let ratio = |over: f64, under: f64| (under != 0.0).then(|| over / under);
    let centre = ratio(values.iter().sum(), of.iter().sum())?;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut ratios: Vec<f64> = (0..resamples)
        .filter_map(|_| {
            let (mut over, mut under) = (0.0, 0.0);
            for _ in 0..values.len() {
                let at = random_index(values.len(), &mut rng);
                over += values[at];
                under += of[at];
            }
            ratio(over, under)
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    Some(Estimate {
        centre,
        low: nearest_rank(&ratios, 0.025).unwrap_or(centre),
        high: nearest_rank(&ratios, 0.975).unwrap_or(centre),
    })
}

/// Largest factor, up or down, with which a pair enters a geometric mean: if one side is close to zero, the
/// ratio is meaningless.
const LARGEST_FACTOR: f64 = 1e3;

/// Returns the geometric mean over pairs of `values` over `of`, with a percentile-bootstrap 95 % interval
/// over the pairs; [`Estimate::centre`] holds the geometric mean.
///
/// Every pair counts by its ratio and not by its size, so that a few pairs with large values do not decide.
/// Equal values, both zero or both not a number, count as 1. Ratios are limited to a factor of 1,000 either
/// way, which also stands for a value that is zero or not a number on one side only. Resamples like
/// [`bootstrap_mean`]. `None` if the slices are empty or differ in length.
pub fn bootstrap_geometric_ratio(
    values: &[f64],
    of: &[f64],
    resamples: usize,
    seed: u64,
) -> Option<Estimate> {
    if values.len() != of.len() {
        return None;
    }
    let logs: Vec<f64> = values
        .iter()
        .zip(of)
        .map(|(v, o)| log_ratio(*v, *o))
        .collect();
    let log = bootstrap_mean(&logs, resamples, seed)?;
    Some(Estimate {
        centre: libm::exp(log.centre),
        low: libm::exp(log.low),
        high: libm::exp(log.high),
    })
}

fn log_ratio(value: f64, of: f64) -> f64 {
    let most = libm::log(LARGEST_FACTOR);
    match (value.is_nan(), of.is_nan()) {
        (true, true) => 0.0,
        (true, false) => most,
        (false, true) => -most,
        (false, false) if value == of => 0.0,
        (false, false) => libm::log(value / of).clamp(-most, most),
    }
}

/// Numbers of traces that a policy wins, ties and loses against another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Traces with a ratio below [`WON_BELOW`].
    pub won: u64,
    /// Traces with a ratio in between.
    pub tied: u64,
    /// Traces with a ratio above [`LOST_ABOVE`], and traces that the policy failed.
    pub lost: u64,
}

impl Tally {
    /// Counts wins, ties and losses of `ratios`; a ratio that is not a number counts as lost.
    pub fn of(ratios: &[f64]) -> Tally {
        ratios
            .iter()
            .fold(Tally::default(), |tally, &ratio| tally.with(ratio))
    }

    fn with(mut self, ratio: f64) -> Tally {
        if ratio < WON_BELOW {
            self.won += 1;
        } else if ratio <= LOST_ABOVE {
            self.tied += 1;
        } else {
            self.lost += 1;
        }
        self
    }

    /// Returns the share of won traces among those that are not ties; `None` if all are ties.
    pub fn share_won(&self) -> Option<f64> {
        let decided = self.won + self.lost;
        (decided > 0).then(|| self.won as f64 / decided as f64)
    }

    /// Returns the number of all traces.
    pub fn total(&self) -> u64 {
        self.won + self.tied + self.lost
    }
}

/// The least difference between baseline and unlimited buffer, as a share of the baseline, at which
/// the headroom is meaningful.
const MIN_ROOM: f64 = 0.01;

/// Returns the share of the headroom between a baseline and an unlimited buffer that a policy captures: 0 is
/// the baseline, 1 the unlimited buffer. It is a scale and not a bound, as shorter queues can beat an
/// unlimited buffer. `None` unless the unlimited buffer is better than the baseline by more than 1 % of the
/// baseline.
pub fn headroom(baseline: f64, policy: f64, unlimited: f64) -> Option<f64> {
    let room = baseline - unlimited;
    (room > MIN_ROOM * baseline && policy.is_finite()).then(|| (baseline - policy) / room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nearest_rank_of_the_textbook_example() {
        let values = [15.0, 20.0, 35.0, 40.0, 50.0];
        let percentiles = [
            (0.0, 15.0),
            (0.05, 15.0),
            (0.30, 20.0),
            (0.40, 20.0),
            (0.50, 35.0),
            (1.0, 50.0),
        ];
        for (q, expected) in percentiles {
            assert_eq!(nearest_rank(&values, q), Some(expected), "q = {q}");
        }
        assert_eq!(nearest_rank(&[], 0.5), None);
        assert_eq!(nearest_rank(&[7.0], 0.99), Some(7.0));
    }

    #[test]
    fn means_leave_out_what_has_no_number() {
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(mean(&[]), None);
        assert_eq!(finite_mean([1.0, f64::NAN, 3.0]), Some(2.0));
        assert_eq!(finite_mean([f64::NAN]), None);
    }

    #[test]
    fn variance_is_that_of_the_population() {
        assert_eq!(variance(&[1.0, 2.0, 6.0]), Some(14.0 / 3.0));
        assert_eq!(variance(&[3.0]), Some(0.0));
        assert_eq!(variance(&[]), None);
    }

    #[test]
    fn the_edges_of_a_tie_are_ties() {
        let tally = Tally::of(&[0.5, 0.9989, 0.999, 1.0, 1.001, 1.0011, f64::NAN]);
        assert_eq!(
            tally,
            Tally {
                won: 2,
                tied: 3,
                lost: 2
            }
        );
        assert_eq!(tally.share_won(), Some(0.5));
        assert_eq!(tally.total(), 7);
        assert_eq!(Tally::of(&[1.0]).share_won(), None);
    }

    #[test]
    fn every_pair_counts_alike_in_a_geometric_mean() {
        let mean = |values: &[f64], of: &[f64]| {
            bootstrap_geometric_ratio(values, of, 100, 1).map(|interval| interval.centre)
        };
        let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-12;
        assert!(near(mean(&[1.0, 800.0], &[2.0, 100.0]), 2.0));
        assert!(near(
            mean(&[0.0, f64::NAN, 5.0], &[0.0, f64::NAN, 5.0]),
            1.0
        ));
        assert!(near(mean(&[1.0, f64::NAN], &[0.0, 1.0]), 1e3));
        assert!(near(mean(&[0.0, 1.0], &[1.0, f64::NAN]), 1e-3));
        assert_eq!(mean(&[], &[]), None);
        assert_eq!(mean(&[1.0], &[]), None);
        let found = bootstrap_geometric_ratio(&[1.0, 2.0, 4.0], &[1.0; 3], 1_000, 7).unwrap();
        assert!(
            found.low < 2.0 && found.high > 2.0 && found.low >= 1.0,
            "{found:?}"
        );
        assert!((found.centre - 2.0).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn headroom_is_a_scale_from_baseline_to_unlimited() {
        assert_eq!(headroom(10.0, 8.0, 6.0), Some(0.5));
        assert_eq!(headroom(10.0, 5.0, 6.0), Some(1.25));
        assert_eq!(headroom(10.0, 12.0, 6.0), Some(-0.5));
        assert_eq!(headroom(10.0, 9.0, 10.0), None);
        assert_eq!(headroom(10.0, 5.0, 9.99), None);
        assert_eq!(headroom(10.0, f64::NAN, 5.0), None);
    }

    #[test]
    fn two_values_resample_to_a_binomial() {
        // The mean of two draws from {0, 1} is 0, 1/2, 1 with probability 1/4, 1/2, 1/4, so both
        // 2.5 % tails reach the extremes.
        let interval = bootstrap_mean(&[0.0, 1.0], RESAMPLES, 1).unwrap();
        assert_eq!(
            interval,
            Estimate {
                centre: 0.5,
                low: 0.0,
                high: 1.0
            }
        );
    }

    #[test]
    fn the_interval_matches_the_normal_approximation() {
        // 0, 1, …, 99: standard error 28.866 / 10, so the interval is near 49.5 ± 1.96 · 2.8866.
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let interval = bootstrap_mean(&values, RESAMPLES, 7).unwrap();
        assert_eq!(interval.centre, 49.5);
        assert!((interval.low - 43.84).abs() < 0.25, "{interval:?}");
        assert!((interval.high - 55.16).abs() < 0.25, "{interval:?}");
    }

    #[test]
    fn a_ratio_of_means_is_resampled_in_pairs() {
        // A resample has the first of the two pairs twice, both, or the second twice, with probability 1/4,
        // 1/2, 1/4.
        let interval = bootstrap_ratio_of_means(&[1.0, 6.0], &[2.0, 3.0], RESAMPLES, 1).unwrap();
        assert_eq!(
            interval,
            Estimate {
                centre: 7.0 / 5.0,
                low: 0.5,
                high: 2.0
            }
        );
        // A resample with the second pair twice has no ratio.
        let interval = bootstrap_ratio_of_means(&[1.0, 0.0], &[2.0, 0.0], RESAMPLES, 1).unwrap();
        assert_eq!(
            (interval.centre, interval.low, interval.high),
            (0.5, 0.5, 0.5)
        );
        assert_eq!(bootstrap_ratio_of_means(&[1.0], &[0.0], 10, 1), None);
        assert_eq!(bootstrap_ratio_of_means(&[1.0], &[f64::NAN], 10, 1), None);
        assert_eq!(bootstrap_ratio_of_means(&[], &[], 10, 1), None);
    }

    proptest! {
        #[test]
        fn an_interval_holds_within_the_range_of_the_values(
            values in prop::collection::vec(0.1f64..10.0, 1..40),
            seed in any::<u64>(),
        ) {
            let interval = bootstrap_mean(&values, 200, seed).unwrap();
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(0.0, f64::max);
            prop_assert!(least - 1e-9 <= interval.low && interval.low <= interval.high);
            prop_assert!(interval.high <= most + 1e-9);
            prop_assert_eq!(bootstrap_mean(&values, 200, seed), Some(interval));
        }

        #[test]
        fn equal_values_have_no_spread(value in 0.1f64..10.0, count in 1usize..30) {
            let interval = bootstrap_mean(&vec![value; count], 100, 3).unwrap();
            prop_assert!((interval.high - interval.low).abs() < 1e-9);
        }

        #[test]
        fn nearest_rank_leaves_the_right_share_below(
            mut values in prop::collection::vec(-5.0f64..5.0, 1..60),
            q in 0.0f64..=1.0,
        ) {
            values.sort_by(f64::total_cmp);
            let percentile = nearest_rank(&values, q).unwrap();
            let at_or_below = values.iter().filter(|v| **v <= percentile).count() as f64;
            prop_assert!(at_or_below >= q * values.len() as f64 - 1e-9);
        }

        #[test]
        fn every_ratio_is_counted_once(ratios in prop::collection::vec(0.5f64..1.5, 0..50)) {
            prop_assert_eq!(Tally::of(&ratios).total(), ratios.len() as u64);
        }
    }
}
