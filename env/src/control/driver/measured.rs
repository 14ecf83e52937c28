//! Measurements of a switch at a decision, also in integers, and the control record.

use std::io;
use std::mem::take;

use super::agent::Agent;
use super::{ControlEnv, StopReason};
use crate::control::record::EventLines;
use crate::control::ways::ControlTopology;
use crate::control::{CodeUnits, LowLevelPolicy, SWITCH};
use bufgym_sim::network::{Observer, OneSwitch, SwitchId};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::policy::{ControlledThreshold, PortVolumes, TriggerCause};
use bufgym_sim::switch::{SharedBuffer, Switch};
use bufgym_sim::units::Instant;

/// Measurements of a switch whose decision is due.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    pub(super) switch: &'a Switch<ControlledThreshold>,
    pub(super) agent: &'a Agent,
    pub(super) outputs: usize,
    pub(super) elapsed_ns: u64,
}

impl<'a> Reading<'a> {
    /// Returns the switch.
    pub fn switch(&self) -> SwitchId {
        self.switch.id()
    }

    /// Returns the number of its ports.
    pub fn ports(&self) -> usize {
        self.agent.ports()
    }

    /// Values per port in an action.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// `[ports, HISTORY, FEATURES]`.
    pub fn observation(&self) -> &'a [f32] {
        self.agent.observation.as_slice()
    }

    /// Byte counters of a port since the last decision.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn volumes(&self, port: usize) -> PortVolumes {
        self.switch.policy().volumes(port)
    }

    /// Bytes queued for a port, in all its queues.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn queue_bytes(&self, port: usize) -> u64 {
        self.switch.buffer().port(port)
    }

    /// The levels in force, indices into [`ALPHAS`](crate::control::ALPHAS), one per port.
    pub fn levels(&self) -> &'a [u8] {
        self.switch.policy().indices()
    }

    /// Time since the last decision, or since time zero, by a clock of whole nanoseconds.
    pub fn elapsed_ns(&self) -> u64 {
        self.elapsed_ns
    }

    /// The constants of the integer observation of a port; their β is also the trigger's.
    ///
    /// # Panics
    /// When there is no such port and ports differ in their rate.
    pub fn units(&self, port: usize) -> CodeUnits {
        self.agent.scale.units_of(port)
    }
}

impl<T: ControlTopology, O: Observer> ControlEnv<T, O> {
    /// Returns the measurements of the [current](ControlEnv::at) switch.
    pub fn reading(&self) -> Reading<'_> {
        let agent = self.agent();
        Reading {
            switch: self.simulator.switch(self.at()),
            agent,
            outputs: self.outputs(),
            elapsed_ns: self.simulator.now().as_ns() - agent.last_decision.as_ns(),
        }
    }
}

impl ControlEnv<OneSwitch> {
    /// Records every event. Call it before the run, with the run's scenario and heuristic. Lines are kept
    /// in memory until [`write_record`](ControlEnv::write_record).
    pub fn record_events(&mut self, scenario: &Scenario, low_level: &LowLevelPolicy) {
        self.record_mut().begin(scenario, low_level);
    }

    /// Writes the lines of the events since the last call; none if events are not recorded.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write_record(&mut self, out: &mut dyn io::Write) -> io::Result<()> {
        match self.record_mut().lines_mut() {
            Some(lines) => lines.write(out),
            None => Ok(()),
        }
    }

    /// Adds the last line of the record, for a run that ended with `pause`.
    pub(super) fn end_record(&mut self, stop: StopReason) {
        let finished = stop == StopReason::Finished;
        self.record(|lines, buffer, now| lines.ended(buffer, now, finished));
    }
}

/// The control record is that of the first switch. Networks have none.
impl<T: ControlTopology, O: Observer> ControlEnv<T, O> {
    /// Records the [pending](ControlEnv::act) decision.
    pub(super) fn record_decision(&mut self) {
        let agent = &mut self.agents[0];
        let (levels, early) = (take(&mut agent.pending), take(&mut agent.pending_second));
        // A decision that the caller makes without a trigger is recorded as one by interval.
        let fired = self.simulator.switch(SWITCH).policy().fired();
        let cause = fired.unwrap_or(TriggerCause::Interval);
        self.record(|lines, buffer, now| {
            lines.decided(buffer, now, cause, [&levels, &early]);
        });
        let agent = &mut self.agents[0];
        (agent.pending, agent.pending_second) = (levels, early);
    }

    pub(super) fn record(&mut self, note: impl FnOnce(&mut EventLines, &SharedBuffer, Instant)) {
        let now = self.simulator.now();
        let (switch, (_, (_, record))) = self.simulator.switch_and_observer(SWITCH);
        if let Some(lines) = record.lines_mut() {
            note(lines, switch.buffer(), now);
        }
    }
}
