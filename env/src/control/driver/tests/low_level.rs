//! The control over other heuristics than Dynamic Threshold.

use super::*;
use bufgym_sim::network::Outcome;
use bufgym_sim::switch::policy::{EnhancedDynamicThreshold, EnhancedDynamicThresholdConfig};

type Run = (Scenario, Trace);

/// Flow completion times and losses.
fn results(outcome: &Outcome) -> (Vec<Option<Duration>>, [u64; 3]) {
    let summary = &outcome.summary;
    (
        outcome.records.iter().map(|record| record.fct).collect(),
        [summary.drops, summary.dropped_bytes, summary.pushed_out],
    )
}

/// Runs the control with the same α at every decision and before the first.
fn controlled((scenario, trace): &Run, low_level: &LowLevelPolicy, index: usize) -> Outcome {
    let options = ControlOptions {
        low_level: low_level.clone(),
        ..ControlOptions::default()
    };
    let mut env = ControlEnv::new(scenario, trace, &options).unwrap();
    env.simulator.policy_mut().apply(&[index as u8; 16]);
    while env.advance() == StopReason::Decision {
        env.act(&[cell_centre(index); 16]);
    }
    env.outcome()
}

/// Runs the heuristic itself with that α.
fn alone((scenario, trace): &Run, low_level: &LowLevelPolicy, alpha: f64) -> Outcome {
    let policy = low_level
        .policy()
        .clone()
        .with("alpha", &alpha.to_string())
        .unwrap();
    policy.run(scenario, trace).unwrap()
}

/// A trace with flows of three priorities that loses packets in a switch with these settings.
fn crowded(settings: &[&str]) -> Run {
    let mut scenario = small();
    settings.iter().for_each(|text| scenario.set(text).unwrap());
    let mut trace = generate(&scenario, 5);
    for (flow, spec) in trace.flows.iter_mut().enumerate() {
        spec.priority = (flow % 3) as u8;
    }
    (scenario, trace)
}

/// Settings for one queue per port, and for several.
const SWITCHES: [&[&str]; 3] = [
    &["queues_per_port=1"],
    &["queues_per_port=3", "scheduler=strict", "min_rto_us=10000"],
    &["queues_per_port=2", "scheduler=drr", "overhead_bytes=20"],
];

fn named(name: &str) -> LowLevelPolicy {
    name.parse().unwrap()
}

/// Returns the heuristics with one α per port.
fn of_egress() -> impl Iterator<Item = LowLevelPolicy> {
    LowLevelPolicy::all().filter(|low_level| !low_level.is_lossless())
}

#[test]
fn a_fixed_alpha_is_the_low_level_heuristic() {
    for settings in SWITCHES {
        let run = crowded(settings);
        for low_level in of_egress() {
            for index in [1, 2, 4] {
                // Built with another α, EDT derives other parameters from it too.
                if low_level == named("edt") && index != 2 {
                    continue;
                }
                let outcome = controlled(&run, &low_level, index);
                let expected = alone(&run, &low_level, ALPHAS[index]);
                assert_eq!(
                    results(&outcome),
                    results(&expected),
                    "{low_level} {index} {settings:?}"
                );
                let (drops, decisions) = (outcome.summary.drops, outcome.summary.decisions);
                assert!(
                    drops > 0 && decisions > 10,
                    "{low_level}: {drops} {decisions}"
                );
            }
        }
    }
}

/// C2 and T1 stay as for α = 1, with which EDT is built.
#[test]
fn only_the_alpha_of_edt_is_set() {
    let run = crowded(&[]);
    let (scenario, trace) = &run;
    let (ports, rate) = (scenario.port_count(), scenario.rate());
    let suggested = |alpha| {
        let bytes = scenario.network.buffer_bytes;
        EnhancedDynamicThresholdConfig::suggested(alpha, bytes, ports, rate)
    };
    let with = |config| {
        let policy = EnhancedDynamicThreshold::new(config, ports);
        results(&Simulator::new(scenario, trace, policy).unwrap().run())
    };
    let found = results(&controlled(&run, &named("edt"), 4));
    let expected = with(EnhancedDynamicThresholdConfig {
        alpha: ALPHAS[4],
        ..suggested(1.0)
    });
    assert_eq!(found, expected);
    assert_ne!(found, with(suggested(ALPHAS[4])));
    assert_ne!(found, with(suggested(1.0)));
}

/// Every heuristic has results of its own, and they depend on α.
#[test]
fn heuristics_and_their_alpha_matter() {
    let run = crowded(&["flows=200"]);
    let mut seen: Vec<(LowLevelPolicy, usize, _)> = Vec::new();
    for low_level in of_egress() {
        for index in [2, 5] {
            let result = results(&controlled(&run, &low_level, index));
            for (other, at, before) in &seen {
                assert_ne!(&result, before, "{low_level} {index} and {other} {at}");
            }
            seen.push((low_level.clone(), index, result));
        }
    }
    let summary = controlled(&run, &named("occamy"), 5).summary;
    assert!(summary.pushed_out > 0, "{summary:?}");
}

/// Runs with varying α by port and decision; returns all observations and rewards.
fn varied((scenario, trace): &Run, low_level: &LowLevelPolicy) -> (Vec<f32>, Outcome) {
    let options = ControlOptions {
        low_level: low_level.clone(),
        objective: "fct=1,delay=0.1".parse().unwrap(),
        ..ControlOptions::default()
    };
    let mut env = ControlEnv::new(scenario, trace, &options).unwrap();
    let mut seen = Vec::new();
    while env.advance() == StopReason::Decision {
        seen.extend_from_slice(env.observation());
        seen.push(env.reward().total as f32);
        let turn = env.decisions() as usize;
        let action: Vec<f32> = (0..16).map(|port| cell_centre((port + turn) % 8)).collect();
        env.act(&action);
    }
    (seen, env.outcome())
}

#[test]
fn the_same_decisions_have_the_same_results() {
    let run = crowded(&["queues_per_port=2"]);
    let mut seen = Vec::new();
    for low_level in of_egress() {
        let (first, outcome) = varied(&run, &low_level);
        let (second, again) = varied(&run, &low_level);
        assert_eq!(first, second, "{low_level}");
        assert_eq!(results(&outcome), results(&again), "{low_level}");
        assert!(outcome.summary.completed == 60, "{low_level}");
        let ports_alike = results(&controlled(&run, &low_level, 2));
        assert_ne!(results(&outcome), ports_alike, "{low_level}");
        seen.push(first);
    }
    assert!((1..seen.len()).all(|at| !seen[..at].contains(&seen[at])));
}

/// A heuristic that pushes out is refused in a scenario without push-out, as without the control.
#[test]
fn what_the_heuristic_cannot_do_is_said() {
    let (scenario, trace) = crowded(&["count_in_service=false", "ecn_uncounted_packets=2"]);
    let error = |low_level| {
        let options = ControlOptions {
            low_level,
            ..ControlOptions::default()
        };
        ControlEnv::new(&scenario, &trace, &options)
            .err()
            .map(|error| error.to_string())
    };
    assert_eq!(error(LowLevelPolicy::dt()), None);
    let message = error(named("occamy")).unwrap();
    assert!(message.contains("ecn_uncounted_packets=0"), "{message}");
}
