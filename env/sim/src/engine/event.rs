//! The event queue. [`Events`] is the interface of all event queues. This file has the one of a single
//! switch, [`EventQueue`], and the types that it shares with the one of a [fabric](super::fabric).
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
//!
//! Events hold the number of a packet, not the packet: copying packets between queues costs more
//! than everything else, because a packet is written in small pieces and read in large ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Debug;

use super::clock::EventTime;
use super::fifo::FixedDelayQueue;
use super::link::LinkKind;
use super::packet::{PacketId, SizeClass};
use super::topology::{Neighbour, SwitchId};
use crate::units::{Duration, Instant};

/// A packet of an event, and the host or switch that sends it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PacketEvent {
    pub(crate) packet: PacketId,
    /// A host, or a [switch](PacketEvent::of_switch). In a network of one switch, hosts may have any
    /// number.
    pub(crate) sender: u16,
    /// Rank of the event that made the host begin to send the packet. In a network of several switches:
    /// the other end of a switch's line.
    note: u16,
}

impl PacketEvent {
    /// Bit that marks switches among senders.
    const SWITCH: u16 = 1 << 15;

    /// Returns the event of a packet that a host sends; `rank` is that of the event that made it begin.
    #[inline(always)]
    pub(crate) fn of_host(host: u16, packet: PacketId, rank: TieBreak) -> PacketEvent {
        PacketEvent {
            packet,
            sender: host,
            note: rank.0,
        }
    }

    /// Returns the event of a packet that a switch sends.
    #[inline(always)]
    pub(crate) fn of_switch(switch: SwitchId, packet: PacketId) -> PacketEvent {
        PacketEvent {
            packet,
            sender: switch.0 | PacketEvent::SWITCH,
            note: TieBreak::FIRST.0,
        }
    }

    /// Returns the event of a packet that a switch of a fabric sends to its neighbour.
    #[inline(always)]
    pub(crate) fn of_line(switch: SwitchId, packet: PacketId, to: Neighbour) -> PacketEvent {
        PacketEvent {
            packet,
            sender: switch.0 | PacketEvent::SWITCH,
            note: match to {
                Neighbour::Host(host) => host,
                Neighbour::Switch(to) => to.0 | PacketEvent::SWITCH,
            },
        }
    }

    /// Returns the rank of the event that made the host begin to send the packet.
    #[inline(always)]
    fn rank(self) -> TieBreak {
        TieBreak(self.note)
    }

    /// Returns the sender if it is a switch.
    #[inline(always)]
    pub(crate) fn sending_switch(self) -> Option<SwitchId> {
        let number = self.sender ^ PacketEvent::SWITCH;
        (number < PacketEvent::SWITCH).then_some(SwitchId(number))
    }

    /// Returns the switch to which a switch of a fabric sends the packet; `None` if the receiver is a host.
    #[inline(always)]
    pub(crate) fn receiving_switch(self) -> Option<SwitchId> {
        let number = self.note ^ PacketEvent::SWITCH;
        (number < PacketEvent::SWITCH).then_some(SwitchId(number))
    }
}

/// Rank of an event among simultaneous events at a host: events that were scheduled earlier run first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct TieBreak(u16);

impl TieBreak {
    /// Rank before any delivery.
    pub(crate) const FIRST: TieBreak = TieBreak(0);
    /// Rank after any delivery.
    pub(crate) const LAST: TieBreak = TieBreak(u16::MAX);
}

/// Ranks of events at hosts, by the delay with which they were scheduled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TieBreaks {
    delays: [Duration; 4],
    /// Rank of the end of a transmission, by common size.
    sent: [TieBreak; 2],
    /// Rank of a delivery, by common size.
    delivered: [TieBreak; 2],
}

impl TieBreaks {
    /// Computes the ranks from the delays with which ends of transmission and deliveries are scheduled, by
    /// common size.
    pub(crate) fn new(sent: [Duration; 2], delivered: [Duration; 2]) -> TieBreaks {
        let mut ranks = TieBreaks {
            delays: [sent[0], sent[1], delivered[0], delivered[1]],
            sent: Default::default(),
            delivered: Default::default(),
        };
        ranks.sent = sent.map(|delay| ranks.after(delay));
        ranks.delivered = delivered.map(|delay| ranks.after(delay));
        ranks
    }

    /// Returns the rank of an event that was scheduled with this delay.
    fn after(&self, delay: Duration) -> TieBreak {
        let longer = self.delays.iter().filter(|&&known| known > delay);
        TieBreak(1 + longer.map(|_| 1).sum::<u16>())
    }

    /// Returns the rank of the end of a transmission.
    #[inline(always)]
    pub(crate) fn sent(&self, class: SizeClass, transmission: Duration) -> TieBreak {
        match class.common() {
            Some(class) => self.sent[usize::from(class)],
            None => self.after(transmission),
        }
    }

    /// Returns the rank of a packet's delivery. A packet of unusual size counts as an acknowledgement.
    #[inline(always)]
    pub(crate) fn delivered(&self, class: SizeClass) -> TieBreak {
        self.delivered[usize::from(class.common().unwrap_or(1))]
    }
}

/// Due time of an event, and its rank among simultaneous ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EventKey(u64);

const RANK_BITS: u32 = 4;

/// The last instant at which an event can be due: thirteen days.
pub(super) const LAST_INSTANT: EventTime = EventTime((u64::MAX >> RANK_BITS) - 1);

/// No event is run after this instant, so that the events that an event schedules can still be expressed.
/// The longest delay in a FIFO queue is two propagation delays of 100 s and a transmission of less than a
/// second.
pub(crate) const HORIZON: EventTime = EventTime(LAST_INSTANT.0 - Duration::from_ms(1_000_000).0);

impl EventKey {
    /// Later than all events.
    pub(super) const NEVER: EventKey = EventKey(u64::MAX);

    #[inline]
    pub(super) fn new(time: EventTime, rank: u8) -> EventKey {
        EventKey(time.0 << RANK_BITS | u64::from(rank))
    }

    /// Like [`new`](EventKey::new), but returns [`NEVER`](EventKey::NEVER) for instants after [`LAST_INSTANT`].
    fn saturating(time: EventTime, rank: u8) -> EventKey {
        if time > LAST_INSTANT {
            EventKey::NEVER
        } else {
            EventKey::new(time, rank)
        }
    }

    #[inline]
    pub(crate) fn time(self) -> EventTime {
        EventTime(self.0 >> RANK_BITS)
    }

    #[inline]
    pub(super) fn rank(self) -> u8 {
        (self.0 & ((1 << RANK_BITS) - 1)) as u8
    }
}

/// Queues in which events wait.
pub(crate) mod source {
    /// A port becomes free, by the size of the packet that it has sent.
    pub(crate) const FREE: u8 = 0;
    pub(crate) const FREE_OF_ACK: u8 = 1;
    /// A packet of a host that was idle reaches the switch, by size.
    pub(crate) const ARRIVAL: u8 = 2;
    pub(crate) const ARRIVAL_OF_ACK: u8 = 3;
    /// A busy host continues, by size of the packet: a FIFO host's next packet reaches the switch, or a
    /// fair host is free to choose its next packet.
    pub(crate) const NEXT: u8 = 4;
    pub(crate) const NEXT_OF_ACK: u8 = 5;
    /// The event waits in the heap.
    pub(crate) const HEAP: u8 = 6;
}

use source::{ARRIVAL, FREE, HEAP, NEXT};

const QUEUES: u8 = 6;
/// Number of FIFO queues, as a length.
const LENGTH: usize = QUEUES as usize;

/// Delays of the events that wait in FIFO queues.
#[derive(Clone, Copy, Debug)]
pub struct Delays {
    /// Transmission times of a full segment and of an acknowledgement, on links of hosts.
    pub(crate) transmission: [Duration; 2],
    /// The same transmission times on links between switches.
    pub(crate) of_fabric: [Duration; 2],
    /// Delay from one end of a link of a host to the other.
    pub(crate) propagation: Duration,
    /// The same delay on links between switches.
    pub(crate) fabric_propagation: Duration,
    /// Time from the scheduling of a delivery to the delivery, by the size of the packet.
    pub(crate) delivery: [Duration; 2],
    /// True if hosts choose their next packet when their link is free.
    pub(crate) fair_hosts: bool,
}

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

/// Effect of a pause frame at its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PauseEffect {
    /// The host or switch that receives the frame.
    pub(crate) node: u16,
    pub(crate) is_switch: bool,
    pub(crate) priority: u8,
    /// The port of a switch by which the frame arrived.
    pub(crate) port: u16,
    /// Duration, in units of 512 bit times; 0 resumes.
    pub(crate) quanta: u16,
}

/// An alarm that a control loop has set for itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alarm {
    /// Switch of the decision that set it.
    pub switch: SwitchId,
    /// What it announces.
    pub kind: AlarmKind,
    /// Number of the decision at the switch. A later decision makes the alarm void.
    pub number: u32,
}

/// What an [`Alarm`] announces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AlarmKind {
    /// A delayed decision comes into force.
    Apply,
    /// The shortest time between decisions is over.
    Release,
    /// The longest time between decisions is over.
    Interval,
}

/// Events at irregular times.
#[derive(Clone, Copy, Debug)]
pub enum Timer {
    /// A packet of unusual size reaches the switch.
    Arrival(PacketEvent),
    /// A port has sent a packet of unusual size.
    Free(PacketEvent),
    /// A fair host has sent a packet of unusual size.
    Next(u16),
    /// A retransmission timer may have expired; it is read when the event falls due, so that
    /// restarting a timer costs nothing.
    Retransmission(u32),
    /// A host takes a packet that has arrived earlier.
    Delivery(u16),
    /// A flow sends its first data.
    Begin(u32),
    /// A SYN may have been lost; the values are the flow and the number of SYNs sent before.
    Syn(u32, u8),
    /// A SYN-ACK may have been lost.
    SynAck(u32),
    /// An acknowledgement may have waited long enough.
    DelayedAck(u32),
    /// A paced flow may send its next segment.
    Pace(u32),
    /// The control loop asked to be woken.
    Alarm(Alarm),
    /// A pause frame takes effect.
    Pause(PauseEffect),
    /// A pause ends by itself.
    PauseEnds(PauseEffect),
    /// A switch may have to repeat a pause; the values are the switch and the queue that pauses.
    PauseAgain(u16, u16),
    /// Queues may have been paused for too long.
    Watchdog,
    /// The measurement window begins.
    WindowOpens,
    /// The measurement window ends.
    WindowCloses,
}

impl Timer {
    /// Returns true if the timeout was set longer ago than a packet takes from node to node, although
    /// the event itself may have been renewed since.
    pub(super) fn was_set_long_before(&self) -> bool {
        matches!(
            self,
            Timer::Retransmission(_) | Timer::Syn(..) | Timer::SynAck(_)
        )
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

/// An event of the heap, or a start, that has fallen due.
#[derive(Clone, Copy, Debug)]
pub enum HeapEvent {
    /// The next flow starts.
    Start,
    /// A timer.
    Timer(Timer),
}

/// All pending events. Simultaneous ones fall due in the order in which they were scheduled.
pub trait Events: Clone + Debug {
    /// Returns a queue without pending events.
    fn new(delays: Delays) -> Self;

    /// Returns when the next event is due; its rank tells where it waits. Complexity: O(1).
    fn next(&self) -> EventKey;

    /// Returns the queue in which the [next](Events::next) event waits.
    fn source(&self, due: EventKey) -> u8;

    /// Takes the event that has fallen due in the queue `source`. Complexity: O(1).
    fn take(&mut self, source: u8) -> PacketEvent;

    /// Takes the start or timer that has fallen due.
    fn take_heap(&mut self) -> HeapEvent;

    /// Schedules the arrival of a packet that an idle sender begins to send now. Sending takes
    /// `transmission`; the last bit reaches the far end of the line one propagation delay later.
    fn arrive(
        &mut self,
        now: EventTime,
        line: LinkKind,
        transmission: Duration,
        class: SizeClass,
        event: PacketEvent,
    );

    /// Schedules both events of a packet that a fair host, or a port of a fabric's switch, begins to send
    /// now. `times` returns the transmission time, after which the sender is free, and the propagation delay, after
    /// which the last bit reaches the far end of the line.
    fn cross(
        &mut self,
        now: EventTime,
        line: LinkKind,
        times: impl FnOnce() -> [Duration; 2],
        class: SizeClass,
        event: PacketEvent,
    );

    /// Schedules the end of transmission of a packet that a port of a single switch begins to send now.
    fn free_port(
        &mut self,
        now: EventTime,
        transmission: Duration,
        class: SizeClass,
        event: PacketEvent,
    );

    /// Takes the packet that reaches a switch next; `next` is the queue of busy hosts. If packets reach the
    /// switch simultaneously, their hosts began to send them simultaneously. Then the events that made the
    /// hosts begin decide the order.
    fn take_arrival(&mut self, next: u8) -> PacketEvent;

    /// Schedules the arrival at the switch of a packet whose host began to send it when the packet that
    /// arrives now had left. It arrives one `transmission` after that packet.
    fn arrive_next(
        &mut self,
        now: EventTime,
        transmission: Duration,
        class: SizeClass,
        event: PacketEvent,
    );

    /// Sets the start of the next flow; `None` if there is none.
    fn set_start(&mut self, start: Option<Instant>);

    /// Schedules a timer. Complexity: O(log n) in the number of pending timers.
    fn set_timer(&mut self, now: EventTime, delay: Duration, timer: Timer);

    /// Returns the packets that have an event at the switch, or host, that they reach next.
    fn arriving(&self) -> impl Iterator<Item = PacketEvent>;

    /// Returns the packets that a port is sending.
    fn in_service(&self) -> impl Iterator<Item = PacketEvent>;
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
