//! How good an actor is on a fixed set of traces, relative to DT with α = 1.

use std::time::{Duration, Instant};

use bufgym_env::control::{ControlOptions, LowLevel, RunOptions, run_controlled};
use bufgym_env::network::SimError;
use bufgym_env::rng::{Split, trace_seed};
use bufgym_env::scenario::Scenario;
use bufgym_env::switch::PolicySpec;
use bufgym_env::traffic::{Trace, generate};
use bufgym_eval::metric::{IsolatedPorts, Metric, Sample, compare};
use bufgym_models::{FastActor, checkpoint};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::TrainConfig;

/// Resamples of an interval in the log; published ones come from an evaluation.
const RESAMPLES: usize = 1_000;

/// The result of one validation. Lower values are better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidationResult {
    /// The objective's metric relative to DT (α = 1), and more where the policy is out of the
    /// question; see [`Comparison`](bufgym_eval::metric::Comparison).
    pub value: f64,
    /// Lower end of the ratio's 95 % interval.
    pub low: f64,
    /// Upper end of the ratio's 95 % interval.
    pub high: f64,
    /// Share of the traces won by the metric.
    pub won: f64,
    /// Mean over the traces of mean FCT / mean FCT of DT (α = 1).
    pub fct_ratio: f64,
    /// Traces with a flow that did not finish.
    pub failed: u64,
}

/// The fixed traces with DT's results on them.
pub(crate) struct Validator {
    scenario: Scenario,
    low_level: LowLevel,
    metric: Metric,
    traces: Vec<ValidationTrace>,
}

struct ValidationTrace {
    trace: Trace,
    /// Where the metric is about ports.
    ports: Option<IsolatedPorts>,
    /// DT's.
    baseline: Sample,
}

impl Validator {
    /// Generates the traces and runs DT on them, in parallel on the current pool.
    pub(crate) fn new(config: &TrainConfig) -> Result<Self, SimError> {
        let scenario = config.scenario.clone();
        let seed = config.validation.seed;
        let metric = Metric::of(&config.objective);
        let traces = (0..config.validation.traces)
            .into_par_iter()
            .map(|index| {
                let trace = generate(&scenario, trace_seed(Split::Validation, seed, index));
                ValidationTrace::new(metric, &scenario, trace)
            })
            .collect::<Result<_, SimError>>()?;
        Ok(Self {
            scenario,
            low_level: config.low_level.clone(),
            metric,
            traces,
        })
    }

    /// Number of traces.
    pub(crate) fn traces(&self) -> u64 {
        self.traces.len() as u64
    }

    /// Runs the actor's mean action on every trace, in parallel on the current pool. Returns the
    /// time spent on all threads together too.
    pub(crate) fn validate(
        &self,
        actor: &FastActor,
    ) -> Result<(ValidationResult, Duration), SimError> {
        let options = RunOptions {
            control: ControlOptions {
                low_level: self.low_level.clone(),
                ..ControlOptions::default()
            },
            ..RunOptions::default()
        };
        let measured = self
            .traces
            .par_iter()
            .map(|known| {
                let start = Instant::now();
                let mut actor = actor.clone();
                let outcome = run_controlled(&self.scenario, &known.trace, &mut actor, &options)?;
                let sample = Sample::of(self.metric, &outcome, known.ports.as_ref());
                Ok((sample, start.elapsed()))
            })
            .collect::<Result<Vec<(Sample, Duration)>, SimError>>()?;
        let busy = measured.iter().map(|(_, busy)| busy).sum();
        let samples: Vec<Sample> = measured.into_iter().map(|(sample, _)| sample).collect();
        Ok((self.compare(&samples), busy))
    }

    fn compare(&self, samples: &[Sample]) -> ValidationResult {
        let baseline: Vec<Sample> = self.traces.iter().map(|known| known.baseline).collect();
        let found = compare(self.metric, samples, &baseline, RESAMPLES);
        ValidationResult {
            value: found.value,
            low: found.ratio.low,
            high: found.ratio.high,
            won: found.tally.won as f64 / samples.len().max(1) as f64,
            fct_ratio: found.fct_ratio,
            failed: found.failed,
        }
    }

    /// The result in the form of a manifest.
    pub(crate) fn for_manifest(&self, result: &ValidationResult) -> checkpoint::Validation {
        checkpoint::Validation {
            traces: self.traces(),
            metric: self.metric.comparison().to_owned(),
            value: result.value,
            low: result.low,
            high: result.high,
            won: result.won,
        }
    }
}

impl ValidationTrace {
    /// Runs DT on the trace, and the ports one by one where the metric is about them.
    fn new(metric: Metric, scenario: &Scenario, trace: Trace) -> Result<Self, SimError> {
        let ports = match metric {
            Metric::PortSlowdownVariance => Some(IsolatedPorts::measure(scenario, &trace)?),
            _ => None,
        };
        let mut simulator = PolicySpec::baseline().simulator(scenario, &trace)?;
        simulator.measure_waits();
        let outcome = simulator.run();
        let baseline = Sample::of(metric, &outcome, ports.as_ref());
        Ok(Self {
            trace,
            ports,
            baseline,
        })
    }
}
