//! The time of a decision against the time between decisions (Fig. 12b of the NDT paper).

use std::time::Instant;

use bufgym_env::control::Controller;
use serde::{Deserialize, Serialize};

use super::dependence::Observations;
use crate::stats;

/// Line rates at which the time between decisions is measured, bits per second.
pub(super) const RATES_BPS: [u64; 3] = [1_000_000_000, 10_000_000_000, 100_000_000_000];

/// Number of timed forward passes.
const PASSES: usize = 5_000;
/// Number of forward passes before these, which fill the caches.
const WARM_UP: usize = 200;

/// The time between decisions at one line rate, over all traces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateIntervals {
    /// Line rate of every port, bits per second.
    pub rate_bps: u64,
    /// Number of intervals.
    pub count: u64,
    /// Nearest-rank percentiles 0, 0.5, …, 100 in microseconds; empty without intervals.
    pub percentiles_us: Vec<f64>,
}

impl RateIntervals {
    /// Summarises intervals, and returns them sorted, in microseconds.
    pub(super) fn of(rate_bps: u64, intervals_ps: &[u64]) -> (RateIntervals, Vec<f64>) {
        let mut us: Vec<f64> = intervals_ps.iter().map(|ps| *ps as f64 * 1e-6).collect();
        us.sort_by(f64::total_cmp);
        let summary = RateIntervals {
            rate_bps,
            count: us.len() as u64,
            percentiles_us: stats::half_percentiles(&us),
        };
        (summary, us)
    }

    /// Returns the median in microseconds.
    pub fn median_us(&self) -> Option<f64> {
        self.percentiles_us
            .get(self.percentiles_us.len() / 2)
            .copied()
    }
}

/// The time of one decision for all ports together, on one thread of this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inference {
    /// Number of ports.
    pub ports: usize,
    /// Number of timed forward passes; they take the sampled observations in turn.
    pub passes: usize,
    /// Mean, microseconds.
    #[serde(default)]
    pub mean_us: f64,
    /// Median, microseconds.
    pub median_us: f64,
    /// 99th percentile, microseconds.
    pub p99_us: f64,
    /// Share of the intervals between decisions that are shorter than the median, for each line rate; `None`
    /// without intervals.
    pub shorter_intervals: Vec<Option<f64>>,
}

impl Inference {
    /// Times the network on sampled observations. `intervals` are the sorted intervals of each line rate.
    pub fn measure(
        controller: &mut dyn Controller,
        observations: &Observations,
        intervals: &[(RateIntervals, Vec<f64>)],
    ) -> Inference {
        let mut action = vec![0.0; observations.ports * controller.outputs()];
        let mut times: Vec<f64> = (0..WARM_UP + PASSES)
            .map(|pass| {
                let observation = observations.get(pass % observations.count().max(1));
                let begun = Instant::now();
                controller.act(observation, observations.ports, &mut action);
                begun.elapsed().as_secs_f64() * 1e6
            })
            .skip(WARM_UP)
            .collect();
        let mean_us = stats::mean(&times).unwrap_or(f64::NAN);
        times.sort_by(f64::total_cmp);
        let percentile = |q: f64| stats::nearest_rank(&times, q).unwrap_or(f64::NAN);
        let median_us = percentile(0.5);
        Inference {
            ports: observations.ports,
            passes: times.len(),
            mean_us,
            median_us,
            p99_us: percentile(0.99),
            shorter_intervals: intervals
                .iter()
                .map(|(_, us)| share_below(us, median_us))
                .collect(),
        }
    }
}

/// Returns the share of the sorted values that are below `limit`.
fn share_below(sorted: &[f64], limit: f64) -> Option<f64> {
    let below = sorted.partition_point(|value| *value < limit);
    (!sorted.is_empty()).then(|| below as f64 / sorted.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_in_microseconds() {
        let (summary, sorted) = RateIntervals::of(1, &[3_000_000, 1_000_000, 2_000_000]);
        assert_eq!(sorted, [1.0, 2.0, 3.0]);
        assert_eq!(summary.median_us(), Some(2.0));
        assert_eq!(share_below(&sorted, 2.0), Some(1.0 / 3.0));
        assert_eq!(share_below(&sorted, 9.0), Some(1.0));
        assert_eq!(share_below(&[], 9.0), None);
        assert_eq!(RateIntervals::of(1, &[]).0.median_us(), None);
    }
}
