//! The criteria for comparing policies: the metric of every objective, and the comparison of its values on
//! many traces with those of DT (α = 1).

mod groups;
mod lossless;
mod ports;
mod slowdowns;

use bufgym_env::control::Objective;
use bufgym_sim::network::{Outcome, SimError};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::Trace;
use serde::{Deserialize, Serialize};

use crate::stats::{self, Estimate, Tally};

pub use groups::{
    AllFlows, ClassSlowdowns, Column, FlowClasses, LosslessMetrics, ObjectiveMetrics,
    ObjectiveRatios, PairedObjectives, RatioColumn, SlowdownTails,
};
pub use lossless::{LosslessColumn, LosslessRatios};
pub use ports::IsolatedPorts;
pub use slowdowns::{SlowdownColumn, SlowdownRatios, Slowdowns};

/// A policy with less delay is no improvement if its mean FCT exceeds DT's by more than this factor.
pub const DELAY_FCT_LIMIT: f64 = 1.05;

/// The ratio of a policy on a trace that DT finished and the policy did not. It is worse than any other
/// ratio, but its mean and its square are finite.
const FAILED: f64 = 1e150;

/// The criterion of a comparison; there is one metric per objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Mean flow completion time.
    MeanFct,
    /// Lost data packets per delivered data packet.
    Loss,
    /// All bytes over the time until the last flow is complete.
    Goodput,
    /// 99th percentile over packets of the wait in the switch.
    QueueingDelay,
    /// Variance over the active ports of the port slowdown.
    PortSlowdownVariance,
    /// Mean over the flows of completion time over base time.
    MeanSlowdown,
    /// Mean over the answers to queries of completion time over base time, and the time for which neighbours
    /// are paused, both relative to DT's and in equal parts.
    IncastAndPauses,
    /// Geometric mean of the mean slowdown and of the 99th percentiles of the slowdown of answers to queries and of
    /// short flows, as far as the trace has such flows.
    SlowdownTails,
}

impl Metric {
    /// All metrics, in the order of the objectives.
    pub const ALL: [Metric; 8] = [
        Metric::MeanFct,
        Metric::Loss,
        Metric::Goodput,
        Metric::QueueingDelay,
        Metric::PortSlowdownVariance,
        Metric::MeanSlowdown,
        Metric::IncastAndPauses,
        Metric::SlowdownTails,
    ];

    /// Returns the metric of an objective. It is the tails of slowdown if slowdowns of all flows and of
    /// answers to queries both weigh at least as much as FCT, and pauses weigh nothing. Otherwise it is the
    /// metric of the first term that weighs at least as much as FCT, or mean FCT if there is no such term.
    pub fn of(objective: &Objective) -> Metric {
        let weighs = |weight: f64| weight > 0.0 && weight >= objective.fct;
        if weighs(objective.slowdown) && weighs(objective.incast) && objective.paused == 0.0 {
            return Metric::SlowdownTails;
        }
        let others = [
            (objective.loss, Metric::Loss),
            (objective.throughput, Metric::Goodput),
            (objective.delay, Metric::QueueingDelay),
            (objective.fairness, Metric::PortSlowdownVariance),
            (objective.slowdown, Metric::MeanSlowdown),
            (objective.incast, Metric::IncastAndPauses),
            (objective.paused, Metric::IncastAndPauses),
        ];
        others
            .into_iter()
            .find(|&(weight, _)| weighs(weight))
            .map_or(Metric::MeanFct, |(_, metric)| metric)
    }

    /// Returns the name of the metric's objective.
    pub fn objective(self) -> &'static str {
        match self {
            Metric::MeanFct => "fct",
            Metric::Loss => "loss",
            Metric::Goodput => "throughput",
            Metric::QueueingDelay => "delay",
            Metric::PortSlowdownVariance => "fairness",
            Metric::MeanSlowdown => "slowdown",
            Metric::IncastAndPauses => "pfc",
            Metric::SlowdownTails => "tails",
        }
    }

    /// Returns true if higher values are better.
    pub(crate) fn higher_is_better(self) -> bool {
        self == Metric::Goodput
    }

    /// Describes the computation of [`compare`] in words for manifests and messages.
    pub fn comparison(self) -> &'static str {
        match self {
            Metric::MeanFct => "mean FCT / DT (alpha = 1)",
            Metric::Loss => "mean lost per delivered data packet / DT (alpha = 1)",
            Metric::Goodput => "mean goodput of DT (alpha = 1) / mean goodput",
            Metric::QueueingDelay => {
                "mean p99 queueing delay / DT (alpha = 1), at most 5 % more mean FCT"
            }
            Metric::PortSlowdownVariance => {
                "variance of port slowdowns / DT (alpha = 1), geometric mean over traces"
            }
            Metric::MeanSlowdown => "mean slowdown / DT (alpha = 1)",
            Metric::IncastAndPauses => {
                "half of in-cast slowdown / DT (alpha = 1) and half of paused time / DT"
            }
            Metric::SlowdownTails => {
                "mean, p99 in-cast and p99 short slowdown / DT (alpha = 1), geometric mean"
            }
        }
    }

    /// Runs the additional simulations for this metric: the isolated ports of the trace for port slowdowns,
    /// nothing for the other metrics.
    ///
    /// # Errors
    /// Returns the errors of [`IsolatedPorts::measure`].
    pub fn isolated_ports(
        self,
        scenario: &Scenario,
        trace: &Trace,
    ) -> Result<Option<IsolatedPorts>, SimError> {
        match self {
            Metric::PortSlowdownVariance => IsolatedPorts::measure(scenario, trace).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the value of a run; `None` if it has none. `ports` is the result of
    /// [`isolated_ports`](Metric::isolated_ports) for its trace.
    pub fn value(self, outcome: &Outcome, ports: Option<&IsolatedPorts>) -> Option<f64> {
        let objectives = ObjectiveMetrics::of(outcome, ports);
        match self {
            Metric::MeanFct => AllFlows::of(outcome, ports).mean_fct_ms,
            Metric::Loss => objectives.loss_per_delivered,
            Metric::Goodput => objectives.goodput_bps,
            Metric::QueueingDelay => objectives.p99_queueing_delay_us,
            Metric::PortSlowdownVariance => objectives.port_slowdown_variance,
            Metric::MeanSlowdown => AllFlows::of(outcome, ports).mean_slowdown,
            Metric::IncastAndPauses => {
                let slowdown = outcome.summary.incast_mean_slowdown;
                slowdown.is_finite().then_some(slowdown)
            }
            Metric::SlowdownTails => {
                let summary = &outcome.summary;
                let tails = [summary.incast_p99_slowdown, summary.short_p99_slowdown];
                let parts = AllFlows::of(outcome, ports).mean_slowdown.into_iter();
                let parts = parts.chain(tails.into_iter().filter(|tail| tail.is_finite()));
                stats::geometric_mean(&parts.collect::<Vec<f64>>())
            }
        }
    }
}

/// The result of one policy on one trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Value of the metric; NaN if there is none.
    pub value: f64,
    /// Mean FCT, milliseconds.
    pub mean_fct_ms: f64,
    /// True if every flow finished.
    pub complete: bool,
    /// Time for which neighbours were paused, milliseconds.
    pub paused_ms: f64,
}

impl Sample {
    /// Builds the sample of a run; see [`Metric::value`] for `ports`.
    pub fn of(metric: Metric, outcome: &Outcome, ports: Option<&IsolatedPorts>) -> Sample {
        let summary = &outcome.summary;
        Sample {
            value: metric.value(outcome, ports).unwrap_or(f64::NAN),
            mean_fct_ms: summary.mean_fct_ms,
            complete: summary.completed == summary.flows,
            paused_ms: summary.paused_ms,
        }
    }
}

/// A policy compared with DT (α = 1) on the same traces. For every metric, a ratio below 1 is better
/// than DT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The quantity that search and validation minimise: [`ratio`](Comparison::ratio) with a penalty of more
    /// than 1 for a policy that is not acceptable. Such a policy leaves a trace unfinished that DT finishes,
    /// or lowers the delay at more than [`DELAY_FCT_LIMIT`] times DT's mean FCT.
    pub value: f64,
    /// For mean FCT and mean slowdown, the mean over traces of the policy's value over DT's. For in-casts and
    /// pauses, the mean over traces of half that ratio plus half the policy's paused time over the mean of
    /// DT's. For the variance of port slowdowns and the tails of slowdowns, which are a hundred times as
    /// large on some traces as on others, the [geometric mean](stats::bootstrap_geometric_ratio) over traces
    /// of the ratio. For other metrics, the mean of the policy's values over the mean of DT's, or the inverse
    /// if higher is better.
    pub ratio: Estimate,
    /// Mean over traces of the mean FCT over DT's.
    pub fct_ratio: f64,
    /// Traces won, tied and lost by the metric.
    pub tally: Tally,
    /// Traces with a flow that did not finish.
    pub failed: u64,
}

/// Compares the samples of a policy with DT's on the same traces in the same order. The interval is a
/// 95 % bootstrap interval over traces; without resamples its ends equal the ratio.
pub fn compare(
    metric: Metric,
    policy: &[Sample],
    baseline: &[Sample],
    resamples: usize,
) -> Comparison {
    let pairs = || policy.iter().zip(baseline);
    let unfinished = |(own, dt): (&Sample, &Sample)| !own.complete && dt.complete;
    let fct_ratios: Vec<f64> = pairs()
        .map(|(own, dt)| match unfinished((own, dt)) {
            true => FAILED,
            false => own.mean_fct_ms / dt.mean_fct_ms,
        })
        .collect();
    let fct_ratio = stats::mean(&fct_ratios).unwrap_or(1.0);
    let tally = Tally::of(
        &pairs()
            .map(|(own, dt)| ratio_on_a_trace(metric, own, dt))
            .collect::<Vec<f64>>(),
    );
    let ratio = match metric {
        Metric::MeanFct => stats::bootstrap_mean(&fct_ratios, resamples, 0).unwrap_or(EVEN),
        Metric::MeanSlowdown => {
            let ratio = |(own, dt): (&Sample, &Sample)| match unfinished((own, dt)) {
                true => FAILED,
                false => ratio_on_a_trace(metric, own, dt),
            };
            let ratios: Vec<f64> = pairs().map(ratio).collect();
            stats::bootstrap_mean(&ratios, resamples, 0).unwrap_or(EVEN)
        }
        Metric::IncastAndPauses => {
            let paused = stats::mean(&baseline.iter().map(|dt| dt.paused_ms).collect::<Vec<f64>>());
            let ratio = |(own, dt): (&Sample, &Sample)| match unfinished((own, dt)) {
                true => FAILED,
                false => {
                    let slowdown = ratio_on_a_trace(metric, own, dt);
                    0.5 * (slowdown + relative_pauses(own.paused_ms, paused.unwrap_or(0.0)))
                }
            };
            let ratios: Vec<f64> = pairs().map(ratio).collect();
            stats::bootstrap_mean(&ratios, resamples, 0).unwrap_or(EVEN)
        }
        Metric::PortSlowdownVariance | Metric::SlowdownTails => {
            let values = |samples: &[Sample]| samples.iter().map(|s| s.value).collect::<Vec<f64>>();
            let (own, dt) = (values(policy), values(baseline));
            stats::bootstrap_geometric_ratio(&own, &dt, resamples, 0).unwrap_or(EVEN)
        }
        _ => ratio_of_means(metric, policy, baseline, resamples),
    };
    let is_a_mean_of_ratios = matches!(
        metric,
        Metric::MeanFct | Metric::MeanSlowdown | Metric::IncastAndPauses
    );
    let excluded = pairs().any(unfinished) && !is_a_mean_of_ratios;
    let too_slow = metric == Metric::QueueingDelay && fct_ratio > DELAY_FCT_LIMIT;
    Comparison {
        value: match (excluded, too_slow) {
            (true, _) => FAILED,
            (false, true) => ratio.centre + fct_ratio / DELAY_FCT_LIMIT,
            (false, false) => ratio.centre,
        },
        ratio,
        fct_ratio,
        tally,
        failed: policy.iter().filter(|own| !own.complete).count() as u64,
    }
}

const EVEN: Estimate = Estimate::exact(1.0);

/// Returns the ratio on one trace, below 1 if the policy is better. Returns 1 if both values are equal, even
/// if both are zero, and if no flow answers a query.
fn ratio_on_a_trace(metric: Metric, own: &Sample, dt: &Sample) -> f64 {
    let without_queries =
        metric == Metric::IncastAndPauses && own.value.is_nan() && dt.value.is_nan();
    if own.value == dt.value || without_queries {
        1.0
    } else if metric.higher_is_better() {
        dt.value / own.value
    } else {
        own.value / dt.value
    }
}

/// Returns the paused time on a trace over the mean of DT's; if DT never pauses, 1 plus the policy's paused
/// time.
fn relative_pauses(paused_ms: f64, mean_of_dt: f64) -> f64 {
    match mean_of_dt > 0.0 {
        true => paused_ms / mean_of_dt,
        false => 1.0 + paused_ms,
    }
}

/// Returns the ratio of the means over traces. Means are compared instead of single traces because DT's value
/// is zero on many traces. If it is zero on all of them, the result is 1 plus the policy's mean.
fn ratio_of_means(
    metric: Metric,
    policy: &[Sample],
    baseline: &[Sample],
    resamples: usize,
) -> Estimate {
    let values = |samples: &[Sample]| samples.iter().map(|s| s.value).collect::<Vec<f64>>();
    let (own, dt) = (values(policy), values(baseline));
    let (over, under) = match metric.higher_is_better() {
        true => (&dt, &own),
        false => (&own, &dt),
    };
    stats::bootstrap_ratio_of_means(over, under, resamples, 0).unwrap_or_else(|| {
        let mean = 1.0
            + stats::mean(over)
                .filter(|m| m.is_finite())
                .unwrap_or(FAILED);
        Estimate::exact(mean)
    })
}

#[cfg(test)]
mod tests;
