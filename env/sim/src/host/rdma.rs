//! RDMA at hosts: one packet of a flow at a time in the queue of its host, and acknowledgements that
//! say from where to send again.
//!
//! An interface asks a flow for its next packet when the one before it has left. So the rate applies from
//! the instant at which a packet really leaves. At line rate, at which most flows send, no timer is needed.

use super::{HostObserver, Hosts};
use crate::engine::Engine;
use crate::engine::link::wire_bytes;
use crate::engine::packet::{Flags, Packet, PacketId, PacketKind};
use crate::engine::topology::Topology;
use crate::scenario::{AckClass, FlowEnd, Scenario, TransportKind};
use crate::transport::Reply;

/// Number that stands for no flow.
const NO_FLOW: u32 = u32::MAX;

/// RDMA state and settings of all hosts.
#[derive(Clone, Debug)]
pub(super) struct Rdma {
    /// Overhead of a data packet on top of its payload, without and with telemetry, bytes.
    headers: [u32; 2],
    /// Size of an acknowledgement, without and with telemetry, bytes.
    acks: [u16; 2],
    /// True if a flow ends with its last acknowledgement.
    ends_with_ack: bool,
    /// Flags of acknowledgements.
    ack_flags: Flags,
    /// By host, the flow whose packet is on the line, which may create another one afterwards; empty
    /// without RDMA.
    on_line: Box<[u32]>,
}

impl Rdma {
    pub(super) fn new(scenario: &Scenario, hosts: usize) -> Rdma {
        let kinds = [TransportKind::Dcqcn, TransportKind::PowerTcpRdma];
        let hosts = if scenario.has_rdma() { hosts } else { 0 };
        Rdma {
            headers: kinds.map(|kind| scenario.rdma_headers(kind)),
            acks: kinds.map(|kind| wire_bytes(scenario.ack_bytes_of(kind))),
            ends_with_ack: scenario.rdma.fct == FlowEnd::LastAck,
            ack_flags: Flags::default()
                .with_control(scenario.rdma.ack_priority == AckClass::Control),
            on_line: vec![NO_FLOW; hosts].into_boxed_slice(),
        }
    }
}

/// The send side.
impl<T: Topology> Hosts<T> {
    /// Returns the overhead of a data packet of the flow on top of its payload, bytes.
    #[inline(always)]
    pub(super) fn header_of(&self, flow: u32) -> u32 {
        match self.settings.rdma && self.flows[flow as usize].is_rdma() {
            true => {
                self.rdma.headers[usize::from(self.flows[flow as usize].sender.reads_telemetry())]
            }
            false => self.wire_bytes.header,
        }
    }

    /// Returns the wire bytes of the packet that leaves the host next, if the flow uses RDMA.
    pub(super) fn next_departure(&self, flow: u32, engine: &Engine<T>) -> Option<u32> {
        let flow = &self.flows[flow as usize];
        let id = flow.waiting.head().filter(|_| flow.is_rdma())?;
        Some(u32::from(engine.packets[id].wire_bytes))
    }

    /// Handles a packet of an RDMA flow that begins to leave its host.
    pub(super) fn depart(&mut self, flow: u32, bytes: u32, engine: &mut Engine<T>) {
        let state = &mut self.flows[flow as usize];
        state
            .sender
            .depart(bytes, engine.host_now(), &self.settings);
        self.rdma.on_line[usize::from(state.src)] = flow;
    }

    /// Lets the RDMA flow whose packet has left the line continue, when the line of a host has become free.
    pub(super) fn refill_sent(&mut self, host: u16, engine: &mut Engine<T>) {
        let Some(on_line) = self.rdma.on_line.get_mut(usize::from(host)) else {
            return;
        };
        let flow = std::mem::replace(on_line, NO_FLOW);
        if flow != NO_FLOW {
            self.refill(flow, engine);
        }
    }

    /// Returns true if the host asks the flow for its next packet when a packet of it has left. Then the flow
    /// needs no timer for its pacing.
    pub(super) fn waits_for_line(&self, flow: u32) -> bool {
        let state = &self.flows[flow as usize];
        let on_line = || self.rdma.on_line[usize::from(state.src)] == flow;
        state.is_rdma() && (!state.waiting.is_empty() || on_line())
    }
}

/// The receive side.
impl<T: Topology> Hosts<T> {
    /// Handles a packet of an RDMA flow whose last bit has arrived.
    #[inline(never)]
    pub(super) fn receive_rdma<O: HostObserver>(
        &mut self,
        packet: Packet,
        id: PacketId,
        engine: &mut Engine<T>,
        observer: &mut O,
    ) {
        match packet.kind {
            PacketKind::Data => self.receive_rdma_data(&packet, id, engine, observer),
            _ => self.receive_rdma_ack(&packet, id, engine, observer),
        }
    }

    fn receive_rdma_data<O: HostObserver>(
        &mut self,
        packet: &Packet,
        id: PacketId,
        engine: &mut Engine<T>,
        observer: &mut O,
    ) {
        let now = engine.host_now();
        let state = &mut self.flows[packet.flow as usize];
        let receiver = &mut state.receiver;
        let (reception, reply) =
            receiver.receive_in_sequence(packet.sequence, state.segments, now, &self.settings);
        let is_last = receiver.next_expected() == state.segments;
        let ends = is_last && !self.rdma.ends_with_ack && state.stage.finish().is_none();
        self.counters.duplicates += u64::from(reception.duplicate);
        if reception.delivered > 0 {
            let bytes = u64::from(self.settings.mss);
            observer.delivered(self.flow_ref(packet.flow), bytes);
            if ends {
                self.complete(packet.flow, now, observer);
            }
        }
        if reply != Reply::Silence {
            self.answer_rdma(packet, id, reply, engine);
        } else if packet.flags.carries_records() {
            let records = engine.packets.records.of(id);
            engine.packets.records.remove(records);
        }
    }

    /// Sends an acknowledgement, which echoes the mark and the telemetry of the packet.
    fn answer_rdma(
        &mut self,
        data: &Packet,
        data_id: PacketId,
        reply: Reply,
        engine: &mut Engine<T>,
    ) {
        let records = data.flags.carries_records();
        let records = records.then(|| engine.packets.records.of(data_id));
        let bytes = self.rdma.acks[usize::from(records.is_some())];
        let queue = self.first_queue(data.flow, PacketKind::Ack);
        let size = (bytes, engine.links.size_class(bytes));
        let mut packet = Packet::new(PacketKind::Ack, data.flow, queue, size, data.stamp);
        let state = &mut self.flows[data.flow as usize];
        state.in_network += 1;
        packet.sequence = state.receiver.next_expected();
        packet.retransmission = data.retransmission;
        packet.flags = Flags::echo(data.flags.marked())
            .with_nack(reply == Reply::Nack)
            .and(self.rdma.ack_flags);
        let host = state.dst;
        let id = engine.create(packet);
        if let Some(records) = records {
            engine.packets.carry(id, records);
        }
        self.nics.take_control(host, id, engine);
    }

    fn receive_rdma_ack<O: HostObserver>(
        &mut self,
        packet: &Packet,
        id: PacketId,
        engine: &mut Engine<T>,
        observer: &mut O,
    ) {
        let now = engine.host_now();
        let records = packet.flags.carries_records();
        let records = records.then(|| engine.packets.records.of(id));
        let path = records.map(|records| engine.packets.records.get(records));
        let ack = super::arrived(packet, None, path, now);
        let state = &mut self.flows[packet.flow as usize];
        let nack = packet.flags.is_nack();
        let pool = &mut self.pools.senders;
        state
            .sender
            .take_cumulative_ack(&ack, nack, &self.settings, pool);
        let ends = state.sender.is_done() && state.stage.finish().is_none();
        if let Some(records) = records {
            engine.packets.records.remove(records);
        }
        if ends {
            self.complete(packet.flow, now, observer);
        }
        self.pump(packet.flow, engine);
        self.arm_timer(packet.flow, engine);
    }
}
