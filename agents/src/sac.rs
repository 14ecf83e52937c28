//! Soft actor-critic (Haarnoja et al. 2018b, "Soft Actor-Critic Algorithms and Applications").
//!
//! Read from top to bottom: state, one update, the pieces of it. (Settings and saving are in
//! `sac/`.) What differs from the textbook:
//!
//! - Decisions come at irregular times, so every transition has its own discount, and the entropy
//!   of decision k is paid with weight c_k, proportional to the time it is in force.
//! - The privileged critic's advantage is fitted by least squares (`sac/advantage.rs`); Adam
//!   teaches the state's value.
//! - Rewards and values are per port, `[batch, ports]`; the joint value is their mean. The twin
//!   minimum is taken on the joint value, so that one twin judges all ports of a sample.
//! - The entropy target is per port, and so does not depend on the number of ports.
//! - Noise comes from a host stream: the same seed gives the same weights, bit for bit.

mod advantage;
mod config;
mod state;

use std::f64::consts::{LN_2, PI};

use bufgym_models::parameters::{host_values, number, polyak};
use bufgym_models::{
    Actor, ActorOutput, ActorWeights, Critic, CriticInput, CriticKind, Device, standard_normal,
};
use burn::module::Module;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::activation::softplus;
use burn::tensor::{Tensor, TensorData};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::replay::Batch;

use advantage::LeastSquares;

pub use config::{ActorValue, SacConfig, TwinMinimum};
pub use state::SacError;

// --- State --------------------------------------------------------------------------------------

/// The learner: networks, targets, optimisers, temperature and random stream.
pub struct Sac {
    config: SacConfig,
    /// Without automatic differentiation; the learned networks live on its differentiating twin.
    device: Device,
    actor: ActorLearner,
    critics: [CriticLearner; 2],
    advantage: LeastSquares,
    temperature: Temperature,
    rng: Xoshiro256PlusPlus,
    updates: u64,
}

/// The actor, its moving average and its optimiser.
struct ActorLearner {
    network: Actor,
    average: Actor,
    optimizer: ModuleOptimizer,
}

/// One critic, its target network and its optimiser.
struct CriticLearner {
    network: Critic,
    target: Critic,
    optimizer: ModuleOptimizer,
}

/// The logarithm of the temperature and its own Adam (one number needs no tensors).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Temperature {
    log: f64,
    moments: [f64; 2],
    steps: i32,
}

/// What one update measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdateMetrics {
    /// Mean over both critics of the mean squared error.
    pub critic_loss: f32,
    /// Actor's loss; none where `policy_delay` skipped the actor.
    pub actor_loss: Option<f32>,
    /// Entropy per port, in nats, of the policy on this batch; none as `actor_loss`.
    pub entropy: Option<f32>,
    /// Temperature after the update.
    pub temperature: f32,
    /// Mean value per port of the stored actions (first critic).
    pub q_mean: f32,
    /// Mean target per port.
    pub target_mean: f32,
    /// Mean absolute difference of value and target (first critic).
    pub td_error: f32,
}

impl Sac {
    /// A learner with random weights. The same seed gives the same weights.
    ///
    /// # Errors
    /// When a setting is out of range.
    pub fn new(config: SacConfig, seed: u64, device: &Device) -> Result<Sac, SacError> {
        config.validate()?;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let device = device.clone().without_autodiff();
        let learning = device.clone().autodiff();
        let actor = number(Actor::random(&mut rng, &learning), ACTOR_IDS);
        let critics = CRITIC_IDS.map(|first| {
            let width = config.critic_width;
            let critic = Critic::random(config.critic, width, &mut rng, &learning);
            let network = number(critic, first);
            CriticLearner {
                target: network.valid(),
                network,
                optimizer: config.optimizer(),
            }
        });
        Ok(Sac {
            device,
            actor: ActorLearner {
                average: actor.valid(),
                network: actor,
                optimizer: config.optimizer(),
            },
            critics,
            advantage: LeastSquares::new(),
            temperature: Temperature {
                log: libm::log(config.initial_temperature),
                moments: [0.0; 2],
                steps: 0,
            },
            rng,
            updates: 0,
            config,
        })
    }

    /// A host copy of the policy.
    pub fn actor_weights(&self) -> ActorWeights {
        self.actor.network.to_weights()
    }

    /// A host copy of the policy's moving average.
    pub fn averaged_weights(&self) -> ActorWeights {
        self.actor.average.to_weights()
    }

    /// Updates so far.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// The temperature.
    pub fn temperature(&self) -> f64 {
        libm::exp(self.temperature.log)
    }

    /// The settings.
    pub fn config(&self) -> &SacConfig {
        &self.config
    }

    // --- One update -----------------------------------------------------------------------------

    /// Learns from one batch: both critics and, every `policy_delay` updates, actor and
    /// temperature, all against the targets as they are; then the targets.
    ///
    /// Critics and actor do not read each other's new weights, so they run side by side on the
    /// current rayon pool. The result does not depend on it.
    ///
    /// # Panics
    /// When the batch is empty.
    pub fn update(&mut self, batch: &Batch) -> UpdateMetrics {
        let (rows, ports) = (batch.rows, batch.ports);
        let input = self.input(&batch.windows, &batch.state);
        let actions = self.tensor(&batch.actions, [rows, ports]);
        let target = self.target(batch);
        let target_mean = scalar(target.clone().mean());

        let delay = u64::from(self.config.policy_delay);
        let actor_step = (self.updates % delay == delay - 1).then(|| ActorStep {
            noise: self.noise(rows, ports),
            entropy_weights: self.tensor(&batch.entropy_weights, [rows, 1]),
            targets: self
                .critics
                .each_ref()
                .map(|learner| learner.target.clone()),
            temperature: self.temperature(),
            decay: self.config.decay(self.updates),
            step: self.updates / delay + 1,
        });
        let step_size = self.config.critic_lr * self.config.decay(self.updates);
        let ([first, second], actor, config) = (&mut self.critics, &mut self.actor, &self.config);
        let ((first, second), learned) = rayon::join(
            || {
                rayon::join(
                    || first.step(&input, &actions, &target, step_size),
                    || second.step(&input, &actions, &target, step_size),
                )
            },
            || actor_step.map(|step| actor.step(&input, step, config)),
        );
        if let Some((_, entropy)) = learned
            && self.config.learn_temperature
        {
            let surplus = f64::from(entropy) - self.config.target_entropy;
            self.temperature.step(surplus, self.config.temperature_lr);
        }
        self.updates += 1;
        if self.config.critic == CriticKind::Privileged {
            self.fit_advantage(batch, &first.errors, &second.errors);
        }
        let share = self.config.polyak;
        let [first_critic, second_critic] = &mut self.critics;
        rayon::join(
            || first_critic.soft_update(share),
            || second_critic.soft_update(share),
        );
        UpdateMetrics {
            critic_loss: 0.5 * (first.loss + second.loss),
            actor_loss: learned.map(|(loss, _)| loss),
            entropy: learned.map(|(_, entropy)| entropy),
            temperature: self.temperature() as f32,
            q_mean: first.mean,
            target_mean,
            td_error: first.error,
        }
    }

    /// Adds a batch to the least squares and, now and then, gives the critics their weights.
    /// `errors` are each critic's value minus target, as means over ports.
    fn fit_advantage(&mut self, batch: &Batch, first: &[f32], second: &[f32]) {
        let surplus: Vec<f32> = first
            .iter()
            .zip(second)
            .map(|(a, b)| -0.5 * (a + b))
            .collect();
        let keep = 1.0 - batch.rows as f64 / self.config.advantage_samples as f64;
        self.advantage.add(batch, &surplus, keep.max(0.0));
        if self.updates.is_multiple_of(ADVANTAGE_EVERY) {
            let weights = self.advantage.weights(self.config.advantage_ridge);
            for learner in &mut self.critics {
                learner.network.set_advantage(&weights);
                learner.target.set_advantage(&weights);
            }
        }
    }

    /// `y_i = r_i + γ (Q'_i(s', a') - temperature · c' · log π_i(a'|s'))`, `[rows, ports]`.
    fn target(&mut self, batch: &Batch) -> Tensor<2> {
        let (rows, ports) = (batch.rows, batch.ports);
        let input = self.input(&batch.next_windows, &batch.next_state);
        let noise = self.noise(rows, ports);
        let output = self
            .actor
            .network
            .valid()
            .forward(input.windows.clone(), rows);
        let (actions, log_prob) = sample(output, noise);
        let [first, second] = self.critics.each_ref();
        let estimate = |learner: &CriticLearner| learner.target.estimate(&input, actions.clone());
        let (first, second) = rayon::join(|| estimate(first), || estimate(second));
        let value = twin_minimum([first, second], self.config.twin_minimum);

        let weights = self.tensor(&batch.next_entropy_weights, [rows, 1]);
        let discounts = self.tensor(&batch.discounts, [rows, 1]);
        let rewards = self.tensor(&batch.rewards, [rows, ports]);
        rewards + discounts * (value - log_prob * weights * self.temperature())
    }

    fn input(&self, windows: &[f32], state: &[f32]) -> CriticInput {
        use bufgym_models::{critic::STATE, windows::WINDOW};
        CriticInput {
            windows: self.tensor(windows, [windows.len() / WINDOW, WINDOW]),
            state: self.tensor(state, [state.len() / STATE, STATE]),
        }
    }

    fn tensor(&self, values: &[f32], shape: [usize; 2]) -> Tensor<2> {
        Tensor::from_data(TensorData::new(values.to_vec(), shape), &self.device)
    }

    fn noise(&mut self, rows: usize, ports: usize) -> Tensor<2> {
        let noise: Vec<f32> = (0..rows * ports)
            .map(|_| standard_normal(&mut self.rng))
            .collect();
        self.tensor(&noise, [rows, ports])
    }
}

/// What one step of the critic measured, over the batch.
struct CriticMetrics {
    loss: f32,
    mean: f32,
    error: f32,
    /// Value minus target of every row, as means over ports.
    errors: Vec<f32>,
}

impl CriticLearner {
    /// One step towards the target, by the mean squared error.
    fn step(
        &mut self,
        input: &CriticInput,
        actions: &Tensor<2>,
        target: &Tensor<2>,
        step_size: f64,
    ) -> CriticMetrics {
        let input = differentiable(input);
        let value = self.network.estimate(&input, actions.clone().autodiff());
        let mean = scalar(value.clone().inner().mean());
        let error = value - target.clone().autodiff();
        let absolute = scalar(error.clone().inner().abs().mean());
        let errors = host_values(error.clone().inner().mean_dim(1));
        let loss = error.square().mean();

        let mut gradients = loss.backward();
        let gradients = GradientsParams::from_module(&mut gradients, &self.network);
        self.network = self
            .optimizer
            .step(step_size, self.network.clone(), gradients);
        CriticMetrics {
            loss: scalar(loss),
            mean,
            error: absolute,
            errors,
        }
    }

    /// Moves the target by `share` of its distance to the critic.
    fn soft_update(&mut self, share: f64) {
        let target = self.target.clone();
        self.target = polyak(target, &self.network, share);
    }
}

/// What a step of the actor needs beside the batch's observations.
struct ActorStep {
    /// `[rows, ports]`
    noise: Tensor<2>,
    /// `[rows, 1]`
    entropy_weights: Tensor<2>,
    targets: [Critic; 2],
    temperature: f64,
    decay: f64,
    /// The actor's steps, this one included.
    step: u64,
}

impl ActorLearner {
    /// One step of the actor. Loss and entropy per port.
    ///
    /// The loss is `temperature · c · log π - Q`, both as means over ports; every port's value
    /// depends on all actions, so the gradient has the cross terms. Q is that of the targets: the
    /// value of one decision among hundreds is small against the noise in a critic's newest
    /// weights, which the targets average out.
    fn step(&mut self, input: &CriticInput, step: ActorStep, config: &SacConfig) -> (f32, f32) {
        let input = differentiable(input);
        let rows = step.noise.dims()[0];
        let output = self.network.forward(input.windows.clone(), rows);
        let spread = output.mean.clone().square().mean() * config.mean_penalty;
        let (actions, log_prob) = sample(output, step.noise.autodiff());
        let values = step.targets.map(|target| {
            let target = target.train().no_grad();
            target.preference(&input, actions.clone())
        });
        let value = match config.actor_value {
            ActorValue::Mean => (values[0].clone() + values[1].clone()) * 0.5,
            ActorValue::Minimum => twin_minimum(values, config.twin_minimum),
        };
        let entropy = -scalar(log_prob.clone().inner().mean());
        let cost = log_prob * step.entropy_weights.autodiff() * step.temperature;
        let loss = (cost - value).mean() + spread;

        let gradients = GradientsParams::from_grads(loss.backward(), &self.network);
        let step_size = config.actor_lr * step.decay;
        self.network = self
            .optimizer
            .step(step_size, self.network.clone(), gradients);
        let average = self.average.clone();
        let share = config.average_share(step.step);
        self.average = polyak(average, &self.network, share);
        (scalar(loss), entropy)
    }
}

fn differentiable(input: &CriticInput) -> CriticInput {
    CriticInput {
        windows: input.windows.clone().autodiff(),
        state: input.state.clone().autodiff(),
    }
}

/// Actions in (-1, 1) and the logarithm of their density, both `[rows, ports]`.
fn sample(output: ActorOutput, noise: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
    let raw = output.mean + output.log_std.clone().exp() * noise.clone();
    let normal = noise.square() * -0.5 - output.log_std - 0.5 * (2.0 * PI).ln();
    // log(1 - tanh(x)²) = 2 (log 2 - x - softplus(-2x)), which does not cancel for large x.
    let squash = (softplus(raw.clone() * -2.0, 1.0) + raw.clone() - LN_2) * 2.0;
    (raw.tanh(), normal + squash)
}

/// The smaller of two critics' values, `[rows, ports]`.
fn twin_minimum([first, second]: [Tensor<2>; 2], rule: TwinMinimum) -> Tensor<2> {
    match rule {
        TwinMinimum::Elementwise => first.min_pair(second),
        TwinMinimum::Sum => {
            let sums = [&first, &second].map(|values| values.clone().sum_dim(1));
            let [first_sum, second_sum] = sums;
            let choose_first = first_sum.lower(second_sum).float();
            second.clone() + (first - second) * choose_first
        }
    }
}

fn scalar(tensor: Tensor<1>) -> f32 {
    tensor.into_scalar::<f32>()
}

impl Temperature {
    /// One step of Adam on `log(temperature) · surplus`: entropy above its target lowers the
    /// temperature. Haarnoja et al. multiply by the temperature itself; its logarithm gives the
    /// same fixed point, and steps that do not shrink with it.
    fn step(&mut self, surplus: f64, rate: f64) {
        let [first, second] = &mut self.moments;
        self.steps += 1;
        *first += 0.1 * (surplus - *first);
        *second += 0.001 * (surplus * surplus - *second);
        let unbiased =
            |moment: f64, decay: f64| moment / (1.0 - libm::pow(decay, self.steps.into()));
        let deviation = libm::sqrt(unbiased(*second, 0.999)) + 1e-8;
        self.log -= rate * unbiased(*first, 0.9) / deviation;
    }
}

/// Updates between two solutions of the advantage's least squares.
const ADVANTAGE_EVERY: u64 = 50;

/// Identifiers of the networks' parameters, fixed so that an optimiser's record finds them again.
const ACTOR_IDS: u64 = 1_000;
const CRITIC_IDS: [u64; 2] = [2_000, 3_000];

#[cfg(test)]
mod tests;
