//! Errors of reading a policy string and of recording a run.

use bufgym_env::control::RecordError;
use bufgym_export::ExportError;
use bufgym_export::int8::IntegerFileError;
use bufgym_models::LinearFileError;
use bufgym_models::checkpoint::CheckpointError;
use bufgym_sim::switch::PolicyParseError;

/// A policy string that names no policy, or whose checkpoint or file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EntrantError {
    /// There is no such rule, or it has no such parameters.
    #[error(transparent)]
    Rule(#[from] PolicyParseError),
    /// `ndt` without a folder.
    #[error("policy `{0}` needs a checkpoint folder, as in ndt:checkpoints/ndt-fct")]
    NoFolder(String),
    /// The folder holds no usable checkpoint.
    #[error("policy `{policy}`: {source}")]
    Checkpoint {
        /// The policy string.
        policy: String,
        /// What is wrong with it.
        source: CheckpointError,
    },
    /// `ndt-int8` without a folder.
    #[error(
        "policy `{0}` needs a checkpoint folder or one that `bufgym export --format c-int8` wrote, as in ndt-int8:checkpoints/ndt-fct"
    )]
    NoIntegerFolder(String),
    /// The folder's network cannot be rounded to integers.
    #[error("policy `{policy}`: {source}")]
    Export {
        /// The policy string.
        policy: String,
        /// Why.
        source: ExportError,
    },
    /// The activations cannot be measured, as the scenario of the training cannot be run.
    #[error("policy `{policy}`: {reason}")]
    Calibration {
        /// The policy string.
        policy: String,
        /// Why.
        reason: String,
    },
    /// The exported integer network cannot be used.
    #[error("policy `{policy}`: {source}")]
    Integer {
        /// The policy string.
        policy: String,
        /// What is wrong with it.
        source: IntegerFileError,
    },
    /// `linear` without a file.
    #[error(
        "policy `{0}` needs a file, as in linear:rule.json; `bufgym tune --policy linear` writes one"
    )]
    NoFile(String),
    /// The file holds no usable linear rule.
    #[error("policy `{policy}`: {source}")]
    Linear {
        /// The policy string.
        policy: String,
        /// What is wrong with it.
        source: LinearFileError,
    },
}

/// Why there is no control record of a run.
#[derive(Debug, thiserror::Error)]
pub enum ControlRecordError {
    /// The policy is a rule, which decides packet by packet.
    #[error(
        "policy `{0}` has no control loop to record; ndt, ndt:DIR, ndt-int8:DIR and linear:FILE have one"
    )]
    NoControl(String),
    /// The run failed, or the record could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
}
