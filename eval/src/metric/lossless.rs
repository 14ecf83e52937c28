//! Pauses and occupancy if some packets are lossless, relative to DT's on the same traces. Besides slowdowns,
//! these are the criteria for Reverie (NSDI 2024, §4).

use serde::{Deserialize, Serialize};

use super::LosslessMetrics;
use crate::stats::{self, Estimate};

/// A policy's means over DT's (α = 1), with 95 % bootstrap intervals over the traces; `None` if DT's mean is
/// zero. Lower is better, except that a lossless packet in the buffer is one that was not paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LosslessRatios {
    /// Ratio of the number of pauses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pauses_ratio_to_dt: Option<Estimate>,
    /// Ratio of the paused time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_ratio_to_dt: Option<Estimate>,
    /// Ratio of the lossless packets that were lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drops_lossless_ratio_to_dt: Option<Estimate>,
    /// Ratio of the 99th percentile of the share of the buffers that lossless packets take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_lossless_occupancy_ratio_to_dt: Option<Estimate>,
    /// Ratio of the 99th percentile of the share of the buffers that lossy packets take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_lossy_occupancy_ratio_to_dt: Option<Estimate>,
}

/// A table column for the ratio of one metric.
#[derive(Clone, Copy, Debug)]
pub struct LosslessColumn {
    /// Heading for the metric with its ratio.
    pub title: &'static str,
    /// True if a smaller value is better.
    pub lower_is_better: bool,
    /// True if the metric is a share of the buffer, which does not exist for the unlimited buffer.
    pub is_share: bool,
    /// Reads the metric.
    pub field: fn(&LosslessMetrics) -> Option<f64>,
    /// Reads the ratio to DT's.
    pub ratio: fn(&LosslessRatios) -> Option<Estimate>,
}

impl LosslessRatios {
    /// A column for every metric, in the order of [`LosslessMetrics::COLUMNS`].
    #[rustfmt::skip]
    pub const COLUMNS: [LosslessColumn; 5] = [
        LosslessColumn { title: "pauses", lower_is_better: true, is_share: false,
            field: |m| m.pauses, ratio: |r| r.pauses_ratio_to_dt },
        LosslessColumn { title: "paused ms", lower_is_better: true, is_share: false,
            field: |m| m.paused_ms, ratio: |r| r.paused_ratio_to_dt },
        LosslessColumn { title: "lossless drops", lower_is_better: true, is_share: false,
            field: |m| m.drops_lossless, ratio: |r| r.drops_lossless_ratio_to_dt },
        LosslessColumn { title: "lossless p99 of the buffer", lower_is_better: false, is_share: true,
            field: |m| m.p99_lossless_occupancy, ratio: |r| r.p99_lossless_occupancy_ratio_to_dt },
        LosslessColumn { title: "lossy p99 of the buffer", lower_is_better: false, is_share: true,
            field: |m| m.p99_lossy_occupancy, ratio: |r| r.p99_lossy_occupancy_ratio_to_dt },
    ];

    /// Compares a policy with DT on the same traces, given in the same order.
    pub fn of(
        policy: &[LosslessMetrics],
        dt: &[LosslessMetrics],
        resamples: usize,
        seed: u64,
    ) -> LosslessRatios {
        let [pauses, paused, drops, lossless, lossy] = LosslessRatios::COLUMNS.map(|column| {
            let values = |of: &[LosslessMetrics]| of.iter().map(column.field).collect();
            let (own, dts): (Option<Vec<f64>>, Option<Vec<f64>>) = (values(policy), values(dt));
            stats::bootstrap_ratio_of_means(&own?, &dts?, resamples, seed)
        });
        LosslessRatios {
            pauses_ratio_to_dt: pauses,
            paused_ratio_to_dt: paused,
            drops_lossless_ratio_to_dt: drops,
            p99_lossless_occupancy_ratio_to_dt: lossless,
            p99_lossy_occupancy_ratio_to_dt: lossy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(pauses: &[f64]) -> Vec<LosslessMetrics> {
        let run = |&pauses: &f64| LosslessMetrics {
            pauses: Some(pauses),
            drops_lossless: Some(0.0),
            ..LosslessMetrics::default()
        };
        pauses.iter().map(run).collect()
    }

    /// The ratio is 6 over 8, a trace without pauses included; there is no ratio to zero.
    #[test]
    fn ratios_are_those_of_means() {
        let ratios = LosslessRatios::of(&runs(&[6.0, 0.0]), &runs(&[4.0, 4.0]), 100, 1);
        let pauses = ratios.pauses_ratio_to_dt.unwrap();
        assert_eq!((pauses.centre, pauses.low, pauses.high), (0.75, 0.0, 1.5));
        assert_eq!(ratios.drops_lossless_ratio_to_dt, None);
        assert_eq!(ratios.paused_ratio_to_dt, None, "it was not measured");
        let means = LosslessMetrics::mean(&runs(&[6.0, 0.0]));
        assert_eq!(means.pauses, Some(3.0));
    }

    /// Files of scenarios without lossless priorities stay unchanged.
    #[test]
    fn what_is_not_measured_is_not_written() {
        let metrics = serde_json::to_string(&LosslessMetrics::default()).unwrap();
        let ratios = serde_json::to_string(&LosslessRatios::default()).unwrap();
        assert_eq!((metrics.as_str(), ratios.as_str()), ("{}", "{}"));
        let read: LosslessMetrics = serde_json::from_str("{}").unwrap();
        assert_eq!(read, LosslessMetrics::default());
    }
}
