//! What observers are told of hosts.

use crate::units::Instant;

/// Reference to a flow, for observers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowRef {
    /// Number of the flow in the order of starts, from 0.
    pub number: u32,
    /// Receiving host.
    pub dst: u16,
}

/// A data packet that a switch has lost, for observers.
#[derive(Clone, Copy, Debug)]
pub struct LostSegment {
    /// Flow of the segment.
    pub flow: FlowRef,
    /// True if the segment had been sent before.
    pub retransmission: bool,
    /// True if at most two segments of the flow follow this one.
    pub is_near_end: bool,
    /// True if the sender is repairing other losses.
    pub recovering: bool,
}

/// Watches hosts. Every hook does nothing by default; instants are those of the hosts' clock.
pub trait HostObserver {
    /// Called when a flow starts.
    #[inline(always)]
    fn flow_started(&mut self, _flow: FlowRef, _now: Instant) {}

    /// Called when the last byte of a flow is delivered.
    #[inline(always)]
    fn flow_finished(&mut self, _flow: FlowRef, _now: Instant) {}

    /// Called when segments of a flow are delivered in order. `bytes` is their payload, with the last
    /// segment of a flow counted as a full one.
    #[inline(always)]
    fn delivered(&mut self, _flow: FlowRef, _bytes: u64) {}

    /// Called when a switch has lost a data packet. The sender does not know yet.
    #[inline(always)]
    fn segment_lost(&mut self, _segment: LostSegment) {}

    /// Called when the retransmission timer of a flow has expired.
    #[inline(always)]
    fn timed_out(&mut self, _flow: FlowRef) {}
}

impl HostObserver for () {}
