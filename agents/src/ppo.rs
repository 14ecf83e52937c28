//! Proximal policy optimisation (Schulman et al. 2017, "Proximal Policy Optimization Algorithms"), with an
//! independent learner per port whose weights all ports share (de Witt et al. 2020, "Is Independent Learning
//! All You Need in the StarCraft Multi-Agent Challenge?").
//!
//! This file holds the whole algorithm, to be read from top to bottom: settings, state, one round and its
//! parts. Saving and loading are in `ppo/checkpoint.rs`. What differs from the papers, and why:
//!
//! | difference | reason |
//! |---|---|
//! | A port is paid its own reward and a share of the others' | The mean over ports hides what a port did in the noise of fifteen others |
//! | Only ports with flows are in the losses | Two thirds of the ports are idle, and nothing depends on their actions |
//! | The critic sees the state of the senders and future arrivals | Only training needs it, and the simulator has them (Pinto et al. 2018; Mao et al. 2019) |
//! | Actor and critic are two networks with an optimiser each | As in Andrychowicz et al. 2021, "What Matters in On-Policy RL?", §3.3 |
//! | Adam's step size of the actor follows the KL divergence of a round | Schulman et al. 2017, §4, do so with a penalty; advantages are noise for the most part, and Adam makes full steps of it |
//! | The deviation follows a schedule, and does not fall below half a level | It cannot fall because of noise, and levels next to the mean are always tried |
//! | Every decision has its own discount | Decisions come at irregular times |
//! | Inputs are divided by deviations of the first round, and then these stay | Drops are rare, and the network should see them as well as queues |
//! | The shipped policy is a moving average | Single rounds move the policy more than they improve it |

mod checkpoint;

use std::f64::consts::PI;

use bufgym_env::control::ActionSet;
use bufgym_models::critic::{STATE, VALUE_STATE, newest};
use bufgym_models::parameters::{host_values, number, polyak};
use bufgym_models::windows::{UNFOLDED, WINDOW};
use bufgym_models::{Actor, ActorWeights, Device, StateValue};
use bufgym_util::convert::{floor_u64, index, single};
use burn::module::Module;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::{Tensor, TensorData};
use rand::SeedableRng;
use rand::seq::SliceRandom as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use crate::optimizer::adam;
use crate::ports::PortsConfig;
use crate::replay::Rollout;
use crate::scales::{Scales, moments};
use crate::stored::LearnerError;

/// Identifiers of the networks' parameters, fixed so that an optimiser's record fits in another process.
const ACTOR_IDS: u64 = 1_000;
const CRITIC_IDS: u64 = 2_000;

/// Frames whose value is computed at once.
const CHUNK: usize = 1_024;

/// Standardised advantages are clipped here: a few samples must not decide a step.
const MAX_ADVANTAGE: f32 = 5.0;

/// Largest norm of each parameter tensor's gradient. (CleanRL clips the norm of all tensors together at 0.5)
const GRADIENT_CLIP: f32 = 1.0;

/// Errors of the critic count linearly beyond so many deviations of the returns (Huber 1964).
const HUBER: f64 = 3.0;

// --- Settings -----------------------------------------------------------------------------------

/// Every setting of the learner. Sources: (S) Schulman et al. 2017, (C) CleanRL's
/// `ppo_continuous_action.py`, (M) measured in this project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PpoConfig {
    /// Decisions of each worker in a round. (C: 2048 with one environment; here 32 workers collect half as many
    /// together. M: with 128, learning is worse for the same number of decisions)
    pub decisions_per_round: u64,
    /// Passes over the decisions of a round. (S: 10; C: 10; M)
    pub epochs: u64,
    /// Decisions of a minibatch, each of all ports. (M)
    pub minibatch: usize,
    /// ε: the gradient is zero once the ratio of the probabilities has moved by more than this. (S)
    pub clip: f64,
    /// λ of the generalised advantage (Schulman et al. 2016): 1 / (1 - λ) decisions count. (M; S: 0.95)
    pub lambda: f64,
    /// Target divergence of the policy after a round from the policy before it, in nats per port. Adam's step size is
    /// adjusted to reach it. (M)
    pub kl: f64,
    /// Rounds after which that divergence has halved. It falls as `1 / (1 + rounds / kl_halving)`: as the policy comes
    /// nearer to its optimum, noise dominates the gradient. (Robbins and Monro 1951; M)
    pub kl_halving: f64,
    /// Adam's first step size for the actor. (M; S: 3e-4)
    pub actor_lr: f64,
    /// Adam's step size for the critic. (M)
    pub critic_lr: f64,
    /// Rounds before the actor's first step: until then the critic knows nothing. (M)
    pub actor_starts: u64,
    /// Deviation of an action before tanh in the first round and in the last ones; the cell of a level in the
    /// middle of the range is 0.25 wide. (M)
    pub deviation: [f64; 2],
    /// Factor of the deviation from round to round. (M)
    pub deviation_decay: f64,
    /// Share of all rounds that the moving average of the policy spans: round n enters it with
    /// `1 / (1 + average (n - 1))`. (Polynomial-decay averaging: Shamir and Zhang 2013, section 4; M)
    pub average: f64,
}

impl Default for PpoConfig {
    fn default() -> PpoConfig {
        PpoConfig {
            decisions_per_round: 32,
            epochs: 4,
            minibatch: 256,
            clip: 0.2,
            lambda: 0.97,
            kl: 0.02,
            kl_halving: 500.0,
            actor_lr: 5e-4,
            critic_lr: 1e-3,
            actor_starts: 4,
            deviation: [1.0, 0.3],
            deviation_decay: 0.99,
            average: 0.2,
        }
    }
}

impl PpoConfig {
    /// Checks every setting's range.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), LearnerError> {
        let step = |value: f64| (1e-12..=1.0).contains(&value);
        let share = |value: f64| (0.0..=1.0).contains(&value);
        let deviation = |value: f64| (0.01..=7.0).contains(&value);
        let [first, last] = self.deviation;
        let checks = [
            (
                "decisions_per_round",
                (1..=1_000_000).contains(&self.decisions_per_round),
                "between 1 and 10^6",
            ),
            (
                "epochs",
                (1..=1_000).contains(&self.epochs),
                "between 1 and 1000",
            ),
            (
                "minibatch",
                (1..=65_536).contains(&self.minibatch),
                "between 1 and 65536",
            ),
            (
                "clip",
                (1e-3..1.0).contains(&self.clip),
                "at least 0.001 and below 1",
            ),
            ("lambda", share(self.lambda), "between 0 and 1"),
            ("kl", step(self.kl), "between 1e-12 and 1"),
            (
                "kl_halving",
                (1.0..=1e12).contains(&self.kl_halving),
                "between 1 and 1e12",
            ),
            ("actor_lr", step(self.actor_lr), "between 1e-12 and 1"),
            ("critic_lr", step(self.critic_lr), "between 1e-12 and 1"),
            (
                "actor_starts",
                (1..=1_000_000).contains(&self.actor_starts),
                "between 1 and 10^6",
            ),
            (
                "deviation",
                deviation(first) && deviation(last) && last <= first,
                "two numbers between 0.01 and 7, the second no larger",
            ),
            (
                "deviation_decay",
                (0.1..=1.0).contains(&self.deviation_decay),
                "between 0.1 and 1",
            ),
            ("average", step(self.average), "between 1e-12 and 1"),
        ];
        let wrong = checks.into_iter().find(|&(_, fine, _)| !fine);
        wrong.map_or(Ok(()), |(name, _, range)| {
            Err(LearnerError::Setting { name, range })
        })
    }

    /// Returns the divergence that a round should end with.
    fn kl_of(&self, round: u64) -> f64 {
        self.kl / (1.0 + round as f64 / self.kl_halving)
    }

    fn deviation_of(&self, round: u64) -> f64 {
        let [first, last] = self.deviation;
        last.max(first * libm::pow(self.deviation_decay, round as f64))
    }
}

// --- State --------------------------------------------------------------------------------------

/// The learner: two networks, their optimisers, the scales of their inputs, and a random stream.
pub struct Ppo {
    config: PpoConfig,
    ports: PortsConfig,
    actions: ActionSet,
    device: Device,
    actor: Actor,
    average: Actor,
    critic: StateValue,
    optimizers: [ModuleOptimizer; 2],
    scales: Option<Scales>,
    /// Adam's step size for the actor.
    actor_lr: f64,
    rng: Xoshiro256PlusPlus,
    rounds: u64,
    updates: u64,
}

/// The measurements of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoundMetrics {
    /// Mean loss of the critic, in squared deviations of the returns.
    pub critic_loss: f32,
    /// Mean clipped surrogate with its sign reversed; none while the actor waits.
    pub actor_loss: Option<f32>,
    /// Divergence of the policy in the last epoch from the one that collected, in nats per port.
    pub kl: Option<f32>,
    /// Entropy per port and output, in nats, of the Gaussian before tanh that collected.
    pub entropy: f32,
    /// Mean value per busy port, in units of the reward.
    pub value: f32,
    /// Mean return per busy port, in units of the reward.
    pub target: f32,
    /// Mean absolute difference between both.
    pub error: f32,
    /// Share of the returns' variance that the critic explained before it learned from them.
    pub explained: f32,
    /// Adam's step size for the actor after the round.
    pub actor_lr: f64,
}

impl Ppo {
    /// A learner with random weights for decisions that set `actions`. The same seed gives the same weights.
    ///
    /// # Errors
    /// When a setting is out of range.
    pub fn new(
        config: PpoConfig,
        ports: PortsConfig,
        actions: ActionSet,
        seed: u64,
        device: &Device,
    ) -> Result<Ppo, LearnerError> {
        config.validate()?;
        ports.validate()?;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let device = device.clone().without_autodiff();
        let trained = device.clone().autodiff();
        let weights = ports.begin(actions, &mut rng);
        let actor = number(Actor::from_weights(&weights, &trained), ACTOR_IDS);
        let critic = StateValue::random(ports.critic_width, &mut rng, &trained);
        Ok(Ppo {
            average: actor.valid(),
            actor,
            critic: number(critic, CRITIC_IDS),
            optimizers: [adam(Some(GRADIENT_CLIP)), adam(Some(GRADIENT_CLIP))],
            scales: None,
            actor_lr: config.actor_lr,
            rng,
            rounds: 0,
            updates: 0,
            device,
            actions,
            ports,
            config,
        })
    }

    /// A host copy of the policy that collects the next round.
    pub fn actor_weights(&self) -> ActorWeights {
        self.exported(&self.actor)
    }

    /// A host copy of the policy's moving average.
    pub fn averaged_weights(&self) -> ActorWeights {
        self.exported(&self.average)
    }

    /// Folds the scales of the inputs into the first layer, and the deviation into the last one.
    fn exported(&self, actor: &Actor) -> ActorWeights {
        let mut weights = actor.to_weights();
        if let Some(scales) = &self.scales {
            weights.scale_inputs(&scales.factors());
        }
        weights.fix_log_std(single(libm::log(self.deviation())));
        weights
    }

    /// Returns the outputs that its decisions set.
    pub fn actions(&self) -> ActionSet {
        self.actions
    }

    /// Gradient steps so far.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Deviation of the policy that collects the next round.
    fn deviation(&self) -> f64 {
        self.config.deviation_of(self.rounds)
    }

    // --- One round ------------------------------------------------------------------------------

    /// Learns from the rollouts that the policy of [`actor_weights`](Ppo::actor_weights) has collected: one rollout for
    /// each number of ports. Every decision counts the same. Does nothing if no port with flows has decided.
    pub fn learn(&mut self, rollouts: &[Rollout]) -> Option<RoundMetrics> {
        let rollouts: Vec<&Rollout> = rollouts
            .iter()
            .filter(|rollout| rollout.busy().contains(&true))
            .collect();
        if rollouts.is_empty() {
            return None;
        }
        let deviation = self.deviation();
        let wanted = self.config.kl_of(self.rounds);
        let credit = |learner: &Ppo| {
            rollouts
                .iter()
                .map(|rollout| learner.credit(rollout))
                .collect::<Vec<_>>()
        };
        let mut samples = credit(self);
        let scales = self
            .scales
            .clone()
            .unwrap_or_else(|| Scales::of(busy_ports(&rollouts, &samples)));
        if self.scales.is_none() {
            self.scales = Some(scales.clone());
            samples = credit(self);
        }
        let metrics = self.standardise(&mut samples, &rollouts);
        let acts = self.rounds >= self.config.actor_starts;
        if acts {
            for (samples, rollout) in samples.iter_mut().zip(&rollouts) {
                samples.means = self.means(rollout, &samples.rows);
            }
        }
        let (mut critic_loss, mut actor_loss, mut kl, mut steps) = (0.0, 0.0, 0.0, 0_u64);
        let mut actor_steps = 0_u64;
        for _ in 0..self.config.epochs {
            let (mut divergence, mut parts) = (0.0, 0_u64);
            for (which, rows) in self.minibatches(&samples) {
                let batch = self.minibatch(rollouts[which], &samples[which], &rows, &scales);
                let may_act = acts && kl <= 1.5 * wanted;
                let settings = (deviation, self.config.clip, self.actor_lr);
                let Ppo {
                    actor,
                    critic,
                    optimizers: [first, second],
                    config,
                    ..
                } = &mut *self;
                let ((network, loss), step) = rayon::join(
                    || critic_step(critic, second, &batch, config.critic_lr),
                    || may_act.then(|| actor_step(actor, first, &batch, settings)),
                );
                self.critic = network;
                critic_loss += f64::from(loss);
                if let Some((network, loss, moved)) = step {
                    self.actor = network;
                    (actor_loss, divergence) =
                        (actor_loss + f64::from(loss), divergence + f64::from(moved));
                    (parts, actor_steps) = (parts + 1, actor_steps + 1);
                }
                steps += 1;
            }
            if parts > 0 {
                kl = divergence / parts as f64;
            }
        }
        self.updates += steps;
        self.rounds += 1;
        if acts {
            self.steer(kl, wanted);
        }
        // Policies from before the actor's first step do not enter the average.
        let learned = (self.rounds - 1).saturating_sub(self.config.actor_starts);
        let share = 1.0 / (1.0 + self.config.average * learned as f64);
        self.average = polyak(self.average.clone(), &self.actor, share);
        Some(RoundMetrics {
            critic_loss: single(critic_loss / steps as f64),
            actor_loss: acts.then(|| single(actor_loss / actor_steps.max(1) as f64)),
            kl: acts.then(|| single(kl)),
            entropy: single(libm::log(deviation) + 0.5 * libm::log(2.0 * PI) + 0.5),
            actor_lr: self.actor_lr,
            ..metrics
        })
    }

    /// Adjusts Adam's step size so that a round moves the policy by the wanted divergence.
    fn steer(&mut self, kl: f64, wanted: f64) {
        if kl > 1.3 * wanted {
            self.actor_lr = (self.actor_lr / 1.4).max(1e-6);
        } else if kl < 0.7 * wanted {
            self.actor_lr = (self.actor_lr * 1.4).min(1e-2);
        }
    }

    /// Values, returns and advantages of all frames of a rollout (generalised advantage estimation, Schulman et
    /// al. 2016, eq. 16).
    fn credit(&self, rollout: &Rollout) -> Samples {
        let (frames, ports) = (rollout.frames(), rollout.ports);
        let mut values = vec![0.0; frames * ports];
        if let Some(scales) = &self.scales {
            let (critic, all) = (self.critic.valid(), (0..frames).collect::<Vec<_>>());
            let chunks = all.chunks(CHUNK).zip(values.chunks_mut(CHUNK * ports));
            for (rows, values) in chunks {
                let state = self.state(rollout, rows, scales);
                let found = host_values(critic.forward(state, rows.len()));
                let pairs = values.iter_mut().zip(found);
                pairs.for_each(|(value, found)| *value = found * scales.returns);
            }
        }
        let (lambda, share) = (single(self.config.lambda), single(self.ports.share));
        let mut advantages = vec![0.0; frames * ports];
        for frame in (0..frames).rev().filter(|&frame| rollout.decided[frame]) {
            let row = frame * ports..(frame + 1) * ports;
            let total: f32 = rollout.rewards[row.clone()].iter().sum();
            let discount = rollout.discounts[frame];
            // A decision is always followed by a frame. One without a decision ends the rollout or the episode.
            let goes_on = single(f64::from(u8::from(rollout.decided[frame + 1])));
            for at in row {
                let own = rollout.rewards[at];
                let reward = own + share * (total - own);
                let later = values[at + ports] + lambda * goes_on * advantages[at + ports];
                advantages[at] = reward + discount * later - values[at];
            }
        }
        let returns = advantages
            .iter()
            .zip(&values)
            .map(|(advantage, value)| advantage + value);
        Samples {
            returns: returns.collect(),
            busy: rollout.busy(),
            rows: Vec::new(),
            means: Vec::new(),
            values,
            advantages,
        }
    }

    /// Brings the advantages of all busy ports to mean 0 and deviation 1 and their returns to the scale, and picks the
    /// decisions with a busy port.
    fn standardise(&self, samples: &mut [Samples], rollouts: &[&Rollout]) -> RoundMetrics {
        let of = |field: fn(&Samples) -> &[f32]| -> Vec<f64> {
            let all = samples
                .iter()
                .flat_map(|part| field(part).iter().zip(&part.busy));
            all.filter(|(_, busy)| **busy)
                .map(|(&value, _)| f64::from(value))
                .collect()
        };
        let (value, _) = moments(&of(|part| &part.values));
        let (target, spread) = moments(&of(|part| &part.returns));
        let advantages = of(|part| &part.advantages);
        let (mean, deviation) = moments(&advantages);
        let scale = self.scales.as_ref().map_or(1.0, |scales| scales.returns);
        for (part, rollout) in samples.iter_mut().zip(rollouts) {
            for advantage in &mut part.advantages {
                let standard = single((f64::from(*advantage) - mean) / deviation.max(1e-12));
                *advantage = standard.clamp(-MAX_ADVANTAGE, MAX_ADVANTAGE);
            }
            part.returns.iter_mut().for_each(|value| *value /= scale);
            let busy = part.busy.chunks_exact(rollout.ports).enumerate();
            part.rows = busy
                .filter(|(_, ports)| ports.contains(&true))
                .map(|(row, _)| row)
                .collect();
        }
        let absolute: f64 = advantages.iter().map(|advantage| advantage.abs()).sum();
        RoundMetrics {
            value: single(value),
            target: single(target),
            error: single(absolute / advantages.len().max(1) as f64),
            explained: single(1.0 - (deviation / spread.max(1e-12)).powi(2)),
            ..RoundMetrics::default()
        }
    }

    /// The means of the policy that collected, before tanh, by frame; zero where nothing is learned.
    fn means(&self, rollout: &Rollout, rows: &[usize]) -> Vec<f32> {
        let actor = self.actor.valid();
        let width = rollout.ports * self.actions.outputs();
        let mut means = vec![0.0; rollout.frames() * width];
        for rows in rows.chunks(CHUNK) {
            let found = host_values(actor.forward(self.windows(rollout, rows), rows.len()).mean);
            for (&row, found) in rows.iter().zip(found.chunks_exact(width)) {
                means[row * width..][..width].copy_from_slice(found);
            }
        }
        means
    }

    /// The decisions of all rollouts in random order, in parts of about the size of a minibatch.
    fn minibatches(&mut self, samples: &[Samples]) -> Vec<(usize, Vec<usize>)> {
        let mut parts = Vec::new();
        for (which, samples) in samples.iter().enumerate() {
            let mut rows = samples.rows.clone();
            rows.shuffle(&mut self.rng);
            let count = (rows.len() as f64 / self.config.minibatch as f64)
                .round()
                .max(1.0);
            let size = rows.len().div_ceil(index(floor_u64(count))).max(1);
            parts.extend(rows.chunks(size).map(|rows| (which, rows.to_vec())));
        }
        parts.shuffle(&mut self.rng);
        parts
    }

    fn minibatch(
        &self,
        rollout: &Rollout,
        samples: &Samples,
        rows: &[usize],
        scales: &Scales,
    ) -> Minibatch {
        let (ports, outputs) = (rollout.ports, self.actions.outputs());
        let of_ports =
            |values: &[f32]| self.tensor(gathered(values, rows, ports), [rows.len() * ports, 1]);
        let of_actions = |values: &[f32]| {
            let values = gathered(values, rows, ports * outputs);
            self.tensor(values, [rows.len() * ports, outputs])
        };
        let busy: Vec<f32> = samples
            .busy
            .iter()
            .map(|&busy| f32::from(u8::from(busy)))
            .collect();
        let busy = gathered(&busy, rows, ports);
        let count: f32 = busy.iter().sum();
        let weights = busy.iter().map(|busy| busy / count.max(1.0)).collect();
        Minibatch {
            rows: rows.len(),
            windows: self.windows(rollout, rows).autodiff(),
            state: self.state(rollout, rows, scales).autodiff(),
            weights: self.tensor(weights, [rows.len() * ports, 1]).autodiff(),
            raw: of_actions(&rollout.raw).autodiff(),
            means: of_actions(&samples.means).autodiff(),
            advantages: of_ports(&samples.advantages).autodiff(),
            returns: of_ports(&samples.returns).autodiff(),
        }
    }

    /// Unfolded observations in deviations, `[rows * ports * 8, 15]`.
    fn windows(&self, rollout: &Rollout, rows: &[usize]) -> Tensor<2> {
        let mut windows = gathered(&rollout.windows, rows, rollout.ports * UNFOLDED);
        if let Some(scales) = &self.scales {
            scales.scale_windows(&mut windows);
        }
        let count = windows.len() / WINDOW;
        self.tensor(windows, [count, WINDOW])
    }

    /// Standardised inputs of the critic, `[rows * ports, VALUE_STATE]`.
    fn state(&self, rollout: &Rollout, rows: &[usize], scales: &Scales) -> Tensor<2> {
        let mut state = gathered(&rollout.state, rows, rollout.ports * STATE);
        scales.scale_state(&mut state);
        self.tensor(newest(&state), [rows.len() * rollout.ports, VALUE_STATE])
    }

    fn tensor(&self, values: Vec<f32>, shape: [usize; 2]) -> Tensor<2> {
        Tensor::from_data(TensorData::new(values, shape), &self.device)
    }
}

/// The targets that the frames of a rollout give, `[frames, ports]` each.
struct Samples {
    values: Vec<f32>,
    returns: Vec<f32>,
    advantages: Vec<f32>,
    /// True where the port has flows and a decision was made.
    busy: Vec<bool>,
    /// The frames with a busy port.
    rows: Vec<usize>,
    /// Means of the policy that collected, `[frames, ports, outputs]`.
    means: Vec<f32>,
}

/// Tensors of some decisions; `[rows * ports, ..]` but for the inputs.
struct Minibatch {
    rows: usize,
    windows: Tensor<2>,
    state: Tensor<2>,
    /// One over the number of busy ports at these, else 0.
    weights: Tensor<2>,
    raw: Tensor<2>,
    means: Tensor<2>,
    advantages: Tensor<2>,
    returns: Tensor<2>,
}

/// One step on Huber's loss. Returns the network and the loss.
fn critic_step(
    critic: &StateValue,
    adam: &mut ModuleOptimizer,
    batch: &Minibatch,
    rate: f64,
) -> (StateValue, f32) {
    let values = critic.forward(batch.state.clone(), batch.rows);
    let error = (values.reshape(batch.returns.dims()) - batch.returns.clone()).abs();
    let within = error.clone().clamp_max(HUBER);
    let loss = within.clone().square() * 0.5 + (error - within) * HUBER;
    let loss = (loss * batch.weights.clone()).sum();
    let mut gradients = loss.backward();
    let gradients = GradientsParams::from_module(&mut gradients, critic);
    (adam.step(rate, critic.clone(), gradients), scalar(loss))
}

/// One step on the clipped surrogate (Schulman et al. 2017, eq. 7). Returns the network, the loss, and the divergence
/// of the policy before the step from the one that collected: both are Gaussians of one deviation.
fn actor_step(
    actor: &Actor,
    adam: &mut ModuleOptimizer,
    batch: &Minibatch,
    (deviation, clip, rate): (f64, f64, f64),
) -> (Actor, f32, f32) {
    let means = actor.forward(batch.windows.clone(), batch.rows).mean;
    let means = means.reshape(batch.raw.dims());
    let distance = |means: Tensor<2>| {
        ((batch.raw.clone() - means) / deviation)
            .square()
            .sum_dim(1)
    };
    let ratio = ((distance(batch.means.clone()) - distance(means.clone())) * 0.5).exp();
    let clipped = ratio.clone().clamp(1.0 - clip, 1.0 + clip);
    let gain = (ratio * batch.advantages.clone()).min_pair(clipped * batch.advantages.clone());
    let loss = -(gain * batch.weights.clone()).sum();
    let moved = ((means - batch.means.clone()) / deviation)
        .square()
        .sum_dim(1)
        * 0.5;
    let moved = scalar((moved * batch.weights.clone()).sum());
    let gradients = GradientsParams::from_grads(loss.backward(), actor);
    (
        adam.step(rate, actor.clone(), gradients),
        scalar(loss),
        moved,
    )
}

/// Inputs of the critic and returns at busy ports.
fn busy_ports<'a>(
    rollouts: &'a [&Rollout],
    samples: &'a [Samples],
) -> impl Iterator<Item = (&'a [f32; STATE], f32)> {
    let pairs = rollouts.iter().zip(samples);
    pairs.flat_map(|(rollout, samples)| {
        let states = rollout.state.as_chunks::<STATE>().0.iter();
        let gained = states.zip(&samples.returns).zip(&samples.busy);
        gained
            .filter(|(_, busy)| **busy)
            .map(|((state, &gained), _)| (state, gained))
    })
}

/// The rows of a `[_, width]` array.
fn gathered(values: &[f32], rows: &[usize], width: usize) -> Vec<f32> {
    if values.is_empty() {
        return vec![0.0; rows.len() * width];
    }
    let of_row = |&row: &usize| values[row * width..(row + 1) * width].iter().copied();
    rows.iter().flat_map(of_row).collect()
}

fn scalar(tensor: Tensor<1>) -> f32 {
    tensor.into_scalar::<f32>()
}

#[cfg(test)]
mod tests;
