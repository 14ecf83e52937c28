//! Decisions that set the control factors of both sides of a switch with lossless packets.

use bufgym_sim::network::LeafSpine;

use super::*;

fn lossless() -> (Scenario, Trace) {
    let mut scenario = Scenario::preset("reverie-4x4").unwrap();
    scenario.set("measure_ms=4").unwrap();
    let trace = generate(&scenario, 3);
    (scenario, trace)
}

fn options(objective: &str, low_level: &str) -> ControlOptions {
    ControlOptions {
        objective: objective.parse().unwrap(),
        low_level: low_level.parse().unwrap(),
        tau_s: 1e9,
        ..ControlOptions::default()
    }
}

/// A controller that sets the same two levels on every port at every decision.
struct Levels([usize; 2]);

impl Controller for Levels {
    fn act(&mut self, _observation: &[f32], _ports: usize, action: &mut [f32]) {
        for levels in action.chunks_exact_mut(2) {
            levels.copy_from_slice(&self.0.map(cell_centre));
        }
    }

    fn outputs(&self) -> usize {
        2
    }
}

/// With α = 1 the results equal those of the policy alone, whatever the trigger does. With other factors from the first
/// decision on, they differ.
#[test]
fn levels_that_never_change_are_the_policy_with_these_factors() {
    let (scenario, trace) = lossless();
    let same = |a: &Outcome, b: &Outcome| {
        let fcts = |run: &Outcome| run.records.iter().map(|r| r.fct).collect::<Vec<_>>();
        fcts(a) == fcts(b) && a.pauses == b.pauses && a.summary.drops == b.summary.drops
    };
    for low_level in ["reverie", "reverie:gamma=0.9", "sonic", "sonic-abm"] {
        let control = RunOptions {
            control: options("fct", low_level),
            ..RunOptions::default()
        };
        let run = |levels| run_controlled(&scenario, &trace, &mut Levels(levels), &control);
        let spec: PolicySpec = low_level.parse().unwrap();
        let alone = spec.run(&scenario, &trace).unwrap();
        let controlled = run([2, 2]).unwrap();
        assert!(controlled.summary.decisions > 50, "{low_level}");
        assert!(same(&controlled, &alone), "{low_level}");
        assert!(!same(&run([0, 2]).unwrap(), &alone), "{low_level}: egress");
        assert!(!same(&run([2, 0]).unwrap(), &alone), "{low_level}: ingress");
    }
}

/// Factors are per port and side. Decisions with given factors have the same effect as the policy with these factors.
#[test]
fn factors_are_those_of_the_policy_from_the_start() {
    let (scenario, trace) = lossless();
    let control = options("fct", "sonic");
    let mut env = ControlEnv::<LeafSpine>::in_network(&scenario, &trace, &control).unwrap();
    for at in (0..env.switches()).map(switch_id) {
        let ports = env.ports_of(at);
        let (switch, _) = env.simulator.switch_and_observer(at);
        // Levels 4 and 0 are α = 4 and α = 1/4.
        apply_second(
            switch,
            ActionSet::AlphaIngress,
            &vec![4; ports],
            &vec![0; ports],
        );
    }
    let action = |ports: usize| [cell_centre(4), cell_centre(0)].repeat(ports);
    while env.advance() == StopReason::Decision {
        env.act(&action(env.ports()));
    }
    let spec: PolicySpec = "sonic:alpha_i=0.25,alpha_e=4".parse().unwrap();
    let expected = spec.run(&scenario, &trace).unwrap();
    let found = env.outcome();
    assert_eq!(found.pauses, expected.pauses);
    assert_eq!(found.summary.drops, expected.summary.drops);
    assert!(!expected.pauses.is_empty() && expected.summary.drops > 0);
}

/// At every decision the second feature is the use of the port's lossless ingress, and the fourth is the share of the
/// interval for which it has paused its neighbour. At the end these add up to the pauses of the run.
#[test]
fn the_ingress_and_its_pauses_are_observed_and_paid_for() {
    let (scenario, trace) = lossless();
    let control = options("paused", "sonic");
    let mut env = ControlEnv::<LeafSpine>::in_network(&scenario, &trace, &control).unwrap();
    assert_eq!(
        env.observation_of(SwitchId(0))[3],
        0.0,
        "nothing is paused at first"
    );
    let (mut observed, mut paid, mut lengths) = (0.0, 0.0, 0);
    let mut last = vec![Instant::ZERO; env.switches()];
    loop {
        let stop = env.advance();
        let ended = match stop {
            StopReason::Decision => vec![env.at()],
            _ => (0..env.switches()).map(switch_id).collect(),
        };
        for at in ended {
            let scale = 0.010 * env.ports_of(at) as f64;
            paid -= env.reward_of(at).total * scale;
        }
        if stop != StopReason::Decision {
            break;
        }
        let at = env.at();
        let (now, switch_now) = (env.simulator.now(), env.simulator.switch_now(at));
        let switch = env.simulator.switch(at);
        let beta = env.agents[at.index()].scale.units.beta as f64;
        for (port, history) in env
            .observation()
            .chunks_exact(HISTORY * FEATURES)
            .enumerate()
        {
            let newest = &history[(HISTORY - 1) * FEATURES..];
            let used = switch.ingress_use(port, switch_now);
            assert_eq!(newest[1], log_scaled(used.bytes as f64 / beta));
            lengths += usize::from(newest[1] > 0.0);
            observed += f64::from(newest[3]) * (now - last[at.index()]).as_secs_f64();
        }
        last[at.index()] = now;
        env.act(&[cell_centre(2), cell_centre(0)].repeat(env.ports()));
    }
    let outcome = env.outcome();
    let paused = outcome.pauses.iter().map(|pause| match pause.to {
        Some(to) => (to - pause.from).as_secs_f64(),
        None => 0.0,
    });
    let paused: f64 = paused.sum();
    let pauses = outcome.pauses.len();
    assert!(
        lengths > 20 && pauses > 50,
        "{lengths} lengths, {pauses} pauses"
    );
    assert!((paid / paused - 1.0).abs() < 1e-4, "{paid} of {paused}");
    assert!(
        observed > 0.3 * paused && observed <= 1.0001 * paused,
        "{observed} of {paused}"
    );
}

/// Only answers to queries are charged for their slowdown.
#[test]
fn only_answers_to_queries_count_as_in_casts() {
    let (scenario, mut trace) = lossless();
    let cost = |trace: &Trace, objective: &str| {
        let control = options(objective, "reverie");
        let mut env = ControlEnv::<LeafSpine>::in_network(&scenario, trace, &control).unwrap();
        let mut total = 0.0;
        loop {
            let stop = env.advance();
            if stop != StopReason::Decision {
                let all = (0..env.switches()).map(switch_id);
                return total - all.map(|at| env.reward_of(at).total).sum::<f64>();
            }
            total -= env.reward().total;
            env.act(&[cell_centre(2), cell_centre(2)].repeat(env.ports()));
        }
    };
    let of_all = cost(&trace, "slowdown");
    let of_answers = cost(&trace, "incast");
    assert!(
        0.0 < of_answers && of_answers < of_all,
        "{of_answers} {of_all}"
    );
    let mixed = cost(&trace, "slowdown=1,incast=1");
    assert!(
        (mixed - of_all - of_answers).abs() < 0.01 * of_all,
        "{mixed}"
    );
    trace.flows.retain(|flow| flow.query < 0);
    assert_eq!(cost(&trace, "incast"), 0.0);
    assert!(cost(&trace, "slowdown") > 0.0);
}
