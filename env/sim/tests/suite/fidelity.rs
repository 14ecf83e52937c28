//! This simulator against ns-3 3.37 on the same flows: equal to the nanosecond.
//!
//! `cargo run --release -p bufgym-sim --example fidelity` writes the same comparison as a document.

mod cases;
mod reference;
mod run;
mod simulation;

use cases::{COMPETING, Case, ISOLATED, List};
use run::Run;

/// ns-3 goes on after the last byte has been delivered, and forwards the acknowledgements that are
/// still on their way.
const LAST_ACKNOWLEDGEMENTS: u64 = 10;

fn compared(name: &str) -> (Run, Run) {
    let case = cases()
        .find(|case| case.name() == name)
        .unwrap_or_else(|| panic!("there is no case {name}"));
    let flows = reference::flows(case.list).unwrap();
    let ours = simulation::run(&case, &case.scenario().unwrap(), &flows).unwrap();
    (reference::run(&case).unwrap(), ours)
}

fn cases() -> impl Iterator<Item = Case> {
    ISOLATED.into_iter().chain(COMPETING)
}

/// Establishment and completion of every flow are equal to the nanosecond.
fn assert_equal_times(ns3: &Run, ours: &Run) {
    assert_eq!(ours.flows.len(), ns3.flows.len());
    for (index, (ours, ns3)) in ours.flows.iter().zip(&ns3.flows).enumerate() {
        assert_eq!(ours, ns3, "flow {index}");
    }
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
        // ns-3 marks a packet before it finds no room for it.
        assert!(
            ns3.marks.abs_diff(ours.marks + ours.drops) <= 1,
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
}

cases! { equals_ns3:
    _2to1_st_newreno
    _2to1_st_dctcp
    mixed_st_newreno_rto10
    mixed_cs_newreno_rto10
    mixed_dt1_newreno_rto10
    mixed_dt8_newreno_rto10
    mixed_st_cubic_rto10
    mixed_st_dctcp_rto10
    mixed_st_newreno_rto200
    mixed_cs_newreno_rto200
    mixed_dt1_newreno_rto200
    mixed_dt8_newreno_rto200
}

/// Each file of results belongs to a case and is of the flow list that its name says.
#[test]
fn every_result_of_ns3_is_compared() {
    let mut files: Vec<String> = std::fs::read_dir(reference::folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("fct_"))
        .collect();
    let mut expected: Vec<String> = cases().map(|case| format!("fct_{case}.csv")).collect();
    files.sort();
    expected.sort();
    assert_eq!(files, expected);
    for case in cases() {
        let run = reference::run(&case).unwrap();
        assert_eq!(run.forwarded > 0, case.list != List::Isolated, "{case}");
    }
}
