//! Hosts: they start flows, send segments and receive packets.

mod counters;
mod crossing;
mod flow;
mod jitter;
mod labels;
mod late;
mod nic;
mod observer;
mod rdma;
mod view;

use crate::engine::Engine;
use crate::engine::event::{Events as _, Timer};
use crate::engine::link::wire_bytes;
use crate::engine::packet::{Flags, Packet, PacketDirection, PacketId, PacketKind, SizeClass};
use crate::engine::telemetry::{PathRecords, RecordsHandle};
use crate::engine::topology::{Attachment, Route, SwitchId, Topology};
use crate::scenario::{AckQueue, Scenario, Unscheduled};
use crate::traffic::{Trace, TraceError};
use crate::transport::{
    Ack, Answer, Expiry, LossRecovery, Pool, Reassembly, SackBlocks, SackStore, Segment, Settings,
    with_duplicate,
};
use crate::units::{Duration, Instant};

pub(crate) use counters::HostCounters;
pub use crossing::{Crossing, SegmentKind};
use flow::{Flow, Roster, Stage, flows_in_start_order};
use jitter::Jitter;
use labels::FirstBytes;
pub(crate) use nic::Nics;
pub use observer::{FlowRef, HostObserver, LostSegment};
use rdma::Rdma;
pub use view::FlowView;

/// Maximum number of doublings of the SYN timeout: RFC 9293 leaves the bound to the implementation, and
/// 2^10 exceeds any run.
const MAX_SYN_BACKOFF: u8 = 10;

/// Sizes of packets on the wire, bytes.
#[derive(Clone, Copy, Debug)]
struct WireBytes {
    /// Overhead of a data packet on top of its payload.
    header: u32,
    ack: u16,
    /// Added to an acknowledgement for every SACK block.
    sack_block: u16,
    syn: u16,
    /// Added to an acknowledgement for every telemetry record.
    record: u16,
}

/// Pools of unused sender and receiver states.
#[derive(Clone, Default, Debug)]
struct Pools {
    senders: Pool<LossRecovery>,
    receivers: Pool<Reassembly>,
}

/// Priority of packets without data. The processor cannot predict whether a packet has data, so masks
/// make the choice.
#[derive(Clone, Copy, Debug)]
struct AckPriority {
    number: u16,
    /// All bits set, or zero if packets without data have the priority of their flow.
    applies: u16,
}

impl AckPriority {
    fn of(queue: AckQueue) -> AckPriority {
        let number = match queue {
            AckQueue::Number(number) => Some(number),
            AckQueue::OfFlow => None,
        };
        AckPriority {
            number: number.map_or(0, |number| u16::try_from(number).unwrap_or(u16::MAX)),
            applies: u16::from(number.is_some()).wrapping_neg(),
        }
    }
}

/// All hosts: their flows, the two ends of each, and their network interfaces.
#[derive(Clone, Debug)]
pub(crate) struct Hosts<T> {
    topology: T,
    /// Attachment of each host; empty for a single switch.
    attachments: Box<[Attachment]>,
    settings: Settings,
    wire_bytes: WireBytes,
    handshake: bool,
    /// True if flows of queries need no handshake.
    preconnected: bool,
    late_binding: bool,
    /// True if interfaces ask flows for packets: with late binding, or for RDMA.
    pulls: bool,
    rdma: Rdma,
    /// True if small packets of TCP belong to the control class.
    control_class: bool,
    /// True if data packets need [labels].
    labels: bool,
    first_bytes: Option<Box<FirstBytes>>,
    /// Flags of packets without data, except those of RDMA.
    control_flags: Flags,
    syn_timeout: Duration,
    queues_per_port: u16,
    ack_priority: AckPriority,
    /// Number of packets, by set of equal paths; empty if packets are not sprayed.
    turns: Vec<u32>,
    roster: Roster,
    flows: Vec<Flow>,
    next_start: usize,
    /// Flows that have started and are not complete, in no particular order.
    active: Vec<u32>,
    completed: usize,
    last_finish: Instant,
    nics: Nics,
    /// Packets that hosts have not taken yet, if hosts take a varying time for a packet.
    jitter: Option<Box<Jitter>>,
    /// Ends of pauses by host and priority, if pauses expire.
    pause_expiries: Vec<Instant>,
    pools: Pools,
    sacks: SackStore,
    counters: HostCounters,
}

impl<T: Topology> Hosts<T> {
    /// Creates the hosts of a scenario at time zero, which are to start the flows of `trace`.
    pub(crate) fn new(
        scenario: &Scenario,
        settings: Settings,
        trace: &Trace,
        topology: T,
    ) -> Result<Hosts<T>, TraceError> {
        let (flows, roster) = flows_in_start_order(trace, &settings, scenario.demand.preconnected)?;
        let timestamp = scenario.timestamp_bytes();
        Ok(Hosts {
            labels: labels::are_needed(&settings) || scenario.lossless.control_class,
            first_bytes: FirstBytes::new(&settings, flows.len()),
            control_flags: Flags::tag(scenario.tcp.unscheduled == Unscheduled::FirstBdp)
                .with_control(scenario.lossless.control_class),
            control_class: scenario.lossless.control_class,
            pulls: scenario.host.late_binding || settings.rdma,
            rdma: Rdma::new(scenario, topology.hosts()),
            settings,
            wire_bytes: WireBytes {
                header: scenario.packets.header_bytes + timestamp,
                ack: wire_bytes(scenario.packets.ack_bytes + timestamp),
                sack_block: wire_bytes(scenario.tcp.sack_block_bytes),
                syn: wire_bytes(scenario.packets.syn_bytes + timestamp),
                record: wire_bytes(scenario.telemetry.bytes_per_hop),
            },
            handshake: scenario.tcp.handshake,
            preconnected: scenario.demand.preconnected,
            late_binding: scenario.host.late_binding,
            syn_timeout: scenario.syn_timeout(),
            queues_per_port: u16::try_from(scenario.queues.queues_per_port)
                .expect("a valid scenario has at most 8 queues per port"),
            ack_priority: AckPriority::of(scenario.queues.ack_queue),
            turns: match topology.sprays() {
                true => vec![0; topology.path_sets()],
                false => Vec::new(),
            },
            roster,
            next_start: 0,
            active: Vec::new(),
            completed: 0,
            last_finish: Instant::ZERO,
            pause_expiries: Vec::new(),
            jitter: Jitter::new(Duration::from_ns(scenario.host.jitter_ns), topology.hosts()),
            nics: Nics::new::<T>(
                scenario.host.queue,
                scenario.hosts_alternate_classes(),
                topology.hosts(),
            ),
            pools: Pools::default(),
            sacks: SackStore::default(),
            counters: HostCounters::new(flows.len()),
            flows,
            attachments: match T::IS_FABRIC {
                true => attachments(&topology),
                false => Box::default(),
            },
            topology,
        })
    }

    /// Tells the engine which flow starts next.
    pub(crate) fn schedule_next_start(&self, engine: &mut Engine<T>) {
        engine.events.set_start(self.roster.start(self.next_start));
    }

    /// Returns true if all flows are complete.
    #[inline(always)]
    pub(crate) fn finished(&self) -> bool {
        self.completed == self.flows.len()
    }

    /// Returns the queue of a packet of a flow at the first switch on its path.
    #[inline(always)]
    fn first_queue(&mut self, flow: u32, kind: PacketKind) -> u16 {
        let state = &self.flows[flow as usize];
        let from = match kind.direction() {
            PacketDirection::Forward => state.src,
            PacketDirection::Reverse => state.dst,
        };
        let at = self.attachment(from).switch;
        let port = self.port_at(at, flow, kind.direction(), None);
        self.queue_of(port, flow, kind)
    }

    /// Returns the queue of a packet at a later switch. `came`, the switch and port that it came from, is given
    /// if the topology [needs](Topology::POOLS_SPINES) it.
    pub(crate) fn queue_at(
        &mut self,
        switch: SwitchId,
        came: Option<(SwitchId, usize)>,
        packet: &Packet,
    ) -> u16 {
        let port = self.port_at(switch, packet.flow, packet.kind.direction(), came);
        self.queue_of(port, packet.flow, packet.kind)
    }

    /// Returns the port at which a packet of a flow leaves a switch.
    #[inline(always)]
    fn port_at(
        &mut self,
        switch: SwitchId,
        flow: u32,
        direction: PacketDirection,
        came: Option<(SwitchId, usize)>,
    ) -> usize {
        let (src, dst) = self.ends_of(flow, direction);
        let destination = self.attachment(dst);
        let mut turn = 0;
        if T::IS_FABRIC
            && !self.turns.is_empty()
            && let Some(set) = self.topology.path_set(switch, destination, came)
        {
            let next = &mut self.turns[set];
            turn = *next;
            *next = next.wrapping_add(1);
        }
        let route = Route {
            src,
            dst,
            flow,
            direction,
            turn,
            came,
        };
        self.topology.port_towards(switch, destination, route)
    }

    /// Returns the place where a host is attached.
    #[inline(always)]
    pub(crate) fn attachment(&self, host: u16) -> Attachment {
        match T::IS_FABRIC {
            true => self.attachments[usize::from(host)],
            false => self.topology.attachment(host),
        }
    }

    /// Returns the source and the destination host of a flow's packets in a direction.
    #[inline(always)]
    pub(crate) fn ends_of(&self, flow: u32, direction: PacketDirection) -> (u16, u16) {
        let state = &self.flows[flow as usize];
        match direction {
            PacketDirection::Forward => (state.src, state.dst),
            PacketDirection::Reverse => (state.dst, state.src),
        }
    }

    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "networks with more than 65,536 queues of a switch are refused"
    )]
    fn queue_of(&self, port: usize, flow: u32, kind: PacketKind) -> u16 {
        if self.queues_per_port == 1 {
            return port as u16;
        }
        let of_flow = u16::from(self.flows[flow as usize].priority);
        let AckPriority { number, applies } = self.ack_priority;
        if self.settings.rdma && self.flows[flow as usize].is_rdma() {
            return port as u16 * self.queues_per_port + of_flow.min(self.queues_per_port - 1);
        }
        let without_data = u16::from(kind != PacketKind::Data).wrapping_neg();
        let priority = of_flow ^ ((of_flow ^ number) & applies & without_data);
        let last = self.queues_per_port - 1;
        port as u16 * (last + 1) + priority.min(last)
    }

    #[inline(always)]
    fn flow_ref(&self, number: u32) -> FlowRef {
        FlowRef {
            number,
            dst: self.flows[number as usize].dst,
        }
    }
}

/// Flows: start, handshake, timers, completion.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a trace has fewer than 2^32 flows: `flows_in_start_order` counts them"
)]
impl<T: Topology> Hosts<T> {
    pub(crate) fn start_next_flow<O: HostObserver>(
        &mut self,
        engine: &mut Engine<T>,
        observer: &mut O,
    ) {
        let flow = self.next_start as u32;
        self.next_start += 1;
        self.schedule_next_start(engine);
        self.flows[flow as usize].stage = Stage::active(self.active.len() as u32);
        self.active.push(flow);
        observer.flow_started(self.flow_ref(flow), engine.host_now());
        let connected = self.preconnected && self.roster.query(flow as usize) >= 0;
        if self.handshake && !connected && !self.flows[flow as usize].is_rdma() {
            self.send_syn(flow, 0, engine);
        } else {
            self.establish(flow, engine);
        }
    }

    fn send_syn(&mut self, flow: u32, sent_before: u8, engine: &mut Engine<T>) {
        let now = engine.host_now();
        self.send_handshake(flow, PacketKind::Syn, now, sent_before > 0, engine);
        engine.set_timer(
            self.handshake_timeout(sent_before),
            Timer::Syn(flow, sent_before),
        );
    }

    fn handshake_timeout(&self, sent_before: u8) -> Duration {
        self.syn_timeout * (1 << sent_before.min(MAX_SYN_BACKOFF))
    }

    pub(crate) fn on_syn_timer(&mut self, flow: u32, sent_before: u8, engine: &mut Engine<T>) {
        if !self.flows[flow as usize].established {
            let waited = self.handshake_timeout(sent_before);
            self.counters.count_timeout(flow, waited);
            let number = sent_before.saturating_add(1);
            let sender = &mut self.flows[flow as usize].sender;
            sender.on_syn_timeout(number, &self.settings);
            self.send_syn(flow, number, engine);
        }
    }

    /// Answers a SYN, unless the sender has sent something else since (RFC 9293 §3.5).
    fn receive_syn(&mut self, syn: &Packet, engine: &mut Engine<T>) {
        let receiver = &mut self.flows[syn.flow as usize].receiver;
        if receiver.has_accepted() {
            return;
        }
        receiver.echo(syn.stamp, true);
        let sent_before = receiver.count_syn_ack();
        let (flow, again) = (syn.flow, syn.retransmission);
        self.send_handshake(flow, PacketKind::SynAck, syn.stamp, again, engine);
        if sent_before == 0 {
            self.arm_syn_ack_timer(flow, 0, engine);
        }
    }

    fn arm_syn_ack_timer(&mut self, flow: u32, sent_before: u8, engine: &mut Engine<T>) {
        engine.set_timer(self.handshake_timeout(sent_before), Timer::SynAck(flow));
    }

    pub(crate) fn on_syn_ack_timer(&mut self, flow: u32, engine: &mut Engine<T>) {
        let receiver = &mut self.flows[flow as usize].receiver;
        if receiver.has_accepted() {
            return;
        }
        let stamp = receiver.echo(Instant::ZERO, false);
        let sent_before = receiver.count_syn_ack();
        // The sender sends data at once when a SYN-ACK arrives. So the flow waits for this timer only if
        // the SYN-ACK was lost, and then the sender's own timer counts the same time.
        self.counters.count_timeout(flow, Duration::ZERO);
        self.send_handshake(flow, PacketKind::SynAck, stamp, true, engine);
        self.arm_syn_ack_timer(flow, sent_before, engine);
    }

    fn establish(&mut self, flow: u32, engine: &mut Engine<T>) {
        self.flows[flow as usize].established = true;
        self.roster.establish(flow as usize, engine.host_now());
        if self.flows[flow as usize].is_rdma() {
            return self.pump(flow, engine);
        }
        if self.settings.is_rack() {
            let pool = &mut self.pools.senders;
            let sender = &mut self.flows[flow as usize].sender;
            sender.begin_by_time(&self.settings, pool);
        }
        if self.settings.is_ns3() {
            // ns-3's socket sends data one nanosecond, its unit of time, after it was told to.
            engine.set_timer(Duration::from_ns(1), Timer::Begin(flow));
        } else {
            self.pump(flow, engine);
        }
    }

    pub(crate) fn on_retransmission_timer<O: HostObserver>(
        &mut self,
        flow: u32,
        engine: &mut Engine<T>,
        observer: &mut O,
    ) {
        let now = engine.host_now();
        let state = &mut self.flows[flow as usize];
        if state.timer_at != now {
            return;
        }
        state.timer_at = Instant::MAX;
        if state.is_rdma() && state.in_network > 0 && state.sender.deadline() <= now {
            // Packets in flight, or held up by a pause, will be answered.
            state.sender.wait_on(now, &self.settings);
        } else if state.sender.deadline() <= now {
            let pool = &mut self.pools.senders;
            let waited = match state.stage.finish() {
                Some(_) => Duration::ZERO,
                None => state.sender.retransmission_timeout(&self.settings),
            };
            match state.sender.on_timeout(now, &self.settings, pool) {
                Expiry::Timeout => {
                    self.counters.count_timeout(flow, waited);
                    observer.timed_out(self.flow_ref(flow));
                }
                Expiry::Probe => self.counters.tail_probes += 1,
                Expiry::Reordering => {}
            }
            self.pump(flow, engine);
        }
        self.arm_timer(flow, engine);
    }

    /// Keeps a timer event pending for every flow that waits for an acknowledgement, at its deadline or
    /// before: a later deadline is read when the event falls due. An earlier deadline, such as after a
    /// timeout that was backed off, needs another event; the one that it overtakes is void.
    #[inline]
    fn arm_timer(&mut self, flow: u32, engine: &mut Engine<T>) {
        let now = engine.host_now();
        let state = &mut self.flows[flow as usize];
        let deadline = state.sender.deadline();
        if deadline < state.timer_at {
            state.timer_at = deadline.max(now);
            engine.set_timer(deadline.saturating_since(now), Timer::Retransmission(flow));
        }
    }

    fn complete<O: HostObserver>(&mut self, flow: u32, now: Instant, observer: &mut O) {
        let state = &mut self.flows[flow as usize];
        let at = state.stage.position();
        state.stage = Stage::finished(now);
        self.active.swap_remove(at);
        if let Some(&moved) = self.active.get(at) {
            self.flows[moved as usize].stage = Stage::active(at as u32);
        }
        self.completed += 1;
        self.last_finish = now;
        observer.flow_finished(self.flow_ref(flow), now);
    }

    /// Accounts for a packet that a switch has lost and removed.
    #[inline(never)]
    pub(crate) fn lose<O: HostObserver>(&mut self, packet: &Packet, observer: &mut O) {
        self.sacks.take(packet.sack);
        let flow = &mut self.flows[packet.flow as usize];
        flow.in_network -= 1;
        if packet.kind == PacketKind::Data {
            let (segments, recovering) = (flow.segments, flow.sender.is_recovering());
            observer.segment_lost(LostSegment {
                flow: self.flow_ref(packet.flow),
                retransmission: packet.retransmission,
                is_near_end: packet.sequence + 3 >= segments,
                recovering,
            });
        }
    }
}

/// The receive side.
impl<T: Topology> Hosts<T> {
    /// Handles a packet whose last bit has arrived at its destination.
    #[inline(always)]
    pub(crate) fn receive<O: HostObserver>(
        &mut self,
        id: PacketId,
        engine: &mut Engine<T>,
        observer: &mut O,
    ) {
        if self.jitter.is_some() {
            return self.let_wait(id, engine);
        }
        self.take(id, engine, observer);
    }

    /// Lets a host take a packet that has reached it.
    #[inline(always)]
    fn take<O: HostObserver>(&mut self, id: PacketId, engine: &mut Engine<T>, observer: &mut O) {
        let packet = engine.packets[id];
        engine.packets.remove(id);
        self.counters.delivered += 1;
        self.flows[packet.flow as usize].in_network -= 1;
        if self.settings.rdma && self.flows[packet.flow as usize].is_rdma() {
            return self.receive_rdma(packet, id, engine, observer);
        }
        match packet.kind {
            PacketKind::Data => self.receive_data(packet, id, engine, observer),
            PacketKind::Ack => self.receive_ack(packet, id, engine),
            _ => self.receive_handshake(packet, engine),
        }
    }

    #[cold]
    fn receive_handshake(&mut self, packet: Packet, engine: &mut Engine<T>) {
        let now = engine.host_now();
        match packet.kind {
            PacketKind::Syn => self.receive_syn(&packet, engine),
            PacketKind::SynAck => {
                let ack = arrived(&packet, None, None, now);
                let state = &mut self.flows[packet.flow as usize];
                let established = state.established;
                state.sender.on_handshake(&ack, established, &self.settings);
                if !established {
                    let kind = PacketKind::HandshakeAck;
                    self.send_handshake(packet.flow, kind, now, false, engine);
                    self.establish(packet.flow, engine);
                }
            }
            PacketKind::HandshakeAck => {
                let receiver = &mut self.flows[packet.flow as usize].receiver;
                receiver.accepted = true;
                if packet.flags.congested() {
                    // The packet has the sequence number of the first byte.
                    receiver.takes_mark(0, &self.settings, &mut self.pools.receivers);
                }
            }
            PacketKind::Data | PacketKind::Ack | PacketKind::Pause => {}
        }
    }

    #[inline(always)]
    fn receive_data<O: HostObserver>(
        &mut self,
        packet: Packet,
        id: PacketId,
        engine: &mut Engine<T>,
        observer: &mut O,
    ) {
        let delays = self.settings.delayed_ack > 1;
        if delays {
            self.settle_change_of_mark(&packet, engine);
        }
        let state = &mut self.flows[packet.flow as usize];
        let in_order = state.receiver.next_expected() == packet.sequence;
        let pool = &mut self.pools.receivers;
        let receiver = &mut state.receiver;
        let is_last = packet.sequence + 1 == state.segments;
        if !in_order && is_last && self.settings.is_ns3() && receiver.awaits_handshake() {
            // Before the connection is established, ns-3 ignores a FIN that is not next in order, and
            // the data with it (`TcpSocketBase::ProcessSynRcvd`). It has taken the mark by then.
            if packet.flags.marked() {
                receiver.takes_mark(packet.sequence, &self.settings, pool);
            }
            return;
        }
        let reception = receiver.receive(packet.sequence, &self.settings, pool);
        let delivered = reception.delivered;
        self.counters.duplicates += u64::from(reception.duplicate);
        let stamp = if self.settings.is_ns3() {
            receiver.echo(packet.stamp, in_order)
        } else {
            packet.stamp
        };
        let marked =
            packet.flags.marked() && receiver.takes_mark(packet.sequence, &self.settings, pool);
        if delivered > 0 {
            self.take_delivery(packet.flow, delivered, engine.host_now(), observer);
        }
        let answer = Answer {
            stamp,
            retransmission: packet.retransmission,
            marked,
            duplicate: (reception.duplicate && self.settings.is_rack()).then_some(packet.sequence),
            records: match packet.flags.carries_records() {
                true => engine.packets.records.of(id),
                false => RecordsHandle::NONE,
            },
        };
        if delays {
            self.answer_or_postpone(packet.flow, answer, delivered, engine);
        } else if self.settings.is_ns3() {
            self.acknowledge_as_ns3(&packet, answer, delivered, engine);
        } else {
            self.acknowledge(packet.flow, answer, engine);
        }
    }

    /// Acknowledges data like ns-3, where the last segment carries the FIN. If that segment is delivered in
    /// order, data and FIN get an acknowledgement each. If another segment completes the flow, one
    /// acknowledgement stands for both. The acknowledgement of the FIN echoes no mark.
    fn acknowledge_as_ns3(
        &mut self,
        packet: &Packet,
        answer: Answer,
        delivered: u32,
        engine: &mut Engine<T>,
    ) {
        let state = &self.flows[packet.flow as usize];
        let completes = delivered > 0 && state.receiver.next_expected() == state.segments;
        let of_the_end = Answer {
            marked: false,
            ..answer
        };
        if !completes || packet.sequence + 1 == state.segments {
            self.acknowledge(packet.flow, answer, engine);
        }
        if completes {
            self.acknowledge(packet.flow, of_the_end, engine);
        }
    }

    #[inline]
    fn take_delivery<O: HostObserver>(
        &mut self,
        flow: u32,
        segments: u32,
        now: Instant,
        observer: &mut O,
    ) {
        let state = &self.flows[flow as usize];
        let all = state.receiver.next_expected() == state.segments;
        let done = all && state.stage.finish().is_none();
        let bytes = u64::from(segments) * u64::from(self.settings.mss);
        observer.delivered(self.flow_ref(flow), bytes);
        if done {
            self.complete(flow, now, observer);
        }
    }

    /// Acknowledges all that has arrived in order.
    #[inline]
    fn acknowledge(&mut self, flow: u32, answer: Answer, engine: &mut Engine<T>) {
        let state = &mut self.flows[flow as usize];
        let blocks = if self.settings.sack {
            state.receiver.sack_blocks(&self.settings)
        } else {
            None
        };
        let blocks = match answer.duplicate {
            Some(index) => Some(with_duplicate(index, blocks)),
            None => blocks,
        };
        state.in_network += 1;
        let (sequence, dst) = (state.receiver.next_expected(), state.dst);
        let mut wire_bytes = self.wire_bytes.ack;
        if let Some(blocks) = &blocks {
            let filled = blocks.iter().map(|block| u16::from(block.0 < block.1));
            wire_bytes += self.wire_bytes.sack_block * filled.sum::<u16>();
        }
        let has_records = answer.records != RecordsHandle::NONE;
        if has_records {
            wire_bytes += self.record_bytes(engine.packets.records.get(answer.records));
        }
        let queue = self.first_queue(flow, PacketKind::Ack);
        let size = (wire_bytes, engine.links.size_class(wire_bytes));
        let mut packet = Packet::new(PacketKind::Ack, flow, queue, size, answer.stamp);
        packet.sequence = sequence;
        packet.retransmission = answer.retransmission;
        packet.flags = Flags::echo(answer.marked).and(self.control_flags);
        if let Some(blocks) = blocks {
            packet.sack = self.sacks.insert(blocks);
        }
        let id = engine.create(packet);
        if has_records {
            engine.packets.carry(id, answer.records);
        }
        self.nics.take_control(dst, id, engine);
    }

    /// Returns the bytes that telemetry adds to an acknowledgement.
    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "a path has at most 8 hops")]
    fn record_bytes(&self, path: &PathRecords) -> u16 {
        self.wire_bytes.record * path.hops().len() as u16
    }

    #[inline(always)]
    fn receive_ack(&mut self, packet: Packet, id: PacketId, engine: &mut Engine<T>) {
        let blocks = self.sacks.take(packet.sack);
        let now = engine.host_now();
        let records = packet.flags.carries_records();
        let records = records.then(|| engine.packets.records.of(id));
        let path = records.map(|records| engine.packets.records.get(records));
        let ack = arrived(&packet, blocks.as_ref(), path, now);
        let state = &mut self.flows[packet.flow as usize];
        let pool = &mut self.pools.senders;
        state.sender.on_ack(&ack, &self.settings, pool);
        if let Some(records) = records {
            engine.packets.records.remove(records);
        }
        self.pump(packet.flow, engine);
        self.arm_timer(packet.flow, engine);
    }
}

/// Delayed acknowledgements (RFC 5681 §4.2): the acknowledgement of a segment in order may wait for the
/// next one. A segment out of order, or one that fills a gap, is acknowledged at once.
impl<T: Topology> Hosts<T> {
    /// Acknowledges the waiting segments before a segment that differs from them in its mark, so that the
    /// sender can tell marked and unmarked segments apart (RFC 8257 §3.2).
    fn settle_change_of_mark(&mut self, packet: &Packet, engine: &mut Engine<T>) {
        let pool = &mut self.pools.receivers;
        let receiver = &mut self.flows[packet.flow as usize].receiver;
        if receiver.differs_from_pending(packet.flags.marked()) {
            let answer = receiver.take_postponed(pool);
            self.acknowledge(packet.flow, answer, engine);
        }
    }

    fn answer_or_postpone(
        &mut self,
        flow: u32,
        answer: Answer,
        delivered: u32,
        engine: &mut Engine<T>,
    ) {
        let pool = &mut self.pools.receivers;
        let receiver = &mut self.flows[flow as usize].receiver;
        receiver.postpone(answer, pool);
        let in_order = delivered == 1 && receiver.is_in_order();
        let may_wait = in_order && receiver.may_delay(&self.settings);
        if !may_wait {
            receiver.note_quick(in_order);
        }
        if !may_wait || receiver.pending() >= self.settings.delayed_ack {
            let answer = Answer {
                duplicate: answer.duplicate,
                ..receiver.take_postponed(pool)
            };
            return self.acknowledge(flow, answer, engine);
        }
        if receiver.pending() > 1 {
            return;
        }
        // At most one timer event is pending per flow: a later deadline is read when it falls due.
        let now = engine.host_now();
        let waits = receiver.due() > now;
        receiver.set_due(now + self.settings.ack_delay, pool);
        if !waits {
            engine.set_timer(self.settings.ack_delay, Timer::DelayedAck(flow));
        }
    }

    pub(crate) fn on_ack_timer(&mut self, flow: u32, engine: &mut Engine<T>) {
        let now = engine.host_now();
        let pool = &mut self.pools.receivers;
        let receiver = &mut self.flows[flow as usize].receiver;
        if receiver.pending() == 0 {
            receiver.set_due(Instant::ZERO, pool);
        } else if receiver.due() <= now {
            receiver.set_due(Instant::ZERO, pool);
            let answer = receiver.take_postponed(pool);
            self.acknowledge(flow, answer, engine);
        } else {
            let delay = receiver.due() - now;
            engine.set_timer(delay, Timer::DelayedAck(flow));
        }
    }
}

/// The send side.
impl<T: Topology> Hosts<T> {
    /// Lets a flow put the segments that its window, and its pacing if it is paced, allow into the queue of
    /// its host.
    #[inline]
    pub(crate) fn pump(&mut self, flow: u32, engine: &mut Engine<T>) {
        let src = self.flows[flow as usize].src;
        let sent = self.fill(flow, engine);
        if self.settings.paced {
            self.arm_pacer(flow, engine);
        }
        if sent {
            self.arm_timer(flow, engine);
            if self.pulls {
                return self.wake_late(src, flow, engine);
            }
            self.nics.wake(src, &mut self.flows, engine);
        }
    }

    /// Sets a timer that wakes a flow when its pacing allows the next segment.
    #[cold]
    fn arm_pacer(&mut self, flow: u32, engine: &mut Engine<T>) {
        let now = engine.host_now();
        if self.waits_for_line(flow) {
            return;
        }
        let sender = &mut self.flows[flow as usize].sender;
        if let Some(delay) = sender.take_pacing_timer(now, &self.settings) {
            engine.set_timer(delay, Timer::Pace(flow));
        }
    }

    /// Puts the segments that a flow may send into the queue of its host. Returns true if there were any.
    #[inline]
    fn fill(&mut self, flow: u32, engine: &mut Engine<T>) -> bool {
        let now = engine.host_now();
        let src = self.flows[flow as usize].src;
        let mut sent = false;
        while self.has_room(flow)
            && let Some(segment) = self.flows[flow as usize].sender.emit(now, &self.settings)
        {
            sent = true;
            let packet = self.data_packet(flow, segment, engine);
            let state = &mut self.flows[flow as usize];
            self.nics.take_data(src, (flow, state), packet, engine);
        }
        sent
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "no segment is larger than a full packet, and scenarios bound that"
    )]
    fn data_packet(&mut self, flow: u32, segment: Segment, engine: &mut Engine<T>) -> PacketId {
        debug_assert!(segment.payload <= self.settings.mss);
        let wire_bytes = (segment.payload + self.header_of(flow)) as u16;
        let size = (wire_bytes, engine.links.size_class(wire_bytes));
        let queue = self.first_queue(flow, PacketKind::Data);
        let state = &mut self.flows[flow as usize];
        state.in_network += 1;
        let mut packet = Packet::new(PacketKind::Data, flow, queue, size, engine.host_now());
        packet.sequence = segment.index;
        packet.retransmission = segment.retransmission;
        packet.flags = Flags::tag(state.sender.is_unheard());
        let id = engine.create(packet);
        if self.labels {
            self.label(flow, segment, id, engine);
        }
        id
    }

    /// Sends a packet of the handshake; `stamp` and `retransmission` are those of the SYN.
    fn send_handshake(
        &mut self,
        flow: u32,
        kind: PacketKind,
        stamp: Instant,
        retransmission: bool,
        engine: &mut Engine<T>,
    ) {
        let direction = kind.direction();
        let queue = self.first_queue(flow, kind);
        let state = &mut self.flows[flow as usize];
        state.in_network += 1;
        let from = match direction {
            PacketDirection::Forward => state.src,
            PacketDirection::Reverse => state.dst,
        };
        let wire_bytes = match kind {
            PacketKind::HandshakeAck => self.wire_bytes.ack,
            _ => self.wire_bytes.syn,
        };
        let size: (u16, SizeClass) = (wire_bytes, engine.links.size_class(wire_bytes));
        let mut packet = Packet::new(kind, flow, queue, size, stamp);
        packet.retransmission = retransmission;
        packet.flags = self.control_flags;
        let id = engine.create(packet);
        self.nics.take_control(from, id, engine);
    }

    /// Handles that the line of a host has become free.
    #[inline(always)]
    pub(crate) fn line_is_free(&mut self, host: u16, engine: &mut Engine<T>) {
        if self.pulls {
            return self.line_is_free_late(host, engine);
        }
        self.nics.line_is_free(host, &mut self.flows, engine);
    }
}

/// Pauses (IEEE 802.1Qbb).
impl<T: Topology> Hosts<T> {
    /// Pauses or resumes a host's packets of a priority, on behalf of the switch.
    #[cold]
    pub(crate) fn set_paused(
        &mut self,
        host: u16,
        priority: u8,
        pauses: bool,
        engine: &mut Engine<T>,
    ) {
        let how = (pauses, self.queues_per_port);
        self.nics.set_paused(host, priority, how, engine);
        if pauses {
            return;
        }
        match self.pulls && self.nics.is_idle(host) {
            true => self.line_is_free_late(host, engine),
            false => self.nics.wake(host, &mut self.flows, engine),
        }
    }

    /// Returns the time at which a pause of a host ends by itself.
    pub(crate) fn pause_expiry(&mut self, host: u16, priority: u8) -> &mut Instant {
        let place = usize::from(host) * 8 + usize::from(priority);
        if self.pause_expiries.len() <= place {
            self.pause_expiries.resize(place + 1, Instant::ZERO);
        }
        &mut self.pause_expiries[place]
    }
}

/// Returns the attachment of each host.
fn attachments<T: Topology>(topology: &T) -> Box<[Attachment]> {
    let hosts = (0..=u16::MAX).take(topology.hosts());
    hosts.map(|host| topology.attachment(host)).collect()
}

/// Builds the acknowledgement that the sender reads.
#[inline]
fn arrived<'a>(
    packet: &Packet,
    blocks: Option<&'a SackBlocks>,
    path: Option<&'a PathRecords>,
    now: Instant,
) -> Ack<'a> {
    Ack {
        next_expected: packet.sequence,
        blocks,
        stamp: packet.stamp,
        retransmission: packet.retransmission,
        marked: packet.flags.marked(),
        congested: packet.flags.congested(),
        now,
        path,
    }
}
