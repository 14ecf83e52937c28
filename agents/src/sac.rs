//! Soft actor-critic (Haarnoja et al. 2018b, "Soft Actor-Critic Algorithms and Applications"; equation numbers below
//! refer to it), for any pair of a policy and an action-value function.
//!
//! This file holds the whole algorithm, to be read from top to bottom: its requirements on the networks, its state, one
//! update and its parts. Settings, samples, measurements, saving and loading are in the folder `sac`.
//!
//! A policy may decide for several agents at once, such as the ports of a switch. Each has its own reward and value, and
//! the objective is the mean over those that are active; with one agent this is the paper's. Every transition has its
//! own discount, as decisions may come at irregular times. Other differences can be switched off ([`ports`](crate::ports)
//! has the rest). Effects are times relative to Dynamic Threshold, of five seeds with the default of their day:
//!
//! | difference | setting | reason and effect |
//! |---|---|---|
//! | Adam's step size of the actor falls where the policy moves far | `actor_kl` | Slopes are noise for the most part, and Adam makes full steps of it. Two seeds came as far without |
//! | The entropy may be that of the Gaussian before tanh | `gaussian_entropy` | That of the action is largest in the middle, and alone moved a good policy from 0.743 to 0.938 |
//! | The actor waits until the critics have made some updates | `actor_starts` | Only where the initial policy is good (not measured). Random weights learn later with it: 0.869 instead of 0.820 after 50,000 decisions |
//! | There may be more than two critics: the target takes two at random, the actor the mean of all (REDQ, Chen et al. 2021, algorithm 1) | `critics` | Two know too little at times. Five: 0.730 instead of 0.747, the worst seed 0.749 instead of 0.822 |
//! | The actor follows the mean of the target networks, not the minimum of the critics | `slopes_of_targets` | Slopes of a critic change more from step to step than they say. One seed came as far without |
//! | The part of Q's slopes that all agents have in common counts less | `common_slope` | It moves all actions together, and is known late. With the row above: 0.755 instead of 0.797 |
//! | Pairs of forks also teach the critics | no [`Samples::pairs`] | Their differences have little noise: 0.803 instead of 0.899 after 50,000 decisions with two critics, no gain with five |
//! | A moving average of the policy is kept | `actor_average` | Single updates move the policy more than they improve it. Not measured apart |
//!
//! Noise comes from a random stream on the host: the same seed gives the same weights, bit for bit, whatever the number
//! of threads.

mod checkpoint;
mod config;
mod metrics;
mod samples;

use std::f64::consts::{LN_2, PI};

use bufgym_models::parameters::{number, polyak};
use bufgym_models::{ActorOutput, Device, standard_normal};
use bufgym_util::convert::{index, single};
use burn::module::Module;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::activation::softplus;
use burn::tensor::{Tensor, TensorData};
use rand::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use crate::optimizer::{ScalarAdam, adam};
use crate::stored::LearnerError;

pub(crate) use checkpoint::SacRecord;
pub use config::SacConfig;
pub use metrics::UpdateMetrics;
pub use samples::{PairSamples, Samples};

/// Identifiers of the networks' parameters, fixed so that an optimiser's record fits in another process.
const POLICY_IDS: u64 = 1_000;
const CRITIC_IDS: u64 = 2_000;

/// Steps of the actor after which its divergence is measured.
const KL_STEPS: u64 = 32;

/// Smaller deviations of a policy count as this one where its divergence is measured.
const MIN_DEVIATION: f32 = 0.25;

/// The temperature falls no further: where no value moves the policy, it would fall for ever.
const MIN_TEMPERATURE: f64 = 1e-6;

/// Input of the networks for a batch.
pub trait Observation: Clone + Send + Sync {
    /// The same on the device with automatic differentiation.
    #[must_use]
    fn autodiff(&self) -> Self;
}

/// A policy: a Gaussian before tanh for every agent and output.
pub trait Policy: Module {
    /// Input of the policy.
    type Observation: Observation;

    /// Means and deviations, `[rows, agents * outputs]`.
    fn gaussian(&self, seen: &Self::Observation, rows: usize) -> ActorOutput;
}

/// An action-value function with one value per agent.
pub trait ActionValue<O>: Module {
    /// Values `[rows, agents]` of actions in (-1, 1), `[rows, agents * outputs]`.
    fn values(&self, seen: &O, actions: Tensor<2>) -> Tensor<2>;
}

/// The learner: networks, target networks, optimisers, temperature and random stream.
pub struct Sac<P, Q> {
    config: SacConfig,
    /// Device, without automatic differentiation.
    device: Device,
    policy: P,
    average: P,
    /// The policy whose divergence is measured next.
    anchor: P,
    optimizer: ModuleOptimizer,
    actor_lr: f64,
    critics: Vec<Critic<Q>>,
    temperature: Temperature,
    rng: Xoshiro256PlusPlus,
    updates: u64,
    actor_steps: u64,
}

struct Critic<Q> {
    network: Q,
    target: Q,
    optimizer: ModuleOptimizer,
}

/// The logarithm of the temperature and its Adam state.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Temperature {
    log: f64,
    adam: ScalarAdam,
}

impl<P: Policy, Q: ActionValue<P::Observation>> Sac<P, Q> {
    /// A learner of these networks, which are on `device`.
    ///
    /// # Errors
    /// When a setting is out of range, or there are not as many critics as `config` says.
    pub fn new(
        config: SacConfig,
        policy: P,
        critics: Vec<Q>,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnerError> {
        let config = config.ready_for(critics.len())?;
        let policy = number(policy.train(), POLICY_IDS);
        let critics = critics.into_iter().zip(0..).map(|(critic, place)| {
            let network = number(critic.train(), CRITIC_IDS + 1_000 * place);
            Critic {
                target: network.valid(),
                network,
                optimizer: adam(None),
            }
        });
        Ok(Sac {
            device: device.clone().without_autodiff(),
            average: policy.valid(),
            anchor: policy.valid(),
            policy,
            optimizer: adam(None),
            actor_lr: config.actor_lr,
            critics: critics.collect(),
            temperature: Temperature {
                log: libm::log(config.initial_temperature.expect("settled")),
                adam: ScalarAdam::default(),
            },
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            updates: 0,
            actor_steps: 0,
            config,
        })
    }

    /// The policy.
    pub fn policy(&self) -> P {
        self.policy.valid()
    }

    /// The policy's moving average, or the policy itself where none is kept.
    pub fn averaged(&self) -> P {
        self.average.clone()
    }

    /// Continues from another policy, as if training had just begun with it.
    pub fn set_policy(&mut self, policy: &P) {
        self.policy = number(policy.clone().train(), POLICY_IDS);
        (self.average, self.anchor) = (self.policy.valid(), self.policy.valid());
        self.optimizer = adam(None);
    }

    /// Updates so far.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Learns from a batch: a step of all critics, then of actor and temperature unless they wait, and of the targets.
    pub fn update(&mut self, batch: &Samples<P::Observation>) -> UpdateMetrics {
        let target = self.target(batch);
        let target_mean = scalar(mean_of(target.clone(), &batch.active));
        let (critics, rate) = (self.critics.par_iter_mut(), self.config.critic_lr);
        let steps = critics.map(|critic| critic.step(batch, &target, rate));
        let steps: Vec<[f32; 3]> = steps.collect();
        let mean = |of: usize| steps.iter().map(|step| step[of]).sum::<f32>() / steps.len() as f32;
        let due = self.updates >= self.config.actor_starts.expect("settled");
        let actor = due.then(|| self.actor_step(batch));
        let kl = due.then(|| self.steer(batch)).flatten();
        self.updates += 1;
        for critic in &mut self.critics {
            critic.target = polyak(critic.target.clone(), &critic.network, self.config.polyak);
        }
        UpdateMetrics {
            critic_loss: mean(0),
            q_mean: mean(1),
            target_mean,
            td_error: mean(2),
            actor,
            kl,
            temperature: single(self.temperature.value()),
            actor_lr: self.actor_lr,
        }
    }

    /// `y = r + γ (min Q'(s', a') - temperature · log π(a'|s'))`, `[rows, agents]` (eq. 2, 3 and 6).
    fn target(&mut self, batch: &Samples<P::Observation>) -> Tensor<2> {
        let rows = batch.rewards.dims()[0];
        let output = self.policy.valid().gaussian(&batch.next, rows);
        let (actions, log_prob) = self.sample(output, batch.next_active.dims());
        let [first, second] = self.two_critics().map(|place| {
            let target = &self.critics[place].target;
            target.values(&batch.next, actions.clone())
        });
        let soft = first.min_pair(second) - log_prob * self.temperature.value();
        batch.rewards.clone() + soft * batch.next_active.clone() * batch.discounts.clone()
    }

    /// Two critics, at random where there are more.
    fn two_critics(&mut self) -> [usize; 2] {
        let count = self.critics.len();
        if count == 2 {
            return [0, 1];
        }
        let mut below = |count: usize| index(self.rng.next_u64() % count as u64);
        let first = below(count);
        [first, (first + 1 + below(count - 1)) % count]
    }

    /// A step on `temperature · log π(a|s) - Q(s, a)` (eq. 7 and 9), Q as in `slopes`, then one of the temperature.
    fn actor_step(&mut self, batch: &Samples<P::Observation>) -> [f32; 2] {
        let (seen, active) = (batch.now.autodiff(), batch.active.clone().autodiff());
        let output = self.policy.gaussian(&seen, active.dims()[0]);
        let outputs = output.mean.dims()[1] / active.dims()[1];
        let (actions, log_prob) = self.sample(output, active.dims());
        let (value, slopes) = self.slopes(batch, actions.clone().inner());
        let log_prob = mean_of(log_prob, &active);
        let entropy = -scalar(log_prob.clone().inner()) / outputs as f32;
        let cost = log_prob * self.temperature.value();
        let loss = scalar(cost.clone().inner()) - value;
        // The slopes are constants here, so this has the gradient of the loss.
        let surrogate = cost - (actions * slopes.autodiff()).sum();
        let gradients = GradientsParams::from_grads(surrogate.backward(), &self.policy);
        self.policy = self
            .optimizer
            .step(self.actor_lr, self.policy.clone(), gradients);
        let excess = f64::from(entropy) - self.config.target_entropy;
        self.temperature.step(excess, self.config.temperature_lr);
        self.actor_steps += 1;
        let averaged = self.config.actor_average * (self.actor_steps - 1) as f64;
        self.average = polyak(self.average.clone(), &self.policy, 1.0 / (1.0 + averaged));
        [loss, entropy]
    }

    /// The mean of Q over active agents, and its slopes by the actions, `[rows, agents * outputs]`. Every agent's value
    /// may depend on the actions of all. A share of the part that all slopes have in common is left out.
    fn slopes(&mut self, batch: &Samples<P::Observation>, actions: Tensor<2>) -> (f32, Tensor<2>) {
        let (targets, count) = (self.config.slopes_of_targets, self.critics.len());
        let of_minimum = |critics: &mut [Critic<Q>]| {
            let leaf = actions.clone().autodiff().require_grad();
            let values = critics.iter().map(|critic| match targets {
                true => critic.target.clone().train(),
                false => critic.network.clone(),
            });
            let values = values.map(|q| q.no_grad().values(&batch.now.autodiff(), leaf.clone()));
            let least = values.reduce(Tensor::min_pair).expect("a critic");
            let mean = mean_of(least, &batch.active.clone().autodiff());
            let slopes = leaf.grad(&mean.backward()).expect("Q depends on a");
            (scalar(mean.inner()), slopes)
        };
        let together = if targets || count > 2 { 1 } else { count };
        let groups = self.critics.par_chunks_mut(together).map(of_minimum);
        let groups = groups.collect::<Vec<_>>().into_iter();
        let (value, slopes) = groups
            .reduce(|a, b| (a.0 + b.0, a.1 + b.1))
            .expect("critics");
        let share = together as f64 / count as f64;
        let (value, slopes) = (value * single(share), slopes * share);
        let left_out = 1.0 - self.config.common_slope;
        let ([rows, agents], width) = (batch.active.dims(), slopes.dims()[1]);
        let each = |tensor: Tensor<2>| tensor.reshape([rows * agents, width / agents]);
        let active = batch.active.clone().reshape([rows * agents, 1]);
        // How far each action moves when all means before tanh move.
        let moved = each(actions.square() * -1.0 + 1.0) * active.clone();
        let common = (each(slopes.clone()) * moved.clone()).sum_dim(0);
        let common = active * (common / moved.sum_dim(0).clamp_min(1e-6)) * left_out;
        (value, slopes - common.reshape([rows, width]))
    }

    /// After some steps, measures how far they moved the policy, and adjusts the step size towards `actor_kl`.
    fn steer(&mut self, batch: &Samples<P::Observation>) -> Option<f32> {
        let wanted = self.config.actor_kl;
        if wanted == 0.0 || !self.actor_steps.is_multiple_of(KL_STEPS) {
            return None;
        }
        let policy = self.policy.valid();
        let [before, after] = [&self.anchor, &policy]
            .map(|policy| policy.gaussian(&batch.now, batch.rewards.dims()[0]));
        // After tanh, as steps far outside change no action. Where a policy is nearly certain, a small step must not
        // count as a large one.
        let deviation = before.log_std.exp().clamp_min(MIN_DEVIATION);
        let apart = ((before.mean.tanh() - after.mean.tanh()) / deviation).square() * 0.5;
        let apart = by_agent(apart, batch.active.dims());
        let kl = f64::from(scalar(mean_of(apart, &batch.active)));
        if kl > 1.3 * wanted {
            self.actor_lr = (self.actor_lr / 1.4).max(1e-6);
        } else if kl < 0.7 * wanted {
            self.actor_lr = (self.actor_lr * 1.4).min(self.config.actor_lr);
        }
        self.anchor = policy;
        Some(single(kl))
    }

    /// Actions in (-1, 1), `[rows, agents * outputs]`, and the logarithm of their density, `[rows, agents]` (appendix C).
    fn sample(&mut self, output: ActorOutput, agents: [usize; 2]) -> (Tensor<2>, Tensor<2>) {
        let shape = output.mean.dims();
        let noise: Vec<f32> = (0..shape[0] * shape[1])
            .map(|_| standard_normal(&mut self.rng))
            .collect();
        let noise = Tensor::from_data(TensorData::new(noise, shape), &self.device);
        let noise = match output.mean.is_autodiff() {
            true => noise.autodiff(),
            false => noise,
        };
        let raw = output.mean + output.log_std.clone().exp() * noise.clone();
        let normal = noise.square() * -0.5 - output.log_std - 0.5 * (2.0 * PI).ln();
        // log(1 - tanh(x)²) = 2 (log 2 - x - softplus(-2x)), which stays precise for large x.
        let squash = (softplus(raw.clone() * -2.0, 1.0) + raw.clone() - LN_2) * 2.0;
        let density = match self.config.gaussian_entropy {
            Some(true) => normal,
            _ => normal + squash,
        };
        (raw.tanh(), by_agent(density, agents))
    }
}

impl<Q: Module> Critic<Q> {
    /// A step on the mean squared error (eq. 5), and on that of pairs. Returns the former, the mean value and the mean
    /// absolute error.
    fn step<O: Observation>(
        &mut self,
        batch: &Samples<O>,
        target: &Tensor<2>,
        rate: f64,
    ) -> [f32; 3]
    where
        Q: ActionValue<O>,
    {
        let value = self
            .network
            .values(&batch.now.autodiff(), batch.actions.clone().autodiff());
        let mean = scalar(mean_of(value.clone().inner(), &batch.active));
        let error = value - target.clone().autodiff();
        let absolute = scalar(mean_of(error.clone().inner().abs(), &batch.active));
        let loss = mean_of(error.square(), &batch.active.clone().autodiff());
        let pairs = batch.pairs.as_ref().map(|pairs| pairs.loss(&self.network));
        let all = pairs
            .into_iter()
            .fold(loss.clone(), |all, pairs| all + pairs);
        let gradients = GradientsParams::from_grads(all.backward(), &self.network);
        self.network = self.optimizer.step(rate, self.network.clone(), gradients);
        [scalar(loss), mean, absolute]
    }
}

impl Temperature {
    fn value(self) -> f64 {
        libm::exp(self.log)
    }

    /// One step of Adam on `log(temperature) · excess` of the entropy over its target (eq. 18, with the logarithm
    /// instead of the temperature, as in the published code).
    fn step(&mut self, excess: f64, rate: f64) {
        self.log += self.adam.step(rate, excess);
        self.log = self.log.max(libm::log(MIN_TEMPERATURE));
    }
}

/// Sums over the outputs of each agent: `[rows, agents * outputs]` to `[rows, agents]`.
fn by_agent(values: Tensor<2>, [rows, agents]: [usize; 2]) -> Tensor<2> {
    let outputs = values.dims()[1] / agents;
    values
        .reshape([rows * agents, outputs])
        .sum_dim(1)
        .reshape([rows, agents])
}

/// The mean over active agents.
fn mean_of(values: Tensor<2>, active: &Tensor<2>) -> Tensor<1> {
    (values * active.clone()).sum() / active.clone().sum().clamp_min(1.0)
}

fn scalar(tensor: Tensor<1>) -> f32 {
    tensor.into_scalar::<f32>()
}

#[cfg(test)]
mod tests;
