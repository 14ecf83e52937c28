use bufgym_util::rng::stream;

use super::*;
use crate::gym::testing::{Relay, on_threads};
use crate::gym::{MakeOptions, MultiAgentEnv, NetworkEnv, Space, make_network_vec};

const PLAIN: ResetOptions = ResetOptions { trace: None };

/// Relays that end after 1, 4 and 6 steps, at episodes 0, 1 and 2.
fn relays(mode: AutoresetMode) -> (MultiAgentVectorEnv<Relay>, MultiAgentBuffers) {
    let envs = [1, 4, 6].map(Relay::new).to_vec();
    let mut envs = MultiAgentVectorEnv::new(envs, mode).unwrap();
    let mut buffers = envs.buffers();
    envs.reset(VectorSeed::From(0), &PLAIN, &mut buffers)
        .unwrap();
    (envs, buffers)
}

/// Returns an action with the same value on every port of every agent.
fn every(value: f32) -> Vec<f32> {
    vec![value; 3 * 3 * 2]
}

#[test]
fn the_layout_has_room_for_the_agent_with_the_most_ports() {
    let (envs, buffers) = relays(AutoresetMode::NextStep);
    let layout = envs.layout();
    assert_eq!(
        (layout.envs, layout.agents(), layout.max_ports()),
        (3, 3, 2)
    );
    assert_eq!(layout.ports, [2, 1, 1]);
    assert_eq!(
        (
            &layout.observation[..],
            &layout.action[..],
            &layout.privileged[..]
        ),
        (&[2][..], &[][..], &[1][..])
    );
    assert_eq!(buffers.observations.len(), 3 * 3 * 2 * 2);
    assert_eq!(buffers.privileged.len(), 3 * 3 * 2);
    assert_eq!(buffers.port_rewards.len(), 3 * 3 * 2);
    assert_eq!(buffers.rewards.len(), 3 * 3);
    assert_eq!(buffers.infos.len(), 3);
}

#[test]
fn reset_fills_the_rows_in_order() {
    let (_, buffers) = relays(AutoresetMode::NextStep);
    // The order of turns is 0 1 0 1 2, beginning at the number of the episode.
    assert_eq!(buffers.turns, [0, 1, 0]);
    let blank = [0.0; 4];
    assert_eq!(buffers.observations[12..16], blank, "agent 0 of the second");
    assert_eq!(
        buffers.observations[16..20],
        [1.0, 0.0, 0.0, 0.0],
        "agent 1, with one port"
    );
    assert_eq!(buffers.observation(1, 1), [1.0, 0.0]);
    assert_eq!(buffers.observation(2, 0), [2.0, 0.0, 2.0, 0.0]);
    assert_eq!(buffers.resets, [true; 3]);
    assert_eq!(buffers.rewards, [0.0; 9]);
    assert_eq!(buffers.discounts, [1.0; 9]);
    assert_eq!(buffers.ended, [false; 9]);
}

#[test]
fn a_step_writes_the_rows_of_the_agent_whose_turn_comes() {
    let envs = vec![Relay::new(9)];
    let mut envs = MultiAgentVectorEnv::new(envs, AutoresetMode::NextStep).unwrap();
    let mut buffers = envs.buffers();
    envs.reset(VectorSeed::From(0), &PLAIN, &mut buffers)
        .unwrap();
    // Agent 0 decides; the rows of the others are not read.
    let only = [0.25, 0.5, f32::NAN, f32::NAN, f32::NAN, f32::NAN];
    envs.step(&only, &mut buffers).unwrap();
    assert_eq!(buffers.turns, [1]);
    assert_eq!(
        buffers.ended, [false; 3],
        "the first turn of agent 1 ends no interval"
    );
    assert_eq!(buffers.privileged, [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    // Agent 1 has one port: the values after it are not read either.
    let only = [f32::NAN, f32::NAN, 0.75, f32::NAN, f32::NAN, f32::NAN];
    envs.step(&only, &mut buffers).unwrap();
    assert_eq!(buffers.turns, [0]);
    assert_eq!(buffers.ended, [true, false, false]);
    assert_eq!(buffers.observation(0, 0), [0.0, 0.25, 0.0, 0.5]);
    assert_eq!(
        buffers.port_rewards(0, 0),
        [0.5, 1.0],
        "two steps of 0.25 and 0.5"
    );
    assert_eq!(buffers.rewards, [1.5, 0.0, 0.0]);
    assert_eq!(buffers.discounts, [0.25, 1.0, 1.0]);
    assert_eq!(buffers.entropy_weights, [1.0, 0.0, 0.0]);
    assert_eq!(buffers.elapsed_ps, [2_000_000_000, 0, 0]);
    assert_eq!(
        buffers.observations[4..8],
        [0.0; 4],
        "agent 1 keeps its rows"
    );
    // The environment runs to the next turn of agent 1: the rows of agent 0 stay, and its interval is not a new one.
    envs.step(&every(0.0)[..6], &mut buffers).unwrap();
    assert_eq!(buffers.ended, [false, true, false]);
    assert_eq!(buffers.rewards, [1.5, 1.5, 0.0]);
    assert_eq!(buffers.observation(0, 1), [0.0, 0.75]);
    assert_eq!(buffers.observations[6..8], [0.0; 2], "padding");
}

#[test]
fn next_step_semantics() {
    let (mut envs, mut buffers) = relays(AutoresetMode::NextStep);
    envs.step(&every(0.5), &mut buffers).unwrap();
    assert_eq!(buffers.terminated, [true, false, false]);
    assert_eq!(
        buffers.ended[..3],
        [true, false, false],
        "only agent 0 has decided"
    );
    assert_eq!(buffers.observation(0, 0), [0.0, 0.5, 0.0, 0.5]);
    assert_eq!(buffers.rewards[..3], [1.0, 0.0, 0.0]);
    assert_eq!(buffers.infos[0].as_ref().unwrap().return_, 1.0);
    assert!(buffers.infos[1].is_none());

    envs.step(
        &every(f32::NAN)[..6]
            .iter()
            .chain(&every(0.5)[6..])
            .copied()
            .collect::<Vec<_>>(),
        &mut buffers,
    )
    .unwrap();
    assert_eq!(buffers.resets, [true, false, false]);
    assert_eq!(buffers.terminated, [false; 3]);
    assert_eq!(buffers.turns[0], 1, "episode 1 begins with agent 1");
    assert_eq!(buffers.observation(0, 0), [0.0; 4]);
    assert_eq!(buffers.observation(0, 1), [1.0, 0.0]);
    assert_eq!(buffers.rewards[..3], [0.0; 3]);
    assert_eq!(buffers.discounts[..3], [1.0; 3]);
    assert_eq!(buffers.ended[..3], [false; 3]);
    assert!(buffers.infos[0].is_none());
}

#[test]
fn same_step_semantics() {
    let (mut envs, mut buffers) = relays(AutoresetMode::SameStep);
    envs.step(&every(0.5), &mut buffers).unwrap();
    assert_eq!(buffers.terminated, [true, false, false]);
    assert_eq!(buffers.resets, [false; 3]);
    assert_eq!(buffers.turns[0], 1, "of the new episode");
    assert_eq!(buffers.final_observation(0, 0), [0.0, 0.5, 0.0, 0.5]);
    assert_eq!(
        buffers.final_privileged[..6],
        [1.0, 1.0, 1.0, 0.0, 1.0, 0.0]
    );
    assert_eq!(buffers.observation(0, 0), [0.0; 4]);
    assert_eq!(buffers.observation(0, 1), [1.0, 0.0]);
    assert_eq!(
        buffers.rewards[..3],
        [1.0, 0.0, 0.0],
        "of the step, not of the reset"
    );
    assert_eq!(buffers.discounts[..3], [0.5, 1.0, 1.0]);
    assert_eq!(buffers.ended[..3], [true, false, false]);
    assert_eq!(buffers.infos[0].as_ref().unwrap().return_, 1.0);

    envs.step(&every(0.25), &mut buffers).unwrap();
    assert_eq!(buffers.final_observation(0, 1), [1.0, 0.25]);
    assert_eq!(buffers.ended[..3], [false, true, false]);
    assert_eq!(buffers.infos[0].as_ref().unwrap().index, 1);
}

#[test]
fn disabled_semantics_with_a_masked_reset() {
    let (mut envs, mut buffers) = relays(AutoresetMode::Disabled);
    envs.step(&every(0.5), &mut buffers).unwrap();
    let before = envs.snapshot();
    let error = envs.step(&every(0.5), &mut buffers).unwrap_err();
    assert_eq!(
        error.to_string(),
        "environment 0: no episode is running: call reset before step (the last one is over)"
    );
    assert_eq!(envs.snapshot(), before, "no environment has moved");

    let done = buffers.terminated.clone();
    let others = buffers.observations[12..].to_vec();
    envs.reset_where(&done, VectorSeed::Keep, &PLAIN, &mut buffers)
        .unwrap();
    assert_eq!(buffers.resets, [true, false, false]);
    assert_eq!(buffers.terminated, [false; 3]);
    assert_eq!(buffers.observation(0, 1), [1.0, 0.0]);
    assert_eq!(buffers.observations[12..], others);
    envs.step(&every(0.5), &mut buffers).unwrap();
    let error = envs.reset_where(&[true], VectorSeed::Keep, &PLAIN, &mut buffers);
    assert_eq!(
        error.unwrap_err().to_string(),
        "mask: 1 given where 3 are needed"
    );
}

#[test]
fn a_limit_truncates() {
    let mut relay = Relay::new(2);
    relay.truncates = true;
    let mut envs = MultiAgentVectorEnv::new(vec![relay], AutoresetMode::NextStep).unwrap();
    let mut buffers = envs.buffers();
    envs.reset(VectorSeed::From(0), &PLAIN, &mut buffers)
        .unwrap();
    envs.step(&[0.5; 6], &mut buffers).unwrap();
    envs.step(&[0.5; 6], &mut buffers).unwrap();
    assert_eq!(
        (&buffers.terminated[..], &buffers.truncated[..]),
        (&[false][..], &[true][..])
    );
    assert_eq!(buffers.ended, [true, true, false]);
    assert_eq!(buffers.rewards, [2.0, 0.5, 0.0]);
}

#[test]
fn a_bad_argument_moves_no_environment() {
    let (mut envs, mut buffers) = relays(AutoresetMode::NextStep);
    let before = envs.snapshot();
    let mut actions = every(0.5);
    actions[12] = 7.0; // the first port of agent 0 of the last environment
    let error = envs.step(&actions, &mut buffers).unwrap_err();
    assert_eq!(
        error.to_string(),
        "environment 2: invalid action: value 7 at 0 is not in [-1, 1]"
    );
    let error = envs.step(&[0.5; 17], &mut buffers).unwrap_err();
    assert_eq!(error.to_string(), "actions: 17 given where 18 are needed");
    buffers.ended.pop();
    let error = envs.step(&every(0.5), &mut buffers).unwrap_err();
    assert_eq!(
        error.to_string(),
        "buffer of ended intervals: 8 given where 9 are needed"
    );
    assert_eq!(envs.snapshot(), before);
    let mut fresh = MultiAgentVectorEnv::new(vec![Relay::new(1)], AutoresetMode::NextStep).unwrap();
    let mut buffers = fresh.buffers();
    let error = fresh.step(&[0.5; 6], &mut buffers).unwrap_err();
    assert!(
        error.to_string().contains("it has not been reset yet"),
        "{error}"
    );
}

#[test]
fn environments_and_agents_have_to_be_alike() {
    let combine = |envs| {
        let combined = MultiAgentVectorEnv::<Relay>::new(envs, AutoresetMode::NextStep);
        combined.unwrap_err().to_string()
    };
    assert_eq!(combine(Vec::new()), VectorError::Empty.to_string());
    let mut other = Relay::new(3);
    other.agents[1].spaces[1] = Space::uniform_box(&[1], -2.0, 1.0);
    assert_eq!(
        combine(vec![Relay::new(3), other]),
        "environment 1 has another action space than environment 0"
    );
    let mut fewer = Relay::new(3);
    fewer.agents.pop();
    assert_eq!(
        combine(vec![Relay::new(3), fewer]),
        "environment 1 has another number of agents than environment 0"
    );
    let mut odd = Relay::new(3);
    odd.agents[2].spaces[2] = Space::uniform_box(&[1, 4], 0.0, 1.0);
    assert_eq!(
        combine(vec![odd]),
        "agent 2: the privileged space of shape [1, 4] does not fit: it begins with the agent's \
         ports, and the rest is the same for all agents"
    );
    let mut none = Relay::new(3);
    none.agents.clear();
    assert_eq!(combine(vec![none]), "agents: 0 given where 1 are needed");
}

#[test]
fn memory_of_the_callers_own_is_written_like_buffers() {
    let (mut envs, mut buffers) = relays(AutoresetMode::SameStep);
    let (mut other, mut own) = (envs.clone(), buffers.clone());
    let mut rewards = [0.0; 9];
    for _ in 0..5 {
        envs.step(&every(0.5), &mut buffers).unwrap();
        let slices = MultiAgentSlices {
            rewards: &mut rewards,
            ..own.slices()
        };
        other.step_into(&every(0.5), slices).unwrap();
        assert_eq!(rewards[..], buffers.rewards);
        assert_eq!(own.observations, buffers.observations);
        assert_eq!((&own.turns, &own.infos), (&buffers.turns, &buffers.infos));
    }
}

#[test]
fn buffers_are_never_reallocated() {
    let (mut envs, mut buffers) = relays(AutoresetMode::SameStep);
    let places = |buffers: &MultiAgentBuffers| {
        [
            buffers.observations.as_ptr(),
            buffers.privileged.as_ptr(),
            buffers.port_rewards.as_ptr(),
            buffers.final_observations.as_ptr(),
            buffers.final_privileged.as_ptr(),
        ]
    };
    let before = places(&buffers);
    for _ in 0..20 {
        envs.step(&every(0.5), &mut buffers).unwrap();
    }
    assert_eq!(places(&buffers), before);
}

#[test]
fn a_snapshot_continues_bit_for_bit_wherever_it_is_taken() {
    for steps in 0..8 {
        let (mut one, mut buffers) = relays(AutoresetMode::NextStep);
        for _ in 0..steps {
            one.step(&every(0.5), &mut buffers).unwrap();
        }
        let envs = [1, 4, 6].map(Relay::new).to_vec();
        let mut two = MultiAgentVectorEnv::new(envs, AutoresetMode::NextStep).unwrap();
        two.restore(&one.snapshot()).unwrap();
        let mut others = buffers.clone();
        for step in 0..10 {
            one.step(&every(0.25), &mut buffers).unwrap();
            two.step(&every(0.25), &mut others).unwrap();
            assert_eq!(buffers, others, "step {step} after {steps}");
        }
    }
    let (mut envs, _) = relays(AutoresetMode::NextStep);
    let error = envs.restore(&[]).unwrap_err();
    assert_eq!(error.to_string(), "snapshots: 0 given where 3 are needed");
    let mut snapshots = envs.snapshot();
    snapshots[1].decided.pop();
    let error = envs.restore(&snapshots).unwrap_err();
    assert!(
        error.to_string().contains("2 agents, this has 3"),
        "{error}"
    );
}

/// Two networks with little time of traffic, at their first turns.
fn two_networks(mode: AutoresetMode) -> (MultiAgentVectorEnv<NetworkEnv>, MultiAgentBuffers) {
    let settings = [
        "warmup_ms=0",
        "measure_ms=1",
        "load=0.1",
        "query_rate=1500",
        "max_decisions=9",
    ];
    let options = MakeOptions {
        settings: settings.map(str::to_owned).to_vec(),
        ..MakeOptions::default()
    };
    let mut envs = make_network_vec("bufgym/LeafSpine-4x4-v0", 2, mode, &options).unwrap();
    let mut buffers = envs.buffers();
    envs.reset(VectorSeed::Keep, &PLAIN, &mut buffers).unwrap();
    (envs, buffers)
}

/// Returns all buffers of `steps` steps of random actions.
fn networks(mode: AutoresetMode, steps: usize) -> Vec<MultiAgentBuffers> {
    let (mut envs, mut buffers) = two_networks(mode);
    let mut rng = stream(1, "actions", 0);
    let space = Space::uniform_box(&[2 * 6 * 6], -1.0, 1.0);
    let mut all = vec![buffers.clone()];
    for _ in 0..steps {
        envs.step(&space.sample(&mut rng), &mut buffers).unwrap();
        all.push(buffers.clone());
    }
    all
}

/// Asserts that the rows hold the values of the environments, for all agents.
fn assert_rows<E: MultiAgentEnv>(envs: &MultiAgentVectorEnv<E>, buffers: &MultiAgentBuffers) {
    for (number, env) in envs.envs().enumerate() {
        for agent in 0..env.agents() {
            let (info, at) = (env.info(agent), buffers.at(number, agent));
            assert_eq!(buffers.observation(number, agent), env.observation(agent));
            assert_eq!(buffers.privileged(number, agent), info.privileged);
            assert_eq!(buffers.port_rewards(number, agent), info.port_rewards);
            assert_eq!(buffers.rewards[at], env.reward(agent));
            assert_eq!(buffers.discounts[at], info.discount);
            assert_eq!(buffers.entropy_weights[at], info.entropy_weight);
            assert_eq!(buffers.elapsed_ps[at], info.elapsed.as_ps());
        }
        assert_eq!(buffers.infos[number].as_ref(), env.episode());
    }
}

#[test]
fn rows_hold_what_the_environments_say() {
    let (mut envs, mut buffers) = relays(AutoresetMode::NextStep);
    for step in 0..30 {
        assert_rows(&envs, &buffers);
        let value = step as f32 / 30.0;
        envs.step(&every(value), &mut buffers).unwrap();
    }
    let (mut envs, mut buffers) = two_networks(AutoresetMode::NextStep);
    for _ in 0..12 {
        assert_rows(&envs, &buffers);
        envs.step(&[0.25; 2 * 6 * 6], &mut buffers).unwrap();
    }
    assert_rows(&envs, &buffers);
}

#[test]
fn networks_do_not_depend_on_the_number_of_threads() {
    let run = |threads| on_threads(threads, || networks(AutoresetMode::SameStep, 14));
    let one = run(1);
    assert!(
        one.iter()
            .any(|step| step.truncated[0] || step.terminated[0]),
        "no episode ended"
    );
    assert_eq!(one, run(2));
    assert_eq!(one, run(5));
}

#[test]
fn both_modes_have_the_same_transitions_of_networks() {
    let rewards = |mode| {
        let steps = networks(mode, 9);
        let ended = |step: &MultiAgentBuffers| {
            let rows = step.ended.iter().zip(&step.rewards).take(6);
            rows.filter(|(ended, _)| **ended)
                .map(|(_, reward)| *reward)
                .collect::<Vec<_>>()
        };
        steps.iter().flat_map(ended).collect::<Vec<f64>>()
    };
    let next = rewards(AutoresetMode::NextStep);
    assert_eq!(next, rewards(AutoresetMode::SameStep));
    assert!(next.len() >= 9, "one per decision of an agent: {next:?}");
}
