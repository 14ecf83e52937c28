use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::scenario::{Demand, FlowPriority, RangeU32, Scenario, Workload};
use crate::traffic::{FlowSpec, Trace, TraceError, generate};

fn scenario(preset: &str, changes: &[&str]) -> Scenario {
    let mut scenario = Scenario::preset(preset).unwrap();
    for change in changes {
        scenario.set(change).unwrap();
    }
    scenario.validate().unwrap();
    scenario
}

fn is_answer(flow: &&FlowSpec) -> bool {
    flow.query >= 0
}

fn searches(trace: &Trace) -> impl Iterator<Item = &FlowSpec> {
    trace.flows.iter().filter(|flow| !is_answer(flow))
}

fn queries(trace: &Trace) -> Vec<Vec<FlowSpec>> {
    let mut queries: BTreeMap<i64, Vec<FlowSpec>> = BTreeMap::new();
    for flow in trace.flows.iter().filter(is_answer) {
        queries.entry(flow.query).or_default().push(*flow);
    }
    queries.into_values().collect()
}

fn within_four_sigma(counted: usize, expected: f64) -> bool {
    (counted as f64 - expected).abs() <= 4.0 * expected.sqrt()
}

/// The published runs of ABM have 14,221 web-search flows in 3 s at load 0.4 from 64 hosts, and 36.5
/// flows per second and host at load 0.2.
#[test]
fn hosts_send_as_often_as_in_the_papers() {
    for (name, hosts) in [
        ("abm-leafspine", 256.0),
        ("abm-artefact", 64.0),
        ("credence-leafspine", 256.0),
    ] {
        let scenario = scenario(name, &[]);
        let rate = scenario.host_flow_rate(Workload::WebSearch.distribution(), 0.2);
        assert!((rate - 36.5).abs() < 0.05, "{name}: {rate}");
        let trace = generate(&scenario, 1);
        let searches = searches(&trace).count();
        assert!(
            within_four_sigma(searches, hosts * 73.05 * 3.0),
            "{name}: {searches}"
        );
        let queries = queries(&trace).len();
        assert!(
            within_four_sigma(queries, hosts * 2.0 * 3.0),
            "{name}: {queries}"
        );
    }
}

/// With `uniform`, some flows stay in their leaf; as many others leave as with the other demands.
#[test]
fn the_load_of_the_uplinks_does_not_depend_on_the_demand() {
    for demand in ["ring", "other_leaf", "uniform"] {
        let demand = format!("demand={demand}");
        let scenario = scenario(
            "leafspine-4x4",
            &[&demand, "query_rate=0", "measure_ms=20000"],
        );
        let trace = generate(&scenario, 3);
        let leaf = |host| host / scenario.network.hosts_per_leaf;
        let leaving = searches(&trace).filter(|flow| leaf(flow.src) != leaf(flow.dst));
        let leaving = leaving.count();
        // Two uplinks of 10 Gbit/s for four hosts, at load 0.4.
        let expected = 0.4 * 80e9 * 20.0 / (8.0 * 1_711_250.0);
        assert!(within_four_sigma(leaving, expected), "{demand}: {leaving}");
    }
}

#[test]
fn every_demand_reaches_the_hosts_that_it_names_equally_often() {
    for demand in [Demand::Ring, Demand::OtherLeaf, Demand::Uniform] {
        let set = format!("demand={demand}");
        let scenario = scenario("leafspine-4x4", &[&set, "query_rate=0", "measure_ms=20000"]);
        let trace = generate(&scenario, 5);
        let mut pairs: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        for flow in &trace.flows {
            *pairs.entry((flow.src, flow.dst)).or_default() += 1;
        }
        let is_pair = |src: u32, dst: u32| match demand {
            Demand::Ring => dst / 4 == (src / 4 + 1) % 4,
            Demand::OtherLeaf => dst / 4 != src / 4,
            _ => dst != src,
        };
        let all = (0..16).flat_map(|src| (0..16).map(move |dst| (src, dst)));
        let named: BTreeSet<_> = all.filter(|(src, dst)| is_pair(*src, *dst)).collect();
        let expected = trace.flows.len() as f64 / named.len() as f64;
        assert!(expected > 100.0);
        assert_eq!(
            pairs.keys().copied().collect::<BTreeSet<_>>(),
            named,
            "{demand}"
        );
        for (pair, count) in pairs {
            // One of up to 240 counts is beyond four sigma in one trace of 60.
            let sigma = expected.sqrt();
            assert!(
                (count as f64 - expected).abs() < 5.0 * sigma,
                "{demand}: {pair:?} {count}"
            );
        }
    }
}

#[test]
fn hosts_of_one_leaf_answer_a_query_with_equal_parts_at_once() {
    for (preset, fanin, bytes) in [
        ("abm-artefact", 32, 36_864),
        ("credence-leafspine", 16, 32_768),
        ("leafspine-4x4", 4, 36_864),
    ] {
        let scenario = scenario(preset, &["measure_ms=1000"]);
        let leaf = |host| host / scenario.network.hosts_per_leaf;
        let queries = queries(&generate(&scenario, 7));
        assert!(!queries.is_empty());
        for answers in queries {
            let sources: BTreeSet<u32> = answers.iter().map(|flow| flow.src).collect();
            assert_eq!(sources.len(), fanin, "{preset}");
            let first = answers[0];
            for answer in answers {
                assert_eq!((answer.start, answer.dst), (first.start, first.dst));
                assert_eq!((answer.size, leaf(answer.src)), (bytes, leaf(first.src)));
                assert_ne!(leaf(answer.src), leaf(answer.dst));
            }
        }
    }
}

#[test]
fn more_servers_than_a_leaf_has_are_of_several() {
    let changes = ["query_fanin=9", "measure_ms=1000", "query_share=0.5"];
    let scenario = scenario("leafspine-4x4", &changes);
    for answers in queries(&generate(&scenario, 7)) {
        let sources: BTreeSet<u32> = answers.iter().map(|flow| flow.src).collect();
        assert_eq!(sources.len(), 9);
        assert!(sources.iter().all(|src| src / 4 != answers[0].dst / 4));
        assert_eq!(answers[0].size, 589_824 / 2 / 9);
    }
}

#[test]
fn queries_do_not_change_the_other_flows() {
    let without = scenario("leafspine-4x4", &["query_rate=0"]);
    let with = scenario("leafspine-4x4", &["query_rate=200"]);
    let times = |scenario: &Scenario| -> Vec<_> {
        let trace = generate(scenario, 11);
        let flows = searches(&trace).map(|flow| (flow.src, flow.dst, flow.start, flow.size));
        flows.collect()
    };
    assert_eq!(times(&without), times(&with));
    assert!(generate(&with, 11).flows.len() > times(&with).len());
}

fn queues(change: &str) -> Vec<(FlowSpec, u8)> {
    let changes = ["queues_per_port=4", "measure_ms=1000", change];
    let trace = generate(&scenario("leafspine-4x4", &changes), 13);
    trace
        .flows
        .iter()
        .map(|flow| (*flow, flow.priority))
        .collect()
}

#[test]
fn flows_use_the_queues_that_the_settings_say() {
    for (flow, queue) in queues("incast_priority=3") {
        assert_eq!(queue, if flow.query >= 0 { 3 } else { 1 });
    }
    for (flow, queue) in queues("incast_priority=7") {
        assert_eq!(queue, if flow.query >= 0 { 3 } else { 1 });
    }
    let turns = queues("flow_priority=in_turn");
    assert!(
        turns
            .iter()
            .all(|(flow, queue)| flow.id % 4 == u64::from(*queue))
    );

    let mut of_queue = [0; 4];
    for (_, queue) in queues("flow_priority=random_per_flow") {
        of_queue[usize::from(queue)] += 1;
    }
    assert_eq!(of_queue[0], 0);
    assert!(of_queue[2] > 500 && of_queue[3] > 500, "{of_queue:?}");

    let mut of_leaf: BTreeMap<u32, BTreeSet<u8>> = BTreeMap::new();
    for (flow, queue) in queues("flow_priority=random_per_leaf") {
        if flow.query < 0 {
            of_leaf.entry(flow.src / 4).or_default().insert(queue);
        }
    }
    assert_eq!(of_leaf.len(), 4);
    assert!(
        of_leaf
            .values()
            .all(|queues| queues.len() == 1 && !queues.contains(&0))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Flows are sorted, numbered, within the time, and between distinct hosts that exist; a second
    /// trace is the same. In a millisecond there may be no flow.
    #[test]
    fn traces_fit_their_scenario(
        leaves in 2_u32..5, hosts in 1_u32..5, seed: u64,
        demand in prop::sample::select(&[Demand::Ring, Demand::OtherLeaf, Demand::Uniform][..]),
        priority in prop::sample::select(FlowPriority::ALL), queues in 1_u32..9,
        (warmup, measured) in (0_u64..50, 1_u64..50),
    ) {
        let scenario = Scenario::preset("leafspine-4x4").unwrap().with(|scenario| {
            scenario.network.leaves = leaves;
            scenario.network.hosts_per_leaf = hosts;
            scenario.network.ports = leaves * hosts;
            scenario.demand.kind = demand;
            scenario.queues.flow_priority = priority;
            scenario.queues.queues_per_port = queues;
            scenario.demand.warmup_ms = warmup;
            scenario.demand.measure_ms = measured;
            scenario.network.buffer_bytes_per_port_gbps = 0.0;
            scenario.traffic.active_ports = RangeU32::new(1, 1);
            scenario.traffic.incast_degree = RangeU32::new(1, 1);
            scenario.demand.query_fanin = u32::from(demand == Demand::Ring && hosts == 1);
        });
        scenario.validate().unwrap();
        let trace = generate(&scenario, seed);
        match trace.validate(scenario.network.ports) {
            Err(TraceError::NoFlows) => prop_assert!(trace.flows.is_empty()),
            checked => prop_assert_eq!(checked.map_err(|e| e.to_string()), Ok(())),
        }
        prop_assert!(trace.flows.is_sorted_by_key(|flow| flow.start));
        for (number, flow) in trace.flows.iter().enumerate() {
            prop_assert_eq!(flow.id, number as u64);
            prop_assert!(u32::from(flow.priority) < queues);
            prop_assert!(flow.src != flow.dst);
            prop_assert!(flow.start.as_ns() <= (warmup + measured) * 1_000_000);
        }
        prop_assert_eq!(generate(&scenario, seed).flows, trace.flows);
    }
}

/// Fig. 8 of ABM: CUBIC between hosts 0 to 15 of leaves 0 and 1, DCTCP between hosts 16 to 23. Hosts 24
/// to 31 there ask queries, and the same hosts of the four other leaves answer.
#[test]
fn classes_have_their_hosts_loads_and_queues() {
    let scenario = scenario("abm-artefact-mixed", &[]);
    let trace = generate(&scenario, 11);
    assert_eq!(trace.kinds, ["ws", "incast", "second"]);
    assert_eq!(trace.second_kind(), Some(2));
    let place = |host: u32| (host / 32, host % 32);
    let mut loads = [0.0; 3];
    for flow in &trace.flows {
        let ((from, src), (to, dst)) = (place(flow.src), place(flow.dst));
        let (numbers, queue) = match flow.kind {
            0 => (0..16, 1),
            1 => (24..32, 3),
            _ => (16..24, 2),
        };
        assert!(numbers.contains(&src) && numbers.contains(&dst), "{flow:?}");
        assert_eq!(u32::from(flow.priority), queue, "{flow:?}");
        match flow.kind {
            1 => assert!(to < 2 && from != to && flow.size == 36_864, "{flow:?}"),
            _ => assert_eq!((from + to, flow.query), (1, -1), "{flow:?}"),
        }
        loads[usize::from(flow.kind)] += 8.0 * flow.size as f64 / (2.0 * 80e9 * 3.0);
    }
    // Some 14,000 and 3,500 flows, whose sizes have a standard deviation of 2.2 times the mean.
    assert!((loads[0] - 0.4).abs() < 0.03, "{loads:?}");
    assert!((loads[2] - 0.1).abs() < 0.016, "{loads:?}");
    let queries = queries(&trace);
    assert!(within_four_sigma(queries.len(), 16.0 * 2.0 * 3.0));
    for answers in queries {
        let sources: BTreeSet<u32> = answers.iter().map(|flow| flow.src).collect();
        assert_eq!(sources.len(), 32);
    }
}

/// The other classes do not change the flows of the first.
#[test]
fn classes_have_random_streams_of_their_own() {
    let changes = ["measure_ms=200"];
    let alone = scenario("leafspine-4x4", &changes);
    let beside = scenario("leafspine-4x4", &["measure_ms=200", "second_load=0.3"]);
    let first = |scenario: &Scenario| -> Vec<_> {
        let trace = generate(scenario, 2);
        let flows = trace.flows.iter().filter(|flow| flow.kind < 2);
        let facts = |flow: &FlowSpec| (flow.src, flow.dst, flow.start, flow.size, flow.query);
        flows.map(facts).collect()
    };
    assert_eq!(first(&alone), first(&beside));
    let trace = generate(&beside, 2);
    assert!(trace.flows.iter().any(|flow| flow.kind == 2));
}
