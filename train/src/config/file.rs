//! Configuration files, whose settings override defaults.

use std::path::{Path, PathBuf};

use bufgym_util::input::{self, condensed};

use super::{TrainConfig, usual_low_level};
use crate::TrainError;
use crate::mixture::MIXED;

/// A configuration file, whose settings override defaults. The defaults depend on the scenarios of the training.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    origin: PathBuf,
    /// The settings in the file.
    said: toml::Table,
    /// The same settings with the ordinary defaults.
    config: TrainConfig,
}

impl ConfigFile {
    /// Reads a file.
    ///
    /// # Errors
    /// [`TrainError::Config`] when the file cannot be read, and as [`parse`](ConfigFile::parse).
    pub fn load(path: &Path) -> Result<Self, TrainError> {
        let text = input::read_text(path, input::MAX_TOML).map_err(|error| TrainError::Config {
            path: path.to_owned(),
            problem: error.to_string(),
        })?;
        Self::parse(&text, path)
    }

    /// Reads text. `origin` is named in errors; a scenario file is looked for relative to the working
    /// directory.
    ///
    /// # Errors
    /// [`TrainError::Config`] with the line for text that is not TOML, unknown keys and values of
    /// the wrong type, those of the scenario included.
    pub fn parse(text: &str, origin: &Path) -> Result<Self, TrainError> {
        let read = || Ok((toml::from_str(text)?, toml::from_str(text)?));
        let (said, config) = read().map_err(|error| TrainError::Config {
            path: origin.to_owned(),
            problem: describe(text, &error),
        })?;
        Ok(Self {
            origin: origin.to_owned(),
            said,
            config,
        })
    }

    /// Returns true if the file has a setting of this name outside all tables.
    #[must_use]
    pub fn names(&self, key: &str) -> bool {
        self.said.contains_key(key)
    }

    /// Returns the settings with the defaults that fit the scenarios: [`over_mixed`](ConfigFile::over_mixed) for
    /// `mixture = "mixed"`, [`over_ordinary`](ConfigFile::over_ordinary) otherwise.
    ///
    /// # Errors
    /// Same as [`over_mixed`](ConfigFile::over_mixed).
    pub fn over_its_own(self) -> Result<TrainConfig, TrainError> {
        match self.said.get("mixture").and_then(toml::Value::as_str) {
            Some(MIXED) => self.over_mixed(),
            _ => Ok(self.over_ordinary()),
        }
    }

    /// Returns the settings over [`TrainConfig::default`], with the heuristic that fits the scenario.
    #[must_use]
    pub fn over_ordinary(self) -> TrainConfig {
        let is_given = self.names("low_level");
        let mut config = self.config;
        if let Some(first) = config.mixture.first() {
            config.scenario = first.clone();
        }
        if !is_given {
            config.low_level = usual_low_level(&config.scenario);
        }
        config
    }

    /// Returns the settings over [`TrainConfig::mixed`], with its mixture of scenarios.
    ///
    /// # Errors
    /// [`TrainError::Config`] if the file contradicts it.
    pub fn over_mixed(self) -> Result<TrainConfig, TrainError> {
        let refuse = |problem: String| TrainError::Config {
            path: self.origin.clone(),
            problem,
        };
        let defaults = TrainConfig::mixed().map_err(|error| refuse(error.to_string()))?;
        let table = toml::Table::try_from(&defaults);
        let mut table = table.map_err(|error| refuse(condensed(error)))?;
        lay_over(&mut table, &self.said);
        let read: Result<TrainConfig, _> = table.try_into();
        let mut config = read.map_err(|error| refuse(condensed(error.message())))?;
        config.mix(defaults.mixture);
        config.fit_rule();
        Ok(config)
    }
}

/// Overwrites the values in `table` by those in `said`, in tables setting by setting. A budget is replaced as a whole:
/// its limits are alternatives.
fn lay_over(table: &mut toml::Table, said: &toml::Table) {
    for (key, value) in said {
        match (table.get_mut(key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(said)) if key != "budget" => {
                lay_over(inner, said);
            }
            _ => {
                table.insert(key.clone(), value.clone());
            }
        }
    }
}

/// The message of a TOML error in one line, with the line of the mistake.
fn describe(text: &str, error: &toml::de::Error) -> String {
    let message = condensed(error.message().trim().replace('\n', "; "));
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!("line {}: {message}", before.matches('\n').count() + 1),
        None => message,
    }
}
