//! Networks of several switches.

use bufgym_sim::network::{
    LeafSpine, Outcome, Pause, Recorders, Simulator, SwitchId, Topology as _,
};
use bufgym_sim::scenario::{RangeU32, Scenario};
use bufgym_sim::switch::AnyPolicy;
use bufgym_sim::switch::policy::ndt::TriggerMode;
use bufgym_sim::switch::policy::{NeuralDynamicThreshold, Policy as _};
use bufgym_sim::traffic::{FlowSpec, Trace};
use bufgym_sim::units::Time;
use proptest::prelude::*;

use crate::behaviour::setup::{MANY_EVENTS, Setup, any_setup, config};

type Fabric = Simulator<AnyPolicy, Recorders, LeafSpine>;

/// The set-up's hosts in a leaf-spine network; every switch has the set-up's policy and buffer.
fn fabric(setup: &Setup, network: LeafSpine) -> Fabric {
    let Setup {
        scenario,
        policy,
        trace,
    } = setup;
    let capacity = policy.capacity(scenario);
    Simulator::in_network(scenario, trace, network, capacity, |switch| {
        let ports = network.ports(switch) as u32;
        policy.build(&Scenario {
            ports,
            active_ports: RangeU32::new(1, 1),
            incast_degree: RangeU32::new(1, 1),
            ..scenario.clone()
        })
    })
    .expect("the set-up is valid")
    .managed(policy.aqm(), scenario)
    .expect("the set-up is valid")
}

/// All that must be equal where results are.
fn results(outcome: &Outcome) -> (Vec<Option<Time>>, [u64; 7], Vec<f64>) {
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

/// A network, and hosts for it: so many that every leaf has as many.
fn any_fabric() -> impl Strategy<Value = (Setup, LeafSpine)> {
    let network = (1usize..4, 1usize..4, 1usize..3);
    (any_setup(), network).prop_map(|(mut setup, (leaves, spines, links_per_pair))| {
        let hosts_per_leaf = setup.scenario.port_count().div_ceil(leaves).max(2);
        setup.scenario.ports = (leaves * hosts_per_leaf) as u32;
        setup.scenario.propagation_ns = setup.scenario.propagation_ns.max(1);
        // Static partitions are the smaller the more ports there are.
        setup.scenario.buffer_bytes *= 4 * leaves as u64;
        let network = LeafSpine {
            leaves,
            hosts_per_leaf,
            spines,
            links_per_pair,
        };
        (setup, network)
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn one_leaf_equals_the_single_switch(setup in any_setup()) {
        let network = LeafSpine {
            leaves: 1,
            hosts_per_leaf: setup.scenario.port_count(),
            spines: 0,
            links_per_pair: 1,
        };
        let mut single = setup.simulator();
        let mut leaf = fabric(&setup, network);
        for simulator_time in [20, 200] {
            single.record_timeline(Time::from_us(simulator_time));
            leaf.record_timeline(Time::from_us(simulator_time));
        }
        let (single, leaf) = (single.run(), leaf.run());
        prop_assert_eq!(results(&single), results(&leaf));
        prop_assert_eq!(single.timeline.len(), leaf.timeline.len());
        let rows = single.timeline.iter().zip(&leaf.timeline);
        for (single, leaf) in rows {
            let state = |row: &bufgym_sim::network::TimelineRow| {
                (row.t, row.port, row.queue_bytes, row.threshold_bytes, row.occupancy_bytes)
            };
            prop_assert_eq!(state(single), state(leaf));
        }
    }

    #[test]
    fn no_byte_and_no_packet_is_lost_between_switches((setup, network) in any_fabric()) {
        let mut simulator = fabric(&setup, network);
        let mut last = Time::ZERO;
        for event in 0..MANY_EVENTS {
            if simulator.finished() || !simulator.step() {
                break;
            }
            prop_assert!(simulator.now() >= last);
            last = simulator.now();
            if event % 16 == 0 {
                let checked = simulator.check_invariants();
                prop_assert!(checked.is_ok(), "{:?}", checked);
                prop_assert!(simulator.packets_are_placed_once());
                prop_assert!(simulator.sack_entries_are_balanced());
            }
        }
        prop_assert_eq!(simulator.check_invariants(), Ok(()));
        prop_assert!(simulator.outcome().summary.packets_forwarded > 0);
    }
}

/// Four links and three switches: every packet is stored and forwarded three times, and those
/// behind it follow one transmission time apart.
#[test]
fn a_window_crosses_a_fabric_as_a_pipeline() {
    let network = LeafSpine {
        leaves: 2,
        hosts_per_leaf: 4,
        spines: 2,
        links_per_pair: 1,
    };
    let scenario = Scenario {
        ports: 8,
        active_ports: RangeU32::new(1, 8),
        incast_degree: RangeU32::new(1, 7),
        ..Scenario::default()
    };
    let packet = scenario
        .rate()
        .transmission_time(scenario.full_packet_bytes());
    for segments in [1, 2, 10] {
        let flow = |dst| FlowSpec {
            id: 0,
            src: 1,
            dst,
            start: Time::from_us(3),
            size: segments * u64::from(scenario.mss),
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
            let record = fabric(&setup, network).run().records[0];
            let transmissions = segments + links - 1;
            let expected = transmissions * packet.as_ps() + links * scenario.propagation().as_ps();
            assert_eq!(
                record.fct,
                Some(Time(expected)),
                "{segments} segments, {links} links"
            );
            assert_eq!(record.slowdown, Some(1.0));
        }
    }
}

/// Several switches, the same result each time, also in a fork.
#[test]
fn a_fork_of_a_fabric_goes_on_like_it() {
    let network = LeafSpine {
        leaves: 4,
        hosts_per_leaf: 4,
        spines: 4,
        links_per_pair: 1,
    };
    let mut scenario = Scenario::default();
    scenario.set("flows=60").unwrap();
    scenario.set("buffer_bytes=60000").unwrap();
    let seed = bufgym_sim::rng::trace_seed(bufgym_sim::rng::Split::Train, 1, 0);
    let setup = Setup {
        trace: bufgym_sim::traffic::generate(&scenario, seed),
        scenario,
        policy: "dt".parse().unwrap(),
    };
    let mut simulator = fabric(&setup, network);
    for _ in 0..50_000 {
        simulator.step();
    }
    let mut fork = simulator.clone();
    let whole = fabric(&setup, network).run();
    assert!(whole.summary.drops > 0 && whole.summary.completed == 60);
    assert_eq!(results(&whole), results(&simulator.run()));
    assert_eq!(results(&whole), results(&fork.run()));
}

/// A packet that goes down leaves one switch and reaches another in the same event. Where that makes
/// a decision due at both, both are asked before anything else happens.
#[test]
fn every_switch_with_a_decision_due_is_asked() {
    let network = LeafSpine {
        leaves: 2,
        hosts_per_leaf: 8,
        spines: 2,
        links_per_pair: 1,
    };
    let mut scenario = Scenario::default();
    scenario.set("flows=20").unwrap();
    let seed = bufgym_sim::rng::trace_seed(bufgym_sim::rng::Split::Train, 1, 0);
    let trace = bufgym_sim::traffic::generate(&scenario, seed);
    let policy = |switch| {
        let ports = network.ports(switch);
        Ok(NeuralDynamicThreshold::new(
            ports,
            1,
            1,
            TriggerMode::PerPacket,
        ))
    };
    let capacity = scenario.buffer_bytes;
    let mut simulator =
        Simulator::in_network(&scenario, &trace, network, capacity, policy).unwrap();
    let (mut decisions, mut together) = (0, 0);
    let mut last = None;
    while let Pause::Decision(at) = simulator.advance() {
        let due = |id: &SwitchId| simulator.switch(*id).policy().decision_due();
        assert!(due(&at));
        let below = (0..at.0).map(SwitchId).filter(due).count();
        assert_eq!(
            below, 0,
            "{at:?} was asked before a switch of a lower number"
        );
        together += u64::from(last == Some(simulator.now()));
        decisions += 1;
        last = Some(simulator.now());
        simulator
            .switch_and_observer(at)
            .0
            .policy_mut()
            .acknowledge();
    }
    assert!(simulator.finished());
    let summary = simulator.outcome().summary;
    // One for every packet that a switch takes or loses, and one for every departure.
    assert!(decisions >= 2 * summary.packets_forwarded + summary.drops);
    assert!(together > 0);
}
