//! The events of a single switch and its hosts.
//!
//! Nearly all events are scheduled a constant time ahead. A packet of a given size leaves its sender
//! after a constant time, and a bit crosses a link in a constant time. Events of one delay fall due
//! in the order in which they were scheduled, so they wait in a FIFO queue and need no heap. Nearly
//! all packets have one of two sizes, a full segment or an acknowledgement, and hosts and ports send
//! at the same rate. That makes six FIFO queues: a port becomes free, a packet of an idle host
//! reaches a switch, and a busy host continues with its next packet, each for two sizes. Timers,
//! starts of flows and packets of other sizes wait in a heap.
//!
//! **The clock** is the [event time](super::clock). A packet that leaves a switch towards a host is
//! delivered in the same event. The hop from a host to a switch takes two propagation delays.
//!
//! **The next event** is the earliest of seven: the heads of the six FIFO queues and of the heap.
//! Their due times lie in adjacent words, which are written when a head changes. Their minimum needs
//! a fixed number of comparisons and no branch, whatever the number of pending events.
//!
//! **Simultaneous events** run in the order in which they were scheduled. Of two events that are due
//! at the same time, the one with the longer delay was scheduled earlier. So the rank of the delay
//! decides. It is stored in the lowest bits of the due time, so no sequence number is needed. The rank
//! also tells in which queue the event waits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::clock::EventTime;
use super::event::source::{ARRIVAL, FREE, HEAP, NEXT};
use super::event::{Delays, EventKey, Events, HeapEvent, PacketEvent, RANK_BITS, Timer};
use super::fifo::FixedDelayQueue;
use super::link::LinkKind;
use super::packet::SizeClass;
use crate::units::{Duration, Instant};

const QUEUES: u8 = 6;
/// Number of FIFO queues, as a length.
const LENGTH: usize = QUEUES as usize;

impl Delays {
    /// Returns the delay from the scheduling of an event to the event, by queue.
    fn ahead(&self, queue: u8) -> Duration {
        let transmission = self.transmission[usize::from(queue % 2)];
        match queue - queue % 2 {
            ARRIVAL => transmission + self.propagation * 2,
            _ => transmission,
        }
    }

    /// Returns the delay that ranks the events of a queue: from the instant at which the sender begins to
    /// send.
    fn since_cause(&self, queue: u8) -> Duration {
        let transmission = self.transmission[usize::from(queue % 2)];
        match queue - queue % 2 {
            NEXT if self.fair_hosts => self.rank_among_deliveries(transmission),
            FREE => transmission,
            _ => transmission + self.propagation,
        }
    }

    /// Returns the delay that ranks a fair host that becomes free. It chooses among packets that were
    /// delivered before. Deliveries happen when ports become free, so it is ranked among those events.
    fn rank_among_deliveries(&self, transmission: Duration) -> Duration {
        let longest = self.delivery.iter().zip(self.transmission);
        let later = longest.filter(|(delivery, _)| **delivery < transmission);
        later
            .map(|(_, of_port)| of_port + Duration(1))
            .max()
            .unwrap_or(Duration::ZERO)
    }
}

/// An event of the heap. The longer delay, then the sequence number, order simultaneous ones.
#[derive(Clone, Copy, Debug)]
struct Entry {
    due: EventKey,
    sequence: u64,
    timer: Timer,
}

impl Entry {
    fn key(&self) -> (EventKey, u64) {
        (self.due, self.sequence)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
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
        self.key().cmp(&other.key())
    }
}

/// The events of a single switch and its hosts.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// Due time of each candidate.
    heads: [EventKey; LENGTH + 1],
    /// Delay of each FIFO queue, with its rank, that is added to the current time.
    ahead: [u64; LENGTH],
    /// Queue in which an event waits, by rank.
    sources: [u8; 1 << RANK_BITS],
    queues: [FixedDelayQueue; LENGTH],
    timers: BinaryHeap<Reverse<Entry>>,
    /// Number of timers ever set.
    sequence: u64,
    start: EventKey,
    delays: Delays,
}

impl Events for EventQueue {
    fn new(delays: Delays) -> EventQueue {
        let mut order: Vec<u8> = (0..QUEUES).collect();
        order.sort_by_key(|&queue| Reverse((delays.since_cause(queue), queue)));
        let mut ahead = [0; LENGTH];
        let mut sources = [HEAP; 1 << RANK_BITS];
        for (place, queue) in (0..QUEUES).zip(order) {
            // The heap uses the even ranks.
            let rank = 2 * place + 1;
            let delay = EventTime(delays.ahead(queue).0);
            ahead[usize::from(queue)] = EventKey::new(delay, rank).0;
            sources[usize::from(rank)] = queue;
        }
        EventQueue {
            heads: [EventKey::NEVER; LENGTH + 1],
            ahead,
            sources,
            queues: Default::default(),
            timers: BinaryHeap::new(),
            sequence: 0,
            start: EventKey::NEVER,
            delays,
        }
    }

    #[inline(always)]
    fn next(&self) -> EventKey {
        let [a, b, c, d, e, f, g] = self.heads;
        a.min(b).min(c.min(d)).min(e.min(f).min(g))
    }

    #[inline(always)]
    fn source(&self, due: EventKey) -> u8 {
        self.sources[usize::from(due.rank())]
    }

    #[inline(always)]
    fn take(&mut self, queue: u8) -> PacketEvent {
        let (event, next) = self.queues[usize::from(queue)].pop();
        self.heads[usize::from(queue)] = next;
        event
    }

    /// Takes a start before simultaneous timers.
    fn take_heap(&mut self) -> HeapEvent {
        let is_start = self.start == self.heads[usize::from(HEAP)];
        let timer = match is_start {
            true => None,
            false => self.timers.pop(),
        };
        self.find_heap();
        timer.map_or(HeapEvent::Start, |entry| HeapEvent::Timer(entry.0.timer))
    }

    #[inline(always)]
    fn arrive(
        &mut self,
        now: EventTime,
        _line: LinkKind,
        transmission: Duration,
        class: SizeClass,
        event: PacketEvent,
    ) {
        if let Some(class) = class.common() {
            return self.schedule(now, ARRIVAL + class, event);
        }
        let propagation = self.delays.propagation;
        let cause = transmission + propagation;
        self.set(now, cause + propagation, cause, Timer::Arrival(event));
    }

    #[inline(always)]
    fn cross(
        &mut self,
        now: EventTime,
        line: LinkKind,
        times: impl FnOnce() -> [Duration; 2],
        class: SizeClass,
        event: PacketEvent,
    ) {
        let Some(common) = class.common() else {
            let [transmission, _] = times();
            self.arrive(now, line, transmission, class, event);
            return self.set_timer(now, transmission, Timer::Next(event.sender));
        };
        self.schedule(now, ARRIVAL + common, event);
        self.schedule(now, NEXT + common, event);
    }

    #[inline(always)]
    fn free_port(
        &mut self,
        now: EventTime,
        transmission: Duration,
        class: SizeClass,
        event: PacketEvent,
    ) {
        match class.common() {
            Some(class) => self.schedule(now, FREE + class, event),
            None => self.set_timer(now, transmission, Timer::Free(event)),
        }
    }

    #[inline(always)]
    fn take_arrival(&mut self, next: u8) -> PacketEvent {
        let idle = next - NEXT + ARRIVAL;
        let [of_busy, of_idle] = [next, idle].map(|queue| self.heads[usize::from(queue)].time());
        if of_busy == of_idle && self.idle_began_first(next, idle) {
            return self.take(idle);
        }
        self.take(next)
    }

    #[inline(always)]
    fn arrive_next(
        &mut self,
        now: EventTime,
        transmission: Duration,
        class: SizeClass,
        event: PacketEvent,
    ) {
        if let Some(class) = class.common() {
            return self.schedule(now, NEXT + class, event);
        }
        let cause = transmission + self.delays.propagation;
        self.set(now, transmission, cause, Timer::Arrival(event));
    }

    fn set_start(&mut self, start: Option<Instant>) {
        let due = |time| EventKey::saturating(EventTime::of_host(time), 0);
        self.start = start.map_or(EventKey::NEVER, due);
        self.find_heap();
    }

    fn set_timer(&mut self, now: EventTime, delay: Duration, timer: Timer) {
        self.set(now, delay, delay, timer);
    }

    fn arriving(&self) -> impl Iterator<Item = PacketEvent> {
        let timers = self.timers.iter().filter_map(|entry| match entry.0.timer {
            Timer::Arrival(event) => Some(event),
            _ => None,
        });
        let queues = match self.delays.fair_hosts {
            true => &self.queues[usize::from(ARRIVAL)..usize::from(NEXT)],
            false => &self.queues[usize::from(ARRIVAL)..],
        };
        queues
            .iter()
            .flat_map(FixedDelayQueue::subjects)
            .chain(timers)
    }

    fn in_service(&self) -> impl Iterator<Item = PacketEvent> {
        let timers = self.timers.iter().filter_map(|entry| match entry.0.timer {
            Timer::Free(event) => Some(event),
            _ => None,
        });
        let queues = &self.queues[usize::from(FREE)..usize::from(ARRIVAL)];
        queues
            .iter()
            .flat_map(FixedDelayQueue::subjects)
            .chain(timers)
    }
}

impl EventQueue {
    #[inline(always)]
    fn offer(&mut self, index: u8, due: EventKey) {
        let head = &mut self.heads[usize::from(index)];
        *head = (*head).min(due);
    }

    /// Schedules an event in a FIFO queue. Complexity: O(1), amortised.
    #[inline(always)]
    fn schedule(&mut self, now: EventTime, queue: u8, event: PacketEvent) {
        let due = EventKey((now.0 << RANK_BITS) + self.ahead[usize::from(queue)]);
        self.queues[usize::from(queue)].push(due, event);
        self.offer(queue, due);
    }

    #[cold]
    #[inline(never)]
    fn idle_began_first(&self, next: u8, idle: u8) -> bool {
        let [of_busy, of_idle] = [next, idle].map(|queue| self.queues[usize::from(queue)].front());
        of_idle.rank() < of_busy.rank()
    }

    /// Schedules a timer. `since_cause` is the delay that ranks it among simultaneous events.
    #[cold]
    #[inline(never)]
    fn set(&mut self, now: EventTime, delay: Duration, since_cause: Duration, timer: Timer) {
        let earlier = |queue| u8::from(self.delays.since_cause(queue) > since_cause);
        let rank = 2 * (0..QUEUES).map(earlier).sum::<u8>();
        let due = EventKey::saturating(now.saturating_add(delay), rank);
        self.sequence += 1;
        self.timers.push(Reverse(Entry {
            due,
            sequence: self.sequence,
            timer,
        }));
        self.offer(HEAP, due);
    }

    fn find_heap(&mut self) {
        let timer = self
            .timers
            .peek()
            .map_or(EventKey::NEVER, |entry| entry.0.due);
        self.heads[usize::from(HEAP)] = self.start.min(timer);
    }
}
