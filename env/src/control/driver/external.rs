//! The control loop of a switch that carries packets from outside the simulation.

use super::agent::{Agent, port_rates};
use super::{ControlOptions, Controller, Reading, apply_initial, low_level_policy};
use crate::control::{ActionSet, SWITCH};
use bufgym_sim::network::{ExternalSwitch, OneSwitch, SimError};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::policy::{ControlledThreshold, TriggerCause};
use bufgym_sim::traffic::Trace;
use bufgym_sim::units::{Duration, Instant};

/// The switch that [`ExternalControl`] decides for.
pub type ControlledSwitch = ExternalSwitch<ControlledThreshold>;

/// The slow level of the control for an [`ExternalSwitch`]: the observation and the actions of
/// [`ControlEnv`](super::ControlEnv), without rewards. The caller asks whether a decision is
/// [due](ExternalControl::is_due) after every packet event; how long a decision takes is up to the
/// machine, so that a decision latency of the scenario is not waited for.
#[derive(Clone, Debug)]
pub struct ExternalControl {
    agent: Agent,
    actions: ActionSet,
    max_interval: Duration,
    min_interval: Duration,
    action: Vec<f32>,
    intervals_ps: Vec<u64>,
}

impl ExternalControl {
    /// An empty switch and its control, with α = 1 on every port. The flows of `trace` may be played by
    /// it; decisions do not depend on them.
    ///
    /// # Errors
    /// Same as [`ExternalSwitch::new`], and when the heuristic does not fit the scenario.
    pub fn new(
        scenario: &Scenario,
        trace: &Trace,
        options: &ControlOptions,
    ) -> Result<(ControlledSwitch, ExternalControl), SimError> {
        scenario.validate()?;
        scenario.require_single()?;
        let low_level = &options.low_level;
        let policy = low_level_policy(scenario, options)?;
        let aqm = low_level.policy().aqm();
        let capacity = scenario.network.buffer_bytes;
        let mut switch = ExternalSwitch::new(scenario, trace.seed, capacity, policy, aqm)?;
        let ports = scenario.port_count();
        let rates = port_rates(scenario, &OneSwitch { ports }, SWITCH);
        let actions = ActionSet::of(low_level);
        apply_initial(switch.switch_mut(), actions, ports);
        let control = ExternalControl {
            agent: Agent::new(scenario, scenario, rates, trace, options)?,
            actions,
            max_interval: Duration::from_us(scenario.control.max_interval_us),
            min_interval: Duration::from_us(scenario.control.min_interval_us),
            action: vec![0.0; ports * actions.outputs()],
            intervals_ps: Vec::new(),
        };
        Ok((switch, control))
    }

    /// Returns true if a trigger has fired, or if the longest interval between decisions has passed. A trigger within
    /// the shortest interval is kept until that interval is over.
    pub fn is_due(&self, switch: &ControlledSwitch, now: Instant) -> bool {
        let since = now.saturating_since(self.agent.last_decision);
        if self.agent.decisions > 0 && since < self.min_interval {
            return false;
        }
        let late = self.max_interval > Duration::ZERO && since >= self.max_interval;
        switch.switch().policy().fired().is_some() || late
    }

    /// Observes the switch, asks `controller` and puts its decision in force.
    ///
    /// # Errors
    /// When `controller` cannot decide.
    pub fn decide(
        &mut self,
        switch: &mut ControlledSwitch,
        now: Instant,
        controller: &mut dyn Controller,
    ) -> Result<(), SimError> {
        if switch.switch().policy().fired().is_none() {
            let policy = switch.switch_mut().policy_mut();
            policy.fire(TriggerCause::Interval);
        }
        self.agent.observe(switch.switch(), now, now);
        let reading = Reading {
            switch: switch.switch(),
            agent: &self.agent,
            outputs: self.actions.outputs(),
            elapsed_ns: now.as_ns() - self.agent.last_decision.as_ns(),
        };
        controller.decide(&reading, &mut self.action)?;
        self.agent.decide(&self.action, self.actions);
        if self.agent.decisions > 0 {
            let interval = now - self.agent.last_decision;
            self.intervals_ps.push(interval.as_ps());
        }
        self.agent.decisions += 1;
        self.agent.last_decision = now;
        switch.switch_mut().policy_mut().acknowledge();
        self.agent.apply(switch.switch_mut(), self.actions);
        Ok(())
    }

    /// Decisions so far.
    pub fn decisions(&self) -> u64 {
        self.agent.decisions
    }

    /// Time between consecutive decisions, picoseconds.
    pub fn intervals_ps(&self) -> &[u64] {
        &self.intervals_ps
    }
}
