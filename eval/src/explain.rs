//! Explains a learned policy: the inputs that its decisions depend on, queues and thresholds in an in-cast,
//! the occupancy of the buffer at packet loss, and the time of a decision against the time between decisions.
//!
//! All measurements are made on validation traces, which are not used to update the weights. The traces
//! of the test split stay unseen.

mod cost;
mod dependence;
mod drawing;
mod drops;
mod page;
pub mod pauses;
mod watch;

pub use cost::{Inference, RateIntervals};
pub use dependence::{
    Decided, Dependence, DependenceCurve, Factor, Observations, Population, Steps, dependences,
};
pub use drops::DropOccupancy;
pub use watch::{LevelCounts, Watched, watch};

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bufgym_env::control::{Controller, LowLevelPolicy};
use bufgym_sim::scenario::{Scenario, ScenarioError};
use bufgym_sim::switch::PolicySpec;
use bufgym_util::rng::{self, Split};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::data::{BASELINE, Entry, ScenarioFacts, Timeline, Timing};
use crate::entrant::Entrant;
use crate::evaluate::{OnProgress, Progress};
use crate::output::{self, OutputError};
use crate::timeline;
use crate::traces::{EvalError, NumberedTrace, split_traces};

/// Name of the file format in `explain.json`.
pub const FORMAT: &str = "bufgym-explanation";
/// Version of the file format. It is raised when a field changes its meaning, not when fields are added.
pub const VERSION: u32 = 1;
/// Default number of traces.
pub const TRACES: u64 = 16;
/// The preset of the in-cast (§VI-D of the NDT paper, Fig. 10).
pub const INCAST: &str = "ndt-4to2-incast";
/// The rules whose drops are compared with those of the policy (Fig. 11).
pub const RULES: [&str; 4] = ["cs", "st", "dt", "edt"];

/// Number of observations kept of each trace.
const KEPT: usize = 256;
/// Number of decisions of one port that a dependence is averaged over, for each population.
const SAMPLES: u64 = 1024;

/// Configuration of an explanation.
#[derive(Clone, Debug)]
pub struct ExplainConfig {
    /// Switch, transport and traffic.
    pub scenario: Scenario,
    /// The policy, which must be a network.
    pub entrant: Entrant,
    /// Number of validation traces, at least 1.
    pub traces: u64,
    /// Seed from which the seeds of the traces follow.
    pub seed: u64,
}

/// An error that prevents an explanation.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// A run failed, like in an evaluation.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// The preset of the in-cast is invalid.
    #[error(transparent)]
    Preset(#[from] ScenarioError),
    /// The policy is not a network. Rules and linear rules need no explanation.
    #[error("policy {0} is a rule: only networks can be explained")]
    NotLearned(String),
    /// The policy made no decision.
    #[error(
        "the policy was never asked for a decision on {0} validation traces: raise `load`, `flows` or the number of traces"
    )]
    NoDecisions(u64),
}

/// An explanation. Everything except [`Explanation::timing`] and [`Explanation::inference`] is
/// determined by the configuration and its seed; it does not depend on the number of threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// Name of the file format, [`FORMAT`].
    pub format: String,
    /// Version of the file format, [`VERSION`].
    pub version: u32,
    /// Program and version.
    pub software: String,
    /// The policy.
    #[serde(flatten)]
    pub entry: Entry,
    /// The scenario of the traces.
    pub scenario: ScenarioFacts,
    /// β, the bytes of the buffer per port, which is the unit of volumes.
    pub beta_bytes: u64,
    /// Time to send β at line rate, milliseconds, which is the unit of the time since the last decision.
    pub drain_ms: f64,
    /// Split of the traces.
    pub split: String,
    /// Seed of the traces.
    pub seed: u64,
    /// Number of traces.
    pub traces: u64,
    /// Number of decisions of the policy on the traces.
    pub decisions: u64,
    /// Dependence of the decided α on each factor.
    pub dependences: Vec<Dependence>,
    /// Counts of each decided α.
    pub alphas: LevelCounts,
    /// Counts of each decided level of early drop, if decisions set one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early: Option<LevelCounts>,
    /// The gap that every level of early drop stands for, packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_gaps: Option<[u32; 8]>,
    /// The scenario of the in-cast.
    pub incast: ScenarioFacts,
    /// Queues and thresholds in the in-cast.
    pub timeline: Option<Timeline>,
    /// Occupancy at drops: the policy first, then the rules.
    pub drops: Vec<DropOccupancy>,
    /// Time between decisions at several line rates.
    pub intervals: Vec<RateIntervals>,
    /// Time of a decision on this machine.
    pub inference: Inference,
    /// Other facts that depend on the machine.
    pub timing: Timing,
}

/// Runs the policy on validation traces and measures everything in an explanation.
///
/// # Errors
/// Fails if the policy is not a network or makes no decision, if the scenario is invalid, or if there is no
/// trace.
pub fn explain(config: &ExplainConfig, progress: OnProgress) -> Result<Explanation, ExplainError> {
    let start = Instant::now();
    let entrant = &config.entrant;
    let Some((make, low_level)) = entrant.networks() else {
        return Err(ExplainError::NotLearned(entrant.name().to_owned()));
    };
    let scenario = &config.scenario;
    let early_gaps = low_level.early_gaps();
    let early_gaps = early_gaps.map(|gaps| gaps.in_buffer(scenario.network.buffer_bytes));
    let traces = split_traces(scenario, Split::Validation, config.seed, config.traces)?;
    if traces.is_empty() {
        return Err(EvalError::NoTraces.into());
    }
    let other_rates = cost::RATES_BPS.iter();
    let other_rates = other_rates.filter(|rate| **rate != scenario.network.rate_bps);
    let study = Study {
        name: entrant.name(),
        make: &make,
        low_level,
        seed: config.seed,
        done: AtomicUsize::new(0),
        total: traces.len() * (1 + RULES.len() + other_rates.count()),
        progress,
    };
    let watched = study.policy(scenario, &traces, KEPT)?;
    if watched.decisions == 0 {
        return Err(ExplainError::NoDecisions(config.traces));
    }
    let entry = entrant.entry();
    let capacity = scenario.network.buffer_bytes;
    let mut drops = vec![DropOccupancy::of(&entry, &watched.drops, capacity)];
    drops.extend(study.rules(scenario, &traces)?);
    let intervals = study.intervals(config, &watched)?;
    let incast = Scenario::preset(INCAST)?;
    let inference = Inference::measure(make().as_mut(), &watched.observations, &intervals);
    let beta = (capacity / u64::from(scenario.network.ports.max(1))).max(1);
    Ok(Explanation {
        format: FORMAT.to_owned(),
        version: VERSION,
        software: concat!("bufgym ", env!("CARGO_PKG_VERSION")).to_owned(),
        scenario: ScenarioFacts::of(scenario),
        beta_bytes: beta,
        drain_ms: 8e3 * beta as f64 / scenario.network.rate_bps as f64,
        split: Split::Validation.to_string(),
        seed: config.seed,
        traces: config.traces,
        decisions: watched.decisions,
        dependences: dependences(&make, &watched.observations, SAMPLES, config.seed),
        alphas: watched.alphas,
        early: early_gaps.is_some().then_some(watched.early),
        early_gaps,
        timeline: incast_timeline(entrant, &incast, config.seed)?,
        incast: ScenarioFacts::of(&incast),
        drops,
        intervals: intervals.into_iter().map(|(summary, _)| summary).collect(),
        inference,
        entry,
        timing: Timing {
            wall_s: start.elapsed().as_secs_f64(),
            threads: rayon::current_num_threads(),
        },
    })
}

/// The simulations of an explanation.
struct Study<'a> {
    name: &'a str,
    make: &'a (dyn Fn() -> Box<dyn Controller> + Sync),
    low_level: LowLevelPolicy,
    seed: u64,
    done: AtomicUsize,
    total: usize,
    progress: OnProgress<'a>,
}

impl Study<'_> {
    fn finished(&self, policy: &str, trace: u64) {
        (self.progress)(Progress {
            done: self.done.fetch_add(1, Ordering::Relaxed) + 1,
            total: self.total,
            policy,
            trace,
        });
    }

    /// Runs the policy on every trace and merges the recordings, with up to `kept` observations of each
    /// trace.
    fn policy(
        &self,
        scenario: &Scenario,
        traces: &[NumberedTrace],
        kept: usize,
    ) -> Result<Watched, EvalError> {
        let runs: Result<Vec<Watched>, EvalError> = traces
            .par_iter()
            .map(|numbered| {
                let mut controller = (self.make)();
                let mut chance = rng::stream(self.seed, "explain observations", numbered.index);
                let run = watch(
                    scenario,
                    &numbered.trace,
                    controller.as_mut(),
                    self.low_level.clone(),
                    kept,
                    &mut chance,
                );
                self.finished(self.name, numbered.index);
                run.map_err(EvalError::simulation(self.name, numbered))
            })
            .collect();
        let mut all = Watched::new(scenario);
        runs?.into_iter().for_each(|run| all.append(run));
        Ok(all)
    }

    /// Records the drops of the rules on the same traces.
    fn rules(
        &self,
        scenario: &Scenario,
        traces: &[NumberedTrace],
    ) -> Result<Vec<DropOccupancy>, EvalError> {
        let of_rule = |name: &str| {
            let spec = PolicySpec::named(name);
            let rows: Result<Vec<_>, EvalError> = traces
                .par_iter()
                .map(|numbered| {
                    let rows = drops::of_rule(&spec, scenario, &numbered.trace);
                    self.finished(name, numbered.index);
                    rows.map_err(EvalError::simulation(name, numbered))
                })
                .collect();
            let entry = Entrant::rule(spec).entry();
            Ok(DropOccupancy::of(
                &entry,
                &rows?.concat(),
                scenario.network.buffer_bytes,
            ))
        };
        RULES.into_iter().map(of_rule).collect()
    }

    /// Measures the time between decisions at each line rate, with the sorted intervals in microseconds. The
    /// intervals at the scenario's own rate are taken from `watched`.
    fn intervals(
        &self,
        config: &ExplainConfig,
        watched: &Watched,
    ) -> Result<Vec<(RateIntervals, Vec<f64>)>, EvalError> {
        let at_rate = |rate_bps: u64| {
            if rate_bps == config.scenario.network.rate_bps {
                return Ok(RateIntervals::of(rate_bps, &watched.intervals_ps));
            }
            let scenario = config.scenario.clone().with(|scenario| {
                scenario.network.rate_bps = rate_bps;
            });
            let traces = split_traces(&scenario, Split::Validation, config.seed, config.traces)?;
            let watched = self.policy(&scenario, &traces, 0)?;
            Ok(RateIntervals::of(rate_bps, &watched.intervals_ps))
        };
        cost::RATES_BPS.into_iter().map(at_rate).collect()
    }
}

/// Records the excerpt of the first validation trace of the in-cast, with complete sharing, DT and the
/// policy.
fn incast_timeline(
    entrant: &Entrant,
    incast: &Scenario,
    seed: u64,
) -> Result<Option<Timeline>, EvalError> {
    let traces = split_traces(incast, Split::Validation, seed, 1)?;
    let Some(numbered) = traces.first() else {
        return Ok(None);
    };
    let baseline = Entrant::baseline();
    let sharing = Entrant::rule(PolicySpec::named("cs"));
    let outcome = baseline.run(incast, &numbered.trace, None);
    let outcome = outcome.map_err(EvalError::simulation(BASELINE, numbered))?;
    timeline::excerpt(
        incast,
        &[&sharing, &baseline, entrant],
        numbered,
        outcome.summary.simulated_s,
    )
}

/// Writes `explain.html`, `explain.json` and the figures into an empty folder, which the caller then moves to
/// its final place.
///
/// # Errors
/// Fails if a file cannot be written, or if a figure cannot be drawn.
pub fn write_into(explanation: &Explanation, folder: &Path) -> Result<(), OutputError> {
    let figures = drawing::figures(explanation)?;
    let page = page::render(explanation, &figures);
    output::fill_explanation(folder, page, explanation, &figures)
}

/// Returns the findings in words, the most important first.
pub fn findings(explanation: &Explanation) -> Vec<String> {
    page::findings(explanation)
}
