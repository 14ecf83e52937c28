//! Events that fall due in the order in which they were scheduled.

use super::event::{EventKey, PacketEvent};

/// A queue of events in a ring buffer whose length is a power of two. A sentinel that is never due
/// follows the last event, so that no check for an empty queue is needed.
#[derive(Clone, Debug)]
pub(super) struct FixedDelayQueue {
    slots: Vec<(EventKey, PacketEvent)>,
    /// Number of events ever taken.
    head: usize,
    /// Number of events ever scheduled.
    tail: usize,
}

impl Default for FixedDelayQueue {
    fn default() -> Self {
        FixedDelayQueue {
            slots: vec![(EventKey::NEVER, PacketEvent::default()); 8],
            head: 0,
            tail: 0,
        }
    }
}

impl FixedDelayQueue {
    /// Adds an event at the end. Complexity: O(1), amortised.
    #[inline(always)]
    pub(super) fn push(&mut self, due: EventKey, event: PacketEvent) {
        debug_assert!(self.iter().last().is_none_or(|last| last.0 <= due));
        // The sentinel needs one more slot.
        if self.tail + 1 - self.head == self.slots.len() {
            self.grow();
        }
        let slots = self.slots.as_mut_slice();
        let mask = slots.len() - 1;
        slots[self.tail & mask] = (due, event);
        self.tail += 1;
        slots[self.tail & mask].0 = EventKey::NEVER;
    }

    /// Takes the first event, which must have fallen due; returns its packet and when the next
    /// one is due.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> (PacketEvent, EventKey) {
        debug_assert!(self.head < self.tail);
        let slots = self.slots.as_slice();
        let mask = slots.len() - 1;
        let event = slots[self.head & mask].1;
        self.head += 1;
        (event, slots[self.head & mask].0)
    }

    /// Returns the packet of the first event.
    #[inline]
    pub(super) fn front(&self) -> PacketEvent {
        self.slots[self.head & (self.slots.len() - 1)].1
    }

    fn iter(&self) -> impl Iterator<Item = (EventKey, PacketEvent)> {
        let mask = self.slots.len() - 1;
        (self.head..self.tail).map(move |index| self.slots[index & mask])
    }

    pub(super) fn subjects(&self) -> impl Iterator<Item = PacketEvent> {
        self.iter().map(|entry| entry.1)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut slots = Vec::with_capacity(2 * self.slots.len());
        slots.extend(self.iter());
        slots.resize(
            2 * self.slots.len(),
            (EventKey::NEVER, PacketEvent::default()),
        );
        self.slots = slots;
        (self.head, self.tail) = (0, self.tail - self.head);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::clock::EventTime;
    use crate::engine::event::TieBreak;

    #[test]
    fn a_line_grows_and_keeps_its_order() {
        let mut line = FixedDelayQueue::default();
        let (mut pushed, mut popped) = (0, 0);
        for round in 1..20 {
            for _ in 0..round {
                let event = PacketEvent::of_host(0, pushed as u32, TieBreak::FIRST);
                line.push(EventKey::new(EventTime(pushed), 0), event);
                pushed += 1;
            }
            while pushed - popped > round / 2 {
                let (event, next) = line.pop();
                assert_eq!(u64::from(event.packet), popped);
                popped += 1;
                let expected = match pushed - popped {
                    0 => EventKey::NEVER,
                    _ => EventKey::new(EventTime(popped), 0),
                };
                assert_eq!(next, expected);
            }
            assert_eq!(line.subjects().count() as u64, pushed - popped);
        }
    }
}
