//! Packets on their way over lines of one kind: when their senders are free, and when they arrive.

use super::event::Subject;

/// When an event is due, and its place among simultaneous ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Moment {
    pub(super) time: u64,
    /// Number of the event, behind a bit that is not set for what was scheduled long before, and
    /// before four that tell where it waits.
    pub(super) order: u64,
}

impl Moment {
    /// After all events; so far from the end of time that a delay can be added.
    pub(super) const NEVER: Moment = Moment {
        time: u64::MAX / 2,
        order: 0,
    };

    /// Behind all that was scheduled long before.
    pub(super) const RECENT: u64 = 1 << 63;

    /// From one number to the next.
    pub(super) const NUMBER: u64 = 1 << 4;

    /// The earlier of two, found without a branch.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the parts of a key are 64 bits"
    )]
    pub(super) fn earlier(self, other: Moment) -> Moment {
        let key = |moment: Moment| u128::from(moment.time) << 64 | u128::from(moment.order);
        let first = key(self).min(key(other));
        Moment {
            time: (first >> 64) as u64,
            order: first as u64,
        }
    }

    /// So much later, and so much further back among simultaneous events.
    #[inline(always)]
    pub(super) fn after(self, delay: Moment) -> Moment {
        Moment {
            time: self.time + delay.time,
            order: self.order + delay.order,
        }
    }
}

/// Reads a [`Lane`] when a packet has left its sender.
pub(super) const LEAVING: usize = 0;
/// Reads it when the packet has arrived.
pub(super) const ARRIVING: usize = 1;

/// Packets of one size on lines of one kind, in the order in which they were sent: a ring buffer
/// that is read twice, when a packet has left its sender and when it has arrived. Behind the last
/// packet lies one that leaves never, so that nobody asks whether the lane is empty.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    /// As many as a power of two.
    slots: Vec<(Moment, Subject)>,
    /// Packets that have ever left their senders, and that have ever arrived.
    read: [usize; 2],
    /// Packets that were ever sent.
    sent: usize,
}

impl Default for Lane {
    fn default() -> Self {
        Lane {
            slots: vec![(Moment::NEVER, Subject::default()); 8],
            read: [0; 2],
            sent: 0,
        }
    }
}

impl Lane {
    /// A sender begins to send a packet and is free at that moment. Complexity: O(1), amortised.
    #[inline(always)]
    pub(super) fn push(&mut self, free: Moment, subject: Subject) {
        debug_assert!(
            self.subjects(LEAVING)
                .last()
                .is_none_or(|last| last.0 <= free)
        );
        // One slot more for the end.
        if self.sent + 1 - self.read[ARRIVING] == self.slots.len() {
            self.grow();
        }
        let slots = self.slots.as_mut_slice();
        let mask = slots.len() - 1;
        slots[self.sent & mask] = (free, subject);
        self.sent += 1;
        slots[self.sent & mask].0 = Moment::NEVER;
    }

    /// The packet that is next for a reader, and when the one behind it leaves or has left its
    /// sender.
    #[inline(always)]
    pub(super) fn take(&mut self, reader: usize) -> (Subject, Moment) {
        let read = &mut self.read[reader];
        debug_assert!(*read < self.sent);
        let slots = self.slots.as_slice();
        let mask = slots.len() - 1;
        let subject = slots[*read & mask].1;
        *read += 1;
        (subject, slots[*read & mask].0)
    }

    /// Packets that their senders are sending.
    pub(super) fn being_sent(&self) -> impl Iterator<Item = Subject> {
        self.subjects(LEAVING).map(|entry| entry.1)
    }

    /// Packets that have not arrived.
    pub(super) fn crossing(&self) -> impl Iterator<Item = Subject> {
        self.subjects(ARRIVING).map(|entry| entry.1)
    }

    /// What lies ahead of a reader.
    fn subjects(&self, reader: usize) -> impl Iterator<Item = (Moment, Subject)> {
        let mask = self.slots.len() - 1;
        (self.read[reader]..self.sent).map(move |index| self.slots[index & mask])
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut slots = Vec::with_capacity(2 * self.slots.len());
        slots.extend(self.subjects(ARRIVING));
        slots.resize(2 * self.slots.len(), (Moment::NEVER, Subject::default()));
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
    use crate::units::Time;

    const PROPAGATION: Time = Time(1_000);

    fn moment(time: u64) -> Moment {
        Moment {
            time,
            order: Moment::RECENT | time << 5,
        }
    }

    fn subject(packet: u64) -> Subject {
        Subject::of_line(SwitchId(1), packet as PacketId, Neighbour::Host(2))
    }

    /// Many packets leave before the first one arrives, and the ring grows and turns meanwhile.
    #[test]
    fn a_lane_is_read_twice_and_keeps_its_order() {
        let mut lane = Lane::default();
        let [mut sent, mut left, mut arrived] = [0u64; 3];
        let next = |done: u64, sent| match done < sent {
            true => moment(done),
            false => Moment::NEVER,
        };
        for round in 1..30 {
            for _ in 0..round {
                lane.push(moment(sent), subject(sent));
                sent += 1;
            }
            while sent - left > round / 3 {
                let (taken, behind) = lane.take(LEAVING);
                assert_eq!(taken, subject(left));
                left += 1;
                assert_eq!(behind, next(left, sent));
            }
            while left - arrived > round / 2 {
                let (taken, behind) = lane.take(ARRIVING);
                assert_eq!(taken, subject(arrived));
                arrived += 1;
                assert_eq!(behind, next(arrived, sent));
            }
            assert_eq!(lane.being_sent().count() as u64, sent - left);
            assert_eq!(lane.crossing().count() as u64, sent - arrived);
        }
    }

    #[test]
    fn what_never_leaves_never_arrives() {
        let way = Moment {
            time: PROPAGATION.0,
            order: Moment::NUMBER + 4,
        };
        let arrival = Moment::NEVER.after(way);
        assert!(arrival > Moment::NEVER && arrival.time < u64::MAX);
        let first = moment(7).after(way);
        assert_eq!((first.time, first.order - moment(7).order), (1_007, 20));
        assert!(first < moment(1_008) && first > moment(1_006));
    }
}
