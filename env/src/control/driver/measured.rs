//! The switch's counters in integers, and the control record.

use std::io;
use std::mem::take;

use super::{ControlEnv, Pause};
use crate::control::record::EventLines;
use crate::control::{CodeUnits, SWITCH};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::SharedBuffer;
use bufgym_sim::switch::policy::{PortVolumes, TriggerCause};
use bufgym_sim::units::Time;

impl ControlEnv {
    /// Byte counters of a port since the last decision.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn volumes(&self, port: usize) -> PortVolumes {
        self.simulator.policy().volumes(port)
    }

    /// Bytes queued for a port, in all its queues.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn queue_bytes(&self, port: usize) -> u64 {
        self.simulator.buffer().port(port)
    }

    /// The levels in force, indices into [`ALPHAS`](crate::control::ALPHAS), one per port.
    pub fn levels(&self) -> &[u8] {
        self.simulator.policy().indices()
    }

    /// Time since the last decision, or since time zero, by a clock of whole nanoseconds.
    pub fn elapsed_ns(&self) -> u64 {
        self.simulator.now().as_ns() - self.last_decision.as_ns()
    }

    /// The constants of the integer observation; its β is also the trigger's.
    pub fn units(&self) -> CodeUnits {
        self.units
    }

    /// Records every event. Call it before the run, with the run's scenario. Lines are kept in
    /// memory until [`write_record`](ControlEnv::write_record).
    pub fn record_events(&mut self, scenario: &Scenario) {
        let actions = self.actions;
        self.record_mut().begin(scenario, actions);
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
    pub(super) fn end_record(&mut self, pause: Pause) {
        let finished = pause == Pause::Finished;
        self.record(|lines, buffer, now| lines.ended(buffer, now, finished));
    }

    /// Records the [pending](ControlEnv::act) decision.
    pub(super) fn record_decision(&mut self) {
        let (levels, early) = (take(&mut self.pending), take(&mut self.pending_early));
        // A decision that the caller makes without a trigger is recorded as one by interval.
        let fired = self.simulator.policy().fired();
        let cause = fired.unwrap_or(TriggerCause::Interval);
        self.record(|lines, buffer, now| {
            lines.decided(buffer, now, cause, [&levels, &early]);
        });
        (self.pending, self.pending_early) = (levels, early);
    }

    pub(super) fn record(&mut self, note: impl FnOnce(&mut EventLines, &SharedBuffer, Time)) {
        let now = self.simulator.now();
        let (switch, (_, (_, record))) = self.simulator.switch_and_observer(SWITCH);
        if let Some(lines) = record.lines_mut() {
            note(lines, switch.buffer(), now);
        }
    }
}
