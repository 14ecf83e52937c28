//! Slowdowns by class of flows, relative to DT's on the same traces. These are the criteria for networks of
//! several switches (ABM, SIGCOMM 2022, §4; Credence, NSDI 2024, §4).

use serde::{Deserialize, Serialize};

use super::{AllFlows, ClassSlowdowns, SlowdownTails};
use crate::stats::{self, Estimate};

/// The slowdowns of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slowdowns {
    /// Slowdowns of all flows.
    pub all: AllFlows,
    /// Means by class.
    pub classes: ClassSlowdowns,
    /// Slowdowns of in-cast flows, and tails by class.
    pub tails: SlowdownTails,
}

/// Means over traces of a policy's slowdowns over those of DT (α = 1) on the same trace, with 95 % bootstrap
/// intervals; `None` if no trace has such flows. Lower is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlowdownRatios {
    /// Ratio of the mean slowdown of all flows.
    pub mean_slowdown_ratio_to_dt: Option<Estimate>,
    /// Ratio of the mean slowdown of in-cast flows.
    pub incast_mean_slowdown_ratio_to_dt: Option<Estimate>,
    /// Ratio of the 99th percentile of the slowdown of in-cast flows.
    pub incast_p99_slowdown_ratio_to_dt: Option<Estimate>,
    /// Ratio of the mean slowdown of short flows.
    pub short_mean_slowdown_ratio_to_dt: Option<Estimate>,
    /// Ratio of the 99th percentile of the slowdown of short flows.
    pub short_p99_slowdown_ratio_to_dt: Option<Estimate>,
    /// Ratio of the mean slowdown of long flows.
    pub long_mean_slowdown_ratio_to_dt: Option<Estimate>,
    /// Ratio of the 99th percentile of the slowdown of long flows.
    pub long_p99_slowdown_ratio_to_dt: Option<Estimate>,
}

/// A table column for one slowdown and its ratio.
#[derive(Clone, Copy, Debug)]
pub struct SlowdownColumn {
    /// Heading.
    pub title: &'static str,
    /// Reads the slowdown.
    pub field: fn(&Slowdowns) -> Option<f64>,
    /// Reads the ratio to DT's.
    pub ratio: fn(&SlowdownRatios) -> Option<Estimate>,
}

impl SlowdownRatios {
    /// A column for every slowdown, in the order of the fields.
    #[rustfmt::skip]
    pub const COLUMNS: [SlowdownColumn; 7] = [
        SlowdownColumn { title: "mean",
            field: |s| s.all.mean_slowdown, ratio: |r| r.mean_slowdown_ratio_to_dt },
        SlowdownColumn { title: "in-cast mean",
            field: |s| s.tails.incast_mean_slowdown, ratio: |r| r.incast_mean_slowdown_ratio_to_dt },
        SlowdownColumn { title: "in-cast p99",
            field: |s| s.tails.incast_p99_slowdown, ratio: |r| r.incast_p99_slowdown_ratio_to_dt },
        SlowdownColumn { title: "short mean",
            field: |s| s.classes.short_mean_slowdown, ratio: |r| r.short_mean_slowdown_ratio_to_dt },
        SlowdownColumn { title: "short p99",
            field: |s| s.tails.short_p99_slowdown, ratio: |r| r.short_p99_slowdown_ratio_to_dt },
        SlowdownColumn { title: "long mean",
            field: |s| s.classes.long_mean_slowdown, ratio: |r| r.long_mean_slowdown_ratio_to_dt },
        SlowdownColumn { title: "long p99",
            field: |s| s.tails.long_p99_slowdown, ratio: |r| r.long_p99_slowdown_ratio_to_dt },
    ];

    /// Compares a policy with DT on the same traces, given in the same order. Leaves out traces without such
    /// flows.
    pub fn of(
        policy: &[Slowdowns],
        dt: &[Slowdowns],
        resamples: usize,
        seed: u64,
    ) -> SlowdownRatios {
        let [mean, incast, incast_p99, short, short_p99, long, long_p99] = SlowdownRatios::COLUMNS
            .map(|column| {
                let pairs = policy.iter().zip(dt);
                let ratio = |(own, dt): (&Slowdowns, &Slowdowns)| {
                    Some((column.field)(own)? / (column.field)(dt)?)
                };
                let ratios: Vec<f64> = pairs.filter_map(ratio).collect();
                stats::bootstrap_mean(&ratios, resamples, seed)
            });
        SlowdownRatios {
            mean_slowdown_ratio_to_dt: mean,
            incast_mean_slowdown_ratio_to_dt: incast,
            incast_p99_slowdown_ratio_to_dt: incast_p99,
            short_mean_slowdown_ratio_to_dt: short,
            short_p99_slowdown_ratio_to_dt: short_p99,
            long_mean_slowdown_ratio_to_dt: long,
            long_p99_slowdown_ratio_to_dt: long_p99,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(values: &[Option<f64>]) -> Vec<Slowdowns> {
        let run = |&value: &Option<f64>| Slowdowns {
            tails: SlowdownTails {
                incast_p99_slowdown: value,
                ..SlowdownTails::default()
            },
            ..Slowdowns::default()
        };
        values.iter().map(run).collect()
    }

    /// The mean is over 8/4 and 3/6; the trace without in-cast flows does not count.
    #[test]
    fn ratios_are_means_over_traces_in_pairs() {
        let (own, dt) = (
            runs(&[Some(8.0), None, Some(3.0)]),
            runs(&[Some(4.0), None, Some(6.0)]),
        );
        let ratios = SlowdownRatios::of(&own, &dt, 0, 1);
        let found = ratios.incast_p99_slowdown_ratio_to_dt.unwrap();
        assert_eq!(found.centre, 1.25);
        assert_eq!(ratios.short_p99_slowdown_ratio_to_dt, None);
        let columns = SlowdownRatios::COLUMNS;
        let named: Vec<&str> = columns
            .iter()
            .filter(|column| (column.ratio)(&ratios).is_some())
            .map(|column| column.title)
            .collect();
        assert_eq!(named, ["in-cast p99"]);
    }
}
