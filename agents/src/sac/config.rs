//! The settings of soft actor-critic.

use serde::{Deserialize, Serialize};

use crate::stored::LearnerError;

/// Every setting of the learner. Sources: (H) Haarnoja et al. 2018b table 1, (C) CleanRL's
/// `sac_continuous_action.py`, (M) measured in this project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SacConfig {
    /// Transitions per update. (H: 256)
    pub batch_size: usize,
    /// Number of critics, at least two. With more, the target takes two of them at random, and the actor follows the
    /// mean of all. (H: 2; REDQ, Chen et al. 2021: 10; M)
    pub critics: usize,
    /// Adam's step size for the actor, the largest one where `actor_kl` is given. (H: 3e-4)
    pub actor_lr: f64,
    /// Adam's step size for the critics. (C: 1e-3; H: 3e-4)
    pub critic_lr: f64,
    /// Adam's step size for the logarithm of the temperature. (C: 1e-3; H: 3e-4)
    pub temperature_lr: f64,
    /// Share of the critics that enters the target networks with every update, τ. (H: 0.005)
    pub polyak: f64,
    /// Entropy per output that the temperature is steered to, in nats. (H: -1)
    pub target_entropy: f64,
    /// Temperature at the start. Default: 0.1, or 0.003 where the initial policy is good. (C: 1)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_temperature: Option<f64>,
    /// Updates before the actor's first step. Default: 0, or 256 where the initial policy is good. (H: 0)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor_starts: Option<u64>,
    /// Largest divergence of the policy's means over 32 steps, in nats per agent. Adam's step size falls while the
    /// divergence is larger. 0: no limit. (H: none; M)
    pub actor_kl: f64,
    /// True if the entropy is that of the Gaussian before tanh, which depends on the deviation alone, so that it moves
    /// no mean. Default: where the initial policy is good. (H: that of the action)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gaussian_entropy: Option<bool>,
    /// True if the actor follows the mean of the target networks, false if it follows the minimum of two critics or the
    /// mean of more. (H: false; M)
    pub slopes_of_targets: bool,
    /// Share that is kept of the part that Q's slopes have in common, averaged over all agents and moments of a batch: it
    /// moves all actions together. (H: 1; M)
    pub common_slope: f64,
    /// Share of all steps that the policy's moving average spans: step n enters it with
    /// `1 / (1 + actor_average (n - 1))`; 0: the average is the policy. (H: none; polynomial-decay averaging: Shamir and
    /// Zhang 2013, section 4; M)
    pub actor_average: f64,
}

impl Default for SacConfig {
    /// Returns the settings of a training for the ports of a switch.
    fn default() -> SacConfig {
        SacConfig {
            batch_size: 128,
            critics: 5,
            actor_lr: 5e-5,
            polyak: 0.01,
            target_entropy: 0.0,
            initial_temperature: None,
            actor_starts: None,
            actor_kl: 0.005,
            gaussian_entropy: None,
            slopes_of_targets: true,
            common_slope: 0.1,
            actor_average: 0.2,
            ..SacConfig::published()
        }
    }
}

impl SacConfig {
    /// Sets what depends on the initial policy, unless it is set: where that is good, neither entropy nor critics that
    /// know nothing may move its means.
    pub fn settle(&mut self, is_good: bool) {
        self.initial_temperature
            .get_or_insert(if is_good { 0.003 } else { 0.1 });
        self.gaussian_entropy.get_or_insert(is_good);
        self.actor_starts
            .get_or_insert(if is_good { 256 } else { 0 });
    }

    /// Returns the settings of the published code, for tasks with one agent.
    pub fn published() -> SacConfig {
        SacConfig {
            batch_size: 256,
            critics: 2,
            actor_lr: 3e-4,
            critic_lr: 1e-3,
            temperature_lr: 1e-3,
            polyak: 0.005,
            target_entropy: -1.0,
            initial_temperature: Some(1.0),
            actor_starts: Some(0),
            actor_kl: 0.0,
            gaussian_entropy: Some(false),
            slopes_of_targets: false,
            common_slope: 1.0,
            actor_average: 0.0,
        }
    }

    /// Checks every setting's range, and that there are so many critics. Returns the settings without open ones.
    pub(super) fn ready_for(mut self, critics: usize) -> Result<SacConfig, LearnerError> {
        let (name, range) = ("critics", "the number of critics given");
        self.settle(false);
        match self.critics == critics {
            true => self.validate().map(|()| self),
            false => Err(LearnerError::Setting { name, range }),
        }
    }

    /// Checks every setting's range.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), LearnerError> {
        let [step, positive] =
            [1.0, 1e12].map(|most| move |value: f64| (1e-12..=most).contains(&value));
        let (rate, size) = ("between 1e-12 and 1", "between 1e-12 and 1e12");
        let share = "0, or between 1e-12 and 1";
        let checks = [
            (
                "batch_size",
                (1..=65_536).contains(&self.batch_size),
                "between 1 and 65536",
            ),
            (
                "critics",
                (2..=64).contains(&self.critics),
                "between 2 and 64",
            ),
            ("actor_lr", step(self.actor_lr), rate),
            ("critic_lr", step(self.critic_lr), rate),
            ("temperature_lr", step(self.temperature_lr), rate),
            ("polyak", step(self.polyak), rate),
            (
                "target_entropy",
                self.target_entropy.abs() <= 1e6,
                "between -1e6 and 1e6",
            ),
            (
                "initial_temperature",
                self.initial_temperature.is_none_or(positive),
                size,
            ),
            (
                "actor_starts",
                self.actor_starts
                    .is_none_or(|updates| updates <= 1_000_000_000_000_000),
                "at most 10^15",
            ),
            (
                "actor_kl",
                self.actor_kl == 0.0 || step(self.actor_kl),
                share,
            ),
            (
                "common_slope",
                (0.0..=1.0).contains(&self.common_slope),
                "between 0 and 1",
            ),
            (
                "actor_average",
                self.actor_average == 0.0 || step(self.actor_average),
                rate,
            ),
        ];
        let wrong = checks.into_iter().find(|&(_, fine, _)| !fine);
        wrong.map_or(Ok(()), |(name, _, range)| {
            Err(LearnerError::Setting { name, range })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A missing setting takes its default, so a written file must contain every setting.
    #[test]
    fn settings_survive_being_written() {
        for config in [SacConfig::published(), SacConfig::default()] {
            let text = serde_json::to_string(&config).unwrap();
            let read: SacConfig = serde_json::from_str(&text).unwrap();
            assert_eq!(read, config);
            assert!(config.validate().is_ok());
        }
    }
}
