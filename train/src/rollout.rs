//! Rollout workers: each plays its own training traces with its own random stream.

use std::time::{Duration, Instant};

use bufgym_agents::{Frame, Transition};
use bufgym_env::control::{ControlOptions, action_level};
use bufgym_env::convert::single;
use bufgym_env::gym::{
    Autoreset, AutoresetMode, AutoresetSnapshot, BufferEnv, BufferEnvOptions, Env as _, EnvError,
    EnvSnapshot, EpisodeStats, ResetOptions, TraceSequence,
};
use bufgym_models::FastActor;
use bufgym_models::probabilities::{Probabilities, UNIFORM};
use bufgym_sim::rng::{Split, stream, uniform};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use crate::TrainConfig;
use crate::exploration::Noise;

/// One environment with its random stream and the rollout of the current round.
pub(crate) struct Worker {
    env: Autoreset<BufferEnv>,
    rng: Xoshiro256PlusPlus,
    /// Time constant of the exploration noise, seconds; 0 for none.
    noise_s: f64,
    noise: Noise,
    action: Vec<f32>,
    rollout: Vec<Transition>,
    episodes: Vec<EpisodeStats>,
    busy: Duration,
}

/// A worker as it is stored.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct WorkerState {
    rng: Xoshiro256PlusPlus,
    /// None in states of earlier versions, whose noise was new at every decision.
    #[serde(default)]
    noise: Option<Noise>,
    env: AutoresetSnapshot<EnvSnapshot>,
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
            noise_s: config.rollout.noise_s,
            noise: Noise::new(env.action_space().len()),
            action: vec![0.0; env.action_space().len()],
            env: Autoreset::new(env, AutoresetMode::SameStep),
            rng: stream(config.seed, "exploration", index as u64),
            rollout: Vec::new(),
            episodes: Vec::new(),
            busy: Duration::ZERO,
        })
    }

    /// Begins the first episode.
    pub(crate) fn begin(&mut self) -> Result<(), EnvError> {
        self.env.reset(None, &ResetOptions::default()).map(drop)
    }

    pub(crate) fn state(&self) -> WorkerState {
        WorkerState {
            rng: self.rng.clone(),
            noise: Some(self.noise.clone()),
            env: self.env.snapshot(),
        }
    }

    pub(crate) fn restore(&mut self, state: &WorkerState) -> Result<(), EnvError> {
        self.rng = state.rng.clone();
        if let Some(noise) = &state.noise {
            self.noise = noise.clone();
        }
        self.env.restore(&state.env)
    }

    /// Makes `decisions` decisions with `actor`, or uniformly at random without one.
    pub(crate) fn collect(
        &mut self,
        decisions: u64,
        actor: Option<&FastActor>,
    ) -> Result<(), EnvError> {
        let start = Instant::now();
        // The actor holds intermediate results, so every worker needs its own copy.
        let mut actor = actor.cloned();
        self.rollout.clear();
        self.episodes.clear();
        for _ in 0..decisions {
            let probabilities = self.choose(actor.as_mut());
            let step = self.env.step(&self.action)?;
            let info = step.step_info();
            if step.done() {
                self.episodes.extend(info.episode.clone());
            }
            let reset = || Frame::newest(step.observation, &step.info.privileged);
            let levels = self.action.iter().map(|&action| action_level(action));
            self.rollout.push(Transition {
                actions: levels.collect(),
                probabilities,
                port_rewards: info.port_rewards.clone(),
                discount: info.discount,
                entropy_weight: info.entropy_weight,
                terminated: step.terminated,
                truncated: step.truncated,
                next: Frame::newest(step.next_observation(), &info.privileged),
                reset: step.done().then(reset),
            });
        }
        self.busy = start.elapsed();
        Ok(())
    }

    /// Draws the next action and returns the probabilities that it was drawn with, `[ports, outputs]`.
    fn choose(&mut self, actor: Option<&mut FastActor>) -> Vec<Probabilities> {
        let ports = self.env.env().ports();
        match actor {
            Some(actor) => {
                let observation = self.env.observation();
                let elapsed = Some(self.env.info().elapsed);
                let noise = self.noise.draw(self.noise_s, elapsed, &mut self.rng);
                self.action.copy_from_slice(noise);
                actor.perturb(observation, ports, &mut self.action);
                actor.probabilities().collect()
            }
            None => {
                self.action
                    .fill_with(|| single(2.0 * uniform(&mut self.rng) - 1.0));
                vec![UNIFORM; self.action.len()]
            }
        }
    }

    /// The frame on which the next decision is made.
    pub(crate) fn frame(&self) -> Frame {
        Frame::newest(self.env.observation(), &self.env.info().privileged)
    }

    /// The transitions of this round, in order.
    pub(crate) fn rollout(&self) -> &[Transition] {
        &self.rollout
    }

    /// The episodes that ended in this round.
    pub(crate) fn episodes(&self) -> &[EpisodeStats] {
        &self.episodes
    }

    /// How long this round's decisions took on their thread.
    pub(crate) fn busy(&self) -> Duration {
        self.busy
    }
}
