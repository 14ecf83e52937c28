//! Events: the packets and timers that they are about, when they are due, and [`Events`], the interface of all event
//! queues. There are two, that of a [single switch](super::single) and that of a [fabric](super::fabric).
//!
//! Events hold the number of a packet, not the packet: copying packets between queues costs more
//! than everything else, because a packet is written in small pieces and read in large ones.

use std::fmt::Debug;

use super::clock::EventTime;
use super::ids::{Neighbour, PacketId, SwitchId};
use super::link::LinkKind;
use super::packet::SizeClass;
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
    pub(super) fn rank(self) -> TieBreak {
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
pub struct EventKey(pub(super) u64);

/// Bits of the rank in an [`EventKey`].
pub(super) const RANK_BITS: u32 = 4;

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
    pub(super) fn saturating(time: EventTime, rank: u8) -> EventKey {
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
