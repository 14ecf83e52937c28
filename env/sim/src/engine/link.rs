//! Links: rates, delays and transmission times.

use super::packet::{Packet, SizeClass};
use crate::scenario::Scenario;
use crate::units::{Rate, Time};

/// Kind of a link, by the nodes that it connects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkKind {
    /// A host and a switch.
    Host,
    /// Two switches.
    Fabric,
}

/// Speed of the links of a kind.
#[derive(Clone, Copy, Debug)]
struct Speed {
    rate: Rate,
    /// Transmission times of the packets of the common sizes.
    common: [Time; 2],
}

/// Converts the size of a packet in a valid scenario: at most 65,535 bytes.
pub(crate) fn wire_bytes(bytes: impl TryInto<u16>) -> u16 {
    let bytes = bytes.try_into().ok();
    bytes.expect("a valid scenario has packets of at most 65,535 bytes")
}

/// All links: full duplex, with one delay. Links between switches have a separate rate.
#[derive(Clone, Copy, Debug)]
pub struct Links {
    pub(crate) propagation: Time,
    /// Preamble and inter-frame gap of every packet, bytes.
    overhead_bytes: u64,
    /// Sizes that nearly all packets have: a full data packet and an acknowledgement, of the default
    /// transport of the scenario.
    common_bytes: [u16; 2],
    /// Speeds, by [`LinkKind`].
    speeds: [Speed; 2],
}

impl Links {
    pub(crate) fn new(scenario: &Scenario) -> Links {
        let overhead_bytes = u64::from(scenario.overhead_bytes);
        let data_bytes = scenario.full_packet_bytes_of(scenario.transport);
        let ack_bytes = scenario.ack_bytes_of(scenario.transport);
        let common_bytes = [data_bytes, u64::from(ack_bytes)].map(wire_bytes);
        let speed = |rate: Rate| Speed {
            rate,
            common: common_bytes
                .map(|bytes| rate.transmission_time(u64::from(bytes) + overhead_bytes)),
        };
        Links {
            propagation: scenario.propagation(),
            overhead_bytes,
            common_bytes,
            speeds: [scenario.rate(), scenario.fabric_rate()].map(speed),
        }
    }

    /// Returns the rate of the links of a kind.
    pub(crate) fn rate(&self, line: LinkKind) -> Rate {
        self.speeds[line as usize].rate
    }

    /// Returns the transmission times of a full data packet and of an acknowledgement.
    pub(crate) fn common_transmissions(&self, line: LinkKind) -> [Time; 2] {
        self.speeds[line as usize].common
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
    pub(crate) fn transmission(&self, line: LinkKind, packet: &Packet) -> Time {
        let speed = &self.speeds[line as usize];
        match packet.class.common() {
            Some(class) => speed.common[usize::from(class)],
            None => speed
                .rate
                .transmission_time(u64::from(packet.wire_bytes) + self.overhead_bytes),
        }
    }
}
