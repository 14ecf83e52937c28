//! RDMA in whole simulations: manually computed times, losses, and mixtures with TCP.

use bufgym_sim::network::{FabricSimulator, FlowRecord, LeafSpine, Outcome, Simulator};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::{PacketView, Policy, PolicySpec, Verdict, View};
use bufgym_sim::traffic::{FlowSpec, Trace, generate};
use bufgym_sim::units::{Duration, Instant};
use proptest::prelude::*;

use crate::behaviour::setup::cases;

const KINDS: [&str; 3] = ["dcqcn", "dcqcn:preset=reverie", "powertcp-rdma"];

/// Two leaves with four hosts each, two spines, 25 Gbit/s and 2 µs everywhere.
fn scenario(changes: &[&str]) -> Scenario {
    let base = [
        "topology=leafspine",
        "leaves=2",
        "hosts_per_leaf=4",
        "spines=2",
        "incast_degree=1..7",
        "active_ports=1..8",
        "rate_bps=25e9",
        "propagation_ns=2000",
        "base_rtt_ns=17280",
        "slowdown_base=reverie",
        "buffer_bytes=2e6",
        "mss=1000",
        "min_rto_us=1000",
    ];
    let mut scenario = Scenario::default();
    for change in base.iter().chain(changes) {
        scenario.set(change).unwrap();
    }
    scenario.validate().unwrap();
    scenario
}

fn flow(src: u32, dst: u32, size: u64, query: i64) -> FlowSpec {
    FlowSpec {
        id: 0,
        src,
        dst,
        start: Instant::ZERO,
        size,
        kind: 0,
        query,
        priority: 0,
    }
}

fn trace(mut flows: Vec<FlowSpec>) -> Trace {
    for (id, flow) in (0..).zip(&mut flows) {
        flow.id = id;
    }
    Trace {
        flows,
        ..Trace::default()
    }
}

fn fabric(policy: &str, scenario: &Scenario, trace: &Trace) -> FabricSimulator {
    let policy: PolicySpec = policy.parse().unwrap();
    policy.simulator::<LeafSpine>(scenario, trace).unwrap()
}

fn run(policy: &str, scenario: &Scenario, trace: &Trace) -> Outcome {
    fabric(policy, scenario, trace).run()
}

/// Runs a flow of 125,000 B alone, to another leaf.
fn alone(changes: &[&str]) -> FlowRecord {
    let scenario = scenario(changes);
    let outcome = run("dt", &scenario, &trace(vec![flow(0, 4, 125_000, -1)]));
    assert_eq!(outcome.summary.timeouts, 0);
    outcome.records[0]
}

/// 125 packets of 1,048 B, 335.36 ns each, cross four links: 128 transmissions and 8 µs. The last
/// acknowledgement needs four times 19.2 ns and 8 µs more.
#[test]
fn an_rdma_flow_in_an_idle_network_takes_so_long() {
    for kind in ["dcqcn", "dcqcn:preset=reverie"] {
        let transport = format!("transport={kind}");
        let record = alone(&[&transport, "fct=receiver"]);
        assert_eq!(record.fct, Some(Duration(50_926_080)), "last byte, {kind}");
        let record = alone(&[&transport]);
        assert_eq!(record.fct, Some(Duration(59_002_880)), "last ACK, {kind}");
        assert_eq!(record.base, Some(Duration(59_200_000)), "{kind}");
        let slowdown = record.slowdown.unwrap();
        assert!((slowdown - 0.99667).abs() < 5e-6, "{slowdown}");
    }
}

/// Neither a handshake nor the settings of TCP change an RDMA flow.
#[test]
fn an_rdma_flow_needs_no_handshake() {
    let record = alone(&[
        "transport=dcqcn",
        "handshake=true",
        "timestamps=true",
        "init_cwnd=1",
        "recovery=rack",
        "delayed_ack=2",
        "max_cwnd_bytes=2000",
    ]);
    assert_eq!(record.fct, Some(Duration(59_002_880)));
}

#[test]
fn the_base_of_a_tcp_flow_counts_no_headers() {
    let record = alone(&["transport=cubic"]);
    assert_eq!(record.base, Some(Duration(57_280_000)));
    let derived = alone(&["transport=cubic", "base_rtt_ns=0"]);
    assert_eq!(derived.base, record.base);
}

/// With telemetry, packets have 1,090 B and acknowledgements 88 B: 348.8 and 28.16 ns.
#[test]
fn telemetry_of_rdma_has_a_fixed_size() {
    let record = alone(&["transport=powertcp-rdma", "fct=receiver"]);
    let fct = record.fct.unwrap();
    // The window of 54 packets is open for longer than a round trip of 17.5 µs, nearly.
    assert!(fct >= Duration(128 * 348_800 + 8_000_000), "{fct}");
    assert!(fct.as_secs_f64() < 1.1 * 52.65e-6, "{fct}");
    let one = |changes: &[&str]| {
        let scenario = scenario(&[&["transport=powertcp-rdma"], changes].concat());
        let outcome = run("dt", &scenario, &trace(vec![flow(0, 4, 1_000, -1)]));
        outcome.records[0].fct.unwrap()
    };
    assert_eq!(one(&["fct=receiver"]), Duration(4 * 348_800 + 8_000_000));
    assert_eq!(one(&[]), Duration(4 * (348_800 + 28_160) + 16_000_000));
}

/// Two flows of one host share its line packet by packet: each waits for the other's packet, not for
/// the other's rate.
#[test]
fn flows_of_a_host_take_turns() {
    let scenario = scenario(&["transport=dcqcn:preset=reverie", "fct=receiver"]);
    let flows = vec![flow(0, 4, 100_000, -1), flow(0, 5, 100_000, -1)];
    let outcome = run("dt", &scenario, &trace(flows));
    let fcts: Vec<Duration> = outcome.records.iter().map(|r| r.fct.unwrap()).collect();
    // 199 and 200 packets leave the host, and three more transmissions follow.
    let at = |packets: u64| Duration(335_360 * packets + 8_000_000);
    assert_eq!(fcts, [at(199 + 3), at(200 + 3)]);
}

/// Three hosts send to one through a queue that marks; no packet is lost.
#[test]
fn marks_slow_senders_down() {
    for kind in &KINDS[..2] {
        let scenario = scenario(&[
            &format!("transport={kind}"),
            "marking=red",
            "ecn_red_kmin_bytes=100000",
            "ecn_red_kmax_bytes=400000",
            "ecn_red_pmax=0.2",
        ]);
        let flows = (0..3).map(|src| flow(src, 4, 3_000_000, -1)).collect();
        let outcome = run("cs", &scenario, &trace(flows));
        let summary = &outcome.summary;
        assert_eq!((summary.completed, summary.drops), (3, 0), "{kind}");
        assert!(summary.marks > 0 && summary.timeouts == 0, "{kind}");
        // Without control two of three packets would wait: 6 MB.
        assert!(summary.max_occupancy_bytes < 1_000_000, "{kind}");
    }
}

/// The windows limit the bytes that wait.
#[test]
fn powertcp_for_rdma_keeps_queues_short() {
    let scenario = scenario(&["transport=powertcp-rdma"]);
    let flows = (0..3).map(|src| flow(src, 4, 3_000_000, -1)).collect();
    let outcome = run("cs", &scenario, &trace(flows));
    let summary = &outcome.summary;
    assert_eq!((summary.completed, summary.drops), (3, 0));
    assert!(summary.max_occupancy_bytes < 3 * 54_000 + 3 * 1_090);
    let last = outcome
        .records
        .iter()
        .map(|r| r.fct.unwrap())
        .max()
        .unwrap();
    let at_line_rate = 9_000.0 * 1_090.0 * 8.0 / 25e9;
    assert!(last.as_secs_f64() < 1.2 * at_line_rate, "{last}");
}

/// A buffer that holds a few packets: many are lost, and every flow completes, with both rule sets and
/// both ends of a flow.
#[test]
fn rdma_completes_every_flow_under_drops() {
    for kind in KINDS {
        for rules in ["paper", "ns3"] {
            for fct in ["last_ack", "receiver"] {
                let scenario = scenario(&[
                    &format!("transport={kind}"),
                    &format!("rules={rules}"),
                    &format!("fct={fct}"),
                    "buffer_bytes=6000",
                    "max_simulated_ms=5000",
                ]);
                let flows = (0..7).map(|src| flow(src, 7, 60_500, -1)).collect();
                let mut simulator = fabric("dt", &scenario, &trace(flows));
                let summary = simulator.run().summary;
                let case = format!("{kind} {rules} {fct}: {summary:?}");
                assert_eq!(summary.completed, 7, "{case}");
                assert!(summary.drops > 100, "{case}");
                assert!(simulator.records_are_balanced(), "{case}");
                assert!(simulator.packets_are_placed_once(), "{case}");
            }
        }
    }
}

#[test]
fn a_fork_with_rdma_goes_on_like_it() {
    for kind in KINDS {
        let scenario = scenario(&[
            &format!("transport={kind}"),
            "marking=red",
            "ecn_red_kmin_bytes=5000",
            "ecn_red_kmax_bytes=20000",
            "ecn_red_pmax=0.5",
            "buffer_bytes=100000",
        ]);
        let flows: Vec<FlowSpec> = (0..7).map(|src| flow(src, 7, 400_000, -1)).collect();
        let flows = trace(flows);
        let whole = run("dt", &scenario, &flows);
        assert!(whole.summary.drops > 0, "{kind}: {:?}", whole.summary);
        let mut simulator = fabric("dt", &scenario, &flows);
        for _ in 0..20_000 {
            simulator.step();
        }
        let mut fork = simulator.clone();
        let finishes = |outcome: Outcome| -> Vec<_> {
            outcome
                .records
                .iter()
                .map(|r| (r.finish, r.timeouts))
                .collect()
        };
        let expected = finishes(whole);
        assert_eq!(expected, finishes(simulator.run()), "{kind}");
        assert_eq!(expected, finishes(fork.run()), "{kind}");
    }
}

/// TCP and RDMA share one network, each as the in-cast of the other; answers of TCP have their whole
/// window at once.
#[test]
fn each_can_be_the_in_cast_of_the_other() {
    for (transport, in_cast) in [
        ("cubic", "dcqcn:preset=reverie"),
        ("powertcp-rdma", "cubic"),
        ("dcqcn", "dctcp"),
    ] {
        let scenario = scenario(&[
            &format!("transport={transport}"),
            &format!("incast_transport={in_cast}"),
            "preconnected=true",
            "handshake=true",
            "demand=other_leaf",
            "load=0.4",
            "query_rate=500",
            "query_share=0.2",
            "query_fanin=4",
            "measure_ms=5",
            "queues_per_port=2",
            "flow_priority=fixed",
            "background_priority=0",
            "incast_priority=1",
            "workload=fb_hadoop",
        ]);
        let trace = generate(&scenario, 3);
        assert!(trace.flows.iter().any(|flow| flow.query >= 0));
        let outcome = run("dt", &scenario, &trace);
        let summary = &outcome.summary;
        assert_eq!(summary.completed, summary.flows, "{transport} {in_cast}");
        for record in &outcome.records {
            let of_query = record.spec.query >= 0;
            assert_eq!(record.spec.priority, u8::from(of_query));
            let is_rdma = scenario.transport_of(of_query, false).is_rdma();
            let bytes = record.spec.size;
            let headers = if is_rdma {
                48 * bytes.div_ceil(1_000)
            } else {
                0
            };
            let base = 17_280_000 + 320 * (bytes + headers);
            assert_eq!(record.base, Some(Duration(base)), "{transport} {in_cast}");
        }
    }
}

/// A connected flow of TCP sends its 100 segments in a row at once.
#[test]
fn connected_answers_of_tcp_do_not_wait_for_a_window() {
    let scenario = scenario(&[
        "transport=dcqcn",
        "incast_transport=cubic",
        "preconnected=true",
        "handshake=true",
    ]);
    let outcome = run("dt", &scenario, &trace(vec![flow(0, 4, 100_000, 0)]));
    // 1,058 B, 338.56 ns.
    let expected = Duration(103 * 338_560 + 8_000_000);
    assert_eq!(outcome.records[0].fct, Some(expected));
}

/// A policy that loses data packets by the order of their arrival, and acknowledgements by theirs.
#[derive(Clone)]
struct Losing {
    arrived: [u64; 2],
    lost: [Vec<u64>; 2],
}

impl Policy for Losing {
    fn on_arrival(&mut self, _view: View<'_>, packet: PacketView) -> Verdict {
        let kind = usize::from(packet.bytes == 60);
        self.arrived[kind] += 1;
        match self.lost[kind].contains(&(self.arrived[kind] - 1)) {
            true => Verdict::Drop,
            false => Verdict::Accept,
        }
    }

    fn threshold(&self, _view: View<'_>, _port: usize) -> Option<u64> {
        None
    }
}

/// Runs a flow of ten packets through one switch: 25 Gbit/s, 2 µs. Packet i reaches the switch
/// `(i + 1) · 335.36 + 2,000` ns after the start.
fn ten_packets(changes: &[&str], data: &[u64], acks: &[u64]) -> (Outcome, Duration) {
    let mut scenario = Scenario::default();
    let base = [
        "rate_bps=25e9",
        "propagation_ns=2000",
        "mss=1000",
        "transport=dcqcn:preset=reverie",
    ];
    for change in base.iter().chain(changes) {
        scenario.set(change).unwrap();
    }
    let policy = Losing {
        arrived: [0; 2],
        lost: [data.to_vec(), acks.to_vec()],
    };
    let trace = trace(vec![flow(0, 1, 10_000, -1)]);
    let outcome = Simulator::new(&scenario, &trace, policy).unwrap().run();
    assert_eq!(outcome.summary.drops, (data.len() + acks.len()) as u64);
    let fct = outcome.records[0].fct.unwrap();
    (outcome, fct)
}

const FULL: u64 = 335_360;
const ACK: u64 = 19_200;
const LINK: u64 = 2_000_000;
/// Time from the start of a packet to its arrival at the receiver, and likewise for an acknowledgement.
const THERE: u64 = 2 * (FULL + LINK);
const BACK: u64 = 2 * (ACK + LINK);

#[test]
fn ten_packets_and_the_last_acknowledgement() {
    let (outcome, fct) = ten_packets(&[], &[], &[]);
    assert_eq!(fct, Duration(9 * FULL + THERE + BACK));
    assert_eq!(outcome.summary.spurious_retransmissions, 0);
}

/// Packet 3 is lost. Packet 4 makes the receiver request it. The host has sent all ten by then, and
/// sends seven again. Six of these arrived out of order the first time and were discarded: none is a
/// duplicate.
#[test]
fn a_lost_packet_is_asked_for_at_once() {
    let (outcome, fct) = ten_packets(&[], &[3], &[]);
    let asked = 4 * FULL + THERE + BACK;
    assert_eq!(fct, Duration(asked + 6 * FULL + THERE + BACK));
    assert_eq!(outcome.summary.timeouts, 0);
    assert_eq!(outcome.summary.spurious_retransmissions, 0);
}

/// The request is lost too (the fourth packet of that size). The next packets out of order come within
/// 500 µs, so that the sender's timer expires, 500 µs after the last progress: the third
/// acknowledgement.
#[test]
fn a_lost_request_leaves_it_to_the_timer() {
    let (outcome, fct) = ten_packets(&[], &[3], &[3]);
    let news = 2 * FULL + THERE + BACK;
    let again = news + 500_000_000;
    assert_eq!(fct, Duration(again + 6 * FULL + THERE + BACK));
    assert_eq!(outcome.summary.timeouts, 1);
    assert_eq!(outcome.records[0].timeouts, 1);
}

/// No packet follows a lost tail.
#[test]
fn a_lost_tail_leaves_it_to_the_timer() {
    let (outcome, fct) = ten_packets(&["rdma_rto_us=100"], &[8, 9], &[]);
    let again = 7 * FULL + THERE + BACK + 100_000_000;
    assert_eq!(fct, Duration(again + FULL + THERE + BACK));
    assert_eq!(outcome.summary.timeouts, 1);
}

/// The last acknowledgement is lost: the last packet comes twice and is answered, even under rules that
/// do not answer other duplicates.
#[test]
fn a_lost_last_acknowledgement_is_repeated() {
    for rules in ["paper", "ns3"] {
        let (outcome, fct) = ten_packets(&[&format!("rules={rules}")], &[], &[9]);
        let again = 8 * FULL + THERE + BACK + 500_000_000;
        assert_eq!(fct, Duration(again + THERE + BACK), "{rules}");
        assert_eq!(outcome.summary.timeouts, 1);
        assert_eq!(outcome.summary.spurious_retransmissions, 1);
    }
    let (_, fct) = ten_packets(&["fct=receiver"], &[], &[]);
    assert_eq!(fct, Duration(9 * FULL + THERE));
}

/// The retransmission of packet 3 is lost too. The receiver has already requested it within 500 µs, so
/// the timer expires.
#[test]
fn a_packet_lost_twice_is_asked_for_once() {
    let (outcome, fct) = ten_packets(&[], &[3, 10], &[]);
    // The request is the last progress.
    let asked = 4 * FULL + THERE + BACK;
    let again = asked + 500_000_000;
    assert_eq!(fct, Duration(again + 6 * FULL + THERE + BACK));
    assert_eq!(outcome.summary.timeouts, 1);
}

fn any_rdma() -> impl Strategy<Value = (Scenario, Trace)> {
    let network = (
        prop::sample::select(KINDS.to_vec()),
        prop::sample::select(vec!["paper", "ns3"]),
        prop::sample::select(vec!["last_ack", "receiver"]),
        prop::sample::select(vec![6_000_u64, 20_000, 100_000, 1_000_000]),
        prop::sample::select(vec![0_u64, 10, 5_000, 20_000]),
        any::<[bool; 4]>(),
    );
    let flows = prop::collection::vec(
        (
            0_u32..8,
            1_u32..8,
            1_u64..100_000,
            0_u64..100,
            any::<bool>(),
        ),
        1..20,
    );
    (network, flows).prop_map(|((kind, rules, fct, buffer, kmin, flags), flows)| {
        let [in_service, mixed, late, control] = flags;
        let scenario = scenario(&[
            &format!("transport={kind}"),
            &format!("incast_transport={}", if mixed { "cubic" } else { "same" }),
            &format!("rules={rules}"),
            &format!("fct={fct}"),
            &format!("buffer_bytes={buffer}"),
            &format!("count_in_service={in_service}"),
            &format!("late_binding={late}"),
            &format!("ack_priority={}", if control { "control" } else { "data" }),
            "marking=red",
            &format!("ecn_red_kmin_bytes={kmin}"),
            &format!("ecn_red_kmax_bytes={}", 4 * kmin + 1),
            "ecn_red_pmax=0.5",
        ]);
        let flows = flows
            .into_iter()
            .map(|(src, step, size, at, query)| FlowSpec {
                start: Instant::from_us(at),
                ..flow(src, (src + step) % 8, size, if query { 1 } else { -1 })
            });
        (scenario, trace(flows.collect()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(60)))]

    /// Every flow completes, no packet is in two places, and a second run is the same, whatever is lost
    /// or marked.
    #[test]
    fn every_rdma_flow_completes_and_packets_are_conserved((scenario, trace) in any_rdma()) {
        let mut simulator = fabric("dt", &scenario, &trace);
        let mut events = 0_u64;
        while !simulator.finished() && simulator.step() {
            events += 1;
            prop_assert!(events < 5_000_000, "still busy at {}", simulator.now());
            if events.is_multiple_of(64) {
                prop_assert_eq!(simulator.check_invariants(), Ok(()));
                prop_assert!(simulator.packets_are_placed_once());
                prop_assert!(simulator.records_are_balanced());
            }
        }
        prop_assert!(simulator.finished());
        let again = run("dt", &scenario, &trace);
        let finishes = |outcome: &Outcome| -> Vec<_> {
            outcome.records.iter().map(|record| record.finish).collect()
        };
        prop_assert_eq!(finishes(&again), finishes(&simulator.outcome()));
    }
}
