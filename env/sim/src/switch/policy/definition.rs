//! What a policy file says of its policy: name, rule, source, parameters, and how to build it.

use std::str::FromStr;

use super::AnyPolicy;
use crate::scenario::Scenario;
use crate::units::Time;

/// What values a parameter takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A finite number above 0.
    Positive,
    /// A number from 0 to 1.
    Fraction,
    /// A whole number above 0, below 2^32.
    Count,
    /// A whole number, below 2^32, that chooses among random numbers.
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
    /// What a value must be, in words.
    pub fn expected(self) -> String {
        match self {
            Kind::Positive => "a number above 0".to_owned(),
            Kind::Fraction => "a number from 0 to 1".to_owned(),
            Kind::Count => "a whole number above 0".to_owned(),
            Kind::Seed => "a whole number".to_owned(),
            Kind::Bytes => "a whole number of bytes".to_owned(),
            Kind::Numbers => "numbers above 0, separated by /".to_owned(),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
            Kind::Path => "a path".to_owned(),
        }
    }

    /// Whether the text is such a value.
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

    /// The value in the form in which equal values look alike.
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
    /// Its key.
    pub name: &'static str,
    /// Its value where none is given, or how that is derived.
    pub default: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// What it means, with its unit.
    pub meaning: &'static str,
}

/// Whether a switch could run a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deployment {
    /// Today's switches have it, or their settings suffice for it.
    Today,
    /// It needs counters and comparisons beside Dynamic Threshold, as a programmable switch or the
    /// next chip can have.
    Extension,
    /// It needs what shared-memory switches lack: push-out, sorted queues, state beyond that, or a
    /// model on the packet path.
    NewHardware,
    /// No switch could: a reference line.
    Reference,
}

/// A policy, for listings.
#[derive(Clone, Copy, Debug)]
pub struct PolicyInfo {
    /// Its name.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// The admission rule; `q_i` bytes queued for the port, `Q` in the buffer of `B` bytes, `L`
    /// bytes of the packet, `N` ports.
    pub rule: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Whether a switch could run it.
    pub deployment: Deployment,
    /// What can be set.
    pub parameters: &'static [ParameterInfo],
}

/// A policy by name: what it is and how to build it.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// For listings.
    pub info: PolicyInfo,
    /// Builds it for a switch as the scenario has it; an error says what is wrong with which
    /// parameter, and what would be right.
    pub build: fn(&Arguments<'_>, &Scenario) -> Result<AnyPolicy, String>,
}

/// The parameters of a policy string: those that were given, and the defaults of the others.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    parameters: &'static [ParameterInfo],
    given: &'a [(&'static str, String)],
}

impl<'a> Arguments<'a> {
    pub(crate) fn new(info: &PolicyInfo, given: &'a [(&'static str, String)]) -> Arguments<'a> {
        Arguments {
            parameters: info.parameters,
            given,
        }
    }

    /// The text of a parameter, given or by default.
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

    /// All parameters with their defaults.
    pub(crate) fn defaults(info: &PolicyInfo) -> Arguments<'static> {
        Arguments {
            parameters: info.parameters,
            given: &[],
        }
    }

    /// Whether a parameter has another value than its default.
    pub fn is_given(&self, name: &str) -> bool {
        self.given.iter().any(|(key, _)| *key == name)
    }

    /// The value of a parameter whose default may be derived: `None` where the derived default
    /// applies.
    pub fn optional<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }

    /// The value of a parameter whose default is a constant.
    ///
    /// # Panics
    /// When the policy has no such parameter, its default is derived, or `T` is not its type.
    pub fn value<T: FromStr>(&self, name: &str) -> T {
        let value = self.optional(name);
        value.unwrap_or_else(|| panic!("parameter {name} has no constant default"))
    }

    /// The value of a parameter that is a time in microseconds; `None` where the derived default
    /// applies.
    pub fn microseconds(&self, name: &str) -> Option<Time> {
        let us: f64 = self.optional(name)?;
        Some(Time::from_secs_f64(us * 1e-6))
    }

    /// Numbers separated by `/`; `None` where the derived default applies.
    pub fn numbers(&self, name: &str) -> Option<Vec<f64>> {
        let parts = self.text(name)?.split('/');
        parts.map(|part| part.parse().ok()).collect()
    }
}
