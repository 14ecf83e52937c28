//! Explains pauses if some packets are lossless: how often switches pause their neighbours under each policy,
//! which port pauses which neighbour when, and how long the ingress queues are meanwhile.

mod drawing;
mod excerpt;
mod page;

pub use excerpt::{IngressSeries, PausedQueue, PausesExcerpt, PolicyExcerpt};

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bufgym_sim::network::Outcome;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PfcInterval;
use bufgym_util::rng::Split;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::data::{Entry, ScenarioFacts, Timing};
use crate::entrant::Entrant;
use crate::evaluate::{OnProgress, Progress};
use crate::metric::{AllFlows, LosslessMetrics, SlowdownTails};
use crate::output::{self, OutputError};
use crate::stats;
use crate::traces::{EvalError, NumberedTrace, split_traces};

/// Name of the file format in `explain.json`.
pub const FORMAT: &str = "bufgym-pauses";
/// Version of the file format. It is raised when a field changes its meaning, not when fields are added.
pub const VERSION: u32 = 1;
/// The default policies of the comparison.
pub const POLICIES: [&str; 3] = ["dt", "sonic-abm", "reverie"];

/// Configuration of an explanation of pauses.
#[derive(Clone, Debug)]
pub struct PausesConfig {
    /// Switches, transport and traffic; some priority is lossless.
    pub scenario: Scenario,
    /// The policies, at least one.
    pub entrants: Vec<Entrant>,
    /// Number of validation traces, at least 1.
    pub traces: u64,
    /// Seed from which the seeds of the traces follow.
    pub seed: u64,
}

/// Pauses of several policies on the same traces. Everything except [`PausesExplained::timing`] is
/// determined by the configuration and its seed; it does not depend on the number of threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PausesExplained {
    /// Name of the file format, [`FORMAT`].
    pub format: String,
    /// Version of the file format, [`VERSION`].
    pub version: u32,
    /// Program and version.
    pub software: String,
    /// The scenario of the traces.
    pub scenario: ScenarioFacts,
    /// Split of the traces.
    pub split: String,
    /// Seed of the traces.
    pub seed: u64,
    /// Number of traces.
    pub traces: u64,
    /// The policies, in the requested order.
    pub policies: Vec<PolicyPauses>,
    /// The excerpt with the most pauses; `None` if there are no pauses.
    pub excerpt: Option<PausesExcerpt>,
    /// Facts that depend on the machine.
    pub timing: Timing,
}

/// Means over traces of one policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyPauses {
    /// The policy.
    #[serde(flatten)]
    pub entry: Entry,
    /// Pauses, losses and occupancy.
    #[serde(flatten)]
    pub lossless: LosslessMetrics,
    /// Mean flow completion time, milliseconds.
    pub mean_fct_ms: Option<f64>,
    /// Mean slowdown of in-cast flows.
    pub incast_mean_slowdown: Option<f64>,
    /// Mean length of a pause over all traces, microseconds.
    pub mean_pause_us: Option<f64>,
}

/// One policy on one trace.
struct Run {
    lossless: LosslessMetrics,
    mean_fct_ms: Option<f64>,
    incast_mean_slowdown: Option<f64>,
    pauses: Vec<PfcInterval>,
}

impl Run {
    fn of(outcome: Outcome) -> Run {
        Run {
            lossless: LosslessMetrics::of(&outcome, None),
            mean_fct_ms: AllFlows::of(&outcome, None).mean_fct_ms,
            incast_mean_slowdown: SlowdownTails::of(&outcome, None).incast_mean_slowdown,
            pauses: outcome.pauses,
        }
    }
}

/// Runs the policies on validation traces and examines the time with the most pauses.
///
/// # Errors
/// Fails if the scenario is invalid, if there is no trace, or if a policy does not fit.
pub fn explain(config: &PausesConfig, progress: OnProgress) -> Result<PausesExplained, EvalError> {
    let start = Instant::now();
    let scenario = &config.scenario;
    let traces = split_traces(scenario, Split::Validation, config.seed, config.traces)?;
    if traces.is_empty() {
        return Err(EvalError::NoTraces);
    }
    let runs = run_all(config, &traces, progress)?;
    let policies = config.entrants.iter().zip(&runs);
    let policies = policies.map(|(entrant, runs)| summarise(entrant, runs));
    let pauses_of = |trace: usize| -> Vec<PfcInterval> {
        let of_trace = runs.iter().map(|of_policy| &of_policy[trace]);
        of_trace.flat_map(|run| run.pauses.clone()).collect()
    };
    let excerpt = match trace_of_most_pauses(&runs) {
        Some(place) => Some(excerpt::of(config, &traces[place], &pauses_of(place))?),
        None => None,
    };
    Ok(PausesExplained {
        format: FORMAT.to_owned(),
        version: VERSION,
        software: concat!("bufgym ", env!("CARGO_PKG_VERSION")).to_owned(),
        scenario: ScenarioFacts::of(scenario),
        split: Split::Validation.to_string(),
        seed: config.seed,
        traces: config.traces,
        policies: policies.collect(),
        excerpt,
        timing: Timing {
            wall_s: start.elapsed().as_secs_f64(),
            threads: rayon::current_num_threads(),
        },
    })
}

/// Runs every policy on every trace; returns the runs by trace.
fn run_all(
    config: &PausesConfig,
    traces: &[NumberedTrace],
    progress: OnProgress,
) -> Result<Vec<Vec<Run>>, EvalError> {
    let done = AtomicUsize::new(0);
    let total = config.entrants.len() * traces.len();
    let run = |entrant: &Entrant, numbered: &NumberedTrace| {
        let outcome = entrant.run(&config.scenario, &numbered.trace, None);
        let outcome = outcome.map_err(EvalError::simulation(entrant.name(), numbered))?;
        progress(Progress {
            done: done.fetch_add(1, Ordering::Relaxed) + 1,
            total,
            policy: entrant.name(),
            trace: numbered.index,
        });
        Ok(Run::of(outcome))
    };
    let of_policy = |entrant: &Entrant| traces.par_iter().map(|t| run(entrant, t)).collect();
    config.entrants.par_iter().map(of_policy).collect()
}

fn summarise(entrant: &Entrant, runs: &[Run]) -> PolicyPauses {
    let lossless: Vec<LosslessMetrics> = runs.iter().map(|run| run.lossless).collect();
    let lossless = LosslessMetrics::mean(&lossless);
    let mean_pause = lossless.paused_ms.zip(lossless.pauses);
    let mean_pause = mean_pause.map(|(ms, pauses)| 1e3 * ms / pauses);
    PolicyPauses {
        entry: entrant.entry(),
        lossless,
        mean_fct_ms: stats::finite_mean(runs.iter().filter_map(|run| run.mean_fct_ms)),
        incast_mean_slowdown: stats::finite_mean(
            runs.iter().filter_map(|run| run.incast_mean_slowdown),
        ),
        mean_pause_us: mean_pause.filter(|us| us.is_finite()),
    }
}

/// Returns the trace with the longest pauses of all policies together, the first one if several are equal;
/// `None` without pauses.
fn trace_of_most_pauses(runs: &[Vec<Run>]) -> Option<usize> {
    let paused = |trace: usize| -> f64 {
        let of_trace = runs.iter().map(|of_policy| &of_policy[trace]);
        of_trace.filter_map(|run| run.lossless.paused_ms).sum()
    };
    let traces = 0..runs.first()?.len();
    let most = traces.max_by(|&a, &b| paused(a).total_cmp(&paused(b)).then(b.cmp(&a)))?;
    (paused(most) > 0.0).then_some(most)
}

/// Writes `explain.html`, `explain.json` and the figures into an empty folder, which the caller then moves to
/// its final place.
///
/// # Errors
/// Fails if a file cannot be written, or if a figure cannot be drawn.
pub fn write_into(explained: &PausesExplained, folder: &Path) -> Result<(), OutputError> {
    let figures = drawing::figures(explained)?;
    let page = page::render(explained, &figures);
    output::fill_explanation(folder, page, explained, &figures)
}

/// Returns the findings in words, a sentence for every policy.
pub fn findings(explained: &PausesExplained) -> Vec<String> {
    page::findings(explained)
}
