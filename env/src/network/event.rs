//! The event queue: first-in-first-out lines for constant delays, a heap for the rest.
//!
//! Events that are scheduled a constant time ahead fall due in the order in which they were
//! scheduled, so they need no heap: a packet of a given size leaves a line of a given rate after a
//! constant time, and a bit crosses a link in a constant time. Each such delay has its own
//! [`Line`]; the next event is the least of a handful of line heads. The heap holds only timers
//! and packets of unusual size.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::units::Time;

/// When an event is due: time first, then the order of scheduling, so that simultaneous events
/// run in a stable order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Due(u128);

impl Due {
    pub(crate) const NEVER: Due = Due(u128::MAX);

    #[inline]
    pub(crate) fn new(time: Time, sequence: u64) -> Due {
        Due((u128::from(time.0) << 64) | u128::from(sequence))
    }

    #[inline]
    pub(crate) fn time(self) -> Time {
        Time((self.0 >> 64) as u64)
    }
}

/// Events in the order in which they fall due.
///
/// Complexity: scheduling and taking are O(1).
#[derive(Clone, Debug)]
pub(crate) struct Line<T> {
    entries: VecDeque<(Due, T)>,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Line {
            entries: VecDeque::new(),
        }
    }
}

impl<T: Copy> Line<T> {
    #[inline]
    pub(crate) fn push(&mut self, due: Due, event: T) {
        debug_assert!(self.entries.back().is_none_or(|last| last.0 < due));
        self.entries.push_back((due, event));
    }

    #[inline]
    pub(crate) fn head(&self) -> Due {
        self.entries.front().map_or(Due::NEVER, |entry| entry.0)
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Due, T)> {
        self.entries.pop_front()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|entry| &entry.1)
    }
}

/// Events at arbitrary times.
///
/// Complexity: scheduling and taking are O(log n) in the number of pending events.
#[derive(Clone, Debug)]
pub(crate) struct Agenda<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
}

#[derive(Clone, Copy, Debug)]
struct Entry<T>(Due, T);

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Agenda {
            heap: BinaryHeap::new(),
        }
    }
}

impl<T: Copy> Agenda<T> {
    pub(crate) fn push(&mut self, due: Due, event: T) {
        self.heap.push(Reverse(Entry(due, event)));
    }

    #[inline]
    pub(crate) fn head(&self) -> Due {
        self.heap.peek().map_or(Due::NEVER, |entry| entry.0.0)
    }

    pub(crate) fn pop(&mut self) -> Option<(Due, T)> {
        self.heap
            .pop()
            .map(|Reverse(Entry(due, event))| (due, event))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.heap.iter().map(|entry| &entry.0.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simultaneous_events_leave_in_the_order_of_scheduling() {
        let mut agenda = Agenda::default();
        for sequence in [3, 1, 2] {
            agenda.push(Due::new(Time(7), sequence), sequence);
        }
        agenda.push(Due::new(Time(6), 9), 9);
        let order: Vec<u64> = std::iter::from_fn(|| agenda.pop()).map(|e| e.1).collect();
        assert_eq!(order, [9, 1, 2, 3]);
    }

    #[test]
    fn an_empty_line_is_never_due() {
        let mut line = Line::default();
        assert_eq!(line.head(), Due::NEVER);
        line.push(Due::new(Time(5), 0), 'a');
        assert_eq!(line.head().time(), Time(5));
        assert_eq!(line.pop().map(|e| e.1), Some('a'));
        assert_eq!(line.head(), Due::NEVER);
    }
}
