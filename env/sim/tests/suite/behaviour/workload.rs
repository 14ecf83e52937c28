//! Flows that hosts send for a given time, the measured time, and the base times of completion times.

use std::collections::BTreeMap;

use bufgym_sim::network::{
    FlowRecord, HostObserver, LeafSpine, Neighbour, Observer, Outcome, PacketDirection, Route,
    SwitchId, SwitchObserver, Topology as _,
};
use bufgym_sim::scenario::{Demand, PRESETS, RangeU32, Scenario, SlowdownBase, TransportKind};
use bufgym_sim::switch::{Loss, PacketView, PolicySpec, View};
use bufgym_sim::traffic::{FlowSpec, Trace, generate};
use bufgym_sim::units::Instant;
use proptest::prelude::*;

fn scenario(preset: &str, changes: &[&str]) -> Scenario {
    let mut scenario = Scenario::preset(preset).unwrap();
    for change in changes {
        scenario.set(change).unwrap();
    }
    scenario.validate().unwrap();
    scenario
}

fn run(policy: &str, scenario: &Scenario, trace: &Trace) -> Outcome {
    let policy: PolicySpec = policy.parse().unwrap();
    policy.run(scenario, trace).unwrap()
}

fn flow(src: u32, dst: u32, start: Instant, size: u64, query: i64) -> FlowSpec {
    FlowSpec {
        id: 0,
        src,
        dst,
        start,
        size,
        kind: 0,
        query,
        priority: 0,
    }
}

fn one_flow(flow: FlowSpec) -> Trace {
    Trace {
        flows: vec![flow],
        ..Trace::default()
    }
}

/// Packets that arrived at a switch, left it and were lost at it.
#[derive(Default, Debug)]
struct Census {
    of_switch: BTreeMap<SwitchId, [u64; 3]>,
}

impl Census {
    fn count(&mut self, at: SwitchId, view: View<'_>, place: usize) {
        assert!(view.buffer.occupancy() <= view.buffer.capacity());
        let queued: u64 = view.buffer.queues().iter().sum();
        assert_eq!(queued, view.buffer.occupancy());
        self.of_switch.entry(at).or_default()[place] += 1;
    }
}

impl SwitchObserver for Census {
    fn arriving(&mut self, at: SwitchId, view: View<'_>, _packet: PacketView) {
        self.count(at, view, 0);
    }

    fn departed(&mut self, at: SwitchId, view: View<'_>, _packet: PacketView) {
        self.count(at, view, 1);
    }

    fn lost(&mut self, at: SwitchId, view: View<'_>, _packet: PacketView, _loss: Loss) {
        self.count(at, view, 2);
    }
}

impl HostObserver for Census {}
impl Observer for Census {}

/// At every switch, each arriving packet leaves or is lost, and the buffer never holds more than its
/// size.
#[test]
fn every_switch_forwards_or_loses_what_comes() {
    let scenario = scenario(
        "leafspine-4x4",
        &[
            "buffer_bytes_per_port_gbps=1",
            "query_share=3",
            "measure_ms=30",
            "drain_ms=60000",
        ],
    );
    let trace = generate(&scenario, 2);
    for policy in ["dt", "cs", "abm", "lqd", "occamy", "pot"] {
        let spec: PolicySpec = policy.parse().unwrap();
        let mut simulator = spec
            .simulator::<LeafSpine>(&scenario, &trace)
            .unwrap()
            .observed(Census::default());
        let outcome = simulator.run();
        assert!(
            outcome.records.iter().all(|flow| flow.finish.is_some()),
            "{policy}"
        );
        // Packets to flows that are complete are still in flight.
        while simulator.step() {}
        let census = &simulator.observer().of_switch;
        assert_eq!(census.len(), 6);
        for [came, left, lost] in census.values() {
            assert_eq!(*came, left + lost, "{policy}");
            assert!(*left > 0);
        }
        let lost = census.values().map(|counts| counts[2]).sum::<u64>();
        assert!(lost > 0, "{policy}");
        assert!(
            simulator
                .switches()
                .iter()
                .all(|switch| switch.buffer().occupancy() == 0)
        );
        for row in &outcome.switches {
            assert!(
                row.max_occupancy > 0.0 && row.max_occupancy <= 1.0,
                "{row:?}"
            );
            assert!(row.p50_occupancy <= row.p9999_occupancy, "{row:?}");
            assert!(row.p9999_occupancy <= row.max_occupancy, "{row:?}");
        }
        assert_eq!(
            outcome.switches.iter().map(|row| row.drops).sum::<u64>(),
            outcome.summary.drops
        );
    }
}

/// With an unlimited buffer and no timeout, the links of a leaf to spines carry only the packets of its
/// flows and the acknowledgements of the flows to it.
#[test]
fn uplinks_carry_what_is_offered_and_its_headers() {
    // The traffic does not follow `demand`, so that the whole run counts.
    let changes = ["min_rto_us=100000000", "demand=ports"];
    for demand in ["ring", "other_leaf", "uniform"] {
        let generated = scenario(
            "leafspine-4x4",
            &[&format!("demand={demand}"), "measure_ms=50"],
        );
        let trace = generate(&generated, 4);
        let scenario = scenario("leafspine-4x4", &changes);
        let mut simulator = PolicySpec::unlimited()
            .simulator::<LeafSpine>(&scenario, &trace)
            .unwrap();
        simulator.run();
        // The last acknowledgements are still in flight.
        while simulator.step() {}
        let outcome = simulator.outcome();
        let summary = &outcome.summary;
        assert_eq!((summary.drops, summary.timeouts), (0, 0));
        assert_eq!(summary.spurious_retransmissions, 0);

        let mut expected = [0; 4];
        let mss = u64::from(scenario.packets.mss);
        let (header, ack, syn) = (54, 54, 58);
        for flow in &trace.flows {
            let leaves = [flow.src, flow.dst].map(|host| (host / 4) as usize);
            if leaves[0] == leaves[1] {
                continue;
            }
            let segments = flow.size.div_ceil(mss);
            expected[leaves[0]] += flow.size + segments * header;
            expected[leaves[1]] += segments * ack;
            if flow.query < 0 {
                expected[leaves[0]] += syn + ack;
                expected[leaves[1]] += syn;
            }
        }
        let seconds = simulator.now().as_secs_f64();
        for (row, expected) in outcome.switches.iter().zip(expected) {
            let bytes = row.uplink_throughput * 20e9 * seconds / 8.0;
            assert_eq!(bytes.round() as u64, expected, "{demand}: {row:?}");
        }
        assert!(
            outcome.switches[4..]
                .iter()
                .all(|row| row.uplink_throughput.is_nan())
        );
    }
}

/// The flows of hosts are spread evenly over the links of their leaf to spines.
#[test]
fn every_uplink_has_its_share_of_the_flows() {
    let scenario = scenario("abm-artefact", &[]);
    let trace = generate(&scenario, 9);
    let network = LeafSpine::of(&scenario, trace.seed);
    let (leaf, mut flows, mut of_uplink) = (SwitchId(0), 0, [0_u32; 8]);
    for (number, flow) in (0..).zip(&trace.flows) {
        if flow.src >= 32 {
            continue;
        }
        let route = Route {
            src: u16::try_from(flow.src).unwrap(),
            dst: u16::try_from(flow.dst).unwrap(),
            flow: number,
            direction: PacketDirection::Forward,
            turn: 0,
            came: None,
        };
        let port = network.port_to(leaf, route);
        assert!(matches!(
            network.neighbour(leaf, port),
            Neighbour::Switch(_)
        ));
        of_uplink[port - 32] += 1;
        flows += 1;
    }
    assert!(flows > 10_000, "{flows}");
    let expected = f64::from(flows) / 8.0;
    let sigma = (expected * 7.0 / 8.0).sqrt();
    for count in of_uplink {
        assert!(
            (f64::from(count) - expected).abs() <= 4.0 * sigma,
            "{of_uplink:?}"
        );
    }
}

fn times(records: &[FlowRecord]) -> Vec<Option<Instant>> {
    records.iter().map(|record| record.finish).collect()
}

#[test]
fn flows_of_the_warm_up_are_simulated_and_not_counted() {
    let whole = scenario("leafspine-4x4", &["warmup_ms=0", "measure_ms=30"]);
    let later = scenario("leafspine-4x4", &["warmup_ms=20", "measure_ms=10"]);
    let trace = generate(&whole, 6);
    assert_eq!(generate(&later, 6).flows, trace.flows);
    let [whole, later] = [&whole, &later].map(|scenario| run("dt", scenario, &trace));
    assert_eq!(times(&whole.records), times(&later.records));
    let counted = trace
        .flows
        .iter()
        .filter(|flow| flow.start >= Instant::from_ms(20));
    let counted = counted.count() as u64;
    assert!(counted > 0 && counted < trace.flows.len() as u64);
    assert_eq!(whole.summary.flows, trace.flows.len() as u64);
    assert_eq!(
        (later.summary.flows, later.summary.completed),
        (counted, counted)
    );
    assert_ne!(whole.summary.mean_slowdown, later.summary.mean_slowdown);
}

/// A flow of 1 MB keeps its uplink busy for 0.83 ms; the throughput is a share of the rates of two
/// links.
#[test]
fn switches_are_observed_within_the_window() {
    let rate = |changes: &[&str], start| {
        let scenario = scenario("leafspine-4x4", changes);
        let trace = one_flow(flow(0, 15, start, 1_000_000, 0));
        let outcome = run("dt", &scenario, &trace);
        assert_eq!(outcome.summary.completed + 1, 1 + outcome.summary.flows);
        let leaf = outcome.switches[0];
        (leaf.max_occupancy, leaf.uplink_throughput)
    };
    let wire = 8.0 * (1_000_000 + 54 * 715) as f64;
    let (most, busy) = rate(&["measure_ms=100", "warmup_ms=0"], Instant::ZERO);
    assert!(most > 0.0);
    // The run ends with the flow.
    assert!(
        busy * 20e9 * 0.83e-3 < wire && busy * 20e9 * 0.95e-3 > wire,
        "{busy}"
    );
    // The window ends in the middle of the flow.
    let (_, half) = rate(&["measure_ms=1", "warmup_ms=1"], Instant::from_us(1_600));
    assert!((half - 0.39 / 2.0).abs() < 0.02, "{half}");
    // The flow is over when the window opens, and keeps the run active only until then.
    let (most, none) = rate(&["measure_ms=1", "warmup_ms=1"], Instant::from_us(2_100));
    assert_eq!((most, none), (0.0, 0.0));
}

#[test]
fn the_run_ends_after_the_drain() {
    let changes = ["measure_ms=1", "drain_ms=2", "query_rate=0"];
    let scenario = scenario("leafspine-4x4", &changes);
    let big = flow(0, 15, Instant::ZERO, 30_000_000, -1);
    let trace = Trace {
        flows: vec![big, FlowSpec { id: 1, ..big }],
        ..Trace::default()
    };
    let outcome = run("dt", &scenario, &trace);
    assert!(outcome.records.iter().all(|flow| flow.finish.is_none()));
    assert!(outcome.records.iter().all(|flow| flow.base.is_none()));
    assert_eq!((outcome.summary.flows, outcome.summary.completed), (2, 0));
    let mut longer = scenario.clone();
    longer.set("drain_ms=1000").unwrap();
    assert_eq!(run("dt", &longer, &trace).summary.completed, 2);
}

/// An answer needs no handshake and leaves at once, whatever the initial window.
#[test]
fn answers_on_open_connections_are_as_fast_as_the_network() {
    let changes = ["init_cwnd=1", "min_rto_us=100000000"];
    let open = scenario("abm-artefact", &changes);
    for size in [1, 1_400, 36_864, 1_000_000] {
        let answer = one_flow(flow(0, 40, Instant::from_us(7), size, 5));
        let record = run("unlimited", &open, &answer).records[0];
        assert_eq!(
            (record.fct, record.slowdown),
            (record.base, Some(1.0)),
            "{size}"
        );
        assert_eq!(record.established, Some(Instant::from_us(7)));
        let mut alone = open.clone();
        alone.traffic.slowdown_base = SlowdownBase::Alone;
        let same = run("unlimited", &alone, &answer).records[0];
        assert_eq!((same.fct, same.base), (record.fct, record.base));
        // A flow that is not connected needs a handshake, and windows of 1, 2, 4 ...
        let mut closed = open.clone();
        closed.demand.preconnected = false;
        let slow = run("unlimited", &closed, &answer).records[0];
        assert!(slow.slowdown.unwrap() > 1.0 || size <= 1_400);
        assert!(slow.fct.unwrap() > record.fct.unwrap() + open.base_rtt());
    }
}

/// Window that does not limit a flow, segments.
const WINDOW: u32 = 10_000;

fn assert_pipeline(scenario: &Scenario, spec: FlowSpec) {
    let outcome = run("unlimited", scenario, &one_flow(spec));
    let record = outcome.records[0];
    assert!(record.fct.is_some());
    assert_eq!(record.fct, record.base, "{}: {spec:?}", scenario.name);
    assert_eq!(record.slowdown, Some(1.0));
}

/// Returns the scenario without marks, which would reduce the window, and without jitter.
fn with_pipeline(scenario: &Scenario) -> Scenario {
    scenario.clone().with(|scenario| {
        scenario.traffic.slowdown_base = SlowdownBase::Pipeline;
        scenario.demand.kind = Demand::Ports;
        scenario.tcp.init_cwnd = WINDOW;
        scenario.tcp.max_cwnd_bytes = 0;
        scenario.tcp.min_rto_us = 100_000_000;
        scenario.transport.kind = TransportKind::NewReno;
        scenario.marking.threshold_bytes = 0;
        scenario.host.jitter_ns = 0;
    })
}

#[test]
fn isolated_flows_are_pipelines_in_every_preset() {
    for preset in PRESETS {
        let scenario = with_pipeline(&preset.scenario());
        for dst in [1, scenario.network.ports - 1] {
            for size in [1, 1_399, 1_400, 1_461, 36_864, 1_000_001] {
                assert_pipeline(&scenario, flow(0, dst, Instant::from_us(3), size, -1));
            }
        }
    }
}

/// Generates a network, rates of its two kinds of links, and the sizes of packets.
fn any_network() -> impl Strategy<Value = Scenario> {
    let network = (1_u32..5, 1_u32..5, 1_u32..4, 1_u32..4);
    let rates = (1_u64..100, 1_u64..100, 0_u64..50_000);
    let sizes = (
        100_u32..3_000,
        0_u32..100,
        1_u32..100,
        1_u32..100,
        0_u32..30,
    );
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (network, rates, sizes, flags).prop_map(|(network, rates, sizes, flags)| {
        let (leaves, hosts_per_leaf, spines, links_per_pair) = network;
        let hosts_per_leaf = hosts_per_leaf.max(2);
        with_pipeline(&Scenario::preset("leafspine-4x4").unwrap()).with(|scenario| {
            scenario.network.leaves = leaves;
            scenario.network.hosts_per_leaf = hosts_per_leaf;
            scenario.network.ports = leaves * hosts_per_leaf;
            scenario.network.spines = if leaves > 1 { spines } else { 0 };
            scenario.network.links_per_pair = links_per_pair;
            scenario.network.rate_bps = rates.0 * 100_000_000;
            scenario.network.fabric_rate_bps = rates.1 * 100_000_000;
            scenario.network.propagation_ns = rates.2;
            scenario.packets.mss = sizes.0;
            scenario.packets.header_bytes = sizes.1;
            scenario.packets.ack_bytes = sizes.2;
            scenario.packets.syn_bytes = sizes.3;
            scenario.packets.overhead_bytes = sizes.4;
            scenario.tcp.timestamps = flags.0;
            scenario.tcp.handshake = flags.1;
            scenario.demand.preconnected = flags.2;
            scenario.network.buffer_bytes_per_port_gbps = 0.0;
            scenario.traffic.active_ports = RangeU32::new(1, 1);
            scenario.traffic.incast_degree = RangeU32::new(1, 1);
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn isolated_flows_are_pipelines_in_any_network(
        scenario in any_network(), src: u32, dst: u32, segments in 0_u64..400, rest in 1_u64..100,
        in_group: bool,
    ) {
        let (src, dst) = (src % scenario.network.ports, dst % scenario.network.ports);
        prop_assume!(src != dst);
        let size = segments * u64::from(scenario.packets.mss) + rest;
        assert_pipeline(&scenario, flow(src, dst, Instant::from_us(1), size, i64::from(in_group) - 1));
    }
}
