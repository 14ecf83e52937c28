//! The data of an evaluation, which is the content of `report.json`.

use bufgym_sim::traffic::Trace;
use serde::{Deserialize, Serialize};

use crate::metric::{
    AllFlows, ClassSlowdowns, FlowClasses, LosslessMetrics, LosslessRatios, Metric,
    ObjectiveMetrics, ObjectiveRatios, PairedObjectives, SlowdownRatios, SlowdownTails, Slowdowns,
};
pub use crate::scenario_facts::ScenarioFacts;
use crate::stats::{Estimate, Tally};

/// Name of the file format in `report.json`.
pub const FORMAT: &str = "bufgym-eval-report";
/// Version of the file format. It is raised when a field changes its meaning, not when fields are added.
pub const VERSION: u32 = 1;
/// The policy that every ratio is relative to: Dynamic Threshold with α = 1.
pub const BASELINE: &str = "dt";
/// The reference line: complete sharing with a buffer that never fills.
pub const UNLIMITED: &str = "unlimited";

/// The role of a policy in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A neural network sets the α of every port.
    Learned,
    /// A fixed rule.
    Heuristic,
    /// DT with α = 1, which every ratio is relative to.
    Baseline,
    /// The unlimited buffer, which no switch could have.
    Reference,
}

/// The training objective of a learned policy, and the seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Training {
    /// Everything except the seed, in words.
    pub task: String,
    /// The seed.
    pub seed: u64,
    /// The objective whose metric decides; see [`Metric::objective`].
    #[serde(default = "fct")]
    pub objective: String,
}

fn fct() -> String {
    Metric::MeanFct.objective().to_owned()
}

impl Training {
    /// Builds a training; `objective` has the form of a manifest, with or without weights.
    pub fn new(task: String, seed: u64, objective: &str) -> Training {
        let metric = objective.parse().map(|objective| Metric::of(&objective));
        let objective = metric.unwrap_or(Metric::MeanFct).objective().to_owned();
        Training {
            task,
            seed,
            objective,
        }
    }

    /// Returns the metric of the objective.
    pub fn metric(&self) -> Metric {
        let mut all = Metric::ALL.into_iter();
        all.find(|metric| metric.objective() == self.objective)
            .unwrap_or(Metric::MeanFct)
    }
}

/// A policy as it appears in tables and figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The policy string, in its canonical form; unique within an evaluation.
    pub policy: String,
    /// Name in tables and figures, unique within an evaluation; empty in reports of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// Role in the comparison.
    pub role: Role,
    /// Description of how a learned or tuned policy was made; empty for other rules.
    pub origin: String,
    /// Training objective and seed of a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<Training>,
}

impl Entry {
    /// Returns the label, or the policy string if there is none.
    pub fn label(&self) -> &str {
        match self.label.as_str() {
            "" => &self.policy,
            label => label,
        }
    }
}

/// Arrival pattern of the flows of a trace (`arrivals` of a scenario). With `mixed`, a trace is one or the
/// other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Every flow starts independently.
    #[default]
    Spread,
    /// Flows start together in groups.
    Synchronised,
}

impl Arrivals {
    /// Both patterns, in the order of tables.
    pub const ALL: [Arrivals; 2] = [Arrivals::Spread, Arrivals::Synchronised];

    /// Returns the pattern of a trace: in synchronised traces, flows have group numbers.
    pub fn of(trace: &Trace) -> Arrivals {
        match trace.flows.iter().any(|flow| flow.query >= 0) {
            true => Arrivals::Synchronised,
            false => Arrivals::Spread,
        }
    }

    /// Returns the word for tables.
    pub fn name(self) -> &'static str {
        match self {
            Arrivals::Spread => "spread",
            Arrivals::Synchronised => "synchronised",
        }
    }
}

/// The mean FCT of one policy on the traces of one kind of arrivals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ByArrivals {
    /// The kind.
    pub arrivals: Arrivals,
    /// Traces of that kind that every policy finished.
    pub traces: u64,
    /// Mean over them of the mean FCT, ms.
    pub mean_fct_ms: Option<f64>,
    /// Mean over them of mean FCT / mean FCT of DT (α = 1).
    pub ratio_to_dt: Option<Estimate>,
}

/// The numbers of one policy on one trace. A metric is `None` if the trace has no flow of its class. All
/// metrics are `None` if the policy failed the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceResult {
    /// The policy string.
    pub policy: String,
    /// Index of the trace within its split.
    pub trace: u64,
    /// Seed that generates the trace.
    pub seed: u64,
    /// Arrival pattern of the flows.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Flows in the trace.
    pub flows: u64,
    /// Flows that finished.
    pub completed: u64,
    /// Completion times and slowdown of all flows.
    #[serde(flatten)]
    pub all_flows: AllFlows,
    /// Completion times by class of flows.
    #[serde(flatten)]
    pub flow_classes: FlowClasses,
    /// Slowdowns by class of flows.
    #[serde(flatten)]
    pub class_slowdowns: ClassSlowdowns,
    /// Slowdowns of in-cast flows, and tails by class of flows.
    #[serde(flatten)]
    pub slowdown_tails: SlowdownTails,
    /// Packets dropped, push-outs included.
    pub drops: u64,
    /// Data packets dropped.
    pub drops_data: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Part of the mean FCT that flows waited for timers that expired, ms.
    #[serde(default)]
    pub timeout_wait_ms: f64,
    /// Simulated time until the last flow finished, in seconds.
    pub simulated_s: f64,
    /// Largest buffer occupancy in bytes.
    pub max_occupancy_bytes: u64,
    /// Time-weighted 99th percentile of the occupancy, as a fraction of the buffer.
    pub p99_occupancy: Option<f64>,
    /// Decisions of a learned policy; 0 for a rule.
    pub decisions: u64,
    /// Mean FCT / mean FCT of DT (α = 1) on the same trace.
    pub ratio_to_dt: Option<f64>,
    /// p99 FCT / p99 FCT of DT (α = 1) on the same trace.
    pub p99_ratio_to_dt: Option<f64>,
    /// The metrics of the other objectives.
    #[serde(flatten)]
    pub objectives: ObjectiveMetrics,
    /// Pauses and occupancy, if some packets are lossless.
    #[serde(flatten)]
    pub lossless: LosslessMetrics,
    /// Reason why the trace counts as failed, if it does: some flows did not finish.
    pub failure: Option<String>,
}

/// The numbers of one policy over all traces.
///
/// Means are over the traces that every policy finished, with equal weights. Percentiles are means over
/// traces of the percentile within the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicySummary {
    /// The policy.
    #[serde(flatten)]
    pub entry: Entry,
    /// Traces with a flow that did not finish.
    pub failed: u64,
    /// Means of the completion times and slowdowns of all flows.
    #[serde(flatten)]
    pub all_flows: AllFlows,
    /// Means of the slowdowns by class of flows.
    #[serde(flatten)]
    pub class_slowdowns: ClassSlowdowns,
    /// Means of the slowdowns of in-cast flows, and of the tails by class of flows.
    #[serde(flatten)]
    pub slowdown_tails: SlowdownTails,
    /// Slowdowns relative to DT's (α = 1).
    #[serde(flatten)]
    pub slowdown_ratios: SlowdownRatios,
    /// Means of the completion times by class of flows, over the traces that have such flows.
    #[serde(flatten)]
    pub flow_classes: FlowClasses,
    /// Mean over traces of mean FCT / mean FCT of DT (α = 1).
    pub ratio_to_dt: Option<Estimate>,
    /// Mean over traces of p99 FCT / p99 FCT of DT (α = 1).
    pub p99_ratio_to_dt: Option<Estimate>,
    /// The smallest ratio of mean FCTs on any trace.
    pub best_ratio: Option<f64>,
    /// The largest ratio of mean FCTs on any trace.
    pub worst_ratio: Option<f64>,
    /// Traces won, tied and lost against DT (α = 1).
    pub tally: Tally,
    /// Share of won traces among those that are not ties.
    pub share_won: Option<f64>,
    /// Share captured of the headroom between DT (α = 1) and the unlimited buffer.
    pub headroom: Option<f64>,
    /// Packets dropped over all traces.
    pub drops: u64,
    /// Data packets dropped over all traces.
    pub drops_data: u64,
    /// Retransmission timeouts over all traces.
    pub timeouts: u64,
    /// Retransmission timeouts per flow, all traces together.
    #[serde(default)]
    pub timeouts_per_flow: Option<f64>,
    /// Part of the mean FCT that flows waited for timers that expired.
    #[serde(default)]
    pub timeout_share: Option<f64>,
    /// Mean FCT by the arrivals of a trace; empty if all traces are alike.
    #[serde(default)]
    pub by_arrivals: Vec<ByArrivals>,
    /// Mean over traces of the 99th percentile of the occupancy, as a fraction of the buffer.
    pub p99_occupancy: Option<f64>,
    /// Largest occupancy on any trace, in bytes.
    pub max_occupancy_bytes: u64,
    /// Decisions over all traces.
    pub decisions: u64,
    /// Means over traces of the metrics of the other objectives.
    #[serde(flatten)]
    pub objectives: ObjectiveMetrics,
    /// Means over traces of the metrics of the other objectives relative to DT's (α = 1).
    #[serde(flatten)]
    pub objective_ratios: ObjectiveRatios,
    /// Means of pauses and occupancy, if some packets are lossless.
    #[serde(flatten)]
    pub lossless: LosslessMetrics,
    /// Means of pauses and occupancy relative to DT's (α = 1).
    #[serde(flatten)]
    pub lossless_ratios: LosslessRatios,
}

impl TraceResult {
    /// Returns all slowdowns of the run.
    pub fn slowdowns(&self) -> Slowdowns {
        Slowdowns {
            all: self.all_flows,
            classes: self.class_slowdowns,
            tails: self.slowdown_tails,
        }
    }
}

impl PolicySummary {
    /// Returns the means of all slowdowns.
    pub fn slowdowns(&self) -> Slowdowns {
        Slowdowns {
            all: self.all_flows,
            classes: self.class_slowdowns,
            tails: self.slowdown_tails,
        }
    }
}

/// A learned policy compared with another one on the same traces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Versus {
    /// The learned policy.
    pub policy: String,
    /// The other policy.
    pub against: String,
    /// Mean over traces of mean FCT / mean FCT of the other policy.
    pub ratio: Estimate,
    /// Traces won, tied and lost against the other policy.
    pub tally: Tally,
    /// The metrics of the other objectives, relative to the other policy's.
    #[serde(default)]
    pub objectives: PairedObjectives,
}

/// The policies of one task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedGroup {
    /// See [`Training::task`].
    pub task: String,
    /// The policies, in the order of their seeds.
    pub policies: Vec<String>,
    /// Seeds of the policies.
    pub seeds: Vec<u64>,
    /// Mean over traces of mean FCT / mean FCT of DT (α = 1), for each policy.
    pub ratios_to_dt: Vec<f64>,
    /// Mean over seeds and traces of mean FCT / mean FCT of DT (α = 1). The interval is over traces, of the
    /// mean over seeds.
    pub ratio_to_dt: Estimate,
    /// Mean over seeds and traces of p99 FCT / p99 FCT of DT (α = 1), with an interval over traces.
    pub p99_ratio_to_dt: Option<Estimate>,
    /// Standard deviation over seeds of `ratios_to_dt` (n - 1).
    pub deviation: f64,
    /// Mean over seeds and traces of mean FCT, ms.
    pub mean_fct_ms: Option<f64>,
    /// Timeouts per flow, all traces and seeds together.
    pub timeouts_per_flow: f64,
    /// Part of mean FCT that flows wait for timeouts, all traces and seeds together.
    pub timeout_share: Option<f64>,
    /// The mean over seeds compared with every rule, trace by trace: mean FCT over the rule's.
    pub versus: Vec<Versus>,
}

impl SeedGroup {
    /// Returns the best seed's ratio.
    pub fn best(&self) -> f64 {
        self.ratios_to_dt
            .iter()
            .copied()
            .fold(f64::INFINITY, f64::min)
    }

    /// Returns the worst seed's ratio.
    pub fn worst(&self) -> f64 {
        self.ratios_to_dt.iter().copied().fold(0.0, f64::max)
    }
}

/// Queue length against threshold on one trace, binned in time (Fig. 10 of the NDT paper).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Index of the trace.
    pub trace: u64,
    /// Start of the window in milliseconds.
    pub start_ms: f64,
    /// Width of a bin in milliseconds.
    pub bin_ms: f64,
    /// Size of the buffer in bytes.
    pub buffer_bytes: u64,
    /// One row per policy and port.
    pub series: Vec<TimelineSeries>,
}

/// One policy at one port; every vector has one value per bin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineSeries {
    /// The policy string.
    pub policy: String,
    /// The port.
    pub port: u32,
    /// Largest queue within the bin, in bytes.
    pub max_queue_bytes: Vec<u64>,
    /// Mean queue within the bin, in bytes.
    pub mean_queue_bytes: Vec<f64>,
    /// Smallest threshold within the bin, in bytes.
    pub min_threshold_bytes: Vec<u64>,
}

/// The distribution of the time between a learned policy's decisions (Fig. 12b of the NDT paper).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriggerIntervals {
    /// The policy string.
    pub policy: String,
    /// Intervals counted.
    pub count: u64,
    /// Nearest-rank percentiles 0, 0.5, …, 100 in milliseconds.
    pub percentiles_ms: Vec<f64>,
}

/// Facts that depend on the machine, not on the seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Wall-clock time of the evaluation in seconds.
    pub wall_s: f64,
    /// Threads used.
    pub threads: usize,
}

/// A whole evaluation. Everything except [`Evaluation::timing`] is determined by the configuration and
/// its seed; it does not depend on the number of threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Name of the file format, [`FORMAT`].
    pub format: String,
    /// Version of the file format, [`VERSION`].
    pub version: u32,
    /// Name and version of the program.
    pub software: String,
    /// The scenario.
    pub scenario: ScenarioFacts,
    /// `train`, `validation`, `test`, or `file`.
    pub split: String,
    /// Seed from which the seeds of the traces are derived.
    pub seed: u64,
    /// Traces evaluated.
    pub traces: u64,
    /// Bootstrap resamples behind the intervals.
    pub resamples: usize,
    /// One per policy: learned ones first, then rules, baseline and reference last.
    pub policies: Vec<PolicySummary>,
    /// Learned policies against the rules, and against the learned policies before them.
    pub versus: Vec<Versus>,
    /// Groups of networks whose trainings differ in the seed only.
    #[serde(default)]
    pub seeds: Vec<SeedGroup>,
    /// One per policy and trace, by policy in the order above, then by trace.
    pub results: Vec<TraceResult>,
    /// Queue length against threshold on one trace.
    pub timeline: Option<Timeline>,
    /// Time between decisions, one entry per learned policy.
    pub trigger_intervals: Vec<TriggerIntervals>,
    /// Facts that depend on the machine.
    pub timing: Timing,
}

impl Evaluation {
    /// Returns the results of one policy by trace.
    pub fn results_of<'a>(&'a self, policy: &'a str) -> impl Iterator<Item = &'a TraceResult> {
        self.results
            .iter()
            .filter(move |result| result.policy == policy)
    }

    /// Returns the results that count as failed.
    pub fn failures(&self) -> impl Iterator<Item = &TraceResult> {
        self.results
            .iter()
            .filter(|result| result.failure.is_some())
    }

    /// Returns the summary of one policy.
    pub fn policy(&self, policy: &str) -> Option<&PolicySummary> {
        self.policies
            .iter()
            .find(|summary| summary.entry.policy == policy)
    }

    /// Returns the label of a policy, or the policy string if there is none.
    pub fn label<'a>(&'a self, policy: &'a str) -> &'a str {
        self.policy(policy)
            .map_or(policy, |summary| summary.entry.label())
    }

    /// Returns true if some packets of the scenario are lossless.
    pub fn has_lossless(&self) -> bool {
        let mut measured = self.results.iter();
        measured.any(|result| result.lossless.pauses.is_some())
    }

    /// Returns the learned policies.
    pub fn learned(&self) -> impl Iterator<Item = &PolicySummary> {
        self.policies
            .iter()
            .filter(|summary| summary.entry.role == Role::Learned)
    }
}

#[cfg(test)]
mod tests {
    use bufgym_sim::scenario::Scenario;
    use bufgym_sim::traffic::generate;

    use super::*;

    #[test]
    fn generated_traces_are_told_apart() {
        for arrivals in Arrivals::ALL {
            let mut scenario = Scenario::default();
            let setting = format!("arrivals={}", arrivals.name());
            scenario.set(&setting).unwrap();
            for seed in 1..20 {
                assert_eq!(Arrivals::of(&generate(&scenario, seed)), arrivals);
            }
        }
    }
}
