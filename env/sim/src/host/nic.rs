//! Network interfaces of hosts: which packet goes onto the wire next.

use std::collections::VecDeque;

use super::flow::Flow;
use crate::engine::Engine;
use crate::engine::event::{Subject, TieRank};
use crate::engine::link::Line;
use crate::engine::packet::{NO_PACKET, PacketId, PacketQueue};
use crate::engine::topology::Topology;
use crate::scenario::HostQueue;
use crate::units::Time;

/// The interfaces of all hosts, by number.
#[derive(Clone, Debug)]
pub(crate) enum Nics {
    /// See [`FairNic`].
    Fair(Vec<FairNic>),
    /// See [`FifoNic`].
    Fifo(Vec<FifoNic>),
    /// See [`QueueNic`].
    Queue(Vec<QueueNic>),
}

impl Nics {
    /// `by_class` has fair interfaces serve RDMA and TCP in turn.
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

    /// Begins to send what was taken, if the line is idle.
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

    /// The line of an interface that is told so has become free.
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

    /// Whether a fair interface is not sending.
    pub(super) fn is_idle(&self, host: u16) -> bool {
        match self {
            Nics::Fair(nics) => !nics[usize::from(host)].sending,
            Nics::Fifo(_) | Nics::Queue(_) => false,
        }
    }

    /// The flow whose packet a fair interface sends next.
    pub(super) fn next_flow(&self, host: u16, flows: &[Flow]) -> Option<u32> {
        match self {
            Nics::Fair(nics) => nics[usize::from(host)].next_flow(flows),
            Nics::Fifo(_) | Nics::Queue(_) => None,
        }
    }

    /// The switch pauses packets of a priority, or resumes them. `priorities` is the number of queues of
    /// a port.
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

    /// A packet from a host reaches the first switch. Behind that of a FIFO interface the next one
    /// follows, if it waits.
    #[inline(always)]
    pub(crate) fn follow<T: Topology>(&self, arrived: Subject, engine: &mut Engine<T>) {
        if let Nics::Fifo(_) = self {
            FifoNic::follow(arrived, engine);
        }
    }

    /// Packets that wait at the hosts, but for those of FIFO interfaces, which are linked to what is
    /// on its way.
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

/// Serves flows in turn, or RDMA and TCP in turn and the flows of each: each flow with data to send has
/// one queue and one packet a turn. Packets without data go first: as Linux `fq` serves a flow that was idle before the backlogged ones, a pure ACK
/// does not wait for a round of full packets.
#[derive(Clone, Default, Debug)]
pub(crate) struct FairNic {
    /// Packets without data.
    control: PacketQueue,
    /// Flows with data to send, in the order of their turns.
    ready: VecDeque<u32>,
    /// A packet is being serialised.
    sending: bool,
    /// Priorities that the switch has paused, a bit each.
    paused: u8,
    /// Packets without data that are paused, older than those of `control`.
    held: PacketQueue,
    /// Queues of a port, where pauses have told.
    priorities: u16,
    turn: Turn,
}

/// Whose turn it is among flows with data.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
enum Turn {
    /// The next flow's.
    #[default]
    Flow,
    /// The next flow's of a class while it has one that may send, else the other's.
    Class {
        /// RDMA's turn, not TCP's.
        rdma: bool,
    },
}

/// What goes next where not just the first ready flow does.
impl FairNic {
    /// Nothing is paused and flows have turns.
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

    /// The place among ready flows of the one that sends next: it is not paused, and if any of the class
    /// whose turn it is may send, it is of that class.
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

/// Pauses (IEEE 802.1Qbb): what is paused waits, the rest goes on.
impl FairNic {
    /// Whether packets of a priority wait. Of flows, the last queue stands for those beyond.
    fn holds(&self, priority: u16) -> bool {
        let last = self.priorities.saturating_sub(1);
        self.paused >> priority.min(last) & 1 != 0
    }

    fn holds_packet<T: Topology>(&self, id: PacketId, engine: &Engine<T>) -> bool {
        let packet = &engine.packets[id];
        !packet.flags.is_control() && self.holds(packet.queue % self.priorities)
    }

    /// What was held goes before what came later.
    #[cold]
    fn release_held<T: Topology>(&mut self, engine: &mut Engine<T>) {
        while let Some(id) = self.control.pop_front(&engine.packets) {
            self.held.push_back(&mut engine.packets, id);
        }
        self.control = std::mem::take(&mut self.held);
    }

    /// What is paused waits apart.
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
        engine.cross(Line::Host, Subject::of_host(host, packet, rank));
    }
}

/// Sends packets in the order in which it takes them. What waits is linked, each packet to the one
/// that follows it without a gap, from the packet on the wire on: when that reaches the switch, the
/// next one is known to follow one transmission time later.
#[derive(Clone, Default, Debug)]
pub(crate) struct FifoNic {
    /// The packet taken last.
    last: PacketId,
    /// When all that was taken has been sent.
    free_at: Time,
    /// Ranks that among simultaneous events.
    free_rank: TieRank,
}

impl FifoNic {
    /// Puts the packet onto the wire, now if that is idle, else behind the one taken before.
    #[inline(always)]
    fn take<T: Topology>(&mut self, host: u16, id: PacketId, engine: &mut Engine<T>) {
        let packet = &engine.packets[id];
        let transmission = engine.links.transmission(Line::Host, packet);
        let free_rank = engine.ranks.sent(packet.class, transmission);
        let now = engine.host_now();
        let last = std::mem::replace(&mut self.last, id);
        // Simultaneously with the end of a transmission the order of events decides. Without
        // propagation that packet is at the switch by now, and nothing would follow it.
        let ends_later = self.free_at == now
            && engine.rank < self.free_rank
            && engine.links.propagation > Time::ZERO;
        self.free_rank = free_rank;
        if self.free_at > now || ends_later {
            self.free_at = self.free_at.saturating_add(transmission);
            engine.packets[last].next = id;
            return;
        }
        self.free_at = now + transmission;
        let rank = engine.rank;
        engine.arrive(Subject::of_host(host, id, rank));
    }

    /// The packet behind the one that reaches the switch now has followed it without a gap.
    #[inline(always)]
    fn follow<T: Topology>(arrived: Subject, engine: &mut Engine<T>) {
        let packet = &engine.packets[arrived.packet];
        if packet.next == NO_PACKET {
            return;
        }
        let rank = engine
            .ranks
            .sent(packet.class, engine.links.transmission(Line::Host, packet));
        engine.arrive_next(Subject::of_host(arrived.sender, packet.next, rank));
    }
}

/// Sends packets in the order in which it takes them, told when its line is free. In a network of
/// several switches that moment has its place among simultaneous events, so that it is an event.
#[derive(Clone, Default, Debug)]
pub(crate) struct QueueNic {
    waiting: PacketQueue,
    /// A packet is being serialised.
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
        engine.cross(Line::Host, Subject::of_host(host, packet, TieRank::FIRST));
    }
}
