//! Links: how long packets take.

use super::packet::{Packet, SizeClass};
use crate::scenario::Scenario;
use crate::units::{Rate, Time};

/// A packet size that nearly all packets have, and how long it takes on a line.
#[derive(Clone, Copy, Debug)]
struct CommonSize {
    wire_bytes: u16,
    transmission: Time,
}

/// The size of a packet in a valid scenario: at most 65,535 bytes.
pub(crate) fn wire_bytes(bytes: impl TryInto<u16>) -> u16 {
    let bytes = bytes.try_into().ok();
    bytes.expect("a valid scenario has packets of at most 65,535 bytes")
}

/// All links: full duplex, of one rate and delay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    pub(crate) rate: Rate,
    pub(crate) propagation: Time,
    /// Preamble and inter-frame gap of every packet, bytes.
    overhead_bytes: u64,
    /// A full data packet and an acknowledgement.
    common: [CommonSize; 2],
}

impl Links {
    pub(crate) fn new(scenario: &Scenario) -> Links {
        let rate = scenario.rate();
        let overhead_bytes = u64::from(scenario.overhead_bytes);
        let ack_bytes = scenario.ack_bytes + scenario.timestamp_bytes();
        let common = [scenario.full_packet_bytes(), u64::from(ack_bytes)].map(wire_bytes);
        Links {
            rate,
            propagation: scenario.propagation(),
            overhead_bytes,
            common: common.map(|wire_bytes| CommonSize {
                wire_bytes,
                transmission: rate.transmission_time(u64::from(wire_bytes) + overhead_bytes),
            }),
        }
    }

    /// Transmission times of a full data packet and of an acknowledgement.
    pub(crate) fn common_transmissions(&self) -> [Time; 2] {
        self.common.map(|size| size.transmission)
    }

    /// Whether a packet takes one of the two common transmission times.
    #[inline]
    pub(crate) fn size_class(&self, wire_bytes: u16) -> SizeClass {
        if wire_bytes == self.common[0].wire_bytes {
            SizeClass::Full
        } else if wire_bytes == self.common[1].wire_bytes {
            SizeClass::Ack
        } else {
            SizeClass::Odd
        }
    }

    /// How long a line is busy with the packet.
    #[inline]
    pub(crate) fn transmission(&self, packet: &Packet) -> Time {
        match packet.class.common() {
            Some(class) => self.common[usize::from(class)].transmission,
            None => self
                .rate
                .transmission_time(u64::from(packet.wire_bytes) + self.overhead_bytes),
        }
    }
}
