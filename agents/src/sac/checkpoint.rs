//! Saving and restoring a learner, bit for bit.

use std::path::Path;

use bufgym_models::parameters::NamedTensor;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::{ActionValue, Policy, Sac, SacConfig, Temperature};
use crate::optimizer::{ScalarAdam, adam};
use crate::stored::{Checked, Files, LearnerError, corrupt, prefixed, restore};

const NETWORKS: &str = "networks.safetensors";
const OPTIMIZERS: [&str; 3] = ["actor.adam.bpk", "critic-0.adam.bpk", "critic-1.adam.bpk"];
const POLICIES: [&str; 3] = ["actor", "averaged", "anchor"];
const CRITICS: [[&str; 2]; 2] = [["critics.0", "targets.0"], ["critics.1", "targets.1"]];

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
        for ([network, target], critic) in CRITICS.iter().zip(&self.critics) {
            tensors.extend(prefixed(network, &critic.network));
            tensors.extend(prefixed(target, &critic.target));
        }
        files.add_tensors(dir, NETWORKS, &tensors)?;
        let [first, second] = self.critics.each_ref().map(|critic| &critic.optimizer);
        for (name, optimizer) in OPTIMIZERS.into_iter().zip([&self.optimizer, first, second]) {
            files.add_optimizer(dir, name, optimizer)?;
        }
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
        for ([network, target], critic) in CRITICS.iter().zip(&mut self.critics) {
            critic.network = restore(critic.network.clone(), network, &tensors).map_err(wrong)?;
            critic.target = restore(critic.target.clone(), target, &tensors).map_err(wrong)?;
        }
        self.optimizer = files.optimizer(OPTIMIZERS[0], adam(None))?;
        for (name, critic) in OPTIMIZERS[1..].iter().zip(&mut self.critics) {
            critic.optimizer = files.optimizer(name, adam(None))?;
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
