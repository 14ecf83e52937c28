//! What policies are compared by: the metric of every objective, and the comparison of its values
//! on many traces with those of DT (α = 1).

mod groups;
mod ports;

use bufgym_env::control::Objective;
use bufgym_sim::network::{Outcome, SimError};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::Trace;

use crate::stats::{self, Interval, Tally};

pub use groups::{
    AllFlows, ClassSlowdowns, Column, FlowClasses, ObjectiveMetrics, ObjectiveRatios, RatioColumn,
};
pub use ports::IsolatedPorts;

/// A policy that pays for its delay with more than this share of mean FCT is not an improvement.
pub const DELAY_FCT_LIMIT: f64 = 1.05;

/// Stands for the ratio of a policy that did not finish a trace that DT finishes: worse than
/// anything, yet a number, with a finite mean and square.
const FAILED: f64 = 1e150;

/// What the policies of a comparison are judged by; there is one metric per objective.
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
}

impl Metric {
    /// All metrics, in the order of the objectives.
    pub const ALL: [Metric; 5] = [
        Metric::MeanFct,
        Metric::Loss,
        Metric::Goodput,
        Metric::QueueingDelay,
        Metric::PortSlowdownVariance,
    ];

    /// The metric of an objective: that of the first term that weighs at least as much as FCT, or
    /// mean FCT where there is no such term.
    pub fn of(objective: &Objective) -> Metric {
        let others = [
            (objective.loss, Metric::Loss),
            (objective.throughput, Metric::Goodput),
            (objective.delay, Metric::QueueingDelay),
            (objective.fairness, Metric::PortSlowdownVariance),
        ];
        others
            .into_iter()
            .find(|&(weight, _)| weight > 0.0 && weight >= objective.fct)
            .map_or(Metric::MeanFct, |(_, metric)| metric)
    }

    /// Whether higher values are better.
    pub fn higher_is_better(self) -> bool {
        self == Metric::Goodput
    }

    /// What [`compare`] computes, in words, as manifests and messages name it.
    pub fn comparison(self) -> &'static str {
        match self {
            Metric::MeanFct => "mean FCT / DT (alpha = 1)",
            Metric::Loss => "mean lost per delivered data packet / DT (alpha = 1)",
            Metric::Goodput => "mean goodput of DT (alpha = 1) / mean goodput",
            Metric::QueueingDelay => {
                "mean p99 queueing delay / DT (alpha = 1), at most 5 % more mean FCT"
            }
            Metric::PortSlowdownVariance => "mean variance of port slowdowns / DT (alpha = 1)",
        }
    }

    /// Runs what this metric needs besides the run itself: the isolated ports of the trace for port
    /// slowdowns, nothing for the other metrics.
    ///
    /// # Errors
    /// As [`IsolatedPorts::measure`].
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

    /// The value of a run; `None` where it has none. `ports` is what
    /// [`isolated_ports`](Metric::isolated_ports) returned for its trace.
    pub fn value(self, outcome: &Outcome, ports: Option<&IsolatedPorts>) -> Option<f64> {
        let objectives = ObjectiveMetrics::of(outcome, ports);
        match self {
            Metric::MeanFct => AllFlows::of(outcome, ports).mean_fct_ms,
            Metric::Loss => objectives.loss_per_delivered,
            Metric::Goodput => objectives.goodput_bps,
            Metric::QueueingDelay => objectives.p99_queueing_delay_us,
            Metric::PortSlowdownVariance => objectives.port_slowdown_variance,
        }
    }
}

/// One policy on one trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The metric's value; NaN where it has none.
    pub value: f64,
    /// Mean FCT, milliseconds.
    pub mean_fct_ms: f64,
    /// Every flow finished.
    pub complete: bool,
}

impl Sample {
    /// Of a run; `ports` as for [`Metric::value`].
    pub fn of(metric: Metric, outcome: &Outcome, ports: Option<&IsolatedPorts>) -> Sample {
        let summary = &outcome.summary;
        Sample {
            value: metric.value(outcome, ports).unwrap_or(f64::NAN),
            mean_fct_ms: summary.mean_fct_ms,
            complete: summary.completed == summary.flows,
        }
    }
}

/// A policy against DT (α = 1) on the same traces; below 1 is better than DT whatever the metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// [`ratio`](Comparison::ratio), and more than 1 in addition where the policy is out of the
    /// question: it finished less than DT, or saves delay at the cost of more than
    /// [`DELAY_FCT_LIMIT`] times DT's mean FCT. Search and validation go by this.
    pub value: f64,
    /// Mean FCT: mean over traces of the ratios. Anything else: ratio of the means over traces, of
    /// DT's to the policy's where more is better.
    pub ratio: Interval,
    /// Mean over traces of mean FCT over that of DT.
    pub fct_ratio: f64,
    /// Traces won, tied and lost by the metric.
    pub tally: Tally,
    /// Traces with a flow that did not finish.
    pub failed: u64,
}

/// Compares the samples of a policy with DT's on the same traces, in the same order. The interval
/// is a 95 % bootstrap interval over traces; with no resamples it is the ratio.
pub fn compare(
    metric: Metric,
    policy: &[Sample],
    baseline: &[Sample],
    resamples: usize,
) -> Comparison {
    let pairs = || policy.iter().zip(baseline);
    let out_of_question = |(own, dt): (&Sample, &Sample)| !own.complete && dt.complete;
    let fct_ratios: Vec<f64> = pairs()
        .map(|(own, dt)| match out_of_question((own, dt)) {
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
        _ => ratio_of_means(metric, policy, baseline, resamples),
    };
    let excluded = pairs().any(out_of_question) && metric != Metric::MeanFct;
    let too_slow = metric == Metric::QueueingDelay && fct_ratio > DELAY_FCT_LIMIT;
    Comparison {
        value: match (excluded, too_slow) {
            (true, _) => FAILED,
            (false, true) => ratio.mean + fct_ratio / DELAY_FCT_LIMIT,
            (false, false) => ratio.mean,
        },
        ratio,
        fct_ratio,
        tally,
        failed: policy.iter().filter(|own| !own.complete).count() as u64,
    }
}

const EVEN: Interval = Interval {
    mean: 1.0,
    low: 1.0,
    high: 1.0,
};

/// Below 1 is better; 1 where both are the same, also both zero.
fn ratio_on_a_trace(metric: Metric, own: &Sample, dt: &Sample) -> f64 {
    if own.value == dt.value {
        1.0
    } else if metric.higher_is_better() {
        dt.value / own.value
    } else {
        own.value / dt.value
    }
}

/// Many traces have a value of zero, so that a ratio per trace would not exist. Where DT's is zero
/// on all of them, 1 more than the policy's mean stands for the ratio.
fn ratio_of_means(
    metric: Metric,
    policy: &[Sample],
    baseline: &[Sample],
    resamples: usize,
) -> Interval {
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
        Interval {
            mean,
            low: mean,
            high: mean,
        }
    })
}

#[cfg(test)]
mod tests;
