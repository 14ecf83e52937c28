//! Soft actor-critic (Haarnoja et al. 2018b, "Soft Actor-Critic Algorithms and Applications").
//!
//! This file holds the whole algorithm, to be read from top to bottom: settings, state, one update
//! and its parts. The advantage's least squares are in `sac/advantage.rs`, saving and loading in
//! `sac/checkpoint.rs`. What differs from the paper:
//!
//! - Decisions come at irregular times. So every transition has its own discount, and the entropy
//!   of decision k has a weight c_k, proportional to the time for which the decision holds.
//! - The privileged critic is `V + A`. The value V is a network that Adam trains; the advantage A is
//!   linear and fitted by least squares.
//! - Rewards and values are per port, `[batch, ports]`; the joint value is their mean. The minimum
//!   of the twin critics is that of the joint value: one critic judges all ports of a sample.
//! - The advantage is believed as far as two halves of the experience agree about it.
//! - The actor may begin as the imitation of a teacher, and then stays near to the best weights that
//!   were validated ([`Sac::keep`]): a trust region, and a way back.
//! - The entropy is that of the Gaussian before tanh. Its target is per port and output, so it does not
//!   depend on their number.
//! - Noise comes from a random stream on the host: the same seed gives the same weights, bit for
//!   bit.

mod advantage;
mod checkpoint;

use std::f64::consts::{LN_2, PI};

use bufgym_env::control::{ActionSet, LEVELS};
use bufgym_env::convert::single;
use bufgym_models::critic::STATE;
use bufgym_models::parameters::{host_values, number, polyak};
use bufgym_models::windows::WINDOW;
use bufgym_models::{
    Actor, ActorOutput, ActorWeights, Critic, CriticInput, CriticKind, Device, standard_normal,
};
use burn::module::Module;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::activation::softplus;
use burn::tensor::{Tensor, TensorData};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use crate::imitation::Examples;
use crate::optimizer::adam;
use crate::replay::Batch;
use crate::stored::LearnerError;

use advantage::Advantage;

/// Updates between two solutions of the advantage's least squares.
const ADVANTAGE_EVERY: u64 = 50;

/// The temperature falls no further.
const LEAST_TEMPERATURE: f64 = 1e-6;

/// Weight of the squared distance from the trust region, per output. Where a value's slope is s per unit of action, the
/// policy gets s / 20 beyond its edge; slopes are 0.01 to 1.
const TRUST: f64 = 10.0;

/// Adam's first step size where the actor imitates; it falls to zero.
const IMITATION_LR: f64 = 2e-3;

/// Identifiers of the networks' parameters. They are fixed so that an optimiser's record fits the
/// network in another process.
const ACTOR_IDS: u64 = 1_000;
const CRITIC_IDS: [u64; 2] = [2_000, 3_000];

// --- Settings -----------------------------------------------------------------------------------

/// How the minimum of the twin critics is taken in the target.
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

/// Which value the actor maximises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActorValue {
    /// The minimum of the two target networks. (Haarnoja et al. 2018b take that of the critics.)
    Minimum,
    /// The mean of the two target networks. (M)
    #[default]
    Mean,
}

/// Whose entropy the policy is paid for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntropyOf {
    /// That of the action in (-1, 1). It is largest in the middle of the range, so it draws means there.
    /// (Haarnoja et al. 2018b, appendix C)
    Action,
    /// That of the Gaussian before tanh. It depends on the deviation alone: means are moved by values
    /// alone. (M)
    #[default]
    Gaussian,
}

/// Every setting of the learner. Sources: (H) Haarnoja et al. 2018b table 1, (C) CleanRL's
/// `sac_continuous_action.py`, (F) Fujimoto et al. 2018 (TD3), (M) measured in this project.
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
    /// How far the mean action of every port may be from that of the weights that were kept last, where some were
    /// ([`Sac::keep`]); an action's range is 2 wide. Estimates of a decision's worth are noise for long, and
    /// Adam's steps do not get smaller where gradients do. 2: no limit. (A trust region, as in Schulman et al.
    /// 2015, by a penalty; M)
    pub trust_radius: f64,
    /// Memory of the advantage's least squares: the weight of a sample falls to 1/e after this many
    /// later samples. (M)
    pub advantage_samples: u64,
    /// Ridge of these least squares. It has the effect of this many samples with features of size
    /// one and a residual of zero. (M)
    pub advantage_ridge: f64,
    /// Updates after which the step sizes of actor and critics have halved. They fall as
    /// `1 / (1 + updates / halving_updates)`: constant steps leave noise in the weights that is
    /// larger than the value of one decision. (Robbins and Monro 1951, M)
    pub halving_updates: u64,
    /// Adam's step size for the logarithm of the temperature. (H: 3e-4; M)
    pub temperature_lr: f64,
    /// Share of the critics that enters the target networks with every update (τ of the paper).
    /// (H: 0.005; M)
    pub polyak: f64,
    /// Entropy per port and output, in nats, that the temperature is steered to. (H: -1 per dimension;
    /// M)
    pub target_entropy: f64,
    /// Whose entropy that is.
    pub entropy_of: EntropyOf,
    /// Temperature at the start.
    pub initial_temperature: f64,
    /// Whether the temperature is learned. (H)
    pub learn_temperature: bool,
    /// Critic updates per actor update. (F)
    pub policy_delay: u32,
    /// Updates before the actor's first: until then the advantage is unknown, and Adam's steps would follow
    /// its noise. (M)
    pub actor_starts: u64,
    /// Share of all actor updates that the actor's moving average spans: actor update n enters the
    /// average with `1 / (1 + actor_average (n - 1))`. The average is what is validated and
    /// shipped, because single updates move the policy too much. (Polynomial-decay averaging:
    /// Shamir and Zhang 2013, section 4; M)
    pub actor_average: f64,
    /// How the minimum of the twin critics is taken in the target.
    pub twin_minimum: TwinMinimum,
    /// Which value the actor maximises.
    pub actor_value: ActorValue,
    /// Weight of the squared mean before tanh in the actor's loss. It keeps actions out of the flat
    /// ends of tanh, where the gradient vanishes. (Haarnoja et al. 2018a, published code)
    pub mean_penalty: f64,
    /// Largest norm of each parameter tensor's gradient; none when absent.
    pub gradient_clip: Option<f32>,
    /// Where decisions set early drop too: the levels of α and of early drop that an untrained actor's
    /// mean is at. Constant, they are about the best there are. (M)
    pub early_start: [u8; 2],
}

impl Default for SacConfig {
    fn default() -> SacConfig {
        SacConfig {
            batch_size: 64,
            critic: CriticKind::Privileged,
            critic_width: 96,
            actor_lr: 3e-4,
            critic_lr: 5e-4,
            trust_radius: 0.2,
            advantage_samples: 400_000,
            advantage_ridge: 3_000.0,
            halving_updates: 20_000,
            temperature_lr: 2e-2,
            polyak: 0.01,
            target_entropy: 0.0,
            entropy_of: EntropyOf::Gaussian,
            initial_temperature: 0.004,
            learn_temperature: true,
            policy_delay: 2,
            actor_starts: 0,
            actor_average: 0.2,
            twin_minimum: TwinMinimum::Sum,
            actor_value: ActorValue::Mean,
            mean_penalty: 5e-4,
            gradient_clip: None,
            early_start: [5, 4],
        }
    }
}

/// Largest number of transitions per update.
const MAX_BATCH: usize = 65_536;

impl SacConfig {
    /// Checks every setting's range.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), LearnerError> {
        let positive = |value: f64| (1e-12..=1e12).contains(&value);
        let step = |value: f64| (1e-12..=1.0).contains(&value);
        let count = |value: u64| (1..=1_000_000_000_000_000).contains(&value);
        let checks = [
            (
                "batch_size",
                (1..=MAX_BATCH).contains(&self.batch_size),
                "between 1 and 65536",
            ),
            (
                "critic_width",
                (1..=4096).contains(&self.critic_width),
                "between 1 and 4096",
            ),
            ("actor_lr", step(self.actor_lr), "between 1e-12 and 1"),
            ("critic_lr", step(self.critic_lr), "between 1e-12 and 1"),
            (
                "temperature_lr",
                step(self.temperature_lr),
                "between 1e-12 and 1",
            ),
            ("polyak", step(self.polyak), "between 1e-12 and 1"),
            (
                "actor_average",
                step(self.actor_average),
                "between 1e-12 and 1",
            ),
            (
                "target_entropy",
                self.target_entropy.abs() <= 1e6,
                "between -1e6 and 1e6",
            ),
            (
                "initial_temperature",
                positive(self.initial_temperature),
                "between 1e-12 and 1e12",
            ),
            (
                "mean_penalty",
                (0.0..=1e12).contains(&self.mean_penalty),
                "between 0 and 1e12",
            ),
            (
                "trust_radius",
                (1e-12..=2.0).contains(&self.trust_radius),
                "between 1e-12 and 2",
            ),
            ("policy_delay", self.policy_delay > 0, "at least 1"),
            (
                "actor_starts",
                self.actor_starts <= 1_000_000_000_000_000,
                "at most 10^15",
            ),
            (
                "advantage_samples",
                count(self.advantage_samples),
                "between 1 and 10^15",
            ),
            (
                "advantage_ridge",
                positive(self.advantage_ridge),
                "between 1e-12 and 1e12",
            ),
            (
                "halving_updates",
                count(self.halving_updates),
                "between 1 and 10^15",
            ),
            (
                "gradient_clip",
                self.gradient_clip.is_none_or(|n| positive(n.into())),
                "between 1e-12 and 1e12",
            ),
            (
                "early_start",
                self.early_start
                    .iter()
                    .all(|&level| usize::from(level) < LEVELS),
                "levels from 0 to 7",
            ),
        ];
        let wrong = checks.into_iter().find(|&(_, fine, _)| !fine);
        wrong.map_or(Ok(()), |(name, _, range)| {
            Err(LearnerError::Setting { name, range })
        })
    }

    /// Factor of the step sizes after `updates` updates.
    fn decay(&self, updates: u64) -> f64 {
        1.0 / (1.0 + updates as f64 / self.halving_updates as f64)
    }

    /// The share with which the actor enters its average in its `step`-th update, counted from 1.
    fn average_share(&self, step: u64) -> f64 {
        1.0 / (1.0 + self.actor_average * (step - 1) as f64)
    }

    fn optimizer(&self) -> ModuleOptimizer {
        adam(self.gradient_clip)
    }
}

// --- State --------------------------------------------------------------------------------------

/// The learner: networks, target networks, optimisers, temperature and random stream.
pub struct Sac {
    config: SacConfig,
    actions: ActionSet,
    /// The device without automatic differentiation. The trained networks are on the same device
    /// with it.
    device: Device,
    actor: ActorLearner,
    critics: [CriticLearner; 2],
    advantage: Advantage,
    temperature: Temperature,
    rng: Xoshiro256PlusPlus,
    updates: u64,
}

/// The actor, its moving average and its optimiser.
struct ActorLearner {
    network: Actor,
    average: Actor,
    /// The weights to return to, where some were kept.
    kept: Option<Actor>,
    optimizer: ModuleOptimizer,
}

/// One critic, its target network and its optimiser.
struct CriticLearner {
    network: Critic,
    target: Critic,
    optimizer: ModuleOptimizer,
}

/// The logarithm of the temperature and its Adam state. One number needs no tensors.
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
    /// The actor's loss; none where `policy_delay` skipped the actor.
    pub actor_loss: Option<f32>,
    /// Entropy per port and output, in nats, of the policy on this batch; none where `actor_loss` is.
    pub entropy: Option<f32>,
    /// Temperature after the update.
    pub temperature: f32,
    /// Mean value per port of the stored actions (first critic).
    pub q_mean: f32,
    /// Mean target per port.
    pub target_mean: f32,
    /// Mean absolute difference between value and target (first critic).
    pub td_error: f32,
    /// How much the two halves of the experience agree about the advantage, -1 to 1; none where it was not
    /// estimated in this update.
    pub agreement: Option<f32>,
}

impl Sac {
    /// A learner with random weights for decisions that set `actions`. The same seed gives the same
    /// weights.
    ///
    /// # Errors
    /// When a setting is out of range.
    pub fn new(
        config: SacConfig,
        actions: ActionSet,
        seed: u64,
        device: &Device,
    ) -> Result<Sac, LearnerError> {
        config.validate()?;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let device = device.clone().without_autodiff();
        let trained = device.clone().autodiff();
        let mut weights = ActorWeights::random_for(actions, &mut rng);
        if actions.drops_early() {
            weights.begin_at(&config.early_start);
        }
        let actor = number(Actor::from_weights(&weights, &trained), ACTOR_IDS);
        let critics = CRITIC_IDS.map(|first| {
            let width = config.critic_width;
            let critic =
                Critic::random(config.critic, width, actions.outputs(), &mut rng, &trained);
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
                kept: None,
                optimizer: config.optimizer(),
            },
            critics,
            advantage: Advantage::new(actions.outputs()),
            temperature: Temperature {
                log: libm::log(config.initial_temperature),
                moments: [0.0; 2],
                steps: 0,
            },
            rng,
            updates: 0,
            actions,
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

    /// Keeps these weights as those to return to.
    pub fn keep(&mut self, weights: &ActorWeights) {
        let kept = Actor::from_weights(weights, &self.device);
        self.actor.kept = Some(number(kept, ACTOR_IDS));
    }

    /// A host copy of the weights that were kept last.
    pub fn kept_weights(&self) -> Option<ActorWeights> {
        self.actor.kept.as_ref().map(Actor::to_weights)
    }

    /// Goes on from the weights that were kept last: they become the policy and its average, and the
    /// actor's optimiser starts anew. Critics, advantage and temperature stay, as they have learned from
    /// what led astray too. Does nothing where none were kept.
    pub fn return_to_kept(&mut self) {
        let Some(kept) = self.actor.kept.clone() else {
            return;
        };
        let trained = Actor::from_weights(&kept.to_weights(), &self.device.clone().autodiff());
        self.actor.network = number(trained, ACTOR_IDS);
        self.actor.average = kept;
        self.actor.optimizer = self.config.optimizer();
    }

    /// Teaches the actor to act as a teacher does: `steps` steps of Adam on the squared difference of the
    /// actions, and of the logarithm of the deviation from `log_std`. The groups of examples, one for each
    /// number of ports, take turns. Then the actor's average is the actor, and its optimiser starts anew.
    /// Returns the root of the mean squared difference of the actions in the last tenth of the steps.
    ///
    /// # Panics
    /// When there is no group, or one without examples.
    pub fn imitate(&mut self, groups: &[Examples], steps: u64, log_std: f32) -> f32 {
        let filled = groups.iter().all(|examples| !examples.is_empty());
        assert!(filled && !groups.is_empty(), "a teacher needs an example");
        let mut optimizer = self.config.optimizer();
        let (mut sum, mut count) = (0.0, 0_u64);
        for (step, examples) in (0..steps).zip(groups.iter().cycle()) {
            let rows = (self.config.batch_size * groups[0].ports() / examples.ports()).max(1);
            let (windows, actions) = examples.draw(rows, &mut self.rng);
            let windows = self.tensor(&windows, [windows.len() / WINDOW, WINDOW]);
            let actions = self.tensor(&actions, [rows, actions.len() / rows]);
            let output = self.actor.network.forward(windows.autodiff(), rows);
            let difference = (output.mean.tanh() - actions.autodiff()).square().mean();
            let spread = (output.log_std - log_std).square().mean();
            let error = scalar(difference.clone().inner());
            let gradients = (difference + spread * 0.1).backward();
            let gradients = GradientsParams::from_grads(gradients, &self.actor.network);
            let left = 1.0 - step as f64 / steps as f64;
            self.actor.network =
                optimizer.step(IMITATION_LR * left, self.actor.network.clone(), gradients);
            if step >= steps - steps.div_ceil(10) {
                sum += f64::from(error);
                count += 1;
            }
        }
        self.actor.average = self.actor.network.valid();
        self.actor.optimizer = self.config.optimizer();
        single((sum / count.max(1) as f64).sqrt())
    }

    /// What its decisions set.
    pub fn actions(&self) -> ActionSet {
        self.actions
    }

    /// Updates so far.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    fn temperature(&self) -> f64 {
        libm::exp(self.temperature.log)
    }

    // --- One update -----------------------------------------------------------------------------

    /// Learns from one batch. Both critics make a step, and every `policy_delay` updates so do
    /// actor and temperature. Then the target networks are updated.
    ///
    /// Critics and actor read only the target networks, not each other's new weights, so they run
    /// in parallel on the current rayon pool. The result does not depend on the number of threads.
    ///
    /// # Panics
    /// When the batch is empty.
    pub fn update(&mut self, batch: &Batch) -> UpdateMetrics {
        let (rows, values) = (batch.rows, batch.ports * self.actions.outputs());
        let input = self.input(&batch.windows, &batch.state);
        let actions = self.tensor(&batch.actions, [rows, values]);
        let target = self.target(batch);
        let target_mean = scalar(target.clone().mean());

        let delay = u64::from(self.config.policy_delay);
        let learned = self.updates.checked_sub(self.config.actor_starts);
        let due = learned.filter(|learned| learned % delay == delay - 1);
        let actor_step = due.map(|learned| ActorStep {
            noise: self.noise(rows, values),
            ports: batch.ports,
            entropy_weights: self.tensor(&batch.entropy_weights, [rows, 1]),
            targets: self
                .critics
                .each_ref()
                .map(|learner| learner.target.clone()),
            temperature: self.temperature(),
            decay: self.config.decay(self.updates),
            number: learned / delay + 1,
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
            let error = f64::from(entropy) - self.config.target_entropy;
            self.temperature.step(error, self.config.temperature_lr);
        }
        self.updates += 1;
        let agreement = match self.config.critic {
            CriticKind::Privileged => self.fit_advantage(batch, &first.errors, &second.errors),
            CriticKind::Trunk => None,
        };
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
            temperature: single(self.temperature()),
            q_mean: first.mean,
            target_mean,
            td_error: first.td_error,
            agreement,
        }
    }

    /// Adds a batch to the least squares. Every [`ADVANTAGE_EVERY`] updates, solves them, sets
    /// the critics' advantage and returns how much its halves agree. `first` and `second` are each critic's value
    /// minus target, as means over ports.
    fn fit_advantage(&mut self, batch: &Batch, first: &[f32], second: &[f32]) -> Option<f32> {
        let pairs = first.iter().zip(second);
        let residuals: Vec<f32> = pairs.map(|(a, b)| -0.5 * (a + b)).collect();
        let keep = 1.0 - batch.rows as f64 / self.config.advantage_samples as f64;
        self.advantage.add(batch, &residuals, keep.max(0.0));
        if !self.updates.is_multiple_of(ADVANTAGE_EVERY) {
            return None;
        }
        let (weights, agreement) = self.advantage.weights(self.config.advantage_ridge);
        for learner in &mut self.critics {
            learner.network.set_advantage(&weights);
            learner.target.set_advantage(&weights);
        }
        Some(single(agreement))
    }

    /// `y_i = r_i + γ (Q'_i(s', a') - temperature · c' · log π_i(a'|s'))`, `[rows, ports]`.
    fn target(&mut self, batch: &Batch) -> Tensor<2> {
        let (rows, ports) = (batch.rows, batch.ports);
        let input = self.input(&batch.next_windows, &batch.next_state);
        let noise = self.noise(rows, ports * self.actions.outputs());
        let output = self
            .actor
            .network
            .valid()
            .forward(input.windows.clone(), rows);
        let (actions, log_prob) = sample(output, noise, self.config.entropy_of);
        let log_prob = by_port(log_prob, ports);
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
        CriticInput {
            windows: self.tensor(windows, [windows.len() / WINDOW, WINDOW]),
            state: self.tensor(state, [state.len() / STATE, STATE]),
        }
    }

    fn tensor(&self, values: &[f32], shape: [usize; 2]) -> Tensor<2> {
        Tensor::from_data(TensorData::new(values.to_vec(), shape), &self.device)
    }

    fn noise(&mut self, rows: usize, values: usize) -> Tensor<2> {
        let noise: Vec<f32> = (0..rows * values)
            .map(|_| standard_normal(&mut self.rng))
            .collect();
        self.tensor(&noise, [rows, values])
    }
}

/// What one step of a critic measured.
struct CriticMetrics {
    loss: f32,
    /// Mean value of the batch.
    mean: f32,
    /// Mean absolute difference between value and target.
    td_error: f32,
    /// Value minus target of every row, as means over ports.
    errors: Vec<f32>,
}

impl CriticLearner {
    /// One step of gradient descent on the mean squared error.
    fn step(
        &mut self,
        input: &CriticInput,
        actions: &Tensor<2>,
        target: &Tensor<2>,
        step_size: f64,
    ) -> CriticMetrics {
        let input = input.autodiff();
        let value = self.network.estimate(&input, actions.clone().autodiff());
        let mean = scalar(value.clone().inner().mean());
        let error = value - target.clone().autodiff();
        let td_error = scalar(error.clone().inner().abs().mean());
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
            td_error,
            errors,
        }
    }

    /// Moves the target network by `share` of its distance to the critic.
    fn soft_update(&mut self, share: f64) {
        let target = self.target.clone();
        self.target = polyak(target, &self.network, share);
    }
}

/// What a step of the actor needs besides the batch's observations.
struct ActorStep {
    /// `[rows, ports * outputs]`
    noise: Tensor<2>,
    ports: usize,
    /// `[rows, 1]`
    entropy_weights: Tensor<2>,
    targets: [Critic; 2],
    temperature: f64,
    decay: f64,
    /// Number of the actor's step, counted from 1.
    number: u64,
}

impl ActorLearner {
    /// One step of the actor. Returns loss and entropy per port and output.
    ///
    /// The loss is `temperature · c · log π - Q`, as a mean over ports. Every port's value depends
    /// on the actions of all ports, so the gradient has the cross terms. Q is that of the target
    /// networks: they average out the noise in the critics' newest weights, which is larger than
    /// the value of one decision.
    fn step(&mut self, input: &CriticInput, step: ActorStep, config: &SacConfig) -> (f32, f32) {
        let input = input.autodiff();
        let rows = step.noise.dims()[0];
        let output = self.network.forward(input.windows.clone(), rows);
        let mut penalty = output.mean.clone().square().mean() * config.mean_penalty;
        if let Some(kept) = &self.kept
            && config.trust_radius < 2.0
        {
            let kept = kept.forward(input.windows.clone().inner(), rows);
            let away = (output.mean.clone().tanh() - kept.mean.tanh().autodiff()).abs();
            let outside = (away - config.trust_radius).clamp_min(0.0);
            penalty = penalty + outside.square().mean() * TRUST;
        }
        let (actions, log_prob) = sample(output, step.noise.autodiff(), config.entropy_of);
        let values = step.targets.map(|target| {
            let target = target.train().no_grad();
            target.preference(&input, actions.clone())
        });
        let value = match config.actor_value {
            ActorValue::Mean => (values[0].clone() + values[1].clone()) * 0.5,
            ActorValue::Minimum => twin_minimum(values, config.twin_minimum),
        };
        let entropy = -scalar(log_prob.clone().inner().mean());
        let cost =
            by_port(log_prob, step.ports) * step.entropy_weights.autodiff() * step.temperature;
        let loss = (cost - value).mean() + penalty;

        let gradients = GradientsParams::from_grads(loss.backward(), &self.network);
        let step_size = config.actor_lr * step.decay;
        self.network = self
            .optimizer
            .step(step_size, self.network.clone(), gradients);
        let average = self.average.clone();
        let share = config.average_share(step.number);
        self.average = polyak(average, &self.network, share);
        (scalar(loss), entropy)
    }
}

/// The density of all outputs of a port: `[rows, ports * outputs]` to `[rows, ports]`.
fn by_port(log_prob: Tensor<2>, ports: usize) -> Tensor<2> {
    let [rows, values] = log_prob.dims();
    match values / ports {
        1 => log_prob,
        outputs => log_prob
            .reshape([rows * ports, outputs])
            .sum_dim(1)
            .reshape([rows, ports]),
    }
}

/// Actions in (-1, 1) and the logarithm of the density that the entropy is of, both
/// `[rows, ports * outputs]`.
fn sample(output: ActorOutput, noise: Tensor<2>, entropy_of: EntropyOf) -> (Tensor<2>, Tensor<2>) {
    let raw = output.mean + output.log_std.clone().exp() * noise.clone();
    let normal = noise.square() * -0.5 - output.log_std - 0.5 * (2.0 * PI).ln();
    if entropy_of == EntropyOf::Gaussian {
        return (raw.tanh(), normal);
    }
    // log(1 - tanh(x)²) = 2 (log 2 - x - softplus(-2x)), which stays precise for large x.
    let squash = (softplus(raw.clone() * -2.0, 1.0) + raw.clone() - LN_2) * 2.0;
    (raw.tanh(), normal + squash)
}

/// The minimum of the twin critics' values, `[rows, ports]`.
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
    /// One step of Adam on `log(temperature) · error`, where `error` is the entropy minus its
    /// target: too much entropy lowers the temperature. Haarnoja et al. multiply by the temperature
    /// itself. With its logarithm the fixed point is the same, and steps do not shrink with the
    /// temperature.
    fn step(&mut self, error: f64, rate: f64) {
        let [first, second] = &mut self.moments;
        self.steps += 1;
        *first += 0.1 * (error - *first);
        *second += 0.001 * (error * error - *second);
        let unbiased =
            |moment: f64, decay: f64| moment / (1.0 - libm::pow(decay, self.steps.into()));
        let deviation = libm::sqrt(unbiased(*second, 0.999)) + 1e-8;
        self.log -= rate * unbiased(*first, 0.9) / deviation;
        // Where no value moves the policy, its entropy stays, and the temperature would fall for ever.
        self.log = self.log.max(libm::log(LEAST_TEMPERATURE));
    }
}

#[cfg(test)]
mod tests;
