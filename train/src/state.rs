//! The whole state of a training on disk: `checkpoints/step-N/`, N decisions.
//!
//! | file | holds |
//! |---|---|
//! | `state.json` | counters, configuration, best result, and every worker's random stream and environment (trace and actions, which determine a deterministic simulator) |
//! | `state.sha256` | checksum of `state.json` |
//! | `replay.bin` | the replay memory with the pairs of forks, and its checksum; where switches have different numbers of ports, `replay-1.bin` and so on too |
//! | `sac/` or `ppo/` | weights, optimisers and all else of the learner; `sac.json` or `ppo.json` has the checksums of the others, `sac.sha256` or `ppo.sha256` that of this file |
//!
//! So a changed byte in any file is noticed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bufgym_models::Device;
use bufgym_models::files::{recover_folder, replace_folder, sha256, sha256_of_file};
use bufgym_util::files::{remove, sync_folder, write_new};
use bufgym_util::input::{self, condensed, excerpt};
use serde::{Deserialize, Serialize};

use crate::experience::Experience;
use crate::learner::Learner;
use crate::rollout::WorkerState;
use crate::rule_search::SearchState;
use crate::validation::ValidationResult;
use crate::{TrainConfig, TrainError};

const FORMAT_VERSION: u32 = 5;
const STATE: &str = "state.json";
const CHECKSUM: &str = "state.sha256";
const PREFIX: &str = "step-";
/// Largest size of the file with a SHA-256, bytes.
const MAX_CHECKSUM: u64 = 1_024;
/// Largest size of `state.json`, bytes: the actions of 4,096 long episodes.
const MAX_STATE: u64 = 4 << 30;

/// Everything except the learner and its replay.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    pub(crate) format_version: u32,
    pub(crate) bufgym_version: String,
    /// The configuration as TOML.
    pub(crate) config: String,
    pub(crate) counters: Counters,
    pub(crate) best: Option<Best>,
    /// The search that the training starts with, until it is finished.
    #[serde(default)]
    pub(crate) start: Option<SearchState>,
    /// Lengths of the tables in bytes. A resume cuts off everything after them.
    pub(crate) metrics_bytes: u64,
    pub(crate) perf_bytes: u64,
    pub(crate) workers: Vec<WorkerState>,
}

/// Progress of a training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counters {
    /// Rounds finished.
    pub(crate) rounds: u64,
    /// Decisions over all workers and their forks.
    pub(crate) decisions: u64,
    /// Decisions of forks among them.
    pub(crate) forked: u64,
    /// Validations so far, except one at the end.
    pub(crate) validations: u64,
    /// Gradient updates.
    pub(crate) updates: u64,
    /// Episodes finished.
    pub(crate) episodes: u64,
    /// Decisions of the finished episodes.
    pub(crate) episode_decisions: u64,
    /// Packets forwarded in the finished episodes.
    pub(crate) packets: u64,
    /// Simulations of the search that the training started with, and of the following imitation rounds.
    #[serde(default)]
    pub(crate) start_simulations: u64,
    /// Wall-clock seconds of training.
    pub(crate) elapsed_s: f64,
}

/// The best actor so far, in `checkpoints/best`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// Decisions before this actor.
    pub decisions: u64,
    /// Updates before this actor.
    pub updates: u64,
    /// Validation result of this actor.
    pub result: ValidationResult,
}

/// A stored state that has been read.
pub(crate) struct Stored {
    pub(crate) state: State,
    pub(crate) replay: Experience,
    pub(crate) learner: Learner,
}

impl State {
    pub(crate) fn new(config: String) -> Self {
        Self {
            format_version: FORMAT_VERSION,
            bufgym_version: env!("CARGO_PKG_VERSION").to_owned(),
            config,
            counters: Counters::default(),
            best: None,
            start: None,
            metrics_bytes: 0,
            perf_bytes: 0,
            workers: Vec::new(),
        }
    }

    /// Writes `step-N` into `checkpoints` atomically, then removes all but the newest `keep`.
    pub(crate) fn save(
        &self,
        checkpoints: &Path,
        keep: usize,
        learner: &Learner,
        replay: &Experience,
    ) -> Result<PathBuf, TrainError> {
        let folder = checkpoints.join(format!("{PREFIX}{}", self.counters.decisions));
        replace_folder(&folder, |new| self.write(new, learner, replay)).map_err(
            |error| match error {
                SaveError::Io(source) => TrainError::io(&folder)(source),
                SaveError::Train(error) => error,
            },
        )?;
        for (_, old) in stored_steps(checkpoints)?.into_iter().skip(keep.max(1)) {
            fs::remove_dir_all(&old).map_err(TrainError::io(&old))?;
        }
        Ok(folder)
    }

    fn write(
        &self,
        folder: &Path,
        learner: &Learner,
        replay: &Experience,
    ) -> Result<(), SaveError> {
        let own = folder.join(Learner::folder(learner.algorithm()));
        fs::create_dir(&own)?;
        learner.save(&own)?;
        sync_folder(&own)?;
        replay.save(folder).map_err(TrainError::from)?;
        let json = serde_json::to_vec(self).map_err(io::Error::other)?;
        write_new(&folder.join(CHECKSUM), sha256(&json).as_bytes())?;
        write_new(&folder.join(STATE), &json)?;
        Ok(())
    }

    fn read(folder: &Path) -> Result<Self, TrainError> {
        let path = folder.join(STATE);
        let damaged = |problem: String| TrainError::State {
            path: path.clone(),
            problem,
        };
        let expected = input::read_text(&folder.join(CHECKSUM), MAX_CHECKSUM)
            .map_err(|error| damaged(format!("{CHECKSUM}: {error}")))?;
        // Hashed first, so that a damaged file is not loaded into memory.
        let found = sha256_of_file(&path, MAX_STATE).map_err(|error| damaged(error.to_string()))?;
        if found != expected {
            return Err(damaged(format!(
                "its sha256 is {found}, but {CHECKSUM} says {}: one of the two is damaged",
                excerpt(&expected)
            )));
        }
        let json = input::read(&path, MAX_STATE).map_err(|error| damaged(error.to_string()))?;
        // The version is checked first, because another version may have other fields.
        let value: serde_json::Value =
            serde_json::from_slice(&json).map_err(|error| damaged(condensed(error)))?;
        let version = &value["format_version"];
        if *version != FORMAT_VERSION {
            return Err(damaged(format!(
                "format_version is {}; this program reads version {FORMAT_VERSION}",
                excerpt(&version.to_string())
            )));
        }
        serde_json::from_slice(&json).map_err(|error| damaged(condensed(error)))
    }
}

impl Stored {
    fn read(folder: &Path, device: &Device) -> Result<Self, TrainError> {
        let state = State::read(folder)?;
        let config = TrainConfig::from_toml_str(&state.config, &folder.join(STATE))?;
        config.validate()?;
        let replay = Experience::load(folder, &config)?;
        let own = folder.join(Learner::folder(config.algorithm));
        let learner = Learner::load(config.algorithm, &own, device)?;
        let problem = if !replay.fits(state.workers.len()) {
            Some("the replay has another number of workers than state.json")
        } else if learner.actions() != config.actions() {
            Some("the learner sets something else than config.toml says")
        } else if state
            .start
            .as_ref()
            .is_some_and(|start| !start.fits(config.actions()))
        {
            Some(
                "its search has rules with another number of weights than this program's: it is another version's; train anew",
            )
        } else if learner.updates() != state.counters.updates {
            Some("the learner has another number of updates than state.json")
        } else {
            None
        };
        match problem {
            None => Ok(Self {
                state,
                replay,
                learner,
            }),
            Some(problem) => Err(TrainError::State {
                path: folder.to_owned(),
                problem: problem.to_owned(),
            }),
        }
    }

    /// Returns the newest state that can be read. Returns `None` if none has been stored, or, with `force`, if all are
    /// damaged. Damaged states are reported to `warn` and renamed, not removed.
    pub(crate) fn newest(
        checkpoints: &Path,
        device: &Device,
        force: bool,
        mut warn: impl FnMut(&str),
    ) -> Result<Option<Self>, TrainError> {
        complete_interrupted_writes(checkpoints)?;
        let mut damaged = Vec::new();
        let mut newest = None;
        let mut found = None;
        for (_, folder) in stored_steps(checkpoints)? {
            match Self::read(&folder, device) {
                Ok(stored) => {
                    found = Some(stored);
                    break;
                }
                Err(error) => {
                    warn(&format!("{error}; looking for one before it"));
                    newest.get_or_insert(error);
                    damaged.push(folder);
                }
            }
        }
        match (found, newest) {
            (None, Some(newest)) if !force => Err(TrainError::NoValidState {
                folder: checkpoints.to_owned(),
                newest: Box::new(newest),
            }),
            (found, _) => {
                damaged.iter().try_for_each(|folder| set_aside(folder))?;
                Ok(found)
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum SaveError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Train(#[from] TrainError),
}

/// `(N, checkpoints/step-N)`, newest first.
fn stored_steps(checkpoints: &Path) -> Result<Vec<(u64, PathBuf)>, TrainError> {
    let mut steps: Vec<(u64, PathBuf)> = names(checkpoints)?
        .into_iter()
        .filter_map(|name| Some((name.strip_prefix(PREFIX)?.parse().ok()?, name)))
        .map(|(step, name)| (step, checkpoints.join(name)))
        .collect();
    steps.sort_by(|a, b| b.cmp(a));
    Ok(steps)
}

fn names(folder: &Path) -> Result<Vec<String>, TrainError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(TrainError::io(folder))?,
    };
    entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<_>>()
        .map_err(TrainError::io(folder))
}

/// Cleans up after a kill: removes incomplete folders and restores a folder that was being
/// replaced.
fn complete_interrupted_writes(checkpoints: &Path) -> Result<(), TrainError> {
    for name in names(checkpoints)? {
        let hidden = name.strip_prefix('.').unwrap_or_default();
        let path = checkpoints.join(&name);
        if hidden.ends_with(".new") {
            remove(&path).map_err(TrainError::io(&path))?;
        } else if let Some(replaced) = hidden.strip_suffix(".old") {
            recover_folder(&checkpoints.join(replaced)).map_err(TrainError::io(&path))?;
        }
    }
    Ok(())
}

fn set_aside(folder: &Path) -> Result<(), TrainError> {
    let mut number = 0;
    loop {
        let mut name = folder.as_os_str().to_owned();
        name.push(format!(".damaged-{number}"));
        let aside = PathBuf::from(name);
        if !aside.exists() {
            return fs::rename(folder, &aside).map_err(TrainError::io(folder));
        }
        number += 1;
    }
}
