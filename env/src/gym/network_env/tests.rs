use super::*;
use crate::control::ControlOptions;
use crate::gym::{BufferEnv, Env, TraceSequence};
use bufgym_sim::scenario::Scenario;
use bufgym_util::rng::stream;

const PLAIN: ResetOptions = ResetOptions { trace: None };

/// A small network with little time of traffic.
fn network(changes: &[&str]) -> BufferEnvOptions {
    let mut scenario = Scenario::preset("leafspine-4x4").unwrap();
    for setting in ["warmup_ms=0", "measure_ms=1", "load=0.1", "query_rate=1500"]
        .iter()
        .chain(changes)
    {
        scenario.set(setting).unwrap();
    }
    BufferEnvOptions {
        scenario,
        control: ControlOptions {
            low_level: "dt+early".parse().unwrap(),
            ..ControlOptions::default()
        },
        ..BufferEnvOptions::default()
    }
}

fn env(changes: &[&str]) -> NetworkEnv {
    NetworkEnv::new(network(changes)).unwrap()
}

/// Returns all data of the agents in an episode of random actions, with the turns.
fn play(env: &mut impl MultiAgentEnv, mut turn: Turn, seed: u64) -> Vec<(Turn, Vec<f32>, Info)> {
    let mut rng = stream(seed, "actions", 0);
    let mut told = Vec::new();
    while let Turn::Agent(agent) = turn {
        told.push((
            turn,
            env.observation(agent).to_vec(),
            env.info(agent).clone(),
        ));
        let action = env.action_space(agent).sample(&mut rng);
        turn = env.step(&action).unwrap();
    }
    for agent in 0..env.agents() {
        told.push((
            turn,
            env.observation(agent).to_vec(),
            env.info(agent).clone(),
        ));
    }
    told
}

#[test]
fn traces_without_flows_are_passed_over() {
    let rare = ["query_rate=30", "load=0.001"];
    let mut env = env(&rare);
    let reset = |env: &mut NetworkEnv| env.reset(None, &PLAIN).map(|_| env.episodes.next);
    let tried = [0; 3].map(|_| reset(&mut env).unwrap());
    let scenario = Scenario::clone(&env.options().scenario);
    let empty = |index| {
        let seed = env.options().traces.trace_seed(index);
        bufgym_sim::traffic::generate(&scenario, seed)
            .flows
            .is_empty()
    };
    assert!((0..tried[2]).any(empty));
    // A sequence of nothing else says so.
    let mut none = network(&["query_rate=0", "load=0.001"]);
    none.traces.traces = Some(3);
    let error = NetworkEnv::<LeafSpine>::new(none)
        .unwrap()
        .reset(None, &PLAIN);
    let error = error.unwrap_err();
    assert!(
        matches!(
            error,
            EnvError::NoDecision {
                tried: 3,
                empty: 3,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn every_switch_has_its_own_spaces() {
    let env = env(&[]);
    let ports = |agent: usize| env.action_space(agent).shape()[0];
    let all: Vec<usize> = (0..env.agents()).map(ports).collect();
    assert_eq!(all, [6, 6, 6, 6, 4, 4]);
    assert_eq!(env.observation_space(0).shape(), [6, 8, 5]);
    assert_eq!(env.privileged_space(5).shape(), [4, 22]);
    assert_eq!(env.action_space(5).shape(), [4, 2]);
}

#[test]
fn one_switch_is_the_environment_of_one_switch() {
    let mut scenario = Scenario::default();
    for setting in ["flows=12..24", "buffer_bytes=200000"] {
        scenario.set(setting).unwrap();
    }
    let options = BufferEnvOptions {
        scenario,
        ..BufferEnvOptions::default()
    };
    let mut network: NetworkEnv<OneSwitch> = NetworkEnv::new(options.clone()).unwrap();
    let mut alone = BufferEnv::new(options).unwrap();
    let mut rng = stream(4, "actions", 0);
    for _ in 0..3 {
        let mut turn = network.reset(None, &PLAIN).unwrap();
        let begun = alone.reset(None, &PLAIN).unwrap();
        assert_eq!(network.info(0), begun.info);
        while turn == Turn::Agent(0) {
            let action = alone.action_space().sample(&mut rng);
            turn = network.step(&action).unwrap();
            let step = alone.step(&action).unwrap();
            assert_eq!(network.observation(0), step.observation);
            assert_eq!(network.reward(0), step.reward);
            assert_eq!(network.info(0).port_rewards, step.info.port_rewards);
            assert_eq!(network.info(0).privileged, step.info.privileged);
            assert_eq!(turn == Turn::Terminated, step.terminated);
            assert_eq!(network.episode(), step.info.episode.as_ref());
        }
        assert_eq!(network.snapshot(), crate::gym::Resumable::snapshot(&alone));
    }
}

#[test]
fn several_switches_have_turns() {
    let mut env = env(&[]);
    let turn = env.reset(Some(1), &PLAIN).unwrap();
    let told = play(&mut env, turn, 1);
    let mut turns = vec![0; env.agents()];
    let agents = told.iter().filter_map(|(turn, _, _)| match turn {
        Turn::Agent(agent) => Some(*agent),
        _ => None,
    });
    agents.for_each(|agent| turns[agent] += 1);
    assert!(
        turns.iter().filter(|&&turns| turns > 1).count() > 1,
        "{turns:?}"
    );
    let stats = env.episode().unwrap();
    assert_eq!(stats.decisions, turns.iter().sum::<u64>());
    assert_eq!(stats.completed, stats.flows);
}

#[test]
fn an_interval_lasts_from_turn_to_turn_of_the_same_switch() {
    let mut env = env(&[]);
    let mut turn = env.reset(Some(2), &PLAIN).unwrap();
    let mut last = vec![None; env.agents()];
    let mut sum = 0.0;
    loop {
        let now = env.control().unwrap().simulator().now();
        let closed: Vec<usize> = match turn {
            Turn::Agent(agent) => vec![agent],
            _ => (0..env.agents()).collect(),
        };
        for agent in closed {
            match last[agent] {
                Some(before) => assert_eq!(env.info(agent).elapsed, now - before),
                None => assert_eq!((env.reward(agent), env.info(agent).discount), (0.0, 1.0)),
            }
            let parts = &env.info(agent).port_rewards;
            let total: f64 = parts.iter().map(|&part| f64::from(part)).sum();
            assert!((total - env.reward(agent)).abs() < 1e-3 * (1.0 + total.abs()));
            sum += env.reward(agent);
        }
        let Turn::Agent(agent) = turn else { break };
        last[agent] = Some(now);
        turn = env.step(&vec![0.3; env.action_space(agent).len()]).unwrap();
    }
    assert_eq!(turn, Turn::Terminated);
    assert!((env.episode().unwrap().return_ - sum).abs() < 1e-9 * sum.abs());
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    let told = |seed| {
        let mut env = env(&[]);
        let turn = env.reset(Some(seed), &PLAIN).unwrap();
        play(&mut env, turn, 9)
    };
    assert_eq!(told(3), told(3));
    assert_ne!(told(3), told(4));
}

#[test]
fn a_limit_of_decisions_truncates_for_all() {
    let mut env = env(&["max_decisions=5"]);
    let turn = env.reset(Some(1), &PLAIN).unwrap();
    let told = play(&mut env, turn, 0);
    assert_eq!(told.last().unwrap().0, Turn::Truncated);
    assert_eq!(env.episode().unwrap().decisions, 5);
    let error = env.step(&[0.0; 12]).unwrap_err();
    assert!(matches!(error, EnvError::ResetNeeded(_)));
}

#[test]
fn a_restored_environment_goes_on_as_the_first() {
    let mut first = env(&[]);
    let mut turn = first.reset(Some(5), &PLAIN).unwrap();
    for step in 0..7 {
        let Turn::Agent(agent) = turn else {
            panic!("it ended after {step} decisions")
        };
        let width = first.action_space(agent).len();
        turn = first.step(&vec![0.1 * step as f32; width]).unwrap();
    }
    let snapshot = first.snapshot();
    let mut second = env(&[]);
    assert_eq!(second.restore(&snapshot).unwrap(), Some(turn));
    assert_eq!(second.snapshot(), snapshot);
    assert_eq!(play(&mut first, turn, 6), play(&mut second, turn, 6));
    assert_eq!(first.episode(), second.episode());

    let mut other = env(&["buffer_bytes_per_port_gbps=5"]);
    assert!(matches!(
        other.restore(&snapshot),
        Err(EnvError::Snapshot(_))
    ));
    let mut damaged = snapshot;
    damaged.episode.as_mut().unwrap().actions.pop();
    assert!(matches!(
        second.restore(&damaged),
        Err(EnvError::Snapshot(_))
    ));
}

#[test]
fn a_wrong_action_changes_nothing() {
    let mut env = env(&[]);
    assert!(matches!(
        env.step(&[0.0; 12]),
        Err(EnvError::ResetNeeded(_))
    ));
    let turn = env.reset(Some(1), &PLAIN).unwrap();
    let before = env.snapshot();
    assert!(matches!(
        env.step(&[0.0; 3]),
        Err(EnvError::InvalidAction(_))
    ));
    assert_eq!(env.snapshot(), before);
    let Turn::Agent(agent) = turn else { panic!() };
    assert!(env.step(&vec![0.0; env.action_space(agent).len()]).is_ok());
}

#[test]
fn workers_play_different_traces() {
    let of = |worker| {
        let traces = TraceSequence::default().worker(worker, 2);
        let options = BufferEnvOptions {
            traces,
            ..network(&[])
        };
        let mut env: NetworkEnv = NetworkEnv::new(options).unwrap();
        env.reset(None, &PLAIN).unwrap();
        env.snapshot().episode.unwrap().index
    };
    assert_eq!([of(0), of(1)], [0, 1]);
}

#[test]
fn a_single_switch_is_no_network() {
    let error = NetworkEnv::<OneSwitch>::new(network(&[])).unwrap_err();
    assert!(error.to_string().contains("topology"), "{error}");
}

#[test]
fn what_agents_were_told_does_not_outlast_a_restore() {
    let unborn = env(&[]).snapshot();
    let mut env = env(&["max_decisions=3"]);
    let untouched = env.snapshot();
    let turn = env.reset(Some(1), &PLAIN).unwrap();
    play(&mut env, turn, 0);
    assert!(matches!(env.restore(&unborn), Err(EnvError::Snapshot(_))));
    assert!(
        env.episode().is_some(),
        "a refused snapshot changes nothing"
    );
    assert_eq!(env.restore(&untouched).unwrap(), None);
    assert_eq!(env.episode(), None);
    for agent in 0..env.agents() {
        assert_eq!((env.reward(agent), env.info(agent).discount), (0.0, 1.0));
        assert!(env.info(agent).privileged.iter().all(|value| *value == 0.0));
        assert!(env.observation(agent).iter().all(|value| *value == 0.0));
    }
}

#[test]
fn a_network_is_no_single_switch() {
    let error = NetworkEnv::<LeafSpine>::new(BufferEnvOptions::default()).unwrap_err();
    assert!(error.to_string().contains("topology"), "{error}");
}

/// Forks with equal actions differ in nothing, and the environment that they come from goes on as if they were not.
#[test]
fn forks_with_equal_actions_are_equal() {
    let mut env = env(&[]);
    let mut turn = env.reset(Some(3), &PLAIN).unwrap();
    for _ in 0..5 {
        let Turn::Agent(agent) = turn else { break };
        let action = vec![0.3; env.action_space(agent).len()];
        turn = env.step(&action).unwrap();
    }
    assert!(matches!(turn, Turn::Agent(_)), "the episode goes on");
    let told = |mut fork: Box<dyn MultiAgentEnv>, seed| {
        let mut rng = stream(seed, "actions", 0);
        let (mut turn, mut told) = (turn, Vec::new());
        while let Turn::Agent(agent) = turn {
            told.push((
                turn,
                fork.observation(agent).to_vec(),
                fork.info(agent).clone(),
            ));
            let action = fork.action_space(agent).sample(&mut rng);
            turn = fork.step(&action).unwrap();
        }
        told
    };
    let (one, other) = (told(env.fork(), 1), told(env.fork(), 1));
    assert_eq!(one, other);
    assert_ne!(one, told(env.fork(), 2));
    let itself = play(&mut env, turn, 1);
    assert_eq!(itself[..one.len()], one);
}
