//! The settings of a training on the mixture that is built in.

use bufgym_env::control::{ActionSet, cell_centre};
use bufgym_models::linear::LINEAR;
use bufgym_sim::scenario::ScenarioError;

use super::{Budget, RolloutConfig, Start, StartConfig, TrainConfig, built_in};
use crate::mixture;

impl TrainConfig {
    /// Returns the settings of a training on the mixture [`MIXED`](mixture::MIXED) where no others are given.
    ///
    /// If a decision says so, the heuristic drops early from the second packet of a queue on. So a decision can
    /// distinguish switches by their queues. The search begins from α = 32 and early drop that grows with the port's
    /// queue and with the occupancy of the buffer. From constants it finds nothing better, because generations have only
    /// a few traces of every switch. `docs/lab/2026-11-27-learning.md` has the numbers.
    ///
    /// # Errors
    /// Same as [`mixture::mixed`].
    pub fn mixed() -> Result<Self, ScenarioError> {
        let mut config = Self {
            low_level: built_in(LOW_LEVEL),
            budget: Budget {
                steps: Some(50_000),
                minutes: None,
            },
            start: StartConfig {
                from: Start::Rule,
                rule: by_queue_and_occupancy(),
                generations: Some(8),
                share: Some(0.95),
                step: Some(0.08),
                traces: Some(96),
                choosing_traces: 48,
                lesson_traces: 96,
                lesson_steps: 6_000,
                ..StartConfig::default()
            },
            rollout: RolloutConfig {
                // Enough to estimate the size of every scenario's rewards.
                learning_starts: 10_000,
                ..RolloutConfig::default()
            },
            ..Self::default()
        };
        config.validation.traces = 48;
        config.mix(mixture::mixed()?);
        Ok(config)
    }

    /// Removes the rule of [`mixed`](Self::mixed) from settings whose decisions set other outputs, because its weights
    /// do not fit them. The search then begins as in other trainings.
    pub fn fit_rule(&mut self) {
        if self.actions() != ActionSet::AlphaEarly && self.start.rule == by_queue_and_occupancy() {
            self.start.rule = Vec::new();
        }
    }
}

// Indices of features in a rule's weights for one output.
const QUEUE: usize = 1;
const OCCUPANCY: usize = 3;

/// The weights of the rule that the search begins from, `[2 * LINEAR]`.
fn by_queue_and_occupancy() -> Vec<f64> {
    let mut weights = vec![0.0; 2 * LINEAR];
    weights[0] = f64::from(cell_centre(7));
    weights[LINEAR] = f64::from(cell_centre(3));
    weights[LINEAR + QUEUE] = 1.0;
    weights[LINEAR + OCCUPANCY] = 2.0;
    weights
}

/// The heuristic below a policy for the mixture.
pub(super) const LOW_LEVEL: &str = "fab:alpha_short=2048,short_bytes=10000,idle_us=10000+early:min_bytes=1500,finest=buffer,from=front,patience=4";

#[cfg(test)]
mod tests {
    use bufgym_models::linear::LINEAR_FEATURES;

    use super::*;
    use crate::mixture::MIXED;

    #[test]
    fn its_settings_are_valid() {
        let config = TrainConfig::mixed().unwrap();
        assert!(config.validate().is_ok());
        assert_eq!(config.scenario_name(), MIXED);
        assert_eq!(config.low_level.to_string(), LOW_LEVEL);
        assert_eq!(Some(config.start_generations()), config.start.generations);
        assert_eq!(LINEAR_FEATURES[QUEUE], "queue");
        assert_eq!(LINEAR_FEATURES[OCCUPANCY], "occupancy");
    }
}
