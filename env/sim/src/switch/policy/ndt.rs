//! Neural Dynamic Threshold's fast path: Dynamic Threshold with one α per port, and the counters
//! that trigger decisions and that decisions are based on.

mod action;

pub use action::{ALPHAS, INITIAL_INDEX, INITIAL_LEVEL, action_index, action_level, cell_centre};

use bufgym_util::convert::floor_u64;
use serde::{Deserialize, Serialize};

use super::{AnyPolicy, Loss, LosslessThresholds, PacketView, Policy, Verdict, View};

/// Rule for when a decision of the control loop is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TriggerMode {
    /// When a port's arrivals exceed its departures by β, or its drops reach γ (paper, §IV-B).
    #[default]
    CumulativeEvent,
    /// At every packet event (paper, Fig. 12b).
    PerPacket,
    /// Only after `max_interval_us` of the scenario.
    FixedInterval,
}

impl TriggerMode {
    /// Returns the name used in files.
    pub fn name(self) -> &'static str {
        match self {
            TriggerMode::CumulativeEvent => "cumulative-event",
            TriggerMode::PerPacket => "per-packet",
            TriggerMode::FixedInterval => "fixed-interval",
        }
    }
}

/// Reason why a decision is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TriggerCause {
    /// The excess volume of a port reached β (paper, Eq. 5).
    Excess,
    /// A port's drops reached the safe line γ (paper, §IV-B).
    Safeguard,
    /// A packet event, under the per-packet trigger (paper, Fig. 12b).
    Packet,
    /// The longest interval between decisions has passed.
    Interval,
}

impl TriggerCause {
    /// Returns the name used in control records.
    pub fn name(self) -> &'static str {
        match self {
            TriggerCause::Excess => "excess",
            TriggerCause::Safeguard => "safeguard",
            TriggerCause::Packet => "packet",
            TriggerCause::Interval => "interval",
        }
    }
}

/// Volumes of one port since the last decision, wire bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct PortVolumes {
    /// Enqueued bytes.
    pub enqueued: u64,
    /// Lost bytes: dropped on arrival or pushed out.
    pub dropped: u64,
    /// Arrived minus departed bytes, never below zero: clamped after every event, so that draining an
    /// old queue earns no credit. A packet that is pushed out does not change it.
    pub excess: u64,
    /// Lost bytes counted by the safeguard.
    pub guarded_drops: u64,
}

/// Dynamic Threshold with a power-of-two α per port: accepts iff `q_i < α_i (B - Q)`. It can also
/// set the α of [another heuristic](ControlledThreshold::over).
///
/// Triggers are tested after an event has updated the counters, so the packet that triggers keeps
/// its verdict. The simulation then waits for the control loop.
#[derive(Clone, Debug)]
pub struct ControlledThreshold {
    mode: TriggerMode,
    sensitivity: u64,
    safe_line: u64,
    indices: Vec<u8>,
    volumes: Vec<PortVolumes>,
    guard_armed: bool,
    suspended: bool,
    /// True if decisions wait, although triggers fire.
    held: bool,
    fired: Option<TriggerCause>,
    queues_per_port: usize,
    /// Policy that admits packets instead of Dynamic Threshold.
    heuristic: Option<Box<AnyPolicy>>,
}

impl ControlledThreshold {
    /// Creates the policy with α = 1 on every port. `sensitivity` is β, `safe_line` γ, both in bytes.
    pub fn new(ports: usize, sensitivity: u64, safe_line: u64, mode: TriggerMode) -> Self {
        ControlledThreshold {
            mode,
            sensitivity,
            safe_line,
            indices: vec![INITIAL_LEVEL; ports],
            volumes: vec![PortVolumes::default(); ports],
            guard_armed: true,
            suspended: false,
            held: false,
            fired: None,
            queues_per_port: 1,
            heuristic: None,
        }
    }

    /// Adapts the policy to a switch whose ports have several queues. All queues of a port have its α,
    /// and its counters are sums over them.
    #[must_use]
    pub fn with_queues_per_port(self, queues_per_port: usize) -> Self {
        ControlledThreshold {
            queues_per_port,
            ..self
        }
    }

    /// Admits packets by `heuristic` and sets its α; call it after
    /// [`with_queues_per_port`](ControlledThreshold::with_queues_per_port).
    ///
    /// # Panics
    /// When the heuristic does not have an α for every queue.
    #[must_use]
    pub fn over(self, heuristic: AnyPolicy) -> Self {
        let mut policy = ControlledThreshold {
            heuristic: Some(Box::new(heuristic)),
            ..self
        };
        policy.set_heuristic_alphas();
        policy
    }

    /// Sets the α of every queue of the heuristic to that of its port.
    fn set_heuristic_alphas(&mut self) {
        // A lossless switch keeps them, see `Switch::set_lossless_alphas`.
        let Some(heuristic) = self
            .heuristic
            .as_mut()
            .filter(|low| low.lossless_thresholds().is_none())
        else {
            return;
        };
        for (port, &index) in self.indices.iter().enumerate() {
            let first = port * self.queues_per_port;
            for queue in first..first + self.queues_per_port {
                let has_alpha = heuristic.set_alpha(queue, ALPHAS[usize::from(index)]);
                assert!(has_alpha, "the heuristic has no α to set");
            }
        }
    }

    /// Returns the trigger that has fired and waits for a decision, if any.
    #[inline]
    pub fn fired(&self) -> Option<TriggerCause> {
        self.fired
    }

    /// Returns the volumes of a port since the last decision.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn volumes(&self, port: usize) -> PortVolumes {
        self.volumes[port]
    }

    /// Returns every port's index into [`ALPHAS`].
    pub fn indices(&self) -> &[u8] {
        &self.indices
    }

    /// Fires a trigger from outside the packet path.
    pub fn fire(&mut self, cause: TriggerCause) {
        self.fired = Some(cause);
    }

    /// Notes that a decision was made. It zeroes the counters of all ports. After a safeguard
    /// trigger it disarms the safeguard until the decision for another trigger.
    pub fn acknowledge(&mut self) {
        let cause = self.fired.take();
        self.guard_armed = cause != Some(TriggerCause::Safeguard);
        self.volumes.fill(PortVolumes::default());
    }

    /// Sets a new α for every port and lets triggers fire again.
    ///
    /// # Panics
    /// When there is not one index per port.
    pub fn apply(&mut self, indices: &[u8]) {
        self.indices.copy_from_slice(indices);
        self.set_heuristic_alphas();
        self.suspended = false;
    }

    /// Keeps triggers from firing until the next [`apply`](ControlledThreshold::apply), while a
    /// decision is delayed.
    pub fn suspend(&mut self) {
        self.suspended = true;
    }

    /// Makes decisions wait until [`release`](ControlledThreshold::release). Triggers still fire,
    /// and the first one then makes a decision due.
    pub fn hold(&mut self) {
        self.held = true;
    }

    /// Ends a [`hold`](ControlledThreshold::hold) and returns true if a decision is due.
    pub fn release(&mut self) -> bool {
        self.held = false;
        self.decision_due()
    }

    #[inline]
    fn admits(&self, view: View<'_>, packet: PacketView) -> bool {
        let (queue, free) = (view.buffer.queue(packet.queue), view.buffer.free());
        // α = 2^(index - INITIAL_INDEX); shifting left on either side loses no bits.
        match i32::from(self.indices[packet.port]) - i32::from(INITIAL_LEVEL) {
            left if left >= 0 => queue < free << left,
            right => (queue << -right) < free,
        }
    }

    #[inline]
    fn test(&mut self, port: usize) {
        if self.suspended {
            return;
        }
        let volumes = &self.volumes[port];
        match self.mode {
            TriggerMode::CumulativeEvent => {
                if volumes.excess >= self.sensitivity {
                    self.fired = Some(TriggerCause::Excess);
                } else if self.guard_armed && volumes.guarded_drops >= self.safe_line {
                    // One event can change several ports; excess has precedence over safeguard.
                    self.fired = self.fired.or(Some(TriggerCause::Safeguard));
                }
            }
            TriggerMode::PerPacket => self.fired = Some(TriggerCause::Packet),
            TriggerMode::FixedInterval => {}
        }
    }
}

impl Policy for ControlledThreshold {
    #[inline]
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        if let Some(heuristic) = &mut self.heuristic {
            return heuristic.on_arrival(view, packet);
        }
        if self.admits(view, packet) {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }

    #[inline]
    fn on_enqueue(&mut self, view: View<'_>, packet: PacketView) {
        let PacketView { port, bytes, .. } = packet;
        if let Some(heuristic) = &mut self.heuristic {
            heuristic.on_enqueue(view, packet);
        }
        let volumes = &mut self.volumes[port];
        volumes.enqueued += bytes;
        volumes.excess += bytes;
        self.test(port);
    }

    #[inline]
    fn on_departure(&mut self, view: View<'_>, packet: PacketView) {
        let PacketView { port, bytes, .. } = packet;
        if let Some(heuristic) = &mut self.heuristic {
            heuristic.on_departure(view, packet);
        }
        let volumes = &mut self.volumes[port];
        volumes.excess = volumes.excess.saturating_sub(bytes);
        if self.mode == TriggerMode::PerPacket {
            self.test(port);
        }
    }

    #[inline]
    fn on_drop(&mut self, view: View<'_>, packet: PacketView, loss: Loss) {
        let PacketView { port, bytes, .. } = packet;
        if let Some(heuristic) = &mut self.heuristic {
            heuristic.on_drop(view, packet, loss);
        }
        let volumes = &mut self.volumes[port];
        volumes.dropped += bytes;
        volumes.guarded_drops += bytes;
        // Enqueued bytes have been added already.
        if !matches!(loss, Loss::PushedOut | Loss::Head) {
            volumes.excess += bytes;
        }
        self.test(port);
    }

    fn pushes_out(&self) -> bool {
        let heuristic = self.heuristic.as_ref();
        heuristic.is_some_and(|heuristic| heuristic.pushes_out())
    }

    #[inline]
    fn spares(&self) -> bool {
        let heuristic = self.heuristic.as_ref();
        heuristic.is_some_and(|heuristic| heuristic.spares())
    }

    fn victim(&mut self, view: View<'_>, packet: PacketView, lengths: &[u64]) -> Option<usize> {
        let heuristic = self.heuristic.as_mut()?;
        heuristic.victim(view, packet, lengths)
    }

    fn expel(&mut self, view: View<'_>) -> Option<usize> {
        self.heuristic.as_mut()?.expel(view)
    }

    fn lossless_thresholds(&self) -> Option<LosslessThresholds> {
        self.heuristic.as_ref()?.lossless_thresholds()
    }

    #[inline]
    fn decision_due(&self) -> bool {
        self.fired.is_some() && !self.held
    }

    fn threshold(&self, view: View<'_>, queue: usize) -> Option<u64> {
        if let Some(heuristic) = &self.heuristic {
            return heuristic.threshold(view, queue);
        }
        self.alpha(queue)
            .map(|alpha| floor_u64(alpha * view.buffer.free() as f64))
    }

    /// Returns the decided α of the queue's port.
    fn alpha(&self, queue: usize) -> Option<f64> {
        let port = queue / self.queues_per_port;
        Some(ALPHAS[usize::from(self.indices[port])])
    }
}

#[cfg(test)]
mod tests;
