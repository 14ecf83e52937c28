//! Decisions that set early drop in addition to α.

use super::*;
use bufgym_sim::network::Outcome;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::switch::aqm::early::GAPS;

fn crowded() -> (Scenario, Trace) {
    let scenario = small();
    let trace = generate(&scenario, 5);
    (scenario, trace)
}

fn over(low_level: &str) -> ControlOptions {
    ControlOptions {
        low_level: low_level.parse().unwrap(),
        ..ControlOptions::default()
    }
}

fn times(outcome: &Outcome) -> (Vec<Option<Duration>>, u64) {
    let times = outcome.records.iter().map(|record| record.fct).collect();
    (times, outcome.summary.drops)
}

/// Runs with the same levels of α and of early drop throughout.
fn fixed(low_level: &str, alpha: usize, early: Option<usize>) -> Outcome {
    let (scenario, trace) = crowded();
    let mut env = ControlEnv::new(&scenario, &trace, &over(low_level)).unwrap();
    let levels = [Some(alpha), early].into_iter().flatten().map(cell_centre);
    let action: Vec<f32> = levels.collect::<Vec<f32>>().repeat(16);
    env.simulator.policy_mut().apply(&[alpha as u8; 16]);
    if let Some(early) = early {
        env.simulator.set_early_drop(&[early as u8; 16]);
    }
    while env.advance() == StopReason::Decision {
        env.act(&action);
    }
    env.outcome()
}

fn rule(policy: &str) -> Outcome {
    let (scenario, trace) = crowded();
    let spec: PolicySpec = policy.parse().unwrap();
    spec.run(&scenario, &trace).unwrap()
}

#[test]
fn without_early_drop_it_is_the_control_of_alpha() {
    for heuristic in ["dt", "fab", "occamy"] {
        let off = fixed(&format!("{heuristic}+early"), 4, Some(0));
        assert_eq!(
            times(&off),
            times(&fixed(heuristic, 4, None)),
            "{heuristic}"
        );
    }
}

#[test]
fn a_fixed_level_is_the_rule_with_its_gap() {
    for (heuristic, finest, level, gap) in [
        ("dt", "", 1, GAPS[1]),
        ("dt", "", 7, GAPS[7]),
        ("fab", "", 4, GAPS[4]),
        ("dt", ":finest=4", 7, 4),
        ("fab", ":finest=32", 6, 64),
    ] {
        let found = fixed(&format!("{heuristic}+early{finest}"), 3, Some(level));
        let expected = rule(&format!("{heuristic}:alpha=2+early:gap={gap}"));
        assert_eq!(times(&found), times(&expected), "{heuristic} {level}");
        assert_ne!(times(&found), times(&rule(&format!("{heuristic}:alpha=2"))));
    }
}

/// With drops from the front, no flow loses the last of its queued packets. Such a loss would end in a timeout.
#[test]
fn a_loss_from_the_front_is_followed_by_packets_that_tell_of_it() {
    let [back, front] = ["back", "front"].map(|from| {
        let outcome = rule(&format!("dt:alpha=32+early:gap=32,from={from}"));
        assert!(outcome.summary.drops > 0, "{from}");
        outcome.summary.timeouts
    });
    assert!(2 * front < back, "{front} and {back} timeouts");
    let found = fixed("dt+early:from=front", 3, Some(5));
    assert_eq!(
        times(&found),
        times(&rule("dt:alpha=2+early:gap=64,from=front"))
    );
}

/// With `spare`, fewer packets of flows that fab counts as short are lost.
#[test]
fn the_first_bytes_of_a_flow_are_spared() {
    let spared = rule("fab:alpha=32+early:gap=16,min_bytes=0");
    let others = rule("fab:alpha=32+early:gap=16,min_bytes=0,spare=no");
    assert_ne!(times(&spared), times(&others));
    let timeouts = [spared, others].map(|outcome| outcome.summary.timeouts);
    assert!(timeouts[0] < timeouts[1], "{timeouts:?}");
}

#[test]
fn a_fork_continues_as_its_origin() {
    let (scenario, trace) = crowded();
    let mut env = ControlEnv::new(&scenario, &trace, &over("dt+early")).unwrap();
    assert_eq!((env.outputs(), env.actions()), (2, ActionSet::AlphaEarly));
    let action: Vec<f32> = (0..32).map(|k| cell_centre(k * 5 % 8)).collect();
    for _ in 0..10 {
        assert_eq!(env.advance(), StopReason::Decision);
        env.act(&action);
    }
    let mut fork = env.clone();
    let finish = |env: &mut ControlEnv| {
        while env.advance() == StopReason::Decision {
            env.act(&action);
        }
        times(&env.outcome())
    };
    assert_eq!(finish(&mut env), finish(&mut fork));
}

/// A decision reaches early drop as late as it reaches α.
#[test]
fn a_late_decision_sets_early_drop_late() {
    let (mut scenario, trace) = crowded();
    let mut run = |latency: u64| {
        scenario.control.decision_latency_us = latency;
        let mut env = ControlEnv::new(&scenario, &trace, &over("dt+early")).unwrap();
        let action = [cell_centre(5), cell_centre(7)].repeat(16);
        while env.advance() == StopReason::Decision {
            env.act(&action);
        }
        times(&env.outcome())
    };
    assert_ne!(run(0), run(500));
}

#[test]
#[should_panic(expected = "one action per port and output")]
fn an_action_without_early_drop_is_refused() {
    let (scenario, trace) = crowded();
    let mut env = ControlEnv::new(&scenario, &trace, &over("dt+early")).unwrap();
    env.advance();
    env.act(&[0.0; 16]);
}
