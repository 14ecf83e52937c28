//! Whether two configurations are of one training: what may change at a resume is left out.

use super::{Budget, CheckpointConfig, TrainConfig};
use crate::TrainError;

impl TrainConfig {
    /// The settings that determine the results, as TOML: without budget, checkpoint times and
    /// threads, which may change at a resume.
    pub(crate) fn identity(&self) -> toml::Table {
        let mut config = self.clone();
        config.budget = Budget::default();
        config.checkpoint = CheckpointConfig::default();
        config.rollout.threads = 0;
        config.to_toml().parse().unwrap_or_default()
    }

    /// The first setting in which two configurations of one training differ.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] naming it.
    pub(crate) fn require_same(&self, stored: &Self) -> Result<(), TrainError> {
        if self.scenario.name != stored.scenario.name {
            return Err(TrainError::Mismatch {
                setting: "scenario".into(),
                stored: stored.scenario.name.clone(),
                given: self.scenario.name.clone(),
            });
        }
        match first_difference("", &stored.identity(), &self.identity()) {
            None => Ok(()),
            Some((setting, stored, given)) => Err(TrainError::Mismatch {
                setting,
                stored,
                given,
            }),
        }
    }
}

fn first_difference(
    prefix: &str,
    stored: &toml::Table,
    given: &toml::Table,
) -> Option<(String, String, String)> {
    let show = |value: Option<&toml::Value>| value.map_or("unset".into(), ToString::to_string);
    let added = given.keys().filter(|key| !stored.contains_key(*key));
    for key in stored.keys().chain(added) {
        let name = format!("{prefix}{key}");
        match (stored.get(key), given.get(key)) {
            (Some(toml::Value::Table(a)), Some(toml::Value::Table(b))) => {
                if let Some(found) = first_difference(&format!("{name}."), a, b) {
                    return Some(found);
                }
            }
            (a, b) if a != b => return Some((name, show(a), show(b))),
            _ => {}
        }
    }
    None
}
