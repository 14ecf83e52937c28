//! Read access to hosts and their flows, for users, observers and the simulator's loop.

use super::nic::Nics;
use super::{HostCounters, Hosts};
use crate::engine::Engine;
use crate::engine::packet::PacketId;
use crate::engine::topology::Topology;
use crate::traffic::FlowSpec;
use crate::transport::Settings;
use crate::units::{Duration, Instant};

/// State of an active flow that only the simulator can see.
#[derive(Clone, Copy, Debug)]
pub struct FlowView {
    /// Position of the flow in the trace.
    pub index: u32,
    /// Number of the flow in the order of starts, as in [`FlowRef`](super::FlowRef).
    pub number: u32,
    /// Sending host.
    pub src: u16,
    /// Receiving host.
    pub dst: u16,
    /// Payload not yet acknowledged, bytes.
    pub remaining_bytes: u64,
    /// Congestion window, bytes.
    pub cwnd: u32,
    /// Number of packets in flight, data and acknowledgements.
    pub in_network: u32,
    /// Number of segments known to be lost that wait to be sent again.
    pub lost_segments: u32,
    /// True if losses are being repaired.
    pub recovering: bool,
    /// True if the window still doubles.
    pub slow_start: bool,
    /// Time until the next timer of the flow expires, if nothing is acknowledged before. That is the
    /// retransmission timer, or with RACK-TLP an earlier one.
    pub timeout_in: Duration,
    /// Time until the timer expires if only the timer helps, because no packet of the flow is in flight.
    pub stalled_for: Option<Duration>,
}

impl<T: Topology> Hosts<T> {
    pub(crate) fn topology(&self) -> &T {
        &self.topology
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn nics(&self) -> &Nics {
        &self.nics
    }

    pub(crate) fn counters(&self) -> &HostCounters {
        &self.counters
    }

    /// Returns the number of timeouts of a flow, by the flow's number.
    pub(crate) fn timeouts_of(&self, number: usize) -> u32 {
        self.counters.timeouts_of(number)
    }

    pub(crate) fn flows(&self) -> usize {
        self.flows.len()
    }

    pub(crate) fn last_finish(&self) -> Instant {
        self.last_finish
    }

    /// Returns the start of the first flow.
    pub(crate) fn first_start(&self) -> Instant {
        self.roster.start(0).unwrap_or_default()
    }

    /// Returns the position of a flow in the trace, by number.
    pub(crate) fn place(&self, number: usize) -> u32 {
        self.roster.place(number)
    }

    /// Returns a flow as it was in the trace, by number.
    pub(crate) fn spec(&self, number: usize) -> FlowSpec {
        self.roster
            .spec(number, &self.flows[number], &self.settings)
    }

    pub(crate) fn established(&self, number: usize) -> Option<Instant> {
        self.roster.established(number)
    }

    pub(crate) fn finish(&self, number: usize) -> Option<Instant> {
        self.flows[number].stage.finish()
    }

    /// Returns the number of segments that the receiver has in order.
    pub(crate) fn delivered_segments(&self, number: usize) -> u32 {
        self.flows[number].delivered_segments()
    }

    /// Returns the flows that have started and are not complete, in an arbitrary but deterministic order.
    pub(crate) fn active_flows(&self, now: Instant) -> impl Iterator<Item = FlowView> + '_ {
        self.active.iter().map(move |&number| {
            let flow = &self.flows[number as usize];
            let timeout_in = flow.sender.deadline().saturating_since(now);
            let stalled = flow.established && flow.in_network == 0;
            FlowView {
                index: self.roster.place(number as usize),
                number,
                src: flow.src,
                dst: flow.dst,
                remaining_bytes: flow.sender.unacknowledged_bytes(&self.settings),
                cwnd: flow.sender.cwnd(),
                in_network: flow.in_network,
                lost_segments: flow.sender.lost_unsent(),
                recovering: flow.sender.is_recovering(),
                slow_start: flow.sender.in_slow_start(),
                timeout_in,
                stalled_for: stalled.then_some(timeout_in),
            }
        })
    }

    /// Returns the packets that wait at the hosts, in queues to be sent or to be taken.
    pub(crate) fn waiting_packets<'a>(
        &'a self,
        engine: &'a Engine<T>,
    ) -> impl Iterator<Item = PacketId> + 'a {
        let queues = self.nics.waiting(&self.flows);
        let to_be_taken = self.jitter.iter().flat_map(|jitter| jitter.waiting());
        queues
            .flat_map(|queue| queue.iter(&engine.packets))
            .chain(to_be_taken)
    }

    /// Returns the number of entries of SACK blocks in use.
    pub(crate) fn sack_entries(&self) -> usize {
        self.sacks.live()
    }
}
