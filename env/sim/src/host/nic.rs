//! Network interfaces of hosts, which choose the packet that is sent next.

use std::collections::VecDeque;

use super::flow::Flow;
use crate::engine::Engine;
use crate::engine::event::{PacketEvent, TieBreak};
use crate::engine::link::LinkKind;
use crate::engine::packet::{NO_PACKET, PacketId, PacketQueue};
use crate::engine::topology::Topology;
use crate::scenario::HostQueue;
use crate::units::{Duration, Instant};

/// The interfaces of all hosts, by number of the host.
#[derive(Clone, Debug)]
pub(crate) enum Nics {
    /// Interfaces of the kind [`FairNic`].
    Fair(Vec<FairNic>),
    /// Interfaces of the kind [`FifoNic`].
    Fifo(Vec<FifoNic>),
    /// Interfaces of the kind [`QueueNic`].
    Queue(Vec<QueueNic>),
}

impl Nics {
    /// Creates the interfaces. With `by_class`, fair interfaces serve RDMA and TCP in turn.
    pub(super) fn new<T: Topology>(kind: HostQueue, by_class: bool, hosts: usize) -> Nics {
        match kind {
            HostQueue::Fair => {
                let turn = match by_class {
                    true => Turn::Class { rdma: false },
                    false => Turn::Flow,
                };
                let nic = FairNic {
                    turn,
                    ..FairNic::default()
                };
                Nics::Fair(vec![nic; hosts])
            }
            HostQueue::Fifo if T::IS_FABRIC => Nics::Queue(vec![QueueNic::default(); hosts]),
            HostQueue::Fifo => Nics::Fifo(vec![FifoNic::default(); hosts]),
        }
    }

    /// Takes a packet without data.
    #[inline(always)]
    pub(super) fn take_control<T: Topology>(
        &mut self,
        host: u16,
        id: PacketId,
        engine: &mut Engine<T>,
    ) {
        match self {
            Nics::Fair(nics) => nics[usize::from(host)].take_control(host, id, engine),
            Nics::Fifo(nics) => nics[usize::from(host)].take(host, id, engine),
            Nics::Queue(nics) => nics[usize::from(host)].take(host, id, engine),
        }
    }

    /// Takes a data packet of `flow`. A fair interface does not begin to send before it is
    /// [woken](Nics::wake).
    #[inline(always)]
    pub(super) fn take_data<T: Topology>(
        &mut self,
        host: u16,
        (number, flow): (u32, &mut Flow),
        id: PacketId,
        engine: &mut Engine<T>,
    ) {
        match self {
            Nics::Fair(nics) => {
                if flow.waiting.is_empty() {
                    nics[usize::from(host)].ready.push_back(number);
                }
                flow.waiting.push_back(&mut engine.packets, id);
            }
            Nics::Fifo(nics) => nics[usize::from(host)].take(host, id, engine),
            Nics::Queue(nics) => nics[usize::from(host)].take(host, id, engine),
        }
    }

    /// Begins to send the packets that were taken, if the line is idle.
    #[inline(always)]
    pub(super) fn wake<T: Topology>(
        &mut self,
        host: u16,
        flows: &mut [Flow],
        engine: &mut Engine<T>,
    ) {
        if let Nics::Fair(nics) = self
            && let nic = &mut nics[usize::from(host)]
            && !nic.sending
        {
            nic.send_next(host, flows, engine);
        }
    }

    /// Handles that the line of an interface has become free. A FIFO interface needs no such event.
    #[inline(always)]
    pub(super) fn line_is_free<T: Topology>(
        &mut self,
        host: u16,
        flows: &mut [Flow],
        engine: &mut Engine<T>,
    ) {
        match self {
            Nics::Fair(nics) => nics[usize::from(host)].send_next(host, flows, engine),
            Nics::Fifo(_) => {}
            Nics::Queue(nics) => nics[usize::from(host)].send_next(host, engine),
        }
    }

    /// Returns true if the host has a fair interface and it is not sending.
    pub(super) fn is_idle(&self, host: u16) -> bool {
        match self {
            Nics::Fair(nics) => !nics[usize::from(host)].sending,
            Nics::Fifo(_) | Nics::Queue(_) => false,
        }
    }

    /// Returns the flow whose packet a fair interface sends next.
    pub(super) fn next_flow(&self, host: u16, flows: &[Flow]) -> Option<u32> {
        match self {
            Nics::Fair(nics) => nics[usize::from(host)].next_flow(flows),
            Nics::Fifo(_) | Nics::Queue(_) => None,
        }
    }

    /// Pauses or resumes packets of a priority, on behalf of the switch. `priorities` is the number of queues
    /// of a port.
    pub(super) fn set_paused<T: Topology>(
        &mut self,
        host: u16,
        priority: u8,
        (pauses, priorities): (bool, u16),
        engine: &mut Engine<T>,
    ) {
        let Nics::Fair(nics) = self else {
            return;
        };
        let nic = &mut nics[usize::from(host)];
        nic.priorities = priorities;
        nic.release_held(engine);
        match pauses {
            true => nic.paused |= 1 << priority,
            false => nic.paused &= !(1 << priority),
        }
        nic.hold_paused(engine);
    }

    /// Handles a packet from a host that reaches the first switch. If a FIFO interface sent it, the next
    /// waiting packet follows.
    #[inline(always)]
    pub(crate) fn follow<T: Topology>(&self, arrived: PacketEvent, engine: &mut Engine<T>) {
        if let Nics::Fifo(_) = self {
            FifoNic::follow(arrived, engine);
        }
    }

    /// Returns the packets that wait at the hosts, except those of FIFO interfaces, which are linked to the
    /// packets in flight.
    pub(super) fn waiting<'a>(&'a self, flows: &'a [Flow]) -> impl Iterator<Item = PacketQueue> {
        let (fair, queues): (&[FairNic], &[QueueNic]) = match self {
            Nics::Fair(nics) => (nics, &[]),
            Nics::Fifo(_) => (&[], &[]),
            Nics::Queue(nics) => (&[], nics),
        };
        let of_flow = |&flow: &u32| flows[flow as usize].waiting;
        fair.iter()
            .flat_map(move |nic| nic.ready.iter().map(of_flow).chain([nic.control, nic.held]))
            .chain(queues.iter().map(|nic| nic.waiting))
    }
}

/// Serves flows in turn, or RDMA and TCP in turn and the flows of each. Each flow with data to send has
/// one queue and sends one packet a turn. Packets without data go first: Linux `fq` also serves a flow that
/// was idle before the backlogged ones, so a pure ACK does not wait for a round of full packets.
#[derive(Clone, Default, Debug)]
pub(crate) struct FairNic {
    /// Packets without data.
    control: PacketQueue,
    /// Flows with data to send, in the order of their turns.
    ready: VecDeque<u32>,
    /// True if a packet is being serialised.
    sending: bool,
    /// Priorities that the switch has paused, a bit each.
    paused: u8,
    /// Paused packets without data, which are older than those of `control`.
    held: PacketQueue,
    /// Number of queues of a port; known after the first pause.
    priorities: u16,
    turn: Turn,
}

/// Rule for the next turn among flows with data.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
enum Turn {
    /// It is the next flow's turn.
    #[default]
    Flow,
    /// It is the turn of the next flow of a class that may send, or of the other class if there is none.
    Class {
        /// True if it is the turn of RDMA, false if it is TCP's.
        rdma: bool,
    },
}

/// Choice of the next packet if that is not simply the first ready flow's.
impl FairNic {
    /// Returns true if nothing is paused and flows, not classes, take turns.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        self.paused == 0 && self.turn == Turn::Flow
    }

    #[cold]
    #[inline(never)]
    fn next_by_turn<T: Topology>(
        &mut self,
        flows: &mut [Flow],
        engine: &Engine<T>,
    ) -> Option<PacketId> {
        if let Some(packet) = self.control.pop_front(&engine.packets) {
            return Some(packet);
        }
        let place = self.place_of_next(flows)?;
        let number = self.ready.remove(place)?;
        let flow = &mut flows[number as usize];
        if let Turn::Class { rdma } = &mut self.turn {
            *rdma = !flow.is_rdma();
        }
        let packet = flow.waiting.pop_front(&engine.packets);
        if !flow.waiting.is_empty() {
            self.ready.push_back(number);
        }
        packet
    }

    /// Returns the place of the flow that sends next among the ready flows. It is not paused. It belongs to
    /// the class whose turn it is if any flow of that class may send.
    fn place_of_next(&self, flows: &[Flow]) -> Option<usize> {
        let open = |flow: &Flow| !self.holds(u16::from(flow.priority));
        let place = |sends: &dyn Fn(&Flow) -> bool| {
            let mut ready = self.ready.iter();
            ready.position(|&number| sends(&flows[number as usize]))
        };
        match self.turn {
            Turn::Flow => None,
            Turn::Class { rdma } => place(&|flow| flow.is_rdma() == rdma && open(flow)),
        }
        .or_else(|| place(&open))
    }
}

/// Pauses (IEEE 802.1Qbb): paused packets wait, other packets are sent.
impl FairNic {
    /// Returns true if packets of a priority are paused. Priorities of flows beyond the last queue count as the
    /// last queue.
    fn holds(&self, priority: u16) -> bool {
        let last = self.priorities.saturating_sub(1);
        self.paused >> priority.min(last) & 1 != 0
    }

    fn holds_packet<T: Topology>(&self, id: PacketId, engine: &Engine<T>) -> bool {
        let packet = &engine.packets[id];
        !packet.flags.is_control() && self.holds(packet.queue % self.priorities)
    }

    /// Puts the held packets before those that came later.
    #[cold]
    fn release_held<T: Topology>(&mut self, engine: &mut Engine<T>) {
        while let Some(id) = self.control.pop_front(&engine.packets) {
            self.held.push_back(&mut engine.packets, id);
        }
        self.control = std::mem::take(&mut self.held);
    }

    /// Moves paused packets into the queue of held ones.
    #[cold]
    fn hold_paused<T: Topology>(&mut self, engine: &mut Engine<T>) {
        let mut all = std::mem::take(&mut self.control);
        while let Some(id) = all.pop_front(&engine.packets) {
            let queue = match self.holds_packet(id, engine) {
                true => &mut self.held,
                false => &mut self.control,
            };
            queue.push_back(&mut engine.packets, id);
        }
    }
}

impl FairNic {
    #[inline(always)]
    fn take_control<T: Topology>(&mut self, host: u16, id: PacketId, engine: &mut Engine<T>) {
        if self.paused != 0 && self.holds_packet(id, engine) {
            self.held.push_back(&mut engine.packets, id);
        } else if self.sending {
            self.control.push_back(&mut engine.packets, id);
        } else {
            self.transmit(host, id, engine);
        }
    }

    fn next_flow(&self, flows: &[Flow]) -> Option<u32> {
        let flow = match self.is_plain() {
            true => self.ready.front().copied(),
            false => self.place_of_next(flows).map(|place| self.ready[place]),
        };
        flow.filter(|_| self.control.is_empty())
    }

    /// Puts the next packet onto the wire, if there is one.
    #[inline(always)]
    fn send_next<T: Topology>(&mut self, host: u16, flows: &mut [Flow], engine: &mut Engine<T>) {
        match self.next(flows, engine) {
            Some(packet) => self.transmit(host, packet, engine),
            None => self.sending = false,
        }
    }

    #[inline(always)]
    fn next<T: Topology>(&mut self, flows: &mut [Flow], engine: &Engine<T>) -> Option<PacketId> {
        if !self.is_plain() {
            return self.next_by_turn(flows, engine);
        }
        if let Some(packet) = self.control.pop_front(&engine.packets) {
            return Some(packet);
        }
        let flow = self.ready.pop_front()?;
        let waiting = &mut flows[flow as usize].waiting;
        let packet = waiting.pop_front(&engine.packets);
        if !waiting.is_empty() {
            self.ready.push_back(flow);
        }
        packet
    }

    #[inline(always)]
    fn transmit<T: Topology>(&mut self, host: u16, packet: PacketId, engine: &mut Engine<T>) {
        self.sending = true;
        let rank = engine.rank;
        engine.cross(LinkKind::HOST, PacketEvent::of_host(host, packet, rank));
    }
}

/// Sends packets in the order in which it takes them. Waiting packets are linked, beginning with the packet
/// on the wire: each points to the one that follows it without a gap. When the packet on the wire reaches
/// the switch, the next one is known to follow one transmission time later.
#[derive(Clone, Default, Debug)]
pub(crate) struct FifoNic {
    /// The packet taken last.
    last: PacketId,
    /// Time at which all packets that were taken have been sent.
    free_at: Instant,
    /// Rank of that instant among simultaneous events.
    free_rank: TieBreak,
}

impl FifoNic {
    /// Puts the packet onto the wire now if the wire is idle, otherwise behind the one taken before.
    #[inline(always)]
    fn take<T: Topology>(&mut self, host: u16, id: PacketId, engine: &mut Engine<T>) {
        let packet = &engine.packets[id];
        let transmission = engine.links.transmission(LinkKind::HOST, packet);
        let free_rank = engine.ranks.sent(packet.class, transmission);
        let now = engine.host_now();
        let last = std::mem::replace(&mut self.last, id);
        // If a transmission ends at the same instant, the order of events decides. Without propagation
        // delay, that packet is at the switch by now, and nothing would follow it.
        let ends_later = self.free_at == now
            && engine.rank < self.free_rank
            && engine.links.propagation(LinkKind::HOST) > Duration::ZERO;
        self.free_rank = free_rank;
        if self.free_at > now || ends_later {
            self.free_at = self.free_at.saturating_add(transmission);
            engine.packets[last].next = id;
            return;
        }
        self.free_at = now + transmission;
        let rank = engine.rank;
        engine.arrive(PacketEvent::of_host(host, id, rank));
    }

    /// Schedules the packet that has followed, without a gap, the one that reaches the switch now.
    #[inline(always)]
    fn follow<T: Topology>(arrived: PacketEvent, engine: &mut Engine<T>) {
        let packet = &engine.packets[arrived.packet];
        if packet.next == NO_PACKET {
            return;
        }
        let rank = engine.ranks.sent(
            packet.class,
            engine.links.transmission(LinkKind::HOST, packet),
        );
        engine.arrive_next(PacketEvent::of_host(arrived.sender, packet.next, rank));
    }
}

/// Sends packets in the order in which it takes them. An event tells it when its line is free: in a network
/// of several switches, that moment has a place among simultaneous events.
#[derive(Clone, Default, Debug)]
pub(crate) struct QueueNic {
    waiting: PacketQueue,
    /// True if a packet is being serialised.
    sending: bool,
}

impl QueueNic {
    #[inline(always)]
    fn take<T: Topology>(&mut self, host: u16, id: PacketId, engine: &mut Engine<T>) {
        if self.sending {
            self.waiting.push_back(&mut engine.packets, id);
        } else {
            self.sending = true;
            QueueNic::transmit(host, id, engine);
        }
    }

    #[inline(always)]
    fn send_next<T: Topology>(&mut self, host: u16, engine: &mut Engine<T>) {
        match self.waiting.pop_front(&engine.packets) {
            Some(id) => QueueNic::transmit(host, id, engine),
            None => self.sending = false,
        }
    }

    #[inline(always)]
    fn transmit<T: Topology>(host: u16, packet: PacketId, engine: &mut Engine<T>) {
        engine.cross(
            LinkKind::HOST,
            PacketEvent::of_host(host, packet, TieBreak::FIRST),
        );
    }
}
