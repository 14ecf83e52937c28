//! The discrete-event engine that hosts and switches share: a clock, pending events, packets in flight,
//! and the links that they cross.

pub(crate) mod clock;
mod delay_line;
pub(crate) mod event;
pub(crate) mod fabric;
mod fifo;
mod ids;
pub(crate) mod link;
pub(crate) mod packet;
pub(crate) mod port_link;
mod single;
pub(crate) mod telemetry;
pub(crate) mod topology;

use clock::EventTime;
use event::{Events as _, PacketEvent, TieBreak, TieBreaks, Timer};
use link::{LinkKind, Links};
use packet::{Packet, PacketId, PacketStore};
use topology::Topology;

use crate::units::{Duration, Instant};

/// State that hosts and switches share.
#[derive(Clone, Debug)]
pub(crate) struct Engine<T: Topology> {
    /// Current event time.
    pub(crate) now: EventTime,
    /// Rank of the current event at a host among simultaneous events.
    pub(crate) rank: TieBreak,
    pub(crate) ranks: TieBreaks,
    pub(crate) events: T::Events,
    pub(crate) packets: PacketStore,
    pub(crate) links: Links,
    /// Number of packets that hosts have created.
    pub(crate) created: u64,
}

impl<T: Topology> Engine<T> {
    /// Returns the current time on the clock of the hosts.
    #[inline]
    pub(crate) fn host_now(&self) -> Instant {
        self.now.at_host()
    }

    /// Adds a packet that a host has created.
    #[inline]
    pub(crate) fn create(&mut self, packet: Packet) -> PacketId {
        self.created += 1;
        self.packets.insert(packet)
    }

    /// Schedules a timer. Complexity: O(log n) in the number of pending timers.
    pub(crate) fn set_timer(&mut self, delay: Duration, timer: Timer) {
        self.events.set_timer(self.now, delay, timer);
    }

    /// Schedules the arrival at the switch of a packet that an idle host begins to send now.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, event: PacketEvent) {
        let packet = &self.packets[event.packet];
        let (class, transmission) = (
            packet.class,
            self.links.transmission(LinkKind::HOST, packet),
        );
        self.events
            .arrive(self.now, LinkKind::HOST, transmission, class, event);
    }

    /// Schedules the arrival of a FIFO host's packet that follows without a gap the one that reaches the
    /// switch now. It arrives one transmission time later.
    #[inline(always)]
    pub(crate) fn arrive_next(&mut self, event: PacketEvent) {
        let packet = &self.packets[event.packet];
        let (class, transmission) = (
            packet.class,
            self.links.transmission(LinkKind::HOST, packet),
        );
        self.events
            .arrive_next(self.now, transmission, class, event);
    }

    /// Schedules the end of transmission of a packet that a port of a single switch begins to send now.
    #[inline(always)]
    pub(crate) fn free_port(&mut self, event: PacketEvent) {
        let packet = &self.packets[event.packet];
        let (class, transmission) = (
            packet.class,
            self.links.transmission(LinkKind::HOST, packet),
        );
        self.events.free_port(self.now, transmission, class, event);
    }

    /// Schedules both events of a packet that a host, or a port of a fabric, begins to send now: the
    /// sender becomes free, and then the packet reaches the far end of the line.
    #[inline(always)]
    pub(crate) fn cross(&mut self, line: LinkKind, event: PacketEvent) {
        let packet = &self.packets[event.packet];
        let class = packet.class;
        let links = &self.links;
        let times = || [links.transmission(line, packet), links.propagation(line)];
        self.events.cross(self.now, line, times, class, event);
    }
}
