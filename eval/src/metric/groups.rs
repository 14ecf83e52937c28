//! The metrics of a run, in groups. This is the only place that lists them: the fields of
//! `report.json`, the means over traces and the columns of the tables all follow from it.

use bufgym_sim::network::Outcome;
use serde::{Deserialize, Serialize};

use super::{IsolatedPorts, Metric};
use crate::stats::{self, Estimate};

/// A table column for one metric of the group `G`.
#[derive(Clone, Copy, Debug)]
pub struct Column<G> {
    /// Heading.
    pub title: &'static str,
    /// Unit of the numbers shown, or a remark instead.
    pub unit: &'static str,
    /// Factor from the field to the number shown.
    pub scale: f64,
    /// Reads the field.
    pub field: fn(&G) -> Option<f64>,
}

/// Declares a group of metrics: a struct with one field per metric.
///
/// An entry is the name of the field, which is also its name in files, the title and the unit in
/// tables, and the computation of the number from the outcome of a run and its isolated ports. A
/// number that is not finite counts as missing.
macro_rules! metrics {
    ($(#[$about:meta])* $group:ident {
        $($(#[$doc:meta])* $field:ident: $title:literal, $unit:literal $(* $scale:literal)?, $value:expr;)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $group {
            $($(#[$doc])* pub $field: Option<f64>,)*
        }

        impl $group {
            /// A column for every field, in order.
            pub const COLUMNS: &[Column<$group>] = &[$(Column {
                title: $title,
                unit: $unit,
                scale: 1.0 $(* $scale)?,
                field: |group| group.$field,
            }),*];

            /// Returns the metrics of one run; `None` if there is no number. `ports` belongs to the trace of
            /// the run; without it there is no port slowdown.
            pub fn of(outcome: &Outcome, ports: Option<&IsolatedPorts>) -> $group {
                let number = |value: fn(&Outcome, Option<&IsolatedPorts>) -> f64| {
                    Some(value(outcome, ports)).filter(|value| value.is_finite())
                };
                $group { $($field: number($value),)* }
            }

            /// Returns means over traces. Traces without a number are left out of the mean.
            pub fn mean(of_traces: &[$group]) -> $group {
                let mean = |field: fn(&$group) -> Option<f64>| {
                    stats::finite_mean(of_traces.iter().filter_map(field))
                };
                $group { $($field: mean(|group| group.$field),)* }
            }
        }
    };
}

metrics! {
    /// Completion times and slowdown over all flows of a trace. A slowdown is the FCT of a flow over
    /// its FCT alone in the network.
    AllFlows {
        /// Mean flow completion time, milliseconds.
        mean_fct_ms: "Mean", "ms", |run, _| run.summary.mean_fct_ms;
        /// Median flow completion time, milliseconds.
        p50_fct_ms: "p50", "ms", |run, _| run.summary.p50_fct_ms;
        /// 95th percentile of the flow completion times, milliseconds.
        p95_fct_ms: "p95", "ms", |run, _| run.summary.p95_fct_ms;
        /// 99th percentile of the flow completion times, milliseconds.
        p99_fct_ms: "p99", "ms", |run, _| run.summary.p99_fct_ms;
        /// Mean slowdown.
        mean_slowdown: "Slowdown", "all flows", |run, _| run.summary.mean_slowdown;
    }
}

metrics! {
    /// Completion times by class: short flows have at most 100 KB, long flows at least 1 MB, and
    /// in-cast flows start together as a group.
    FlowClasses {
        /// Mean FCT of the short flows, milliseconds.
        short_mean_fct_ms: "Short mean", "ms", |run, _| run.summary.short_mean_fct_ms;
        /// 99th percentile of the FCTs of the short flows, milliseconds.
        short_p99_fct_ms: "Short p99", "ms", |run, _| run.summary.short_p99_fct_ms;
        /// Mean FCT of the long flows, milliseconds.
        long_mean_fct_ms: "Long mean", "ms", |run, _| run.summary.long_mean_fct_ms;
        /// Mean FCT of the in-cast flows, milliseconds.
        incast_mean_fct_ms: "In-cast mean", "ms", |run, _| run.summary.incast_mean_fct_ms;
        /// 99th percentile of the FCTs of the in-cast flows, milliseconds.
        incast_p99_fct_ms: "In-cast p99", "ms", |run, _| run.summary.incast_p99_fct_ms;
    }
}

metrics! {
    /// Slowdowns by class.
    ClassSlowdowns {
        /// Mean slowdown of the short flows.
        short_mean_slowdown: "Slowdown", "short", |run, _| run.summary.short_mean_slowdown;
        /// Mean slowdown of the long flows.
        long_mean_slowdown: "Slowdown", "long", |run, _| run.summary.long_mean_slowdown;
    }
}

metrics! {
    /// Slowdowns of in-cast flows, and the tails of all classes.
    SlowdownTails {
        /// Mean slowdown of the in-cast flows.
        incast_mean_slowdown: "Slowdown", "in-cast", |run, _| run.summary.incast_mean_slowdown;
        /// 99th percentile of the slowdowns of the in-cast flows.
        incast_p99_slowdown: "Slowdown p99", "in-cast", |run, _| run.summary.incast_p99_slowdown;
        /// 99th percentile of the slowdowns of the short flows.
        short_p99_slowdown: "Slowdown p99", "short", |run, _| run.summary.short_p99_slowdown;
        /// 99th percentile of the slowdowns of the long flows.
        long_p99_slowdown: "Slowdown p99", "long", |run, _| run.summary.long_p99_slowdown;
    }
}

metrics! {
    /// The metrics of the objectives other than FCT.
    ObjectiveMetrics {
        /// Lost data packets per delivered data packet.
        loss_per_delivered: "Loss", "lost per delivered", |run, _| run.summary.loss_per_delivered;
        /// All bytes over the time until the last flow is complete, bits per second.
        goodput_bps: "Goodput", "Mbit/s" * 1e-6, |run, _| run.summary.goodput_bps;
        /// 99th percentile over packets of the wait in the switch, microseconds.
        p99_queueing_delay_us: "Queueing delay p99", "µs", |run, _| run.summary.p99_queueing_delay_us;
        /// Variance over active ports of the port slowdown (NDT paper, §VI-D).
        port_slowdown_variance: "Port slowdowns", "variance", |run, ports| {
            let slowdowns = ports.and_then(|ports| ports.slowdowns(&run.records));
            slowdowns.and_then(|slowdowns| stats::variance(&slowdowns)).unwrap_or(f64::NAN)
        };
    }
}

metrics! {
    /// Pauses, losses and occupancy if some packets are lossless; nothing if all are lossy.
    LosslessMetrics {
        /// Pauses that switches have begun.
        #[serde(skip_serializing_if = "Option::is_none")]
        pauses: "Pauses", "per trace", |run, _| run.summary.pauses as f64;
        /// Total length of the pauses, milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        paused_ms: "Paused", "ms per trace", |run, _| run.summary.paused_ms;
        /// Lossless packets that were lost.
        #[serde(skip_serializing_if = "Option::is_none")]
        drops_lossless: "Lossless drops", "per trace", |run, _| run.summary.drops_lossless as f64;
        /// 99th percentile over time of the lossless packets in the leaves' buffers, as a share of them.
        #[serde(skip_serializing_if = "Option::is_none")]
        p99_lossless_occupancy: "Lossless p99", "% of the buffer" * 100.0, |run, _| run.summary.p99_lossless_occupancy;
        /// 99th percentile over time of the lossy packets in the leaves' buffers, as a share of them.
        #[serde(skip_serializing_if = "Option::is_none")]
        p99_lossy_occupancy: "Lossy p99", "% of the buffer" * 100.0, |run, _| run.summary.p99_lossy_occupancy;
    }
}

/// Geometric means over traces of a policy's metrics over those of another one on the same traces, with 95 %
/// bootstrap intervals ([`stats::bootstrap_geometric_ratio`]); `None` if a trace has no such metric. Lower is
/// better, except for goodput.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PairedObjectives {
    /// Ratio of the lost data packets per delivered one.
    pub loss_ratio: Option<Estimate>,
    /// Ratio of the goodput; higher is better.
    pub goodput_ratio: Option<Estimate>,
    /// Ratio of the 99th percentile of the queueing delay.
    pub p99_queueing_delay_ratio: Option<Estimate>,
    /// Ratio of the variance of port slowdowns.
    pub port_slowdown_variance_ratio: Option<Estimate>,
}

impl PairedObjectives {
    /// Compares two policies on the same traces, given in the same order.
    pub fn of(
        policy: &[ObjectiveMetrics],
        other: &[ObjectiveMetrics],
        resamples: usize,
        seed: u64,
    ) -> PairedObjectives {
        let ratio = |field| geometric_ratio(policy, other, field, (resamples, seed));
        PairedObjectives {
            loss_ratio: ratio(|metrics| metrics.loss_per_delivered),
            goodput_ratio: ratio(|metrics| metrics.goodput_bps),
            p99_queueing_delay_ratio: ratio(|metrics| metrics.p99_queueing_delay_us),
            port_slowdown_variance_ratio: ratio(|metrics| metrics.port_slowdown_variance),
        }
    }

    /// Returns the ratio of an objective's metric, below 1 if the policy is better. Returns `None` for mean
    /// FCT, which comparisons have separately, and for slowdowns, which have
    /// [their own ratios](super::SlowdownRatios).
    pub(crate) fn of_metric(&self, metric: Metric) -> Option<Estimate> {
        match metric {
            Metric::MeanFct
            | Metric::MeanSlowdown
            | Metric::IncastAndPauses
            | Metric::SlowdownTails => None,
            Metric::Loss => self.loss_ratio,
            Metric::Goodput => self.goodput_ratio.as_ref().map(Estimate::inverse),
            Metric::QueueingDelay => self.p99_queueing_delay_ratio,
            Metric::PortSlowdownVariance => self.port_slowdown_variance_ratio,
        }
    }
}

type Field = fn(&ObjectiveMetrics) -> Option<f64>;

/// Returns one metric of every trace; `None` if a trace has no such metric.
fn values(of: &[ObjectiveMetrics], field: Field) -> Option<Vec<f64>> {
    of.iter().map(field).collect()
}

fn geometric_ratio(
    policy: &[ObjectiveMetrics],
    other: &[ObjectiveMetrics],
    field: Field,
    (resamples, seed): (usize, u64),
) -> Option<Estimate> {
    let (own, others) = (values(policy, field)?, values(other, field)?);
    stats::bootstrap_geometric_ratio(&own, &others, resamples, seed)
}

/// A policy's means over DT's (α = 1), with 95 % bootstrap intervals over the traces; `None` if DT's mean is
/// zero. Lower is better, except for goodput.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectiveRatios {
    /// Ratio of the lost data packets per delivered one.
    pub loss_ratio_to_dt: Option<Estimate>,
    /// Ratio of the goodput; higher is better.
    pub goodput_ratio_to_dt: Option<Estimate>,
    /// Ratio of the 99th percentile of the queueing delay.
    pub p99_queueing_delay_ratio_to_dt: Option<Estimate>,
    /// Ratio of the variance of port slowdowns.
    pub port_slowdown_variance_ratio_to_dt: Option<Estimate>,
    /// Geometric mean over traces of the variance of port slowdowns over DT's: the ratio of means above
    /// follows the few traces with the largest variances.
    pub port_slowdown_variance_geometric_ratio_to_dt: Option<Estimate>,
}

/// A table column for one field of [`ObjectiveRatios`].
#[derive(Clone, Copy, Debug)]
pub struct RatioColumn {
    /// The metric of the ratio.
    pub metric: Metric,
    /// Heading next to the metric's own column.
    pub title: &'static str,
    /// Heading for a ratio without the metric's own column.
    pub full_title: &'static str,
    /// Reads the field.
    pub field: fn(&ObjectiveRatios) -> Option<Estimate>,
}

impl ObjectiveRatios {
    /// A column for every metric, in the order of [`ObjectiveMetrics::COLUMNS`].
    #[rustfmt::skip]
    pub const COLUMNS: [RatioColumn; 4] = [
        RatioColumn { metric: Metric::Loss, title: "Loss ratio", full_title: "lost/delivered",
            field: |ratios| ratios.loss_ratio_to_dt },
        RatioColumn { metric: Metric::Goodput, title: "Goodput ratio", full_title: "goodput (higher is better)",
            field: |ratios| ratios.goodput_ratio_to_dt },
        RatioColumn { metric: Metric::QueueingDelay, title: "Delay ratio", full_title: "p99 queueing delay",
            field: |ratios| ratios.p99_queueing_delay_ratio_to_dt },
        RatioColumn { metric: Metric::PortSlowdownVariance, title: "Variance ratio, geometric mean", full_title: "port slowdown variance (geometric)",
            field: |ratios| ratios.port_slowdown_variance_geometric_ratio_to_dt },
    ];

    /// Compares a policy with DT on the same traces, given in the same order.
    pub fn of(
        policy: &[ObjectiveMetrics],
        dt: &[ObjectiveMetrics],
        resamples: usize,
        seed: u64,
    ) -> ObjectiveRatios {
        let ratio = |field: Field| {
            let (own, dts) = (values(policy, field)?, values(dt, field)?);
            stats::bootstrap_ratio_of_means(&own, &dts, resamples, seed)
        };
        ObjectiveRatios {
            loss_ratio_to_dt: ratio(|metrics| metrics.loss_per_delivered),
            goodput_ratio_to_dt: ratio(|metrics| metrics.goodput_bps),
            p99_queueing_delay_ratio_to_dt: ratio(|metrics| metrics.p99_queueing_delay_us),
            port_slowdown_variance_ratio_to_dt: ratio(|metrics| metrics.port_slowdown_variance),
            port_slowdown_variance_geometric_ratio_to_dt: geometric_ratio(
                policy,
                dt,
                |metrics| metrics.port_slowdown_variance,
                (resamples, seed),
            ),
        }
    }
}
