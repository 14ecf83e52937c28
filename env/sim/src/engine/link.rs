//! Links: how long packets take.

use super::packet::{Packet, SizeClass};
use crate::scenario::Scenario;
use crate::units::{Rate, Time};

/// What a link connects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line {
    /// A host and a switch.
    Host,
    /// Two switches.
    Fabric,
}

/// How fast the links of a kind are.
#[derive(Clone, Copy, Debug)]
struct Speed {
    rate: Rate,
    /// How long the packets of the common sizes take.
    common: [Time; 2],
}

/// The size of a packet in a valid scenario: at most 65,535 bytes.
pub(crate) fn wire_bytes(bytes: impl TryInto<u16>) -> u16 {
    let bytes = bytes.try_into().ok();
    bytes.expect("a valid scenario has packets of at most 65,535 bytes")
}

/// All links: full duplex, of one delay; those between switches have a rate of their own.
#[derive(Clone, Copy, Debug)]
pub struct Links {
    pub(crate) propagation: Time,
    /// Preamble and inter-frame gap of every packet, bytes.
    overhead_bytes: u64,
    /// The sizes that nearly all packets have: a full data packet and an acknowledgement, of the
    /// transport of flows of no special class.
    common_bytes: [u16; 2],
    /// By [`Line`].
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

    /// Rate of the links of a kind.
    pub(crate) fn rate(&self, line: Line) -> Rate {
        self.speeds[line as usize].rate
    }

    /// Transmission times of a full data packet and of an acknowledgement.
    pub(crate) fn common_transmissions(&self, line: Line) -> [Time; 2] {
        self.speeds[line as usize].common
    }

    /// Whether a packet takes one of the two common transmission times.
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

    /// How long a line is busy with the packet.
    #[inline]
    pub(crate) fn transmission(&self, line: Line, packet: &Packet) -> Time {
        let speed = &self.speeds[line as usize];
        match packet.class.common() {
            Some(class) => speed.common[usize::from(class)],
            None => speed
                .rate
                .transmission_time(u64::from(packet.wire_bytes) + self.overhead_bytes),
        }
    }
}
