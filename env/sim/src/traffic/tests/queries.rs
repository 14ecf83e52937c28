use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::generator::{digest, traces};
use crate::scenario::{RangeF64, RangeU32, Scenario, Traffic, Workload};
use crate::traffic::{FlowSpec, Trace, generate};

fn preset(name: &str) -> Scenario {
    Scenario::preset(name).unwrap()
}

fn of_kind(trace: &Trace, kind: &str) -> Vec<FlowSpec> {
    let flows = trace.flows.iter().copied();
    flows.filter(|flow| trace.kind_name(flow) == kind).collect()
}

fn queries(trace: &Trace) -> BTreeMap<i64, Vec<FlowSpec>> {
    let mut queries: BTreeMap<i64, Vec<FlowSpec>> = BTreeMap::new();
    for flow in of_kind(trace, "incast") {
        queries.entry(flow.query).or_default().push(flow);
    }
    queries
}

fn hosts(flows: &[FlowSpec], host: fn(&FlowSpec) -> u32) -> BTreeSet<u32> {
    flows.iter().map(host).collect()
}

/// Published results name traces by seed, so the generator must never draw different ones.
#[test]
fn traces_of_the_presets_never_change() {
    let digests = ["ndt-96x10g-incast", "ndt-testbed-4x1g", "ndt-4to2-incast"]
        .map(|name| digest(&traces(&preset(name), 1).next().unwrap()));
    assert_eq!(
        digests,
        [
            4_998_547_135_577_333_984,
            8_877_724_376_937_656_664,
            4_037_695_175_735_730_114
        ]
    );
}

#[test]
fn all_other_hosts_answer_the_queries_of_one_port() {
    let scenario = preset("ndt-96x10g-incast");
    let mut clients = BTreeSet::new();
    for trace in traces(&scenario, 10) {
        let answers = of_kind(&trace, "incast");
        let client = answers[0].dst;
        clients.insert(client);
        let queries = queries(&trace);
        assert!(queries.keys().copied().eq(0..queries.len() as i64));
        for flows in queries.values() {
            assert_eq!(flows.len(), 95);
            assert_eq!(hosts(flows, |flow| flow.src).len(), 95);
            let first = (flows[0].start, client, 64_000);
            assert!(
                flows
                    .iter()
                    .all(|flow| (flow.start, flow.dst, flow.size) == first)
            );
        }
        let elephants = of_kind(&trace, "elephant");
        let receivers = hosts(&elephants, |flow| flow.dst);
        assert_eq!(receivers.len(), 47);
        assert!(!receivers.contains(&client));
        assert!(
            elephants
                .iter()
                .all(|flow| (flow.size, flow.query) == (30_000_000, -1))
        );
        assert_eq!(answers.len() + elephants.len(), trace.flows.len());
    }
    assert!(clients.len() > 5, "{clients:?}");
}

#[test]
fn queries_are_a_poisson_process() {
    let scenario = preset("ndt-96x10g-incast").with(|scenario| {
        scenario.traffic.incast_degree = RangeU32::new(1, 1);
        scenario.traffic.active_ports = RangeU32::new(1, 1);
        scenario.traffic.flows = RangeU32::new(40_000, 40_000);
    });
    let trace = traces(&scenario, 1).next().unwrap();
    assert_eq!(trace.flows.len(), 40_000);
    let gaps: Vec<_> = trace
        .flows
        .windows(2)
        .map(|pair| (pair[1].start - pair[0].start).as_secs_f64())
        .collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
    assert!((mean / 0.01 - 1.0).abs() < 0.03, "{mean}");
    // An exponential distribution has E[x^2] = 2 E[x]^2.
    assert!(
        (square / (2.0 * mean * mean) - 1.0).abs() < 0.08,
        "{square}"
    );
}

#[test]
fn elephants_follow_one_another_at_every_port_and_offer_the_load() {
    let scenario = preset("ndt-96x10g-incast");
    let gap_ns = 8.0 * 30e6 / (0.9 * 10e9) * 1e9;
    let mut first = Vec::new();
    for trace in traces(&scenario, 10) {
        let elephants = of_kind(&trace, "elephant");
        for port in hosts(&elephants, |flow| flow.dst) {
            let starts: Vec<_> = elephants
                .iter()
                .filter(|flow| flow.dst == port)
                .map(|flow| flow.start.as_ns())
                .collect();
            first.push(starts[0] as f64 / gap_ns);
            for pair in starts.windows(2) {
                assert!(((pair[1] - pair[0]) as f64 - gap_ns).abs() <= 1.0);
            }
        }
    }
    assert!(first.iter().all(|phase| (0.0..=1.0).contains(phase)));
    // 470 uniform numbers: standard deviation of the mean 0.013.
    let mean = first.iter().sum::<f64>() / first.len() as f64;
    assert!((mean - 0.5).abs() < 0.07, "{mean}");
}

#[test]
fn bursts_come_from_the_senders_of_elephants_and_meet_at_both_ports() {
    let scenario = preset("ndt-4to2-incast");
    let mut met = 0;
    for trace in traces(&scenario, 10) {
        let receivers = hosts(&trace.flows, |flow| flow.dst);
        let senders = hosts(&trace.flows, |flow| flow.src);
        assert_eq!((receivers.len(), senders.len()), (2, 4));
        assert!(receivers.is_disjoint(&senders));
        for kind in ["incast", "elephant"] {
            assert_eq!(hosts(&of_kind(&trace, kind), |flow| flow.dst), receivers);
        }
        let bursts: Vec<_> = queries(&trace).into_values().collect();
        assert!(bursts.iter().all(|flows| flows.len() == 4));
        // Alone a burst keeps its port busy for 8.3 ms.
        met += bursts
            .windows(2)
            .filter(|pair| {
                pair[0][0].dst != pair[1][0].dst
                    && (pair[1][0].start - pair[0][0].start).as_ms_f64() < 8.3
            })
            .count();
    }
    assert!(met > 50, "{met}");
}

#[test]
fn the_testbed_draws_load_and_workload_for_each_trace() {
    let scenario = preset("ndt-testbed-4x1g");
    let mut kinds = BTreeMap::new();
    let mut loads = Vec::new();
    for trace in traces(&scenario, 400) {
        assert_eq!(trace.kinds.len(), 1);
        *kinds.entry(trace.kinds[0].clone()).or_insert(0_u32) += 1;
        // The gaps reveal the load: 99 of them at 4 ports together.
        let last = trace.flows.last().unwrap().start.as_secs_f64();
        let workload = match trace.kinds[0].as_str() {
            "ws" => Workload::WebSearch,
            _ => Workload::DataMining,
        };
        loads.push(scenario.flow_gap_seconds(workload.distribution(), 1.0) / 4.0 * 100.0 / last);
    }
    assert_eq!(kinds.keys().collect::<Vec<_>>(), ["dm", "ws"]);
    assert!(kinds["ws"].abs_diff(200) < 60, "{kinds:?}");
    let mean = loads.iter().sum::<f64>() / loads.len() as f64;
    assert!((mean - 0.5).abs() < 0.06, "{mean}");
    let share = |low, high| {
        let inside = |load: &&f64| (low..high).contains(*load);
        loads.iter().filter(inside).count() as f64 / loads.len() as f64
    };
    // Uniform from 0.1 to 0.9, blurred by a tenth.
    assert!((share(0.0, 0.3) - 0.25).abs() < 0.08);
    assert!((share(0.3, 0.5) - 0.25).abs() < 0.08);
    assert!(share(1.2, 9.0) < 0.01);
}

#[test]
fn a_choice_of_load_and_workload_leaves_the_other_draws_alone() {
    let fixed = Scenario::default();
    let open = fixed.clone().with(|scenario| {
        scenario.traffic.load = RangeF64::new(0.2, 0.8);
        scenario.traffic.workload = [Workload::WebSearch, Workload::FbHadoop].into();
    });
    for seed in 0..20 {
        let (fixed, open) = (generate(&fixed, seed), generate(&open, seed));
        let ends = |flow: &FlowSpec| (flow.src, flow.dst, flow.query);
        assert_eq!(fixed.flows.len(), open.flows.len());
        assert_eq!(
            fixed.flows.iter().map(ends).collect::<Vec<_>>(),
            open.flows.iter().map(ends).collect::<Vec<_>>()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_trace_of_queries_is_valid_and_cuts_none_short(
        seed in any::<u64>(),
        ports in 2_u32..40,
        traffic in prop::sample::select(vec![Traffic::IncastElephants, Traffic::BurstsOverElephants]),
        load in 0.01_f64..1.5,
        shape in any::<[prop::sample::Index; 4]>(),
        flows in 0_u32..300,
        query_gap_us in 1_u64..1_000_000,
        response_bytes in 1_u64..10_000_000,
        elephant_bytes in 1_u64..1_000_000_000,
    ) {
        let range = |low: prop::sample::Index, high: prop::sample::Index, max: u32| {
            let min = 1 + low.index(max as usize) as u32;
            RangeU32::new(min, min + high.index((max - min + 1) as usize) as u32)
        };
        let active_ports = range(shape[0], shape[1], match traffic {
            Traffic::BurstsOverElephants => ports - 1,
            _ => ports,
        });
        let degree = range(shape[2], shape[3], match traffic {
            Traffic::BurstsOverElephants => ports - active_ports.max,
            _ => ports - 1,
        });
        let scenario = Scenario::default().with(|scenario| {
            scenario.network.ports = ports;
            scenario.traffic.kind = traffic;
            scenario.traffic.load = load.into();
            scenario.traffic.active_ports = active_ports;
            scenario.traffic.incast_degree = degree;
            scenario.traffic.flows = RangeU32::new(degree.max, degree.max + flows);
            scenario.traffic.query_gap_us = query_gap_us;
            scenario.traffic.response_bytes = response_bytes;
            scenario.traffic.elephant_bytes = elephant_bytes;
        });
        prop_assert!(scenario.validate().is_ok());
        let trace = generate(&scenario, seed);
        prop_assert!(trace.validate(ports).is_ok());
        prop_assert!(trace.flows.len() <= scenario.traffic.flows.max as usize);
        prop_assert!(trace.flows.len() + degree.max as usize > scenario.traffic.flows.min as usize);
        prop_assert!(trace.flows.is_sorted_by_key(|flow| flow.start));
        prop_assert!(trace.flows.iter().enumerate().all(|(index, flow)| flow.id == index as u64));
        let receivers = hosts(&trace.flows, |flow| flow.dst).len();
        prop_assert!(receivers <= active_ports.max as usize);
        for flows in queries(&trace).values() {
            prop_assert!((degree.min..=degree.max).contains(&(flows.len() as u32)));
            prop_assert_eq!(hosts(flows, |flow| flow.src).len(), flows.len());
        }
        prop_assert_eq!(&generate(&scenario, seed), &trace);
        // The reward is scaled by this mean.
        let mean = scenario.mean_over_sizes(|size| size as f64);
        let (small, large) = (response_bytes.min(elephant_bytes), response_bytes.max(elephant_bytes));
        prop_assert!((small as f64 * 0.999..=large as f64 * 1.001).contains(&mean));
    }
}
