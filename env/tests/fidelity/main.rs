//! This simulator against ns-3 3.37 on the same flows.
//!
//! `cargo run --release -p bufgym-env --example fidelity` writes the same comparison as a document.

mod cases;
mod comparison;
mod known_differences;
mod metrics;
mod reference;
mod simulation;

use cases::{COMPETING, Case, ISOLATED, List};
use comparison::{Comparison, Verdict};
use known_differences::KNOWN_DIFFERENCES;

/// The ratio of a known difference may be off by this much.
const RATIO_ROUNDING: f64 = 0.02;

/// The case called `name`.
fn named(cases: &[Case], name: &str) -> Case {
    *cases
        .iter()
        .find(|case| case.name() == name)
        .unwrap_or_else(|| panic!("there is no case {name}"))
}

/// Establishment and completion of every flow are equal to the nanosecond.
fn agrees_exactly(name: &str) {
    let case = named(&ISOLATED, name);
    let (ns3, ours) = (
        reference::run(&case).unwrap(),
        simulation::run(&case).unwrap(),
    );
    assert!(ns3.flows.len() >= 9);
    assert_eq!(ours.flows, ns3.flows, "{case}");
}

/// Every target is met or its difference is known, and no difference is known that is none.
fn agrees_on_average(name: &str) {
    let case = named(&COMPETING, name);
    let mut problems = Vec::new();
    let mut targets = 0;
    for row in Comparison::of(&case).unwrap().rows() {
        let Some(verdict) = row.verdict() else {
            continue;
        };
        targets += 1;
        let known = KNOWN_DIFFERENCES
            .iter()
            .find(|known| (known.0, known.1) == (name, row.metric));
        let problem = match (verdict, known) {
            (Verdict::Met, None) => continue,
            (Verdict::Met, Some(_)) => "is met: remove it from KNOWN_DIFFERENCES",
            (_, None) => "is missed",
            (_, Some((.., ratio, _))) if (row.ratio() - ratio).abs() <= RATIO_ROUNDING => continue,
            (_, Some(_)) => "is missed by another ratio than KNOWN_DIFFERENCES says",
        };
        problems.push(format!(
            "{}: {:.3} of ns-3's, the target of {} % {problem} ({verdict:?})",
            row.metric.name(),
            row.ratio(),
            100.0 * row.tolerance.unwrap_or(f64::NAN),
        ));
    }
    assert!(targets >= 4, "{case}: {targets} targets");
    assert!(problems.is_empty(), "{case}\n{}", problems.join("\n"));
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

cases! { agrees_exactly:
    isolated_newreno
    isolated_cubic
    isolated_dctcp
}

cases! { agrees_on_average:
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
    let cases: Vec<Case> = ISOLATED.into_iter().chain(COMPETING).collect();
    let mut files: Vec<String> = std::fs::read_dir(reference::folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("fct_"))
        .collect();
    let mut expected: Vec<String> = cases.iter().map(|case| format!("fct_{case}.csv")).collect();
    files.sort();
    expected.sort();
    assert_eq!(files, expected);
    for case in &cases {
        let run = reference::run(case).unwrap();
        assert_eq!(run.forwarded > 0, case.list != List::Isolated, "{case}");
    }
}

/// A case that is misspelt in the table would never be looked up.
#[test]
fn known_differences_are_of_cases_with_such_a_target() {
    for (name, metric, _, reason) in KNOWN_DIFFERENCES {
        let case = named(&COMPETING, name);
        assert!(case.tolerance(*metric).is_some(), "{case}");
        assert!(!reason.is_empty());
    }
}
