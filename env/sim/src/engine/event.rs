//! The event queue: what happens next. What every queue of events does is [`Events`]; this file has
//! that of a single switch, [`EventQueue`], and what it shares with that of a
//! [fabric](super::fabric).
//!
//! Nearly all events are scheduled a constant time ahead. A packet of a given size leaves its sender
//! after a constant time, and a bit crosses a link in a constant time. Events of one delay fall due
//! in the order in which they were scheduled, so they wait in a FIFO queue and need no heap. Nearly
//! all packets have one of two sizes, a full segment or an acknowledgement, and hosts and ports send
//! at the same rate. That makes six FIFO queues: a port becomes free, a packet of an idle host
//! reaches a switch, and a busy host goes on with its next packet, each for two sizes. Timers,
//! starts of flows and packets of other sizes wait in a heap.
//!
//! **The clock** is the [event time](super::clock). A packet that leaves a switch towards a host is
//! delivered in the same event. The way from a host to a switch takes two propagation delays.
//!
//! **The next event** is the earliest of seven: the heads of the six FIFO queues and of the heap.
//! Their due times lie in adjacent words, which are written when a head changes. Their minimum needs
//! a fixed number of comparisons and no branch, whatever the number of pending events.
//!
//! **Simultaneous events** run in the order in which they were scheduled. Of two events that are due
//! at the same time, the one with the longer delay was scheduled earlier. So the rank of the delay
//! decides, which is kept in the lowest bits of the due time; no sequence number is needed. The rank
//! also tells in which queue the event waits.
//!
//! Events hold the number of a packet, not the packet: copying packets between queues costs more
//! than everything else, because a packet is written in small pieces and read in large ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Debug;

use super::clock::EventTime;
use super::fifo::FixedDelayQueue;
use super::link::Line;
use super::packet::{PacketId, SizeClass};
use super::topology::{Neighbour, SwitchId};
use crate::units::Time;

/// What an event is about: a packet, and the host or switch that sends it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Subject {
    pub(crate) packet: PacketId,
    /// A host, or a [switch](Subject::of_switch). Where there is one switch, hosts may have any
    /// number.
    pub(crate) sender: u16,
    /// What made the host begin to send it, or in a network of several switches the other end of a
    /// switch's line.
    note: u16,
}

impl Subject {
    /// Marks switches among senders.
    const SWITCH: u16 = 1 << 15;

    /// A packet that a host sends; `rank` is that of what made it begin.
    #[inline(always)]
    pub(crate) fn of_host(host: u16, packet: PacketId, rank: TieRank) -> Subject {
        Subject {
            packet,
            sender: host,
            note: rank.0,
        }
    }

    /// A packet that a switch sends.
    #[inline(always)]
    pub(crate) fn of_switch(switch: SwitchId, packet: PacketId) -> Subject {
        Subject {
            packet,
            sender: switch.0 | Subject::SWITCH,
            note: TieRank::FIRST.0,
        }
    }

    /// A packet that a switch of several sends to its neighbour.
    #[inline(always)]
    pub(crate) fn of_line(switch: SwitchId, packet: PacketId, to: Neighbour) -> Subject {
        Subject {
            packet,
            sender: switch.0 | Subject::SWITCH,
            note: match to {
                Neighbour::Host(host) => host,
                Neighbour::Switch(to) => to.0 | Subject::SWITCH,
            },
        }
    }

    /// What made the host begin to send the packet.
    #[inline(always)]
    fn rank(self) -> TieRank {
        TieRank(self.note)
    }

    /// The sender, if it is a switch.
    #[inline(always)]
    pub(crate) fn sending_switch(self) -> Option<SwitchId> {
        let number = self.sender ^ Subject::SWITCH;
        (number < Subject::SWITCH).then_some(SwitchId(number))
    }

    /// The switch that a switch of several sends the packet to; none if that is a host.
    #[inline(always)]
    pub(crate) fn receiving_switch(self) -> Option<SwitchId> {
        let number = self.note ^ Subject::SWITCH;
        (number < Subject::SWITCH).then_some(SwitchId(number))
    }
}

/// Rank of an event among simultaneous events at a host: what was scheduled earlier runs first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct TieRank(u16);

impl TieRank {
    /// Before any delivery.
    pub(crate) const FIRST: TieRank = TieRank(0);
    /// After any delivery.
    pub(crate) const LAST: TieRank = TieRank(u16::MAX);
}

/// The ranks of events at hosts, by the delay with which they were scheduled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TieRanks {
    delays: [Time; 4],
    /// Of the end of a transmission, by common size.
    sent: [TieRank; 2],
    /// Of a delivery, by common size.
    delivered: [TieRank; 2],
}

impl TieRanks {
    /// From the delays with which ends of transmission and deliveries are scheduled, by common
    /// size.
    pub(crate) fn new(sent: [Time; 2], delivered: [Time; 2]) -> TieRanks {
        let mut ranks = TieRanks {
            delays: [sent[0], sent[1], delivered[0], delivered[1]],
            sent: Default::default(),
            delivered: Default::default(),
        };
        ranks.sent = sent.map(|delay| ranks.after(delay));
        ranks.delivered = delivered.map(|delay| ranks.after(delay));
        ranks
    }

    /// The rank of an event that was scheduled with this delay.
    fn after(&self, delay: Time) -> TieRank {
        let longer = self.delays.iter().filter(|&&known| known > delay);
        TieRank(1 + longer.map(|_| 1).sum::<u16>())
    }

    /// The end of a transmission.
    #[inline(always)]
    pub(crate) fn sent(&self, class: SizeClass, transmission: Time) -> TieRank {
        match class.common() {
            Some(class) => self.sent[usize::from(class)],
            None => self.after(transmission),
        }
    }

    /// The delivery of a packet; that of an unusual size counts as an acknowledgement's.
    #[inline(always)]
    pub(crate) fn delivered(&self, class: SizeClass) -> TieRank {
        self.delivered[usize::from(class.common().unwrap_or(1))]
    }
}

/// When an event is due, and its rank among simultaneous ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Due(u64);

const RANK_BITS: u32 = 4;

/// The last instant an event can be due at: thirteen days.
pub(super) const LAST_INSTANT: EventTime = EventTime((u64::MAX >> RANK_BITS) - 1);

/// No event is run after this instant, so that what an event schedules can still be expressed: the
/// longest delay in a FIFO queue is two propagation delays of 100 s and a transmission of less than
/// a second.
pub(crate) const HORIZON: EventTime = EventTime(LAST_INSTANT.0 - Time::from_ms(1_000_000).0);

impl Due {
    /// After all events.
    pub(super) const NEVER: Due = Due(u64::MAX);

    #[inline]
    pub(super) fn new(time: EventTime, rank: u8) -> Due {
        Due(time.0 << RANK_BITS | u64::from(rank))
    }

    /// As [`new`](Due::new); later than [`LAST_INSTANT`] is never.
    fn saturating(time: EventTime, rank: u8) -> Due {
        if time > LAST_INSTANT {
            Due::NEVER
        } else {
            Due::new(time, rank)
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

/// Where events wait.
pub(crate) mod source {
    /// A port becomes free, by size of what it has sent.
    pub(crate) const FREE: u8 = 0;
    pub(crate) const FREE_OF_ACK: u8 = 1;
    /// A packet of a host that was idle reaches the switch, by size.
    pub(crate) const ARRIVAL: u8 = 2;
    pub(crate) const ARRIVAL_OF_ACK: u8 = 3;
    /// A busy host goes on, by size of the packet: a FIFO host's next packet reaches the switch; a
    /// fair host is free to choose its next packet.
    pub(crate) const NEXT: u8 = 4;
    pub(crate) const NEXT_OF_ACK: u8 = 5;
    /// Waits in the heap.
    pub(crate) const IRREGULAR: u8 = 6;
}

use source::{ARRIVAL, FREE, IRREGULAR, NEXT};

const QUEUES: u8 = 6;
/// How many as a length.
const LENGTH: usize = QUEUES as usize;

/// Delays of the events that wait in FIFO queues.
#[derive(Clone, Copy, Debug)]
pub struct Delays {
    /// Transmission time of a full segment and of an acknowledgement, on links of hosts.
    pub(crate) transmission: [Time; 2],
    /// The same on links between switches.
    pub(crate) of_fabric: [Time; 2],
    /// From one end of a link to the other.
    pub(crate) propagation: Time,
    /// How long before a delivery it is scheduled, by the size of the packet.
    pub(crate) delivery: [Time; 2],
    /// Hosts choose their next packet when their link is free.
    pub(crate) fair_hosts: bool,
}

impl Delays {
    /// Ahead of the event that schedules it.
    fn ahead(&self, queue: u8) -> Time {
        let transmission = self.transmission[usize::from(queue % 2)];
        match queue - queue % 2 {
            ARRIVAL => Time(transmission.0 + 2 * self.propagation.0),
            _ => transmission,
        }
    }

    /// How long before it falls due an event is scheduled in principle: when its sender begins to
    /// send.
    fn since_cause(&self, queue: u8) -> Time {
        let transmission = self.transmission[usize::from(queue % 2)];
        match queue - queue % 2 {
            NEXT if self.fair_hosts => self.rank_among_deliveries(transmission),
            FREE => transmission,
            _ => transmission + self.propagation,
        }
    }

    /// A fair host that becomes free chooses among what was delivered before. Deliveries happen
    /// where ports become free, so it is ranked among those.
    fn rank_among_deliveries(&self, transmission: Time) -> Time {
        let longest = self.delivery.iter().zip(self.transmission);
        let later = longest.filter(|(delivery, _)| **delivery < transmission);
        later
            .map(|(_, of_port)| of_port + Time(1))
            .max()
            .unwrap_or(Time::ZERO)
    }
}

/// What a pause frame does where it arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PauseEffect {
    /// The host or switch.
    pub(crate) node: u16,
    pub(crate) is_switch: bool,
    pub(crate) priority: u8,
    /// The port of a switch that the frame came by.
    pub(crate) port: u16,
    /// For how long, in times of 512 bits; 0 resumes.
    pub(crate) quanta: u16,
}

/// Events at irregular times.
#[derive(Clone, Copy, Debug)]
pub enum Timer {
    /// A packet of unusual size reaches the switch.
    Arrival(Subject),
    /// A port has sent a packet of unusual size.
    Free(Subject),
    /// A fair host has sent a packet of unusual size.
    Next(u16),
    /// A retransmission timer may have expired; it is read when the event falls due, so that
    /// restarting a timer costs nothing.
    Retransmission(u32),
    /// A host takes a packet that has reached it before.
    Delivery(u16),
    /// A flow sends its first data.
    Begin(u32),
    /// A SYN may have been lost; the number of SYNs sent before.
    Syn(u32, u8),
    /// A SYN-ACK may have been lost.
    SynAck(u32),
    /// An acknowledgement may have waited long enough.
    DelayedAck(u32),
    /// A paced flow may send its next segment.
    Pace(u32),
    /// The control loop asked to be woken; its tag.
    Alarm(u64),
    /// A pause frame takes effect.
    Pause(PauseEffect),
    /// A pause ends by itself.
    PauseEnds(PauseEffect),
    /// A switch may have to repeat a pause; the switch, and the queue that pauses.
    PauseAgain(u16, u16),
    /// Queues may have been paused for too long.
    Watchdog,
    /// What happens from here on counts.
    WindowOpens,
    /// What happens from here on does not count.
    WindowCloses,
}

impl Timer {
    /// Whether what it waits for was set longer before than a packet takes from node to node,
    /// although the event itself may have been renewed since.
    pub(super) fn was_set_long_before(&self) -> bool {
        matches!(
            self,
            Timer::Retransmission(_) | Timer::Syn(..) | Timer::SynAck(_)
        )
    }
}

/// An event of the heap: of simultaneous ones, the longer delay, then the sequence number, decide.
#[derive(Clone, Copy, Debug)]
struct Entry {
    due: Due,
    sequence: u64,
    timer: Timer,
}

impl Entry {
    fn key(&self) -> (Due, u64) {
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
pub enum Irregular {
    /// The next flow starts.
    Start,
    /// A timer.
    Timer(Timer),
}

/// All pending events. Simultaneous ones fall due in the order in which they were scheduled.
pub trait Events: Clone + Debug {
    /// None pending.
    fn new(delays: Delays) -> Self;

    /// When the next event is due, and where it waits. Complexity: O(1).
    fn next(&self) -> Due;

    /// Where the event waits that is [next](Events::next).
    fn source(&self, due: Due) -> u8;

    /// Takes the event that has fallen due there. Complexity: O(1).
    fn take(&mut self, source: u8) -> Subject;

    /// Takes what has fallen due at an irregular time.
    fn take_irregular(&mut self) -> Irregular;

    /// A sender that was idle begins to send a packet now, which takes `transmission`; its last bit
    /// reaches the far end of the line one propagation delay after that.
    fn arrive(
        &mut self,
        now: EventTime,
        line: Line,
        transmission: Time,
        class: SizeClass,
        subject: Subject,
    );

    /// A fair host, or a port of a switch of several, begins to send a packet now, which takes
    /// `transmission`: it will be free, and one propagation delay after that the last bit reaches the
    /// far end of the line.
    fn cross(
        &mut self,
        now: EventTime,
        line: Line,
        transmission: Time,
        class: SizeClass,
        subject: Subject,
    );

    /// A port of a single switch begins to send a packet now, and will be free.
    fn free_port(&mut self, now: EventTime, transmission: Time, class: SizeClass, subject: Subject);

    /// Takes the packet that reaches a switch next; `next` is where hosts that go on wait.
    /// Where packets reach it simultaneously, their hosts began to send them simultaneously, and
    /// what made them do so decides.
    fn take_arrival(&mut self, next: u8) -> Subject;

    /// A packet reaches the switch whose host began to send it when the one that arrives now had
    /// left: one `transmission` after that one.
    fn arrive_next(
        &mut self,
        now: EventTime,
        transmission: Time,
        class: SizeClass,
        subject: Subject,
    );

    /// The next flow to start.
    fn set_start(&mut self, start: Option<Time>);

    /// Schedules a timer. Complexity: O(log n) in the number of pending timers.
    fn set_timer(&mut self, now: EventTime, delay: Time, timer: Timer);

    /// Packets that have an event at the switch, or host, that they reach next.
    fn arriving(&self) -> impl Iterator<Item = Subject>;

    /// Packets that a port is sending.
    fn in_service(&self) -> impl Iterator<Item = Subject>;
}

/// The events of a single switch and its hosts.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// When each candidate is due.
    heads: [Due; LENGTH + 1],
    /// For each FIFO queue, what is added to the present, its rank included.
    ahead: [u64; LENGTH],
    /// By rank.
    sources: [u8; 1 << RANK_BITS],
    queues: [FixedDelayQueue; LENGTH],
    timers: BinaryHeap<Reverse<Entry>>,
    /// Timers ever set.
    sequence: u64,
    start: Due,
    delays: Delays,
}

impl Events for EventQueue {
    fn new(delays: Delays) -> EventQueue {
        let mut order: Vec<u8> = (0..QUEUES).collect();
        order.sort_by_key(|&queue| Reverse((delays.since_cause(queue), queue)));
        let mut ahead = [0; LENGTH];
        let mut sources = [IRREGULAR; 1 << RANK_BITS];
        for (place, queue) in (0..QUEUES).zip(order) {
            // Even ranks are left to the heap.
            let rank = 2 * place + 1;
            let delay = EventTime(delays.ahead(queue).0);
            ahead[usize::from(queue)] = Due::new(delay, rank).0;
            sources[usize::from(rank)] = queue;
        }
        EventQueue {
            heads: [Due::NEVER; LENGTH + 1],
            ahead,
            sources,
            queues: Default::default(),
            timers: BinaryHeap::new(),
            sequence: 0,
            start: Due::NEVER,
            delays,
        }
    }

    #[inline(always)]
    fn next(&self) -> Due {
        let [a, b, c, d, e, f, g] = self.heads;
        a.min(b).min(c.min(d)).min(e.min(f).min(g))
    }

    #[inline(always)]
    fn source(&self, due: Due) -> u8 {
        self.sources[usize::from(due.rank())]
    }

    #[inline(always)]
    fn take(&mut self, queue: u8) -> Subject {
        let (subject, next) = self.queues[usize::from(queue)].pop();
        self.heads[usize::from(queue)] = next;
        subject
    }

    /// Of simultaneous events a start comes first.
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
        _line: Line,
        transmission: Time,
        class: SizeClass,
        subject: Subject,
    ) {
        if let Some(class) = class.common() {
            return self.schedule(now, ARRIVAL + class, subject);
        }
        let propagation = self.delays.propagation;
        let cause = transmission + propagation;
        self.set(now, cause + propagation, cause, Timer::Arrival(subject));
    }

    #[inline(always)]
    fn cross(
        &mut self,
        now: EventTime,
        line: Line,
        transmission: Time,
        class: SizeClass,
        subject: Subject,
    ) {
        self.arrive(now, line, transmission, class, subject);
        match class.common() {
            Some(class) => self.schedule(now, NEXT + class, subject),
            None => self.set_timer(now, transmission, Timer::Next(subject.sender)),
        }
    }

    #[inline(always)]
    fn free_port(
        &mut self,
        now: EventTime,
        transmission: Time,
        class: SizeClass,
        subject: Subject,
    ) {
        match class.common() {
            Some(class) => self.schedule(now, FREE + class, subject),
            None => self.set_timer(now, transmission, Timer::Free(subject)),
        }
    }

    #[inline(always)]
    fn take_arrival(&mut self, next: u8) -> Subject {
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
        transmission: Time,
        class: SizeClass,
        subject: Subject,
    ) {
        if let Some(class) = class.common() {
            return self.schedule(now, NEXT + class, subject);
        }
        let cause = transmission + self.delays.propagation;
        self.set(now, transmission, cause, Timer::Arrival(subject));
    }

    fn set_start(&mut self, start: Option<Time>) {
        let due = |time| Due::saturating(EventTime::of_host(time), 0);
        self.start = start.map_or(Due::NEVER, due);
        self.find_irregular();
    }

    fn set_timer(&mut self, now: EventTime, delay: Time, timer: Timer) {
        self.set(now, delay, delay, timer);
    }

    fn arriving(&self) -> impl Iterator<Item = Subject> {
        let timers = self.timers.iter().filter_map(|entry| match entry.0.timer {
            Timer::Arrival(subject) => Some(subject),
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

    fn in_service(&self) -> impl Iterator<Item = Subject> {
        let timers = self.timers.iter().filter_map(|entry| match entry.0.timer {
            Timer::Free(subject) => Some(subject),
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
    fn offer(&mut self, index: u8, due: Due) {
        let head = &mut self.heads[usize::from(index)];
        *head = (*head).min(due);
    }

    /// Schedules an event in a FIFO queue. Complexity: O(1), amortised.
    #[inline(always)]
    fn schedule(&mut self, now: EventTime, queue: u8, subject: Subject) {
        let due = Due((now.0 << RANK_BITS) + self.ahead[usize::from(queue)]);
        self.queues[usize::from(queue)].push(due, subject);
        self.offer(queue, due);
    }

    #[cold]
    #[inline(never)]
    fn idle_began_first(&self, next: u8, idle: u8) -> bool {
        let [of_busy, of_idle] = [next, idle].map(|queue| self.queues[usize::from(queue)].front());
        of_idle.rank() < of_busy.rank()
    }

    /// `since_cause` is the delay that ranks it among simultaneous events.
    #[cold]
    #[inline(never)]
    fn set(&mut self, now: EventTime, delay: Time, since_cause: Time, timer: Timer) {
        let earlier = |queue| u8::from(self.delays.since_cause(queue) > since_cause);
        let rank = 2 * (0..QUEUES).map(earlier).sum::<u8>();
        let due = Due::saturating(now.saturating_add(delay), rank);
        self.sequence += 1;
        self.timers.push(Reverse(Entry {
            due,
            sequence: self.sequence,
            timer,
        }));
        self.offer(IRREGULAR, due);
    }

    fn find_irregular(&mut self) {
        let timer = self.timers.peek().map_or(Due::NEVER, |entry| entry.0.due);
        self.heads[usize::from(IRREGULAR)] = self.start.min(timer);
    }
}
