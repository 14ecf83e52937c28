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
    /// Rewards are multiplied with this, so that those of several scenarios are of one size.
    scale: f32,
    rollout: Vec<Transition>,
    episodes: Vec<EpisodeStats>,
    spread: Spread,
    busy: Duration,
}

/// How much the actions of a round differ between the ports that had traffic: the sum over decisions of the standard
/// deviation of log2 α over those ports, and the number of decisions with at least two.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spread {
    pub(crate) sum: f64,
    pub(crate) decisions: u64,
}

/// A worker as it is stored.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct WorkerState {
    rng: Xoshiro256PlusPlus,
    /// None in states of earlier versions, whose noise was new at every decision.
    #[serde(default)]
    noise: Option<Noise>,
    #[serde(default = "one")]
    scale: f32,
    env: AutoresetSnapshot<EnvSnapshot>,
}

fn one() -> f32 {
    1.0
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
            scenario: config.scenario_of(index).clone(),
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
            scale: one(),
            rollout: Vec::new(),
            episodes: Vec::new(),
            spread: Spread::default(),
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
            scale: self.scale,
            env: self.env.snapshot(),
        }
    }

    pub(crate) fn restore(&mut self, state: &WorkerState) -> Result<(), EnvError> {
        self.rng = state.rng.clone();
        self.scale = state.scale;
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
        self.spread = Spread::default();
        for _ in 0..decisions {
            let probabilities = self.choose(actor.as_mut());
            self.spread
                .add(self.env.observation(), &self.action, self.env.env().ports());
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
                port_rewards: info.port_rewards.iter().map(|r| r * self.scale).collect(),
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

    /// Multiplies later rewards with `factor` more.
    pub(crate) fn scale(&mut self, factor: f32) {
        self.scale *= factor;
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

    /// How much this round's actions differ between ports.
    pub(crate) fn spread(&self) -> Spread {
        self.spread
    }

    /// How long this round's decisions took on their thread.
    pub(crate) fn busy(&self) -> Duration {
        self.busy
    }
}

impl Spread {
    /// Adds a decision on `observation`, `[ports, 8, 5]`, with `action`, `[ports, outputs]`.
    fn add(&mut self, observation: &[f32], action: &[f32], ports: usize) {
        let outputs = action.len() / ports;
        let histories = observation.chunks_exact(observation.len() / ports);
        let levels = action.chunks_exact(outputs);
        let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for (history, action) in histories.zip(levels) {
            let [.., queue, enqueued, _, _, _] = history else {
                continue;
            };
            if *queue > 0.0 || *enqueued > 0.0 {
                let level = f64::from(action_level(action[0]));
                count += 1.0;
                sum += level;
                squares += level * level;
            }
        }
        if count >= 2.0 {
            let mean: f64 = sum / count;
            self.sum += (squares / count - mean * mean).max(0.0).sqrt();
            self.decisions += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bufgym_env::control::{Observation, cell_centre};

    #[test]
    fn the_spread_is_of_ports_with_traffic() {
        let mut observation = Observation::new(4);
        // The third port has no traffic.
        let traffic = [[0.1, 0.0], [0.0, 0.2], [0.0, 0.0], [0.3, 0.1]];
        observation.push(|port| [traffic[port][0], traffic[port][1], 0.0, 0.0, 0.0]);
        let action = [1, 3, 7, 5].map(cell_centre);
        let mut spread = Spread::default();
        spread.add(observation.as_slice(), &action, 4);
        let deviation = (8.0_f64 / 3.0).sqrt();
        assert!((spread.sum - deviation).abs() < 1e-12, "{spread:?}");
        assert_eq!(spread.decisions, 1);
    }
}
