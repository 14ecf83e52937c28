//! The numbers of a measurement, which are the content of `headroom.json`.

use serde::{Deserialize, Serialize};

use super::Verdict;
use crate::data::ScenarioFacts;
use crate::stats::Estimate;

/// Name of the file format in `headroom.json`.
pub(super) const FORMAT: &str = "bufgym-headroom";
/// Version of the file format. It rises if a field changes its meaning; added fields do not change it.
pub(super) const VERSION: u32 = 1;

/// The possible gain in a scenario. Ratios compare mean FCT trace by trace, and lower is better, except for
/// those of the goodput.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Headroom {
    /// Name of the file format.
    pub format: String,
    /// Version of the file format.
    pub version: u32,
    /// Name and version of the program that wrote the file.
    pub software: String,
    /// The scenario.
    pub scenario: ScenarioFacts,
    /// The split that the traces belong to.
    pub split: String,
    /// Seed of everything random.
    pub seed: u64,
    /// Number of traces behind the results.
    pub traces: u64,
    /// Traces on which DT left flows unfinished; the results ignore them.
    pub left_out: Vec<u64>,
    /// Copies of each trace for making choices, the trace itself included.
    pub planned: u64,
    /// Other copies of each trace for repeating the choices.
    pub jittered: u64,
    /// Longest delay of a flow in a copy, microseconds.
    pub jitter_us: u64,
    /// Time between decisions of the search, microseconds.
    pub step_us: u64,
    /// Time that the search followed a candidate, microseconds.
    pub horizon_us: u64,
    /// Bootstrap resamples behind every interval.
    pub resamples: usize,
    /// Every candidate rule, the best on the traces themselves first.
    pub rules: Vec<RuleResult>,
    /// The best single rule for all traces.
    pub best_rule: String,
    /// The rule whose α was searched: the best one, or Dynamic Threshold if the best one has no α.
    pub low_level: String,
    /// The possible gains.
    pub rows: Vec<Row>,
    /// Verdict on whether training is worthwhile.
    pub verdict: Verdict,
    /// Cost of the measurement.
    pub cost: Cost,
    /// The rows of each trace.
    pub per_trace: Vec<TraceRow>,
}

/// A rule on the traces themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleResult {
    /// The policy string.
    pub policy: String,
    /// Ratio to DT (α = 1); `None` if the rule left flows unfinished on a trace.
    pub ratio_to_dt: Option<Estimate>,
    /// Number of traces on which it was the best rule.
    pub best_on: u64,
}

/// A reference or choice that is compared with DT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowKind {
    /// A buffer that never fills; a scale, not a bound.
    Unlimited,
    /// Senders that share the links fairly at once, without queues and losses; a scale, not a bound.
    FairSenders,
    /// Like `FairSenders`, but the flow with the fewest bytes left comes first; no switch knows these bytes.
    ShortestFirst,
    /// The best single rule for all traces.
    BestRule,
    /// The best rule of every trace.
    BestRuleOfTrace,
    /// The sequence of decisions that the search found for every trace.
    Search,
}

impl RowKind {
    /// All rows, in the order of tables.
    pub const ALL: [RowKind; 6] = [
        RowKind::Unlimited,
        RowKind::FairSenders,
        RowKind::ShortestFirst,
        RowKind::BestRule,
        RowKind::BestRuleOfTrace,
        RowKind::Search,
    ];

    /// Returns the name for tables and sentences.
    pub fn title(self) -> &'static str {
        match self {
            RowKind::Unlimited => "unlimited buffer",
            RowKind::FairSenders => "ideal senders, fair",
            RowKind::ShortestFirst => "ideal senders, shortest first",
            RowKind::BestRule => "best single rule",
            RowKind::BestRuleOfTrace => "best rule of each trace",
            RowKind::Search => "searched decisions",
        }
    }
}

/// One row: means over the traces with 95 % intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Kind of the row.
    pub row: RowKind,
    /// Ratio to DT (α = 1) on the copies for making choices, chance included.
    pub ratio_to_dt: Option<Estimate>,
    /// Ratio to DT (α = 1) on copies that differ by chance.
    pub jittered_ratio_to_dt: Option<Estimate>,
    /// The least of those ratios over the traces.
    pub best_ratio: Option<f64>,
    /// The largest of those ratios over the traces.
    pub worst_ratio: Option<f64>,
    /// Ratio to the best single rule on the same copies.
    pub jittered_ratio_to_best_rule: Option<Estimate>,
    /// Ratio of the goodput to that of DT (α = 1) on the same copies; higher is better. The choices were made
    /// by mean FCT all the same.
    pub jittered_goodput_ratio_to_dt: Option<Estimate>,
    /// Ratio of the goodput to that of the best single rule on the same copies; higher is better.
    pub jittered_goodput_ratio_to_best_rule: Option<Estimate>,
}

impl Row {
    pub(super) fn of(
        row: RowKind,
        traces: &[TraceRow],
        interval: impl Fn(&[f64]) -> Option<Estimate>,
    ) -> Row {
        let values = |field: fn(&TraceRow) -> Option<f64>| -> Vec<f64> {
            let own = traces.iter().filter(|trace| trace.row == row);
            own.filter_map(field).collect()
        };
        let jittered = values(|trace| trace.jittered_ratio_to_dt);
        Row {
            row,
            ratio_to_dt: interval(&values(|trace| trace.ratio_to_dt)),
            jittered_ratio_to_dt: interval(&jittered),
            best_ratio: jittered.iter().copied().reduce(f64::min),
            worst_ratio: jittered.iter().copied().reduce(f64::max),
            jittered_ratio_to_best_rule: interval(&values(|trace| {
                trace.jittered_ratio_to_best_rule
            })),
            jittered_goodput_ratio_to_dt: interval(&values(|trace| {
                trace.jittered_goodput_ratio_to_dt
            })),
            jittered_goodput_ratio_to_best_rule: interval(&values(|trace| {
                trace.jittered_goodput_ratio_to_best_rule
            })),
        }
    }
}

/// One row on one trace. Mean FCT are means over copies of the trace; a number is `None` if flows were left
/// unfinished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceRow {
    /// Index of the trace within its split.
    pub trace: u64,
    /// Seed that generates the trace.
    pub seed: u64,
    /// Flows in the trace.
    pub flows: u64,
    /// Kind of the row.
    pub row: RowKind,
    /// The rule, the result of the search, or the sharing rule of ideal senders.
    pub policy: String,
    /// Mean FCT of DT (α = 1) on the copies for making choices, ms.
    pub dt_mean_fct_ms: Option<f64>,
    /// Mean FCT on the copies for making choices, ms.
    pub mean_fct_ms: Option<f64>,
    /// Ratio of the two.
    pub ratio_to_dt: Option<f64>,
    /// Mean FCT of DT (α = 1) on copies that differ by chance, ms.
    pub jittered_dt_mean_fct_ms: Option<f64>,
    /// Mean FCT on the same copies, ms.
    pub jittered_mean_fct_ms: Option<f64>,
    /// Ratio of the two.
    pub jittered_ratio_to_dt: Option<f64>,
    /// Ratio to the mean FCT of the best single rule on the same copies.
    pub jittered_ratio_to_best_rule: Option<f64>,
    /// Goodput of DT (α = 1) on copies that differ by chance, bit/s: the payload of all flows over the time
    /// from the first start to the last end.
    pub jittered_dt_goodput_bps: Option<f64>,
    /// Goodput on the same copies, bit/s.
    pub jittered_goodput_bps: Option<f64>,
    /// Ratio of the two; higher is better.
    pub jittered_goodput_ratio_to_dt: Option<f64>,
    /// Ratio to the goodput of the best single rule on the same copies; higher is better.
    pub jittered_goodput_ratio_to_best_rule: Option<f64>,
}

/// The cost of the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Simulations of whole traces.
    pub runs: u64,
    /// Packets that were forwarded in the forks of the searches.
    pub fork_packets: u64,
    /// Number of simulations of whole traces that would forward as many packets.
    pub forks_as_runs: f64,
}
