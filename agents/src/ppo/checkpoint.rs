//! Saving and restoring a learner, bit for bit.

use std::path::Path;

use bufgym_env::control::ActionSet;
use bufgym_models::Device;
use bufgym_models::files::current_folder;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::{Ppo, PpoConfig};
use crate::optimizer::adam;
use crate::ports::{PortsConfig, most_bytes, stored_scales};
use crate::scales::Scales;
use crate::stored::{
    Checked, Files, Form, LearnerError, Sums, corrupt, prefixed, read_record, restore,
};

const FORM: Form = Form {
    record: "ppo.json",
    checksum: "ppo.sha256",
    version: 2,
};
const NETWORKS: &str = "networks.safetensors";
const OPTIMIZERS: [&str; 2] = ["actor.adam.bpk", "critic.adam.bpk"];
const ACTOR: &str = "actor";
const AVERAGED: &str = "averaged";
const CRITIC: &str = "critic";

/// Everything that is not a tensor. Floating-point numbers are kept as bits, because reading their decimal form may
/// change the last bit.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    format_version: u32,
    config: PpoConfig,
    ports: PortsConfig,
    actions: ActionSet,
    rounds: u64,
    updates: u64,
    actor_lr_bits: u64,
    /// Features, means and deviations of the state, returns; none before the first round.
    scales_bits: Option<Vec<u32>>,
    rng: Xoshiro256PlusPlus,
    /// SHA-256 of each of the other files.
    sha256: Sums,
}

impl Ppo {
    /// Writes the whole state into an existing folder, and waits until it is on the disk.
    ///
    /// # Errors
    /// Returns errors of the file system.
    pub fn save(&self, dir: &Path) -> Result<(), LearnerError> {
        let actors = prefixed(ACTOR, &self.actor).chain(prefixed(AVERAGED, &self.average));
        let tensors: Vec<_> = actors.chain(prefixed(CRITIC, &self.critic)).collect();
        let mut files = Files::default();
        files.add_tensors(dir, NETWORKS, &tensors)?;
        for (name, optimizer) in OPTIMIZERS.into_iter().zip(&self.optimizers) {
            files.add_optimizer(dir, name, optimizer)?;
        }
        let record = Record {
            format_version: FORM.version,
            config: self.config.clone(),
            ports: self.ports.clone(),
            actions: self.actions,
            rounds: self.rounds,
            updates: self.updates,
            actor_lr_bits: self.actor_lr.to_bits(),
            scales_bits: self.scales.as_ref().map(Scales::to_bits),
            rng: self.rng.clone(),
            sha256: files.sums(),
        };
        files.write(dir, &FORM, &record)
    }

    /// Reads what [`Ppo::save`] wrote. The next round gives the same weights as without saving and loading.
    ///
    /// # Errors
    /// When a file is missing, truncated, altered or of another version.
    pub fn load(dir: &Path, device: &Device) -> Result<Ppo, LearnerError> {
        let dir = &current_folder(dir);
        let record: Record = read_record(dir, &FORM)?;
        let mut ppo = Ppo::new(record.config, record.ports, record.actions, 0, device)?;
        let checked = Checked {
            dir,
            form: &FORM,
            sums: &record.sha256,
            most: most_bytes(&ppo.ports, 2),
        };
        let tensors = checked.tensors(NETWORKS)?;
        let wrong = |reason: String| corrupt(dir, NETWORKS, reason);
        ppo.actor = restore(ppo.actor.clone(), ACTOR, &tensors).map_err(wrong)?;
        ppo.average = restore(ppo.average.clone(), AVERAGED, &tensors).map_err(wrong)?;
        ppo.critic = restore(ppo.critic.clone(), CRITIC, &tensors).map_err(wrong)?;
        for (name, optimizer) in OPTIMIZERS.into_iter().zip(&mut ppo.optimizers) {
            *optimizer = checked.optimizer(name, adam(Some(super::GRADIENT_CLIP)))?;
        }
        ppo.scales = stored_scales(record.scales_bits.as_deref(), dir, &FORM)?;
        ppo.rounds = record.rounds;
        ppo.updates = record.updates;
        ppo.actor_lr = f64::from_bits(record.actor_lr_bits);
        ppo.rng = record.rng;
        Ok(ppo)
    }
}
