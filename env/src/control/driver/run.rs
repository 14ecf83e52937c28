//! Runs a whole trace under a controller.

use std::io;

use super::{ControlEnv, ControlOptions, Reading, StopReason};
use crate::control::record::{self, RecordError};
use crate::control::ways::ControlTopology;
use crate::control::{ALPHAS, Objective, cell_centre};
use bufgym_sim::network::{IngressSampling, LeafSpine, Observer, OneSwitch, Outcome, SimError};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::Trace;
use bufgym_sim::units::Duration;

/// Decides α from the measurements of the switch.
pub trait Controller {
    /// Fills `action`, `[ports, outputs]`, each in [-1, 1], from `observation`,
    /// `[ports, HISTORY, FEATURES]`. The length of `action` tells the number of outputs.
    fn act(&mut self, observation: &[f32], ports: usize, action: &mut [f32]);

    /// Returns the number of values of an action per port, which says what it decides on; see
    /// [`ActionSet`](crate::control::ActionSet).
    fn outputs(&self) -> usize {
        1
    }

    /// Fills `action`, `[ports, outputs]`, each in [-1, 1], at the decision of a switch. Runs call this once per
    /// decision. A controller that decides from more than the observation overrides it. An example are the integer
    /// codes ([`CodeHistory`](crate::control::CodeHistory)). In a network it is asked for all switches in turn and must
    /// keep their states apart.
    ///
    /// # Errors
    /// When it cannot decide, such as because its network does not fit the switch: usually
    /// [`SimError::Controller`]. The run ends with it.
    fn decide(&mut self, at: &Reading<'_>, action: &mut [f32]) -> Result<(), SimError> {
        self.act(at.observation(), at.ports(), action);
        Ok(())
    }
}

/// A controller that sets the same α on every port at every decision.
#[derive(Clone, Copy, Debug)]
pub struct FixedAlpha {
    action: f32,
}

impl FixedAlpha {
    /// Creates the controller from an index into [`ALPHAS`].
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
    fn act(&mut self, _observation: &[f32], ports: usize, action: &mut [f32]) {
        // Early drop, where decisions set it, stays off.
        action.fill(-1.0);
        let outputs = action.len() / ports;
        for alpha in action.iter_mut().step_by(outputs) {
            *alpha = self.action;
        }
    }
}

/// Options of a run under a controller.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Trigger and low-level policy. Rewards are not computed.
    pub control: ControlOptions,
    /// Interval of the timeline, if one is to be recorded.
    pub timeline: Option<Duration>,
    /// True if every lost packet is recorded.
    pub drops: bool,
    /// Sampling of lossless ingress queues, if any.
    pub ingress: Option<IngressSampling>,
}

/// Runs `trace` to its end or a limit with the decisions of `controller`, at every switch of the
/// scenario, of which there may be several.
///
/// # Errors
/// When the scenario is inconsistent or the trace does not fit it, and when the controller cannot decide.
pub fn run_controlled(
    scenario: &Scenario,
    trace: &Trace,
    controller: &mut dyn Controller,
    options: &RunOptions,
) -> Result<Outcome, SimError> {
    match scenario.is_fabric() {
        true => run::<LeafSpine>(scenario, trace, controller, options),
        false => run::<OneSwitch>(scenario, trace, controller, options),
    }
}

fn run<T: ControlTopology>(
    scenario: &Scenario,
    trace: &Trace,
    controller: &mut dyn Controller,
    options: &RunOptions,
) -> Result<Outcome, SimError> {
    let mut env = prepared::<T, ()>(scenario, trace, options, ())?;
    let outcome = steer(&mut env, controller)?;
    Ok(outcome)
}

/// Same as [`run_controlled`] for one switch, with the same outcome, while `observer` watches. Returns the observer
/// too.
///
/// # Errors
/// Same as [`run_controlled`], and when there are several switches.
pub fn run_observed<O: Observer>(
    scenario: &Scenario,
    trace: &Trace,
    controller: &mut dyn Controller,
    options: &RunOptions,
    observer: O,
) -> Result<(Outcome, O), SimError> {
    let mut env = prepared::<OneSwitch, O>(scenario, trace, options, observer)?;
    let outcome = steer(&mut env, controller)?;
    Ok((outcome, env.into_observer()))
}

/// Runs to the end or a limit.
fn steer<T: ControlTopology, O: Observer>(
    env: &mut ControlEnv<T, O>,
    controller: &mut dyn Controller,
) -> Result<Outcome, SimError> {
    let mut action = Vec::new();
    while env.advance() == StopReason::Decision {
        action.resize(env.ports() * env.outputs(), 0.0);
        controller.decide(&env.reading(), &mut action)?;
        env.act(&action);
    }
    Ok(env.outcome())
}

/// Same as [`run_controlled`], with the same outcome, but also writes every packet event and every
/// decision to `out`, after each decision. `policy` is the controller's name in the record.
///
/// # Errors
/// Same as [`run_controlled`], when there are several switches or decisions have a shortest interval, and when
/// `out` fails; then the record is incomplete.
pub fn run_recorded(
    scenario: &Scenario,
    trace: &Trace,
    controller: &mut dyn Controller,
    options: &RunOptions,
    policy: &str,
    out: &mut dyn io::Write,
) -> Result<Outcome, RecordError> {
    if scenario.control.min_interval_us > 0 {
        return Err(RecordError::MinInterval(scenario.control.min_interval_us));
    }
    let mut env = prepared::<OneSwitch, ()>(scenario, trace, options, ())?;
    env.record_events(scenario, &options.control.low_level);
    let header = record::header(scenario, &options.control, policy)?;
    out.write_all(header.as_bytes())?;
    let mut action = vec![0.0; env.ports() * env.outputs()];
    let mut stop = env.advance();
    while stop == StopReason::Decision {
        controller.decide(&env.reading(), &mut action)?;
        env.act(&action);
        env.write_record(out)?;
        stop = env.advance();
    }
    env.end_record(stop);
    env.write_record(out)?;
    Ok(env.outcome())
}

fn prepared<T: ControlTopology, O: Observer>(
    scenario: &Scenario,
    trace: &Trace,
    options: &RunOptions,
    observer: O,
) -> Result<ControlEnv<T, O>, SimError> {
    // Nobody reads rewards.
    let control = ControlOptions {
        objective: Objective::NONE,
        ..options.control.clone()
    };
    let mut env = ControlEnv::observed(scenario, trace, &control, observer)?;
    env.measure_waits();
    if let Some(interval) = options.timeline {
        env.record_timeline(interval);
    }
    if options.drops {
        env.record_drops();
    }
    if let Some(sampling) = options.ingress {
        env.sample_ingress(sampling);
    }
    Ok(env)
}
