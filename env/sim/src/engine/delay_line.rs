//! Delay lines: packets in flight over links of one kind, with the times at which their senders become
//! free and at which they arrive.

use super::event::PacketEvent;

/// Due time of an event, and its place among simultaneous ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct FabricKey {
    pub(super) time: u64,
    /// Number of the event. The bit above it is clear if the event was scheduled long before. The four bits
    /// below it tell where the event waits.
    pub(super) order: u64,
}

impl FabricKey {
    /// Later than all events, but far enough from the end of time that a delay can be added.
    pub(super) const NEVER: FabricKey = FabricKey {
        time: u64::MAX / 2,
        order: 0,
    };

    /// Bit that orders an event behind all events that were scheduled long before.
    pub(super) const RECENT: u64 = 1 << 63;

    /// Difference between one event number and the next.
    pub(super) const NUMBER: u64 = 1 << 4;

    /// Returns the earlier of two moments, without a branch.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the parts of a key are 64 bits"
    )]
    pub(super) fn earlier(self, other: FabricKey) -> FabricKey {
        let key = |key: FabricKey| u128::from(key.time) << 64 | u128::from(key.order);
        let first = key(self).min(key(other));
        FabricKey {
            time: (first >> 64) as u64,
            order: first as u64,
        }
    }

    /// Adds a delay, and an offset to the place among simultaneous events.
    #[inline(always)]
    pub(super) fn after(self, delay: FabricKey) -> FabricKey {
        FabricKey {
            time: self.time + delay.time,
            order: self.order + delay.order,
        }
    }
}

/// Reader of a [`DelayLine`] that takes a packet when it has left its sender.
pub(super) const LEAVING: usize = 0;
/// Reader of a [`DelayLine`] that takes a packet when it has arrived.
pub(super) const ARRIVING: usize = 1;

/// A delay line: packets of one size on links of one kind, in the order in which they were sent. This ring
/// buffer is read twice, when a packet has left its sender and when it has arrived. A sentinel that never
/// leaves follows the last packet, so that no check for an empty buffer is needed.
#[derive(Clone, Debug)]
pub(super) struct DelayLine {
    /// Ring buffer; its length is a power of two.
    slots: Vec<(FabricKey, PacketEvent)>,
    /// Number of packets that have ever left their senders, and that have ever arrived.
    read: [usize; 2],
    /// Number of packets that were ever sent.
    sent: usize,
}

impl Default for DelayLine {
    fn default() -> Self {
        DelayLine {
            slots: vec![(FabricKey::NEVER, PacketEvent::default()); 8],
            read: [0; 2],
            sent: 0,
        }
    }
}

impl DelayLine {
    /// Adds a packet that a sender begins to send; the sender is free at `free`. Complexity: O(1),
    /// amortised.
    #[inline(always)]
    pub(super) fn push(&mut self, free: FabricKey, event: PacketEvent) {
        debug_assert!(
            self.events(LEAVING)
                .last()
                .is_none_or(|last| last.0 <= free)
        );
        // The sentinel needs one more slot.
        if self.sent + 1 - self.read[ARRIVING] == self.slots.len() {
            self.grow();
        }
        let slots = self.slots.as_mut_slice();
        let mask = slots.len() - 1;
        slots[self.sent & mask] = (free, event);
        self.sent += 1;
        slots[self.sent & mask].0 = FabricKey::NEVER;
    }

    /// Takes the next packet for a reader. Also returns when the packet behind it leaves, or has left, its
    /// sender.
    #[inline(always)]
    pub(super) fn take(&mut self, reader: usize) -> (PacketEvent, FabricKey) {
        let read = &mut self.read[reader];
        debug_assert!(*read < self.sent);
        let slots = self.slots.as_slice();
        let mask = slots.len() - 1;
        let event = slots[*read & mask].1;
        *read += 1;
        (event, slots[*read & mask].0)
    }

    /// Returns the packets that have not left their senders.
    pub(super) fn being_sent(&self) -> impl Iterator<Item = PacketEvent> {
        self.events(LEAVING).map(|entry| entry.1)
    }

    /// Returns the packets that have not arrived.
    pub(super) fn crossing(&self) -> impl Iterator<Item = PacketEvent> {
        self.events(ARRIVING).map(|entry| entry.1)
    }

    /// Returns the packets that a reader has not taken yet.
    fn events(&self, reader: usize) -> impl Iterator<Item = (FabricKey, PacketEvent)> {
        let mask = self.slots.len() - 1;
        (self.read[reader]..self.sent).map(move |index| self.slots[index & mask])
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut slots = Vec::with_capacity(2 * self.slots.len());
        slots.extend(self.events(ARRIVING));
        slots.resize(
            2 * self.slots.len(),
            (FabricKey::NEVER, PacketEvent::default()),
        );
        self.slots = slots;
        let arrived = self.read[ARRIVING];
        self.read[LEAVING] -= arrived;
        self.sent -= arrived;
        self.read[ARRIVING] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::packet::PacketId;
    use crate::engine::topology::{Neighbour, SwitchId};
    use crate::units::Duration;

    const PROPAGATION: Duration = Duration(1_000);

    fn key(time: u64) -> FabricKey {
        FabricKey {
            time,
            order: FabricKey::RECENT | time << 5,
        }
    }

    fn event(packet: u64) -> PacketEvent {
        PacketEvent::of_line(SwitchId(1), packet as PacketId, Neighbour::Host(2))
    }

    /// Many packets leave before the first one arrives, and the ring grows and wraps meanwhile.
    #[test]
    fn a_lane_is_read_twice_and_keeps_its_order() {
        let mut lane = DelayLine::default();
        let [mut sent, mut left, mut arrived] = [0u64; 3];
        let next = |done: u64, sent| match done < sent {
            true => key(done),
            false => FabricKey::NEVER,
        };
        for round in 1..30 {
            for _ in 0..round {
                lane.push(key(sent), event(sent));
                sent += 1;
            }
            while sent - left > round / 3 {
                let (taken, behind) = lane.take(LEAVING);
                assert_eq!(taken, event(left));
                left += 1;
                assert_eq!(behind, next(left, sent));
            }
            while left - arrived > round / 2 {
                let (taken, behind) = lane.take(ARRIVING);
                assert_eq!(taken, event(arrived));
                arrived += 1;
                assert_eq!(behind, next(arrived, sent));
            }
            assert_eq!(lane.being_sent().count() as u64, sent - left);
            assert_eq!(lane.crossing().count() as u64, sent - arrived);
        }
    }

    #[test]
    fn what_never_leaves_never_arrives() {
        let way = FabricKey {
            time: PROPAGATION.0,
            order: FabricKey::NUMBER + 4,
        };
        let arrival = FabricKey::NEVER.after(way);
        assert!(arrival > FabricKey::NEVER && arrival.time < u64::MAX);
        let first = key(7).after(way);
        assert_eq!((first.time, first.order - key(7).order), (1_007, 20));
        assert!(first < key(1_008) && first > key(1_006));
    }
}
