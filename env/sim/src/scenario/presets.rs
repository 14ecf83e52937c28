//! The named scenarios.

use super::{
    AckQueue, Arrivals, Demand, EcnCapable, FlowPriority, HostQueue, HyStartRule, LeafHosts,
    Marking, Priorities, RangeF64, RangeU32, Recovery, Scenario, SlowdownBase, TcpRules,
    TopologyKind, Traffic, TransportKind, TransportVariant, Unscheduled, Workload,
};

/// A scenario with a name and a description of one line.
pub struct Preset {
    /// The name on the command line.
    pub name: &'static str,
    /// The description, for listings.
    pub summary: &'static str,
    build: fn() -> Scenario,
}

impl Preset {
    /// Builds the scenario.
    pub fn scenario(&self) -> Scenario {
        (self.build)()
    }
}

/// Name of the preset that is used by default.
pub const DEFAULT_PRESET: &str = "ndt-16x1g";

/// Every preset, the default first.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: DEFAULT_PRESET,
        summary: "16 hosts at 1 Gbit/s on one switch with 1 MB of shared buffer, web search at \
                  50 % load per active port, NewReno with SACK, minRTO 200 ms (NDT §VI-A)",
        build: Scenario::default,
    },
    Preset {
        name: "ns3-16x1g",
        summary: "the same switch with the packet sizes, handshake, capped window, host queues and \
                  loss recovery of ns-3 3.37, for comparing the simulators",
        build: ns3_16x1g,
    },
    Preset {
        name: "ndt-96x10g-incast",
        summary: "96 ports at 10 Gbit/s with 6 MB of buffer: 95 hosts answer one port at once every \
                  10 ms while 47 others receive elephants, NewReno, minRTO 200 ms (NDT §VI-B, \
                  Fig. 8(d))",
        build: ndt_96x10g_incast,
    },
    Preset {
        name: "ndt-testbed-4x1g",
        summary: "4 hosts at 1 Gbit/s with 256 kB of buffer, web search or data mining at 10 to 90 % \
                  load, CUBIC, minRTO 200 ms (NDT §VI-C, Fig. 9)",
        build: ndt_testbed_4x1g,
    },
    Preset {
        name: "ndt-4to2-incast",
        summary: "4 senders to two ports at 1 Gbit/s with 256 kB of buffer: overlapping bursts over \
                  elephants, NewReno, minRTO 200 ms (NDT §VI-D, Fig. 10)",
        build: ndt_4to2_incast,
    },
    Preset {
        name: "linux-16x1g",
        summary: "ndt-16x1g with the senders of Linux: CUBIC, RACK-TLP, delayed acknowledgements, \
                  handshake, receive window of 6 MB, minRTO 200 ms",
        build: linux_16x1g,
    },
    Preset {
        name: "linux-16x25g",
        summary: "the same senders and traffic at 25 Gbit/s, with 3.84 MB of buffer and links of \
                  2 us",
        build: linux_16x25g,
    },
    Preset {
        name: "testbed-4x100m",
        summary: "4 Linux hosts at 100 Mbit/s with 256 kB of buffer, links of 100 us, web search from \
                  three senders to every port, minRTO 200 ms: ndt-testbed-4x1g for `bufgym testbed`",
        build: testbed_4x100m,
    },
    Preset {
        name: "dctcp-16x10g",
        summary: "the same traffic at 10 Gbit/s with DCTCP as Linux has it, 1.54 MB of buffer, \
                  marks from 65 packets on and links of 2 us",
        build: dctcp_16x10g,
    },
    Preset {
        name: "abm-leafspine",
        summary: "256 hosts on 8 leaves and 8 spines at 10 Gbit/s, links of 10 us, 9.6 KiB of buffer \
                  per port and Gbit/s, DCTCP, minRTO 10 ms (ABM §4.1)",
        build: abm_leafspine,
    },
    Preset {
        name: "abm-artefact",
        summary: "the same with 64 hosts on 2 leaves, and 2 spines with 4 links to each leaf, as in \
                  the published runs of ABM",
        build: abm_artefact,
    },
    Preset {
        name: "abm-artefact-mixed",
        summary: "160 hosts on 5 leaves with three transports in three queues, as in the published run of ABM's Fig. 8",
        build: abm_artefact_mixed,
    },
    Preset {
        name: "credence-leafspine",
        summary: "256 hosts on 16 leaves and 4 spines at 10 Gbit/s, links of 3 us, 5.12 KiB of \
                  buffer per port and Gbit/s, DCTCP, minRTO 10 ms (Credence §4.1)",
        build: credence_leafspine,
    },
    Preset {
        name: "credence-train",
        summary: "the same with 32 hosts on 2 leaves, links of 4 us and 5.14 KiB, on which the \
                  published forest of Credence was trained",
        build: credence_train,
    },
    Preset {
        name: "leafspine-4x4",
        summary: "16 hosts on 4 leaves and 2 spines at 10 Gbit/s, links of 10 us, 9.6 KiB of buffer \
                  per port and Gbit/s, DCTCP, minRTO 10 ms",
        build: leafspine_4x4,
    },
    Preset {
        name: "reverie-leafspine",
        summary: "256 hosts on 16 leaves and 4 spines at 25 Gbit/s, links of 2 us, 2.56 MB of buffer: TCP web \
                  search in a lossy priority, RDMA in-cast of 2 MB in a lossless one (Reverie §4.1)",
        build: reverie_leafspine,
    },
    Preset {
        name: "reverie-4x4",
        summary: "the same traffic on 16 hosts on 4 leaves and 2 spines with 768 kB of buffer, many \
                  small in-casts",
        build: reverie_4x4,
    },
];

/// The sizes are those of ns-3: TCP with timestamps and a 2-byte PPP header, 1,502 B for a full
/// packet. `header_bytes` includes the timestamps here, so `timestamps` is off.
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
        ..Scenario::default()
    }
}

/// The defaults of Linux: timestamps, which leave 1,448 B of payload in a packet of 1,518 B; at most 6
/// MiB in flight, the largest receive buffer (`tcp_rmem`); a SYN is repeated after a second; two
/// packets of a flow in the queue of the host (TCP small queues).
fn linux_16x1g() -> Scenario {
    Scenario {
        name: "linux-16x1g".to_owned(),
        transport: TransportKind::Linux,
        mss: 1_448,
        timestamps: true,
        max_cwnd_bytes: 6 << 20,
        handshake: true,
        syn_timeout_us: Some(1_000_000),
        late_binding: true,
        ..Scenario::default()
    }
}

/// Bytes of buffer per port and Gbit/s of Broadcom's Trident 2, 12 MB at 1.28 Tbit/s, as in the
/// evaluation of ABM (SIGCOMM 2022). The switch of `ndt-16x1g` has six times as much.
const BYTES_PER_GBPS: u64 = 9_600;

fn linux_16x25g() -> Scenario {
    Scenario {
        name: "linux-16x25g".to_owned(),
        rate_bps: 25_000_000_000,
        buffer_bytes: 16 * 25 * BYTES_PER_GBPS,
        propagation_ns: 2_000,
        ..linux_16x1g()
    }
}

/// A tenth of the rate of `ndt-testbed-4x1g` and ten times its delay, so that the buffer holds the same
/// number of packets and of round trips. Sizes are those of Ethernet frames with timestamps: 70 B for
/// an acknowledgement, 78 B for a SYN. Senders follow the kernel, and hosts have the measured delays.
fn testbed_4x100m() -> Scenario {
    Scenario {
        name: "testbed-4x100m".to_owned(),
        ports: 4,
        rate_bps: 100_000_000,
        buffer_bytes: 256_000,
        propagation_ns: 100_000,
        ack_bytes: 58,
        syn_bytes: 66,
        sack_block_bytes: 10,
        hystart_rule: HyStartRule::Linux,
        slow_start_limit: 65_535,
        tcp_rules: TcpRules::Linux,
        host_jitter_ns: 20_000,
        load: RangeF64::new(0.5, 0.5),
        arrivals: Arrivals::Mixed,
        incast_degree: RangeU32::new(3, 3),
        active_ports: RangeU32::new(4, 4),
        flows: RangeU32::new(100, 100),
        ..linux_16x1g()
    }
}

fn dctcp_16x10g() -> Scenario {
    Scenario {
        name: "dctcp-16x10g".to_owned(),
        transport: TransportKind::LinuxDctcp,
        rate_bps: 10_000_000_000,
        buffer_bytes: 16 * 10 * BYTES_PER_GBPS,
        propagation_ns: 2_000,
        ..linux_16x1g()
    }
}

/// A leaf-spine network with the settings that the runs of ABM (SIGCOMM 2022) and of Credence (NSDI
/// 2024) share: packets of 1,400 B with timestamps, 54 B of headers as in ns-3; web search and, on
/// connections that are already open, answers to two queries of every host per second. The papers do
/// not say where hosts send; here they send to random other leaves.
fn leaf_spine(name: &str, leaves: u32, hosts_per_leaf: u32, spines: u32) -> Scenario {
    let hosts = leaves * hosts_per_leaf;
    Scenario {
        name: name.to_owned(),
        topology: TopologyKind::LeafSpine,
        ports: hosts,
        leaves,
        hosts_per_leaf,
        spines,
        rate_bps: 10_000_000_000,
        mss: 1_400,
        header_bytes: 42,
        ack_bytes: 42,
        syn_bytes: 46,
        timestamps: true,
        transport: TransportKind::Dctcp,
        min_rto_us: 10_000,
        handshake: true,
        demand: Demand::OtherLeaf,
        load: RangeF64::new(0.4, 0.4),
        query_rate: 2.0,
        preconnected: true,
        flow_priority: FlowPriority::Fixed,
        slowdown_base: SlowdownBase::Pipeline,
        arrivals: Arrivals::Spread,
        incast_degree: RangeU32::new(hosts - 1, hosts - 1),
        active_ports: RangeU32::new(hosts, hosts),
        ..Scenario::default()
    }
}

/// Returns the scenario with buffers of `per_port_gbps` KiB for each port and Gbit/s.
fn with_buffer(mut scenario: Scenario, per_port_gbps: f64) -> Scenario {
    scenario.buffer_bytes_per_port_gbps = per_port_gbps;
    scenario.settle(&["buffer_bytes_per_port_gbps"]);
    scenario
}

/// The queues at the switches in the runs of both papers: acknowledgements in queue 0, data in queue 1,
/// served in turn.
fn with_two_queues(scenario: Scenario) -> Scenario {
    Scenario {
        queues_per_port: 2,
        ack_queue: AckQueue::Number(0),
        ..scenario
    }
}

/// Trident 2's buffer; web-search flows start with 55 segments, and the marking threshold is 65
/// segments. Only hosts with DCTCP use ECN. Queries ask for 30 % of the buffer.
fn abm(scenario: Scenario) -> Scenario {
    let scenario = Scenario {
        init_cwnd: 55,
        query_share: 0.3,
        ecn_k_packets: 65,
        ecn_capable: EcnCapable::Dctcp,
        ..with_two_queues(scenario)
    };
    with_buffer(scenario, 9.6)
}

fn abm_leafspine() -> Scenario {
    abm(leaf_spine("abm-leafspine", 8, 32, 8))
}

/// Adds ns-3's device queues below the queue disciplines, in packets of a port, and the variants of
/// transports in its code.
fn as_published(scenario: Scenario, device_fifo_packets: u32) -> Scenario {
    Scenario {
        count_in_service: false,
        device_fifo_packets,
        transport_variant: TransportVariant::Ns3,
        ..scenario
    }
}

/// ns-3's device queues hold 100 packets by default.
const DEVICE_QUEUE_OF_ABM: u32 = 100;

fn abm_artefact() -> Scenario {
    let scenario = abm(Scenario {
        links_per_pair: 4,
        demand: Demand::Ring,
        ..leaf_spine("abm-artefact", 2, 32, 2)
    });
    as_published(scenario, DEVICE_QUEUE_OF_ABM)
}

/// The network of Fig. 8. Of the 32 hosts of a leaf, 16 use CUBIC, eight DCTCP and eight θ-PowerTCP,
/// each group in a queue of its own. The hosts of the first two leaves send to each other and ask
/// queries. The eight θ-PowerTCP hosts of each other leaf answer: 32 answers, as in the published file.
fn abm_artefact_mixed() -> Scenario {
    let numbers = |first, last| LeafHosts::Numbers(RangeU32::new(first, last));
    let scenario = abm(Scenario {
        links_per_pair: 4,
        transport: TransportKind::Cubic,
        second_transport: Some(TransportKind::Dctcp),
        incast_transport: Some(TransportKind::ThetaPowerTcp),
        demand_leaves: 2,
        load_hosts: numbers(0, 15),
        second_load: 0.1,
        second_hosts: numbers(16, 23),
        second_priority: 2,
        query_hosts: numbers(24, 31),
        query_fanin: 32,
        incast_priority: 3,
        ..leaf_spine("abm-artefact-mixed", 5, 32, 2)
    });
    let scenario = as_published(scenario, DEVICE_QUEUE_OF_ABM);
    Scenario {
        queues_per_port: 8,
        ..scenario
    }
}

/// An initial window of the bandwidth-delay product, 22 segments, and a marking threshold of a seventh
/// of it, but at least ten segments. The DCTCP of the published code has no slow start. Queries ask for
/// half of the buffer.
fn credence(scenario: Scenario, propagation_ns: u64, per_port_gbps: f64) -> Scenario {
    let scenario = Scenario {
        propagation_ns,
        init_cwnd: 22,
        query_share: 0.5,
        ecn_k_packets: 10,
        slow_start: false,
        ..with_two_queues(scenario)
    };
    with_buffer(scenario, per_port_gbps)
}

/// Tomahawk's buffer.
fn credence_leafspine() -> Scenario {
    let network = leaf_spine("credence-leafspine", 16, 16, 4);
    credence(network, 3_000, 5.12)
}

/// Higher load and larger queries than in the runs that evaluate Credence.
fn credence_train() -> Scenario {
    let network = Scenario {
        demand: Demand::Ring,
        load: RangeF64::new(0.8, 0.8),
        ..leaf_spine("credence-train", 2, 16, 4)
    };
    let scenario = credence(network, 4_000, 5.14);
    Scenario {
        query_share: 0.75,
        ..as_published(scenario, 1)
    }
}

fn leafspine_4x4() -> Scenario {
    let network = leaf_spine("leafspine-4x4", 4, 4, 2);
    let bdp_segments = 71;
    let network = Scenario {
        init_cwnd: bdp_segments,
        query_rate: 50.0,
        measure_ms: 100,
        drain_ms: 2_000,
        ecn_k_packets: 65,
        ..network
    };
    with_buffer(network, 9.6)
}

/// The evaluation of Reverie (NSDI 2024), §4.1 and its published code: TCP with packets of 1,066 B, an
/// initial window of the bandwidth-delay product and one segment, and acknowledgements in the control
/// class; RDMA with DCQCN, which is marked by queue lengths from 100 to 400 kB. The code reserves
/// headroom for two priorities, of which one is used.
fn reverie(network: Scenario) -> Scenario {
    Scenario {
        rate_bps: 25_000_000_000,
        propagation_ns: 2_000,
        base_rtt_ns: 17_280,
        mss: 1_000,
        header_bytes: 54,
        ack_bytes: 54,
        syn_bytes: 58,
        transport: TransportKind::Cubic,
        incast_transport: Some(TransportKind::DcqcnReverie),
        init_cwnd: 55,
        min_rto_us: 1_000,
        initial_rtt_us: 10,
        syn_timeout_us: Some(10_000),
        unscheduled: Unscheduled::Reverie,
        queues_per_port: 4,
        background_priority: 1,
        incast_priority: 3,
        lossless_priorities: Priorities::one(3),
        headroom_bytes: 18_456,
        headroom_priorities: 2,
        control_class: true,
        ecn_capable: EcnCapable::Dctcp,
        marking: Marking::RedAtDequeue,
        ecn_red_kmin_bytes: 100_000,
        ecn_red_kmax_bytes: 400_000,
        ecn_red_pmax: 0.2,
        workload: Workload::WebSearchAbm.into(),
        load: RangeF64::new(0.8, 0.8),
        slowdown_base: SlowdownBase::Reverie,
        ..network
    }
}

/// Tomahawk's buffer: 5.12 kB for each of 20 ports and Gbit/s, at spines too. Requests are 2 MB.
fn reverie_leafspine() -> Scenario {
    Scenario {
        buffer_bytes: 2_560_000,
        query_share: 0.781_25,
        measure_ms: 2_000,
        ..reverie(leaf_spine("reverie-leafspine", 16, 16, 4))
    }
}

/// A small network: the same buffer for a port without headroom as in the large one, an
/// oversubscription of 2, and enough queries that a short run has some.
fn reverie_4x4() -> Scenario {
    Scenario {
        buffer_bytes: 768_000,
        query_share: 0.8,
        query_rate: 50.0,
        measure_ms: 20,
        drain_ms: 2_000,
        ..reverie(leaf_spine("reverie-4x4", 4, 4, 2))
    }
}

/// The paper takes the traffic from DCTCP (SIGCOMM 2010, §4.2.3) and gives neither sizes nor rates.
/// A new elephant starts at each of the 47 ports every 26.7 ms, and one elephant alone takes 25.0
/// ms. So a port nearly always has one elephant, and for a while two if their sources were busy.
fn ndt_96x10g_incast() -> Scenario {
    Scenario {
        name: "ndt-96x10g-incast".to_owned(),
        ports: 96,
        rate_bps: 10_000_000_000,
        buffer_bytes: 6_000_000,
        propagation_ns: 2_000,
        traffic: Traffic::IncastElephants,
        load: RangeF64::new(0.9, 0.9),
        incast_degree: RangeU32::new(95, 95),
        active_ports: RangeU32::new(48, 48),
        flows: RangeU32::new(2_000, 2_000),
        ..Scenario::default()
    }
}

/// In the traffic generator of the testbed each client sends requests to all servers, one at a time.
/// The paper reports over 43,000 flows in 50 runs of each of nine loads, which is about 100 per run.
fn ndt_testbed_4x1g() -> Scenario {
    Scenario {
        name: "ndt-testbed-4x1g".to_owned(),
        ports: 4,
        buffer_bytes: 256_000,
        transport: TransportKind::Cubic,
        load: RangeF64::new(0.1, 0.9),
        workload: [Workload::WebSearch, Workload::DataMining].into(),
        arrivals: Arrivals::Spread,
        incast_degree: RangeU32::new(3, 3),
        active_ports: RangeU32::new(4, 4),
        flows: RangeU32::new(100, 100),
        ..Scenario::default()
    }
}

/// The paper gives only the pattern, no sizes. A burst of four times 250 kB is as large as four
/// buffers and keeps its port busy for 8 ms. Each of the two ports gets a burst every 40 ms, so
/// every third burst meets one at the other port.
fn ndt_4to2_incast() -> Scenario {
    Scenario {
        name: "ndt-4to2-incast".to_owned(),
        ports: 6,
        buffer_bytes: 256_000,
        traffic: Traffic::BurstsOverElephants,
        load: RangeF64::new(0.6, 0.6),
        incast_degree: RangeU32::new(4, 4),
        active_ports: RangeU32::new(2, 2),
        flows: RangeU32::new(400, 400),
        query_gap_us: 40_000,
        response_bytes: 250_000,
        ..Scenario::default()
    }
}
