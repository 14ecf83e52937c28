//! A whole trace under a controller.

use super::{ControlEnv, ControlOptions, Pause};
use crate::control::{ALPHAS, cell_centre};
use crate::network::{Outcome, SimError};
use crate::scenario::Scenario;
use crate::traffic::Trace;
use crate::units::Time;

/// Decides α from what the switch can see.
pub trait Controller {
    /// Fills `action`, `[ports]`, each in [-1, 1], from `observation`,
    /// `[ports, HISTORY, FEATURES]`.
    fn act(&mut self, observation: &[f32], ports: usize, action: &mut [f32]);
}

/// The same α on every port at every decision.
#[derive(Clone, Copy, Debug)]
pub struct FixedAlpha {
    action: f32,
}

impl FixedAlpha {
    /// Index into [`ALPHAS`].
    ///
    /// # Panics
    /// When there is no such index.
    pub fn new(index: usize) -> FixedAlpha {
        assert!(index < ALPHAS.len(), "α has {} values", ALPHAS.len());
        FixedAlpha {
            action: cell_centre(index),
        }
    }
}

impl Controller for FixedAlpha {
    fn act(&mut self, _observation: &[f32], _ports: usize, action: &mut [f32]) {
        action.fill(self.action);
    }
}

/// How to run a trace under a controller.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Trigger and reward.
    pub control: ControlOptions,
    /// Records a timeline at this interval.
    pub timeline: Option<Time>,
}

/// Runs `trace` to its end with `controller` deciding.
///
/// # Errors
/// When the scenario is inconsistent or the trace does not fit it.
pub fn run_controlled(
    scenario: &Scenario,
    trace: &Trace,
    controller: &mut dyn Controller,
    options: &RunOptions,
) -> Result<Outcome, SimError> {
    let mut env = ControlEnv::new(scenario, trace, &options.control)?;
    env.measure_waits();
    if let Some(interval) = options.timeline {
        env.record_timeline(interval);
    }
    let ports = env.ports();
    let mut action = vec![0.0; ports];
    while env.advance() == Pause::Decision {
        controller.act(env.observation(), ports, &mut action);
        env.act(&action);
    }
    Ok(env.outcome())
}
