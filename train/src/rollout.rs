//! Rollout workers: each plays its own training traces with its own random stream.

use std::time::{Duration, Instant};

use bufgym_agents::{Replay, Transition};
use bufgym_env::control::{ControlOptions, action_index};
use bufgym_env::gym::{
    Autoreset, AutoresetMode, AutoresetSnapshot, AutoresetStep, BufferEnv, BufferEnvOptions,
    EnvError, EnvSnapshot, EpisodeStats, ResetOptions, TraceSequence,
};
use bufgym_models::FastActor;
use bufgym_models::probabilities::{Probabilities, UNIFORM};
use bufgym_sim::rng::{Split, stream, uniform};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use crate::TrainConfig;

/// One environment with its random stream and what it has collected in the current round.
pub(crate) struct Worker {
    env: Autoreset<BufferEnv>,
    rng: Xoshiro256PlusPlus,
    action: Vec<f32>,
    collected: Collected,
}

/// A worker as it is stored.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct WorkerState {
    rng: Xoshiro256PlusPlus,
    env: AutoresetSnapshot<EnvSnapshot>,
}

/// The decisions of one round, in order. The buffers are reused.
#[derive(Default)]
struct Collected {
    rows: Vec<Row>,
    /// `[decisions, ports]`
    actions: Vec<u8>,
    /// `[decisions, ports]`
    probabilities: Vec<Probabilities>,
    /// `[decisions, ports]`
    port_rewards: Vec<f32>,
    /// `[decisions, ports, 8, 5]`
    next_observations: Vec<f32>,
    /// `[decisions, ports, 22]`
    next_privileged: Vec<f32>,
    /// First observation of every episode begun, `[episodes, ports, 8, 5]`.
    first_observations: Vec<f32>,
    /// `[episodes, ports, 22]`
    first_privileged: Vec<f32>,
    episodes: Vec<EpisodeStats>,
    busy: Duration,
}

#[derive(Clone, Copy)]
struct Row {
    discount: f32,
    entropy_weight: f32,
    terminated: bool,
    truncated: bool,
}

impl Collected {
    fn clear(&mut self) {
        self.rows.clear();
        self.actions.clear();
        self.probabilities.clear();
        self.port_rewards.clear();
        self.next_observations.clear();
        self.next_privileged.clear();
        self.first_observations.clear();
        self.first_privileged.clear();
        self.episodes.clear();
    }

    fn record(&mut self, action: &[f32], step: &AutoresetStep<'_>) {
        let info = step.step_info();
        self.rows.push(Row {
            discount: info.discount,
            entropy_weight: info.entropy_weight,
            terminated: step.terminated,
            truncated: step.truncated,
        });
        self.actions
            .extend(action.iter().map(|&action| action_index(action) as u8));
        self.port_rewards.extend_from_slice(&info.port_rewards);
        self.next_observations
            .extend_from_slice(step.next_observation());
        self.next_privileged.extend_from_slice(&info.privileged);
        if step.done() {
            self.first_observations.extend_from_slice(step.observation);
            self.first_privileged
                .extend_from_slice(&step.info.privileged);
            self.episodes.extend(info.episode.clone());
        }
    }
}

impl Worker {
    /// Worker `index`, not yet in an episode.
    pub(crate) fn new(config: &TrainConfig, index: usize) -> Result<Self, EnvError> {
        let all = TraceSequence {
            split: Split::Train,
            seed: config.seed,
            traces: (config.rollout.traces > 0).then_some(config.rollout.traces),
            ..TraceSequence::default()
        };
        let env = BufferEnv::new(BufferEnvOptions {
            scenario: config.scenario.clone(),
            traces: all.worker(index as u64, config.rollout.workers as u64),
            control: ControlOptions {
                objective: config.objective,
                low_level: config.low_level.clone(),
                tau_s: config.rollout.tau_s,
                baseline: config.rollout.baseline,
                horizon_s: Some(config.rollout.horizon_s).filter(|&horizon| horizon > 0.0),
                ..ControlOptions::default()
            },
        })?;
        Ok(Self {
            action: vec![0.0; env.ports()],
            env: Autoreset::new(env, AutoresetMode::SameStep),
            rng: stream(config.seed, "exploration", index as u64),
            collected: Collected::default(),
        })
    }

    /// Begins the first episode.
    pub(crate) fn begin(&mut self) -> Result<(), EnvError> {
        self.env.reset(None, &ResetOptions::default()).map(drop)
    }

    /// Tells the replay about the episode begun.
    pub(crate) fn open(&self, replay: &mut Replay, stream: usize) {
        replay.start(stream, self.env.observation(), &self.env.info().privileged);
    }

    pub(crate) fn state(&self) -> WorkerState {
        WorkerState {
            rng: self.rng.clone(),
            env: self.env.snapshot(),
        }
    }

    pub(crate) fn restore(&mut self, state: &WorkerState) -> Result<(), EnvError> {
        self.rng = state.rng.clone();
        self.env.restore(&state.env)
    }

    /// Makes `decisions` decisions with `actor`, or uniformly at random without one.
    pub(crate) fn collect(
        &mut self,
        decisions: u64,
        actor: Option<&FastActor>,
    ) -> Result<(), EnvError> {
        let start = Instant::now();
        // The actor has work space of its own, hence a copy for every worker.
        let mut actor = actor.cloned();
        self.collected.clear();
        for _ in 0..decisions {
            let ports = self.action.len();
            let probabilities = &mut self.collected.probabilities;
            match &mut actor {
                Some(actor) => {
                    let observation = self.env.observation();
                    actor.sample(observation, ports, &mut self.rng, &mut self.action);
                    probabilities.extend(actor.probabilities());
                }
                None => {
                    self.action
                        .fill_with(|| (2.0 * uniform(&mut self.rng) - 1.0) as f32);
                    probabilities.extend(std::iter::repeat_n(UNIFORM, ports));
                }
            }
            let step = self.env.step(&self.action)?;
            self.collected.record(&self.action, &step);
        }
        self.collected.busy = start.elapsed();
        Ok(())
    }

    /// Moves the round's transitions into the replay.
    pub(crate) fn hand_over(&self, replay: &mut Replay, stream: usize) {
        let collected = &self.collected;
        let ports = self.action.len();
        let observation = self.env.observation().len();
        let privileged = self.env.info().privileged.len();
        let mut episode = 0;
        for (i, row) in collected.rows.iter().enumerate() {
            replay.push(
                stream,
                &Transition {
                    actions: &collected.actions[i * ports..][..ports],
                    probabilities: &collected.probabilities[i * ports..][..ports],
                    port_rewards: &collected.port_rewards[i * ports..][..ports],
                    discount: row.discount,
                    entropy_weight: row.entropy_weight,
                    terminated: row.terminated,
                    truncated: row.truncated,
                    next_observation: &collected.next_observations[i * observation..]
                        [..observation],
                    next_privileged: &collected.next_privileged[i * privileged..][..privileged],
                },
            );
            if row.terminated || row.truncated {
                replay.start(
                    stream,
                    &collected.first_observations[episode * observation..][..observation],
                    &collected.first_privileged[episode * privileged..][..privileged],
                );
                episode += 1;
            }
        }
    }

    /// The episodes that ended in this round.
    pub(crate) fn episodes(&self) -> &[EpisodeStats] {
        &self.collected.episodes
    }

    /// Indices of the actions of this round, `[decisions, ports]`.
    pub(crate) fn actions(&self) -> &[u8] {
        &self.collected.actions
    }

    /// How long this round's decisions took on their thread.
    pub(crate) fn busy(&self) -> Duration {
        self.collected.busy
    }
}
