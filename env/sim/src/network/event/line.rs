//! Events that fall due in the order in which they were scheduled.

use super::Due;
use crate::network::packet::{PacketId, SizeClass};
use crate::units::Time;

/// What an event of a line is about: a packet, and the host or port that sends it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in super::super) struct Subject {
    pub(in super::super) packet: PacketId,
    pub(in super::super) sender: u16,
    /// What made the host begin to send it.
    pub(in super::super) cause: Cause,
}

/// Rank of an event among simultaneous ones at a host: the longer ago it was scheduled, the
/// earlier it runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(in super::super) struct Cause(u16);

impl Cause {
    /// Scheduled longer ago than any delivery.
    pub(in super::super) const FIRST: Cause = Cause(0);
    /// Scheduled more lately than any delivery.
    pub(in super::super) const LAST: Cause = Cause(u16::MAX);
}

/// Ranks events at hosts.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Causes {
    delays: [Time; 4],
    /// A host has sent a packet of a common size.
    sent: [Cause; 2],
    /// A packet of a common size is delivered.
    delivered: [Cause; 2],
}

impl Causes {
    /// From the delays with which ends of transmission and deliveries are scheduled, by common
    /// size.
    pub(in super::super) fn new(sent: [Time; 2], delivered: [Time; 2]) -> Causes {
        let mut causes = Causes {
            delays: [sent[0], sent[1], delivered[0], delivered[1]],
            sent: Default::default(),
            delivered: Default::default(),
        };
        causes.sent = sent.map(|delay| causes.after(delay));
        causes.delivered = delivered.map(|delay| causes.after(delay));
        causes
    }

    /// Of an event that was scheduled with this delay.
    fn after(&self, delay: Time) -> Cause {
        let longer = self.delays.iter().filter(|&&known| known > delay).count();
        Cause(1 + longer as u16)
    }

    /// The end of a transmission.
    #[inline(always)]
    pub(in super::super) fn sent(&self, class: SizeClass, transmission: Time) -> Cause {
        match class.common() {
            Some(class) => self.sent[usize::from(class)],
            None => self.after(transmission),
        }
    }

    /// The delivery of a packet; that of an unusual size counts as an acknowledgement's.
    #[inline(always)]
    pub(in super::super) fn delivered(&self, class: SizeClass) -> Cause {
        self.delivered[usize::from(class.common().unwrap_or(1))]
    }
}

/// A queue of events in a buffer whose length is a power of two. Behind the last event lies one
/// that is due never, so that nobody asks whether the line is empty.
#[derive(Clone, Debug)]
pub(super) struct Line {
    slots: Vec<(Due, Subject)>,
    /// Events ever taken.
    head: usize,
    /// Events ever scheduled.
    tail: usize,
}

const END: (Due, Subject) = (
    Due::NEVER,
    Subject {
        packet: 0,
        sender: 0,
        cause: Cause::FIRST,
    },
);

impl Default for Line {
    fn default() -> Self {
        Line {
            slots: vec![END; 8],
            head: 0,
            tail: 0,
        }
    }
}

impl Line {
    /// Complexity: O(1), amortised.
    #[inline(always)]
    pub(super) fn push(&mut self, due: Due, subject: Subject) {
        debug_assert!(self.iter().last().is_none_or(|last| last.0 <= due));
        // One slot more for the end.
        if self.tail + 1 - self.head == self.slots.len() {
            self.grow();
        }
        let slots = self.slots.as_mut_slice();
        let mask = slots.len() - 1;
        slots[self.tail & mask] = (due, subject);
        self.tail += 1;
        slots[self.tail & mask].0 = Due::NEVER;
    }

    /// Takes the first event, which must have fallen due; returns its subject and when the next
    /// one is due.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> (Subject, Due) {
        debug_assert!(self.head < self.tail);
        let slots = self.slots.as_slice();
        let mask = slots.len() - 1;
        let subject = slots[self.head & mask].1;
        self.head += 1;
        (subject, slots[self.head & mask].0)
    }

    /// The subject of the first event.
    #[inline]
    pub(super) fn front(&self) -> Subject {
        self.slots[self.head & (self.slots.len() - 1)].1
    }

    fn iter(&self) -> impl Iterator<Item = (Due, Subject)> {
        let mask = self.slots.len() - 1;
        (self.head..self.tail).map(move |index| self.slots[index & mask])
    }

    pub(super) fn subjects(&self) -> impl Iterator<Item = Subject> {
        self.iter().map(|entry| entry.1)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut slots = Vec::with_capacity(2 * self.slots.len());
        slots.extend(self.iter());
        slots.resize(2 * self.slots.len(), END);
        self.slots = slots;
        (self.head, self.tail) = (0, self.tail - self.head);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_grows_and_keeps_its_order() {
        let mut line = Line::default();
        let (mut pushed, mut popped) = (0, 0);
        for round in 1..20 {
            for _ in 0..round {
                let subject = Subject {
                    packet: pushed as u32,
                    ..Subject::default()
                };
                line.push(Due::new(Time(pushed), 0), subject);
                pushed += 1;
            }
            while pushed - popped > round / 2 {
                let (subject, next) = line.pop();
                assert_eq!(u64::from(subject.packet), popped);
                popped += 1;
                let expected = match pushed - popped {
                    0 => Due::NEVER,
                    _ => Due::new(Time(popped), 0),
                };
                assert_eq!(next, expected);
            }
            assert_eq!(line.subjects().count() as u64, pushed - popped);
        }
    }
}
