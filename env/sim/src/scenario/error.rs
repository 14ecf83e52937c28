//! Errors of scenarios. Each message is one line with the place, the problem and a valid alternative.

use std::path::PathBuf;

use bufgym_util::input::{condensed, excerpt, suggestion};

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
        /// The name given.
        name: String,
        /// The available presets.
        known: Vec<&'static str>,
    },
    /// A file that cannot be read.
    #[error("{}: cannot read the scenario: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Reason of the failure.
        source: std::io::Error,
    },
    /// A text that is not TOML.
    #[error("{origin}:{line}: not valid TOML: {}", condensed(.message))]
    Syntax {
        /// The file.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// Message of the TOML parser.
        message: String,
    },
    /// An invalid key or value in a file.
    #[error("{origin}:{line}: {problem}")]
    InFile {
        /// The file.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// The problem found there.
        problem: SettingProblem,
    },
    /// An invalid `key=value`.
    #[error("setting `{}`: {problem}", excerpt(.given))]
    InSetting {
        /// The text given.
        given: String,
        /// The problem with the text.
        problem: SettingProblem,
    },
    /// Values that do not make a valid scenario.
    #[error("scenario `{}`: {field} = {value}: {problem}", excerpt(.scenario))]
    Invalid {
        /// The scenario's name.
        scenario: String,
        /// The setting.
        field: &'static str,
        /// The value of the setting.
        value: String,
        /// The reason why the value is invalid, and a valid alternative.
        problem: String,
    },
}

/// A problem with one setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingProblem {
    /// No setting has this name.
    #[error("unknown setting `{}`{}", excerpt(.key), suggestion(.key, .known))]
    UnknownKey {
        /// The name given.
        key: String,
        /// The valid names.
        known: Vec<&'static str>,
    },
    /// The value is of the wrong type or out of the type's range.
    #[error("{}: {message}", excerpt(.key))]
    Value {
        /// The setting.
        key: String,
        /// The problem with the value.
        message: String,
    },
    /// A text that is not of the form `key=value`.
    #[error("expected key=value")]
    NotAnAssignment,
}
