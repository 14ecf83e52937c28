//! Soft actor-critic (Haarnoja et al. 2018b, "Soft Actor-Critic Algorithms and Applications").
//!
//! Read from top to bottom: settings, state, one update, saving. What differs from the textbook:
//!
//! - Decisions come at irregular times, so every transition has its own discount, and the entropy
//!   of decision k is paid with weight c_k, proportional to the time it is in force.
//! - Rewards and values are per port, `[batch, ports]`; the joint value is their mean. The twin
//!   minimum is taken on the joint value, so that one twin judges all ports of a sample.
//! - The entropy target is per port, and so does not depend on the number of ports.
//! - Noise comes from a host stream: the same seed gives the same weights, bit for bit.

mod state;

use std::f64::consts::{LN_2, PI};

use bufgym_env::control::ALPHAS;
use bufgym_models::noise::uniform;
use bufgym_models::parameters::{number, polyak};
use bufgym_models::{
    Actor, ActorOutput, ActorWeights, Critic, CriticInput, CriticKind, Device, standard_normal,
};
use burn::grad_clipping::GradientClippingConfig;
use burn::module::Module;
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::activation::softplus;
use burn::tensor::{Tensor, TensorData};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use crate::replay::Batch;

pub use state::SacError;

// --- Settings -----------------------------------------------------------------------------------

/// How the smaller of two critics is chosen in the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TwinMinimum {
    /// Per sample: the critic with the smaller sum over ports, for all its ports. Taking the
    /// minimum port by port instead would add up N small underestimations.
    #[default]
    Sum,
    /// Per port and sample.
    Elementwise,
}

/// Which critics the actor climbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActorCritics {
    /// The smaller of both (Haarnoja et al. 2018b).
    Minimum,
    /// The first (Fujimoto et al. 2018, TD3): half the work.
    #[default]
    First,
}

/// Every setting of the learner. Sources: (H) Haarnoja et al. 2018b table 1, (C) CleanRL's
/// `sac_continuous_action.py`, (F) Fujimoto et al. 2018, (M) measured here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SacConfig {
    /// Transitions per update. (H: 256; with a value per port 64 transitions are 1,024 samples, M)
    pub batch_size: usize,
    /// Which network estimates values.
    pub critic: CriticKind,
    /// Width of the privileged critic's layers. (M)
    pub critic_width: usize,
    /// Adam's step size for the actor. (H)
    pub actor_lr: f64,
    /// Adam's step size for the critics. (C: 1e-3; smaller is steadier with per-port targets)
    pub critic_lr: f64,
    /// Adam's step size for the logarithm of the temperature. (H: 3e-4; M)
    pub temperature_lr: f64,
    /// Share of the critics that enters their targets with every update (τ in the paper). [H: 0.005;
    /// M]
    pub polyak: f64,
    /// Entropy per port, in nats, that the temperature is steered to. (H: -1 per dimension; M)
    pub target_entropy: f64,
    /// Temperature at the start.
    pub initial_temperature: f64,
    /// Whether the temperature is learned. (H)
    pub learn_temperature: bool,
    /// Critic updates per actor update. (F)
    pub policy_delay: u32,
    /// Share of the actor that enters its moving average with every actor update. The average is
    /// what is validated and shipped: single updates swing the policy. (Polyak and Juditsky 1992)
    pub actor_average: f64,
    /// How the smaller critic is chosen in the target.
    pub twin_minimum: TwinMinimum,
    /// Which critics the actor climbs.
    pub actor_critics: ActorCritics,
    /// Weight of the squared mean before tanh in the actor's loss: keeps actions out of the flat
    /// ends of tanh, where no gradient brings them back. (Haarnoja et al. 2018a, published code)
    pub mean_penalty: f64,
    /// Largest norm of each parameter tensor's gradient; none when absent.
    pub gradient_clip: Option<f32>,
}

impl Default for SacConfig {
    fn default() -> SacConfig {
        SacConfig {
            batch_size: 64,
            critic: CriticKind::Privileged,
            critic_width: 96,
            actor_lr: 3e-4,
            critic_lr: 3e-4,
            temperature_lr: 1e-3,
            polyak: 0.01,
            target_entropy: 0.0,
            initial_temperature: 0.02,
            learn_temperature: true,
            policy_delay: 2,
            actor_average: 2e-3,
            twin_minimum: TwinMinimum::Sum,
            actor_critics: ActorCritics::First,
            mean_penalty: 3e-3,
            gradient_clip: None,
        }
    }
}

impl SacConfig {
    /// Checks every setting's range.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), SacError> {
        let positive = |value: f64| value > 0.0 && value.is_finite();
        let checks = [
            ("batch_size", self.batch_size > 0, "at least 1"),
            (
                "critic_width",
                (1..=4096).contains(&self.critic_width),
                "between 1 and 4096",
            ),
            ("actor_lr", positive(self.actor_lr), "positive"),
            ("critic_lr", positive(self.critic_lr), "positive"),
            ("temperature_lr", positive(self.temperature_lr), "positive"),
            (
                "polyak",
                self.polyak > 0.0 && self.polyak <= 1.0,
                "in (0, 1]",
            ),
            (
                "actor_average",
                self.actor_average > 0.0 && self.actor_average <= 1.0,
                "in (0, 1]",
            ),
            (
                "target_entropy",
                self.target_entropy.is_finite(),
                "a finite number",
            ),
            (
                "initial_temperature",
                positive(self.initial_temperature),
                "positive",
            ),
            (
                "mean_penalty",
                self.mean_penalty >= 0.0 && self.mean_penalty.is_finite(),
                "at least 0",
            ),
            ("policy_delay", self.policy_delay > 0, "at least 1"),
            (
                "gradient_clip",
                self.gradient_clip.is_none_or(|n| positive(n.into())),
                "positive",
            ),
        ];
        let wrong = checks.into_iter().find(|&(_, fine, _)| !fine);
        wrong.map_or(Ok(()), |(name, _, range)| {
            Err(SacError::Setting { name, range })
        })
    }

    fn optimizer(&self) -> ModuleOptimizer {
        // Burn's default epsilon is 1e-5; every published setting assumes 1e-8.
        let clip = self.gradient_clip.map(GradientClippingConfig::Norm);
        AdamConfig::new()
            .with_epsilon(1e-8)
            .with_grad_clipping(clip)
            .init()
    }
}

// --- State --------------------------------------------------------------------------------------

/// The learner: networks, targets, optimisers, temperature and random stream.
pub struct Sac {
    config: SacConfig,
    /// Without automatic differentiation; the learned networks live on its differentiating twin.
    device: Device,
    actor: Actor,
    averaged: Actor,
    critics: [Critic; 2],
    targets: [Critic; 2],
    actor_optimizer: ModuleOptimizer,
    critic_optimizers: [ModuleOptimizer; 2],
    temperature: Temperature,
    rng: Xoshiro256PlusPlus,
    updates: u64,
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
            number(
                Critic::random(config.critic, width, &mut rng, &learning),
                first,
            )
        });
        Ok(Sac {
            device,
            averaged: actor.valid(),
            actor,
            targets: [critics[0].valid(), critics[1].valid()],
            critics,
            actor_optimizer: config.optimizer(),
            critic_optimizers: [config.optimizer(), config.optimizer()],
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
        self.actor.to_weights()
    }

    /// A host copy of the policy's moving average.
    pub fn averaged_weights(&self) -> ActorWeights {
        self.averaged.to_weights()
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

    /// Learns from one batch: both critics, then (every `policy_delay` updates) actor and
    /// temperature, then the targets.
    ///
    /// # Panics
    /// When the batch is empty.
    pub fn update(&mut self, batch: &Batch) -> UpdateMetrics {
        let (rows, ports) = (batch.rows, batch.ports);
        let input = self.input(&batch.windows, &batch.state);
        let actions = self.dequantise(&batch.actions, [rows, ports]);
        let target = self.target(batch);
        let target_mean = scalar(target.clone().mean());
        let (critic_loss, q_mean, td_error) = self.update_critics(&input, actions, target);

        let weights = self.tensor(&batch.entropy_weights, [rows, 1]);
        let delay = u64::from(self.config.policy_delay);
        let due = self.updates % delay == delay - 1;
        let learned = due.then(|| self.update_actor(input, weights, rows, ports));
        self.updates += 1;

        for (target, critic) in self.targets.iter_mut().zip(&self.critics) {
            *target = polyak(target.clone(), critic, self.config.polyak);
        }
        UpdateMetrics {
            critic_loss,
            actor_loss: learned.map(|(loss, _)| loss),
            entropy: learned.map(|(_, entropy)| entropy),
            temperature: self.temperature() as f32,
            q_mean,
            target_mean,
            td_error,
        }
    }

    /// `y_i = r_i + γ (Q'_i(s', a') - temperature · c' · log π_i(a'|s'))`, `[rows, ports]`.
    fn target(&mut self, batch: &Batch) -> Tensor<2> {
        let (rows, ports) = (batch.rows, batch.ports);
        let input = self.input(&batch.next_windows, &batch.next_state);
        let noise = self.noise(rows, ports);
        let output = self.actor.valid().forward(input.windows.clone(), rows);
        let (actions, log_prob) = sample(output, noise);
        let values = self
            .targets
            .each_ref()
            .map(|q| q.forward(&input, actions.clone()));
        let value = smaller(values, self.config.twin_minimum);

        let weights = self.tensor(&batch.next_entropy_weights, [rows, 1]);
        let discounts = self.tensor(&batch.discounts, [rows, 1]);
        let rewards = self.tensor(&batch.rewards, [rows, ports]);
        rewards + discounts * (value - log_prob * weights * self.temperature())
    }

    /// One step of both critics towards the target. Loss, mean value, mean absolute error.
    fn update_critics(
        &mut self,
        input: &CriticInput,
        actions: Tensor<2>,
        target: Tensor<2>,
    ) -> (f32, f32, f32) {
        let input = CriticInput {
            windows: input.windows.clone().autodiff(),
            state: input.state.clone().autodiff(),
        };
        let (actions, target) = (actions.autodiff(), target.autodiff());
        let [first, second] = self
            .critics
            .each_ref()
            .map(|critic| critic.forward(&input, actions.clone()));
        let q_mean = scalar(first.clone().mean());
        let error = first - target.clone();
        let td_error = scalar(error.clone().inner().abs().mean());
        let loss = error.square().mean() + (second - target).square().mean();

        let mut gradients = loss.backward();
        for (critic, optimizer) in self.critics.iter_mut().zip(&mut self.critic_optimizers) {
            let gradients = GradientsParams::from_module(&mut gradients, critic);
            *critic = optimizer.step(self.config.critic_lr, critic.clone(), gradients);
        }
        (0.5 * scalar(loss), q_mean, td_error)
    }

    /// One step of the actor and of the temperature. Loss and entropy per port.
    ///
    /// The loss is `temperature · c · log π - Q`, both as means over ports; every port's value
    /// depends on all actions, so the gradient has the cross terms.
    fn update_actor(
        &mut self,
        input: CriticInput,
        entropy_weights: Tensor<2>,
        rows: usize,
        ports: usize,
    ) -> (f32, f32) {
        let noise = self.noise(rows, ports).autodiff();
        let input = CriticInput {
            windows: input.windows.autodiff(),
            state: input.state.autodiff(),
        };
        let output = self.actor.forward(input.windows.clone(), rows);
        let spread = output.mean.clone().square().mean() * self.config.mean_penalty;
        let (actions, log_prob) = sample(output, noise);
        let value = |index: usize| {
            self.critics[index]
                .clone()
                .no_grad()
                .forward(&input, actions.clone())
        };
        let value = match self.config.actor_critics {
            ActorCritics::First => value(0),
            ActorCritics::Minimum => smaller([value(0), value(1)], self.config.twin_minimum),
        };
        let entropy = -scalar(log_prob.clone().inner().mean());
        let cost = log_prob * entropy_weights.autodiff() * self.temperature();
        let loss = (cost - value).mean() + spread;

        let gradients = GradientsParams::from_grads(loss.backward(), &self.actor);
        self.actor = self
            .actor_optimizer
            .step(self.config.actor_lr, self.actor.clone(), gradients);
        self.averaged = polyak(
            self.averaged.clone(),
            &self.actor,
            self.config.actor_average,
        );
        if self.config.learn_temperature {
            let surplus = f64::from(entropy) - self.config.target_entropy;
            self.temperature.step(surplus, self.config.temperature_lr);
        }
        (scalar(loss), entropy)
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

    /// Every action moved to a random place within its cell.
    ///
    /// The outcome depends on the cell alone, so each of its points is as good a sample. Shown the
    /// centres only, a critic invents maxima between them, where the actor then settles.
    /// (Uniform dequantisation, Theis et al. 2016.)
    fn dequantise(&mut self, centres: &[f32], shape: [usize; 2]) -> Tensor<2> {
        let width = 2.0 / ALPHAS.len() as f32;
        let actions: Vec<f32> = centres
            .iter()
            .map(|centre| centre + width * (uniform(&mut self.rng) - 0.5))
            .collect();
        self.tensor(&actions, shape)
    }

    fn noise(&mut self, rows: usize, ports: usize) -> Tensor<2> {
        let noise: Vec<f32> = (0..rows * ports)
            .map(|_| standard_normal(&mut self.rng))
            .collect();
        self.tensor(&noise, [rows, ports])
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
fn smaller([first, second]: [Tensor<2>; 2], rule: TwinMinimum) -> Tensor<2> {
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

/// Identifiers of the networks' parameters, fixed so that an optimiser's record finds them again.
const ACTOR_IDS: u64 = 1_000;
const CRITIC_IDS: [u64; 2] = [2_000, 3_000];

#[cfg(test)]
mod tests;
