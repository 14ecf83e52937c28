//! How good an actor is on a fixed set of traces, relative to DT with α = 1.

use std::time::Duration;

use bufgym_env::control::{BasePolicy, Objective};
use bufgym_eval::metric::Metric;
use bufgym_models::{FastActor, checkpoint};
use bufgym_sim::network::SimError;
use bufgym_sim::rng::Split;
use bufgym_sim::scenario::Scenario;
use serde::{Deserialize, Serialize};

use crate::ValidationConfig;
use crate::panel::Panel;

/// Resamples of an interval in the log; published ones come from an evaluation.
pub(crate) const RESAMPLES: usize = 1_000;

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

/// The fixed traces, and the heuristic below the actors.
pub(crate) struct Validator {
    panel: Panel,
    low_level: BasePolicy,
}

impl Validator {
    /// Generates the traces and runs DT on them, in parallel on the current pool.
    pub(crate) fn new(
        scenario: &Scenario,
        objective: &Objective,
        low_level: &BasePolicy,
        config: &ValidationConfig,
    ) -> Result<Self, SimError> {
        let metric = Metric::of(objective);
        let indices = 0..config.traces;
        Ok(Self {
            panel: Panel::new(scenario, metric, Split::Validation, config.seed, indices)?,
            low_level: low_level.clone(),
        })
    }

    /// Runs the actor's mean action on every trace, in parallel on the current pool. Returns the
    /// time spent on all threads together too.
    pub(crate) fn validate(
        &self,
        actor: &FastActor,
    ) -> Result<(ValidationResult, Duration), SimError> {
        let (samples, busy) = self
            .panel
            .run(std::slice::from_ref(actor), &self.low_level)?;
        let found = self.panel.compare(&samples[0], RESAMPLES);
        let result = ValidationResult {
            value: found.value,
            low: found.ratio.low,
            high: found.ratio.high,
            won: found.tally.won as f64 / samples[0].len().max(1) as f64,
            fct_ratio: found.fct_ratio,
            failed: found.failed,
        };
        Ok((result, busy))
    }

    /// The result in the form of a manifest.
    pub(crate) fn for_manifest(&self, result: &ValidationResult) -> checkpoint::Validation {
        checkpoint::Validation {
            traces: self.panel.traces(),
            metric: self.panel.metric().comparison().to_owned(),
            value: result.value,
            low: result.low,
            high: result.high,
            won: result.won,
        }
    }
}
