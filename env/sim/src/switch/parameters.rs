//! Parameters of policies and of queue management as text, and the errors of texts that cannot be understood.

use std::fmt;

use bufgym_util::input::{excerpt, suggestion};
use bufgym_util::parameters::{ParameterError, listed};
use thiserror::Error;

use super::policy::{ParameterInfo, catalogue};

/// The values of parameters that differ from the defaults, in the order of the definition.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Given(Vec<(&'static str, String)>);

impl Given {
    /// Sets a parameter of `owner`.
    pub(super) fn set(
        &mut self,
        owner: &'static str,
        parameters: &'static [ParameterInfo],
        key: &str,
        value: &str,
    ) -> Result<(), ParameterError> {
        let found = parameters.iter().find(|info| info.name == key);
        let parameter = found.ok_or_else(|| ParameterError::Unknown {
            owner,
            key: key.to_owned(),
            known: parameters.iter().map(|info| info.name).collect(),
        })?;
        if !parameter.kind.accepts(value) {
            return Err(ParameterError::Value {
                owner,
                key: key.to_owned(),
                value: value.to_owned(),
                expected: parameter.kind.expected(),
            });
        }
        self.0.retain(|(given, _)| *given != parameter.name);
        let value = parameter.kind.canonical(value);
        if value != parameter.default {
            self.0.push((parameter.name, value));
            let place = |name: &str| parameters.iter().position(|info| info.name == name);
            self.0.sort_by_key(|(name, _)| place(name));
        }
        Ok(())
    }

    /// Resets a parameter to its default.
    pub(super) fn reset(&mut self, key: &str) {
        self.0.retain(|(given, _)| *given != key);
    }

    pub(super) fn values(&self) -> &[(&'static str, String)] {
        &self.0
    }

    /// Writes `:key=value,key=value`, or nothing.
    pub(super) fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (key, value)) in self.0.iter().enumerate() {
            let before = if place == 0 { ':' } else { ',' };
            write!(f, "{before}{key}={value}")?;
        }
        Ok(())
    }
}

/// A policy that cannot be understood.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum PolicyParseError {
    /// No such policy.
    #[error("{}", unknown(.name))]
    UnknownPolicy {
        /// The name as it was written.
        name: String,
    },
    /// No such queue management.
    #[error("queue management '{}' is not known{suggestion}; there are {known}", excerpt(.name))]
    UnknownAqm {
        /// The name as it was written.
        name: String,
        /// The nearest name, as in [`suggestion`](bufgym_util::input::suggestion).
        suggestion: String,
        /// The known names.
        known: String,
    },
    /// A parameter that does not exist, or whose value does not fit.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The parameters do not fit the scenario or each other.
    #[error("policy {}: {problem}", excerpt(.policy))]
    Unusable {
        /// The policy as it was written.
        policy: String,
        /// The problem, and a valid alternative.
        problem: String,
    },
}

fn names() -> Vec<&'static str> {
    catalogue()
        .iter()
        .map(|definition| definition.info.name)
        .collect()
}

/// Policies that decide with learned weights from a file and are not rules.
pub(super) const LEARNED: [&str; 4] = ["ndt", "ndt-int8", "linear", "onnx"];

fn unknown(name: &str) -> String {
    if LEARNED.contains(&name) {
        return format!(
            "policy '{name}' has weights and no parameters, and a rule is needed here; the rules are {}",
            listed(&names())
        );
    }
    format!(
        "policy '{}' is not known{}; `bufgym list policies` lists them",
        excerpt(name),
        suggestion(name, &names())
    )
}
