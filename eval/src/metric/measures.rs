//! The columns of the objectives other than FCT in an evaluation.

use bufgym_sim::network::Outcome;
use serde::{Deserialize, Serialize};

use super::{IsolatedPorts, Metric};
use crate::stats::{self, Interval};

/// The metrics of the other objectives on one trace, or their means over traces; `None` where there
/// is no number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Measures {
    /// Lost data packets per delivered data packet.
    pub loss_per_delivered: Option<f64>,
    /// All bytes over the time until the last flow is complete, bits per second.
    pub goodput_bps: Option<f64>,
    /// 99th percentile over packets of the wait in the switch, microseconds.
    pub p99_queueing_delay_us: Option<f64>,
    /// Variance over active ports of the port slowdown (NDT paper, §VI-D).
    pub port_slowdown_variance: Option<f64>,
}

impl Measures {
    /// Those of a run; all `None` if a flow did not finish.
    pub fn of(outcome: &Outcome, ports: &IsolatedPorts) -> Measures {
        if outcome.summary.completed != outcome.summary.flows {
            return Measures::default();
        }
        let value = |metric: Metric| metric.value(outcome, Some(ports));
        Measures {
            loss_per_delivered: value(Metric::Loss),
            goodput_bps: value(Metric::Goodput),
            p99_queueing_delay_us: value(Metric::QueueingDelay),
            port_slowdown_variance: value(Metric::PortSlowdownVariance),
        }
    }

    /// Means over traces.
    pub fn mean(of_traces: &[Measures]) -> Measures {
        let mean = |field: fn(&Measures) -> Option<f64>| {
            stats::finite_mean(of_traces.iter().filter_map(field))
        };
        Measures {
            loss_per_delivered: mean(|m| m.loss_per_delivered),
            goodput_bps: mean(|m| m.goodput_bps),
            p99_queueing_delay_us: mean(|m| m.p99_queueing_delay_us),
            port_slowdown_variance: mean(|m| m.port_slowdown_variance),
        }
    }
}

/// A policy's means over DT's (α = 1), with 95 % bootstrap intervals over the traces; `None` where
/// DT's is zero. Lower is better, except for goodput.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeasureRatios {
    /// Of the lost data packets per delivered one.
    pub loss_ratio_to_dt: Option<Interval>,
    /// Of the goodput; higher is better.
    pub goodput_ratio_to_dt: Option<Interval>,
    /// Of the 99th percentile of the queueing delay.
    pub p99_queueing_delay_ratio_to_dt: Option<Interval>,
    /// Of the variance of port slowdowns.
    pub port_slowdown_variance_ratio_to_dt: Option<Interval>,
}

impl MeasureRatios {
    /// From the numbers of a policy and of DT on the same traces, in the same order.
    pub fn of(policy: &[Measures], dt: &[Measures], resamples: usize, seed: u64) -> MeasureRatios {
        let ratio = |field: fn(&Measures) -> Option<f64>| {
            let values = |of: &[Measures]| of.iter().map(field).collect::<Option<Vec<f64>>>();
            stats::bootstrap_ratio_of_means(&values(policy)?, &values(dt)?, resamples, seed)
        };
        MeasureRatios {
            loss_ratio_to_dt: ratio(|m| m.loss_per_delivered),
            goodput_ratio_to_dt: ratio(|m| m.goodput_bps),
            p99_queueing_delay_ratio_to_dt: ratio(|m| m.p99_queueing_delay_us),
            port_slowdown_variance_ratio_to_dt: ratio(|m| m.port_slowdown_variance),
        }
    }
}
