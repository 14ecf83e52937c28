//! Transports with a rate in whole simulations, and their requirements on switches.

use bufgym_sim::network::{LeafSpine, OneSwitch, Outcome, Simulator, SwitchId};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::{FlowSpec, Trace, generate};
use bufgym_sim::units::Instant;
use proptest::prelude::*;

use crate::behaviour::setup::{any_setup, cases, least_buffer};

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

fn flow(src: u32, size: u64, query: i64) -> FlowSpec {
    FlowSpec {
        id: u64::from(src),
        src,
        dst: 0,
        start: Instant::ZERO,
        size,
        kind: 0,
        query,
        priority: 0,
    }
}

/// Returns endless flows from `flows` hosts to port 0.
fn long_flows(flows: u32) -> Trace {
    Trace {
        flows: (1..=flows).map(|src| flow(src, 100_000_000, -1)).collect(),
        ..Trace::default()
    }
}

/// Mean queue and load of the line, once flows have settled.
struct Settled {
    /// Mean queue as a share of the bandwidth-delay product.
    queue: f64,
    /// Smallest and largest queue, likewise.
    range: [f64; 2],
    /// Load as a share of the line.
    load: f64,
}

/// Runs flows with small packets without headers, so that whole segments make nearly any window.
fn settle(flows: u32, changes: &[&str]) -> Settled {
    let network = [
        "ports=32",
        "rate_bps=10e9",
        "mss=100",
        "header_bytes=0",
        "ack_bytes=1",
        "buffer_bytes=10e6",
    ];
    let scenario = scenario("ndt-16x1g", &[&network, changes].concat());
    let policy: PolicySpec = "cs".parse().unwrap();
    let mut simulator: Simulator = policy
        .simulator::<OneSwitch>(&scenario, &long_flows(flows))
        .unwrap();
    let [from, until] = [10, 14].map(Instant::from_ms);
    let (mut byte_ps, mut last) = (0.0, from);
    let mut range = [f64::INFINITY, 0.0];
    let mut sent_before = 0;
    while simulator.now() < until && simulator.step() {
        let now = simulator.now();
        let sent = simulator.packets_forwarded();
        if now < from {
            sent_before = sent;
            continue;
        }
        let queue = simulator.buffer().queue(0) as f64;
        range = [range[0].min(queue), range[1].max(queue)];
        byte_ps += queue * (now - last).0 as f64;
        last = now;
    }
    let span = (until - from).0 as f64;
    let bandwidth_delay_product = 10e9 * scenario.base_rtt().as_secs_f64() / 8.0;
    // Every segment of 100 B comes with an acknowledgement.
    let data = (simulator.packets_forwarded() - sent_before) as f64 / 2.0;
    assert_eq!(
        simulator.switch(SwitchId(0)).buffer().capacity(),
        10_000_000
    );
    Settled {
        range: range.map(|queue| queue / bandwidth_delay_product),
        queue: byte_ps / span / bandwidth_delay_product,
        load: data * 800e12 / span / 10e9,
    }
}

/// `n` flows leave a queue of `Σβ`, a tenth of the bandwidth-delay product each.
#[test]
fn powertcp_settles_at_its_additive_increases_and_full_rate() {
    for (kind, swing) in [("powertcp", 0.05), ("theta-powertcp", 0.3)] {
        for flows in [2, 3, 4, 6, 8, 10, 15, 20] {
            let settled = settle(flows, &[&format!("transport={kind}")]);
            let expected = f64::from(flows) / 10.0;
            let (queue, load) = (settled.queue, settled.load);
            assert!(load > 0.999, "{kind}, {flows} flows: load {load}");
            assert!(
                (queue - expected).abs() < 0.03 * expected,
                "{kind}, {flows} flows: {queue} of {expected}"
            );
            let [least, most] = settled.range;
            assert!(
                most - least < swing,
                "{kind}, {flows} flows: {least} to {most}"
            );
        }
    }
}

/// The queue is `max(0, Σβ - 0.05 bτ)`, with β a hundredth of the bandwidth-delay product at 10 Gbit/s.
#[test]
fn powertcp_of_ns3_settles_below() {
    for flows in [4, 20, 24, 30] {
        let settled = settle(flows, &["transport=powertcp", "transport_variant=ns3"]);
        let expected = (f64::from(flows) / 100.0 - 0.05).max(0.0);
        let (queue, load) = (settled.queue, settled.load);
        assert!(load > 0.9, "{flows} flows: load {load}");
        assert!(
            (queue - expected).abs() < 0.06,
            "{flows} flows: {queue} of {expected}"
        );
    }
}

/// Without congestion the transports fill the line; with it, none of them lets a queue grow without
/// bounds.
#[test]
fn rates_fill_a_line_and_leave_short_queues() {
    for (kind, most) in [("timely", 1.0), ("hpcc", 0.1)] {
        let alone = settle(1, &[&format!("transport={kind}")]);
        assert!(alone.load > 0.94, "{kind}: load {}", alone.load);
        let many = settle(8, &[&format!("transport={kind}")]);
        let (queue, load) = (many.queue, many.load);
        assert!(
            load > 0.95 && queue < most,
            "{kind}: load {load}, queue {queue}"
        );
    }
}

#[test]
fn all_flows_complete_in_a_network() {
    for kind in ["powertcp", "theta-powertcp", "timely", "hpcc"] {
        for variant in ["paper", "ns3"] {
            let scenario = scenario(
                "leafspine-4x4",
                &[
                    &format!("transport={kind}"),
                    &format!("transport_variant={variant}"),
                    "measure_ms=20",
                ],
            );
            let trace = generate(&scenario, 5);
            let summary = run("dt", &scenario, &trace).summary;
            assert_eq!(summary.completed, summary.flows, "{kind} {variant}");
            assert_eq!(summary.marks, 0, "{kind} {variant}");
        }
    }
}

/// In-cast flows have windows of the bandwidth-delay product and no marks; the others use DCTCP.
#[test]
fn in_cast_flows_can_have_their_own_transport() {
    let mixed = scenario(
        "leafspine-4x4",
        &["incast_transport=powertcp", "measure_ms=20", "init_cwnd=10"],
    );
    let trace = generate(&mixed, 7);
    let outcome = run("dt", &mixed, &trace);
    assert_eq!(outcome.summary.completed, outcome.summary.flows);
    assert!(outcome.summary.marks > 0);
    let policy: PolicySpec = "dt".parse().unwrap();
    let mut simulator = policy.simulator::<LeafSpine>(&mixed, &trace).unwrap();
    let mut seen = [false; 2];
    while simulator.step() && seen != [true; 2] {
        for flow in simulator.active_flows() {
            let in_cast = trace.flows[flow.index as usize].query >= 0;
            if flow.remaining_bytes == trace.flows[flow.index as usize].size {
                let window = if in_cast { 100_000 } else { 14_000 };
                assert_eq!(flow.cwnd, window);
                seen[usize::from(in_cast)] = true;
            }
        }
    }
    assert_eq!(seen, [true; 2]);
}

/// Flows of the second class use DCTCP and are the only ones that are marked. The others use CUBIC, and
/// answers use θ-PowerTCP, whose window is the bandwidth-delay product.
#[test]
fn every_class_has_its_transport_and_only_dctcp_is_marked() {
    let changes = [
        "transport=cubic",
        "second_transport=dctcp",
        "second_load=0.4",
        "incast_transport=theta-powertcp",
        "init_cwnd=10",
        "measure_ms=20",
        "ecn_k_packets=10",
    ];
    let marked = |more: &[&str]| {
        let all: Vec<&str> = changes.iter().chain(more).copied().collect();
        let mixed = scenario("leafspine-4x4", &all);
        let trace = generate(&mixed, 7);
        let outcome = run("dt", &mixed, &trace);
        assert_eq!(outcome.summary.completed, outcome.summary.flows);
        outcome.summary.marks
    };
    let (all, dctcp) = (marked(&[]), marked(&["ecn_capable=dctcp"]));
    assert!(0 < dctcp && dctcp < all, "{dctcp} {all}");
    let none = ["ecn_capable=dctcp", "second_transport=cubic"];
    assert_eq!(marked(&none), 0);
    let red = [
        "ecn_capable=dctcp",
        "marking=red",
        "ecn_red_kmin_bytes=14000",
        "ecn_red_kmax_bytes=100000",
        "ecn_red_pmax=0.1",
    ];
    let random = marked(&red);
    assert!(0 < random && random < dctcp, "{random} {dctcp}");

    let mixed = scenario("leafspine-4x4", &changes);
    let trace = generate(&mixed, 7);
    let policy: PolicySpec = "dt".parse().unwrap();
    let mut simulator = policy.simulator::<LeafSpine>(&mixed, &trace).unwrap();
    let mut windows = [0; 3];
    while simulator.step() {
        for flow in simulator.active_flows() {
            let spec = &trace.flows[flow.index as usize];
            let window = &mut windows[usize::from(spec.kind)];
            if *window == 0 && flow.remaining_bytes == spec.size {
                *window = flow.cwnd;
            }
        }
    }
    assert_eq!(windows, [14_000, 100_000, 14_000]);
}

#[test]
fn what_a_transport_needs_is_said() {
    for (changes, problem) in [
        (
            &["transport=powertcp", "int=false"][..],
            "int = false: transport powertcp reads telemetry of the switches; must be true",
        ),
        (
            &["incast_transport=hpcc", "int=false"],
            "int = false: transport hpcc reads telemetry",
        ),
        (
            &["transport=timely", "recovery=rack"],
            "recovery = rack: transport timely has no other recovery; must be rfc",
        ),
        (
            &["transport=theta-powertcp", "sack=false"],
            "sack = false: transport theta-powertcp needs SACK; must be true",
        ),
        (
            &["transport=hpcc", "delayed_ack=2"],
            "delayed_ack = 2: transport hpcc needs an acknowledgement each; must be 1",
        ),
        (
            &["transport=linux", "incast_transport=dctcp"],
            "incast_transport = dctcp: linux and linux-dctcp stand for both ends",
        ),
        (
            &["device_fifo_packets=1"],
            "device_fifo_packets = 1: needs count_in_service false",
        ),
        (
            &["int_bytes_per_hop=101"],
            "int_bytes_per_hop = 101: must be from 0 to 100",
        ),
    ] {
        let mut scenario = Scenario::default();
        for change in changes {
            scenario.set(change).unwrap();
        }
        let error = scenario.validate().unwrap_err().to_string();
        assert!(error.contains(problem), "{changes:?}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let mut scenario = Scenario::default();
    for wrong in [
        "incast_transport=tcp",
        "transport_variant=ns-3",
        "int=maybe",
    ] {
        let error = scenario.set(wrong).unwrap_err().to_string();
        assert!(
            error.contains("one of") || error.contains("true or false"),
            "{error}"
        );
    }
    scenario.set("incast_transport=same").unwrap();
    assert_eq!(scenario, Scenario::default());
}

fn finishes(outcome: &Outcome) -> Vec<Option<Instant>> {
    outcome.records.iter().map(|record| record.finish).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(100)))]

    /// Packets that a port's scheduler has handed on correspond to the uncounted packets at the head of
    /// its only queue, as in ns-3's marking queues.
    #[test]
    fn a_device_queue_is_the_uncounted_head_of_one_queue(setup in any_setup(), packets in 1_u32..20) {
        let names = ["dt", "cs", "st", "smxq"];
        let policy: PolicySpec = names[packets as usize % 4].parse().unwrap();
        let mut head = setup.scenario.clone().with(|changed| {
            changed.queues.queues_per_port = 1;
            changed.queues.count_in_service = false;
            changed.queues.device_fifo_packets = 0;
            changed.queues.uncounted_packets = packets + 1;
            changed.transport.kind = match setup.scenario.transport.kind.reads_telemetry() {
                // Telemetry is written when the scheduler takes a packet.
                true => bufgym_sim::scenario::TransportKind::Timely,
                false => setup.scenario.transport.kind,
            };
        });
        // A sender with a rate would send forever into a queue that has no room for a packet.
        head.network.buffer_bytes = head.network.buffer_bytes.max(least_buffer(&head, &policy));
        let device = head.clone().with(|scenario| {
            scenario.queues.device_fifo_packets = packets;
            scenario.queues.uncounted_packets = 0;
        });
        let [head, device] = [head, device].map(|scenario| run(&policy.to_string(), &scenario, &setup.trace));
        prop_assert_eq!(finishes(&head), finishes(&device));
        prop_assert_eq!(head.summary.max_occupancy_bytes, device.summary.max_occupancy_bytes);
        prop_assert_eq!(head.summary.drops, device.summary.drops);
        prop_assert_eq!(head.summary.marks, device.summary.marks);
    }
}
