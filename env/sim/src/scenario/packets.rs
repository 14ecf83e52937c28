//! Sizes of packets, and the telemetry that switches add to them.

use super::settings::settings;
use super::validate::{Checks, MAX_WIRE_BYTES};
use super::{Scenario, ScenarioError};

settings! {
    /// Sizes of TCP packets on the wire.
    pub struct PacketSettings {
        mss: u32 = 1_460, "largest payload of a packet, bytes";
        header_bytes: u32 = 58, "bytes on the wire on top of the payload";
        /// Includes SACK blocks, except for `sack_block_bytes`.
        ack_bytes: u32 = 64, "bytes of an ACK on the wire";
        syn_bytes: u32 = 64, "bytes of a SYN or SYN-ACK on the wire";
        /// These bytes take time on the line but no space in the buffer.
        overhead_bytes: u32 = 0, "preamble and gap per packet, on the line only, bytes";
    }
}

settings! {
    /// Telemetry that switches write into packets.
    pub struct TelemetrySettings {
        /// Transports that read telemetry need it.
        enabled as int: bool = true, "switches write telemetry into packets of transports that read it";
        bytes_per_hop as int_bytes_per_hop: u32 = 0, "bytes that telemetry adds to a packet at every switch";
        on_acks as int_on_acks: bool = false, "acknowledgements collect telemetry too, on their way back";
    }
}

impl Scenario {
    /// Bytes that a full data packet takes in the buffer.
    pub fn full_packet_bytes(&self) -> u64 {
        u64::from(self.packets.mss)
            + u64::from(self.packets.header_bytes)
            + u64::from(self.timestamp_bytes())
    }

    /// Checks that packets fit into the numbers that count their bytes, and into the buffer.
    pub(super) fn validate_packets(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        let packets = &self.packets;
        for (field, bytes, min, max) in [
            ("mss", packets.mss, 1, 65_495),
            ("header_bytes", packets.header_bytes, 0, 1_000),
            ("overhead_bytes", packets.overhead_bytes, 0, 1_000),
            ("ack_bytes", packets.ack_bytes, 1, 1_000),
            ("syn_bytes", packets.syn_bytes, 1, 1_000),
            ("int_bytes_per_hop", self.telemetry.bytes_per_hop, 0, 100),
        ] {
            check.within(field, bytes.into(), min, max)?;
        }
        // Includes telemetry of the path there and back.
        let full = self.full_packet_bytes() + 8 * u64::from(self.telemetry.bytes_per_hop);
        if full > MAX_WIRE_BYTES {
            let problem = format!(
                "with header_bytes, timestamps and telemetry a full packet has {full} bytes on the wire; \
                 must be at most {MAX_WIRE_BYTES}"
            );
            return check.invalid("mss", packets.mss, problem);
        }
        let others = packets.ack_bytes.max(packets.syn_bytes) + self.timestamp_bytes();
        let largest = full.max(others.into());
        let buffer = self.network.buffer_bytes;
        if buffer < largest {
            let problem = format!("smaller than one packet; must be at least {largest}");
            return check.invalid("buffer_bytes", buffer, problem);
        }
        check.within("buffer_bytes", buffer, largest, 1_000_000_000_000)
    }
}
