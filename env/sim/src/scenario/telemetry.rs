//! Telemetry of switches.

use super::settings::settings;

settings! {
    /// Telemetry that switches write into packets.
    pub struct TelemetrySettings {
        /// Transports that read telemetry need it.
        enabled as int: bool = true, "switches write telemetry into packets of transports that read it";
        bytes_per_hop as int_bytes_per_hop: u32 = 0, "bytes that telemetry adds to a packet at every switch";
        on_acks as int_on_acks: bool = false, "acknowledgements collect telemetry too, on their way back";
    }
}
