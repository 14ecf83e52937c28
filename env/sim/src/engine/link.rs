//! Links: rates, delays and transmission times.

use super::packet::{Packet, SizeClass};
use crate::scenario::Scenario;
use crate::units::{Duration, Rate};

/// Kind of a link: links of one kind have one rate and one delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkKind(u8);

impl LinkKind {
    /// A host and a switch.
    pub const HOST: LinkKind = LinkKind(0);
    /// Two switches; where such links differ, the kind of most of them.
    pub const FABRIC: LinkKind = LinkKind(1);

    /// Number of kinds that nearly all packets cross.
    const COMMON: usize = 2;

    /// Returns the kind with this place among those of links between switches, the most frequent first.
    pub(crate) fn of_switches(place: usize) -> LinkKind {
        LinkKind(u8::try_from(place + 1).expect("a network has at most 250 kinds of links"))
    }

    /// Returns the number of the delay line of packets of this size on these links: `2 * kind + size` for the links
    /// and the sizes that nearly all packets have, `None` for others.
    #[inline(always)]
    pub(crate) fn delay_line(self, class: SizeClass) -> Option<u8> {
        let line = 2 * usize::from(self.0) + class as usize;
        u8::try_from(line)
            .ok()
            .filter(|_| line < 2 * LinkKind::COMMON)
    }
}

/// Speed of the links of a kind.
#[derive(Clone, Copy, Debug)]
struct Speed {
    rate: Rate,
    delay: Duration,
    /// Transmission times of the packets of the common sizes.
    common: [Duration; 2],
}

/// Converts the size of a packet in a valid scenario: at most 65,535 bytes.
pub(crate) fn wire_bytes(bytes: impl TryInto<u16>) -> u16 {
    let bytes = bytes.try_into().ok();
    bytes.expect("a valid scenario has packets of at most 65,535 bytes")
}

/// All links, full duplex.
#[derive(Clone, Debug)]
pub struct Links {
    /// Preamble and inter-frame gap of every packet, bytes.
    overhead_bytes: u64,
    /// Sizes that nearly all packets have: a full data packet and an acknowledgement, of the default
    /// transport of the scenario.
    common_bytes: [u16; 2],
    /// Speeds of the common kinds.
    speeds: [Speed; LinkKind::COMMON],
    /// Speeds of the other kinds.
    others: Box<[Speed]>,
}

impl Links {
    pub(crate) fn new(scenario: &Scenario) -> Links {
        let overhead_bytes = u64::from(scenario.packets.overhead_bytes);
        let data_bytes = scenario.full_packet_bytes_of(scenario.transport.kind);
        let ack_bytes = scenario.ack_bytes_of(scenario.transport.kind);
        let common_bytes = [data_bytes, u64::from(ack_bytes)].map(wire_bytes);
        let speed = |(rate, delay): (Rate, Duration)| Speed {
            rate,
            delay,
            common: common_bytes
                .map(|bytes| rate.transmission_time(u64::from(bytes) + overhead_bytes)),
        };
        let host = (scenario.rate(), scenario.propagation());
        let of_switches = match scenario.links() {
            Some(network) => network.kinds(),
            None => vec![(scenario.fabric_rate(), scenario.propagation())],
        };
        let mut of_switches = of_switches.into_iter();
        Links {
            overhead_bytes,
            common_bytes,
            speeds: [host, of_switches.next().unwrap_or(host)].map(speed),
            others: of_switches.map(speed).collect(),
        }
    }

    #[inline(always)]
    fn speed(&self, kind: LinkKind) -> &Speed {
        let number = usize::from(kind.0);
        match number.checked_sub(LinkKind::COMMON) {
            None => &self.speeds[number],
            Some(other) => &self.others[other],
        }
    }

    /// Returns the rate of the links of a kind.
    pub(crate) fn rate(&self, kind: LinkKind) -> Rate {
        self.speed(kind).rate
    }

    /// Returns the one-way propagation delay of the links of a kind.
    pub(crate) fn propagation(&self, kind: LinkKind) -> Duration {
        self.speed(kind).delay
    }

    /// Returns the transmission times of a full data packet and of an acknowledgement.
    pub(crate) fn common_transmissions(&self, kind: LinkKind) -> [Duration; 2] {
        self.speed(kind).common
    }

    /// Returns the class of a packet size: one of the two common sizes, or odd.
    #[inline]
    pub(crate) fn size_class(&self, wire_bytes: u16) -> SizeClass {
        if wire_bytes == self.common_bytes[0] {
            SizeClass::Full
        } else if wire_bytes == self.common_bytes[1] {
            SizeClass::Ack
        } else {
            SizeClass::Odd
        }
    }

    /// Returns the time that the packet occupies a line.
    #[inline]
    pub(crate) fn transmission(&self, kind: LinkKind, packet: &Packet) -> Duration {
        let speed = self.speed(kind);
        match packet.class.common() {
            Some(class) => speed.common[usize::from(class)],
            None => speed
                .rate
                .transmission_time(u64::from(packet.wire_bytes) + self.overhead_bytes),
        }
    }
}
