//! This simulator against ns-3 3.37 on the same flows: equal to the nanosecond.
//!
//! `cargo run --release -p bufgym-sim --example fidelity` writes the same comparison as a document.

mod cases;
mod reference;
mod run;
mod simulation;

use bufgym_sim::network::LeafSpine;
use bufgym_sim::units::Instant;
use cases::{COMPETING, COMPETING_IN_FABRIC, Case, ISOLATED, ISOLATED_IN_FABRIC, List, Network};
use run::Run;

/// Additional packets that ns-3 forwards: it continues after the last byte has been delivered, and
/// forwards the acknowledgements still in flight, up to three times.
const LAST_ACKNOWLEDGEMENTS: u64 = 12;

fn compared(name: &str) -> (Run, Run) {
    let case = cases()
        .find(|case| case.name() == name)
        .unwrap_or_else(|| panic!("there is no case {name}"));
    let flows = reference::flows(case.network, case.list).unwrap();
    let ours = simulation::run(&case, &case.scenario().unwrap(), &flows).unwrap();
    (reference::run(&case).unwrap(), ours)
}

fn cases() -> impl Iterator<Item = Case> {
    let fabric = ISOLATED_IN_FABRIC.into_iter().chain(COMPETING_IN_FABRIC);
    ISOLATED.into_iter().chain(COMPETING).chain(fabric)
}

/// Checks that establishment and completion of every flow are equal to the nanosecond.
fn assert_equal_times(ns3: &Run, ours: &Run) {
    assert_eq!(ours.flows.len(), ns3.flows.len());
    for (index, (ours, ns3)) in ours.flows.iter().zip(&ns3.flows).enumerate() {
        assert_eq!(ours, ns3, "flow {index}");
    }
    assert_eq!(ours.equal_flows(ns3), ns3.flows.len());
}

fn equals_ns3_alone(name: &str) {
    let (ns3, ours) = compared(name);
    assert!(ns3.flows.len() >= 9);
    assert_equal_times(&ns3, &ours);
}

fn equals_ns3(name: &str) {
    let (ns3, ours) = compared(name);
    assert_equal_times(&ns3, &ours);
    assert_eq!(ours.drops, ns3.drops);
    assert!(ns3.drops > 40);
    let more = ns3.forwarded.checked_sub(ours.forwarded);
    assert!(
        more.is_some_and(|more| more <= LAST_ACKNOWLEDGEMENTS),
        "{} packets forwarded, in ns-3 {}",
        ours.forwarded,
        ns3.forwarded
    );
    if ns3.marks == 0 {
        assert_eq!(ours.marks, 0);
    } else {
        // ns-3 marks a packet before it finds no room for it. In one list it counts five more marks,
        // which change no flow.
        assert!(
            ns3.marks.abs_diff(ours.marks + ours.drops) <= 5,
            "{} marks, in ns-3 {}",
            ours.marks,
            ns3.marks
        );
    }
}

macro_rules! cases {
    ($check:ident: $($case:ident)+) => {
        $(#[test]
        #[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
        fn $case() {
            $check(stringify!($case).trim_start_matches('_'));
        })+
    };
}

cases! { equals_ns3_alone:
    isolated_newreno
    isolated_cubic
    isolated_dctcp
    isolated_fab1g_newreno
    isolated_fab1g_cubic
    isolated_fab1g_dctcp
    isolated_fab2g_newreno
    isolated_fab2g_cubic
    isolated_fab2g_dctcp
}

cases! { equals_ns3:
    _2to1_st_newreno
    _2to1_st_dctcp
    mixed_st_newreno_rto10
    mixed_cs_newreno_rto10
    mixed_dt1_newreno_rto10
    mixed_dt8_newreno_rto10
    mixed_st_cubic_rto10
    mixed_dt1_cubic_rto10
    mixed_dt8_cubic_rto10
    mixed_st_dctcp_rto10
    mixed_st_newreno_rto200
    mixed_cs_newreno_rto200
    mixed_dt1_newreno_rto200
    mixed_dt8_newreno_rto200
    mixed_fab1g_st_newreno_rto10
    mixed_fab1g_cs_newreno_rto10
    mixed_fab1g_dt1_newreno_rto10
    mixed_fab1g_st_cubic_rto10
    mixed_fab1g_st_dctcp_rto10
    mixed_fab1g_st_newreno_rto200
    mixed_fab1g_cs_newreno_rto200
    mixed_fab1g_dt1_newreno_rto200
    mixed_fab2g_st_newreno_rto10
    mixed_fab2g_cs_newreno_rto10
    mixed_fab2g_dt1_newreno_rto10
    mixed_fab2g_st_cubic_rto10
    mixed_fab2g_st_dctcp_rto10
    mixed_fab2g_st_newreno_rto200
    mixed_fab2g_cs_newreno_rto200
    mixed_fab2g_dt1_newreno_rto200
}

/// A network of one leaf is simulated as one switch. With the events of a fabric it is the same
/// network, so the results agree with ns-3 on one switch too.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn one_leaf_with_the_events_of_a_fabric_equals_ns3() {
    let chosen = [
        "mixed_dt1_newreno_rto10",
        "mixed_cs_newreno_rto200",
        "mixed_st_cubic_rto10",
        "mixed_st_dctcp_rto10",
    ];
    for case in COMPETING
        .iter()
        .filter(|case| chosen.contains(&case.name().as_str()))
    {
        let mut scenario = case.scenario().unwrap();
        let leaf = [
            "topology=leafspine",
            "leaves=1",
            "hosts_per_leaf=16",
            "spines=0",
        ];
        for setting in leaf {
            scenario.set(setting).unwrap();
        }
        let flows = reference::flows(case.network, case.list).unwrap();
        let spec = case.policy_spec();
        let mut simulator = spec.simulator::<LeafSpine>(&scenario, &flows).unwrap();
        let outcome = simulator.run();
        let ns3 = reference::run(case).unwrap();
        assert_eq!(outcome.records.len(), 800);
        for (ours, ns3) in outcome.records.iter().zip(&ns3.flows) {
            assert_eq!(
                ours.established.map(Instant::as_ns),
                Some(ns3.established_ns)
            );
            assert_eq!(
                ours.finish.map(Instant::as_ns),
                Some(ns3.finish_ns),
                "{case}"
            );
        }
        assert_eq!(outcome.summary.drops, ns3.drops, "{case}");
    }
}

/// Each file of results belongs to a case, and its content matches the flow list in its name.
#[test]
fn every_result_of_ns3_is_compared() {
    for network in [Network::OneSwitch, Network::Fabric { gbps: 1 }] {
        let mut files: Vec<String> = std::fs::read_dir(reference::folder(network))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with("fct_"))
            .collect();
        let here = |case: &Case| case.network.folder() == network.folder();
        let expected = cases().filter(here).map(|case| format!("fct_{case}.csv"));
        let mut expected: Vec<String> = expected.collect();
        files.sort();
        expected.sort();
        assert_eq!(files, expected);
    }
    for case in cases() {
        let run = reference::run(&case).unwrap();
        let recorded = case.list != List::Isolated || case.network != Network::OneSwitch;
        assert_eq!(run.forwarded > 0, recorded, "{case}");
    }
}
