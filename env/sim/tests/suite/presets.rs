//! Simulations of every preset: all flows complete, and the classes of the summary are filled.

use bufgym_sim::network::{Outcome, Summary};
use bufgym_sim::scenario::{PRESETS, Scenario};
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::{self, Trace};
use bufgym_util::rng::{Split, trace_seed};

/// Returns the preset with few and smaller flows, so that it takes little time with debug checks too.
fn short(name: &str) -> (Scenario, Trace) {
    let mut scenario = Scenario::preset(name).unwrap();
    for change in ["flows=200", "elephant_bytes=3000000", "measure_ms=10"] {
        scenario.set(change).unwrap();
    }
    if scenario.traffic.workload.count() > 1 {
        scenario.set("flows=40").unwrap();
    }
    scenario.validate().unwrap();
    let trace = traffic::generate(&scenario, trace_seed(Split::Train, 1, 0));
    (scenario, trace)
}

fn simulate(policy: &str, scenario: &Scenario, trace: &Trace) -> Outcome {
    let policy: PolicySpec = policy.parse().unwrap();
    policy.run(scenario, trace).unwrap()
}

#[test]
fn every_preset_runs_to_its_end() {
    for preset in PRESETS {
        let (scenario, trace) = short(preset.name);
        let policies = match scenario.has_lossless() {
            true => ["sonic", "reverie"],
            false => ["dt", "unlimited"],
        };
        for policy in policies {
            let summary = simulate(policy, &scenario, &trace).summary;
            assert_eq!(
                (summary.completed, summary.flows),
                (trace.flows.len() as u64, trace.flows.len() as u64),
                "{} under {policy}",
                preset.name
            );
            assert!(summary.mean_slowdown >= 1.0);
            assert_eq!(summary.drops_lossless, 0, "{}", preset.name);
            if policy == "unlimited" {
                assert_eq!(summary.drops, 0, "{}", preset.name);
            }
        }
    }
}

fn in_cast(outcome: &Outcome) -> Vec<f64> {
    let answers = outcome.records.iter().filter(|flow| flow.spec.query >= 0);
    let mut fcts: Vec<f64> = answers
        .filter_map(|flow| Some(flow.fct?.as_ms_f64()))
        .collect();
    fcts.sort_by(f64::total_cmp);
    fcts
}

#[test]
fn in_cast_flows_are_summarised_apart() {
    for name in ["ndt-96x10g-incast", "ndt-4to2-incast"] {
        let (scenario, trace) = short(name);
        let outcome = simulate("dt", &scenario, &trace);
        let fcts = in_cast(&outcome);
        let summary: &Summary = &outcome.summary;
        let mean = fcts.iter().sum::<f64>() / fcts.len() as f64;
        assert!((summary.incast_mean_fct_ms / mean - 1.0).abs() < 1e-9);
        let rank = (fcts.len() * 99).div_ceil(100);
        assert_eq!(summary.incast_p99_fct_ms, fcts[rank - 1]);
        assert!(summary.incast_mean_fct_ms != summary.mean_fct_ms);
    }
}

#[test]
fn without_in_cast_flows_there_is_no_value() {
    let (scenario, trace) = short("ndt-testbed-4x1g");
    let summary = simulate("dt", &scenario, &trace).summary;
    assert!(summary.incast_mean_fct_ms.is_nan() && summary.incast_p99_fct_ms.is_nan());
    let json = serde_json::to_value(&summary).unwrap();
    assert!(json["incast_mean_fct_ms"].is_null());
}

/// 95 answers of 64 kB are 6.3 MB on the wire, more than the buffer: the losses cost a timeout.
#[test]
fn the_in_cast_of_95_is_more_than_dt_can_take() {
    let (scenario, trace) = short("ndt-96x10g-incast");
    let dt = simulate("dt", &scenario, &trace).summary;
    let unlimited = simulate("unlimited", &scenario, &trace).summary;
    assert!(dt.drops_data > 0);
    assert!(dt.incast_mean_fct_ms > unlimited.incast_mean_fct_ms);
}
