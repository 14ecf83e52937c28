//! The events of a network of several switches.
//!
//! Every node has the same clock, and a packet has two events on every line: its sender is free, and
//! its last bit reaches the far end. Simultaneous events run in the order in which they were
//! scheduled, as in ns-3: they are numbered. The order that matters is that of packets that reach one
//! switch on different paths, and of events at its own ports. One clock and the numbers determine it,
//! however far back the paths met.
//!
//! As with a [single switch](super::single::EventQueue), nearly all events are scheduled one of a few
//! constant times ahead and wait in FIFO queues. The second event of a packet follows the first one
//! propagation delay later and has the next number. So both wait in one queue, a
//! [`DelayLine`] for each of two sizes of packets on two kinds of line, which is read twice.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::clock::EventTime;
use super::delay_line::{DelayLine, FabricKey};
use super::event::{Delays, EventKey, Events, HeapEvent, LAST_INSTANT, PacketEvent, Timer};
use super::link::LinkKind;
use super::packet::SizeClass;
use crate::units::{Duration, Instant};

/// Queues in which events wait: the delay line `2 * line + size`, or the heap.
pub(crate) mod source {
    /// A sender becomes free; the number of the delay line is added.
    pub(crate) const FREE: u8 = 0;
    /// A packet reaches the far end of its line; the number of the delay line is added.
    pub(crate) const REACH: u8 = 4;
    /// The event waits in the heap.
    pub(crate) const HEAP: u8 = 8;
}

use source::{FREE, HEAP, REACH};

/// Number of delay lines.
const LANES: usize = REACH as usize;
/// Number of candidates for the next event.
const CANDIDATES: usize = HEAP as usize + 1;

/// An event of the heap.
#[derive(Clone, Copy, Debug)]
struct Entry {
    key: FabricKey,
    timer: Timer,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
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
        self.key.cmp(&other.key)
    }
}

/// All pending events of a network, in the order of their times and numbers.
#[derive(Clone, Debug)]
pub struct FabricEvents {
    /// Due time of each candidate.
    heads: [FabricKey; CANDIDATES],
    /// The earliest of `heads`. It is found before the event that was taken last is run, not after it. So
    /// the processor knows early which event comes next; its prediction is wrong most of the time.
    first: FabricKey,
    /// Time that a packet occupies its line, picoseconds, by delay line.
    transmissions: [u64; LANES],
    lanes: [DelayLine; LANES],
    timers: BinaryHeap<Reverse<Entry>>,
    /// Number of events ever scheduled.
    scheduled: u64,
    start: FabricKey,
    /// Delays of a packet's events relative to its first event, in time and number, by source.
    delays: [FabricKey; HEAP as usize],
}

impl Events for FabricEvents {
    fn new(delays: Delays) -> FabricEvents {
        let of_lines = [delays.transmission, delays.of_fabric];
        let leaving = FabricKey { time: 0, order: 0 };
        let [host, fabric] =
            [delays.propagation, delays.fabric_propagation].map(|delay| FabricKey {
                time: delay.0,
                order: FabricKey::NUMBER + u64::from(REACH - FREE),
            });
        let mut transmissions = [0; LANES];
        for (lane, transmission) in transmissions.iter_mut().zip(of_lines.as_flattened()) {
            *lane = transmission.0;
        }
        FabricEvents {
            heads: [FabricKey::NEVER; CANDIDATES],
            first: FabricKey::NEVER,
            transmissions,
            lanes: Default::default(),
            timers: BinaryHeap::new(),
            scheduled: 0,
            start: FabricKey::NEVER,
            delays: [
                leaving, leaving, leaving, leaving, host, host, fabric, fabric,
            ],
        }
    }

    #[inline(always)]
    fn next(&self) -> EventKey {
        let FabricKey { time, order } = self.first;
        if time > LAST_INSTANT.0 {
            return EventKey::NEVER;
        }
        EventKey::new(EventTime(time), (order & 15) as u8)
    }

    #[inline(always)]
    fn source(&self, due: EventKey) -> u8 {
        due.rank()
    }

    #[inline(always)]
    fn take(&mut self, source: u8) -> PacketEvent {
        debug_assert!(source < HEAP);
        let source = usize::from(source % HEAP);
        let (lane, reader) = (source % LANES, source / LANES);
        let (event, next) = self.lanes[lane].take(reader);
        self.heads[source] = next.after(self.delays[source]);
        self.find_first();
        event
    }

    fn take_heap(&mut self) -> HeapEvent {
        let is_start = self.start == self.heads[usize::from(HEAP)];
        let timer = match is_start {
            true => None,
            false => self.timers.pop(),
        };
        self.find_heap();
        timer.map_or(HeapEvent::Start, |entry| HeapEvent::Timer(entry.0.timer))
    }

    /// Schedules the arrival of a packet of unusual size. Other packets [cross](Events::cross): only hosts of a
    /// single switch are not told when their line is free.
    fn arrive(
        &mut self,
        now: EventTime,
        _line: LinkKind,
        transmission: Duration,
        _class: SizeClass,
        event: PacketEvent,
    ) {
        let propagation = Duration(self.delays[LANES].time);
        self.set(now, transmission + propagation, Timer::Arrival(event));
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
        let Some(lane) = line.delay_line(class) else {
            let [transmission, propagation] = times();
            self.set(now, transmission, Timer::Free(event));
            return self.set(now, transmission + propagation, Timer::Arrival(event));
        };
        let at = usize::from(lane);
        let free = FabricKey {
            time: now.0 + self.transmissions[at],
            order: self.order(FREE + lane),
        };
        // The arrival takes the next number.
        self.scheduled += 1;
        self.lanes[at].push(free, event);
        self.offer(FREE + lane, free);
        self.offer(REACH + lane, free.after(self.delays[at + LANES]));
    }

    /// Schedules the end of a transmission. Fabrics do not use it: only ports of a single switch schedule no
    /// arrivals.
    fn free_port(
        &mut self,
        now: EventTime,
        transmission: Duration,
        _class: SizeClass,
        event: PacketEvent,
    ) {
        self.set(now, transmission, Timer::Free(event));
    }

    #[inline(always)]
    fn take_arrival(&mut self, next: u8) -> PacketEvent {
        self.take(next)
    }

    fn arrive_next(
        &mut self,
        now: EventTime,
        transmission: Duration,
        _class: SizeClass,
        event: PacketEvent,
    ) {
        self.set(now, transmission, Timer::Arrival(event));
    }

    /// Sets the next start. Starts precede simultaneous events, because they were scheduled first.
    fn set_start(&mut self, start: Option<Instant>) {
        self.start = start.map_or(FabricKey::NEVER, |start| FabricKey {
            time: start.0,
            order: u64::from(HEAP),
        });
        self.find_heap();
    }

    fn set_timer(&mut self, now: EventTime, delay: Duration, timer: Timer) {
        self.set(now, delay, timer);
    }

    fn arriving(&self) -> impl Iterator<Item = PacketEvent> {
        let timers = self.timers.iter().filter_map(|entry| match entry.0.timer {
            Timer::Arrival(event) => Some(event),
            _ => None,
        });
        self.lanes
            .iter()
            .flat_map(DelayLine::crossing)
            .chain(timers)
    }

    fn in_service(&self) -> impl Iterator<Item = PacketEvent> {
        let timers = self.timers.iter().filter_map(|entry| match entry.0.timer {
            Timer::Free(event) => Some(event),
            _ => None,
        });
        self.lanes
            .iter()
            .flat_map(DelayLine::being_sent)
            .chain(timers)
    }
}

impl FabricEvents {
    #[inline(always)]
    fn order(&mut self, source: u8) -> u64 {
        self.scheduled += 1;
        FabricKey::RECENT | (self.scheduled * FabricKey::NUMBER) | u64::from(source)
    }

    #[inline(always)]
    fn offer(&mut self, source: u8, key: FabricKey) {
        let head = &mut self.heads[usize::from(source)];
        *head = head.earlier(key);
        self.first = self.first.earlier(key);
    }

    #[inline(always)]
    fn find_first(&mut self) {
        let [a, b, c, d, e, f, g, h, i] = self.heads;
        let of_free = a.earlier(b).earlier(c.earlier(d));
        let of_reach = e.earlier(f).earlier(g.earlier(h));
        self.first = of_free.earlier(of_reach).earlier(i);
    }

    #[cold]
    #[inline(never)]
    fn set(&mut self, now: EventTime, delay: Duration, timer: Timer) {
        let mut order = self.order(HEAP);
        if timer.was_set_long_before() {
            order &= !FabricKey::RECENT;
        }
        let time = now.saturating_add(delay).0;
        let key = FabricKey { time, order };
        self.timers.push(Reverse(Entry { key, timer }));
        self.offer(HEAP, key);
    }

    fn find_heap(&mut self) {
        let timer = self.timers.peek();
        let timer = timer.map_or(FabricKey::NEVER, |entry| entry.0.key);
        self.heads[usize::from(HEAP)] = self.start.min(timer);
        self.find_first();
    }
}
