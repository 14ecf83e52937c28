//! The events of a network of several switches.
//!
//! Every node has the same clock, and a packet has two events on every line: its sender is free, and
//! its last bit reaches the far end. Simultaneous events run in the order in which they were
//! scheduled, as in ns-3: they are numbered. What matters is the order at one switch of packets that
//! have come different ways, and how they compare with its own ports; with one clock and numbers it
//! follows, however far back the ways met.
//!
//! As with a [single switch](super::event::EventQueue), nearly all events are scheduled one of a few
//! constant times ahead and wait in FIFO queues: two events on two kinds of line, for two sizes of
//! packets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::clock::EventTime;
use super::event::{Delays, Due, Events, Irregular, LAST_INSTANT, Subject, Timer};
use super::fifo::{FixedDelayQueue, Key};
use super::link::Line;
use super::packet::SizeClass;
use crate::units::Time;

/// Where events wait: a FIFO queue has the number `kind + 2 * line + size`.
pub(crate) mod source {
    /// A sender becomes free.
    pub(crate) const FREE: u8 = 0;
    /// A packet reaches the far end of its line.
    pub(crate) const REACH: u8 = 4;
    /// Waits in the heap.
    pub(crate) const IRREGULAR: u8 = 8;
}

use source::{FREE, IRREGULAR, REACH};

/// FIFO queues.
const LENGTH: usize = IRREGULAR as usize;

/// When an event is due, and its place among simultaneous ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Moment {
    time: u64,
    /// Number of the event, behind a bit that is not set for what was scheduled long before, and
    /// before four that tell where it waits.
    order: u64,
}

impl Key for Moment {
    const NEVER: Moment = Moment {
        time: u64::MAX,
        order: u64::MAX,
    };
}

impl Moment {
    /// Behind all that was scheduled long before.
    const RECENT: u64 = 1 << 63;

    /// For comparisons without a branch.
    #[inline(always)]
    fn key(self) -> u128 {
        u128::from(self.time) << 64 | u128::from(self.order)
    }
}

/// An event of the heap.
#[derive(Clone, Copy, Debug)]
struct Entry {
    moment: Moment,
    timer: Timer,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.moment == other.moment
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
        self.moment.cmp(&other.moment)
    }
}

/// All pending events of a network, in the order of their times and numbers.
#[derive(Clone, Debug)]
pub struct FabricEvents {
    /// When each candidate is due.
    heads: [Moment; LENGTH + 1],
    /// For each FIFO queue, how far ahead its events are scheduled.
    ahead: [u64; LENGTH],
    queues: [FixedDelayQueue<Moment>; LENGTH],
    timers: BinaryHeap<Reverse<Entry>>,
    /// Events ever scheduled.
    scheduled: u64,
    start: Moment,
    propagation: Time,
}

impl Events for FabricEvents {
    fn new(delays: Delays) -> FabricEvents {
        let transmissions = [delays.transmission, delays.of_fabric];
        let sent = transmissions.as_flattened();
        let reached = sent.iter().map(|sent| *sent + delays.propagation);
        let mut ahead = [0; LENGTH];
        for (ahead, delay) in ahead.iter_mut().zip(sent.iter().copied().chain(reached)) {
            *ahead = delay.0;
        }
        FabricEvents {
            heads: [Moment::NEVER; LENGTH + 1],
            ahead,
            queues: Default::default(),
            timers: BinaryHeap::new(),
            scheduled: 0,
            start: Moment::NEVER,
            propagation: delays.propagation,
        }
    }

    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the parts of a key were 64 bits, and a place is below 16"
    )]
    fn next(&self) -> Due {
        let [a, b, c, d, e, f, g, h, i] = self.heads.map(Moment::key);
        let first = (a.min(b).min(c.min(d))).min(e.min(f).min(g.min(h)).min(i));
        let (time, order) = ((first >> 64) as u64, first as u64);
        if time > LAST_INSTANT.0 {
            return Due::NEVER;
        }
        Due::new(EventTime(time), (order & 15) as u8)
    }

    #[inline(always)]
    fn source(&self, due: Due) -> u8 {
        due.rank()
    }

    #[inline(always)]
    fn take(&mut self, source: u8) -> Subject {
        let (subject, next) = self.queues[usize::from(source)].pop();
        self.heads[usize::from(source)] = next;
        subject
    }

    fn take_irregular(&mut self) -> Irregular {
        let is_start = self.start == self.heads[usize::from(IRREGULAR)];
        let timer = match is_start {
            true => None,
            false => self.timers.pop(),
        };
        self.find_irregular();
        timer.map_or(Irregular::Start, |entry| Irregular::Timer(entry.0.timer))
    }

    #[inline(always)]
    fn arrive(
        &mut self,
        now: EventTime,
        line: Line,
        transmission: Time,
        class: SizeClass,
        subject: Subject,
    ) {
        match class.common() {
            Some(class) => self.schedule(now, REACH + 2 * line as u8 + class, subject),
            None => self.set(
                now,
                transmission + self.propagation,
                Timer::Arrival(subject),
            ),
        }
    }

    #[inline(always)]
    fn free_host(
        &mut self,
        now: EventTime,
        transmission: Time,
        class: SizeClass,
        subject: Subject,
    ) {
        self.free_port(now, Line::Host, transmission, class, subject);
    }

    #[inline(always)]
    fn free_port(
        &mut self,
        now: EventTime,
        line: Line,
        transmission: Time,
        class: SizeClass,
        subject: Subject,
    ) {
        match class.common() {
            Some(class) => self.schedule(now, FREE + 2 * line as u8 + class, subject),
            None => self.set(now, transmission, Timer::Free(subject)),
        }
    }

    #[inline(always)]
    fn take_arrival(&mut self, next: u8) -> Subject {
        self.take(next)
    }

    fn arrive_next(
        &mut self,
        now: EventTime,
        transmission: Time,
        _class: SizeClass,
        subject: Subject,
    ) {
        self.set(now, transmission, Timer::Arrival(subject));
    }

    /// Starts were all scheduled before anything else.
    fn set_start(&mut self, start: Option<Time>) {
        self.start = start.map_or(Moment::NEVER, |start| Moment {
            time: start.0,
            order: u64::from(IRREGULAR),
        });
        self.find_irregular();
    }

    fn set_timer(&mut self, now: EventTime, delay: Time, timer: Timer) {
        self.set(now, delay, timer);
    }

    fn arriving(&self) -> impl Iterator<Item = Subject> {
        let timers = self.timers.iter().filter_map(|entry| match entry.0.timer {
            Timer::Arrival(subject) => Some(subject),
            _ => None,
        });
        let queues = self.queues[usize::from(REACH)..].iter();
        queues.flat_map(FixedDelayQueue::subjects).chain(timers)
    }

    fn in_service(&self) -> impl Iterator<Item = Subject> {
        let timers = self.timers.iter().filter_map(|entry| match entry.0.timer {
            Timer::Free(subject) => Some(subject),
            _ => None,
        });
        let queues = self.queues[..usize::from(REACH)].iter();
        queues.flat_map(FixedDelayQueue::subjects).chain(timers)
    }
}

impl FabricEvents {
    #[inline(always)]
    fn order(&mut self, source: u8) -> u64 {
        self.scheduled += 1;
        Moment::RECENT | self.scheduled << 4 | u64::from(source)
    }

    #[inline(always)]
    fn offer(&mut self, source: u8, moment: Moment) {
        let head = &mut self.heads[usize::from(source)];
        *head = (*head).min(moment);
    }

    /// Schedules an event in a FIFO queue. Complexity: O(1), amortised.
    #[inline(always)]
    fn schedule(&mut self, now: EventTime, source: u8, subject: Subject) {
        let moment = Moment {
            time: now.0 + self.ahead[usize::from(source)],
            order: self.order(source),
        };
        self.queues[usize::from(source)].push(moment, subject);
        self.offer(source, moment);
    }

    #[cold]
    #[inline(never)]
    fn set(&mut self, now: EventTime, delay: Time, timer: Timer) {
        let mut order = self.order(IRREGULAR);
        if timer.was_set_long_before() {
            order &= !Moment::RECENT;
        }
        let time = now.saturating_add(delay).0;
        let moment = Moment { time, order };
        self.timers.push(Reverse(Entry { moment, timer }));
        self.offer(IRREGULAR, moment);
    }

    fn find_irregular(&mut self) {
        let timer = self.timers.peek();
        let timer = timer.map_or(Moment::NEVER, |entry| entry.0.moment);
        self.heads[usize::from(IRREGULAR)] = self.start.min(timer);
    }
}
