//! Errors of a training.

mod kept;
mod remote;

use std::io;
use std::path::{Path, PathBuf};

use bufgym_agents::{LearnerError, ReplayError};
use bufgym_env::gym::EnvError;
use bufgym_eval::{EntrantError, EvalError};
use bufgym_models::DeviceError;
use bufgym_models::checkpoint::CheckpointError;
use bufgym_sim::network::SimError;
use bufgym_sim::scenario::ScenarioError;
use bufgym_sim::traffic::TraceError;
use bufgym_util::files::is_wrong_place;
use bufgym_util::input::excerpt;
use bufgym_util::memory::TooMuch;

pub use kept::KeptError;
pub use remote::RemoteError;

/// An error of this crate. Its text is one line with the problem, the place and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A setting is out of range.
    #[error("{setting}: {problem}")]
    Setting {
        /// The setting as written in the configuration, for instance `rollout.workers`.
        setting: &'static str,
        /// Description of the problem, and the valid values.
        problem: String,
    },
    /// A configuration file cannot be understood.
    #[error("{}: {problem}", .path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// Line and mistake.
        problem: String,
    },
    /// The scenario is not valid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The training does not fit into the memory.
    #[error(transparent)]
    Memory(#[from] TooMuch),
    /// The device of the learner cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The settings of the learner are not valid, or its stored state is damaged.
    #[error(transparent)]
    Sac(#[from] LearnerError),
    /// The stored replay is damaged.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// An environment failed.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// A simulation failed.
    #[error(transparent)]
    Simulation(#[from] SimError),
    /// A shipped checkpoint cannot be written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The comparison at the end failed.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// The actor just written cannot be used.
    #[error(transparent)]
    Entrant(#[from] EntrantError),
    /// The output folder cannot be made or written to.
    #[error("cannot write to output folder {}: {source}", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The output folder is not empty.
    #[error(
        "output folder {} is not empty; choose another one, continue its training with --resume, \
         or overwrite it with --force", .0.display()
    )]
    FolderNotEmpty(PathBuf),
    /// The output folder holds something that no training made and that would be removed.
    #[error(
        "output folder {} was not made by a training ({found}); --force replaces earlier runs and \
         nothing else, so choose another folder", .path.display()
    )]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// File or folder that shows it.
        found: String,
    },
    /// Another process trains in this folder.
    #[error("{} is in use by another training; wait for it or choose another folder", .0.display())]
    FolderInUse(PathBuf),
    /// There is no training in the folder.
    #[error(
        "{} holds no checkpoint to resume from (looked for checkpoints/step-N); start a new \
         training with --out", .0.display()
    )]
    NothingToResume(PathBuf),
    /// A training cannot continue from its last state without a loss.
    #[error(
        "{} cannot be resumed as it was: {problem}; with --force {consequence}", .path.display()
    )]
    Incomplete {
        /// The run folder.
        path: PathBuf,
        /// Description of the missing part.
        problem: String,
        /// Effect of a resume with `--force`, and the loss.
        consequence: String,
    },
    /// Files of the run folder have been removed, replaced or changed during the training.
    #[error("{} was changed during the training: {lost}; {left}", .path.display())]
    FolderChanged {
        /// The run folder.
        path: PathBuf,
        /// Description of the loss.
        lost: String,
        /// Description of the remaining results, and how to continue.
        left: String,
    },
    /// A training is resumed with settings that differ from those at its start.
    #[error(
        "cannot resume with another {setting}: the training was started with {}, now it is {}; start a \
         new training for that",
        excerpt(.stored),
        excerpt(.given)
    )]
    Mismatch {
        /// The setting that differs.
        setting: String,
        /// Value at the start of the training.
        stored: String,
        /// Value now.
        given: String,
    },
    /// Every stored state is damaged.
    #[error(
        "no checkpoint in {} can be read; the newest: {newest}; with --force the training starts \
         again, and these are kept under other names", .folder.display()
    )]
    NoValidState {
        /// The folder with the checkpoints.
        folder: PathBuf,
        /// Problem of the newest one.
        newest: Box<TrainError>,
    },
    /// One file of a stored state is damaged.
    #[error("checkpoint {}: {problem}", .path.display())]
    State {
        /// Folder or file of the stored state.
        path: PathBuf,
        /// The field or checksum that is wrong.
        problem: String,
    },
    /// A file or folder cannot be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Hosts of the cluster failed, or none are left.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// Stored results of searches cannot be used, replaced or written.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// The threads for the rollouts cannot be started.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// Requested number of threads.
        threads: usize,
        /// Error of the operating system.
        reason: String,
    },
}

impl TrainError {
    /// Returns true if the input was wrong (exit status 2). Otherwise the training failed (exit status 1).
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Folder { source, .. } => is_wrong_place(source),
            Self::Env(EnvError::Simulation(error)) | Self::Simulation(error) => {
                matches!(error, SimError::Trace(TraceError::NoFlows))
            }
            Self::Env(EnvError::NoDecision { .. }) => true,
            Self::Eval(error) => error.is_bad_input(),
            Self::Kept(error) => error.is_bad_input(),
            Self::Env(_)
            | Self::Entrant(_)
            | Self::Checkpoint(_)
            | Self::Sac(LearnerError::Io { .. })
            | Self::Replay(ReplayError::Io { .. })
            | Self::Io { .. }
            | Self::FolderChanged { .. }
            | Self::Remote(_)
            | Self::Threads { .. } => false,
            _ => true,
        }
    }

    /// For `map_err` on making the run folder.
    pub(crate) fn folder(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Folder {
            path: path.to_owned(),
            source,
        }
    }

    /// For `map_err` on operations with `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}
