use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::engine::packet::PacketKind;
use crate::network::{IsolatedFlow, LeafSpine, OneSwitch};
use crate::scenario::{RangeU32, Recovery};
use crate::switch::{Loss, PolicySpec};
use crate::traffic::FlowSpec;
use crate::transport::testing::ConstantRate;

fn flow(id: u64, src: u32, dst: u32, start_ns: u64, size: u64) -> FlowSpec {
    FlowSpec {
        id,
        src,
        dst,
        start: Instant::from_ns(start_ns),
        size,
        kind: 0,
        query: -1,
        priority: 0,
    }
}

fn trace(flows: Vec<FlowSpec>) -> Trace {
    Trace {
        flows,
        kinds: vec!["flow".to_owned()],
        seed: 0,
    }
}

fn simulator(scenario: &Scenario, policy: &str, trace: &Trace) -> Simulator {
    policy
        .parse::<PolicySpec>()
        .unwrap()
        .simulator::<OneSwitch>(scenario, trace)
        .unwrap()
}

/// ns-3's settings for the reference results.
fn reference_scenario() -> Scenario {
    Scenario::default().with(|scenario| {
        scenario.packets.mss = 1448;
        scenario.packets.header_bytes = 54;
        scenario.packets.ack_bytes = 54;
        scenario.packets.syn_bytes = 58;
        scenario.tcp.handshake = true;
        scenario.host.queue = HostQueue::Fifo;
        scenario.queues.count_in_service = false;
        scenario.tcp.max_cwnd_bytes = 130_320;
        scenario.tcp.min_rto_us = 10_000;
        scenario.tcp.syn_timeout_us = Some(10_000);
        scenario.tcp.recovery = Recovery::Ns3;
    })
}

/// ns-3 3.37's flow completion times of isolated NewReno flows, nanoseconds.
#[test]
fn isolated_flows_agree_with_ns3_to_the_nanosecond() {
    let scenario = reference_scenario();
    let isolated = IsolatedFlow::new(&scenario);
    let reference = include_str!("../../../tests/suite/fidelity/data/fct_isolated_newreno.csv");
    let mut checked = 0;
    for line in reference.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let size: u64 = fields[4].parse().unwrap();
        let expected: u64 = fields[9].parse().unwrap();
        let trace = trace(vec![flow(0, 0, 1, 10_000_000, size)]);
        let outcome = simulator(&scenario, "dt", &trace).run();
        assert_eq!(
            outcome.records[0].fct.map(Duration::as_ns),
            Some(expected),
            "{size} B"
        );
        assert_eq!(
            isolated.completion(size).as_ns(),
            expected,
            "{size} B, by arithmetic"
        );
        checked += 1;
    }
    assert!(checked >= 5);
}

#[test]
fn the_arithmetic_of_isolated_flows_agrees_with_the_simulation() {
    for (propagation_ns, cap, init_cwnd) in [
        (10_000, 0, 10),
        (200_000, 0, 2),
        (200_000, 60_000, 10),
        (500_000, 14_600, 1),
    ] {
        let scenario = Scenario::default().with(|scenario| {
            scenario.network.propagation_ns = propagation_ns;
            scenario.tcp.max_cwnd_bytes = cap;
            scenario.tcp.init_cwnd = init_cwnd;
        });
        let isolated = IsolatedFlow::new(&scenario);
        for size in [1, 1460, 1461, 20_000, 146_000, 1_000_001, 5_000_000] {
            let trace = trace(vec![flow(0, 3, 7, 0, size)]);
            let outcome = simulator(&scenario, "unlimited", &trace).run();
            assert_eq!(
                outcome.records[0].fct,
                Some(isolated.completion(size)),
                "{size} B, {propagation_ns} ns, cap {cap}, initial window {init_cwnd}"
            );
            assert_eq!(outcome.records[0].slowdown, Some(1.0));
        }
    }
}

/// Builds a trace that saturates `n` ports: enough senders for each port, and each sender offers
/// one full window at once.
fn saturate(n: u32, segments: u32, scenario: &mut Scenario) -> Trace {
    scenario.tcp.init_cwnd = segments;
    let per_port = (scenario.network.ports - n) / n;
    let mut flows = Vec::new();
    for port in 0..n {
        for sender in 0..per_port {
            let src = n + port * per_port + sender;
            let size = u64::from(segments * scenario.packets.mss);
            // Staggered over a packet time, so that arrivals of the ports interleave.
            let start = (u64::from(sender) * u64::from(n) + u64::from(port)) * 12_144
                / u64::from(per_port * n);
            flows.push(flow(flows.len() as u64, src, port, start, size));
        }
    }
    trace(flows)
}

/// Mean length of each of `n` saturated queues, bytes.
fn saturated_queues(policy: &str, n: u32) -> (Vec<f64>, Scenario) {
    let mut scenario = Scenario::default().with(|scenario| {
        scenario.network.ports = 64;
    });
    scenario.traffic.incast_degree = RangeU32::new(1, 15);
    let trace = saturate(n, 2_000, &mut scenario);
    let mut simulator = simulator(&scenario, policy, &trace);
    // The first packet is lost after some 100 µs; the SACK that tells its sender waits behind a
    // queue of at least 100 kB, 0.8 ms.
    let (mut sums, mut samples) = (vec![0.0; n as usize], 0.0);
    while simulator.step() && simulator.now() < Instant::from_us(500) {
        if simulator.now() > Instant::from_us(300) {
            samples += 1.0;
            for (port, sum) in sums.iter_mut().enumerate() {
                *sum += simulator.buffer().queue(port) as f64;
            }
        }
    }
    (
        sums.into_iter().map(|sum| sum / samples).collect(),
        scenario,
    )
}

/// Choudhury and Hahne 1998: n saturated queues settle at αB/(1 + nα) each.
#[test]
fn dynamic_threshold_reaches_its_steady_state_within_a_packet() {
    for (alpha, n) in [
        (0.5, 1),
        (1.0, 1),
        (2.0, 1),
        (1.0, 2),
        (4.0, 2),
        (0.25, 4),
        (1.0, 8),
    ] {
        let (queues, scenario) = saturated_queues(&format!("dt:alpha={alpha}"), n);
        let buffer = scenario.network.buffer_bytes as f64;
        let expected = alpha * buffer / (1.0 + f64::from(n) * alpha);
        let packet = scenario.full_packet_bytes() as f64;
        for queue in queues {
            let off = (queue - expected).abs();
            assert!(off <= packet, "α {alpha}, n {n}: {queue} B, {expected} B");
        }
    }
}

#[test]
fn static_threshold_fills_its_share_in_whole_packets() {
    let mut scenario = Scenario::default().with(|scenario| {
        scenario.network.ports = 64;
    });
    let trace = saturate(2, 2_000, &mut scenario);
    let mut simulator = simulator(&scenario, "st", &trace);
    let mut largest = [0; 2];
    while simulator.step() && simulator.now() < Instant::from_us(500) {
        for (port, queue) in largest.iter_mut().enumerate() {
            *queue = simulator.buffer().queue(port).max(*queue);
        }
    }
    let packet = scenario.full_packet_bytes();
    let share = scenario.network.buffer_bytes / u64::from(scenario.network.ports);
    assert_eq!(largest, [share / packet * packet; 2]);
}

#[test]
fn complete_sharing_fills_the_buffer_to_within_a_packet() {
    let mut scenario = Scenario::default().with(|scenario| {
        scenario.network.ports = 64;
    });
    let trace = saturate(2, 2_000, &mut scenario);
    let outcome = simulator(&scenario, "cs", &trace).run();
    let packet = scenario.full_packet_bytes();
    assert!(outcome.summary.max_occupancy_bytes > scenario.network.buffer_bytes - packet);
    assert!(outcome.summary.max_occupancy_bytes <= scenario.network.buffer_bytes);
    assert!(outcome.summary.drops > 0);
}

#[test]
fn a_flow_completes_although_its_last_packets_are_lost() {
    // Ten senders with ten packets each into a buffer of eight packets.
    let scenario = Scenario::default().with(|scenario| {
        scenario.network.buffer_bytes = 12_000;
    });
    let flows = (0..10)
        .map(|i| flow(u64::from(i), i + 1, 0, 0, 14_600))
        .collect();
    let outcome = simulator(&scenario, "cs", &trace(flows)).run();
    assert_eq!(outcome.summary.completed, 10);
    assert!(outcome.summary.timeouts > 0);
    assert!(outcome.summary.simulated_s > 0.2);
}

/// A full segment takes 12.144 µs. All three reach the switch together, so they wait 0, 1 and 2 of
/// these; their acknowledgements do not wait.
#[test]
fn delay_and_goodput_of_three_segments() {
    let scenario = Scenario::default();
    let flows = (0..3)
        .map(|i| flow(u64::from(i), i + 1, 0, 500, 1_460))
        .collect();
    let mut simulator = simulator(&scenario, "cs", &trace(flows));
    simulator.measure_waits();
    let summary = simulator.run().summary;
    let wait = summary.p99_queueing_delay_us;
    assert!((wait / 24.288 - 1.0).abs() < 0.004, "{wait}");
    let makespan_s = 4.0 * 12.144e-6 + 2.0 * 10e-6;
    let expected = 8.0 * 3.0 * 1_460.0 / makespan_s;
    let goodput = summary.goodput_bps;
    assert!((goodput / expected - 1.0).abs() < 1e-9, "{goodput}");
    assert_eq!(summary.loss_per_delivered, 0.0);
}

#[test]
fn losses_count_for_each_delivered_segment() {
    let scenario = Scenario::default().with(|scenario| {
        scenario.network.buffer_bytes = 2 * 1_518;
    });
    let flows = (0..3)
        .map(|i| flow(u64::from(i), i + 1, 0, 0, 1_460))
        .collect();
    let mut simulator = simulator(&scenario, "cs", &trace(flows));
    simulator.measure_waits();
    while simulator.hosts.counters().delivered < 2 {
        simulator.step();
    }
    let early = simulator.outcome().summary;
    assert_eq!((early.completed, early.loss_per_delivered), (2, 0.5));
    let summary = simulator.run().summary;
    assert_eq!((summary.drops_data, summary.completed), (1, 3));
    assert_eq!(summary.loss_per_delivered, 1.0 / 3.0);
    let wait = summary.p99_queueing_delay_us;
    assert!((wait / 12.144 - 1.0).abs() < 0.004, "{wait}");
}

#[test]
fn simultaneous_flows_start_in_the_order_of_the_trace() {
    let scenario = Scenario::default().with(|scenario| {
        scenario.host.queue = HostQueue::Fifo;
    });
    let flows = vec![
        flow(7, 0, 1, 500, 1460),
        flow(3, 0, 2, 500, 1460),
        flow(5, 0, 3, 0, 1460),
    ];
    let outcome = simulator(&scenario, "cs", &trace(flows)).run();
    let finish: Vec<_> = outcome.records.iter().map(|record| record.finish).collect();
    assert!(finish[2] < finish[0] && finish[0] < finish[1]);
}

#[test]
fn a_flow_to_a_port_that_does_not_exist_is_refused() {
    let trace = trace(vec![flow(0, 0, 16, 0, 1)]);
    let spec = PolicySpec::baseline();
    assert!(matches!(
        spec.simulator::<OneSwitch>(&Scenario::default(), &trace),
        Err(SimError::Trace(_))
    ));
}

#[test]
fn a_clone_goes_on_in_the_same_way() {
    let scenario = Scenario::default();
    let trace = crate::traffic::generate(&scenario, 3);
    let mut original = simulator(&scenario, "edt", &trace);
    for _ in 0..50_000 {
        original.step();
    }
    let mut fork = original.clone();
    let (a, b) = (original.run(), fork.run());
    let fcts = |outcome: &crate::network::Outcome| -> Vec<_> {
        outcome.records.iter().map(|record| record.fct).collect()
    };
    assert_eq!(fcts(&a), fcts(&b));
    assert_eq!(a.summary.drops, b.summary.drops);
}

fn random_trace() -> impl Strategy<Value = (u32, Trace)> {
    (3u32..9).prop_flat_map(|ports| {
        let one = (0..ports, 1..ports, 0u64..3_000_000, 1u64..300_000);
        (Just(ports), prop::collection::vec(one, 1..40)).prop_map(|(ports, flows)| {
            let flows = flows
                .into_iter()
                .enumerate()
                .map(|(i, (src, hop, start, size))| {
                    flow(i as u64, src, (src + hop) % ports, start, size)
                })
                .collect();
            (ports, trace(flows))
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Byte accounting and conservation of packets hold after every event, whatever the traffic,
    /// the buffer, the hosts and the policy; every flow completes; nothing is faster than alone.
    #[test]
    fn invariants_hold_after_every_event(
        (ports, trace) in random_trace(),
        policy in prop::sample::select(vec!["cs", "st", "dt", "dt:alpha=0.25", "dt:alpha=16", "edt", "unlimited"]),
        buffer_bytes in 20_000u64..200_000,
        fifo in any::<bool>(),
        handshake in any::<bool>(),
        count_in_service in any::<bool>(),
        sack in any::<bool>(),
    ) {
        let scenario = Scenario::default().with(|scenario| {
            scenario.network.ports = ports;
            scenario.network.buffer_bytes = buffer_bytes;
            scenario.tcp.handshake = handshake;
            scenario.queues.count_in_service = count_in_service;
            scenario.tcp.sack = sack;
            scenario.host.queue = if fifo { HostQueue::Fifo } else { HostQueue::Fair };
            scenario.traffic.active_ports = RangeU32::new(1, ports);
            scenario.traffic.incast_degree = RangeU32::new(1, ports - 1);
        });
        let mut simulator = simulator(&scenario, policy, &trace);
        let mut last = Instant::ZERO;
        while !simulator.finished() {
            prop_assert!(simulator.step(), "stuck at {}", simulator.now());
            prop_assert!(simulator.now() >= last);
            last = simulator.now();
            let checked = simulator.check_invariants();
            prop_assert!(checked.is_ok(), "{:?}", checked);
            prop_assert!(simulator.sack_entries_are_balanced());
            prop_assert!(simulator.packets_are_placed_once());
        }
        for record in simulator.outcome().records {
            prop_assert!(record.slowdown.is_some_and(|slowdown| slowdown >= 1.0));
        }
    }
}

/// A sender with a rate spaces its segments: the last one leaves when those before it have had their
/// share of time, and one timer at a time wakes it.
#[test]
fn a_paced_flow_takes_the_time_of_its_rate() {
    let scenario = Scenario::default();
    let (segments, mss) = (50, u64::from(scenario.packets.mss));
    let trace = trace(vec![flow(0, 1, 0, 0, segments * mss)]);
    let policy = PolicySpec::baseline().build(&scenario).unwrap();
    let mut simulator = Simulator::new(&scenario, &trace, policy)
        .unwrap()
        .with_transport(&scenario, ConstantRate::default());
    let outcome = simulator.run();
    let gap = ConstantRate::RATE.transmission_time(scenario.full_packet_bytes());
    let packet = scenario
        .rate()
        .transmission_time(scenario.full_packet_bytes());
    let last = gap * (segments - 1) + packet * 2 + scenario.propagation() * 2;
    assert_eq!(outcome.records[0].fct, Some(last));
    assert_eq!(outcome.summary.timeouts, 0);
}

/// Complete sharing drops where the buffer has no room, static thresholds where the port has none.
#[test]
fn recorded_drops_show_the_buffer_at_the_loss() {
    let scenario = Scenario::default().with(|scenario| {
        scenario.network.buffer_bytes = 100_000;
    });
    let flows = (0..8).map(|src| flow(src, src as u32, 9, 0, 200_000));
    let trace = trace(flows.collect());
    let packet = scenario.full_packet_bytes();
    for (policy, limit, loss) in [
        ("cs", scenario.network.buffer_bytes, Loss::Full),
        ("st", scenario.network.buffer_bytes / 16, Loss::Refused),
    ] {
        let mut simulator = simulator(&scenario, policy, &trace);
        simulator.record_drops();
        let outcome = simulator.run();
        assert_eq!(outcome.drops.len() as u64, outcome.summary.drops);
        assert!(outcome.drops.len() > 10, "{policy}");
        assert!(outcome.drops.is_sorted_by_key(|row| row.t));
        for row in outcome.drops.iter().filter(|row| row.port == 9) {
            assert_eq!(row.loss, loss, "{policy}");
            let full = match loss {
                Loss::Full => row.occupancy_bytes,
                _ => row.queue_bytes,
            };
            assert!(full <= limit && full + packet > limit, "{policy} {row:?}");
        }
    }
}

/// Two packets of 1,454 B cross four links of 10 Gbit/s and 10 µs. An acknowledgement brings the
/// records of three switches, and those of three more if switches stamp acknowledgements too.
#[test]
fn acknowledgements_bring_the_records_of_every_hop() {
    for on_acks in [false, true] {
        let mut scenario = Scenario::preset("leafspine-4x4").unwrap();
        for setting in ["transport=powertcp", "demand=ports", "handshake=false"] {
            scenario.set(setting).unwrap();
        }
        scenario.telemetry.on_acks = on_acks;
        let trace = trace(vec![flow(0, 0, 5, 0, 2_800)]);
        let mut simulator = PolicySpec::baseline()
            .simulator::<LeafSpine>(&scenario, &trace)
            .unwrap();
        let mut paths = BTreeMap::new();
        while simulator.step() {
            let packets = &simulator.engine.packets;
            for PacketEvent { packet, .. } in simulator.engine.events.arriving() {
                if packets[packet].kind == PacketKind::Ack {
                    let path = packets.records.get(packets.records.of(packet));
                    paths.insert(packets[packet].sequence, *path);
                }
            }
        }
        assert_eq!(simulator.engine.packets.records.live(), 0);
        let (data, ack, link) = (1_163_200, 43_200, 10_000_000);
        for (sequence, sent_before) in [(1, 0), (2, 1)] {
            let forward = (1..=3).map(|hop| (hop * (data + link) + sent_before * data, 1_454));
            let answered = 4 * (data + link) + sent_before * data;
            let reverse = (1..=3).map(|hop| (answered + hop * (ack + link), 54));
            let expected = forward.chain(reverse.filter(|_| on_acks));
            let expected: Vec<_> = expected
                .map(|(at, bytes)| (Instant(at), 0, sent_before * bytes, 10_000_000_000))
                .collect();
            let found: Vec<_> = paths[&sequence]
                .hops()
                .iter()
                .map(|hop| (hop.at, hop.queue_bytes, hop.sent_bytes, hop.rate.0))
                .collect();
            assert_eq!(found, expected, "{sequence}");
        }
    }
}
