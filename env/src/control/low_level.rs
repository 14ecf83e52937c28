//! The heuristics whose parameter the decisions set: the paper's two-level mechanism takes "a
//! specified heuristic".

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::scenario::suggestion;
use crate::switch::PolicySpec;
use crate::switch::policy::{Definition, catalogue};

/// The policy that decides about packets, with the α that the decisions choose for every port: one
/// of the [catalogue] whose rule has a control factor.
///
/// Its other parameters have their defaults, as has what they derive from α (EDT's C2 and T1): the
/// α of a port is set in its queues alone. Of a policy with several α it is that of
/// - [FAB](crate::switch::policy::FlowAwareBuffer): long flows,
/// - [ABM](crate::switch::policy::ActiveBufferManagement): all priorities, not unscheduled packets,
/// - [EDT](crate::switch::policy::EnhancedDynamicThreshold): the controlled state,
/// - [TDT](crate::switch::policy::TrafficAwareThreshold): the normal state and evacuations.
///
/// In text and files it is the policy's name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LowLevel(&'static str);

/// A text that names no low-level heuristic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownLowLevel {
    /// A policy whose rule has no α.
    #[error(
        "low level '{name}' has no control factor alpha to set; those that have one are {}",
        listed()
    )]
    NoAlpha {
        /// As it was written.
        name: String,
    },
    /// No policy.
    #[error("low level '{name}' is not known{}; there are {}", suggestion(.name, &names()), listed())]
    NoPolicy {
        /// As it was written.
        name: String,
    },
}

fn has_alpha(definition: &Definition) -> bool {
    let mut parameters = definition.info.parameters.iter();
    parameters.any(|parameter| parameter.name == "alpha")
}

fn names() -> Vec<&'static str> {
    LowLevel::all().map(LowLevel::name).collect()
}

fn listed() -> String {
    names().join(", ")
}

impl LowLevel {
    /// Dynamic Threshold: `T = α_i (B - Q)` (paper, §IV-B).
    pub const DT: LowLevel = LowLevel("dt");
    /// Active Buffer Management: `T = α_i · (1/n_p) · (B - Q) · μ/b`.
    pub const ABM: LowLevel = LowLevel("abm");

    /// Every one of them, in the order of the catalogue.
    pub fn all() -> impl Iterator<Item = LowLevel> {
        let definitions = catalogue().iter();
        let with_alpha = definitions.filter(|definition| has_alpha(definition));
        with_alpha.map(|definition| LowLevel(definition.info.name))
    }

    /// The name in files and on the command line.
    pub const fn name(self) -> &'static str {
        self.0
    }

    /// The policy itself, with its defaults.
    pub fn policy(self) -> PolicySpec {
        PolicySpec::named(self.0)
    }

    /// Whether it is the paper's own, [`LowLevel::DT`].
    pub fn is_default(&self) -> bool {
        *self == LowLevel::default()
    }
}

impl Default for LowLevel {
    fn default() -> LowLevel {
        LowLevel::DT
    }
}

impl fmt::Debug for LowLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LowLevel({self})")
    }
}

impl fmt::Display for LowLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for LowLevel {
    type Err = UnknownLowLevel;

    fn from_str(text: &str) -> Result<LowLevel, UnknownLowLevel> {
        let found = LowLevel::all().find(|low_level| low_level.name() == text);
        found.ok_or_else(|| {
            let name = text.to_owned();
            let mut policies = catalogue().iter();
            if policies.any(|definition| definition.info.name == text) {
                UnknownLowLevel::NoAlpha { name }
            } else {
                UnknownLowLevel::NoPolicy { name }
            }
        })
    }
}

impl Serialize for LowLevel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for LowLevel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LowLevel, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::switch::policy::Policy;

    #[test]
    fn names_are_read_back() {
        let names = "dt, edt, tdt, fab, ib, abm, occamy";
        assert_eq!(listed(), names);
        for low_level in LowLevel::all() {
            assert_eq!(low_level.to_string().parse(), Ok(low_level));
            let json = serde_json::to_string(&low_level).unwrap();
            assert_eq!(json, format!("\"{low_level}\""));
            assert_eq!(serde_json::from_str::<LowLevel>(&json).unwrap(), low_level);
        }
        assert_eq!("dt".parse(), Ok(LowLevel::DT));
        assert_eq!("abm".parse(), Ok(LowLevel::ABM));
    }

    #[test]
    fn what_has_no_alpha_is_refused_with_what_has() {
        let message = |text: &str| text.parse::<LowLevel>().unwrap_err().to_string();
        let names = "dt, edt, tdt, fab, ib, abm, occamy";
        for name in [
            "cs",
            "st",
            "smxq",
            "sma",
            "harmonic",
            "lqd",
            "pot",
            "followlqd",
            "credence",
            "unlimited",
        ] {
            assert_eq!(
                message(name),
                format!(
                    "low level '{name}' has no control factor alpha to set; those that have one are {names}"
                )
            );
        }
        assert_eq!(
            message("etd"),
            format!(
                "low level 'etd' is not known{}; there are {names}",
                suggestion("etd", &["edt"])
            )
        );
        for text in ["", "edt:alpha=2", "EDT"] {
            assert!(message(text).contains(names), "{}", message(text));
        }
        let error = serde_json::from_str::<LowLevel>("\"lqd\"").unwrap_err();
        assert!(error.to_string().contains(names), "{error}");
    }

    /// Dynamic Threshold aside, which the control itself has.
    #[test]
    fn exactly_those_let_their_alpha_be_set() {
        let scenario = Scenario::default();
        for definition in catalogue() {
            let name = definition.info.name;
            let mut policy = PolicySpec::named(name).build(&scenario).unwrap();
            let expected = name
                .parse::<LowLevel>()
                .is_ok_and(|named| !named.is_default());
            let queues = scenario.port_count();
            for queue in 0..queues {
                assert_eq!(policy.set_alpha(queue, 4.0), expected, "{name}");
            }
            if expected {
                assert!(
                    (0..queues).all(|queue| policy.alpha(queue) == Some(4.0)),
                    "{name}"
                );
            }
        }
    }
}
