//! Errors of scenarios. Each message is one line that says where, what is wrong and what would be
//! right.

use std::path::PathBuf;

use crate::input::{condensed, excerpt, suggestion};

/// A scenario that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// A name that is neither a preset nor a TOML file.
    #[error(
        "there is no scenario `{}`{}; presets: {}; or give a file ending in .toml",
        excerpt(.name),
        suggestion(.name, .known),
        .known.join(", ")
    )]
    UnknownPreset {
        /// What was given.
        name: String,
        /// The presets there are.
        known: Vec<&'static str>,
    },
    /// A file that cannot be read.
    #[error("{}: cannot read the scenario: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A text that is not TOML.
    #[error("{origin}:{line}: not valid TOML: {}", condensed(.message))]
    Syntax {
        /// The file.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// What the TOML parser says.
        message: String,
    },
    /// A key or a value in a file that is not right.
    #[error("{origin}:{line}: {problem}")]
    InFile {
        /// The file.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        problem: SettingProblem,
    },
    /// A `key=value` that is not right.
    #[error("setting `{}`: {problem}", excerpt(.given))]
    InSetting {
        /// The text given.
        given: String,
        /// What is wrong with it.
        problem: SettingProblem,
    },
    /// Values that do not make a scenario.
    #[error("scenario `{}`: {field} = {value}: {problem}", excerpt(.scenario))]
    Invalid {
        /// The scenario's name.
        scenario: String,
        /// The setting.
        field: &'static str,
        /// Its value.
        value: String,
        /// Why it cannot be, and what would be right.
        problem: String,
    },
}

/// What is wrong with one setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingProblem {
    /// No setting has this name.
    #[error("unknown setting `{}`{}", excerpt(.key), suggestion(.key, .known))]
    UnknownKey {
        /// The name given.
        key: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// The value is of the wrong type or out of the type's range.
    #[error("{}: {message}", excerpt(.key))]
    Value {
        /// The setting.
        key: String,
        /// What is wrong with the value.
        message: String,
    },
    /// Not of the form `key=value`.
    #[error("expected key=value")]
    NotAnAssignment,
}
