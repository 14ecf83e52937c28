//! How good an actor is on a fixed set of traces, relative to DT with α = 1.

use std::time::{Duration, Instant};

use bufgym_env::control::{ControlOptions, LowLevel, Objective, RunOptions, run_controlled};
use bufgym_env::network::{FlowRecord, Outcome, SimError};
use bufgym_env::rng::{Split, trace_seed};
use bufgym_env::scenario::Scenario;
use bufgym_env::switch::PolicySpec;
use bufgym_env::traffic::{Trace, generate};
use bufgym_eval::stats::{Tally, bootstrap_mean, mean};
use bufgym_models::{FastActor, checkpoint};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::TrainConfig;

/// Resamples of an interval in the log; published ones come from an evaluation.
const RESAMPLES: usize = 1_000;

/// A policy that pays for its delay with more than this share of mean FCT is not an improvement.
const DELAY_FCT_LIMIT: f64 = 1.05;

/// The result of one validation. Lower values are better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidationResult {
    /// Mean over the traces of the objective's metric relative to DT (α = 1).
    pub value: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end of its 95 % interval.
    pub high: f64,
    /// Share of the traces won.
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
    traces: Vec<Trace>,
    /// Value and mean FCT of DT.
    baseline: Vec<Measurement>,
}

#[derive(Clone, Copy)]
struct Measurement {
    value: f64,
    mean_fct_ms: f64,
    complete: bool,
    busy: Duration,
}

/// What counts for an objective; lower is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    MeanFct,
    Loss,
    Makespan,
    Occupancy,
    Unfairness,
}

impl Metric {
    /// The metric of the objective's own term: the one that the other terms are added to.
    pub(crate) fn of(objective: &Objective) -> Self {
        let others = [
            (objective.loss, Self::Loss),
            (objective.throughput, Self::Makespan),
            (objective.delay, Self::Occupancy),
            (objective.fairness, Self::Unfairness),
        ];
        others
            .into_iter()
            .find(|&(weight, _)| weight > 0.0 && weight >= objective.fct)
            .map_or(Self::MeanFct, |(_, metric)| metric)
    }

    /// Its name in manifests.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::MeanFct => "mean FCT / DT (alpha = 1)",
            Self::Loss => "lost per delivered data packet / DT (alpha = 1)",
            Self::Makespan => "time for all bytes / DT (alpha = 1)",
            Self::Occupancy => "p99 buffer occupancy / DT (alpha = 1), at most 5 % more mean FCT",
            Self::Unfairness => "variance over ports of mean flow slowdown / DT (alpha = 1)",
        }
    }

    fn measure(self, outcome: &Outcome, mss: u32) -> f64 {
        let summary = &outcome.summary;
        match self {
            Self::MeanFct => summary.mean_fct_ms,
            Self::Loss => {
                let packets = |record: &FlowRecord| record.spec.size.div_ceil(u64::from(mss));
                let delivered: u64 = outcome.records.iter().map(packets).sum();
                summary.drops_data as f64 / delivered.max(1) as f64
            }
            Self::Makespan => summary.simulated_s,
            Self::Occupancy => summary.p99_occupancy,
            Self::Unfairness => variance_of_port_slowdowns(&outcome.records),
        }
    }
}

fn variance_of_port_slowdowns(records: &[FlowRecord]) -> f64 {
    let ports = records.iter().map(|r| r.spec.dst + 1).max().unwrap_or(0);
    let means: Vec<f64> = (0..ports)
        .filter_map(|port| {
            let here = records.iter().filter(|record| record.spec.dst == port);
            mean(
                &here
                    .filter_map(|record| record.slowdown)
                    .collect::<Vec<_>>(),
            )
        })
        .collect();
    let centre = mean(&means).unwrap_or(0.0);
    let squares: Vec<f64> = means.iter().map(|m| (m - centre) * (m - centre)).collect();
    mean(&squares).unwrap_or(0.0)
}

impl Validator {
    /// Generates the traces and runs DT on them, in parallel on the current pool.
    pub(crate) fn new(config: &TrainConfig) -> Result<Self, SimError> {
        let scenario = config.scenario.clone();
        let seed = config.validation.seed;
        let traces: Vec<Trace> = (0..config.validation.traces)
            .into_par_iter()
            .map(|index| generate(&scenario, trace_seed(Split::Validation, seed, index)))
            .collect();
        let metric = Metric::of(&config.objective);
        let baseline = traces
            .par_iter()
            .map(|trace| {
                let mut simulator = PolicySpec::baseline().simulator(&scenario, trace)?;
                Ok(measurement(
                    metric,
                    &simulator.run(),
                    &scenario,
                    Instant::now(),
                ))
            })
            .collect::<Result<_, SimError>>()?;
        Ok(Self {
            scenario,
            low_level: config.low_level,
            metric,
            traces,
            baseline,
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
                low_level: self.low_level,
                ..ControlOptions::default()
            },
            ..RunOptions::default()
        };
        let measured = self
            .traces
            .par_iter()
            .map(|trace| {
                let start = Instant::now();
                let mut actor = actor.clone();
                let outcome = run_controlled(&self.scenario, trace, &mut actor, &options)?;
                Ok(measurement(self.metric, &outcome, &self.scenario, start))
            })
            .collect::<Result<Vec<Measurement>, SimError>>()?;
        let busy = measured.iter().map(|m| m.busy).sum();
        Ok((self.compare(&measured), busy))
    }

    fn compare(&self, measured: &[Measurement]) -> ValidationResult {
        let pairs = || measured.iter().zip(&self.baseline);
        let fct_ratios: Vec<f64> = pairs()
            .map(|(m, dt)| {
                if m.complete {
                    m.mean_fct_ms / dt.mean_fct_ms
                } else {
                    f64::MAX.sqrt()
                }
            })
            .collect();
        let fct_ratio = mean(&fct_ratios).unwrap_or(1.0);
        let ratios: Vec<f64> = match self.metric {
            Metric::MeanFct => fct_ratios,
            // Zero on many traces, so one ratio per trace would not exist: relative to DT's mean.
            _ => {
                let values: Vec<f64> = self.baseline.iter().map(|dt| dt.value).collect();
                let scale = mean(&values).filter(|m| *m > 0.0).unwrap_or(1.0);
                measured.iter().map(|m| m.value / scale).collect()
            }
        };
        let wins: Vec<f64> = pairs().map(|(m, dt)| quotient(m.value, dt.value)).collect();
        let interval = bootstrap_mean(&ratios, RESAMPLES, 0);
        let (mut value, low, high) = interval.map_or((1.0, 1.0, 1.0), |i| (i.mean, i.low, i.high));
        if self.metric == Metric::Occupancy && fct_ratio > DELAY_FCT_LIMIT {
            value += fct_ratio / DELAY_FCT_LIMIT;
        }
        ValidationResult {
            value,
            low,
            high,
            won: Tally::of(&wins).won as f64 / wins.len().max(1) as f64,
            fct_ratio,
            failed: measured.iter().filter(|m| !m.complete).count() as u64,
        }
    }

    /// The result in the form of a manifest.
    pub(crate) fn for_manifest(&self, result: &ValidationResult) -> checkpoint::Validation {
        checkpoint::Validation {
            traces: self.traces(),
            metric: self.metric.name().to_owned(),
            value: result.value,
            low: result.low,
            high: result.high,
            won: result.won,
        }
    }
}

fn measurement(
    metric: Metric,
    outcome: &Outcome,
    scenario: &Scenario,
    start: Instant,
) -> Measurement {
    Measurement {
        value: metric.measure(outcome, scenario.mss),
        mean_fct_ms: outcome.summary.mean_fct_ms,
        complete: outcome.summary.completed == outcome.summary.flows,
        busy: start.elapsed(),
    }
}

fn quotient(value: f64, baseline: f64) -> f64 {
    if value == baseline {
        1.0
    } else {
        value / baseline
    }
}
