//! Saving and restoring a learner, bit for bit.

use std::io;
use std::path::{Path, PathBuf};

use bufgym_env::control::ActionSet;
use bufgym_models::Device;
use bufgym_models::files::{
    current_folder, decode_tensors, encode_tensors, sha256, sha256_of_file,
};
use bufgym_models::parameters::{NamedTensor, apply, collect};
use bufgym_sim::files::write_new;
use bufgym_sim::input::{self, condensed, excerpt};
use burn::module::Module;
use burn::optim::{ModuleOptimizer, OptimizerRecord};
use burn::tensor::Bytes;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::{ActorLearner, Advantage, Sac, SacConfig, Temperature};

const FORMAT_VERSION: u32 = 4;
const STATE: &str = "sac.json";
/// SHA-256 of `sac.json`, which has those of the other files.
const CHECKSUM: &str = "sac.sha256";
const NETWORKS: &str = "networks.safetensors";
const OPTIMIZERS: [&str; 3] = ["actor.adam.bpk", "critic-0.adam.bpk", "critic-1.adam.bpk"];
/// Most bytes of the file with a SHA-256.
const MAX_CHECKSUM: u64 = 1_024;
/// The sums of the least squares, little-endian 64-bit floats.
const ADVANTAGE: &str = "advantage.f64";
const ACTOR: &str = "actor";
const AVERAGED: &str = "averaged";
const KEPT: &str = "kept";
const CRITICS: [&str; 4] = ["critics.0", "critics.1", "targets.0", "targets.1"];

/// The reason why a learner could not be created, saved or loaded.
#[derive(Debug, thiserror::Error)]
pub enum SacError {
    /// A setting is out of range.
    #[error("the setting `{name}` must be {range}")]
    Setting {
        /// Its name.
        name: &'static str,
        /// What would be right.
        range: &'static str,
    },
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A file is truncated, altered or of another version.
    #[error("{}: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what would be right.
        reason: String,
    },
}

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
    sha256: Vec<(String, String)>,
}

impl Sac {
    /// Writes the whole state into an existing folder, and waits until it is on the disk.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn save(&self, dir: &Path) -> Result<(), SacError> {
        let corrupt = |name: &str, reason: String| SacError::Corrupt {
            path: dir.join(name),
            reason,
        };
        let mut tensors = Vec::new();
        tensors.extend(prefixed(ACTOR, collect(&self.actor.network)));
        tensors.extend(prefixed(AVERAGED, collect(&self.actor.average)));
        if let Some(kept) = &self.actor.kept {
            tensors.extend(prefixed(KEPT, collect(kept)));
        }
        let critics = self.critics.iter().map(|learner| &learner.network);
        let targets = self.critics.iter().map(|learner| &learner.target);
        for (prefix, critic) in CRITICS.iter().zip(critics.chain(targets)) {
            tensors.extend(prefixed(prefix, collect(critic)));
        }
        let networks =
            encode_tensors(&tensors).map_err(|error| corrupt(NETWORKS, error.to_string()))?;
        let mut files = vec![(NETWORKS, networks)];
        let [first, second] = self.critics.each_ref().map(|learner| &learner.optimizer);
        for (name, optimizer) in OPTIMIZERS
            .into_iter()
            .zip([&self.actor.optimizer, first, second])
        {
            let bytes = optimizer.to_record().into_bytes();
            files.push((
                name,
                bytes
                    .map_err(|error| corrupt(name, error.to_string()))?
                    .to_vec(),
            ));
        }
        let sums = self.advantage.sums().flat_map(f64::to_le_bytes);
        files.push((ADVANTAGE, sums.collect()));
        for (name, bytes) in &files {
            write(&dir.join(name), bytes)?;
        }
        let record = Record {
            format_version: FORMAT_VERSION,
            config: self.config.clone(),
            actions: self.actions,
            updates: self.updates,
            temperature_log_bits: self.temperature.log.to_bits(),
            temperature_moments_bits: self.temperature.moments.map(f64::to_bits),
            temperature_steps: self.temperature.steps,
            rng: self.rng.clone(),
            sha256: files
                .iter()
                .map(|(name, bytes)| ((*name).to_owned(), sha256(bytes)))
                .collect(),
        };
        let json = serde_json::to_vec_pretty(&record)
            .map_err(|error| corrupt(STATE, error.to_string()))?;
        write(&dir.join(CHECKSUM), sha256(&json).as_bytes())?;
        write(&dir.join(STATE), &json)
    }

    /// Reads what [`Sac::save`] wrote. The next update gives the same weights as without saving and
    /// loading.
    ///
    /// # Errors
    /// When a file is missing, truncated, altered or of another version.
    pub fn load(dir: &Path, device: &Device) -> Result<Sac, SacError> {
        let dir = &current_folder(dir);
        let path = dir.join(STATE);
        let corrupt = |reason: String| SacError::Corrupt {
            path: path.clone(),
            reason,
        };
        let json = read(&path, input::MAX_JSON)?;
        let stored = read(&dir.join(CHECKSUM), MAX_CHECKSUM);
        let record = parse_record(&json, stored).map_err(corrupt)?;

        let mut sac = Sac::new(record.config.clone(), record.actions, 0, device)?;
        sac.updates = record.updates;
        sac.temperature = Temperature {
            log: f64::from_bits(record.temperature_log_bits),
            moments: record.temperature_moments_bits.map(f64::from_bits),
            steps: record.temperature_steps,
        };
        sac.rng = record.rng.clone();

        let bytes = read_checked(dir, NETWORKS, &record)?;
        let wrong = |reason: String| SacError::Corrupt {
            path: dir.join(NETWORKS),
            reason,
        };
        let tensors = decode_tensors(&bytes).map_err(|error| wrong(error.to_string()))?;
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

        let sums = read_checked(dir, ADVANTAGE, &record)?;
        let sums: Vec<f64> = sums
            .as_chunks()
            .0
            .iter()
            .map(|bytes| f64::from_le_bytes(*bytes))
            .collect();
        sac.advantage = Advantage::from_sums(sac.actions.outputs(), &sums).ok_or_else(|| {
            SacError::Corrupt {
                path: dir.join(ADVANTAGE),
                reason: "it has another number of sums than this program keeps".into(),
            }
        })?;

        let [first, second] = &mut sac.critics;
        let optimizers = [
            &mut sac.actor.optimizer,
            &mut first.optimizer,
            &mut second.optimizer,
        ];
        for (name, optimizer) in OPTIMIZERS.into_iter().zip(optimizers) {
            let bytes = read_checked(dir, name, &record)?;
            let adam =
                OptimizerRecord::from_bytes(Bytes::from_bytes_vec(bytes)).map_err(|error| {
                    SacError::Corrupt {
                        path: dir.join(name),
                        reason: error.to_string(),
                    }
                })?;
            let empty: ModuleOptimizer = record.config.optimizer();
            *optimizer = empty.load_record(adam);
        }
        Ok(sac)
    }
}

fn is_alpha(actions: &ActionSet) -> bool {
    *actions == ActionSet::Alpha
}

fn prefixed(prefix: &str, tensors: Vec<NamedTensor>) -> impl Iterator<Item = NamedTensor> {
    tensors.into_iter().map(move |tensor| NamedTensor {
        name: format!("{prefix}.{}", tensor.name),
        ..tensor
    })
}

fn restore<M: Module>(module: M, prefix: &str, tensors: &[NamedTensor]) -> Result<M, String> {
    let own = tensors
        .iter()
        .filter_map(|tensor| {
            let name = tensor.name.strip_prefix(prefix)?.strip_prefix('.')?;
            Some(NamedTensor {
                name: name.to_owned(),
                ..tensor.clone()
            })
        })
        .collect();
    apply(module, own).map_err(|error| format!("{prefix}: {error}"))
}

/// Checks the file's SHA-256 before it is understood. A file of an older version has none and is told
/// by its version.
fn parse_record(bytes: &[u8], checksum: Result<Vec<u8>, SacError>) -> Result<Record, String> {
    if let Ok(stored) = &checksum {
        let (found, stored) = (sha256(bytes), String::from_utf8_lossy(stored));
        if found != stored {
            let stored = excerpt(&stored);
            return Err(format!(
                "its sha256 is {found}; {CHECKSUM} says {stored}: one of the two is damaged"
            ));
        }
    }
    let value: serde_json::Value = serde_json::from_slice(bytes)
        .map_err(|error| format!("not valid JSON: {}", condensed(error)))?;
    let version = value
        .get("format_version")
        .and_then(serde_json::Value::as_u64);
    if version != Some(u64::from(FORMAT_VERSION)) {
        let found = version.map_or_else(|| "none".to_owned(), |version| version.to_string());
        return Err(format!(
            "format_version is {found}; this program reads {FORMAT_VERSION}: go on with the version \
             that wrote it, or train anew"
        ));
    }
    checksum.map_err(|error| format!("it cannot be checked: {error}"))?;
    serde_json::from_value(value).map_err(condensed)
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>, SacError> {
    input::read(path, limit).map_err(io(path))
}

fn io(path: &Path) -> impl FnOnce(io::Error) -> SacError + '_ {
    move |error| SacError::Io {
        path: path.to_owned(),
        error,
    }
}

/// Most bytes of a file of a learner with these settings: networks of sixteen layers of the critics'
/// width, four of them, and what does not depend on the width.
fn most_bytes(config: &SacConfig) -> u64 {
    let width = u64::try_from(config.critic_width).unwrap_or(u64::MAX);
    let layers = width.saturating_mul(width).saturating_mul(4 * 16 * 4);
    layers.saturating_add(32 << 20)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), SacError> {
    write_new(path, bytes).map_err(|error| SacError::Io {
        path: path.to_owned(),
        error,
    })
}

fn read_checked(dir: &Path, name: &str, record: &Record) -> Result<Vec<u8>, SacError> {
    let path = dir.join(name);
    let most = most_bytes(&record.config);
    // Hashed first, so that a file that is not right is not taken into memory.
    let found = sha256_of_file(&path, most).map_err(io(&path))?;
    let expected = record
        .sha256
        .iter()
        .find(|(file, _)| file == name)
        .map(|(_, hash)| hash);
    if expected == Some(&found) {
        return read(&path, most);
    }
    let expected = expected.map_or("nothing".to_owned(), |hash| excerpt(hash));
    Err(SacError::Corrupt {
        path,
        reason: format!("its sha256 is {found}; {STATE} says {expected}"),
    })
}
