//! Rollout workers: each plays its own training traces with its own random stream, in this process or on a host.

use std::time::{Duration, Instant};

use bufgym_agents::{Frame, Pair, Transition};
use bufgym_env::control::{ControlOptions, FlowTimes, action_level};
use bufgym_env::gym::{
    BufferEnvOptions, EnvError, EnvSnapshot, EpisodeStats, Info, MultiAgentEnv, NetworkEnv,
    ResetOptions, TraceSequence, Turn,
};
use bufgym_models::{ActorWeights, FastActor};
use bufgym_sim::network::OneSwitch;
use bufgym_util::convert::single;
use bufgym_util::rng::{Split, stream, uniform};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::exploration::Noise;
use crate::forks::{SHIFT, fork};
use crate::{Algorithm, TrainConfig, TrainError};

/// Largest action before atanh, which has no value at the ends of the range.
const LARGEST_ACTION: f32 = 1.0 - f32::EPSILON;

/// One environment with its random stream and the rollout of the current round. Its agents are the switches
/// of the scenario's network, often a single one.
pub(crate) struct Worker {
    env: Box<dyn MultiAgentEnv>,
    turn: Turn,
    slots: Vec<AgentSlot>,
    rng: Xoshiro256PlusPlus,
    /// Random stream of the forks.
    forks: Xoshiro256PlusPlus,
    /// Share of the decisions at which a pair of forks is made.
    fork_rate: f64,
    /// Time constant of the exploration noise, seconds; 0 for none.
    noise_s: f64,
    action: Vec<f32>,
    /// The action before tanh.
    raw: Vec<f32>,
    /// Factor of the rewards, which brings those of several scenarios to one size.
    scale: f32,
    played: RolloutResult,
}

/// The results of a worker in a round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RolloutResult {
    /// Experience of its switches, in order.
    pub(crate) rollout: Vec<Experienced>,
    /// Pairs of forks, each of a switch.
    pub(crate) pairs: Vec<(usize, Pair)>,
    /// Decisions in forks.
    pub(crate) forked: u64,
    /// The episodes that ended.
    pub(crate) episodes: Vec<EpisodeStats>,
    /// Differences of the actions between ports.
    pub(crate) spread: Spread,
    /// Duration of the decisions on their thread.
    pub(crate) busy: Duration,
}

/// An item of a switch's experience.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Experienced {
    /// First frame of the switch ever.
    First { agent: usize, frame: Frame },
    /// A decision and its outcome.
    Decision {
        agent: usize,
        transition: Transition,
    },
}

impl Experienced {
    /// Levels of the decision, `[ports, outputs]`.
    pub(crate) fn levels(&self) -> &[u8] {
        match self {
            Experienced::First { .. } => &[],
            Experienced::Decision { transition, .. } => &transition.actions,
        }
    }
}

/// Agent slot of a worker, one per switch: its noise, and its decision that is not in the replay yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct AgentSlot {
    noise: Noise,
    pending: Pending,
}

/// A decision whose outcome is not known yet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Decided {
    levels: Vec<u8>,
    raw: Vec<f32>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Pending {
    /// The switch has had no turn yet.
    Unseen,
    /// The switch has decided, and the interval continues.
    Interval(Decided),
    /// The last decision of the switch is in the rollout, and it has to decide again.
    Due,
    /// The episode has ended, and the first frame of the next one is not known yet.
    Ended(Box<Transition>),
}

/// Differences of a round's actions between the ports with traffic: the sum over decisions of the standard deviation of
/// log2 α over those ports, and the number of decisions with at least two such ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) sum: f64,
    pub(crate) decisions: u64,
}

/// Stored state of a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WorkerState {
    rng: Xoshiro256PlusPlus,
    forks: Xoshiro256PlusPlus,
    slots: Vec<AgentSlot>,
    scale: f32,
    env: EnvSnapshot,
}

impl WorkerState {
    /// Multiplies later rewards by another factor `factor`.
    pub(crate) fn scale(&mut self, factor: f32) {
        self.scale *= factor;
    }
}

fn environment(options: BufferEnvOptions) -> Result<Box<dyn MultiAgentEnv>, EnvError> {
    Ok(match options.scenario.is_fabric() {
        true => Box::new(<NetworkEnv>::new(options)?),
        false => Box::new(NetworkEnv::<OneSwitch>::new(options)?),
    })
}

impl Worker {
    /// Creates worker `index` in its first episode, or in a stored state: the environment replays its episode up to the
    /// stored decision. All workers of a process share `flow_times`.
    pub(crate) fn new(
        config: &TrainConfig,
        index: usize,
        flow_times: &FlowTimes,
        stored: Option<&WorkerState>,
    ) -> Result<Self, EnvError> {
        let all = TraceSequence {
            split: Split::Train,
            seed: config.seed,
            traces: (config.rollout.traces > 0).then_some(config.rollout.traces),
            ..TraceSequence::default()
        };
        let env = environment(BufferEnvOptions {
            scenario: config.scenario_of(index).clone(),
            traces: all.worker(index as u64, config.rollout.workers as u64),
            control: ControlOptions {
                objective: config.objective,
                low_level: config.low_level.clone(),
                tau_s: config.rollout.tau_s,
                baseline: config.rollout.baseline,
                horizon_s: Some(config.rollout.horizon_s).filter(|&horizon| horizon > 0.0),
                flow_times: flow_times.clone(),
                ..ControlOptions::default()
            },
        })?;
        let slot = |agent: usize| AgentSlot {
            noise: Noise::new(env.action_space(agent).len()),
            pending: Pending::Unseen,
        };
        let mut worker = Self {
            noise_s: config.rollout.noise_s,
            slots: (0..env.agents()).map(slot).collect(),
            turn: Turn::Terminated,
            env,
            rng: stream(config.seed, "exploration", index as u64),
            forks: stream(config.seed, "forks", index as u64),
            fork_rate: match config.algorithm {
                Algorithm::Sac => config.forks.rate,
                Algorithm::Ppo | Algorithm::Cma => 0.0,
            },
            action: Vec::new(),
            raw: Vec::new(),
            scale: 1.0,
            played: RolloutResult::default(),
        };
        match stored {
            Some(state) => worker.restore(state)?,
            None => {
                worker.turn = worker.env.reset(None, &ResetOptions::default())?;
                worker.receive();
            }
        }
        Ok(worker)
    }

    pub(crate) fn state(&self) -> WorkerState {
        WorkerState {
            rng: self.rng.clone(),
            forks: self.forks.clone(),
            slots: self.slots.clone(),
            scale: self.scale,
            env: self.env.snapshot(),
        }
    }

    fn restore(&mut self, state: &WorkerState) -> Result<(), EnvError> {
        let misfit = |what: &str| EnvError::Snapshot(what.to_owned());
        if self.slots.len() != state.slots.len() {
            return Err(misfit("it has another number of switches"));
        }
        self.rng = state.rng.clone();
        self.forks = state.forks.clone();
        self.scale = state.scale;
        self.slots.clone_from(&state.slots);
        let turn = self.env.restore(&state.env)?;
        self.turn = turn.ok_or_else(|| misfit("it is of no episode"))?;
        Ok(())
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
        self.played.clear();
        for _ in 0..decisions {
            let Turn::Agent(agent) = self.turn else {
                unreachable!("an episode that is over is followed by the next at once")
            };
            if let Some(actor) = actor.as_mut()
                && uniform(&mut self.forks) < self.fork_rate
            {
                let (env, rng) = (self.env.as_ref(), &mut self.forks);
                let (pairs, forked) = fork(env, agent, actor, self.scale, SHIFT, rng)?;
                self.played.pairs.extend(pairs);
                self.played.forked += forked;
            }
            self.choose(agent, actor.as_mut());
            let observation = self.env.observation(agent);
            let ports = self.env.action_space(agent).shape()[0];
            self.played.spread.add(observation, &self.action, ports);
            let levels = self.action.iter().map(|&action| action_level(action));
            self.slots[agent].pending = Pending::Interval(Decided {
                levels: levels.collect(),
                raw: std::mem::take(&mut self.raw),
            });
            self.turn = self.env.step(&self.action)?;
            self.receive();
            if let Turn::Agent(_) = self.turn {
                continue;
            }
            self.played.episodes.extend(self.env.episode().cloned());
            self.turn = self.env.reset(None, &ResetOptions::default())?;
            self.receive();
        }
        self.played.busy = start.elapsed();
        Ok(())
    }

    /// Adds the environment's data at a turn to the rollout.
    fn receive(&mut self) {
        match self.turn {
            Turn::Agent(agent) => self.receive_turn(agent),
            _ => (0..self.slots.len()).for_each(|agent| self.receive_end(agent)),
        }
    }

    fn receive_turn(&mut self, agent: usize) {
        let frame = self.frame(agent);
        let before = std::mem::replace(&mut self.slots[agent].pending, Pending::Due);
        let experienced = match before {
            Pending::Unseen => Experienced::First { agent, frame },
            Pending::Interval(decided) => Experienced::Decision {
                agent,
                transition: self.transition(agent, decided),
            },
            Pending::Ended(ended) => Experienced::Decision {
                agent,
                transition: Transition {
                    reset: Some(frame),
                    ..*ended
                },
            },
            Pending::Due => unreachable!("a switch decides at its turn"),
        };
        self.played.rollout.push(experienced);
    }

    fn receive_end(&mut self, agent: usize) {
        if let Pending::Interval(decided) = &mut self.slots[agent].pending {
            let decided = std::mem::take(decided);
            let ended = Transition {
                terminated: self.turn == Turn::Terminated,
                truncated: self.turn == Turn::Truncated,
                ..self.transition(agent, decided)
            };
            self.slots[agent].pending = Pending::Ended(Box::new(ended));
        }
    }

    /// Returns the outcome of a decision until now, in an episode that continues.
    fn transition(&self, agent: usize, decided: Decided) -> Transition {
        let Info {
            port_rewards,
            discount,
            ..
        } = self.env.info(agent);
        Transition {
            actions: decided.levels,
            raw: decided.raw,
            port_rewards: port_rewards.iter().map(|r| r * self.scale).collect(),
            discount: *discount,
            terminated: false,
            truncated: false,
            next: self.frame(agent),
            reset: None,
        }
    }

    /// Draws the next action.
    fn choose(&mut self, agent: usize, actor: Option<&mut FastActor>) {
        let space = self.env.action_space(agent);
        let (ports, values) = (space.shape()[0], space.len());
        self.action.resize(values, 0.0);
        match actor {
            Some(actor) => {
                let observation = self.env.observation(agent);
                let elapsed = Some(self.env.info(agent).elapsed);
                let noise = &mut self.slots[agent].noise;
                let noise = noise.draw(self.noise_s, elapsed, &mut self.rng);
                self.raw = noise.to_vec();
                actor.perturb_raw(observation, ports, &mut self.raw);
                let actions = self.action.iter_mut().zip(&self.raw);
                actions.for_each(|(action, &raw)| *action = libm::tanhf(raw));
            }
            None => {
                self.action
                    .fill_with(|| single(2.0 * uniform(&mut self.rng) - 1.0));
                let inside = |&action: &f32| action.clamp(-LARGEST_ACTION, LARGEST_ACTION);
                self.raw = self.action.iter().map(inside).map(libm::atanhf).collect();
            }
        }
    }

    /// Multiplies later rewards by another factor `factor`.
    pub(crate) fn scale(&mut self, factor: f32) {
        self.scale *= factor;
    }

    /// Returns the newest frame of an agent.
    fn frame(&self, agent: usize) -> Frame {
        let privileged = &self.env.info(agent).privileged;
        Frame::newest(self.env.observation(agent), privileged)
    }

    /// Returns the results of this round.
    pub(crate) fn played(&self) -> &RolloutResult {
        &self.played
    }

    /// Same as [`played`](Worker::played), but leaves nothing here.
    pub(crate) fn take_played(&mut self) -> RolloutResult {
        std::mem::take(&mut self.played)
    }
}

impl RolloutResult {
    /// Clears the results and keeps the memory.
    fn clear(&mut self) {
        self.rollout.clear();
        self.pairs.clear();
        self.forked = 0;
        self.episodes.clear();
        self.spread = Spread::default();
        self.busy = Duration::ZERO;
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

/// All workers of a training. Lists are in the order of the workers.
pub(crate) trait WorkerPool: Send {
    /// Makes every worker decide so many times with `actor`, or uniformly at random without one.
    ///
    /// # Errors
    /// When an environment fails, or the hosts do.
    fn collect(&mut self, decisions: u64, actor: Option<&ActorWeights>) -> Result<(), TrainError>;

    /// Returns the rollouts of the last round.
    fn played(&self) -> Vec<&RolloutResult>;

    /// Returns the state of each worker for storage.
    fn states(&self) -> Vec<WorkerState>;

    /// Multiplies later rewards of a worker by another factor `factor`.
    fn scale(&mut self, worker: usize, factor: f32);
}

/// Workers in this process, in parallel on the current pool.
impl WorkerPool for Vec<Worker> {
    fn collect(&mut self, decisions: u64, actor: Option<&ActorWeights>) -> Result<(), TrainError> {
        let actor = actor.map(FastActor::new);
        let workers = self.par_iter_mut();
        Ok(workers.try_for_each(|worker| worker.collect(decisions, actor.as_ref()))?)
    }

    fn played(&self) -> Vec<&RolloutResult> {
        self.iter().map(Worker::played).collect()
    }

    fn states(&self) -> Vec<WorkerState> {
        self.iter().map(Worker::state).collect()
    }

    fn scale(&mut self, worker: usize, factor: f32) {
        self[worker].scale(factor);
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
