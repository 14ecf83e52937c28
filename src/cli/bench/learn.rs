//! Speed of the learner and of inference.

use std::time::Duration;

use bufgym::agents::{
    Batch, Frame, PortSac, PortsConfig, RandomAgent, Replay, ReplayShape, SacConfig, Transition,
};
use bufgym::env::control::{ActionSet, Controller as _, FEATURES, HISTORY, action_level};
use bufgym::env::gym::{ResetOptions, StepBuffers, VectorSeed};
use bufgym::models::{ActorWeights, Device, FastActor};
use bufgym::sim::scenario::Scenario;
use bufgym::util::convert::single;
use bufgym::util::rng;

use super::{repeat, rounds, simulate};
use crate::cli::error::{CliResult, ResultExt as _};

/// Number of transitions from which batches are drawn.
const TRANSITIONS: usize = 2_000;
const ENVIRONMENTS: usize = 4;

/// Returns the number of full SAC updates (critics, actor, temperature, targets) per second, including the
/// drawing of the batch.
pub fn updates_per_second(
    scenario: &Scenario,
    batch_size: usize,
    seed: u64,
    budget: Duration,
    device: &Device,
) -> CliResult<f64> {
    let mut replay = fill_replay(scenario, seed)?;
    let config = SacConfig {
        batch_size,
        ..SacConfig::default()
    };
    let mut sac = PortSac::new(
        config,
        PortsConfig::default(),
        ActionSet::Alpha,
        seed,
        device,
    )
    .or_failure()?;
    let mut batch = Batch::default();
    let mut update = || {
        replay.sample(batch_size, 1, &mut batch);
        sac.update(&batch);
        Ok::<u64, std::convert::Infallible>(1)
    };
    // The first update allocates, and the first two build a device's programs, because the actor learns in
    // every second one.
    for _ in 0..2 {
        let Ok(_) = update();
    }
    let Ok((updates, seconds)) = repeat(budget, update);
    Ok(updates as f64 / seconds)
}

/// Fills a replay buffer with real transitions under random actions.
fn fill_replay(scenario: &Scenario, seed: u64) -> CliResult<Replay> {
    let ports = scenario.port_count();
    let mut environments = simulate::environments(scenario, ENVIRONMENTS, seed)?;
    let mut buffers = environments.buffers();
    environments
        .reset(VectorSeed::Keep, &ResetOptions::default(), &mut buffers)
        .or_failure()?;
    let shape = ReplayShape {
        capacity: 2 * TRANSITIONS,
        streams: ENVIRONMENTS,
        ports,
        outputs: 1,
        pairs: 0,
    };
    let mut replay = Replay::new(shape, seed);
    for env in 0..ENVIRONMENTS {
        let first = Frame::newest(buffers.observation(env), buffers.privileged(env));
        replay.start(env, &first);
    }
    let mut agent = RandomAgent::new(seed);
    let mut actions = vec![0.0; ENVIRONMENTS * ports];
    while !replay.is_ready(TRANSITIONS) {
        agent.act(&[], actions.len(), &mut actions);
        environments.step(&actions, &mut buffers).or_failure()?;
        for (env, actions) in actions.chunks_exact(ports).enumerate() {
            replay.push(env, &transition(&buffers, env, actions));
        }
    }
    Ok(replay)
}

/// Returns the transition of environment `env` in the last step under `actions`, drawn uniformly.
fn transition(buffers: &StepBuffers, env: usize, actions: &[f32]) -> Transition {
    let (terminated, truncated) = (buffers.terminated[env], buffers.truncated[env]);
    let now = Frame::newest(buffers.observation(env), buffers.privileged(env));
    let (next, reset) = if terminated || truncated {
        let width = buffers.layout().privileged_len();
        let privileged = &buffers.final_privileged[env * width..][..width];
        let last = Frame::newest(buffers.final_observation(env), privileged);
        (last, Some(now))
    } else {
        (now, None)
    };
    Transition {
        actions: actions.iter().map(|&a| action_level(a)).collect(),
        raw: actions.iter().map(|&a| (0.999 * a).atanh()).collect(),
        port_rewards: buffers.port_rewards(env).to_vec(),
        discount: buffers.discounts[env],
        terminated,
        truncated,
        next,
        reset,
    }
}

/// Returns the median time of one forward pass, microseconds.
pub fn inference_us(ports: usize, seed: u64, budget: Duration) -> f64 {
    let mut stream = rng::stream(seed, "bench inference", ports as u64);
    let mut actor = FastActor::new(&ActorWeights::random(&mut stream));
    let observation: Vec<f32> = (0..ports * HISTORY * FEATURES)
        .map(|_| single(rng::uniform(&mut stream)) * 2.0 - 1.0)
        .collect();
    let mut action = vec![0.0; ports];
    rounds(budget, 1, || actor.act(&observation, ports, &mut action)) / 1e3
}
