//! Packets, the store that holds them, and their queues.

use std::ops::{Index, IndexMut};

pub(crate) use super::ids::NO_PACKET;
pub use super::ids::PacketId;
use super::telemetry::{RecordStore, RecordsHandle};
use crate::units::Instant;

/// Kind of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PacketKind {
    /// A data segment.
    Data,
    /// An acknowledgement of data.
    Ack,
    /// The first packet of the handshake (RFC 9293 §3.5).
    Syn,
    /// The answer to a SYN.
    SynAck,
    /// The third packet of the handshake.
    HandshakeAck,
    /// A pause frame (IEEE 802.1Qbb), from a switch to its neighbour. It belongs to no flow; its
    /// sequence number is a [`PauseNote`].
    Pause,
}

/// Content of a pause frame: the priority, and the duration in units of 512 bit times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PauseNote {
    pub(crate) priority: u8,
    /// Duration of the pause; 0 resumes.
    pub(crate) quanta: u16,
}

impl PauseNote {
    /// Encodes the note as the sequence number of a packet.
    pub(crate) fn to_sequence(self) -> u32 {
        u32::from(self.priority) << 16 | u32::from(self.quanta)
    }

    /// Decodes the note from the sequence number of a packet.
    #[expect(clippy::cast_possible_truncation, reason = "its parts were put there")]
    pub(crate) fn of_sequence(sequence: u32) -> PauseNote {
        PauseNote {
            priority: (sequence >> 16) as u8,
            quanta: sequence as u16,
        }
    }
}

/// Direction of a packet, by the end of the flow that sends it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketDirection {
    /// From the sender of data.
    Forward,
    /// From the receiver of data.
    Reverse,
}

impl PacketKind {
    #[inline]
    pub(crate) fn direction(self) -> PacketDirection {
        match self {
            PacketKind::Data | PacketKind::Syn | PacketKind::HandshakeAck | PacketKind::Pause => {
                PacketDirection::Forward
            }
            PacketKind::Ack | PacketKind::SynAck => PacketDirection::Reverse,
        }
    }
}

/// Size class of a packet: one of the two sizes that nearly all packets have, or any other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SizeClass {
    /// A full segment.
    Full = 0,
    /// An acknowledgement.
    Ack = 1,
    /// Any other size. The number is beyond those of all [delay lines](super::link::LinkKind::delay_line).
    Odd = 4,
}

impl SizeClass {
    /// Returns 0 or 1 for the common sizes; `None` for others.
    #[inline]
    pub(crate) fn common(self) -> Option<u8> {
        match self {
            SizeClass::Full => Some(0),
            SizeClass::Ack => Some(1),
            SizeClass::Odd => None,
        }
    }
}

/// A packet in flight: 32 bytes, which are not moved between the sender and the receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Time at which the segment left the sender; an acknowledgement echoes it.
    pub(crate) stamp: Instant,
    /// Index of the flow in start order.
    pub(crate) flow: u32,
    /// Data: index of the segment. Acknowledgement: the next segment expected.
    pub(crate) sequence: u32,
    /// SACK blocks of an acknowledgement.
    pub(crate) sack: SackHandle,
    /// The packet behind this one in its [`PacketQueue`].
    pub(crate) next: PacketId,
    /// Bytes that count in the switch buffer.
    pub(crate) wire_bytes: u16,
    /// Queue at the switch that the packet is at, or on its way to.
    pub(crate) queue: u16,
    /// Kind of the packet.
    pub(crate) kind: PacketKind,
    /// Size class, which determines the transmission time.
    pub(crate) class: SizeClass,
    /// True if the segment was sent before (an echo of its stamp is no valid RTT sample: Karn's rule, RFC
    /// 6298 §3).
    pub(crate) retransmission: bool,
    /// Congestion marks set by a switch or echoed by the receiver, and other flags.
    pub(crate) flags: Flags,
}

/// Flags of a packet in a byte: two congestion marks (ECN) and refusal of marks, the sender's tag of its
/// first window, presence of telemetry, the control class, and negative acknowledgements.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Flags(u8);

impl Flags {
    const MARKED: u8 = 1;
    const CONGESTED: u8 = 2;
    const UNSCHEDULED: u8 = 4;
    const RECORDS: u8 = 8;
    const NOT_ECT: u8 = 16;
    const CONTROL: u8 = 32;
    const NACK: u8 = 64;

    /// Returns the flags of an acknowledgement, which echoes a mark if `marked`.
    #[inline]
    pub(crate) fn echo(marked: bool) -> Flags {
        Flags(u8::from(marked) * Flags::MARKED)
    }

    /// Returns the flags of a data packet, tagged if `unscheduled`.
    #[inline]
    pub(crate) fn tag(unscheduled: bool) -> Flags {
        Flags::default().with_tag(unscheduled)
    }

    /// Adds the tag of [unscheduled](Flags::unscheduled) packets if `unscheduled`.
    #[inline]
    pub(crate) fn with_tag(self, unscheduled: bool) -> Flags {
        Flags(self.0 | (u8::from(unscheduled) * Flags::UNSCHEDULED))
    }

    /// Sets or clears the tag of [unscheduled](Flags::unscheduled) packets.
    pub(crate) fn set_tag(&mut self, unscheduled: bool) {
        *self = Flags(self.0 & !Flags::UNSCHEDULED).with_tag(unscheduled);
    }

    /// Returns true if the packet was sent before the flow can have received feedback from the network, as
    /// the scenario's `unscheduled` defines it.
    #[inline]
    pub(crate) fn unscheduled(self) -> bool {
        self.0 & Flags::UNSCHEDULED != 0
    }

    /// Returns true if the packet carries telemetry records, which its store holds.
    #[inline]
    pub(crate) fn carries_records(self) -> bool {
        self.0 & Flags::RECORDS != 0
    }

    /// Adds the flag of the control class if `control`.
    #[inline]
    pub(crate) fn with_control(self, control: bool) -> Flags {
        Flags(self.0 | (u8::from(control) * Flags::CONTROL))
    }

    /// Returns true if the packet belongs to the control class, which is served before data.
    #[inline]
    pub(crate) fn is_control(self) -> bool {
        self.0 & Flags::CONTROL != 0
    }

    /// Adds the flag of a negative acknowledgement if `nack`.
    #[inline]
    pub(crate) fn with_nack(self, nack: bool) -> Flags {
        Flags(self.0 | (u8::from(nack) * Flags::NACK))
    }

    /// Returns true for a negative acknowledgement of go-back-N, which says from where to send again.
    #[inline]
    pub(crate) fn is_nack(self) -> bool {
        self.0 & Flags::NACK != 0
    }

    /// Returns the union of these flags and others.
    #[inline]
    pub(crate) fn and(self, others: Flags) -> Flags {
        Flags(self.0 | others.0)
    }

    /// Forbids marks, because the sender does not respond to them (Not-ECT, RFC 3168 §5).
    pub(crate) fn refuse_marks(&mut self) {
        self.0 |= Flags::NOT_ECT;
    }

    /// Returns true if switches may mark the packet.
    pub(crate) fn accepts_marks(self) -> bool {
        self.0 & Flags::NOT_ECT == 0
    }

    /// Marks a data packet, at a switch.
    pub(crate) fn mark(&mut self) {
        self.0 |= Flags::MARKED;
    }

    /// Marks a packet without data, at a switch.
    pub(crate) fn congest(&mut self) {
        self.0 |= Flags::CONGESTED;
    }

    /// Returns true if a switch has marked the data packet (Congestion Experienced), or if the
    /// acknowledgement echoes such a mark (RFC 3168 §5, §6.1).
    #[inline]
    pub(crate) fn marked(self) -> bool {
        self.0 & Flags::MARKED != 0
    }

    /// Returns true if a switch has marked a packet without data, which only ns-3 allows.
    #[inline]
    pub(crate) fn congested(self) -> bool {
        self.0 & Flags::CONGESTED != 0
    }
}

impl Packet {
    /// Creates a packet of `flow`, of a common or an odd size. It is no retransmission, carries no SACK
    /// blocks and has segment number 0.
    #[inline(always)]
    pub(crate) fn new(
        kind: PacketKind,
        flow: u32,
        queue: u16,
        (wire_bytes, class): (u16, SizeClass),
        stamp: Instant,
    ) -> Packet {
        Packet {
            stamp,
            flow,
            sequence: 0,
            sack: SackHandle::NONE,
            next: NO_PACKET,
            wire_bytes,
            queue,
            kind,
            class,
            retransmission: false,
            flags: Flags::default(),
        }
    }

    /// Returns true if the packet carries SACK blocks.
    pub(crate) fn has_sack(&self) -> bool {
        self.sack != SackHandle::NONE
    }
}

/// All packets in flight.
///
/// Queues and links hand over a number of four bytes, not the packet. The place that was vacated last is
/// used first, so that the store stays in the nearest cache.
#[derive(Clone, Debug)]
pub(crate) struct PacketStore {
    slots: Vec<Packet>,
    /// First of the vacant places, which are linked.
    vacant: PacketId,
    live: usize,
    /// By packet, the packet before it in its queue, if queues are linked both ways.
    previous: Vec<PacketId>,
    both_ways: bool,
    /// By packet, the port by which it arrived at its current switch, if that is recorded.
    ingress_port: Vec<u16>,
    /// Telemetry records that packets carry.
    pub(crate) records: RecordStore,
}

impl Default for PacketStore {
    fn default() -> Self {
        PacketStore {
            slots: Vec::new(),
            vacant: NO_PACKET,
            live: 0,
            previous: Vec::new(),
            both_ways: false,
            ingress_port: Vec::new(),
            records: RecordStore::default(),
        }
    }
}

impl PacketStore {
    /// Adds a packet and returns its number. Complexity: O(1), amortised.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "2^32 packets would take 128 GiB; a debug build checks"
    )]
    pub(crate) fn insert(&mut self, packet: Packet) -> PacketId {
        self.live += 1;
        let id = self.vacant;
        match self.slots.get_mut(id as usize) {
            Some(slot) => {
                self.vacant = slot.next;
                *slot = packet;
                id
            }
            None => {
                debug_assert!(self.slots.len() < NO_PACKET as usize);
                self.slots.push(packet);
                (self.slots.len() - 1) as PacketId
            }
        }
    }

    /// Removes a packet. Complexity: O(1).
    #[inline]
    pub(crate) fn remove(&mut self, id: PacketId) {
        self.live -= 1;
        self.slots[id as usize].next = self.vacant;
        self.vacant = id;
    }

    /// Attaches telemetry records to the packet.
    pub(crate) fn carry(&mut self, id: PacketId, records: RecordsHandle) {
        self.slots[id as usize].flags.0 |= Flags::RECORDS;
        self.records.give(id, records);
    }

    /// Links queues both ways from now on, so that packets can be taken from the tails of queues that were
    /// filled with [`append`](PacketQueue::append).
    pub(crate) fn link_both_ways(&mut self) {
        self.both_ways = true;
    }

    #[cold]
    fn set_previous(&mut self, id: PacketId, previous: PacketId) {
        self.previous.resize(self.slots.len(), NO_PACKET);
        self.previous[id as usize] = previous;
    }

    /// Records the port by which the packet has arrived at a switch.
    pub(crate) fn set_came_by(&mut self, id: PacketId, port: u16) {
        if self.ingress_port.len() < self.slots.len() {
            self.ingress_port.resize(self.slots.len(), 0);
        }
        self.ingress_port[id as usize] = port;
    }

    /// Returns the port by which the packet has arrived at its current switch.
    ///
    /// # Panics
    /// When it was never [recorded](PacketStore::set_came_by) for any packet.
    pub(crate) fn ingress_port(&self, id: PacketId) -> usize {
        usize::from(self.ingress_port[id as usize])
    }

    /// Returns the packet in front of `id` in its queue, which is linked both ways, if `id` is not the head.
    pub(crate) fn previous(&self, id: PacketId) -> PacketId {
        self.previous[id as usize]
    }

    /// Returns the number of packets in flight.
    pub(crate) fn live(&self) -> usize {
        self.live
    }
}

impl Index<PacketId> for PacketStore {
    type Output = Packet;

    #[inline]
    fn index(&self, id: PacketId) -> &Packet {
        &self.slots[id as usize]
    }
}

impl IndexMut<PacketId> for PacketStore {
    #[inline]
    fn index_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.slots[id as usize]
    }
}

/// Packets in order of arrival, linked in the store: a queue takes eight bytes, however long it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketQueue {
    head: PacketId,
    tail: PacketId,
}

impl Default for PacketQueue {
    fn default() -> Self {
        PacketQueue {
            head: NO_PACKET,
            tail: NO_PACKET,
        }
    }
}

impl PacketQueue {
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.head == NO_PACKET
    }

    /// Returns true if the queue has no packet or one.
    #[inline]
    pub(crate) fn has_at_most_one(self) -> bool {
        self.is_empty() || self.head == self.tail
    }

    /// Adds a packet at the tail. Complexity: O(1).
    #[inline]
    pub(crate) fn push_back(&mut self, packets: &mut PacketStore, id: PacketId) {
        packets[id].next = NO_PACKET;
        if self.is_empty() {
            self.head = id;
        } else {
            packets[self.tail].next = id;
        }
        self.tail = id;
    }

    /// Like [`push_back`](PacketQueue::push_back), but links both ways if the store is set to do so.
    #[inline]
    pub(crate) fn append(&mut self, packets: &mut PacketStore, id: PacketId) {
        if packets.both_ways {
            packets.set_previous(id, self.tail);
        }
        self.push_back(packets, id);
    }

    /// Returns the first packet.
    pub(crate) fn head(self) -> Option<PacketId> {
        (!self.is_empty()).then_some(self.head)
    }

    /// Returns the last packet.
    pub(crate) fn tail(self) -> Option<PacketId> {
        (!self.is_empty()).then_some(self.tail)
    }

    /// Takes the last packet of a queue that is linked both ways. Complexity: O(1).
    pub(crate) fn pop_back(&mut self, packets: &mut PacketStore) -> Option<PacketId> {
        let last = self.tail()?;
        if last == self.head {
            *self = PacketQueue::default();
        } else {
            self.tail = packets.previous(last);
            packets[self.tail].next = NO_PACKET;
        }
        Some(last)
    }

    /// Takes the first packet. Complexity: O(1).
    #[inline]
    pub(crate) fn pop_front(&mut self, packets: &PacketStore) -> Option<PacketId> {
        if self.is_empty() {
            return None;
        }
        let first = self.head;
        self.head = packets[first].next;
        Some(first)
    }

    /// Returns the wire bytes of all packets except the first `skipped`. Complexity: O(packets).
    pub(crate) fn bytes(self, packets: &PacketStore, mut skipped: usize) -> u64 {
        let (mut bytes, mut at) = (0, self.head);
        while at != NO_PACKET {
            let packet = &packets[at];
            if skipped == 0 {
                bytes += u64::from(packet.wire_bytes);
            }
            skipped = skipped.saturating_sub(1);
            at = packet.next;
        }
        bytes
    }

    pub(crate) fn iter(self, packets: &PacketStore) -> impl Iterator<Item = PacketId> {
        let some = |id| (id != NO_PACKET).then_some(id);
        std::iter::successors(some(self.head), move |&id| some(packets[id].next))
    }
}

/// Handle of the SACK blocks of an acknowledgement, or of none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SackHandle(pub(crate) u32);

impl SackHandle {
    pub(crate) const NONE: SackHandle = SackHandle(u32::MAX);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_stay_small() {
        assert_eq!(size_of::<Packet>(), 32);
    }

    #[test]
    fn queues_share_a_store_that_uses_places_again() {
        let packet = |sequence| Packet {
            sequence,
            ..Packet::new(PacketKind::Ack, 0, 0, (64, SizeClass::Ack), Instant::ZERO)
        };
        let mut packets = PacketStore::default();
        let mut queues = [PacketQueue::default(); 2];
        for sequence in 0..10 {
            let id = packets.insert(packet(sequence));
            queues[sequence as usize % 2].push_back(&mut packets, id);
        }
        assert_eq!(packets.live(), 10);
        for (parity, queue) in queues.iter_mut().enumerate() {
            assert_eq!(queue.iter(&packets).count(), 5);
            assert_eq!(queue.bytes(&packets, 0), 5 * 64);
            assert_eq!(queue.bytes(&packets, 2), 3 * 64);
            for step in 0..5 {
                let id = queue.pop_front(&packets).unwrap();
                assert_eq!(packets[id].sequence as usize, 2 * step + parity);
                packets.remove(id);
            }
            assert!(queue.is_empty() && queue.pop_front(&packets).is_none());
        }
        packets.insert(packet(10));
        assert_eq!((packets.live(), packets.slots.len()), (1, 10));
    }
}
