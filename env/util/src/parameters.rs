//! The text form of things with parameters, `name` or `name:key=value,key=value`, and what can be wrong with it.

use thiserror::Error;

use crate::input::{excerpt, suggestion};

/// Why the parameters of a policy, or of something else with a name, cannot be understood.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ParameterError {
    /// There is no such parameter.
    #[error("policy {owner} has no parameter '{}'{}; it has {}", excerpt(.key), suggestion(.key, .known), listed(.known))]
    Unknown {
        /// What has the parameters.
        owner: &'static str,
        /// The key as it was written.
        key: String,
        /// The parameters that exist.
        known: Vec<&'static str>,
    },
    /// A value does not fit.
    #[error("policy {owner}: {key}={} is not {expected}", excerpt(.value))]
    Value {
        /// What has the parameters.
        owner: &'static str,
        /// The parameter.
        key: String,
        /// The value as it was written.
        value: String,
        /// A description of valid values.
        expected: String,
    },
    /// A parameter is given more than once.
    #[error("policy {owner}: {} is given twice; leave one out", excerpt(.key))]
    Repeated {
        /// What has the parameters.
        owner: &'static str,
        /// The parameter.
        key: String,
    },
    /// A parameter has no value.
    #[error("policy {owner}: '{}' is not of the form key=value{}", excerpt(.text), tuned(.text))]
    Form {
        /// What has the parameters.
        owner: &'static str,
        /// The text as it was written.
        text: String,
    },
}

/// An invalid part of a parameter list.
#[derive(Clone, PartialEq, Debug)]
pub enum SplitError {
    /// This text is not of the form `key=value`.
    Form(String),
    /// This key is given more than once.
    Repeated(String),
}

impl SplitError {
    /// Converts the error to one of `owner`'s parameters.
    #[must_use]
    pub fn of(self, owner: &'static str) -> ParameterError {
        match self {
            SplitError::Form(text) => ParameterError::Form { owner, text },
            SplitError::Repeated(key) => ParameterError::Repeated { owner, key },
        }
    }
}

/// Splits `name` or `name:key=value,key=value` into the name and an iterator over keys and values. A part that is not
/// of the form `key=value`, or whose key has occurred before, is an error.
pub fn split(text: &str) -> (&str, impl Iterator<Item = Result<(&str, &str), SplitError>>) {
    let (name, parameters) = match text.split_once(':') {
        Some((name, parameters)) => (name, Some(parameters)),
        None => (text, None),
    };
    let parts = parameters.into_iter().flat_map(|list| list.split(','));
    let mut seen = Vec::new();
    let pairs = parts.map(move |part| {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| SplitError::Form(part.to_owned()))?;
        let (key, value) = (key.trim(), value.trim());
        if seen.contains(&key) {
            return Err(SplitError::Repeated(key.to_owned()));
        }
        seen.push(key);
        Ok((key, value))
    });
    (name, pairs)
}

/// Names in a sentence, or `none`.
#[must_use]
pub fn listed(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        _ => names.join(", "),
    }
}

/// A remark about the form that only commands with results of `bufgym tune` read.
fn tuned(text: &str) -> &'static str {
    match text.trim() {
        "tuned" => "; tuned parameters cannot be named here, so give them one by one",
        _ => "",
    }
}
