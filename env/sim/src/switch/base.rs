//! The low-level heuristics whose α the control sets. The paper's two-level mechanism takes "a
//! specified heuristic".

use std::fmt;
use std::str::FromStr;

use bufgym_util::input::{excerpt, suggestion};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::switch::aqm::AqmSpec;
use crate::switch::aqm::early::EarlyGaps;
use crate::switch::policy::{Definition, catalogue};
use crate::switch::spec::expanded;
use crate::switch::{PolicyParseError, PolicySpec};

/// The heuristic that admits packets, with a control factor α per port that the control sets: a policy
/// of the [catalogue] whose rule has an α.
///
/// Parameters that default to a function of α (EDT's C2 and T1) keep their default. For a policy
/// with several α, the control sets that of
/// - [FAB](crate::switch::policy::FlowAwareBuffer): long flows,
/// - [ABM](crate::switch::policy::ActiveBufferManagement): all priorities, not unscheduled packets,
/// - [EDT](crate::switch::policy::EnhancedDynamicThreshold): the controlled state,
/// - [TDT](crate::switch::policy::TrafficAwareThreshold): the normal state and evacuations,
/// - [SONiC and Reverie](crate::switch::policy::LosslessPolicy): two, that of lossy packets at the egress and
///   that of lossless ones at the ingress of a port.
///
/// In text and files it is a policy string without `alpha`, such as `abm` or `fab:short_bytes=62500`;
/// queue management may follow, as in `dt+random:p=0.01`. Behind `+early` without `gap`, the control
/// also sets the gaps of [early drop](crate::switch::aqm::early); with `gap`, they stay constant.
#[derive(Clone, PartialEq)]
pub struct LowLevelPolicy(PolicySpec);

const DT: &str = "dt";

/// A text that is not a low-level heuristic.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum UnknownBasePolicy {
    /// The policy has no α.
    #[error(
        "low level '{}' has no control factor alpha to set; those that have one are {}",
        excerpt(.name),
        listed()
    )]
    NoAlpha {
        /// The name given.
        name: String,
    },
    /// The text gives α, which the control sets.
    #[error("low level '{}': leave out alpha (alpha_i and alpha_e), which the decisions set", excerpt(.text))]
    AlphaGiven {
        /// The text given.
        text: String,
    },
    /// The policy has no such parameter, or not with this value.
    #[error("low level: {0}")]
    Parameter(PolicyParseError),
    /// No such policy.
    #[error("low level '{}' is not known{}; there are {}", excerpt(.name), suggestion(.name, &names()), listed())]
    NoPolicy {
        /// The name given.
        name: String,
    },
}

/// Parameters that are control factors: one for both, or one for each side of a switch.
const FACTORS: [&str; 3] = ["alpha", "alpha_i", "alpha_e"];

fn has_alpha(definition: &Definition) -> bool {
    let mut parameters = definition.info.parameters.iter();
    parameters.any(|parameter| FACTORS.contains(&parameter.name))
}

fn names() -> Vec<&'static str> {
    LowLevelPolicy::all()
        .map(|low_level| low_level.0.name())
        .collect()
}

fn listed() -> String {
    names().join(", ")
}

impl LowLevelPolicy {
    /// Returns Dynamic Threshold: `T = α_i (B - Q)` (paper, §IV-B).
    pub fn dt() -> LowLevelPolicy {
        LowLevelPolicy(PolicySpec::named(DT))
    }

    /// Returns Reverie: thresholds of both sides of a switch, for lossless and lossy packets (NSDI
    /// 2024, §3).
    pub fn reverie() -> LowLevelPolicy {
        LowLevelPolicy(PolicySpec::named("reverie"))
    }

    /// Returns all low-level heuristics with default parameters, in the order of the catalogue.
    pub fn all() -> impl Iterator<Item = LowLevelPolicy> {
        let definitions = catalogue().iter();
        let with_alpha = definitions.filter(|definition| has_alpha(definition));
        with_alpha.map(|definition| LowLevelPolicy(PolicySpec::named(definition.info.name)))
    }

    /// Returns the policy, with its default α.
    pub fn policy(&self) -> &PolicySpec {
        &self.0
    }

    /// Returns true if it is Dynamic Threshold alone, as in the paper.
    pub fn is_default(&self) -> bool {
        self.admits_by_dt() && self.0.aqm().is_none()
    }

    /// Returns the heuristic with another queue management behind it, or none.
    #[must_use]
    pub fn with_aqm(&self, aqm: Option<AqmSpec>) -> LowLevelPolicy {
        LowLevelPolicy(self.0.clone().with_aqm(aqm))
    }

    /// Returns true if the control sets early drop in addition to α.
    pub fn drops_early(&self) -> bool {
        self.0.aqm().is_some_and(AqmSpec::is_open)
    }

    /// Returns the gaps of early drop that the control chooses from; `None` if it sets none.
    pub fn early_gaps(&self) -> Option<EarlyGaps> {
        self.0.aqm().and_then(AqmSpec::gaps)
    }

    /// Returns true if the policy has the thresholds of a lossless switch. The control
    /// then sets one factor for egress queues and one for ingress queues.
    pub fn is_lossless(&self) -> bool {
        let name = self.0.name();
        let mut named = catalogue()
            .iter()
            .filter(|definition| definition.info.name == name);
        named.any(|definition| {
            let mut parameters = definition.info.parameters.iter();
            parameters.any(|parameter| parameter.name == "alpha_i")
        })
    }

    /// Returns true if Dynamic Threshold admits packets.
    pub fn admits_by_dt(&self) -> bool {
        self.0.name() == DT
    }

    /// Returns the short name if there is one, else the policy in full.
    pub fn label(&self) -> String {
        self.0.label()
    }
}

impl Default for LowLevelPolicy {
    fn default() -> LowLevelPolicy {
        LowLevelPolicy::dt()
    }
}

impl fmt::Debug for LowLevelPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LowLevelPolicy({self})")
    }
}

impl fmt::Display for LowLevelPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.to_string())
    }
}

impl FromStr for LowLevelPolicy {
    type Err = UnknownBasePolicy;

    fn from_str(text: &str) -> Result<LowLevelPolicy, UnknownBasePolicy> {
        let text = expanded(text);
        let (written, _) = AqmSpec::split(text);
        let (name, _) = written.split_once(':').unwrap_or((written, ""));
        let mut policies = catalogue().iter();
        let Some(definition) = policies.find(|definition| definition.info.name == name) else {
            return Err(UnknownBasePolicy::NoPolicy {
                name: name.to_owned(),
            });
        };
        if !has_alpha(definition) {
            return Err(UnknownBasePolicy::NoAlpha {
                name: name.to_owned(),
            });
        }
        let policy: PolicySpec = text.parse().map_err(UnknownBasePolicy::Parameter)?;
        let gives_alpha = |part: &str| {
            let (name, _) = part.split_once('=').unwrap_or((part, ""));
            FACTORS.contains(&name.trim())
        };
        if written.split([':', ',']).any(gives_alpha) {
            return Err(UnknownBasePolicy::AlphaGiven {
                text: text.to_owned(),
            });
        }
        Ok(LowLevelPolicy(policy))
    }
}

impl Serialize for LowLevelPolicy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for LowLevelPolicy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LowLevelPolicy, D::Error> {
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
        let names = "dt, edt, tdt, fab, ib, abm, occamy, sonic, sonic-abm, reverie";
        assert_eq!(listed(), names);
        for low_level in LowLevelPolicy::all() {
            assert_eq!(low_level.to_string().parse(), Ok(low_level.clone()));
            let json = serde_json::to_string(&low_level).unwrap();
            assert_eq!(json, format!("\"{low_level}\""));
            assert_eq!(
                serde_json::from_str::<LowLevelPolicy>(&json).unwrap(),
                low_level
            );
        }
        assert_eq!("dt".parse(), Ok(LowLevelPolicy::dt()));
        let text = "fab:alpha_short=2048,short_bytes=62500";
        let tuned: LowLevelPolicy = text.parse().unwrap();
        assert_eq!(tuned.to_string(), text);
        assert_eq!(tuned.policy().to_string(), text);
        assert!(!tuned.is_default() && LowLevelPolicy::dt().is_default());
        let managed: LowLevelPolicy = "dt+pie:alpha=0.5".parse().unwrap();
        assert_eq!(managed.to_string(), "dt+pie:alpha=0.5");
        assert!(managed.admits_by_dt() && !managed.is_default());
    }

    #[test]
    fn a_policy_without_alpha_is_refused_with_a_list_of_those_with_one() {
        let message = |text: &str| text.parse::<LowLevelPolicy>().unwrap_err().to_string();
        let names = "dt, edt, tdt, fab, ib, abm, occamy, sonic, sonic-abm, reverie";
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
        for given in [
            "edt:alpha=2",
            "reverie:gamma=0.9,alpha_i=2",
            "sonic:alpha_e=2",
        ] {
            assert!(message(given).contains("leave out alpha"), "{given}");
        }
        for (text, drops_early) in [
            ("dt+early", true),
            ("fab+early:min_bytes=9", true),
            ("dt+early:gap=256", false),
            ("dt+red", false),
            ("dt", false),
        ] {
            let low_level: LowLevelPolicy = text.parse().unwrap();
            assert_eq!(low_level.drops_early(), drops_early, "{text}");
            assert_eq!(low_level.to_string(), text);
        }
        assert!(message("fab:short_byte=2").contains("short_bytes"));
        for text in ["", "EDT"] {
            assert!(message(text).contains(names), "{}", message(text));
        }
        let error = serde_json::from_str::<LowLevelPolicy>("\"lqd\"").unwrap_err();
        assert!(error.to_string().contains(names), "{error}");
    }

    /// The exceptions are Dynamic Threshold, which the control implements itself, and the policies of
    /// lossless switches, which keep the factors.
    #[test]
    fn exactly_the_base_policies_let_their_alpha_be_set() {
        let scenario = Scenario::default();
        for definition in catalogue() {
            let name = definition.info.name;
            let mut policy = PolicySpec::named(name).build(&scenario).unwrap();
            let expected = name
                .parse::<LowLevelPolicy>()
                .is_ok_and(|named| !named.is_default() && !named.is_lossless());
            assert_eq!(
                policy.lossless_thresholds().is_some(),
                name.starts_with("sonic") || name == "reverie"
            );
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
