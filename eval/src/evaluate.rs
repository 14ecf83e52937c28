//! Runs every policy on every trace in parallel. The result does not depend on the number of threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use bufgym_sim::network::{Outcome, SimError};
use bufgym_sim::scenario::Scenario;
use bufgym_util::rng::{self, Split};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::batch::{self, Batch, Executor, Measurements, Quantity, Running};
use crate::data::{
    Arrivals, Entry, Evaluation, FORMAT, Role, ScenarioFacts, Timing, TraceResult,
    TriggerIntervals, VERSION,
};
use crate::entrant::Entrant;
use crate::metric::{
    AllFlows, ClassSlowdowns, FlowClasses, IsolatedPorts, LosslessMetrics, ObjectiveMetrics,
    SlowdownTails,
};
use crate::stats::RESAMPLES;
pub use crate::traces::{EvalError, NumberedTrace, is_unfit, split_traces};
use crate::{label, stats, summary, timeline};

/// Default number of traces: that of §VI-B of the NDT paper.
pub const TRACES: u64 = 105;

/// Configuration of an evaluation.
#[derive(Clone, Debug)]
pub struct EvalConfig {
    /// Switch, transport and traffic.
    pub scenario: Scenario,
    /// The policies; DT (α = 1) and the unlimited buffer are added if missing.
    pub entrants: Vec<Entrant>,
    /// Number of unseen traces, at least 1.
    pub traces: u64,
    /// Seed from which the seeds of the traces follow.
    pub seed: u64,
    /// Bootstrap resamples behind every interval.
    pub resamples: usize,
}

impl EvalConfig {
    /// Builds a configuration with [`TRACES`] traces and [`RESAMPLES`] resamples.
    pub fn new(scenario: Scenario, entrants: Vec<Entrant>, seed: u64) -> EvalConfig {
        EvalConfig {
            scenario,
            entrants,
            traces: TRACES,
            seed,
            resamples: RESAMPLES,
        }
    }
}

/// The progress of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Simulations finished.
    pub done: usize,
    /// Simulations in total.
    pub total: usize,
    /// Policy of the simulation that just finished.
    pub policy: &'a str,
    /// Trace of that simulation.
    pub trace: u64,
}

/// Callback that any thread calls after every simulation.
pub type OnProgress<'a> = &'a (dyn Fn(Progress<'_>) + Sync);

/// Compares the policies on traces of the test split, which training never sees.
///
/// The result is the same for the same configuration, whatever the number of threads, except for
/// [`Evaluation::timing`].
///
/// # Errors
/// Fails if there is no trace, if the scenario is invalid, or if a policy does not fit it.
pub fn evaluate(config: &EvalConfig, progress: OnProgress) -> Result<Evaluation, EvalError> {
    let traces = split_traces(&config.scenario, Split::Test, config.seed, config.traces)?;
    evaluate_traces(config, Split::Test, &traces, progress)
}

/// Does the same as [`evaluate`] until `stop` is set: no simulation begins after that.
///
/// # Errors
/// Returns the errors of [`evaluate`], and [`EvalError::Stopped`].
pub fn evaluate_until(
    config: &EvalConfig,
    progress: OnProgress,
    stop: &AtomicBool,
) -> Result<Evaluation, EvalError> {
    let traces = split_traces(&config.scenario, Split::Test, config.seed, config.traces)?;
    let here = |scenario: &Scenario, entrants: &[Entrant], traces: &[NumberedTrace]| {
        run_all(scenario, entrants, traces, progress, stop)
    };
    compare(config, Split::Test, &traces, &here)
}

/// Runs every policy on every trace. Takes the scenario, the policies with DT and the unlimited buffer, and
/// the traces; returns the same as [`run_all`].
type Runs<'a> = &'a dyn Fn(&Scenario, &[Entrant], &[NumberedTrace]) -> Result<Vec<Run>, EvalError>;

/// Does the same as [`evaluate_traces`], but other machines run the simulations.
///
/// # Errors
/// Returns the errors of [`evaluate_traces`], [`EvalError::Unfit`] also if a policy cannot be sent to the
/// machines, and [`EvalError::Remote`] if they fail.
pub fn evaluate_on(
    config: &EvalConfig,
    split: Split,
    traces: &[NumberedTrace],
    executor: &dyn Executor,
    progress: OnProgress,
) -> Result<Evaluation, EvalError> {
    let runs = |scenario: &Scenario, entrants: &[Entrant], traces: &[NumberedTrace]| {
        let batch = Batch::crossed::<Compared>(scenario, entrants, traces)?;
        let mut done = 0;
        let found = batch::gather(executor, &batch, |run, _: &Compared| {
            done += 1;
            progress(Progress {
                done,
                total: batch.len(),
                policy: entrants[run % entrants.len()].name(),
                trace: traces[run / entrants.len()].index,
            });
            Ok::<(), EvalError>(())
        })?;
        found.into_iter().map(Compared::run).collect()
    };
    compare(config, split, traces, &runs)
}

/// Compares the policies on the given traces, all of which must belong to `split`.
///
/// # Errors
/// Returns the errors of [`evaluate`], and an error if a trace belongs to another split.
pub fn evaluate_traces(
    config: &EvalConfig,
    split: Split,
    traces: &[NumberedTrace],
    progress: OnProgress,
) -> Result<Evaluation, EvalError> {
    let here = |scenario: &Scenario, entrants: &[Entrant], traces: &[NumberedTrace]| {
        run_all(
            scenario,
            entrants,
            traces,
            progress,
            &AtomicBool::new(false),
        )
    };
    compare(config, split, traces, &here)
}

fn compare(
    config: &EvalConfig,
    split: Split,
    traces: &[NumberedTrace],
    runs: Runs<'_>,
) -> Result<Evaluation, EvalError> {
    let start = Instant::now();
    check(config, split, traces)?;
    let entrants = with_references(&config.entrants);
    let mut entries: Vec<Entry> = entrants.iter().map(Entrant::entry).collect();
    label::fill(&mut entries);
    let runs = runs(&config.scenario, &entrants, traces)?;
    let (mut results, intervals) = by_policy(&entrants, &runs);
    summary::fill_ratios(&mut results);
    let timeline = timeline::of_busiest_trace(&config.scenario, &entrants, traces, &results)?;
    let (resamples, seed) = (config.resamples, config.seed);
    Ok(Evaluation {
        format: FORMAT.to_string(),
        version: VERSION,
        software: concat!("bufgym ", env!("CARGO_PKG_VERSION")).to_string(),
        scenario: ScenarioFacts::of(&config.scenario),
        split: split.to_string(),
        seed,
        traces: traces.len() as u64,
        resamples,
        policies: summary::summarise(&entries, &results, resamples, seed),
        versus: summary::versus(&entries, &results, resamples, seed),
        seeds: summary::seeds(&entries, &results, resamples, seed),
        timeline,
        trigger_intervals: intervals,
        results,
        timing: Timing {
            wall_s: start.elapsed().as_secs_f64(),
            threads: rayon::current_num_threads(),
        },
    })
}

fn check(config: &EvalConfig, split: Split, traces: &[NumberedTrace]) -> Result<(), EvalError> {
    config.scenario.validate()?;
    if traces.is_empty() {
        return Err(EvalError::NoTraces);
    }
    let foreign = traces
        .iter()
        .find(|trace| rng::split_of(trace.seed) != Some(split));
    match foreign {
        Some(trace) => Err(EvalError::WrongSplit {
            trace: trace.index,
            seed: trace.seed,
            split,
        }),
        None => Ok(()),
    }
}

/// Returns the policies without duplicates, with the baseline and the reference: learned policies first, then
/// the other rules, the baseline and the reference. Among duplicates, the first label counts.
pub(crate) fn with_references(entrants: &[Entrant]) -> Vec<Entrant> {
    let fixed = [Entrant::baseline(), Entrant::unlimited()];
    let mut unique: Vec<Entrant> = Vec::new();
    for entrant in entrants.iter().cloned().chain(fixed) {
        let mut others = unique.iter_mut();
        match others.find(|other| other.name() == entrant.name()) {
            None => unique.push(entrant),
            Some(other) if other.label().is_empty() => {
                *other = other.clone().labelled(entrant.label());
            }
            Some(_) => {}
        }
    }
    // A stable sort keeps the order in which the policies were given.
    unique.sort_by_key(|entrant| match entrant.role() {
        Role::Learned => 0,
        Role::Heuristic => 1,
        Role::Baseline => 2,
        Role::Reference => 3,
    });
    unique
}

/// One policy on one trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Run {
    /// Numbers of the run, without those that are relative to DT.
    result: TraceResult,
    /// Times between decisions of a learned policy, picoseconds.
    intervals_ps: Vec<u64>,
}

/// A [`Run`] in transit from another machine, in JSON.
#[derive(Serialize, Deserialize)]
struct Compared(String);

impl Compared {
    fn run(self) -> Result<Run, EvalError> {
        let run = serde_json::from_str(&self.0);
        run.map_err(|error| EvalError::Remote(format!("a result cannot be read: {error}")))
    }
}

impl Quantity for Compared {
    const NAME: &'static str = "comparison";
    const PORTS: bool = true;

    fn measure(run: &Running<'_>) -> Result<Self, SimError> {
        let measured = run_one(run.scenario, run.policy, run.trace, run.ports)?;
        let json = serde_json::to_string(&measured).expect("numbers and texts can be written");
        Ok(Compared(json))
    }
}

/// Returns the quantities of this crate, which other machines can measure: those of a comparison.
pub fn measurements() -> Measurements {
    Measurements::of::<Compared>()
}

/// Runs every policy on every trace, in parallel on the current pool. Runs are by trace, then by policy.
///
/// # Errors
/// Fails if a policy does not fit the scenario. Returns [`EvalError::Stopped`] if stopped.
fn run_all(
    scenario: &Scenario,
    entrants: &[Entrant],
    traces: &[NumberedTrace],
    progress: OnProgress,
    stop: &AtomicBool,
) -> Result<Vec<Run>, EvalError> {
    let go_on = || match stop.load(Ordering::Relaxed) {
        true => Err(EvalError::Stopped),
        false => Ok(()),
    };
    let ports = isolated_ports(scenario, traces, go_on)?;
    let done = AtomicUsize::new(0);
    let total = entrants.len() * traces.len();
    // Runs of one trace follow each other, so that simulations in progress at the same time differ in length.
    (0..total)
        .into_par_iter()
        .map(|run| {
            let entrant = &entrants[run % entrants.len()];
            let numbered = &traces[run / entrants.len()];
            go_on()?;
            let ports = ports[run / entrants.len()].as_ref();
            let measured = run_one(scenario, entrant, numbered, ports)
                .map_err(EvalError::simulation(entrant.name(), numbered))?;
            progress(Progress {
                done: done.fetch_add(1, Ordering::Relaxed) + 1,
                total,
                policy: entrant.name(),
                trace: numbered.index,
            });
            Ok(measured)
        })
        .collect()
}

/// Runs a policy on a trace; `ports` are the isolated ports of the trace.
fn run_one(
    scenario: &Scenario,
    entrant: &Entrant,
    numbered: &NumberedTrace,
    ports: Option<&IsolatedPorts>,
) -> Result<Run, SimError> {
    let outcome = entrant.run(scenario, &numbered.trace, None)?;
    let mut result = trace_result(entrant, numbered, &outcome, ports);
    if scenario.has_lossless() && result.failure.is_none() {
        result.lossless = LosslessMetrics::of(&outcome, ports);
    }
    Ok(Run {
        result,
        intervals_ps: outcome.trigger_intervals_ps,
    })
}

/// Returns the results ordered by policy, then by trace, and the intervals between decisions of each learned
/// policy, pooled over the traces.
fn by_policy(entrants: &[Entrant], runs: &[Run]) -> (Vec<TraceResult>, Vec<TriggerIntervals>) {
    let (mut results, mut intervals) = (Vec::new(), Vec::new());
    for (first, entrant) in entrants.iter().enumerate() {
        let own = || runs.iter().skip(first).step_by(entrants.len());
        results.extend(own().map(|run| run.result.clone()));
        if entrant.role() == Role::Learned {
            let pooled: Vec<u64> = own().flat_map(|run| &run.intervals_ps).copied().collect();
            intervals.push(trigger_intervals(entrant.name(), &pooled));
        }
    }
    (results, intervals)
}

/// Returns the isolated ports of every trace, which port slowdowns are relative to; `None` for a network of
/// several switches.
fn isolated_ports(
    scenario: &Scenario,
    traces: &[NumberedTrace],
    go_on: impl Fn() -> Result<(), EvalError> + Sync,
) -> Result<Vec<Option<IsolatedPorts>>, EvalError> {
    if scenario.is_fabric() {
        return Ok(vec![None; traces.len()]);
    }
    let measure = |numbered: &NumberedTrace| {
        go_on()?;
        IsolatedPorts::measure(scenario, &numbered.trace)
            .map(Some)
            .map_err(EvalError::simulation("cs", numbered))
    };
    traces.par_iter().map(measure).collect()
}

fn trigger_intervals(policy: &str, intervals_ps: &[u64]) -> TriggerIntervals {
    let mut ms: Vec<f64> = intervals_ps.iter().map(|ps| *ps as f64 * 1e-9).collect();
    ms.sort_by(f64::total_cmp);
    TriggerIntervals {
        policy: policy.to_string(),
        count: ms.len() as u64,
        percentiles_ms: stats::half_percentiles(&ms),
    }
}

fn trace_result(
    entrant: &Entrant,
    numbered: &NumberedTrace,
    outcome: &Outcome,
    ports: Option<&IsolatedPorts>,
) -> TraceResult {
    let s = &outcome.summary;
    let finished = s.completed == s.flows;
    let mut result = TraceResult {
        policy: entrant.name().to_string(),
        trace: numbered.index,
        seed: numbered.seed,
        arrivals: Arrivals::of(&numbered.trace),
        flows: s.flows,
        completed: s.completed,
        all_flows: AllFlows::default(),
        flow_classes: FlowClasses::default(),
        class_slowdowns: ClassSlowdowns::default(),
        slowdown_tails: SlowdownTails::default(),
        drops: s.drops,
        drops_data: s.drops_data,
        timeouts: s.timeouts,
        timeout_wait_ms: s.timeout_wait_ms,
        simulated_s: s.simulated_s,
        max_occupancy_bytes: s.max_occupancy_bytes,
        p99_occupancy: None,
        decisions: s.decisions,
        ratio_to_dt: None,
        p99_ratio_to_dt: None,
        objectives: ObjectiveMetrics::default(),
        lossless: LosslessMetrics::default(),
        failure: None,
    };
    // If some flows of a trace did not finish, means over the finished ones say nothing about the trace.
    if finished {
        result.all_flows = AllFlows::of(outcome, ports);
        result.flow_classes = FlowClasses::of(outcome, ports);
        result.class_slowdowns = ClassSlowdowns::of(outcome, ports);
        result.slowdown_tails = SlowdownTails::of(outcome, ports);
        result.p99_occupancy = Some(s.p99_occupancy).filter(|share| share.is_finite());
        result.objectives = ObjectiveMetrics::of(outcome, ports);
    } else {
        let unfinished = s.flows - s.completed;
        result.failure = Some(format!("{unfinished} of {} flows did not finish", s.flows));
    }
    result
}
