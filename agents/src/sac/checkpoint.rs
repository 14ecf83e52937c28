//! Saving and restoring a learner, bit for bit.

use std::path::Path;

use bufgym_env::control::ActionSet;
use bufgym_models::Device;
use bufgym_models::files::current_folder;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::{ActorLearner, Advantage, Sac, SacConfig, Temperature};
use crate::stored::{
    Checked, Files, Form, LearnerError, Sums, corrupt, prefixed, read_record, restore,
};

const FORM: Form = Form {
    record: "sac.json",
    checksum: "sac.sha256",
    version: 4,
};
const NETWORKS: &str = "networks.safetensors";
const OPTIMIZERS: [&str; 3] = ["actor.adam.bpk", "critic-0.adam.bpk", "critic-1.adam.bpk"];
/// The sums of the least squares, little-endian 64-bit floats.
const ADVANTAGE: &str = "advantage.f64";
const ACTOR: &str = "actor";
const AVERAGED: &str = "averaged";
const KEPT: &str = "kept";
const CRITICS: [&str; 4] = ["critics.0", "critics.1", "targets.0", "targets.1"];

/// Everything that is not a tensor. Floating-point numbers are kept as bits, because reading their
/// decimal form may change the last bit.
#[derive(Serialize, Deserialize)]
struct Record {
    format_version: u32,
    config: SacConfig,
    /// What decisions set; absent for α alone, as in earlier files.
    #[serde(default, skip_serializing_if = "is_alpha")]
    actions: ActionSet,
    updates: u64,
    temperature_log_bits: u64,
    temperature_moments_bits: [u64; 2],
    temperature_steps: i32,
    rng: Xoshiro256PlusPlus,
    /// SHA-256 of each of the other files.
    sha256: Sums,
}

impl Sac {
    /// Writes the whole state into an existing folder, and waits until it is on the disk.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn save(&self, dir: &Path) -> Result<(), LearnerError> {
        let mut tensors = Vec::new();
        tensors.extend(prefixed(ACTOR, &self.actor.network));
        tensors.extend(prefixed(AVERAGED, &self.actor.average));
        if let Some(kept) = &self.actor.kept {
            tensors.extend(prefixed(KEPT, kept));
        }
        let critics = self.critics.iter().map(|learner| &learner.network);
        let targets = self.critics.iter().map(|learner| &learner.target);
        for (prefix, critic) in CRITICS.iter().zip(critics.chain(targets)) {
            tensors.extend(prefixed(prefix, critic));
        }
        let mut files = Files::default();
        files.add_tensors(dir, NETWORKS, &tensors)?;
        let [first, second] = self.critics.each_ref().map(|learner| &learner.optimizer);
        let optimizers = [&self.actor.optimizer, first, second];
        for (name, optimizer) in OPTIMIZERS.into_iter().zip(optimizers) {
            files.add_optimizer(dir, name, optimizer)?;
        }
        let sums = self.advantage.sums().flat_map(f64::to_le_bytes);
        files.add(ADVANTAGE, sums.collect());
        let record = Record {
            format_version: FORM.version,
            config: self.config.clone(),
            actions: self.actions,
            updates: self.updates,
            temperature_log_bits: self.temperature.log.to_bits(),
            temperature_moments_bits: self.temperature.moments.map(f64::to_bits),
            temperature_steps: self.temperature.steps,
            rng: self.rng.clone(),
            sha256: files.sums(),
        };
        files.write(dir, &FORM, &record)
    }

    /// Reads what [`Sac::save`] wrote. The next update gives the same weights as without saving and
    /// loading.
    ///
    /// # Errors
    /// When a file is missing, truncated, altered or of another version.
    pub fn load(dir: &Path, device: &Device) -> Result<Sac, LearnerError> {
        let dir = &current_folder(dir);
        let record: Record = read_record(dir, &FORM)?;
        let mut sac = Sac::new(record.config.clone(), record.actions, 0, device)?;
        sac.updates = record.updates;
        sac.temperature = Temperature {
            log: f64::from_bits(record.temperature_log_bits),
            moments: record.temperature_moments_bits.map(f64::from_bits),
            steps: record.temperature_steps,
        };
        sac.rng = record.rng.clone();

        let checked = Checked {
            dir,
            form: &FORM,
            sums: &record.sha256,
            most: most_bytes(&record.config),
        };
        let tensors = checked.tensors(NETWORKS)?;
        let wrong = |reason: String| corrupt(dir, NETWORKS, reason);
        let ActorLearner {
            network,
            average,
            kept,
            ..
        } = &mut sac.actor;
        *network = restore(network.clone(), ACTOR, &tensors).map_err(wrong)?;
        *average = restore(average.clone(), AVERAGED, &tensors).map_err(wrong)?;
        let prefix = format!("{KEPT}.");
        if tensors
            .iter()
            .any(|tensor| tensor.name.starts_with(&prefix))
        {
            *kept = Some(restore(average.clone(), KEPT, &tensors).map_err(wrong)?);
        }
        let [first, second] = &mut sac.critics;
        let networks = [
            &mut first.network,
            &mut second.network,
            &mut first.target,
            &mut second.target,
        ];
        for (prefix, critic) in CRITICS.iter().zip(networks) {
            *critic = restore(critic.clone(), prefix, &tensors).map_err(wrong)?;
        }

        let sums = checked.read(ADVANTAGE)?;
        let sums: Vec<f64> = sums
            .as_chunks()
            .0
            .iter()
            .map(|bytes| f64::from_le_bytes(*bytes))
            .collect();
        let other = "it has another number of sums than this program keeps";
        sac.advantage = Advantage::from_sums(sac.actions.outputs(), &sums)
            .ok_or_else(|| corrupt(dir, ADVANTAGE, other))?;

        let [first, second] = &mut sac.critics;
        let optimizers = [
            &mut sac.actor.optimizer,
            &mut first.optimizer,
            &mut second.optimizer,
        ];
        for (name, optimizer) in OPTIMIZERS.into_iter().zip(optimizers) {
            *optimizer = checked.optimizer(name, record.config.optimizer())?;
        }
        Ok(sac)
    }
}

fn is_alpha(actions: &ActionSet) -> bool {
    *actions == ActionSet::Alpha
}

/// Most bytes of a file of a learner with these settings: networks of sixteen layers of the critics'
/// width, four of them, and what does not depend on the width.
fn most_bytes(config: &SacConfig) -> u64 {
    let width = u64::try_from(config.critic_width).unwrap_or(u64::MAX);
    let layers = width.saturating_mul(width).saturating_mul(4 * 16 * 4);
    layers.saturating_add(32 << 20)
}
