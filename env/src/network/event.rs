//! What happens next: the event queue of the simulator.
//!
//! Nearly all events are scheduled a constant time ahead: a packet of a given size leaves its
//! sender after a constant time, and a bit crosses a link in a constant time. Such events fall due
//! in the order in which they were scheduled, so they need no heap but wait in a [`Line`], one for
//! each delay. Nearly all packets have one of two sizes, a full segment and an acknowledgement;
//! hosts and ports send at the same rate. That makes five lines: a sender, host or port, becomes
//! free (two), a packet reaches the switch (two), and a packet reaches its host (one, whatever its
//! size). Timers, starts of flows and packets of other sizes wait in a heap.
//!
//! So there are six candidates for the next event: the heads of five lines and the earliest of the
//! rest. When each of them is due is kept in six adjacent words, written when the head of a line
//! changes, and the next event is the least of them: a fixed number of comparisons without a
//! branch, whatever the number of ports, flows and pending events. A due time carries its line in
//! its lowest bits, so that the least one also says where it waits. Behind its last event a line
//! holds one that is due never, so that nobody asks whether it is empty.
//!
//! Events hold no packets but four bytes that say where a packet lies. Copying packets from queue
//! to queue costs more than everything else, because a packet is written in small pieces and read
//! in large ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::packet::{PacketId, SizeClass};
use crate::units::Time;

/// When an event is due: time first, then the order of scheduling, so that simultaneous events
/// run in a stable order. The lowest bits say where it waits and never decide.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Due(u128);

const SOURCE_BITS: u32 = 4;

impl Due {
    pub(super) const NEVER: Due = Due(u128::MAX);

    #[inline]
    fn new(time: Time, sequence: u64, source: u8) -> Due {
        let order = sequence << SOURCE_BITS | u64::from(source);
        Due(u128::from(time.0) << 64 | u128::from(order))
    }

    #[inline]
    pub(super) fn time(self) -> Time {
        Time((self.0 >> 64) as u64)
    }

    /// Where it waits, one of [`source`].
    #[inline]
    pub(super) fn source(self) -> u8 {
        self.0 as u8 & ((1 << SOURCE_BITS) - 1)
    }
}

/// Where events wait.
pub(super) mod source {
    /// A sender becomes free, by size of what it has sent.
    pub(in super::super) const FREE: u8 = 0;
    pub(in super::super) const FREE_OF_ACK: u8 = 1;
    /// A packet reaches the switch, by size.
    pub(in super::super) const ARRIVAL: u8 = 2;
    pub(in super::super) const ARRIVAL_OF_ACK: u8 = 3;
    /// A packet reaches its host.
    pub(in super::super) const DELIVERY: u8 = 4;
    /// What waits in no line has one candidate, the earlier of these two.
    pub(super) const IRREGULAR: u8 = 5;
    pub(in super::super) const START: u8 = 5;
    pub(in super::super) const TIMER: u8 = 6;
}

use source::{ARRIVAL, DELIVERY, FREE, IRREGULAR, START, TIMER};

/// Who has become free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Freed {
    /// The host of this number.
    Host(usize),
    /// The port that has sent this packet.
    PortOf(PacketId),
}

/// Marks hosts among packets in the lines of senders.
const HOST: u32 = 1 << 31;

impl Freed {
    #[inline]
    fn from_subject(subject: u32) -> Freed {
        match subject & HOST {
            0 => Freed::PortOf(subject),
            _ => Freed::Host((subject ^ HOST) as usize),
        }
    }
}

/// Events at irregular times.
#[derive(Clone, Copy, Debug)]
pub(super) enum Timer {
    /// A packet of unusual size reaches the switch.
    Arrival(PacketId),
    /// A sender has sent a packet of unusual size.
    Free(Freed),
    /// A retransmission timer may have expired; it is read when the event falls due, so that
    /// restarting a timer costs nothing.
    Retransmission(u32),
    /// A flow sends its first data.
    Begin(u32),
    /// A SYN may have been lost; the number of SYNs sent before.
    Syn(u32, u8),
    /// A SYN-ACK may have been lost.
    SynAck(u32),
    /// An acknowledgement may have waited long enough.
    DelayedAck(u32),
    /// The control loop asked to be woken; its tag.
    Alarm(u64),
}

#[derive(Clone, Copy, Debug)]
struct Entry(Due, Timer);

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

/// Events that fall due in the order in which they were scheduled, each with what it is about: a
/// packet or a host.
#[derive(Clone, Debug)]
struct Line {
    /// A power of two of them.
    slots: Vec<(Due, u32)>,
    /// Events ever taken.
    head: usize,
    /// Events ever scheduled.
    tail: usize,
}

impl Default for Line {
    fn default() -> Self {
        Line {
            slots: vec![(Due::NEVER, 0); 8],
            head: 0,
            tail: 0,
        }
    }
}

impl Line {
    #[inline(always)]
    fn push(&mut self, due: Due, subject: u32) {
        debug_assert!(self.iter().last().is_none_or(|last| last.0 < due));
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
    fn pop(&mut self) -> (u32, Due) {
        debug_assert!(self.head < self.tail);
        let slots = self.slots.as_slice();
        let mask = slots.len() - 1;
        let subject = slots[self.head & mask].1;
        self.head += 1;
        (subject, slots[self.head & mask].0)
    }

    fn iter(&self) -> impl Iterator<Item = (Due, u32)> {
        let mask = self.slots.len() - 1;
        (self.head..self.tail).map(move |index| self.slots[index & mask])
    }

    fn subjects(&self) -> impl Iterator<Item = u32> {
        self.iter().map(|entry| entry.1)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut slots = Vec::with_capacity(2 * self.slots.len());
        slots.extend(self.iter());
        slots.resize(2 * self.slots.len(), (Due::NEVER, 0));
        self.slots = slots;
        (self.head, self.tail) = (0, self.tail - self.head);
    }
}

/// All pending events. Simultaneous ones fall due in the order in which they were scheduled.
#[derive(Clone, Debug)]
pub(super) struct EventQueue {
    /// When each candidate is due.
    heads: [Due; 6],
    /// Events ever scheduled.
    sequence: u64,
    lines: [Line; 5],
    timers: BinaryHeap<Reverse<Entry>>,
    start: Due,
}

impl EventQueue {
    /// The first `starts` places in the order of simultaneous events are those of the flows.
    pub(super) fn new(starts: u64) -> EventQueue {
        EventQueue {
            heads: [Due::NEVER; 6],
            sequence: starts,
            lines: Default::default(),
            timers: BinaryHeap::new(),
            start: Due::NEVER,
        }
    }

    /// When the next event is due, and where it waits. Complexity: O(1).
    #[inline(always)]
    pub(super) fn next(&self) -> Due {
        let [a, b, c, d, e, f] = self.heads;
        let least = |x: Due, y: Due| Due(x.0.min(y.0));
        least(least(least(a, b), least(c, d)), least(e, f))
    }

    #[inline(always)]
    fn due_in(&mut self, now: Time, delay: Time, source: u8) -> Due {
        self.sequence += 1;
        Due::new(now + delay, self.sequence, source)
    }

    #[inline(always)]
    fn offer(&mut self, index: u8, due: Due) {
        let head = &mut self.heads[usize::from(index)];
        head.0 = head.0.min(due.0);
    }

    /// Schedules an event in a line. Complexity: O(1), amortised.
    #[inline(always)]
    fn schedule(&mut self, now: Time, delay: Time, line: u8, subject: u32) {
        let due = self.due_in(now, delay, line);
        self.lines[usize::from(line)].push(due, subject);
        self.offer(line, due);
    }

    /// Takes the event of a line that has fallen due; returns its subject. Complexity: O(1).
    #[inline(always)]
    pub(super) fn take(&mut self, line: u8) -> u32 {
        let (subject, next) = self.lines[usize::from(line)].pop();
        self.heads[usize::from(line)] = next;
        subject
    }

    /// Takes a sender that has become free. Complexity: O(1).
    #[inline(always)]
    pub(super) fn take_freed(&mut self, line: u8) -> Freed {
        Freed::from_subject(self.take(line))
    }

    /// A packet reaches the switch after `delay`.
    #[inline(always)]
    pub(super) fn arrive(&mut self, now: Time, delay: Time, class: SizeClass, packet: PacketId) {
        match class.common() {
            Some(class) => self.schedule(now, delay, ARRIVAL + class, packet),
            None => self.set_timer(now, delay, Timer::Arrival(packet)),
        }
    }

    /// A host has sent a packet of the class after `delay`.
    #[inline(always)]
    pub(super) fn free_host(&mut self, now: Time, delay: Time, class: SizeClass, host: usize) {
        match class.common() {
            Some(class) => self.schedule(now, delay, FREE + class, host as u32 | HOST),
            None => self.set_timer(now, delay, Timer::Free(Freed::Host(host))),
        }
    }

    /// A port has sent the packet after `delay`.
    #[inline(always)]
    pub(super) fn free_port(&mut self, now: Time, delay: Time, class: SizeClass, packet: PacketId) {
        match class.common() {
            Some(class) => self.schedule(now, delay, FREE + class, packet),
            None => self.set_timer(now, delay, Timer::Free(Freed::PortOf(packet))),
        }
    }

    /// A packet reaches its host after `delay`, always the same.
    #[inline(always)]
    pub(super) fn deliver(&mut self, now: Time, delay: Time, packet: PacketId) {
        self.schedule(now, delay, DELIVERY, packet);
    }

    /// Takes a place in the order of simultaneous events.
    #[inline]
    pub(super) fn reserve(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// As [`deliver`](EventQueue::deliver), in a reserved place. Of two deliveries that are due at
    /// the same time, the one scheduled first must have the earlier place.
    #[inline]
    pub(super) fn deliver_in(&mut self, place: u64, now: Time, delay: Time, packet: PacketId) {
        let due = Due::new(now + delay, place, DELIVERY);
        self.lines[usize::from(DELIVERY)].push(due, packet);
        self.offer(DELIVERY, due);
    }

    /// The next flow to start, by its place in the order of starts.
    pub(super) fn set_start(&mut self, start: Option<(Time, u64)>) {
        self.start = match start {
            Some((time, place)) => Due::new(time, place, START),
            None => Due::NEVER,
        };
        self.find_irregular();
    }

    /// Schedules a timer. Complexity: O(log n) in the number of pending timers.
    #[cold]
    #[inline(never)]
    pub(super) fn set_timer(&mut self, now: Time, delay: Time, timer: Timer) {
        let due = self.due_in(now, delay, TIMER);
        self.timers.push(Reverse(Entry(due, timer)));
        self.offer(IRREGULAR, due);
    }

    /// Takes the timer that has fallen due. Complexity: as [`set_timer`](EventQueue::set_timer).
    pub(super) fn take_timer(&mut self) -> Option<Timer> {
        let Reverse(Entry(_, timer)) = self.timers.pop()?;
        self.find_irregular();
        Some(timer)
    }

    fn find_irregular(&mut self) {
        let timer = self.timers.peek().map_or(Due::NEVER, |entry| entry.0.0);
        self.heads[usize::from(IRREGULAR)] = self.start.min(timer);
    }
}

/// What is on its way, for checks.
impl EventQueue {
    /// Packets on the links and on the lines to them.
    pub(super) fn packets(&self) -> impl Iterator<Item = PacketId> {
        let timers = self.timers.iter().filter_map(|entry| match entry.0.1 {
            Timer::Arrival(packet) => Some(packet),
            _ => None,
        });
        self.lines[usize::from(ARRIVAL)..]
            .iter()
            .flat_map(Line::subjects)
            .chain(timers)
            .chain(self.in_service())
    }

    /// Packets that a port is sending.
    pub(super) fn in_service(&self) -> impl Iterator<Item = PacketId> {
        let timers = self.timers.iter().filter_map(|entry| match entry.0.1 {
            Timer::Free(freed) => Some(freed),
            _ => None,
        });
        self.lines[..usize::from(ARRIVAL)]
            .iter()
            .flat_map(Line::subjects)
            .map(Freed::from_subject)
            .chain(timers)
            .filter_map(|freed| match freed {
                Freed::PortOf(packet) => Some(packet),
                Freed::Host(_) => None,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Time = Time(10);

    fn drain(events: &mut EventQueue) -> Vec<(u64, u8)> {
        let mut seen = Vec::new();
        while events.next() != Due::NEVER {
            let due = events.next();
            let source = due.source();
            seen.push((due.time().0, source));
            match source {
                START => events.set_start(None),
                TIMER => assert!(events.take_timer().is_some()),
                line => {
                    events.take(line);
                }
            }
        }
        seen
    }

    #[test]
    fn simultaneous_events_leave_in_the_order_of_scheduling() {
        let mut events = EventQueue::new(1);
        events.free_host(Time(0), DELAY, SizeClass::Odd, 0);
        events.deliver(Time(0), DELAY, 1);
        events.arrive(Time(0), DELAY, SizeClass::Full, 2);
        events.deliver(Time(0), DELAY, 3);
        events.free_port(Time(0), DELAY, SizeClass::Ack, 4);
        events.set_timer(Time(0), Time(5), Timer::Alarm(5));
        events.set_start(Some((DELAY, 0)));
        assert_eq!(events.packets().count(), 4);
        assert_eq!(events.in_service().collect::<Vec<_>>(), [4]);
        let simultaneous = [START, TIMER, DELIVERY, ARRIVAL, DELIVERY, FREE + 1];
        let mut expected = vec![(5, TIMER)];
        expected.extend(simultaneous.map(|source| (10, source)));
        assert_eq!(drain(&mut events), expected);
    }

    #[test]
    fn a_line_grows_and_keeps_its_order() {
        let mut line = Line::default();
        let (mut pushed, mut popped) = (0, 0);
        for round in 1..20 {
            for _ in 0..round {
                line.push(Due::new(Time(pushed), pushed, 0), pushed as u32);
                pushed += 1;
            }
            while pushed - popped > round / 2 {
                let (subject, next) = line.pop();
                assert_eq!(u64::from(subject), popped);
                popped += 1;
                let expected = match pushed - popped {
                    0 => Due::NEVER,
                    _ => Due::new(Time(popped), popped, 0),
                };
                assert_eq!(next, expected);
            }
            assert_eq!(line.subjects().count() as u64, pushed - popped);
        }
    }
}
