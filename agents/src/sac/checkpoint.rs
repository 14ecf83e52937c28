//! Saving and restoring a learner, bit for bit.

use std::path::Path;

use bufgym_models::parameters::NamedTensor;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::{ActionValue, Policy, Sac, SacConfig, Temperature};
use crate::optimizer::{ScalarAdam, adam};
use crate::stored::{Checked, Files, LearnerError, corrupt, prefixed, restore};

const NETWORKS: &str = "networks.safetensors";
const OPTIMIZER: &str = "actor.adam.bpk";
const POLICIES: [&str; 3] = ["actor", "averaged", "anchor"];

/// The names of a critic's network, target network and optimiser.
fn names_of_critic(place: usize) -> [String; 3] {
    [
        format!("critics.{place}"),
        format!("targets.{place}"),
        format!("critic-{place}.adam.bpk"),
    ]
}

/// Everything that is not a tensor. Floating-point numbers are kept as bits, because reading their decimal form may
/// change the last bit.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SacRecord {
    pub(crate) config: SacConfig,
    updates: u64,
    actor_steps: u64,
    actor_lr_bits: u64,
    temperature_log_bits: u64,
    temperature_moments_bits: [u64; 2],
    temperature_steps: i32,
    rng: Xoshiro256PlusPlus,
}

impl<P: Policy, Q: ActionValue<P::Observation>> Sac<P, Q> {
    /// Adds networks and optimisers to the files, and returns the rest.
    pub(crate) fn write(&self, dir: &Path, files: &mut Files) -> Result<SacRecord, LearnerError> {
        let mut tensors: Vec<NamedTensor> = prefixed(POLICIES[0], &self.policy).collect();
        tensors.extend(prefixed(POLICIES[1], &self.average));
        tensors.extend(prefixed(POLICIES[2], &self.anchor));
        files.add_optimizer(dir, OPTIMIZER, &self.optimizer)?;
        for (place, critic) in self.critics.iter().enumerate() {
            let [network, target, optimizer] = names_of_critic(place);
            tensors.extend(prefixed(&network, &critic.network));
            tensors.extend(prefixed(&target, &critic.target));
            files.add_optimizer(dir, &optimizer, &critic.optimizer)?;
        }
        files.add_tensors(dir, NETWORKS, &tensors)?;
        Ok(SacRecord {
            config: self.config.clone(),
            updates: self.updates,
            actor_steps: self.actor_steps,
            actor_lr_bits: self.actor_lr.to_bits(),
            temperature_log_bits: self.temperature.log.to_bits(),
            temperature_moments_bits: self.temperature.adam.moments.map(f64::to_bits),
            temperature_steps: self.temperature.adam.steps,
            rng: self.rng.clone(),
        })
    }

    /// Takes what [`write`](Sac::write) added. The next update gives the same weights as without saving and loading.
    pub(crate) fn read(
        &mut self,
        record: SacRecord,
        files: &Checked<'_>,
    ) -> Result<(), LearnerError> {
        let tensors = files.tensors(NETWORKS)?;
        let wrong = |reason: String| corrupt(files.dir, NETWORKS, reason);
        self.policy = restore(self.policy.clone(), POLICIES[0], &tensors).map_err(wrong)?;
        self.average = restore(self.average.clone(), POLICIES[1], &tensors).map_err(wrong)?;
        self.anchor = restore(self.anchor.clone(), POLICIES[2], &tensors).map_err(wrong)?;
        self.optimizer = files.optimizer(OPTIMIZER, adam(None))?;
        for (place, critic) in self.critics.iter_mut().enumerate() {
            let [network, target, optimizer] = names_of_critic(place);
            critic.network = restore(critic.network.clone(), &network, &tensors).map_err(wrong)?;
            critic.target = restore(critic.target.clone(), &target, &tensors).map_err(wrong)?;
            critic.optimizer = files.optimizer(&optimizer, adam(None))?;
        }
        self.updates = record.updates;
        self.actor_steps = record.actor_steps;
        self.actor_lr = f64::from_bits(record.actor_lr_bits);
        self.temperature = Temperature {
            log: f64::from_bits(record.temperature_log_bits),
            adam: ScalarAdam {
                moments: record.temperature_moments_bits.map(f64::from_bits),
                steps: record.temperature_steps,
            },
        };
        self.rng = record.rng;
        Ok(())
    }
}
