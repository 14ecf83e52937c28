//! The definition of a policy: name, rule, source, parameters, and how to build it.

use std::str::FromStr;

use super::{AnyPolicy, Search};
use crate::scenario::Scenario;
use crate::units::Duration;

/// The kind of value that a parameter takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A finite number above 0.
    Positive,
    /// A number from 0 to 1.
    Fraction,
    /// A whole number above 0, below 2^32.
    Count,
    /// The seed of a random stream, a whole number below 2^32.
    Seed,
    /// A whole number of bytes.
    Bytes,
    /// Numbers above 0, separated by `/`.
    Numbers,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A file or folder.
    Path,
}

impl Kind {
    /// Returns a description of valid values, for error messages.
    pub fn expected(self) -> String {
        match self {
            Kind::Positive => "a number above 0".to_owned(),
            Kind::Fraction => "a number from 0 to 1".to_owned(),
            Kind::Count => format!("a whole number from 1 to {}", u32::MAX),
            Kind::Seed => format!("a whole number up to {}", u32::MAX),
            Kind::Bytes => "a whole number of bytes".to_owned(),
            Kind::Numbers => "numbers above 0, separated by /".to_owned(),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
            Kind::Path => "a path".to_owned(),
        }
    }

    /// Returns true if the text is a value of this kind.
    pub fn accepts(self, text: &str) -> bool {
        let number = || text.parse::<f64>().ok().filter(|value| value.is_finite());
        match self {
            Kind::Positive => number().is_some_and(|value| value > 0.0),
            Kind::Fraction => number().is_some_and(|value| (0.0..=1.0).contains(&value)),
            Kind::Count => text.parse::<u32>().is_ok_and(|value| value > 0),
            Kind::Seed => text.parse::<u32>().is_ok(),
            Kind::Bytes => text.parse::<u64>().is_ok(),
            Kind::Numbers => text.split('/').all(|part| Kind::Positive.accepts(part)),
            Kind::Choice(words) => words.contains(&text),
            Kind::Path => !text.is_empty(),
        }
    }

    /// Returns the canonical text of a value: equal values have the same text.
    pub(crate) fn canonical(self, text: &str) -> String {
        match self {
            Kind::Positive | Kind::Fraction => text
                .parse::<f64>()
                .map_or_else(|_| text.to_owned(), |value| value.to_string()),
            Kind::Count | Kind::Seed | Kind::Bytes => text
                .parse::<u64>()
                .map_or_else(|_| text.to_owned(), |value| value.to_string()),
            Kind::Numbers => {
                let parts = text.split('/').map(|part| Kind::Positive.canonical(part));
                parts.collect::<Vec<_>>().join("/")
            }
            Kind::Choice(_) | Kind::Path => text.to_owned(),
        }
    }
}

/// A parameter of a policy.
#[derive(Clone, Copy, Debug)]
pub struct ParameterInfo {
    /// Key of the parameter.
    pub name: &'static str,
    /// The default value, or a description of how the default is derived.
    pub default: &'static str,
    /// Kind of the parameter's values.
    pub kind: Kind,
    /// Values of the parameter that a search tries.
    pub search: Search,
    /// Meaning of the parameter, with its unit.
    pub meaning: &'static str,
}

/// The kind of switch that can run a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deployment {
    /// Today's switches have the policy, or their settings can express it.
    Today,
    /// It needs counters and comparisons in addition to Dynamic Threshold. A programmable switch or
    /// a future chip can have them.
    Extension,
    /// It needs what shared-memory switches lack: push-out, sorted queues, more state, or a model
    /// on the packet path.
    NewHardware,
    /// No switch can run it; it is a reference line.
    Reference,
}

/// The description of a policy, for listings.
#[derive(Clone, Copy, Debug)]
pub struct PolicyInfo {
    /// Name of the policy.
    pub name: &'static str,
    /// A description in one line.
    pub summary: &'static str,
    /// The admission rule, with `q_i` bytes in the queue, `Q` bytes in the buffer of `B` bytes, a
    /// packet of `L` bytes, and `N` ports.
    pub rule: &'static str,
    /// Publication that the policy comes from.
    pub source: &'static str,
    /// Kind of switch that can run the policy.
    pub deployment: Deployment,
    /// Parameters of the policy.
    pub parameters: &'static [ParameterInfo],
}

/// A policy: its description and how to build it.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// The description.
    pub info: PolicyInfo,
    /// Builds the policy for the switch of the scenario. The error message names the wrong parameter
    /// and a valid alternative.
    pub build: fn(&Arguments<'_>, &Scenario) -> Result<AnyPolicy, String>,
}

/// The parameters of a policy: the given values, and the defaults of the others.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    parameters: &'static [ParameterInfo],
    given: &'a [(&'static str, String)],
}

impl<'a> Arguments<'a> {
    pub(crate) fn of(
        parameters: &'static [ParameterInfo],
        given: &'a [(&'static str, String)],
    ) -> Arguments<'a> {
        Arguments { parameters, given }
    }

    /// Returns the text of a parameter: the given value or a constant default. `None` for a derived
    /// default.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        let given = self.given.iter().find(|(key, _)| *key == name);
        given.map(|(_, value)| value.as_str()).or_else(|| {
            let parameter = self.parameters.iter().find(|info| info.name == name)?;
            parameter
                .kind
                .accepts(parameter.default)
                .then_some(parameter.default)
        })
    }

    /// Returns all parameters with their defaults.
    pub(crate) fn defaults(info: &PolicyInfo) -> Arguments<'static> {
        Arguments {
            parameters: info.parameters,
            given: &[],
        }
    }

    /// Returns true if a parameter has another value than its default.
    pub fn is_given(&self, name: &str) -> bool {
        self.given.iter().any(|(key, _)| *key == name)
    }

    /// Returns the value of a parameter whose default may be derived: `None` if the derived default
    /// applies.
    pub fn optional<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }

    /// Returns the value of a parameter whose default is a constant.
    ///
    /// # Panics
    /// When the policy has no such parameter, its default is derived, or `T` is not its type.
    pub fn value<T: FromStr>(&self, name: &str) -> T {
        let value = self.optional(name);
        value.unwrap_or_else(|| panic!("parameter {name} has no constant default"))
    }

    /// Returns the value of a parameter that is a time in microseconds; `None` if the derived default
    /// applies.
    pub fn microseconds(&self, name: &str) -> Option<Duration> {
        let us: f64 = self.optional(name)?;
        Some(Duration::from_secs_f64(us * 1e-6))
    }

    /// Returns numbers separated by `/`; `None` if the derived default applies.
    pub fn numbers(&self, name: &str) -> Option<Vec<f64>> {
        let parts = self.text(name)?.split('/');
        parts.map(|part| part.parse().ok()).collect()
    }
}
