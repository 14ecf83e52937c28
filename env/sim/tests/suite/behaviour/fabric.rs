//! Networks of several switches.

use bufgym_sim::network::{
    FabricSimulator, LeafSpine, Outcome, Simulator, StopReason, SwitchId, Topology as _,
};
use bufgym_sim::scenario::{
    Ecmp, EcmpSalt, RangeU32, Recovery, Scenario, SlowdownBase, TopologyKind, TransportKind,
};
use bufgym_sim::switch::policy::ControlledThreshold;
use bufgym_sim::switch::policy::ndt::TriggerMode;
use bufgym_sim::switch::{PacketView, Policy, Verdict, View};
use bufgym_sim::traffic::{FlowSpec, Trace};
use bufgym_sim::units::{Duration, Instant};
use bufgym_util::rng::{below, stream};
use proptest::prelude::*;

use crate::behaviour::setup::{EVENTS_PER_CHECK, MANY_EVENTS, Setup, any_setup, config};

/// Returns a leaf-spine network with the settings of a scenario.
fn in_network(
    scenario: &Scenario,
    leaves: u32,
    hosts_per_leaf: u32,
    spines: u32,
    links_per_pair: u32,
) -> Scenario {
    scenario.clone().with(|scenario| {
        scenario.network.topology = TopologyKind::LeafSpine;
        scenario.network.ports = leaves * hosts_per_leaf;
        scenario.network.leaves = leaves;
        scenario.network.hosts_per_leaf = hosts_per_leaf;
        scenario.network.spines = spines;
        scenario.network.links_per_pair = links_per_pair;
        scenario.traffic.active_ports = RangeU32::new(1, leaves * hosts_per_leaf);
        scenario.traffic.incast_degree = RangeU32::new(1, leaves * hosts_per_leaf - 1);
    })
}

/// Builds a simulation in which every switch has the set-up's policy and buffer.
fn fabric(setup: &Setup) -> FabricSimulator {
    let Setup {
        scenario,
        policy,
        trace,
    } = setup;
    policy
        .simulator::<LeafSpine>(scenario, trace)
        .expect("the set-up is valid")
}

/// Returns all values that must be equal for equal results.
pub(super) fn results(outcome: &Outcome) -> (Vec<Option<Instant>>, [u64; 7], Vec<f64>) {
    let summary = &outcome.summary;
    let finishes = outcome.records.iter().map(|record| record.finish);
    let counts = [
        summary.packets_forwarded,
        summary.drops,
        summary.dropped_bytes,
        summary.pushed_out,
        summary.marks,
        summary.timeouts,
        summary.max_occupancy_bytes,
    ];
    (
        finishes.collect(),
        counts,
        summary.mean_bytes_by_priority.clone(),
    )
}

/// Generates a network and its hosts, the same number at every leaf.
pub(super) fn any_fabric() -> impl Strategy<Value = Setup> {
    let network = (2u32..4, 1u32..4, 1u32..3);
    let routing = (
        prop::sample::select(Ecmp::ALL),
        prop::sample::select(EcmpSalt::ALL),
    );
    let rates = 1u64..5;
    (any_setup(), network, routing, rates).prop_map(
        |(mut setup, (leaves, spines, links_per_pair), (ecmp, ecmp_salt), rate)| {
            let hosts_per_leaf = setup.scenario.network.ports.div_ceil(leaves).max(2);
            setup.scenario = in_network(
                &setup.scenario,
                leaves,
                hosts_per_leaf,
                spines,
                links_per_pair,
            );
            setup.scenario.network.fabric_rate_bps = setup.scenario.network.rate_bps / 2 * rate;
            if setup.scenario.transport.kind.sets_rate() {
                // Without a delay such a network has no round-trip time.
                setup.scenario.network.propagation_ns =
                    setup.scenario.network.propagation_ns.max(1);
            }
            setup.scenario.network.ecmp = ecmp;
            setup.scenario.network.ecmp_salt = ecmp_salt;
            // Static partitions are the smaller, the more ports there are.
            setup.scenario.network.buffer_bytes *= 4 * u64::from(leaves);
            setup
        },
    )
}

/// Returns true if an isolated flow doubles its window each round trip up to its limit, which no flow
/// exceeds.
fn is_fastest_alone(scenario: &Scenario) -> bool {
    let plain = [
        TransportKind::NewReno,
        TransportKind::Dctcp,
        TransportKind::Cubic,
    ];
    plain.contains(&scenario.transport.kind)
        && scenario.tcp.slow_start
        && scenario.tcp.delayed_ack == 1
        && scenario.tcp.recovery != Recovery::Ns3
        && !(scenario.tcp.recovery == Recovery::Rack && scenario.tcp.handshake)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn one_leaf_equals_the_single_switch(setup in any_setup()) {
        let Setup { scenario, policy, trace } = &setup;
        let leaf = in_network(scenario, 1, scenario.network.ports, 0, 1);
        let single = policy.run(scenario, trace).unwrap();
        let leaf = policy.run(&leaf, trace).unwrap();
        prop_assert_eq!(results(&single), results(&leaf));
    }

    #[test]
    fn no_byte_and_no_packet_is_lost_between_switches(setup in any_fabric()) {
        let mut simulator = fabric(&setup);
        let mut last = Instant::ZERO;
        for event in 0..MANY_EVENTS {
            if simulator.finished() || !simulator.step() {
                break;
            }
            prop_assert!(simulator.now() >= last);
            last = simulator.now();
            if event % EVENTS_PER_CHECK == 0 {
                let checked = simulator.check_invariants();
                prop_assert!(checked.is_ok(), "{:?}", checked);
                prop_assert!(simulator.packets_are_placed_once());
                prop_assert!(simulator.sack_entries_are_balanced());
                prop_assert!(simulator.records_are_balanced());
            }
        }
        prop_assert_eq!(simulator.check_invariants(), Ok(()));
        prop_assert!(simulator.outcome().summary.packets_forwarded > 0);
    }

    /// The bound holds whatever the path and the other flows. Relative to `alone` it is tested only if
    /// an isolated flow doubles its window. Otherwise a flow can be faster among others: their losses
    /// end the delay of acknowledgements or let the window of CUBIC grow sooner, the recovery of
    /// ns-3 sends more than the limit of the window, and tail loss probes send a segment early after a
    /// handshake of small packets.
    #[test]
    fn no_flow_is_faster_than_its_base(
        setup in any_fabric(),
        base in prop::sample::select(vec![SlowdownBase::Pipeline, SlowdownBase::Alone]),
        preconnected in any::<bool>(),
        in_groups in any::<bool>(),
        incast_transport in prop::option::of(prop::sample::select(vec![
            TransportKind::NewReno, TransportKind::Dctcp, TransportKind::PowerTcp,
        ])),
    ) {
        let mut setup = setup;
        setup.scenario.traffic.slowdown_base = match is_fastest_alone(&setup.scenario) {
            true => base,
            false => SlowdownBase::Pipeline,
        };
        setup.scenario.demand.preconnected = preconnected;
        let mixed = setup.scenario.clone().with(|scenario| {
            scenario.transport.incast = incast_transport;
        });
        if mixed.validate().is_ok() {
            setup.scenario = mixed;
        }
        for flow in setup.trace.flows.iter_mut().filter(|_| in_groups) {
            flow.query = (flow.id % 3).cast_signed() - 1;
        }
        for record in fabric(&setup).run().records {
            let fct = record.fct.unwrap_or(Duration::MAX);
            let base = record.base.unwrap_or_default();
            prop_assert!(fct >= base, "{:?}: {} of {}", record.spec, fct, base);
        }
    }
}

/// Packets of an isolated flow take turns among ten links, which may be slower than those of hosts. With half their
/// rate, a short last packet catches up with a full one at the second link if fewer than five take turns. That delays
/// the flow if its last burst has five packets.
#[test]
fn a_sprayed_flow_alone_is_not_faster_than_its_base() {
    let changes = [
        "topology=leafspine",
        "leaves=2",
        "hosts_per_leaf=8",
        "spines=2",
        "links_per_pair=5",
        "header_bytes=0",
        "ecmp=spray",
    ];
    let sizes = [
        (9, 5_300),
        (9, 60_000),
        (9, 200_000),
        (1, 200_000),
        (9, 2_920),
        (9, 1),
    ];
    // Two bursts of 10 and 20 packets go before.
    let burst_of_five = [(9, 34 * 1_460 + 91)];
    for (fabric_rate, propagation, base, sizes) in [
        ("1e8", 1, "alone", &sizes[..]),
        ("1e8", 1, "pipeline", &sizes),
        ("0", 1, "alone", &sizes),
        ("0", 1, "pipeline", &sizes),
        ("5e8", 200_000, "alone", &burst_of_five),
    ] {
        let mut scenario = Scenario::default();
        scenario.set_all(changes).unwrap();
        let more = [
            format!("fabric_rate_bps={fabric_rate}"),
            format!("slowdown_base={base}"),
            format!("propagation_ns={propagation}"),
        ];
        scenario.set_all(more).unwrap();
        let flows = (0..).zip(sizes).map(|(id, &(dst, size))| FlowSpec {
            id,
            src: 0,
            dst,
            start: Instant::from_ms(1_000 * id),
            size,
            kind: 0,
            query: -1,
            priority: 0,
        });
        let setup = Setup {
            trace: Trace {
                flows: flows.collect(),
                ..Trace::default()
            },
            policy: "unlimited".parse().unwrap(),
            scenario,
        };
        for record in fabric(&setup).run().records {
            let slowdown = record.slowdown.unwrap();
            assert!(
                (1.0..2.0).contains(&slowdown),
                "{base} {fabric_rate} {:?}: {slowdown}",
                record.spec
            );
        }
    }
}

/// The path has four links and three switches: every packet is stored and forwarded three times, and
/// the packets behind it follow one transmission time apart.
#[test]
fn a_window_crosses_a_fabric_as_a_pipeline() {
    let scenario = in_network(&Scenario::default(), 2, 4, 2, 1);
    let packet = scenario
        .rate()
        .transmission_time(scenario.full_packet_bytes());
    for segments in [1, 2, 10] {
        let flow = |dst| FlowSpec {
            id: 0,
            src: 1,
            dst,
            start: Instant::from_us(3),
            size: segments * u64::from(scenario.packets.mss),
            kind: 0,
            query: -1,
            priority: 0,
        };
        for (dst, links) in [(2, 2), (6, 4)] {
            let setup = Setup {
                scenario: scenario.clone(),
                policy: "dt".parse().unwrap(),
                trace: Trace {
                    flows: vec![flow(dst)],
                    ..Trace::default()
                },
            };
            let record = fabric(&setup).run().records[0];
            let transmissions = segments + links - 1;
            let expected = transmissions * packet.as_ps() + links * scenario.propagation().as_ps();
            assert_eq!(
                record.fct,
                Some(Duration(expected)),
                "{segments} segments, {links} links"
            );
            assert_eq!(record.slowdown, Some(1.0));
        }
    }
}

/// Returns the default traffic of `flows` flows among 16 hosts of a network.
fn setup_of_flows(scenario: &Scenario, flows: u32) -> Setup {
    let scenario = scenario.clone().with(|scenario| {
        scenario.traffic.flows = RangeU32::new(flows, flows);
    });
    let seed = bufgym_util::rng::trace_seed(bufgym_util::rng::Split::Train, 1, 0);
    Setup {
        trace: bufgym_sim::traffic::generate(&scenario, seed),
        scenario,
        policy: "dt".parse().unwrap(),
    }
}

/// Several switches give the same result each time, also in a fork.
#[test]
fn a_fork_of_a_fabric_goes_on_like_it() {
    let scenario = Scenario::default().with(|scenario| {
        scenario.network.buffer_bytes = 60_000;
    });
    let setup = setup_of_flows(&in_network(&scenario, 4, 4, 4, 1), 60);
    let mut simulator = fabric(&setup);
    for _ in 0..50_000 {
        simulator.step();
    }
    let mut fork = simulator.clone();
    let whole = fabric(&setup).run();
    assert!(whole.summary.drops > 0 && whole.summary.completed == 60);
    assert_eq!(results(&whole), results(&simulator.run()));
    assert_eq!(results(&whole), results(&fork.run()));
}

/// Every packet that a switch accepts or loses, and every departure, is a separate event.
#[test]
fn the_switch_with_a_decision_due_is_asked() {
    let setup = setup_of_flows(&in_network(&Scenario::default(), 2, 8, 2, 1), 20);
    let Setup {
        scenario, trace, ..
    } = &setup;
    let network = LeafSpine::of(scenario, 0);
    let policy = |switch, _: &Scenario| {
        let ports = network.ports(switch);
        Ok(ControlledThreshold::new(
            ports,
            1,
            1,
            TriggerMode::PerPacket,
        ))
    };
    let capacity = |at: &Scenario| at.network.buffer_bytes;
    let mut simulator = Simulator::in_network(scenario, trace, network, capacity, policy).unwrap();
    let (mut decisions, mut asked) = (0, [0; 4]);
    while let StopReason::Decision(at) = simulator.advance() {
        let due = |id: u16| simulator.switch(SwitchId(id)).policy().decision_due();
        let all_due: Vec<u16> = (0..4).filter(|id| due(*id)).collect();
        assert_eq!(all_due, [at.0]);
        decisions += 1;
        asked[at.index()] += 1;
        let (switch, _) = simulator.switch_and_observer(at);
        switch.policy_mut().acknowledge();
    }
    assert!(simulator.finished());
    let summary = simulator.outcome().summary;
    assert!(decisions >= 2 * summary.packets_forwarded + summary.drops);
    assert!(asked.iter().all(|times| *times > 0));
}

/// Admits all packets and counts them by port.
#[derive(Clone, Debug)]
struct Counting(Vec<u64>);

impl Policy for Counting {
    fn on_arrival(&mut self, _view: View<'_>, packet: PacketView) -> Verdict {
        self.0[packet.port] += 1;
        Verdict::Accept
    }

    fn threshold(&self, _view: View<'_>, _port: usize) -> Option<u64> {
        None
    }
}

/// Returns the packets by port of each switch, for many short flows between random hosts.
fn packets_by_port(scenario: &Scenario, network: LeafSpine) -> Vec<Vec<u64>> {
    const FLOWS: u64 = 4_000;
    let mut rng = stream(7, "shares of links", 0);
    let hosts = u64::from(scenario.network.ports);
    let flows = (0..FLOWS).map(|id| {
        let (src, other) = (below(&mut rng, hosts), below(&mut rng, hosts - 1));
        let dst = other + u64::from(other >= src);
        FlowSpec {
            id,
            src: u32::try_from(src).unwrap(),
            dst: u32::try_from(dst).unwrap(),
            start: Instant::from_us(id),
            size: 1_000,
            kind: 0,
            query: -1,
            priority: 0,
        }
    });
    let trace = Trace {
        flows: flows.collect(),
        kinds: vec!["flow".to_owned()],
        seed: 0,
    };
    let switches = network.per_switch(Ok::<_, ()>).unwrap();
    let policy = |switch, _: &Scenario| Ok(Counting(vec![0; network.ports(switch)]));
    let capacity = |at: &Scenario| at.network.buffer_bytes;
    let mut simulator = Simulator::in_network(scenario, &trace, network, capacity, policy).unwrap();
    while simulator.step() {}
    assert_eq!(simulator.outcome().summary.drops, 0);
    let counts = |&id: &SwitchId| simulator.switch(id).policy().0.clone();
    switches.iter().map(counts).collect()
}

/// Checks that each link of a set carries its share of the packets: one of `n`, within five standard
/// deviations of a binomial count, or, if packets take turns, the same number as the others up to one
/// packet.
fn is_shared(links: &[u64], in_turn: bool, case: &str) {
    let total: u64 = links.iter().sum();
    let share = 1.0 / links.len() as f64;
    let mean = total as f64 * share;
    let deviation = (mean * (1.0 - share)).sqrt();
    let most = if in_turn { 1.0 } else { 5.0 * deviation };
    assert!(total > 100, "{case}: {links:?}");
    assert!(
        links.iter().all(|&link| (link as f64 - mean).abs() <= most),
        "{case}: {links:?}"
    );
}

/// Every link between switches carries its share, whatever selects the path. Spines that draw on the
/// buffers of leaves take the same links (a test of their topology).
#[test]
fn no_link_stays_idle() {
    for (leaves, hosts, spines, links) in [(2, 8, 2, 2), (3, 8, 2, 4), (4, 6, 3, 1), (2, 9, 3, 3)] {
        for &ecmp in Ecmp::ALL {
            let mut scenario = in_network(&Scenario::default(), leaves, hosts, spines, links);
            scenario.network.ecmp = ecmp;
            scenario.network.buffer_bytes = 1 << 24;
            let (hosts, spines, links) = (hosts as usize, spines as usize, links as usize);
            let (uplinks, in_turn) = (hosts..hosts + spines * links, ecmp == Ecmp::Spray);
            let case = format!("{} {leaves} {hosts} {spines} {links}", ecmp.name());

            let own = packets_by_port(&scenario, LeafSpine::of(&scenario, 3));
            for leaf in &own[..leaves as usize] {
                is_shared(&leaf[uplinks.clone()], in_turn, &case);
            }
            for spine in &own[leaves as usize..] {
                for to_leaf in spine.chunks(links) {
                    is_shared(to_leaf, in_turn, &case);
                }
            }
        }
    }
}
