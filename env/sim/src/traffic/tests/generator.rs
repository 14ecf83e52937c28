use std::collections::{BTreeMap, BTreeSet};

use bufgym_util::rng::{Split, trace_seed};
use proptest::prelude::*;

use crate::scenario::{Arrivals, RangeU32, Scenario, Workload};
use crate::traffic::{FlowSpec, Trace, generate};

pub(super) fn traces(scenario: &Scenario, count: u64) -> impl Iterator<Item = Trace> {
    scenario.validate().unwrap();
    (0..count).map(move |index| generate(scenario, trace_seed(Split::Train, 3, index)))
}

fn by_port(trace: &Trace) -> BTreeMap<u32, Vec<FlowSpec>> {
    let mut ports: BTreeMap<u32, Vec<FlowSpec>> = BTreeMap::new();
    for flow in &trace.flows {
        ports.entry(flow.dst).or_default().push(*flow);
    }
    ports
}

fn sources(flows: &[FlowSpec]) -> BTreeSet<u32> {
    flows.iter().map(|flow| flow.src).collect()
}

/// Returns the FNV-1a hash of the flow list as CSV.
pub(super) fn digest(trace: &Trace) -> u64 {
    let mut bytes = Vec::new();
    trace.to_writer(&mut bytes).unwrap();
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Published results name traces by seed, so the generator must never draw different ones.
#[test]
fn traces_never_change() {
    let digests: Vec<_> = traces(&Scenario::default(), 3)
        .map(|trace| digest(&trace))
        .collect();
    assert_eq!(
        digests,
        [
            10_573_633_345_827_511_383,
            16_262_534_168_830_590_834,
            17_085_669_818_940_641_459
        ]
    );
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    let scenario = Scenario::default();
    let seed = trace_seed(Split::Test, 1, 0);
    assert_eq!(generate(&scenario, seed), generate(&scenario, seed));
    assert_ne!(
        generate(&scenario, seed).flows,
        generate(&scenario, seed + 1).flows
    );
    assert_eq!(generate(&scenario, seed).seed, seed);
}

#[test]
fn the_buffer_and_the_transport_do_not_change_the_traffic() {
    let scenario = Scenario::default();
    let other = scenario.clone().with(|scenario| {
        scenario.network.buffer_bytes = 64_000;
        scenario.tcp.min_rto_us = 10_000;
        scenario.tcp.sack = false;
    });
    assert_eq!(generate(&scenario, 5), generate(&other, 5));
}

#[test]
fn a_higher_load_brings_the_same_flows_in_less_time() {
    let half = Scenario::default().with(|scenario| {
        scenario.traffic.arrivals = Arrivals::Spread;
    });
    let full = half.clone().with(|scenario| {
        scenario.traffic.load = 1.0.into();
    });
    let (half, full) = (generate(&half, 9), generate(&full, 9));
    for (slow, fast) in half.flows.iter().zip(&full.flows) {
        assert_eq!(
            (slow.src, slow.dst, slow.size),
            (fast.src, fast.dst, fast.size)
        );
        assert!(slow.start.as_ns().abs_diff(2 * fast.start.as_ns()) <= 1);
    }
}

#[test]
fn the_number_of_active_ports_is_uniform() {
    let scenario = Scenario::default().with(|scenario| {
        scenario.traffic.flows = RangeU32::new(2_000, 2_000);
    });
    let count = 1_600;
    let mut active = [0_u32; 17];
    for trace in traces(&scenario, count) {
        active[by_port(&trace).len()] += 1;
    }
    assert_eq!(active[0], 0);
    // Expected 100 each, standard deviation 9.7. With 2,000 flows no active port stays empty.
    assert!(
        active[1..].iter().all(|count| count.abs_diff(100) < 50),
        "{active:?}"
    );
}

#[test]
fn in_cast_degrees_are_uniform_and_sources_are_other_hosts() {
    let scenario = Scenario::default().with(|scenario| {
        scenario.traffic.arrivals = Arrivals::Synchronised;
        scenario.traffic.active_ports = RangeU32::new(16, 16);
        scenario.traffic.flows = RangeU32::new(1_500, 1_500);
    });
    let mut degrees = [0_u32; 16];
    for trace in traces(&scenario, 100) {
        for (port, flows) in by_port(&trace) {
            let sources = sources(&flows);
            assert!(!sources.contains(&port) && sources.iter().all(|host| *host < 16));
            degrees[sources.len()] += 1;
        }
    }
    assert_eq!(degrees[0], 0);
    // 1,600 ports in 15 cells: 107 each, standard deviation 10.
    assert!(
        degrees[1..].iter().all(|count| count.abs_diff(107) < 50),
        "{degrees:?}"
    );
}

#[test]
fn the_number_of_flows_is_log_uniform() {
    let scenario = Scenario::default().with(|scenario| {
        scenario.traffic.active_ports = RangeU32::new(1, 1);
    });
    let counts: Vec<_> = traces(&scenario, 2_000)
        .map(|trace| trace.flows.len())
        .collect();
    assert!(counts.iter().all(|count| (100..=1_000).contains(count)));
    // The logarithmic middle of 100..1000 is 316; standard deviation of the share 1.1 %.
    let below = counts.iter().filter(|count| **count < 316).count() as f64 / 2_000.0;
    assert!((below - 0.5).abs() < 0.06, "{below}");
}

#[test]
fn a_range_of_flows_includes_both_ends() {
    let scenario = Scenario::default().with(|scenario| {
        scenario.traffic.flows = RangeU32::new(1, 3);
    });
    let counts: BTreeSet<_> = traces(&scenario, 200)
        .map(|trace| trace.flows.len())
        .collect();
    assert_eq!(counts, BTreeSet::from([1, 2, 3]));
}

#[test]
fn each_active_port_carries_its_load() {
    for (arrivals, load) in [
        (Arrivals::Spread, 0.5),
        (Arrivals::Synchronised, 0.3),
        (Arrivals::Mixed, 0.8),
    ] {
        let scenario = Scenario::default().with(|scenario| {
            scenario.traffic.arrivals = arrivals;
            scenario.traffic.load = load.into();
            scenario.traffic.active_ports = RangeU32::new(4, 4);
            scenario.traffic.incast_degree = RangeU32::new(1, 5);
            scenario.traffic.flows = RangeU32::new(40_000, 40_000);
        });
        let mut bits = 0.0;
        let mut port_seconds = 0.0;
        for trace in traces(&scenario, 8) {
            for flows in by_port(&trace).values() {
                bits += flows.iter().map(|flow| flow.size as f64 * 8.0).sum::<f64>();
                port_seconds += flows.last().map_or(0.0, |flow| flow.start.as_secs_f64());
            }
        }
        let measured = bits / port_seconds / 1e9;
        assert!(
            (measured / load - 1.0).abs() < 0.04,
            "{arrivals}: {measured} instead of {load}"
        );
    }
}

#[test]
fn spread_arrivals_are_a_poisson_process_over_all_sources() {
    let scenario = Scenario::default().with(|scenario| {
        scenario.traffic.arrivals = Arrivals::Spread;
        scenario.traffic.active_ports = RangeU32::new(1, 1);
        scenario.traffic.incast_degree = RangeU32::new(5, 5);
        scenario.traffic.flows = RangeU32::new(50_000, 50_000);
    });
    let trace = generate(&scenario, 1);
    let gaps: Vec<_> = trace
        .flows
        .windows(2)
        .map(|pair| (pair[1].start - pair[0].start).as_secs_f64())
        .collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
    assert!(
        (mean / scenario.flow_gap_seconds(Workload::WebSearch.distribution(), 0.5) - 1.0).abs()
            < 0.03,
        "{mean}"
    );
    // An exponential distribution has E[x^2] = 2 E[x]^2.
    assert!(
        (square / (2.0 * mean * mean) - 1.0).abs() < 0.08,
        "{square}"
    );
    assert!(trace.flows.iter().all(|flow| flow.query == -1));
    for source in sources(&trace.flows) {
        let share = trace.flows.iter().filter(|flow| flow.src == source).count() as f64 / 50_000.0;
        assert!((share - 0.2).abs() < 0.02, "{share}");
    }
}

#[test]
fn synchronised_groups_start_together_one_flow_from_each_source() {
    let scenario = Scenario::default().with(|scenario| {
        scenario.traffic.arrivals = Arrivals::Synchronised;
    });
    for trace in traces(&scenario, 20) {
        let degrees: BTreeMap<_, _> = by_port(&trace)
            .into_iter()
            .map(|(port, flows)| (port, sources(&flows).len()))
            .collect();
        let mut groups: BTreeMap<i64, Vec<FlowSpec>> = BTreeMap::new();
        for flow in &trace.flows {
            groups.entry(flow.query).or_default().push(*flow);
        }
        let last = groups.len() as i64 - 1;
        assert_eq!(
            groups.keys().copied().collect::<Vec<_>>(),
            (0..=last).collect::<Vec<_>>()
        );
        for (number, flows) in groups {
            assert!(
                flows
                    .iter()
                    .all(|flow| (flow.start, flow.dst) == (flows[0].start, flows[0].dst))
            );
            assert_eq!(sources(&flows).len(), flows.len());
            // Only the last group may have been cut short.
            assert!(number == last || flows.len() == degrees[&flows[0].dst]);
        }
    }
}

#[test]
fn mixed_is_one_or_the_other_about_equally_often() {
    let synchronised = traces(&Scenario::default(), 1_000)
        .filter(|trace| trace.flows[0].query >= 0)
        .count();
    assert!(synchronised.abs_diff(500) < 95, "{synchronised}");
}

#[test]
fn sizes_follow_the_workload() {
    for workload in [Workload::WebSearch, Workload::FbHadoop] {
        let scenario = Scenario::default().with(|scenario| {
            scenario.traffic.workload = workload.into();
            scenario.traffic.flows = RangeU32::new(20_000, 20_000);
        });
        let sizes: Vec<_> = traces(&scenario, 20)
            .flat_map(|trace| trace.flows)
            .map(|flow| flow.size as f64)
            .collect();
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        let expected = workload.distribution().mean();
        assert!((mean / expected - 1.0).abs() < 0.03, "{workload}: {mean}");
        assert_eq!(generate(&scenario, 1).kinds, [workload.short_name()]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_trace_of_every_scenario_is_valid(
        seed in any::<u64>(),
        ports in 2_u32..40,
        load in 0.01_f64..1.5,
        shape in any::<[prop::sample::Index; 4]>(),
        flows in 1_u32..300,
        arrivals in prop::sample::select(Arrivals::ALL),
        workload in prop::sample::select(Workload::ALL),
    ) {
        let range = |low: prop::sample::Index, high: prop::sample::Index, max: u32| {
            let min = 1 + low.index(max as usize) as u32;
            RangeU32::new(min, min + high.index((max - min + 1) as usize) as u32)
        };
        let scenario = Scenario::default().with(|scenario| {
            scenario.network.ports = ports;
            scenario.traffic.load = load.into();
            scenario.traffic.arrivals = arrivals;
            scenario.traffic.workload = workload.into();
            scenario.traffic.active_ports = range(shape[0], shape[1], ports);
            scenario.traffic.incast_degree = range(shape[2], shape[3], ports - 1);
            scenario.traffic.flows = RangeU32::new(1, flows);
        });
        prop_assert!(scenario.validate().is_ok());
        let trace = generate(&scenario, seed);
        prop_assert!(trace.validate(ports).is_ok());
        prop_assert!(trace.flows.len() <= flows as usize);
        prop_assert!(trace.flows.is_sorted_by_key(|flow| flow.start));
        prop_assert!(trace.flows.iter().enumerate().all(|(index, flow)| flow.id == index as u64));
        prop_assert!(trace.flows.iter().all(|flow| flow.start.as_ps() % 1_000 == 0));
        let ports = by_port(&trace);
        prop_assert!(ports.len() <= scenario.traffic.active_ports.max as usize);
        for flows in ports.values() {
            prop_assert!(sources(flows).len() <= scenario.traffic.incast_degree.max as usize);
        }
        let mut bytes = Vec::new();
        trace.to_writer(&mut bytes).unwrap();
        let read = Trace::from_reader(bytes.as_slice(), "trace.csv").unwrap();
        prop_assert_eq!(read.flows, trace.flows);
    }
}

/// The sizes come from a distribution that is not a named workload.
#[test]
fn flows_have_the_sizes_of_a_distribution_of_ones_own() {
    let mut scenario = Scenario::default();
    scenario.set("workload=1000:0 10000:0.5 1000000:1").unwrap();
    let trace = generate(&scenario, 1);
    assert_eq!(trace.kinds, ["sizes"]);
    let sizes = trace.flows.iter().map(|flow| flow.size);
    assert!(
        sizes
            .clone()
            .all(|size| (1_000..=1_000_000).contains(&size))
    );
    assert!(sizes.clone().any(|size| size < 10_000) && sizes.clone().any(|size| size > 10_000));
}
