//! Files of tuned parameters: one file per scenario with all its settings, one entry per policy.

use std::collections::BTreeMap;

use bufgym_sim::input::{condensed, excerpt};
use bufgym_sim::scenario::{Scenario, ScenarioError};
use bufgym_sim::switch::{PolicyParseError, PolicySpec};
use serde::{Deserialize, Serialize};

use super::Tuning;

/// Format of the file.
const FORMAT: &str = "bufgym-tuned";
const VERSION: u32 = 1;

/// Why a file of tuned parameters cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It is not a file of this format and version.
    #[error("{origin}: {problem}; `bufgym tune` writes such files")]
    File {
        /// Which file.
        origin: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Its scenario is invalid.
    #[error("{origin}: {source}")]
    Scenario {
        /// Which file.
        origin: String,
        /// What is wrong.
        source: ScenarioError,
    },
    /// The stored policy string is invalid.
    #[error("{origin}: {source}")]
    Policy {
        /// Which file.
        origin: String,
        /// What is wrong.
        source: PolicyParseError,
    },
}

/// One tuned policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StoredPolicy {
    /// The policy string with its best parameters.
    policy: String,
    /// Mean over the training traces of its mean FCT over that of DT (α = 1).
    ratio_to_dt: f64,
    /// The same for the parameters that the search started from.
    start_ratio_to_dt: f64,
    /// Number of training traces.
    traces: usize,
    /// Seed of the training traces.
    seed: u64,
}

/// The tuned policies of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    format: String,
    version: u32,
    /// The scenario with all its settings, as TOML.
    scenario: String,
    /// Keyed by the name of the policy.
    policies: BTreeMap<String, StoredPolicy>,
}

impl Stored {
    /// A file without policies.
    pub fn new(scenario: &Scenario) -> Stored {
        Stored {
            format: FORMAT.to_owned(),
            version: VERSION,
            scenario: scenario.to_toml(),
            policies: BTreeMap::new(),
        }
    }

    /// Reads a file; `origin` names it in errors.
    ///
    /// # Errors
    /// When the text is not such a file.
    pub fn read(text: &str, origin: &str) -> Result<Stored, StoreError> {
        let refuse = |problem: String| StoreError::File {
            origin: origin.to_owned(),
            problem,
        };
        let stored: Stored =
            serde_json::from_str(text).map_err(|error| refuse(condensed(error)))?;
        if stored.format != FORMAT || stored.version != VERSION {
            let found = format!("{} {}", excerpt(&stored.format), stored.version);
            return Err(refuse(format!("is '{found}', not '{FORMAT} {VERSION}'")));
        }
        Ok(stored)
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        // Serialization of strings, numbers and maps with string keys cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Whether all settings are those of `scenario`.
    ///
    /// # Errors
    /// When the scenario in the file is invalid.
    pub fn is_for(&self, scenario: &Scenario, origin: &str) -> Result<bool, StoreError> {
        let stored = Scenario::from_toml_str(&self.scenario, origin).map_err(|source| {
            StoreError::Scenario {
                origin: origin.to_owned(),
                source,
            }
        })?;
        Ok(stored == *scenario)
    }

    /// Whether there is a result for the policy of this name.
    pub fn has(&self, name: &str) -> bool {
        self.policies.contains_key(name)
    }

    /// Stores the result of a search; it replaces an earlier one for the same policy.
    pub fn keep(&mut self, name: &str, tuning: &Tuning, seed: u64) {
        let entry = StoredPolicy {
            policy: tuning.best.policy.clone(),
            ratio_to_dt: tuning.best.ratio_to_dt,
            start_ratio_to_dt: tuning.start.ratio_to_dt,
            traces: tuning.best.traces,
            seed,
        };
        self.policies.insert(name.to_owned(), entry);
    }

    /// The tuned policy of this name, if there is one.
    ///
    /// # Errors
    /// When the stored policy string is invalid.
    pub fn policy(&self, name: &str, origin: &str) -> Result<Option<PolicySpec>, StoreError> {
        let Some(entry) = self.policies.get(name) else {
            return Ok(None);
        };
        let spec = entry.policy.parse().map_err(|source| StoreError::Policy {
            origin: origin.to_owned(),
            source,
        })?;
        Ok(Some(spec))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_not_ours_are_refused_in_one_line() {
        let good = Stored::new(&Scenario::default()).to_json();
        assert!(Stored::read(&good, "f").is_ok());
        for text in [
            "",
            "[]",
            &good[..good.len() / 2],
            &good.replace("bufgym-tuned", "other"),
            &good.replace("\"version\": 1", "\"version\": 9"),
        ] {
            let message = Stored::read(text, "f.json").unwrap_err().to_string();
            assert!(
                message.starts_with("f.json") && !message.contains('\n'),
                "{message}"
            );
        }
    }

    #[test]
    fn it_belongs_to_one_scenario() {
        let scenario = Scenario::default();
        let stored = Stored::new(&scenario);
        assert!(stored.is_for(&scenario, "f").unwrap());
        let other = Scenario {
            min_rto_us: 10_000,
            ..scenario
        };
        assert!(!stored.is_for(&other, "f").unwrap());
    }
}
