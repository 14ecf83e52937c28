//! Files of tuned parameters: one file per scenario with all its settings, and one entry per objective and
//! policy with its queue management.

use std::collections::BTreeMap;

use bufgym_sim::scenario::{Scenario, ScenarioError};
use bufgym_sim::switch::{PolicyParseError, PolicySpec};
use bufgym_util::input::{condensed, excerpt};
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// Format of the file.
const FORMAT: &str = "bufgym-tuned";
const VERSION: u32 = 2;
/// Supported versions. Version 1 has mean FCT on training traces only.
const READ: [u32; 2] = [1, VERSION];

/// An error of a file of tuned parameters.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file does not have this format and version.
    #[error("{origin}: {problem}; `bufgym tune` writes such files")]
    File {
        /// Name of the file.
        origin: String,
        /// Problem of the file.
        problem: String,
    },
    /// The scenario in the file is invalid.
    #[error("{origin}: {source}")]
    Scenario {
        /// Name of the file.
        origin: String,
        /// Problem of the scenario.
        source: ScenarioError,
    },
    /// The stored policy string is invalid.
    #[error("{origin}: {source}")]
    Policy {
        /// Name of the file.
        origin: String,
        /// Problem of the policy string.
        source: PolicyParseError,
    },
}

/// One tuned policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tuned {
    /// The policy string with its best parameters.
    pub policy: String,
    /// Comparison with DT (α = 1) on the traces: [`Comparison::value`](crate::metric::Comparison).
    pub ratio_to_dt: f64,
    /// Comparison of the default parameters with DT on the traces.
    pub start_ratio_to_dt: f64,
    /// Number of traces.
    pub traces: u64,
    /// Seed of the traces.
    pub seed: u64,
    /// Split of the traces; missing in files of version 1, which use the training split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// Simulations spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulations: Option<u64>,
    /// Simulation budget of the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// Parameters at an edge of the search range, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<String>,
}

/// The fit of a file's settings to a scenario. The better fit comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// All settings are the same.
    Exact,
    /// The duration of traffic differs and all other settings are the same. Searches in large networks need
    /// short runs.
    OtherDuration,
}

/// Tuned policies by the names of a policy and its queue management, `dt` or `dt+red`.
type Policies = BTreeMap<String, Tuned>;

/// The tuned policies of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    format: String,
    version: u32,
    /// The scenario with all its settings, as TOML.
    scenario: String,
    /// Policies that were tuned by mean FCT.
    policies: Policies,
    /// Policies that were tuned by the metrics of other objectives.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    objectives: BTreeMap<String, Policies>,
}

impl Stored {
    /// Builds a file without policies.
    pub fn new(scenario: &Scenario) -> Stored {
        Stored {
            format: FORMAT.to_owned(),
            version: VERSION,
            scenario: scenario.to_toml(),
            policies: Policies::new(),
            objectives: BTreeMap::new(),
        }
    }

    /// Reads a file; `origin` names it in errors.
    ///
    /// # Errors
    /// Fails if the text is not such a file.
    pub fn read(text: &str, origin: &str) -> Result<Stored, StoreError> {
        let refuse = |problem: String| StoreError::File {
            origin: origin.to_owned(),
            problem,
        };
        let stored: Stored =
            serde_json::from_str(text).map_err(|error| refuse(condensed(error)))?;
        if stored.format != FORMAT || !READ.contains(&stored.version) {
            let found = format!("{} {}", excerpt(&stored.format), stored.version);
            return Err(refuse(format!("is '{found}', not '{FORMAT} {VERSION}'")));
        }
        Ok(stored)
    }

    /// Returns the file's text.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings, numbers and maps by string are JSON")
            + "\n"
    }

    /// Returns the fit of the file's settings to those of `scenario`; `None` if they belong to another one.
    ///
    /// # Errors
    /// Fails if the scenario in the file is invalid.
    pub fn fit(&self, scenario: &Scenario, origin: &str) -> Result<Option<Fit>, StoreError> {
        let stored = Scenario::from_toml_str(&self.scenario, origin).map_err(|source| {
            StoreError::Scenario {
                origin: origin.to_owned(),
                source,
            }
        })?;
        let as_long = stored.clone().with(|changed| {
            changed.demand.warmup_ms = scenario.demand.warmup_ms;
            changed.demand.measure_ms = scenario.demand.measure_ms;
            changed.demand.drain_ms = scenario.demand.drain_ms;
        });
        Ok(match stored == *scenario {
            true => Some(Fit::Exact),
            false => (as_long == *scenario).then_some(Fit::OtherDuration),
        })
    }

    fn judged_by(&self, metric: Metric) -> Option<&Policies> {
        match metric {
            Metric::MeanFct => Some(&self.policies),
            other => self.objectives.get(other.objective()),
        }
    }

    /// Returns the result for a policy of these names, if there is one.
    pub fn entry(&self, metric: Metric, names: &str) -> Option<&Tuned> {
        self.judged_by(metric)?.get(names)
    }

    /// Returns all results by a metric, by the names of policies.
    pub fn entries(&self, metric: Metric) -> impl Iterator<Item = (&String, &Tuned)> {
        self.judged_by(metric).into_iter().flatten()
    }

    /// Stores a result; it replaces an earlier one for the same policy.
    pub fn keep(&mut self, metric: Metric, names: &str, tuned: Tuned) {
        let policies = match metric {
            Metric::MeanFct => &mut self.policies,
            other => self
                .objectives
                .entry(other.objective().to_owned())
                .or_default(),
        };
        policies.insert(names.to_owned(), tuned);
        self.version = VERSION;
    }

    /// Returns the tuned policy of these names, if there is one.
    ///
    /// # Errors
    /// Fails if the stored policy string is invalid.
    pub fn policy(
        &self,
        metric: Metric,
        names: &str,
        origin: &str,
    ) -> Result<Option<PolicySpec>, StoreError> {
        let Some(entry) = self.entry(metric, names) else {
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
            &good.replace("\"version\": 2", "\"version\": 9"),
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
        assert_eq!(stored.fit(&scenario, "f").unwrap(), Some(Fit::Exact));
        let longer = scenario.clone().with(|scenario| {
            scenario.demand.measure_ms = 10_000;
        });
        assert_eq!(stored.fit(&longer, "f").unwrap(), Some(Fit::OtherDuration));
        let other = longer.with(|scenario| {
            scenario.tcp.min_rto_us = 10_000;
        });
        assert_eq!(stored.fit(&other, "f").unwrap(), None);
    }

    #[test]
    fn files_of_the_first_version_are_read_and_added_to() {
        let text = Stored::new(&Scenario::default()).to_json();
        let entry = r#""dt": {"policy": "dt:alpha=8", "ratio_to_dt": 0.9, "start_ratio_to_dt": 1.0, "traces": 64, "seed": 1}"#;
        let text = text
            .replace("\"version\": 2", "\"version\": 1")
            .replace("\"policies\": {}", &format!("\"policies\": {{{entry}}}"));
        let mut stored = Stored::read(&text, "f").unwrap();
        let dt = stored.policy(Metric::MeanFct, "dt", "f").unwrap().unwrap();
        assert_eq!(dt.to_string(), "dt:alpha=8");
        assert_eq!(stored.entry(Metric::Loss, "dt"), None);
        let entry = Tuned {
            policy: "dt:alpha=2+red".to_owned(),
            edges: vec!["alpha=2 of 1..2".to_owned()],
            ..stored.entry(Metric::MeanFct, "dt").unwrap().clone()
        };
        stored.keep(Metric::Loss, "dt+red", entry.clone());
        let again = Stored::read(&stored.to_json(), "f").unwrap();
        assert_eq!(again, stored);
        assert_eq!(again.entry(Metric::Loss, "dt+red"), Some(&entry));
        assert_eq!(again.entry(Metric::MeanFct, "dt+red"), None);
    }
}
