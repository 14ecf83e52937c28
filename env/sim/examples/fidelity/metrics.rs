//! Metrics of a run, independent of the simulator.

use crate::run::{Completion, Run};

/// A number that describes a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metric {
    /// Mean FCT.
    Mean,
    /// Median FCT.
    P50,
    /// 99th percentile of FCT.
    P99,
    /// Mean FCT of web-search flows of at most 100 kB.
    ShortWeb,
    /// Mean FCT of web-search flows of more than 1 MB.
    LongWeb,
    /// Mean FCT of in-cast flows.
    InCast,
    /// Packets that left the switch ports.
    Forwarded,
    /// Packets dropped at the switch.
    Drops,
    /// ECN marks; none if the policy does not mark.
    Marks,
}

/// All metrics, the times (milliseconds) first.
pub const METRICS: [Metric; 9] = [
    Metric::Mean,
    Metric::P50,
    Metric::P99,
    Metric::ShortWeb,
    Metric::LongWeb,
    Metric::InCast,
    Metric::Forwarded,
    Metric::Drops,
    Metric::Marks,
];

impl Metric {
    /// Returns the name for tables.
    pub const fn name(self) -> &'static str {
        match self {
            Metric::Mean => "mean FCT, ms",
            Metric::P50 => "p50 FCT, ms",
            Metric::P99 => "p99 FCT, ms",
            Metric::ShortWeb => "web search ≤ 100 kB, mean FCT, ms",
            Metric::LongWeb => "web search > 1 MB, mean FCT, ms",
            Metric::InCast => "in-cast, mean FCT, ms",
            Metric::Forwarded => "packets forwarded",
            Metric::Drops => "drops",
            Metric::Marks => "ECN marks",
        }
    }

    /// Returns the value of the metric; `None` if the list has no flow of the class.
    pub fn of(self, run: &Run) -> Option<f64> {
        let all = |_: &&Completion| true;
        let web = |flow: &&Completion| flow.kind == "ws";
        match self {
            Metric::Mean => mean(&times(run, all)),
            Metric::P50 => nearest_rank(times(run, all), 50),
            Metric::P99 => nearest_rank(times(run, all), 99),
            Metric::ShortWeb => mean(&times(run, |flow| web(flow) && flow.size <= 100_000)),
            Metric::LongWeb => mean(&times(run, |flow| web(flow) && flow.size > 1_000_000)),
            Metric::InCast => mean(&times(run, |flow| flow.kind == "incast")),
            Metric::Forwarded => Some(run.forwarded as f64),
            Metric::Drops => Some(run.drops as f64),
            Metric::Marks => (run.marks > 0).then_some(run.marks as f64),
        }
    }
}

/// Returns the time from the establishment to the delivery of the last byte, milliseconds.
pub fn milliseconds(flow: &Completion) -> f64 {
    (flow.finish_ns - flow.established_ns) as f64 * 1e-6
}

fn times(run: &Run, keep: impl Fn(&&Completion) -> bool) -> Vec<f64> {
    run.flows.iter().filter(keep).map(milliseconds).collect()
}

/// Spread of a metric over several runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    /// Mean of the runs.
    pub mean: f64,
    /// Standard deviation of a run.
    pub deviation: f64,
    /// Number of runs.
    pub runs: usize,
}

impl Spread {
    /// Computes the spread of a metric; `None` for fewer than two runs, or if the runs do not have the
    /// metric.
    pub fn over(runs: &[Run], metric: Metric) -> Option<Spread> {
        let values: Vec<f64> = runs.iter().filter_map(|run| metric.of(run)).collect();
        let mean = mean(&values)?;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (values.len() > 1).then(|| Spread {
            mean,
            deviation: (squares / (values.len() - 1) as f64).sqrt(),
            runs: values.len(),
        })
    }

    /// Returns this mean relative to another one, with the standard error of the ratio.
    pub fn relative_to(&self, other: &Spread) -> (f64, f64) {
        let ratio = self.mean / other.mean;
        let error = |one: &Spread| one.deviation / one.mean / (one.runs as f64).sqrt();
        (ratio, ratio * error(self).hypot(error(other)))
    }
}

/// Returns the mean; `None` for no values.
fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the smallest value that at least `percent` per cent of the values do not exceed.
fn nearest_rank(mut values: Vec<f64>, percent: usize) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (percent * values.len()).div_ceil(100);
    values.get(rank.max(1) - 1).copied()
}
