//! The file of an integer network: one JSON object next to the code generated from it.

use std::io;
use std::path::{Path, PathBuf};

use bufgym_env::control::{
    ALPHAS, ActionSet, FEATURE_NAMES, HISTORY, INITIAL_INDEX, LowLevelPolicy,
};
use bufgym_sim::switch::aqm::early::{EarlyGaps, GAPS};
use bufgym_util::input::{self, condensed, excerpt};
use serde::{Deserialize, Serialize};

use super::{EarlyOutput, IntegerNetwork, IntegerNetworkError};

/// Name of the file in an export.
pub const FILE: &str = "ndt_int8.json";

const FORMAT: &str = "bufgym-int8";
const VERSION: u32 = 1;

/// An integer network with its heuristic and its origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntegerFile {
    format: String,
    version: u32,
    /// Version of the program that wrote it.
    pub bufgym_version: String,
    /// The heuristic whose α the levels set.
    pub low_level: LowLevelPolicy,
    /// Origin of the weights, in one line.
    pub origin: String,
    /// SHA-256 of the weights that were rounded.
    pub weights_sha256: String,
    /// Comparison of its levels of α with those in floating point.
    pub agreement: Agreement,
    /// The same for the levels of early drop, where the network sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_agreement: Option<Agreement>,
    /// The network.
    pub network: IntegerNetwork,
}

/// Comparison of the levels of the integer network with those of the original weights, on recorded
/// observations. There is one level per port and decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agreement {
    /// Levels compared.
    pub levels: u64,
    /// Equal levels.
    pub equal: u64,
    /// Levels that differ by one.
    pub neighbouring: u64,
}

impl Agreement {
    /// Counts pairs of levels.
    pub fn of(pairs: impl Iterator<Item = (usize, usize)>) -> Agreement {
        let mut agreement = Agreement {
            levels: 0,
            equal: 0,
            neighbouring: 0,
        };
        for (a, b) in pairs {
            agreement.levels += 1;
            agreement.equal += u64::from(a == b);
            agreement.neighbouring += u64::from(a.abs_diff(b) == 1);
        }
        agreement
    }

    /// Share of the levels that differ.
    pub fn share_different(&self) -> f64 {
        1.0 - self.equal as f64 / self.levels.max(1) as f64
    }
}

/// The reason why a file could not be read. Every message is one line that names the file.
#[derive(Debug, thiserror::Error)]
pub enum IntegerFileError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The file has another content.
    #[error("{}: {problem}; `bufgym export --format c-int8` writes such files", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Description of the problem.
        problem: String,
    },
    /// The network cannot be run.
    #[error("{}: {error}", path.display())]
    Network {
        /// The file.
        path: PathBuf,
        /// Reason.
        error: IntegerNetworkError,
    },
}

impl IntegerFile {
    /// Creates the file of a network with its origin, which is one line about the weights, and the agreement of each of
    /// its outputs.
    ///
    /// # Panics
    /// When there is no agreement.
    pub fn new(
        network: IntegerNetwork,
        low_level: LowLevelPolicy,
        origin: String,
        weights_sha256: String,
        agreement: &[Agreement],
    ) -> IntegerFile {
        IntegerFile {
            format: FORMAT.to_owned(),
            version: VERSION,
            bufgym_version: env!("CARGO_PKG_VERSION").to_owned(),
            low_level,
            origin,
            weights_sha256,
            agreement: agreement[0],
            early_agreement: agreement.get(1).copied(),
            network,
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// See [`IntegerFileError`].
    pub fn load(path: &Path) -> Result<IntegerFile, IntegerFileError> {
        let text = input::read(path, input::MAX_JSON).map_err(|error| IntegerFileError::Io {
            path: path.to_owned(),
            error,
        })?;
        let content = |problem| IntegerFileError::Content {
            path: path.to_owned(),
            problem,
        };
        let file: IntegerFile =
            serde_json::from_slice(&text).map_err(|error| content(condensed(error)))?;
        if (file.format.as_str(), file.version) != (FORMAT, VERSION) {
            return Err(content(format!(
                "holds {} version {}; this program reads {FORMAT} version {VERSION}",
                excerpt(&file.format),
                file.version
            )));
        }
        let names = file.network.inputs.iter().map(|input| input.name.as_str());
        let expected = FEATURE_NAMES.map(|name| name.split(':').next().unwrap_or(name));
        if !names.eq(expected) || file.network.history != HISTORY {
            return Err(content(format!(
                "the network's inputs are not {HISTORY} steps of {}",
                expected.join(", ")
            )));
        }
        if (file.network.edges.len() + 1, file.network.unit) != (ALPHAS.len(), INITIAL_INDEX) {
            return Err(content(format!(
                "the network's levels are not the {} from alpha = {}",
                ALPHAS.len(),
                ALPHAS[0]
            )));
        }
        file.check_early().map_err(content)?;
        file.check_scales().map_err(content)?;
        file.network
            .check()
            .map_err(|error| IntegerFileError::Network {
                path: path.to_owned(),
                error,
            })?;
        Ok(file)
    }

    /// Checks that the network sets the outputs that its heuristic leaves open.
    fn check_early(&self) -> Result<(), String> {
        let early = self.network.early.as_ref();
        let set = ActionSet::of(&self.low_level);
        if early.is_some() != set.drops_early() {
            return Err(format!(
                "the network has {} outputs, and decisions over {} set {set}",
                self.network.outputs(),
                self.low_level
            ));
        }
        let expected = self.low_level.early_gaps();
        let expected = expected.unwrap_or(EarlyGaps::Packets(GAPS));
        let gaps = expected.by_level();
        let fits = |early: &EarlyOutput| {
            early.gaps == gaps
                && early.gap_bytes == expected.bytes_per_packet()
                && early.edges.len() + 1 == gaps.len()
        };
        match early.is_none_or(fits) {
            true => Ok(()),
            false => Err(format!(
                "the network's gaps of early drop are not the {} from {} to {}{}",
                gaps.len(),
                gaps[0],
                gaps[gaps.len() - 1],
                match expected.bytes_per_packet() {
                    None => String::new(),
                    Some(bytes) => format!(" for a gap_bytes of {bytes}"),
                }
            )),
        }
    }

    /// Checks that the codes stand for the values that the control loop computes.
    fn check_scales(&self) -> Result<(), String> {
        for input in &self.network.inputs {
            let (zero, scale) = match input.name.as_str() {
                "last_action" => (128, 1.0 / 128.0),
                _ => (0, 1.0 / 255.0),
            };
            let is_close = (input.scale / scale - 1.0).abs() < 1e-9;
            if input.zero != zero || !is_close {
                return Err(format!(
                    "input {}: code {} stands for 0 and a step is {}; must be {zero} and {scale}",
                    input.name, input.zero, input.scale
                ));
            }
        }
        let early = self.network.early.iter().map(|early| early.output_scale);
        for output in std::iter::once(self.network.output_scale).chain(early) {
            if !(output.is_finite() && output > 0.0) {
                return Err(format!("output_scale is {output}; must be above 0"));
            }
        }
        Ok(())
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings, numbers and lists are JSON") + "\n"
    }
}
