//! Packets, where they are kept and how they queue, and the SACK blocks that acknowledgements refer
//! to.

use std::ops::{Index, IndexMut};

use crate::units::Time;

/// What a packet is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PacketKind {
    /// A data segment.
    Data,
    /// An acknowledgement of data.
    Ack,
    /// The first packet of the handshake (RFC 9293 §3.5).
    Syn,
    /// Its answer.
    SynAck,
    /// The third packet of the handshake.
    HandshakeAck,
}

/// How long a packet occupies a line, where that is one of the two durations that nearly all have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SizeClass {
    /// A full segment.
    Full,
    /// An acknowledgement.
    Ack,
    /// Any other size.
    Odd,
}

impl SizeClass {
    /// 0 or 1 for the common sizes.
    #[inline]
    pub(crate) fn common(self) -> Option<u8> {
        match self {
            SizeClass::Full => Some(0),
            SizeClass::Ack => Some(1),
            SizeClass::Odd => None,
        }
    }
}

/// A packet in flight: 32 bytes, which stay where they are from the sender to the receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// When the segment left the sender; an acknowledgement echoes it.
    pub(crate) stamp: Time,
    /// Index of the flow in start order.
    pub(crate) flow: u32,
    /// Data: index of the segment. Acknowledgement: the next segment expected.
    pub(crate) sequence: u32,
    /// SACK blocks of an acknowledgement, in the [`SackStore`].
    pub(crate) sack: SackHandle,
    /// The packet behind it in its [`PacketQueue`].
    pub(crate) next: PacketId,
    /// Bytes that count in the switch buffer.
    pub(crate) wire_bytes: u16,
    /// Its queue at the switch, which leads to its destination.
    pub(crate) queue: u16,
    /// What it is for.
    pub(crate) kind: PacketKind,
    /// How long it occupies a line.
    pub(crate) class: SizeClass,
    /// Sent before (an echo of its stamp is no valid RTT sample: Karn's rule, RFC 6298 §3).
    pub(crate) retransmission: bool,
    /// What the switch, or the receiver in an acknowledgement, says of congestion.
    pub(crate) marks: Marks,
}

/// Explicit congestion notification, two marks, and the sender's tag of its first window, in a byte.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Marks(u8);

impl Marks {
    const MARKED: u8 = 1;
    const CONGESTED: u8 = 2;
    const UNSCHEDULED: u8 = 4;

    /// An acknowledgement that echoes a mark, or not.
    #[inline]
    pub(crate) fn echo(marked: bool) -> Marks {
        Marks(u8::from(marked) * Marks::MARKED)
    }

    /// Data, sent before or after the first acknowledgement of data arrived.
    #[inline]
    pub(crate) fn tag(unscheduled: bool) -> Marks {
        Marks(u8::from(unscheduled) * Marks::UNSCHEDULED)
    }

    /// Sent before the flow's first acknowledgement of data arrived.
    #[inline]
    pub(crate) fn unscheduled(self) -> bool {
        self.0 & Marks::UNSCHEDULED != 0
    }

    /// The switch marks data.
    pub(crate) fn mark(&mut self) {
        self.0 |= Marks::MARKED;
    }

    /// The switch marks a packet without data.
    pub(crate) fn congest(&mut self) {
        self.0 |= Marks::CONGESTED;
    }

    /// Data: marked by the switch, Congestion Experienced. Acknowledgement: echoes such a mark
    /// (RFC 3168 §5, §6.1).
    #[inline]
    pub(crate) fn marked(self) -> bool {
        self.0 & Marks::MARKED != 0
    }

    /// A packet without data that the switch has marked, which only ns-3 allows.
    #[inline]
    pub(crate) fn congested(self) -> bool {
        self.0 & Marks::CONGESTED != 0
    }
}

impl Packet {
    /// Whether it carries SACK blocks.
    pub(crate) fn has_sack(&self) -> bool {
        self.sack != SackHandle::NONE
    }
}

/// Where a packet lies in the [`PacketStore`].
pub(crate) type PacketId = u32;

/// No packet.
pub(crate) const NO_PACKET: PacketId = PacketId::MAX;

/// All packets on their way.
///
/// Queues and links hand over four bytes, not the packet. The place that was vacated last is used
/// first, so that the store stays in the nearest cache.
#[derive(Clone, Debug)]
pub(crate) struct PacketStore {
    slots: Vec<Packet>,
    /// Vacant places, linked.
    vacant: PacketId,
    live: usize,
    /// When it joined its queue at the switch, where that is of interest.
    joined: Vec<Time>,
    /// The packet before it in its queue, where queues are linked both ways.
    previous: Vec<PacketId>,
    both_ways: bool,
}

impl Default for PacketStore {
    fn default() -> Self {
        PacketStore {
            slots: Vec::new(),
            vacant: NO_PACKET,
            live: 0,
            joined: Vec::new(),
            previous: Vec::new(),
            both_ways: false,
        }
    }
}

impl PacketStore {
    /// Complexity: O(1), amortised.
    #[inline]
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
                self.slots.push(packet);
                (self.slots.len() - 1) as PacketId
            }
        }
    }

    /// Complexity: O(1).
    #[inline]
    pub(crate) fn remove(&mut self, id: PacketId) {
        self.live -= 1;
        self.slots[id as usize].next = self.vacant;
        self.vacant = id;
    }

    #[inline]
    pub(crate) fn set_joined(&mut self, id: PacketId, now: Time) {
        if self.joined.len() < self.slots.len() {
            self.joined.resize(self.slots.capacity(), Time::ZERO);
        }
        self.joined[id as usize] = now;
    }

    /// When it joined its queue at the switch; `None` if that was not noted.
    #[inline]
    pub(crate) fn joined(&self, id: PacketId) -> Option<Time> {
        self.joined.get(id as usize).copied()
    }

    /// From now on packets can be taken from the tails of queues that were filled with
    /// [`append`](PacketQueue::append).
    pub(crate) fn link_both_ways(&mut self) {
        self.both_ways = true;
    }

    #[cold]
    fn set_previous(&mut self, id: PacketId, previous: PacketId) {
        self.previous.resize(self.slots.len(), NO_PACKET);
        self.previous[id as usize] = previous;
    }

    /// The packet before the last but one, and so on: the one in front of `id` in its queue, if
    /// `id` is not its head.
    pub(crate) fn previous(&self, id: PacketId) -> PacketId {
        self.previous[id as usize]
    }

    /// Packets on their way.
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

/// Packets in order of arrival, linked where they lie: a queue takes eight bytes, however long.
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

    /// Complexity: O(1).
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

    /// As [`push_back`](PacketQueue::push_back), linked both ways if the store was told so.
    #[inline]
    pub(crate) fn append(&mut self, packets: &mut PacketStore, id: PacketId) {
        if packets.both_ways {
            packets.set_previous(id, self.tail);
        }
        self.push_back(packets, id);
    }

    /// The first packet.
    pub(crate) fn head(self) -> Option<PacketId> {
        (!self.is_empty()).then_some(self.head)
    }

    /// The last packet.
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

    /// Complexity: O(1).
    #[inline]
    pub(crate) fn pop_front(&mut self, packets: &PacketStore) -> Option<PacketId> {
        if self.is_empty() {
            return None;
        }
        let first = self.head;
        self.head = packets[first].next;
        Some(first)
    }

    /// Wire bytes of all packets but the first ones. Complexity: O(packets).
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

/// Segments `[start, end)`.
pub(crate) type SackBlock = (u32, u32);

/// Blocks an acknowledgement can carry: three fit beside the timestamp option (RFC 2018 §3).
pub(crate) const MAX_SACK_BLOCKS: usize = 3;

/// Up to three blocks, the most recent first; empty ones are `(0, 0)`.
pub(crate) type SackBlocks = [SackBlock; MAX_SACK_BLOCKS];

/// Refers to an entry of the [`SackStore`], or to none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SackHandle(u32);

impl SackHandle {
    pub(crate) const NONE: SackHandle = SackHandle(u32::MAX);
}

/// SACK blocks of the acknowledgements in flight.
///
/// Few acknowledgements carry blocks, so packets hold a handle instead. Whoever consumes or drops
/// a packet releases its handle.
#[derive(Clone, Default, Debug)]
pub(crate) struct SackStore {
    blocks: Vec<SackBlocks>,
    free: Vec<u32>,
}

impl SackStore {
    pub(crate) fn insert(&mut self, blocks: SackBlocks) -> SackHandle {
        match self.free.pop() {
            Some(index) => {
                self.blocks[index as usize] = blocks;
                SackHandle(index)
            }
            None => {
                self.blocks.push(blocks);
                SackHandle((self.blocks.len() - 1) as u32)
            }
        }
    }

    /// The blocks behind a handle, which is released.
    #[inline]
    pub(crate) fn take(&mut self, handle: SackHandle) -> Option<SackBlocks> {
        if handle == SackHandle::NONE {
            return None;
        }
        self.free.push(handle.0);
        Some(self.blocks[handle.0 as usize])
    }

    /// Entries in use.
    pub(crate) fn live(&self) -> usize {
        self.blocks.len() - self.free.len()
    }
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
            stamp: Time::ZERO,
            flow: 0,
            sequence,
            sack: SackHandle::NONE,
            next: NO_PACKET,
            wire_bytes: 64,
            queue: 0,
            kind: PacketKind::Ack,
            class: SizeClass::Ack,
            retransmission: false,
            marks: Marks::default(),
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

    #[test]
    fn released_entries_are_used_again() {
        let mut store = SackStore::default();
        let first = store.insert([(1, 2), (0, 0), (0, 0)]);
        assert_eq!(store.take(first), Some([(1, 2), (0, 0), (0, 0)]));
        assert_eq!(store.live(), 0);
        store.insert([(3, 4), (0, 0), (0, 0)]);
        assert_eq!(store.blocks.len(), 1);
        assert_eq!(store.take(SackHandle::NONE), None);
    }
}
