//! Lossless packets in whole simulations: nothing is lost if the headroom suffices, pauses end, and
//! other traffic continues.

use std::collections::HashMap;

use bufgym_sim::network::{
    FabricSimulator, LeafSpine, OneSwitch, Outcome, Recorders, Simulator, Topology,
};
use bufgym_sim::scenario::{RangeF64, Scenario};
use bufgym_sim::switch::{AnyPolicy, PolicySpec};
use bufgym_sim::traffic::{FlowSpec, Trace, generate};
use bufgym_sim::units::{Duration, Instant};
use proptest::prelude::*;

use crate::behaviour::setup::{EVENTS_PER_CHECK, MANY_EVENTS, cases};

/// Three leaves with four hosts each, two spines, 25 Gbit/s and 2 µs everywhere. CUBIC at priority 1,
/// which is lossy, answers of queries by DCQCN at priority 3.
fn scenario(changes: &[&str]) -> Scenario {
    let base = [
        "topology=leafspine",
        "leaves=3",
        "hosts_per_leaf=4",
        "spines=2",
        "incast_degree=1..11",
        "active_ports=1..12",
        "rate_bps=25e9",
        "propagation_ns=2000",
        "slowdown_base=reverie",
        "buffer_bytes=600000",
        "mss=1000",
        "min_rto_us=1000",
        "queues_per_port=4",
        "flow_priority=fixed",
        "background_priority=1",
        "incast_priority=3",
        "lossless_priorities=3",
        "transport=cubic",
        "incast_transport=dcqcn:preset=reverie",
        "demand=other_leaf",
        "query_rate=400",
        "query_share=0.8",
        "load=0.6",
        "measure_ms=4",
        "drain_ms=2000",
        "pfc_watchdog_us=10000",
    ];
    let mut scenario = Scenario::default();
    for change in base.iter().chain(changes) {
        scenario.set(change).unwrap();
    }
    scenario.validate().unwrap();
    scenario
}

fn simulator(policy: &str, scenario: &Scenario, trace: &Trace) -> FabricSimulator {
    let policy: PolicySpec = policy.parse().unwrap();
    policy.simulator::<LeafSpine>(scenario, trace).unwrap()
}

fn run(policy: &str, scenario: &Scenario, seed: u64) -> (FabricSimulator, Outcome) {
    let trace = generate(scenario, seed);
    let mut simulator = simulator(policy, scenario, &trace);
    let outcome = simulator.run();
    assert_eq!(simulator.stuck(), None, "{policy}");
    (simulator, outcome)
}

const POLICIES: [&str; 4] = ["sonic", "sonic-abm", "reverie", "reverie:gamma=0.999999"];

fn finishes(outcome: &[bufgym_sim::network::FlowRecord]) -> Vec<Option<Instant>> {
    outcome.iter().map(|record| record.finish).collect()
}

/// Every policy pauses here, loses at most lossy packets, and resumes what it has paused.
#[test]
fn nothing_lossless_is_lost() {
    for policy in POLICIES {
        for rules in ["rules=paper", "rules=ns3"] {
            let scenario = scenario(&[rules]);
            let (simulator, outcome) = run(policy, &scenario, 3);
            let summary = &outcome.summary;
            assert!(summary.pauses > 0, "{policy} {rules}");
            assert_eq!(summary.drops_lossless, 0, "{policy} {rules}");
            assert_eq!(simulator.first_lossless_drop(), None);
            assert!(outcome.records.iter().all(|record| record.finish.is_some()));
            let pauses = simulator.pauses();
            assert_eq!(pauses.len() as u64, summary.pauses);
            assert!(pauses.iter().all(|paused| paused.priority == 3));
            assert!(
                pauses
                    .iter()
                    .all(|paused| paused.to.is_none_or(|to| to >= paused.from))
            );
            let answers = outcome
                .records
                .iter()
                .filter(|record| record.spec.query >= 0);
            let timeouts: u32 = answers.map(|record| record.timeouts).sum();
            assert_eq!(timeouts, 0, "{policy} {rules}");
        }
    }
}

/// With hardly any headroom packets are lost, the first of them is recorded, and all flows still end.
#[test]
fn without_headroom_packets_are_lost() {
    let scenario = scenario(&["headroom_bytes=1100"]);
    assert!(scenario.lossless_warning().is_some());
    for policy in ["sonic", "reverie"] {
        let (simulator, outcome) = run(policy, &scenario, 3);
        assert!(outcome.summary.drops_lossless > 0, "{policy}");
        let first = simulator.first_lossless_drop().unwrap();
        assert_eq!(first.priority, 3);
        assert!(outcome.records.iter().all(|record| record.finish.is_some()));
    }
}

/// Pauses that last for a time, and are repeated before it ends, are equivalent to pauses that are
/// revoked.
#[test]
fn quanta_change_nothing() {
    let trace_seed = 5;
    for policy in ["sonic", "reverie"] {
        let (_, once) = run(policy, &scenario(&[]), trace_seed);
        let (_, timed) = run(policy, &scenario(&["pfc=quanta"]), trace_seed);
        assert!(once.summary.pauses > 0);
        assert_eq!(
            finishes(&once.records),
            finishes(&timed.records),
            "{policy}"
        );
        // 512 bits of the fastest repetition: frames are always on the wire.
        let short = scenario(&["pfc=quanta", "pfc_quanta=400"]);
        let (_, short) = run(policy, &short, trace_seed);
        assert_eq!(short.summary.drops_lossless, 0, "{policy}");
    }
}

/// A simulator that is cloned while pause frames are in flight continues like the original.
#[test]
fn forks_with_pauses_are_equal() {
    let scenario = scenario(&["pfc_response_ns=500"]);
    let trace = generate(&scenario, 3);
    let mut original = simulator("reverie", &scenario, &trace);
    let mut forks = Vec::new();
    let mut seen = 0;
    for step in 0u64.. {
        if !original.step() || original.finished() {
            break;
        }
        let pauses = original.pauses().len();
        if step % 64 == 0 && pauses > seen && forks.len() < 8 {
            seen = pauses;
            forks.push(original.clone());
        }
    }
    assert!(forks.len() > 2, "{} forks", forks.len());
    let expected = finishes(&original.outcome().records);
    for mut fork in forks {
        assert_eq!(finishes(&fork.run().records), expected);
    }
}

/// Without a lossless priority, and with one pool for all, SONiC equals Dynamic Threshold.
#[test]
fn sonic_without_lossless_priorities_is_dynamic_threshold() {
    for (count, transport) in [
        ("count_in_service=true", "transport=cubic"),
        ("count_in_service=false", "transport=dctcp"),
    ] {
        let changes = [
            "lossless_priorities=none",
            "lossy_pool_share=1",
            "incast_transport=same",
            count,
            transport,
        ];
        let scenario = scenario(&changes);
        let trace = generate(&scenario, 11);
        let [dt, sonic] = ["dt", "sonic"].map(|policy| simulator(policy, &scenario, &trace).run());
        assert!(dt.summary.drops > 0);
        assert_eq!(dt.summary.drops, sonic.summary.drops);
        assert_eq!(dt.summary.marks, sonic.summary.marks);
        assert_eq!(finishes(&dt.records), finishes(&sonic.records));
    }
}

/// Dynamic Threshold with lossless packets is SONiC's, and a buffer that never fills pauses no
/// neighbour.
#[test]
fn the_references_know_lossless_packets() {
    let scenario = scenario(&[]);
    let of = |policy| finishes(&run(policy, &scenario, 3).1.records);
    assert_eq!(of("dt"), of("sonic"));
    assert_eq!(of("dt:alpha=2"), of("sonic:alpha_i=2,alpha_e=2"));
    let (_, outcome) = run("unlimited", &scenario, 3);
    assert_eq!((outcome.summary.pauses, outcome.summary.drops), (0, 0));
}

/// Reverie has no egress pool for lossy packets.
#[test]
fn the_lossy_pool_is_none_of_reveries() {
    let of = |share: &str| {
        let scenario = scenario(&[share]);
        finishes(&run("reverie", &scenario, 3).1.records)
    };
    assert_eq!(of("lossy_pool_share=0.2"), of("lossy_pool_share=0.8"));
}

/// Policies without thresholds at the ingress are refused, and so is queue management.
#[test]
fn what_could_lose_lossless_packets_is_refused() {
    let scenario = scenario(&[]);
    let trace = generate(&scenario, 1);
    let mut deficits = scenario.clone();
    deficits.set("scheduler=drr").unwrap();
    let spec: PolicySpec = "reverie".parse().unwrap();
    let error = spec
        .simulator::<LeafSpine>(&deficits, &trace)
        .unwrap_err()
        .to_string();
    assert!(error.contains("needs scheduler rr"), "{error}");
    for policy in ["st", "lqd", "occamy", "ib", "sonic+red"] {
        let spec: PolicySpec = policy.parse().unwrap();
        let error = spec
            .simulator::<LeafSpine>(&scenario, &trace)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("must be") || error.contains("leave it out"),
            "{error}"
        );
    }
}

/// Returns two answers that start at once at hosts of two leaves, to a host of the third.
fn two_answers(bytes: u64) -> Trace {
    let flow = |id, src, dst| FlowSpec {
        id,
        src,
        dst,
        start: Instant::ZERO,
        size: bytes,
        kind: 0,
        query: 0,
        priority: 3,
    };
    Trace {
        flows: vec![flow(0, 0, 8), flow(1, 4, 8), flow(2, 1, 8)],
        ..Trace::default()
    }
}

/// A watchdog whose limit is below the length of a pause reports which queue waits for which.
#[test]
fn the_watchdog_names_the_chain() {
    let scenario = scenario(&["pfc_watchdog_us=3", "buffer_bytes=260000"]);
    let mut simulator = simulator("sonic", &scenario, &two_answers(2_000_000));
    simulator.run();
    let stuck = simulator.stuck().expect("a pause lasts longer than 3 us");
    assert!(
        stuck.contains("priority 3") && stuck.contains("paused by switch"),
        "{stuck}"
    );
    let mut drops = scenario.clone();
    drops.set("watchdog=drop").unwrap();
    let mut simulator = self::simulator("sonic", &drops, &two_answers(200_000));
    let outcome = simulator.run();
    assert!(outcome.summary.drops_lossless > 0);
    assert!(outcome.records.iter().all(|record| record.finish.is_some()));
}

/// Every policy that manages memory, with weak and strong filters.
const ALL_POLICIES: [&str; 7] = [
    "dt",
    "sonic",
    "sonic:alpha_i=4,alpha_e=0.5",
    "sonic-abm",
    "reverie",
    "reverie:gamma=0.8",
    "reverie:gamma=0.999999",
];

/// Rates of the links between switches, for hosts with 25 Gbit/s; 0: the same rate.
const FABRIC_RATES: [&str; 3] = ["0", "10e9", "100e9"];

/// A host sends ten segments of TCP while it sends three flows of RDMA. With flows in turn they take 40
/// packets of the line, with classes in turn 20.
#[test]
fn hosts_send_rdma_and_tcp_in_turn_under_the_rules_of_the_code() {
    let flow = |id, dst, (size, query, priority)| FlowSpec {
        id,
        src: 0,
        dst,
        start: Instant::ZERO,
        size,
        kind: 0,
        query,
        priority,
    };
    let (rdma, tcp) = ((1_000_000, 0, 3), (10_000, -1, 1));
    let trace = Trace {
        flows: vec![
            flow(0, 4, rdma),
            flow(1, 5, rdma),
            flow(2, 8, rdma),
            flow(3, 9, tcp),
        ],
        ..Trace::default()
    };
    // 1,048 bytes at 25 Gbit/s.
    let packet_ns = 335;
    let packets_of_line = |rules| {
        let mut simulator = simulator("reverie", &scenario(&[rules]), &trace);
        let outcome = simulator.run();
        assert_eq!(outcome.summary.drops, 0, "{rules}");
        outcome.records[3].finish.unwrap().as_ns() / packet_ns
    };
    let (paper, code) = (packets_of_line("rules=paper"), packets_of_line("rules=ns3"));
    assert!((paper - code).abs_diff(20) <= 2, "{paper} {code}");
}

/// A host sends without a gap through a leaf whose uplink is so slow that nothing leaves. Meanwhile a
/// packet comes to the host, and its leaf begins to send it just when the leaf wants to pause the host.
#[derive(Clone, Copy, Debug)]
struct WorstCase {
    /// Bytes that a host's line carries in a nanosecond: a divisor of 1,000, so that a byte takes whole
    /// picoseconds.
    bytes_per_ns: u64,
    /// Bytes of every full packet, a multiple of `bytes_per_ns` with the overhead.
    packet: u64,
    overhead: u64,
    frame: u64,
    propagation_ns: u64,
    response_ns: u64,
}

impl WorstCase {
    const HEADER: u64 = 48;

    fn scenario(self, headroom: u64) -> Scenario {
        let packet = self.packet;
        let mut scenario = scenario(&[
            "leaves=2",
            "ports=8",
            "spines=1",
            "incast_degree=1..7",
            "active_ports=1..8",
            "fabric_rate_bps=1e7",
            "drain_ms=100000",
            "pfc_watchdog_us=0",
            "header_bytes=48",
            "query_rate=0",
            // The packet that comes to the host is not acknowledged at once.
            "delayed_ack=2",
        ]);
        for change in [
            format!("rate_bps={}", 8_000_000_000 * self.bytes_per_ns),
            format!("mss={}", packet - WorstCase::HEADER),
            format!("overhead_bytes={}", self.overhead),
            format!("pfc_bytes={}", self.frame),
            format!("propagation_ns={}", self.propagation_ns),
            format!("pfc_response_ns={}", self.response_ns),
            format!("headroom_bytes={headroom}"),
            // A leaf has five ports. The second packet of the host passes the threshold of this pool.
            format!("buffer_bytes={}", 5 * headroom + 2 * packet),
        ] {
            scenario.set(&change).unwrap();
        }
        scenario.validate().unwrap();
        scenario
    }

    fn needed(self) -> u64 {
        let scenario = self.scenario(1_000_000);
        scenario.needed_headroom(scenario.rate())
    }

    /// Returns the picoseconds of a packet on the line of a host.
    fn line(self, bytes: u64) -> u64 {
        (bytes + self.overhead) * 1_000 / self.bytes_per_ns
    }

    /// Returns the bytes that enter the headroom: the packet that makes the leaf pause the host, and
    /// all that begin before the pause takes effect; `None` if one begins at that instant.
    fn used(self) -> Option<u64> {
        let [packet, frame] = [self.packet, self.frame].map(|bytes| self.line(bytes));
        let stops = packet + frame + 2_000 * self.propagation_ns + 1_000 * self.response_ns;
        let after = stops.div_ceil(packet);
        (!stops.is_multiple_of(packet)).then_some((1 + after) * self.packet)
    }

    /// Returns the most headroom that is used, and the number of lost lossless packets.
    fn run(self, headroom: u64) -> (u64, u64) {
        let start = |ps| Instant::from_us(1) + Duration(ps);
        let flow = |id, src, dst, start, size, query, priority| FlowSpec {
            id,
            src,
            dst,
            start,
            size,
            kind: 0,
            query,
            priority,
        };
        let payload = self.packet - WorstCase::HEADER;
        let many = (self.needed() / self.packet + 4) * payload;
        let trace = Trace {
            flows: vec![
                flow(0, 0, 4, start(0), many, 0, 3),
                flow(1, 1, 0, start(self.line(self.packet)), payload, -1, 1),
            ],
            ..Trace::default()
        };
        let mut simulator = simulator("sonic", &self.scenario(headroom), &trace);
        let outcome = simulator.run();
        assert!(outcome.records.iter().all(|record| record.finish.is_some()));
        assert!(outcome.summary.pauses > 0);
        (simulator.most_headroom(), outcome.summary.drops_lossless)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(32)))]

    /// The formula is tight up to the bytes of a nanosecond, the unit of responses. With one byte less
    /// than the used headroom a packet is lost.
    #[test]
    fn the_worst_case_needs_all_of_it(
        bytes_per_ns in prop::sample::select(vec![1u64, 2, 4, 5, 10, 20, 25, 50]),
        packet in 100u64..3_000,
        overhead in prop::sample::select(vec![0u64, 20, 250]),
        frame in 1u64..=100,
        propagation_ns in 1u64..5_000,
        response_ns in 0u64..2_000,
    ) {
        let packet = (packet + overhead).next_multiple_of(bytes_per_ns) - overhead;
        let worst = WorstCase { bytes_per_ns, packet, overhead, frame, propagation_ns, response_ns };
        let slack = |worst: &WorstCase| Some(worst.needed() - worst.used()?);
        let candidates = (0..=(packet + overhead) / bytes_per_ns).map(|later| WorstCase {
            response_ns: response_ns + later,
            ..worst
        });
        let found = candidates.filter(|worst| slack(worst).is_some()).min_by_key(slack);
        let worst = found.expect("not everything happens at the same instant");
        let (needed, used) = (worst.needed(), worst.used().unwrap());
        prop_assert!(needed - used <= bytes_per_ns, "{needed} {used} {worst:?}");
        prop_assert_eq!(worst.run(needed), (used, 0), "{:?}", worst);
        prop_assert_eq!(worst.run(used), (used, 0), "{:?}", worst);
        prop_assert!(worst.run(used - 1).1 > 0, "{:?}", worst);
    }
}

/// Settings that make small packets, large acknowledgements and large pause frames.
#[test]
fn packets_of_no_size_are_lost() {
    for changes in [
        // Data of TCP that belongs to the control class, with which pause frames do not wait.
        &["mss=70", "control_class=true"][..],
        &["mss=256", "pfc_bytes=1000"],
        &["mss=100", "rdma_ack_bytes=642"],
        &["mss=100", "rdma_ack_bytes=1000", "overhead_bytes=250"],
    ] {
        let common = [
            "headroom_bytes=0",
            "query_rate=3000",
            "measure_ms=1",
            "buffer_bytes=300000",
        ];
        let changes = [&common, changes].concat();
        let scenario = scenario(&changes);
        assert_eq!(scenario.lossless_warning(), None);
        for policy in POLICIES {
            let (_, outcome) = run(policy, &scenario, 6);
            assert!(outcome.summary.pauses > 0, "{policy} {changes:?}");
            assert_eq!(outcome.summary.drops_lossless, 0, "{policy} {changes:?}");
        }
    }
}

/// Generates networks and loads for the property below.
fn networks() -> impl Strategy<Value = Vec<String>> {
    let sizes = (any::<bool>(), 2u32..4, 1u32..3, 0u64..4_000, 0u64..2_000);
    let rest = (
        prop::sample::select(FABRIC_RATES.to_vec()),
        1u32..9,
        prop::option::of(500u32..4_000),
        any::<bool>(),
    );
    (sizes, rest).prop_map(|((single, leaves, spines, delay, response), rest)| {
        let (fabric_rate, load, quanta, in_service) = rest;
        let mut changes = vec![
            "measure_ms=1".to_owned(),
            "query_rate=2000".to_owned(),
            "buffer_bytes=1e8".to_owned(),
            format!("ports={}", 4 * leaves),
            format!("leaves={leaves}"),
            format!("spines={spines}"),
            format!("propagation_ns={}", delay.max(1)),
            format!("pfc_response_ns={response}"),
            format!("fabric_rate_bps={fabric_rate}"),
            "incast_degree=1..7".to_owned(),
            "active_ports=1..8".to_owned(),
            format!("load={}", f64::from(load) / 10.0),
            format!("count_in_service={in_service}"),
        ];
        if single {
            changes
                .extend(["topology=single", "demand=uniform", "query_fanin=4"].map(str::to_owned));
        }
        if let Some(quanta) = quanta {
            changes.extend(["pfc=quanta".to_owned(), format!("pfc_quanta={quanta}")]);
        }
        changes
    })
}

/// Reduces the load if packets are small, so that there are not too many.
fn lighten(scenario: &mut Scenario) {
    let share = f64::from(scenario.packets.mss.min(1_000)) / 1_000.0;
    let load = scenario.traffic.load.min * share;
    scenario.traffic.load = RangeF64::new(load, load);
}

/// Returns the bytes of a pool whose lossy part has some room for every packet of the properties below.
fn least_pool(scenario: &Scenario) -> u64 {
    3 * (u64::from(scenario.packets.mss) + 1_100)
}

/// Generates packets for the property below: sizes, transports and classes.
fn packets() -> impl Strategy<Value = Vec<String>> {
    let data = (
        prop::sample::select(vec![40u32, 70, 71, 256, 1_000, 1_460, 8_960]),
        0u32..100,
        0u32..100,
        prop::sample::select(vec![0u32, 20, 250]),
        prop::sample::select(vec![15u32, 64, 300, 1_000]),
    );
    let rest = (
        prop::sample::select(vec![15u32, 54, 64, 500]),
        prop::sample::select(vec![15u32, 60, 642, 1_000]),
        prop::sample::select(vec!["cubic", "dctcp", "hpcc", "newreno"]),
        prop::sample::select(vec!["dcqcn", "dcqcn:preset=reverie", "powertcp-rdma"]),
        prop::sample::select(vec!["3", "2,3", "0,2,3"]),
    );
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (data, rest, flags).prop_map(|(data, rest, (handshake, second, marks))| {
        let (mss, header, rdma_header, overhead, frame) = data;
        let (ack, rdma_ack, tcp, rdma, lossless) = rest;
        let mut changes = vec![
            format!("mss={mss}"),
            format!("header_bytes={header}"),
            format!("rdma_header_bytes={rdma_header}"),
            format!("overhead_bytes={overhead}"),
            format!("pfc_bytes={frame}"),
            format!("ack_bytes={ack}"),
            format!("rdma_ack_bytes={rdma_ack}"),
            format!("transport={tcp}"),
            format!("incast_transport={rdma}"),
            format!("lossless_priorities={lossless}"),
            format!("handshake={handshake}"),
            format!("sack_block_bytes={}", if marks { 8 } else { 0 }),
        ];
        if tcp == "hpcc" && rdma != "powertcp-rdma" {
            changes.push("int_bytes_per_hop=20".to_owned());
            changes.push(format!("int_on_acks={marks}"));
        }
        if second && lossless != "3" {
            let of_second = [
                "second_load=0.3",
                "second_transport=dcqcn",
                "second_priority=2",
            ];
            changes.extend(of_second.map(str::to_owned));
        }
        changes
    })
}

/// Generates rules for the property below. Packets can be lost without the guard of the pool, and with
/// the published code if pause frames wait for the control class; both give a warning.
fn rules() -> impl Strategy<Value = (&'static str, Vec<String>)> {
    let policy = prop::sample::select(ALL_POLICIES.to_vec());
    let forms = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (policy, forms).prop_map(|(policy, (ns3, abm, class, acks))| {
        let changes = vec![
            format!("rules={}", if ns3 { "ns3" } else { "paper" }),
            format!("congested={}", if abm { "abm" } else { "sum" }),
            format!("control_class={}", class && !ns3),
            format!(
                "ack_priority={}",
                if acks && !ns3 { "control" } else { "data" }
            ),
        ];
        (policy, changes)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(48)))]

    /// With the headroom that is needed, or that follows from the settings, no lossless packet is lost
    /// and every flow ends, whatever the network, the packets, the load, the rules and the size of the
    /// buffer.
    #[test]
    fn headroom_that_is_needed_suffices(
        seed in 0u64..1_000_000,
        network in networks(),
        packets in packets(),
        (policy, rules) in rules(),
        own in any::<bool>(),
        tenths in 0u64..20,
    ) {
        let changes = network.iter().chain(&packets).chain(&rules);
        let changes: Vec<&str> = changes.map(String::as_str).collect();
        let mut scenario = scenario(&changes);
        lighten(&mut scenario);
        // Pools with room for a packet or two cause long pauses, and so do control packets that take a
        // whole line.
        scenario.lossless.pfc_watchdog_us = 0;
        let rate = match scenario.is_fabric() {
            true => scenario.rate().max(scenario.fabric_rate()),
            false => scenario.rate(),
        };
        let needed = scenario.needed_headroom(rate);
        scenario.lossless.headroom_bytes = if own { needed } else { 0 };
        let ports = match scenario.is_fabric() {
            true => 4 + u64::from(scenario.network.spines.max(scenario.network.leaves)),
            false => u64::from(scenario.network.ports),
        };
        let headroom = ports * u64::from(scenario.headroom_priorities()) * scenario.port_headroom(rate);
        let query_bytes = 200 * u64::from(scenario.packets.mss.min(1_000));
        scenario.network.buffer_bytes = headroom + least_pool(&scenario) + query_bytes * tenths / 10;
        scenario.demand.query_share = query_bytes as f64 / scenario.network.buffer_bytes as f64;
        scenario.validate().unwrap();
        prop_assert_eq!(scenario.lossless_warning(), None);
        let trace = generate(&scenario, seed);
        prop_assume!(!trace.flows.is_empty());
        let spec: PolicySpec = policy.parse().unwrap();
        let (outcome, used) = match scenario.is_fabric() {
            true => {
                let mut simulator = spec.simulator::<LeafSpine>(&scenario, &trace).unwrap();
                (simulator.run(), simulator.most_headroom())
            }
            false => {
                let mut simulator = spec.simulator::<OneSwitch>(&scenario, &trace).unwrap();
                (simulator.run(), simulator.most_headroom())
            }
        };
        prop_assert!(used <= needed, "{used} of {needed}");
        prop_assert_eq!(outcome.summary.drops_lossless, 0);
        prop_assert!(outcome.records.iter().all(|record| record.finish.is_some()));
    }
}

/// Checks the invariants that hold at any time.
fn check<T: Topology>(simulator: &Simulator<AnyPolicy, Recorders, T>) -> Result<(), TestCaseError> {
    prop_assert!(
        simulator.check_invariants().is_ok(),
        "{:?}",
        simulator.check_invariants()
    );
    prop_assert!(simulator.packets_are_placed_once());
    prop_assert!(simulator.records_are_balanced() && simulator.sack_entries_are_balanced());
    Ok(())
}

/// Runs to the last event and checks the final state. If packets are lost again and again, the run is
/// stopped after many events.
fn balances<T: Topology>(
    mut simulator: Simulator<AnyPolicy, Recorders, T>,
) -> Result<(), TestCaseError> {
    let mut events = 0;
    while simulator.step() {
        events += 1;
        if events == MANY_EVENTS / 10 {
            return check(&simulator);
        }
        if events % (16 * EVENTS_PER_CHECK) == 0 {
            check(&simulator)?;
        }
    }
    check(&simulator)?;
    prop_assert!(simulator.finished());
    let stored = simulator
        .switches()
        .iter()
        .map(|switch| switch.buffer().occupancy());
    prop_assert_eq!(stored.sum::<u64>(), 0);
    let mut last = HashMap::new();
    for paused in simulator.pauses() {
        let to = paused.to.expect("every pause ends");
        let place = (paused.switch, paused.port, paused.priority);
        let before = last.insert(place, to).unwrap_or(Instant::ZERO);
        prop_assert!(
            before <= paused.from && paused.from <= to,
            "they alternate: {:?}",
            paused
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(12)))]

    /// Packets and bytes always add up, pauses begin and end in turn, every flow ends, and nothing is
    /// left. This holds whatever is paused and lost, with or without enough headroom.
    #[test]
    fn lossless_networks_add_up(
        seed in 0u64..1_000_000,
        network in networks(),
        packets in packets(),
        (policy, rules) in rules(),
        (headroom, tenths, guard, jitter_ns) in (0u64..40, 0u64..20, any::<bool>(), 0u64..500),
    ) {
        let changes = network.iter().chain(&packets).chain(&rules);
        let changes: Vec<&str> = changes.map(String::as_str).collect();
        let mut scenario = scenario(&changes);
        lighten(&mut scenario);
        scenario.lossless.pfc_watchdog_us = 0;
        scenario.lossless.pool_guard = guard;
        scenario.host.jitter_ns = jitter_ns;
        scenario.lossless.headroom_bytes = 500 * headroom;
        let ports = match scenario.is_fabric() {
            true => 4 + u64::from(scenario.network.spines.max(scenario.network.leaves)),
            false => u64::from(scenario.network.ports),
        };
        let rate = scenario.rate().max(scenario.fabric_rate());
        let headroom = ports * u64::from(scenario.headroom_priorities()) * scenario.port_headroom(rate);
        let query_bytes = 100 * u64::from(scenario.packets.mss.min(1_000));
        scenario.network.buffer_bytes = headroom + least_pool(&scenario) + query_bytes * tenths / 10;
        scenario.demand.query_share = query_bytes as f64 / scenario.network.buffer_bytes as f64;
        scenario.validate().unwrap();
        let trace = generate(&scenario, seed);
        prop_assume!(!trace.flows.is_empty());
        let spec: PolicySpec = policy.parse().unwrap();
        match scenario.is_fabric() {
            true => balances(spec.simulator::<LeafSpine>(&scenario, &trace).unwrap())?,
            false => balances(spec.simulator::<OneSwitch>(&scenario, &trace).unwrap())?,
        }
    }
}
