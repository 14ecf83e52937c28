//! Errors of reading a policy string and of recording a run.

use std::error::Error;

use bufgym_env::control::RecordError;
use bufgym_export::ExportError;
use bufgym_export::int8::IntegerFileError;
use bufgym_models::LinearFileError;
use bufgym_models::checkpoint::CheckpointError;
use bufgym_sim::switch::PolicyParseError;
use bufgym_sim::switch::policy::catalogue;
use bufgym_util::input::{excerpt, suggestion};

use super::{INTEGER, LEARNED, LINEAR, ONNX};

/// A policy string that names no policy, or whose checkpoint or file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EntrantError {
    /// There is no such policy.
    #[error(
        "policy '{}' is not known{}; `bufgym list policies` lists them",
        excerpt(.0),
        suggestion(.0, &names())
    )]
    Unknown(String),
    /// The rule has no such parameters.
    #[error(transparent)]
    Rule(#[from] PolicyParseError),
    /// `ndt` without a folder.
    #[error("policy `{}` needs a checkpoint folder, as in ndt:checkpoints/ndt-fct", excerpt(.0))]
    NoFolder(String),
    /// The folder holds no usable checkpoint.
    #[error("policy `{}`: {source}", excerpt(.policy))]
    Checkpoint {
        /// The policy string.
        policy: String,
        /// Problem of the checkpoint.
        source: CheckpointError,
    },
    /// `ndt-int8` without a folder.
    #[error(
        "policy `{}` needs a checkpoint folder or one that `bufgym export --format c-int8` wrote, as in ndt-int8:checkpoints/ndt-fct",
        excerpt(.0)
    )]
    NoIntegerFolder(String),
    /// The folder's network cannot be rounded to integers.
    #[error("policy `{}`: {source}", excerpt(.policy))]
    Export {
        /// The policy string.
        policy: String,
        /// Reason.
        source: ExportError,
    },
    /// The activations cannot be measured because the scenario of the training cannot be run.
    #[error("policy `{}`: {reason}", excerpt(.policy))]
    Calibration {
        /// The policy string.
        policy: String,
        /// Reason.
        reason: String,
    },
    /// The exported integer network cannot be used.
    #[error("policy `{}`: {source}", excerpt(.policy))]
    Integer {
        /// The policy string.
        policy: String,
        /// Problem of the file.
        source: IntegerFileError,
    },
    /// `linear` without a file.
    #[error(
        "policy `{}` needs a file, as in linear:rule.json; `bufgym tune linear` writes one",
        excerpt(.0)
    )]
    NoFile(String),
    /// The file holds no usable linear rule.
    #[error("policy `{}`: {source}", excerpt(.policy))]
    Linear {
        /// The policy string.
        policy: String,
        /// Problem of the file.
        source: LinearFileError,
    },
    /// `onnx` without a file.
    #[error(
        "policy `{}` needs a file, as in onnx:actor.onnx; `bufgym export --format onnx` writes one",
        excerpt(.0)
    )]
    NoOnnxFile(String),
    /// `onnx:FILE` where the runtime is missing: in this crate, and in a program without the feature `onnx`.
    #[error(
        "policy `{}` needs the ONNX runtime, and this program was built without it; build it with `cargo build --release --features onnx`",
        excerpt(.0)
    )]
    NoOnnxRuntime(String),
    /// The settings after the file name cannot be read.
    #[error("policy `{}`: {problem}", excerpt(.policy))]
    OnnxSetting {
        /// The policy string.
        policy: String,
        /// The setting, and what would be right.
        problem: String,
    },
    /// The file for another crate's runtime contains no network that can decide here.
    #[error("policy `{}`: {source}", excerpt(.policy))]
    External {
        /// The policy string.
        policy: String,
        /// Problem of the file.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// Returns all names that a policy string may start with.
fn names() -> Vec<&'static str> {
    let rules = catalogue().iter().map(|definition| definition.info.name);
    rules.chain([LEARNED, INTEGER, LINEAR, ONNX]).collect()
}

/// An error that leaves a run without a control record.
#[derive(Debug, thiserror::Error)]
pub enum ControlRecordError {
    /// The policy is a rule, which decides packet by packet.
    #[error(
        "policy `{}` has no control loop to record; ndt, ndt:DIR, ndt-int8:DIR, linear:FILE and onnx:FILE have one",
        excerpt(.0)
    )]
    NoControl(String),
    /// The run failed, or the record could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
}
