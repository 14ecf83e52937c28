//! The traces of a comparison, with their numbers and seeds.

use bufgym_sim::network::SimError;
use bufgym_sim::scenario::{Scenario, ScenarioError};
use bufgym_sim::traffic::{self, Trace, TraceError};
use bufgym_util::rng::{self, Split};
use rayon::prelude::*;

/// A trace with its index and seed.
#[derive(Clone, Debug)]
pub struct NumberedTrace {
    /// Index within its split.
    pub index: u64,
    /// Seed of the trace.
    pub seed: u64,
    /// The flows.
    pub trace: Trace,
}

/// Generates the first `count` traces of a split in parallel.
///
/// # Errors
/// Fails if the scenario is invalid, or if a seed does not belong to the split.
pub fn split_traces(
    scenario: &Scenario,
    split: Split,
    seed: u64,
    count: u64,
) -> Result<Vec<NumberedTrace>, EvalError> {
    scenario.validate()?;
    (0..count)
        .into_par_iter()
        .map(|index| {
            let trace_seed = rng::trace_seed(split, seed, index);
            if rng::split_of(trace_seed) != Some(split) {
                return Err(EvalError::WrongSplit {
                    trace: index,
                    seed: trace_seed,
                    split,
                });
            }
            let trace = traffic::generate(scenario, trace_seed);
            Ok(NumberedTrace {
                index,
                seed: trace_seed,
                trace,
            })
        })
        .collect()
}

/// An error that prevents an evaluation.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// The scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A policy or trace does not fit the scenario.
    #[error("{policy} on trace {trace}: {source}")]
    Simulation {
        /// The policy string.
        policy: String,
        /// Index of the trace.
        trace: u64,
        /// The cause.
        source: Box<SimError>,
    },
    /// The caller has stopped the evaluation.
    #[error("the evaluation was stopped")]
    Stopped,
    /// Other machines were to run the evaluation, but a policy cannot be sent to them or does not fit the
    /// scenario.
    #[error("{0}")]
    Unfit(String),
    /// Other machines were to run the evaluation and failed.
    #[error("{0}")]
    Remote(String),
    /// The number of traces is zero.
    #[error("an evaluation needs at least one trace")]
    NoTraces,
    /// A trace does not belong to the split; training may have seen it.
    #[error("trace {trace} (seed {seed}) does not belong to the {split} split")]
    WrongSplit {
        /// Index of the trace.
        trace: u64,
        /// Seed of the trace.
        seed: u64,
        /// The split that all traces must belong to.
        split: Split,
    },
}

impl EvalError {
    /// Turns the error of a simulation of `policy` on a trace into an error of the evaluation.
    pub fn simulation(
        policy: &str,
        numbered: &NumberedTrace,
    ) -> impl FnOnce(SimError) -> EvalError {
        let (policy, trace) = (policy.to_string(), numbered.index);
        move |source| EvalError::Simulation {
            policy,
            trace,
            source: Box::new(source),
        }
    }

    /// Returns true if the request is invalid: the scenario, the number of traces, a policy that does not
    /// fit, or a time so short that it contains no traffic.
    pub fn is_bad_input(&self) -> bool {
        match self {
            EvalError::Scenario(_) | EvalError::NoTraces | EvalError::Unfit(_) => true,
            EvalError::Simulation { source, .. } => is_unfit(source),
            EvalError::Stopped | EvalError::Remote(_) | EvalError::WrongSplit { .. } => false,
        }
    }
}

/// Returns true if a simulation failed because the policy does not fit the scenario or the scenario has no
/// traffic.
pub fn is_unfit(error: &SimError) -> bool {
    matches!(
        error,
        SimError::Policy(_) | SimError::Controller(_) | SimError::Trace(TraceError::NoFlows)
    )
}
