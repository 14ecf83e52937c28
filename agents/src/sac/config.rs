//! The learner's settings.

use bufgym_models::CriticKind;
use burn::grad_clipping::GradientClippingConfig;
use burn::optim::{AdamConfig, ModuleOptimizer};
use serde::{Deserialize, Serialize};

use super::SacError;

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

/// Which value the actor climbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActorValue {
    /// The smaller of both targets' (Haarnoja et al. 2018b, there of the critics).
    Minimum,
    /// The mean of both. (M)
    #[default]
    Mean,
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
    /// Samples that the advantage's least squares remembers: a sample's weight falls by e after so
    /// many others. (M)
    pub advantage_samples: u64,
    /// Ridge of these least squares: as much as this many samples with features of size one. (M)
    pub advantage_ridge: f64,
    /// Updates after which the step sizes of actor and critics have halved; they fall as
    /// `1 / (1 + updates / halving)`. The value of one decision among hundreds is small against
    /// the noise that constant steps leave in the weights. (Robbins and Monro 1951, M)
    pub halving_updates: u64,
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
    /// Share of all actor updates so far that the actor's moving average spans: after n of them
    /// the newest enters with `1 / (1 + actor_average (n - 1))`. The average is what is validated
    /// and shipped: single updates swing the policy. (Polynomial-decay averaging: Shamir and Zhang
    /// 2013, section 4; M)
    pub actor_average: f64,
    /// How the smaller critic is chosen in the target.
    pub twin_minimum: TwinMinimum,
    /// Which value the actor climbs.
    pub actor_value: ActorValue,
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
            critic_lr: 5e-4,
            advantage_samples: 400_000,
            advantage_ridge: 3_000.0,
            halving_updates: 20_000,
            temperature_lr: 1e-3,
            polyak: 0.01,
            target_entropy: 0.0,
            initial_temperature: 0.004,
            learn_temperature: true,
            policy_delay: 2,
            actor_average: 0.2,
            twin_minimum: TwinMinimum::Sum,
            actor_value: ActorValue::Mean,
            mean_penalty: 5e-4,
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
                "advantage_samples",
                self.advantage_samples > 0,
                "at least 1",
            ),
            (
                "advantage_ridge",
                positive(self.advantage_ridge),
                "positive",
            ),
            ("halving_updates", self.halving_updates > 0, "at least 1"),
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

    /// What the step sizes are multiplied by after so many updates.
    pub(super) fn decay(&self, updates: u64) -> f64 {
        1.0 / (1.0 + updates as f64 / self.halving_updates as f64)
    }

    /// With what share the actor enters its average in its `step`-th update, counted from 1.
    pub(super) fn average_share(&self, step: u64) -> f64 {
        1.0 / (1.0 + self.actor_average * (step - 1) as f64)
    }

    pub(super) fn optimizer(&self) -> ModuleOptimizer {
        // Burn's default epsilon is 1e-5; every published setting assumes 1e-8.
        let clip = self.gradient_clip.map(GradientClippingConfig::Norm);
        AdamConfig::new()
            .with_epsilon(1e-8)
            .with_grad_clipping(clip)
            .init()
    }
}
