//! The scenarios that have a name. All of them are data in this file.

use super::{Arrivals, HostQueue, RangeU32, Recovery, Scenario, TransportKind, Workload};

/// A scenario with a name and one line that says what it is.
pub struct Preset {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for a listing.
    pub summary: &'static str,
    build: fn() -> Scenario,
}

impl Preset {
    /// The scenario itself.
    pub fn scenario(&self) -> Scenario {
        (self.build)()
    }
}

/// The name of the preset that is used where none is named.
pub const DEFAULT_PRESET: &str = "ndt-16x1g";

/// Every preset, the default first.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: DEFAULT_PRESET,
        summary: "16 hosts at 1 Gbit/s on one switch with 1 MB of shared buffer, web search at \
                  50 % load per active port, NewReno with SACK, minRTO 200 ms (NDT §VI-A)",
        build: ndt_16x1g,
    },
    Preset {
        name: "ns3-16x1g",
        summary: "the same switch with the packet sizes, handshake, capped window, host queues and \
                  loss recovery of ns-3 3.37, for comparing the simulators",
        build: ns3_16x1g,
    },
];

pub(super) fn ndt_16x1g() -> Scenario {
    Scenario {
        name: DEFAULT_PRESET.to_owned(),
        ports: 16,
        rate_bps: 1_000_000_000,
        buffer_bytes: 1_000_000,
        propagation_ns: 10_000,
        mss: 1_460,
        header_bytes: 58,
        ack_bytes: 64,
        syn_bytes: 64,
        overhead_bytes: 0,
        transport: TransportKind::NewReno,
        hystart: false,
        sack: true,
        sack_block_bytes: 0,
        recovery: Recovery::Rfc,
        delayed_ack: 1,
        timestamps: false,
        init_cwnd: 10,
        max_cwnd_bytes: 0,
        min_rto_us: 200_000,
        initial_rtt_us: 200,
        handshake: false,
        syn_timeout_us: None,
        host_queue: HostQueue::Fair,
        count_in_service: true,
        ecn_threshold_bytes: 0,
        ecn_uncounted_packets: 0,
        load: 0.5,
        workload: Workload::WebSearch,
        arrivals: Arrivals::Mixed,
        incast_degree: RangeU32::new(1, 15),
        active_ports: RangeU32::new(1, 16),
        flows: RangeU32::new(100, 1_000),
        decision_latency_us: 0,
        max_interval_us: 0,
        max_decisions: 0,
        max_simulated_ms: 0,
    }
}

/// ns-3's sizes: TCP with timestamps and a 2-byte PPP header, 1,502 B for a full packet; the
/// header is given as a whole here, so `timestamps` is off.
fn ns3_16x1g() -> Scenario {
    Scenario {
        name: "ns3-16x1g".to_owned(),
        mss: 1_448,
        header_bytes: 54,
        ack_bytes: 54,
        syn_bytes: 58,
        sack_block_bytes: 8,
        recovery: Recovery::Ns3,
        max_cwnd_bytes: 130_320,
        handshake: true,
        syn_timeout_us: Some(10_000),
        host_queue: HostQueue::Fifo,
        count_in_service: false,
        ..ndt_16x1g()
    }
}
