//! Observers, which watch a simulation without changing it.

use super::outcome::Outcome;
use crate::engine::clock::EventTime;
use crate::host::{Crossing, FlowRef, HostObserver, LostSegment};
use crate::switch::{Loss, PacketId, PacketView, Policy, Switch, SwitchId, SwitchObserver, View};
use crate::units::Instant;

/// Watches a simulation: its switches, its hosts, and the clock between events. It cannot change
/// what happens.
///
/// Dispatch is static and every hook does nothing by default, so that `()` watches nothing at no
/// cost. A pair is two observers.
pub trait Observer: SwitchObserver + HostObserver {
    /// An event is about to happen. Nothing has changed since the one before.
    #[inline(always)]
    fn before_event<P: Policy>(&mut self, _now: EventTime, _switches: &[Switch<P>]) {}

    /// Called when the last bit of a packet has arrived at a switch, before the switch does
    /// anything with it. `now` is the switch's time. `packet` describes the packet, unless it is a
    /// pause frame.
    #[inline(always)]
    fn crossing(&mut self, _at: SwitchId, _now: Instant, _packet: impl Fn() -> Option<Crossing>) {}

    /// Adds what was observed to the outcome of the run.
    fn report(&mut self, _outcome: &mut Outcome) {}
}

impl Observer for () {}

impl<A: SwitchObserver, B: SwitchObserver> SwitchObserver for (A, B) {
    #[inline(always)]
    fn arriving(&mut self, at: SwitchId, view: View<'_>, packet: PacketView) {
        self.0.arriving(at, view, packet);
        self.1.arriving(at, view, packet);
    }

    #[inline(always)]
    fn marked(&mut self, at: SwitchId, packet: PacketView) {
        self.0.marked(at, packet);
        self.1.marked(at, packet);
    }

    #[inline(always)]
    fn enqueued(&mut self, at: SwitchId, view: View<'_>, packet: PacketView) {
        self.0.enqueued(at, view, packet);
        self.1.enqueued(at, view, packet);
    }

    #[inline(always)]
    fn departed(&mut self, at: SwitchId, view: View<'_>, packet: PacketView) {
        self.0.departed(at, view, packet);
        self.1.departed(at, view, packet);
    }

    #[inline(always)]
    fn leaving(&mut self, at: SwitchId, now: Instant, packet: PacketView) {
        self.0.leaving(at, now, packet);
        self.1.leaving(at, now, packet);
    }

    #[inline(always)]
    fn lost(&mut self, at: SwitchId, view: View<'_>, packet: PacketView, loss: Loss) {
        self.0.lost(at, view, packet, loss);
        self.1.lost(at, view, packet, loss);
    }

    #[inline(always)]
    fn waits(&mut self, id: PacketId, now: Instant) {
        self.0.waits(id, now);
        self.1.waits(id, now);
    }

    #[inline(always)]
    fn served(&mut self, id: PacketId, now: Instant, waited: bool) {
        self.0.served(id, now, waited);
        self.1.served(id, now, waited);
    }
}

impl<A: HostObserver, B: HostObserver> HostObserver for (A, B) {
    #[inline(always)]
    fn flow_started(&mut self, flow: FlowRef, now: Instant) {
        self.0.flow_started(flow, now);
        self.1.flow_started(flow, now);
    }

    #[inline(always)]
    fn flow_finished(&mut self, flow: FlowRef, now: Instant) {
        self.0.flow_finished(flow, now);
        self.1.flow_finished(flow, now);
    }

    #[inline(always)]
    fn delivered(&mut self, flow: FlowRef, bytes: u64) {
        self.0.delivered(flow, bytes);
        self.1.delivered(flow, bytes);
    }

    #[inline(always)]
    fn segment_lost(&mut self, segment: LostSegment) {
        self.0.segment_lost(segment);
        self.1.segment_lost(segment);
    }

    #[inline(always)]
    fn timed_out(&mut self, flow: FlowRef) {
        self.0.timed_out(flow);
        self.1.timed_out(flow);
    }
}

impl<A: Observer, B: Observer> Observer for (A, B) {
    #[inline(always)]
    fn before_event<P: Policy>(&mut self, now: EventTime, switches: &[Switch<P>]) {
        self.0.before_event(now, switches);
        self.1.before_event(now, switches);
    }

    #[inline(always)]
    fn crossing(&mut self, at: SwitchId, now: Instant, packet: impl Fn() -> Option<Crossing>) {
        self.0.crossing(at, now, &packet);
        self.1.crossing(at, now, &packet);
    }

    fn report(&mut self, outcome: &mut Outcome) {
        self.0.report(outcome);
        self.1.report(outcome);
    }
}
