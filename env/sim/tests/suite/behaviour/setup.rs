//! Random networks, policies, transports and traffic.

use bufgym_sim::network::{OneSwitch, Simulator};
use bufgym_sim::scenario::{
    AckQueue, HostQueue, HyStartRule, RangeU32, Recovery, Scenario, Scheduler, TcpRules,
    TransportKind, TransportVariant,
};
use bufgym_sim::switch::{AnyPolicy, PolicySpec, policy};
use bufgym_sim::traffic::{FlowSpec, Trace};
use bufgym_sim::units::Instant;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::behaviour::probe::Probe;

/// Returns the number of set-ups for which a property is tested: fewer without optimisation, because
/// the simulator then recounts everything at every event. Shrinking a failure ends within a minute.
pub fn config() -> ProptestConfig {
    ProptestConfig {
        max_shrink_iters: 200,
        ..ProptestConfig::with_cases(cases(if cfg!(debug_assertions) { 24 } else { 512 }))
    }
}

/// Returns the number of cases of a property: that of the variable `PROPTEST_CASES`, or else `usual`.
pub fn cases(usual: u32) -> u32 {
    let given = std::env::var("PROPTEST_CASES").ok();
    given.map_or(usual, |text| {
        text.parse().expect("PROPTEST_CASES is a whole number")
    })
}

/// More events than any of these simulations needs.
pub const MANY_EVENTS: u64 = 20_000_000;

/// Events between two checks. Recounting everything in flight takes much longer than an event. A lost
/// packet stays lost, so that a later check finds it too. The number is prime, so that no period of the
/// traffic escapes.
pub const EVENTS_PER_CHECK: u64 = 251;

/// End of a simulation whose flow never completes. It is reached after few events, because timers back
/// off.
const FOR_EVER_MS: u64 = 1_000_000_000;

/// Input of a simulation.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Network and transport.
    pub scenario: Scenario,
    /// Policy of the switch.
    pub policy: PolicySpec,
    /// Traffic.
    pub trace: Trace,
}

impl Setup {
    /// Builds the simulation under the policy alone.
    pub fn simulator(&self) -> Simulator {
        self.policy
            .simulator::<OneSwitch>(&self.scenario, &self.trace)
            .expect("the set-up is valid")
    }

    /// Builds the simulation with every call to the policy recorded; ports have one queue.
    pub fn probed(&self) -> Simulator<Probe<AnyPolicy>> {
        let scenario = self.scenario.clone().with(|scenario| {
            scenario.queues.queues_per_port = 1;
            // For a policy, packets in such a queue have left.
            scenario.queues.device_fifo_packets = 0;
            // Packets would be larger on the line than in the buffer.
            scenario.telemetry.bytes_per_hop = 0;
        });
        let policy = self.policy.build(&scenario).expect("the set-up is valid");
        let capacity = self.policy.capacity(&scenario);
        let probe = Probe::new(policy, &scenario);
        Simulator::with_capacity(&scenario, &self.trace, probe, capacity)
            .expect("the set-up is valid")
            .with_aqm(self.policy.aqm(), &scenario)
            .expect("the set-up is valid")
    }
}

/// Generates any set-up in which every policy can admit a packet of every size into an empty buffer.
pub fn any_setup() -> impl Strategy<Value = Setup> {
    (network(), transport(), policies()).prop_flat_map(|(network, transport, policy)| {
        let (ports, buffer_bytes) = (network.ports, network.buffer_bytes);
        let scenario = transport.with(|scenario| {
            scenario.network.buffer_bytes = 1;
            scenario.network.ports = ports;
            scenario.network.rate_bps = network.rate_bps;
            scenario.network.propagation_ns = network.propagation_ns;
            scenario.packets.overhead_bytes = network.overhead_bytes;
            scenario.queues.count_in_service = network.count_in_service;
            scenario.host.queue = network.host_queue;
            scenario.host.late_binding &= network.host_queue == HostQueue::Fair;
            scenario.queues.queues_per_port = network.queues_per_port;
            scenario.queues.scheduler = network.scheduler;
            scenario.queues.strict = network.strict_queues;
            scenario.queues.device_fifo_packets = match network.count_in_service {
                true => 0,
                false => network.device_fifo_packets,
            };
            scenario.queues.ack_queue = match network.acks_apart {
                true => AckQueue::Number(0),
                false => AckQueue::OfFlow,
            };
            scenario.traffic.active_ports = RangeU32::new(1, ports);
            scenario.traffic.incast_degree = RangeU32::new(1, ports - 1);
        });
        let buffer_bytes = buffer_bytes.max(least_buffer(&scenario, &policy));
        let scenario = scenario.with(|scenario| scenario.network.buffer_bytes = buffer_bytes);
        traffic(ports).prop_map(move |trace| Setup {
            scenario: scenario.clone(),
            policy: policy.clone(),
            trace,
        })
    })
}

/// Returns the bytes that the largest packet needs to pass an empty switch: one packet, or more if the
/// policy never gives the whole buffer to one queue.
pub fn least_buffer(scenario: &Scenario, policy: &PolicySpec) -> u64 {
    let control = u64::from(
        scenario.packets.syn_bytes.max(scenario.packets.ack_bytes) + scenario.timestamp_bytes(),
    );
    let telemetry = 8 * u64::from(scenario.telemetry.bytes_per_hop);
    let largest = scenario.full_packet_bytes().max(control + SACK_BYTES) + telemetry;
    let queues = u64::from(scenario.network.ports * scenario.queues.queues_per_port);
    match policy.name() {
        "cs" | "dt" | "edt" | "tdt" | "fab" | "ib" | "abm" | "unlimited" | "lqd" | "occamy"
        | "pot" | "followlqd" | "credence" => largest,
        "sma" => 2 * largest,
        "smxq" => largest * queues.div_ceil(2),
        "harmonic" => {
            let harmonic_number: f64 = (1..=queues).map(|k| 1.0 / k as f64).sum();
            largest * harmonic_number.ceil() as u64
        }
        _ => largest * queues,
    }
}

/// Most bytes that SACK blocks add to an acknowledgement.
const SACK_BYTES: u64 = 40;

#[derive(Clone, Debug)]
struct Network {
    ports: u32,
    rate_bps: u64,
    propagation_ns: u64,
    buffer_bytes: u64,
    overhead_bytes: u32,
    count_in_service: bool,
    host_queue: HostQueue,
    queues_per_port: u32,
    scheduler: Scheduler,
    strict_queues: u32,
    device_fifo_packets: u32,
    acks_apart: bool,
}

prop_compose! {
    fn network()(
        ports in 2_u32..=24,
        rate_bps in prop_oneof![
            prop::sample::select(vec![100_000_000, 1_000_000_000, 10_000_000_000, 100_000_000_000]),
            100_000_000_u64..=100_000_000_000,
        ],
        propagation_ns in prop_oneof![Just(0), 1_u64..=2_000, 2_000_u64..=200_000],
        // The buffer may be less than a packet, and then becomes one packet; it is often too small for
        // the traffic.
        buffer_bytes in prop_oneof![logarithmic(1_000, 50_000), logarithmic(50_000, 4_000_000)],
        overhead_bytes in prop::sample::select(vec![0, 20]),
        count_in_service in any::<bool>(),
        host_queue in prop::sample::select(HostQueue::ALL),
        queues_per_port in prop_oneof![Just(1), 2_u32..=3],
        scheduler in prop::sample::select(Scheduler::ALL),
        strict_queues in 1_u32..=3,
        device_fifo_packets in prop::sample::select(vec![0_u32, 0, 1, 5, 100]),
        acks_apart in any::<bool>(),
    ) -> Network {
        Network {
            ports, rate_bps, propagation_ns, buffer_bytes, overhead_bytes, count_in_service,
            host_queue, queues_per_port, scheduler, strict_queues, device_fifo_packets,
            acks_apart,
        }
    }
}

/// Generates whole numbers, uniform over all orders of magnitude.
fn logarithmic(min: u64, max: u64) -> impl Strategy<Value = u64> {
    (0.0_f64..=1.0).prop_map(move |share| {
        let ratio = max as f64 / min as f64;
        ((min as f64 * ratio.powf(share)) as u64).clamp(min, max)
    })
}

fn lossy_transports() -> Vec<TransportKind> {
    let all = TransportKind::ALL.iter().copied();
    all.filter(|kind| !kind.is_rdma()).collect()
}

prop_compose! {
    /// Generates every congestion control with every recovery that it supports. RDMA, which is designed
    /// for networks with few losses, has set-ups of its own.
    fn transport()(
        kind in prop::sample::select(lossy_transports()),
        recovery in prop::sample::select(Recovery::ALL),
        sack in any::<bool>(),
        mss in prop::sample::select(vec![100_u32, 536, 1_460, 8_960]),
        init_cwnd in prop::sample::select(vec![1_u32, 2, 10, 100]),
        capped in any::<bool>(),
        cap_segments in 1_u64..=100,
        min_rto_us in logarithmic(200, 200_000),
        initial_rtt_us in 1_u64..=10_000,
        flags in any::<[bool; 6]>(),
        transport_variant in prop::sample::select(TransportVariant::ALL),
        delayed_ack in 1_u32..=4,
        quick_acks in prop::sample::select(vec![0_u32, 1, 16]),
        hystart_rule in prop::sample::select(HyStartRule::ALL),
        tcp_rules in prop::sample::select(TcpRules::ALL),
        host_jitter_ns in prop::sample::select(vec![0_u64, 0, 2_000, 100_000]),
        slow_start_limit in prop::sample::select(vec![1_u32, 2, 65_535]),
        ecn_threshold_bytes in logarithmic(100, 1_000_000),
    ) -> Scenario {
        let [timestamps, handshake, hystart, late_binding, slow_start, int_on_acks] = flags;
        // The transports after ns-3 need ns-3's recovery.
        let recovery = match recovery {
            _ if kind.name().ends_with("-ns3") => Recovery::Ns3,
            Recovery::Ns3 if kind.is_combination() => Recovery::Rack,
            _ if kind.sets_rate() => Recovery::Rfc,
            recovery => recovery,
        };
        let ns3 = recovery == Recovery::Ns3;
        let needs_sack = recovery != Recovery::Rfc || kind.is_combination() || kind.sets_rate();
        let delayed_ack = if ns3 || kind.sets_rate() { 1 } else { delayed_ack };
        let delays = delayed_ack > 1 || kind.is_combination();
        let mut scenario = Scenario::default().with(|scenario| {
            scenario.transport.kind = kind;
            scenario.tcp.sack = sack || needs_sack;
            scenario.tcp.recovery = recovery;
            scenario.packets.mss = mss;
            scenario.tcp.init_cwnd = init_cwnd;
            scenario.tcp.max_cwnd_bytes = if capped { cap_segments * u64::from(mss) } else { 0 };
            scenario.tcp.min_rto_us = min_rto_us;
            scenario.tcp.initial_rtt_us = initial_rtt_us;
            scenario.tcp.timestamps = timestamps;
            scenario.tcp.handshake = handshake;
            scenario.tcp.quick_acks = if delays { quick_acks } else { 0 };
            scenario.tcp.slow_start = slow_start || ns3;
            scenario.tcp.slow_start_limit = if ns3 { 1 } else { slow_start_limit };
            scenario.tcp.hystart_rule = hystart_rule;
            scenario.tcp.tcp_rules = tcp_rules;
            scenario.host.jitter_ns = host_jitter_ns;
            // Queue management that can only mark needs ECN.
            scenario.marking.ecn = kind.sets_rate();
            scenario.transport.variant = transport_variant;
            scenario.telemetry.bytes_per_hop = if int_on_acks { 8 } else { 0 };
            scenario.telemetry.on_acks = int_on_acks;
            scenario.host.late_binding = late_binding;
            scenario.control.max_simulated_ms = FOR_EVER_MS;
        });
        for setting in [
            format!("hystart={hystart}"),
            format!("delayed_ack={delayed_ack}"),
            format!("ecn_threshold_bytes={ecn_threshold_bytes}"),
        ] {
            scenario.set(&setting).expect("a setting that exists");
        }
        scenario
    }
}

/// Queue management; half of the cases have none.
const MANAGEMENT: [&str; 20] = [
    "none",
    "none",
    "none",
    "none",
    "none",
    "none",
    "none",
    "none",
    "random:min_bytes=3000,p=0.05",
    "red:min_bytes=2000,max_bytes=20000,max_p=0.2",
    "red:weight=0.01,uniform=yes,gentle=no,action=mark",
    "codel:target_us=50,interval_us=1000",
    "codel:target_us=500,interval_us=20000,action=mark",
    "pie:target_us=100,update_us=100,burst_us=200",
    "pie:action=mark",
    "step:bytes=20000",
    "early:gap=8,min_bytes=3000,action=mark,keep=yes",
    "early:gap=8,min_bytes=3000,action=mark,keep=long",
    "early:gap=8,min_bytes=3000,from=front",
    "early:gap=8,min_bytes=1500,from=front,patience=1",
];

/// Generates every policy of the catalogue, and Dynamic Threshold with other control factors, with and
/// without queue management.
fn policies() -> impl Strategy<Value = PolicySpec> {
    let management = prop::sample::select(MANAGEMENT.to_vec());
    (sharing(), management).prop_map(|(policy, management)| {
        let managed = format!("{policy}+{management}");
        managed.parse().expect("known names")
    })
}

/// Generates the policy in front of queue management.
fn sharing() -> impl Strategy<Value = PolicySpec> {
    // Policies that manage the memory of a switch have set-ups of their own, with lossless packets.
    const MANAGED: [&str; 3] = ["sonic", "sonic-abm", "reverie"];
    let names = policy::catalogue()
        .iter()
        .map(|definition| definition.info.name.to_owned())
        .filter(|name| !MANAGED.contains(&name.as_str()));
    let factors = ["0.03", "0.5", "2", "16"].map(|alpha| format!("dt:alpha={alpha}"));
    let specs: Vec<PolicySpec> = names
        .chain(factors)
        .map(|name| name.parse().expect("a policy of the catalogue"))
        .collect();
    prop::sample::select(specs)
}

/// Generates flows that start together or within 3 ms.
fn traffic(ports: u32) -> impl Strategy<Value = Trace> {
    let start = prop_oneof![Just(0), 0_u64..3_000_000];
    let size = logarithmic(1, 1_000_000);
    let one = (0..ports, 1..ports, start, size, 0..4_u8);
    prop::collection::vec(one, 1..50).prop_map(move |flows| {
        let flows = flows.into_iter().zip(0_u64..);
        Trace {
            flows: flows
                .map(|((src, hop, start_ns, size, priority), id)| FlowSpec {
                    id,
                    src,
                    dst: (src + hop) % ports,
                    start: Instant::from_ns(start_ns),
                    size,
                    kind: 0,
                    query: -1,
                    priority,
                })
                .collect(),
            kinds: vec![Trace::DEFAULT_KIND.to_owned()],
            seed: 0,
        }
    })
}

/// Without losses and timeouts the properties would test little.
#[test]
fn set_ups_are_hard_enough() {
    let mut runner = TestRunner::deterministic();
    let set_ups = 200;
    let [mut with_drops, mut with_timeouts, mut without_drops] = [0; 3];
    for _ in 0..set_ups {
        let tree = any_setup().new_tree(&mut runner).expect("a set-up");
        let summary = tree.current().simulator().run().summary;
        with_drops += u32::from(summary.drops > 10);
        with_timeouts += u32::from(summary.timeouts > 0);
        without_drops += u32::from(summary.drops == 0);
    }
    for count in [with_drops, with_timeouts, without_drops] {
        assert!(
            count > set_ups / 10,
            "{with_drops}, {with_timeouts}, {without_drops}"
        );
    }
}
