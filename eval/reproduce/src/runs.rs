//! Simulations behind the figures: traces, policies, progress.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use bufgym_eval::batch::{self, Batch, BatchError, Executor, Quantity, Running};
use bufgym_eval::entrant::{Entrant, EntrantError};
use bufgym_eval::evaluate::{
    EvalError, NumberedTrace, OnProgress, Progress, is_unfit, split_traces,
};
use bufgym_eval::figures::FigureError;
use bufgym_eval::stats;
use bufgym_sim::network::{Outcome, SimError};
use bufgym_sim::scenario::{Scenario, ScenarioError};
use bufgym_sim::switch::PolicyParseError;
use bufgym_slotted::SlottedError;
use bufgym_util::rng::Split;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// An error that prevents the figures of a paper.
#[derive(Debug, thiserror::Error)]
pub enum PapersError {
    /// A run failed, like in an evaluation.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// A preset or a setting of a variant is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A rule does not exist.
    #[error(transparent)]
    Rule(#[from] EntrantError),
    /// A parameter of a rule is out of range.
    #[error(transparent)]
    Parameter(#[from] PolicyParseError),
    /// A figure could not be drawn.
    #[error(transparent)]
    Figure(#[from] FigureError),
    /// A simulation of a network failed.
    #[error("{policy} on {scenario}: {source}")]
    Run {
        /// The policy string.
        policy: String,
        /// The scenario.
        scenario: String,
        /// The cause.
        source: Box<SimError>,
    },
    /// A finished simulation could not be stored.
    #[error("{}: cannot keep what is finished: {source}", .folder.display())]
    Keep {
        /// Folder for stored results.
        folder: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The slotted model refused its arrivals.
    #[error(transparent)]
    Slotted(#[from] SlottedError),
    /// The learned policy is not a network.
    #[error("policy {0} is not a network: the figures need its parameters and its inference")]
    NotANetwork(String),
}

impl PapersError {
    /// Returns true if the request is invalid: a setting, a policy that does not fit, or a time so short that it
    /// contains no traffic.
    pub fn is_bad_input(&self) -> bool {
        match self {
            PapersError::Eval(error) => error.is_bad_input(),
            // Presets are valid, so one of the given settings is wrong.
            PapersError::Scenario(_) => true,
            PapersError::Run { source, .. } => is_unfit(source),
            _ => false,
        }
    }
}

impl From<BatchError> for PapersError {
    fn from(error: BatchError) -> Self {
        PapersError::Eval(error.into())
    }
}

/// The machines that run the simulations, with the numbers of finished and planned ones.
pub struct Work<'a> {
    executor: Option<&'a dyn Executor>,
    done: AtomicUsize,
    total: AtomicUsize,
    progress: OnProgress<'a>,
}

impl<'a> Work<'a> {
    /// Starts without planned simulations; simulations run here, on the current pool.
    pub fn new(progress: OnProgress<'a>) -> Work<'a> {
        Work {
            executor: None,
            done: AtomicUsize::new(0),
            total: AtomicUsize::new(0),
            progress,
        }
    }

    /// Sets other machines that run the simulations, if there are any.
    #[must_use]
    pub fn on(self, executor: Option<&'a dyn Executor>) -> Work<'a> {
        Work { executor, ..self }
    }

    /// Returns the other machines that run the simulations.
    pub(crate) fn executor(&self) -> Option<&'a dyn Executor> {
        self.executor
    }

    /// Plans more simulations.
    pub fn plan(&self, more: usize) {
        self.total.fetch_add(more, Ordering::Relaxed);
    }

    /// Reports that one simulation is done.
    pub fn tick(&self, policy: &str, trace: u64) {
        (self.progress)(Progress {
            done: self.done.fetch_add(1, Ordering::Relaxed) + 1,
            total: self.total.load(Ordering::Relaxed),
            policy,
            trace,
        });
    }
}

/// Generates `count` test traces of each of `seeds` sets; the sets' seeds are `seed`, `seed + 1` and so on.
/// Traces are numbered consecutively.
///
/// # Errors
/// Fails if the scenario is invalid.
pub(crate) fn test_traces(
    scenario: &Scenario,
    (seed, seeds): (u64, u64),
    count: u64,
) -> Result<Vec<NumberedTrace>, EvalError> {
    let mut traces: Vec<NumberedTrace> = Vec::new();
    for set in 0..seeds {
        let own = split_traces(scenario, Split::Test, seed.wrapping_add(set), count)?;
        traces.extend(own.into_iter().map(|numbered| NumberedTrace {
            index: set * count + numbered.index,
            ..numbered
        }));
    }
    Ok(traces)
}

/// Runs every policy on every trace and measures each run. The results are ordered by policy, then by
/// trace, and depend neither on the number of threads nor on who runs them.
///
/// # Errors
/// Fails if a policy does not fit the scenario, or if other machines fail.
pub(crate) fn run_all<T: Quantity>(
    work: &Work,
    scenario: &Scenario,
    entrants: &[Entrant],
    traces: &[NumberedTrace],
) -> Result<Vec<Vec<T>>, EvalError> {
    // Runs of one trace follow each other, so that simulations in progress at the same time differ in length.
    let of = |run: usize| {
        (
            &entrants[run % entrants.len()],
            &traces[run / entrants.len()],
        )
    };
    let runs: Vec<T> = match work.executor() {
        None => (0..entrants.len() * traces.len())
            .into_par_iter()
            .map(|run| {
                let (policy, trace) = of(run);
                let run = Running {
                    scenario,
                    policy,
                    trace,
                    ports: None,
                    forests: None,
                };
                let measured =
                    T::measure(&run).map_err(EvalError::simulation(policy.name(), trace))?;
                work.tick(policy.name(), trace.index);
                Ok(measured)
            })
            .collect::<Result<_, EvalError>>()?,
        Some(executor) => {
            let batch = Batch::crossed::<T>(scenario, entrants, traces)?;
            batch::gather(executor, &batch, |run, _| {
                let (policy, trace) = of(run);
                work.tick(policy.name(), trace.index);
                Ok::<(), EvalError>(())
            })?
        }
    };
    let mut by_policy: Vec<Vec<T>> = entrants.iter().map(|_| Vec::new()).collect();
    for (run, result) in runs.into_iter().enumerate() {
        by_policy[run % entrants.len()].push(result);
    }
    Ok(by_policy)
}

/// Values of α from which the best static one is chosen.
pub const ALPHAS: [&str; 11] = [
    "0.25", "0.5", "1", "2", "4", "8", "16", "32", "64", "128", "256",
];

/// Returns Dynamic Threshold with the α of [`ALPHAS`] that has the lowest mean over training traces of mean
/// FCT over DT's (α = 1). It is never chosen on test traces.
///
/// # Errors
/// Fails if the scenario is invalid.
pub(crate) fn best_static(
    work: &Work,
    scenario: &Scenario,
    seed: u64,
    count: u64,
) -> Result<Entrant, PapersError> {
    let traces = split_traces(scenario, Split::Train, seed, count)?;
    let baseline = Entrant::baseline();
    let rules = ALPHAS.map(|alpha| match alpha {
        "1" => Ok(baseline.clone()),
        alpha => format!("dt:alpha={alpha}").parse::<Entrant>(),
    });
    let rules = rules.into_iter().collect::<Result<Vec<Entrant>, _>>()?;
    let means = mean_fcts(work, scenario, &rules, &traces)?;
    let dt = rules.iter().position(|rule| rule.name() == baseline.name());
    let Some(dt) = dt.map(|at| &means[at]) else {
        return Ok(baseline);
    };
    let mean_ratio = |own: &[f64]| {
        let ratios = own.iter().zip(dt).map(|(own, dt)| own / dt);
        stats::mean(&ratios.collect::<Vec<_>>()).unwrap_or(f64::INFINITY)
    };
    let ratios: Vec<f64> = means.iter().map(|own| mean_ratio(own)).collect();
    Ok(rules[least(&ratios)].clone())
}

/// Returns the number of simulations behind [`best_static`].
pub(crate) fn best_static_runs(count: u64) -> usize {
    bufgym_util::convert::index(count) * ALPHAS.len()
}

/// Returns the index of the first of the smallest values; NaN is larger than any.
fn least(values: &[f64]) -> usize {
    let placed = values.iter().enumerate();
    let best = placed.min_by(|a, b| a.1.total_cmp(b.1));
    best.map_or(0, |(at, _)| at)
}

/// The [mean FCT](mean_fct) of a run.
#[derive(Serialize, Deserialize)]
pub(crate) struct MeanFct(f64);

impl Quantity for MeanFct {
    const NAME: &'static str = "mean-fct";

    fn measure(run: &Running<'_>) -> Result<Self, SimError> {
        let outcome = run.policy.run(run.scenario, &run.trace.trace, None)?;
        Ok(MeanFct(mean_fct(&outcome)))
    }
}

/// Returns the mean FCT of every policy on every trace, by policy, then by trace.
///
/// # Errors
/// Fails if a policy does not fit the scenario, or if other machines fail.
pub(crate) fn mean_fcts(
    work: &Work,
    scenario: &Scenario,
    entrants: &[Entrant],
    traces: &[NumberedTrace],
) -> Result<Vec<Vec<f64>>, EvalError> {
    let runs = run_all::<MeanFct>(work, scenario, entrants, traces)?;
    let values = |runs: Vec<MeanFct>| runs.into_iter().map(|MeanFct(value)| value).collect();
    Ok(runs.into_iter().map(values).collect())
}

/// Returns the mean FCT in milliseconds; infinity if a flow did not finish.
pub(crate) fn mean_fct(outcome: &Outcome) -> f64 {
    let summary = &outcome.summary;
    match summary.completed == summary.flows {
        true => summary.mean_fct_ms,
        false => f64::INFINITY,
    }
}

/// Returns a policy's name for legends: marked if the paper does not have it.
pub fn legend(entrant: &Entrant, added: bool) -> String {
    match added {
        true => format!("{} (added)", entrant.name()),
        false => entrant.name().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_traces_are_numbered_through_and_differ() {
        let mut scenario = Scenario::default();
        scenario.set("flows=5").unwrap();
        let traces = test_traces(&scenario, (7, 2), 3).unwrap();
        let numbers: Vec<u64> = traces.iter().map(|t| t.index).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
        let second = test_traces(&scenario, (8, 1), 3).unwrap();
        assert_eq!(traces[3].seed, second[0].seed);
        assert_ne!(traces[0].seed, traces[3].seed);
    }

    #[test]
    fn the_best_alpha_is_one_of_those_and_the_same_again() {
        let mut scenario = Scenario::default();
        for change in ["flows=40", "buffer_bytes=100000", "active_ports=3"] {
            scenario.set(change).unwrap();
        }
        let search = || {
            let work = Work::new(&|_| {});
            best_static(&work, &scenario, 1, 2).unwrap()
        };
        let name = search().name().to_owned();
        assert!(name == "dt" || name.starts_with("dt:alpha="), "{name}");
        assert_eq!(search().name(), name);
    }

    #[test]
    fn the_least_is_the_first_one() {
        assert_eq!(least(&[2.0, 1.0, 1.0]), 1);
        assert_eq!(least(&[f64::NAN, 3.0]), 1);
        assert_eq!(least(&[f64::INFINITY]), 0);
    }
}
