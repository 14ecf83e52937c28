//! The common parts of the checkpoints of all learners: a record with the checksums of the other files, tensors
//! by name, optimisers.

use std::io;
use std::path::{Path, PathBuf};

use bufgym_models::files::{decode_tensors, encode_tensors, sha256, sha256_of_file};
use bufgym_models::parameters::{NamedTensor, apply, collect};
use bufgym_util::files::write_new;
use bufgym_util::input::{self, condensed, excerpt};
use burn::module::Module;
use burn::optim::{ModuleOptimizer, OptimizerRecord};
use burn::tensor::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Largest size of the file with a SHA-256, bytes.
const MAX_CHECKSUM: u64 = 1_024;

/// The reason why a learner could not be created, saved or loaded.
#[derive(Debug, thiserror::Error)]
pub enum LearnerError {
    /// A setting is out of range.
    #[error("the setting `{name}` must be {range}")]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// Valid range.
        range: &'static str,
    },
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// A file is truncated, altered or of another version.
    #[error("{}: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Description of the problem, and the expected value.
        reason: String,
    },
}

/// The files of one kind of learner.
pub(crate) struct Form {
    /// The record, which has the SHA-256 of each of the other files.
    pub(crate) record: &'static str,
    /// The file with the SHA-256 of the record.
    pub(crate) checksum: &'static str,
    /// The field `format_version` of the record.
    pub(crate) version: u32,
}

/// Names of files with their SHA-256.
pub(crate) type Sums = Vec<(String, String)>;

/// Files of a checkpoint that is being written.
#[derive(Default)]
pub(crate) struct Files(Vec<(String, Vec<u8>)>);

impl Files {
    pub(crate) fn add(&mut self, name: &str, bytes: Vec<u8>) {
        self.0.push((name.to_owned(), bytes));
    }

    pub(crate) fn add_tensors(
        &mut self,
        dir: &Path,
        name: &str,
        tensors: &[NamedTensor],
    ) -> Result<(), LearnerError> {
        let bytes =
            encode_tensors(tensors).map_err(|error| corrupt(dir, name, error.to_string()))?;
        self.add(name, bytes);
        Ok(())
    }

    pub(crate) fn add_optimizer(
        &mut self,
        dir: &Path,
        name: &str,
        optimizer: &ModuleOptimizer,
    ) -> Result<(), LearnerError> {
        let bytes = optimizer.to_record().into_bytes();
        let bytes = bytes.map_err(|error| corrupt(dir, name, error.to_string()))?;
        self.add(name, bytes.to_vec());
        Ok(())
    }

    pub(crate) fn sums(&self) -> Sums {
        let sum = |(name, bytes): &(String, Vec<u8>)| (name.clone(), sha256(bytes));
        self.0.iter().map(sum).collect()
    }

    /// Writes all files, then the record, and waits until they are on the disk.
    pub(crate) fn write(
        self,
        dir: &Path,
        form: &Form,
        record: &impl Serialize,
    ) -> Result<(), LearnerError> {
        for (name, bytes) in &self.0 {
            write(&dir.join(name), bytes)?;
        }
        let json = serde_json::to_vec_pretty(record)
            .map_err(|error| corrupt(dir, form.record, error.to_string()))?;
        write(&dir.join(form.checksum), sha256(&json).as_bytes())?;
        write(&dir.join(form.record), &json)
    }
}

/// The files of a checkpoint whose record has been read.
pub(crate) struct Checked<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) form: &'a Form,
    pub(crate) sums: &'a [(String, String)],
    /// Largest size of a file, bytes.
    pub(crate) most: u64,
}

impl Checked<'_> {
    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>, LearnerError> {
        let path = self.dir.join(name);
        // Hashed first, so that a damaged file is not loaded into memory.
        let found = sha256_of_file(&path, self.most).map_err(io(&path))?;
        let mut sums = self.sums.iter();
        let expected = sums.find(|(file, _)| file == name).map(|(_, hash)| hash);
        if expected == Some(&found) {
            return read(&path, self.most);
        }
        let expected = expected.map_or("nothing".to_owned(), |hash| excerpt(hash));
        let record = self.form.record;
        Err(LearnerError::Corrupt {
            path,
            reason: format!("its sha256 is {found}; {record} says {expected}"),
        })
    }

    pub(crate) fn tensors(&self, name: &str) -> Result<Vec<NamedTensor>, LearnerError> {
        let bytes = self.read(name)?;
        decode_tensors(&bytes).map_err(|error| corrupt(self.dir, name, error.to_string()))
    }

    /// Returns `empty` with the state from a file.
    pub(crate) fn optimizer(
        &self,
        name: &str,
        empty: ModuleOptimizer,
    ) -> Result<ModuleOptimizer, LearnerError> {
        let bytes = Bytes::from_bytes_vec(self.read(name)?);
        let record = OptimizerRecord::from_bytes(bytes);
        let record = record.map_err(|error| corrupt(self.dir, name, error.to_string()))?;
        Ok(empty.load_record(record))
    }
}

pub(crate) fn corrupt(dir: &Path, name: &str, reason: impl Into<String>) -> LearnerError {
    LearnerError::Corrupt {
        path: dir.join(name),
        reason: reason.into(),
    }
}

/// The parameters of a network, with a prefix.
pub(crate) fn prefixed<M: Module>(
    prefix: &str,
    module: &M,
) -> impl Iterator<Item = NamedTensor> + use<M> {
    let prefix = prefix.to_owned();
    collect(module).into_iter().map(move |tensor| NamedTensor {
        name: format!("{prefix}.{}", tensor.name),
        ..tensor
    })
}

/// Returns the network with the parameters that have the prefix.
pub(crate) fn restore<M: Module>(
    module: M,
    prefix: &str,
    tensors: &[NamedTensor],
) -> Result<M, String> {
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

/// Reads the record after checking its SHA-256. A file of an older version may have no checksum and is recognised by
/// its version.
pub(crate) fn read_record<R: DeserializeOwned>(dir: &Path, form: &Form) -> Result<R, LearnerError> {
    let json = read(&dir.join(form.record), input::MAX_JSON)?;
    let checksum = read(&dir.join(form.checksum), MAX_CHECKSUM);
    parse_record(&json, form, checksum).map_err(|reason| corrupt(dir, form.record, reason))
}

fn parse_record<R: DeserializeOwned>(
    bytes: &[u8],
    form: &Form,
    checksum: Result<Vec<u8>, LearnerError>,
) -> Result<R, String> {
    if let Ok(stored) = &checksum {
        let (found, stored) = (sha256(bytes), String::from_utf8_lossy(stored));
        if found != stored {
            let (stored, checksum) = (excerpt(&stored), form.checksum);
            return Err(format!(
                "its sha256 is {found}; {checksum} says {stored}: one of the two is damaged"
            ));
        }
    }
    let value: serde_json::Value = serde_json::from_slice(bytes)
        .map_err(|error| format!("not valid JSON: {}", condensed(error)))?;
    let version = value
        .get("format_version")
        .and_then(serde_json::Value::as_u64);
    if version != Some(u64::from(form.version)) {
        let found = version.map_or_else(|| "none".to_owned(), |version| version.to_string());
        return Err(format!(
            "format_version is {found}; this program reads {}: continue with the version that wrote it, or train anew",
            form.version
        ));
    }
    checksum.map_err(|error| format!("it cannot be checked: {error}"))?;
    serde_json::from_value(value).map_err(condensed)
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>, LearnerError> {
    input::read(path, limit).map_err(io(path))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), LearnerError> {
    write_new(path, bytes).map_err(io(path))
}

fn io(path: &Path) -> impl FnOnce(io::Error) -> LearnerError + '_ {
    move |error| LearnerError::Io {
        path: path.to_owned(),
        error,
    }
}
