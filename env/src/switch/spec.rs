//! Policies by name: what a user types, turned into a policy.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::policy::{
    AnyPolicy, CompleteSharing, DynamicThreshold, EnhancedDynamicThreshold,
    EnhancedDynamicThresholdConfig, StaticThreshold,
};
use crate::network::{SimError, Simulator};
use crate::scenario::{Scenario, suggestion};
use crate::traffic::Trace;

/// A policy and its parameters, written `name` or `name:key=value,key=value`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PolicySpec {
    /// Complete sharing.
    CompleteSharing,
    /// Complete sharing with a buffer that never fills: a reference, no switch.
    Unlimited,
    /// Static threshold.
    StaticThreshold,
    /// Dynamic Threshold.
    DynamicThreshold {
        /// Control factor.
        alpha: f64,
    },
    /// Enhanced Dynamic Threshold; absent parameters are derived from the scenario.
    EnhancedDynamicThreshold {
        /// Control factor of the controlled state.
        alpha: f64,
        /// C1.
        underload_dequeues: Option<u32>,
        /// C2.
        burst_enqueues: Option<u32>,
        /// T1, microseconds.
        controlled_us: Option<f64>,
        /// T2, microseconds.
        uncontrolled_us: Option<f64>,
    },
}

/// A parameter of a policy.
#[derive(Clone, Copy, Debug)]
pub struct ParameterInfo {
    /// Its key.
    pub name: &'static str,
    /// Its value where none is given.
    pub default: &'static str,
    /// What it means, with its unit.
    pub meaning: &'static str,
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
    /// What can be set.
    pub parameters: &'static [ParameterInfo],
}

const ALPHA: ParameterInfo = ParameterInfo {
    name: "alpha",
    default: "1",
    meaning: "control factor, above 0",
};

/// Every heuristic policy, in the order of listings. Subject to `Q + L <= B` all of them.
pub(super) const CATALOGUE: &[PolicyInfo] = &[
    PolicyInfo {
        name: "cs",
        summary: "complete sharing",
        rule: "accept whatever fits",
        source: "Kamoun and Kleinrock 1980",
        parameters: &[],
    },
    PolicyInfo {
        name: "st",
        summary: "static threshold (complete partitioning)",
        rule: "accept iff q_i + L <= B/N",
        source: "Kamoun and Kleinrock 1980",
        parameters: &[],
    },
    PolicyInfo {
        name: "dt",
        summary: "Dynamic Threshold",
        rule: "accept iff q_i < alpha (B - Q)",
        source: "Choudhury and Hahne, IEEE/ACM ToN 1998",
        parameters: &[ALPHA],
    },
    PolicyInfo {
        name: "edt",
        summary: "Enhanced Dynamic Threshold: lifts the threshold of a port with a micro-burst",
        rule: "controlled: accept iff q_i < alpha (B - Q); uncontrolled: iff q_i < B/U, U uncontrolled ports",
        source: "Shan, Jiang and Ren, INFOCOM 2015 and IEEE TPDS 2017",
        parameters: &[
            ALPHA,
            ParameterInfo {
                name: "c1",
                default: "3",
                meaning: "dequeues in a row that show an underloaded port",
            },
            ParameterInfo {
                name: "c2",
                default: "floor(alpha B / (1 + alpha N/2)^2) packets",
                meaning: "net enqueues that reveal a burst",
            },
            ParameterInfo {
                name: "t1_us",
                default: "T2 (1 + alpha N) / (1 + alpha N/2)^2",
                meaning: "restart of the counters while controlled, microseconds",
            },
            ParameterInfo {
                name: "t2_us",
                default: "10000 at 1 Gbit/s, in inverse proportion to the rate",
                meaning: "longest stay in the uncontrolled state, microseconds",
            },
        ],
    },
    PolicyInfo {
        name: "unlimited",
        summary: "reference line: complete sharing with a buffer that never fills",
        rule: "accept everything",
        source: "no switch can run it",
        parameters: &[],
    },
];

/// A policy that cannot be understood.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum PolicyParseError {
    /// No such policy.
    #[error("policy '{name}' is not known{}; `bufgym policies` lists them", suggestion(.name, &names()))]
    UnknownPolicy {
        /// As it was written.
        name: String,
    },
    /// The policy has no such parameter.
    #[error("policy {policy} has no parameter '{key}'{}; it has {}", suggestion(.key, &parameter_names(.policy)), listed(.policy))]
    UnknownParameter {
        /// The policy.
        policy: &'static str,
        /// As it was written.
        key: String,
    },
    /// A parameter's value does not fit.
    #[error("policy {policy}: {key}={value} is not {expected}")]
    Value {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        key: String,
        /// As it was written.
        value: String,
        /// What would be right.
        expected: &'static str,
    },
    /// A parameter without a value.
    #[error("policy {policy}: '{text}' is not of the form key=value")]
    Form {
        /// The policy.
        policy: &'static str,
        /// As it was written.
        text: String,
    },
}

fn names() -> Vec<&'static str> {
    CATALOGUE
        .iter()
        .map(|info| info.name)
        .chain(["ndt"])
        .collect()
}

fn parameter_names(policy: &str) -> Vec<&'static str> {
    CATALOGUE
        .iter()
        .filter(|info| info.name == policy)
        .flat_map(|info| info.parameters.iter().map(|parameter| parameter.name))
        .collect()
}

fn listed(policy: &str) -> String {
    let names = parameter_names(policy);
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

impl PolicySpec {
    /// Dynamic Threshold with α = 1, the baseline of every comparison.
    pub const BASELINE: PolicySpec = PolicySpec::DynamicThreshold { alpha: 1.0 };

    /// The name without parameters.
    pub fn name(&self) -> &'static str {
        match self {
            PolicySpec::CompleteSharing => "cs",
            PolicySpec::Unlimited => "unlimited",
            PolicySpec::StaticThreshold => "st",
            PolicySpec::DynamicThreshold { .. } => "dt",
            PolicySpec::EnhancedDynamicThreshold { .. } => "edt",
        }
    }

    fn default_of(name: &str) -> Option<PolicySpec> {
        Some(match name {
            "cs" => PolicySpec::CompleteSharing,
            "unlimited" => PolicySpec::Unlimited,
            "st" => PolicySpec::StaticThreshold,
            "dt" => PolicySpec::BASELINE,
            "edt" => PolicySpec::EnhancedDynamicThreshold {
                alpha: 1.0,
                underload_dequeues: None,
                burst_enqueues: None,
                controlled_us: None,
                uncontrolled_us: None,
            },
            _ => return None,
        })
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), PolicyParseError> {
        let policy = self.name();
        match (&mut *self, key) {
            (
                PolicySpec::DynamicThreshold { alpha }
                | PolicySpec::EnhancedDynamicThreshold { alpha, .. },
                "alpha",
            ) => *alpha = positive(policy, key, value)?,
            (
                PolicySpec::EnhancedDynamicThreshold {
                    underload_dequeues, ..
                },
                "c1",
            ) => {
                *underload_dequeues = Some(count(policy, key, value)?);
            }
            (PolicySpec::EnhancedDynamicThreshold { burst_enqueues, .. }, "c2") => {
                *burst_enqueues = Some(count(policy, key, value)?);
            }
            (PolicySpec::EnhancedDynamicThreshold { controlled_us, .. }, "t1_us") => {
                *controlled_us = Some(positive(policy, key, value)?);
            }
            (
                PolicySpec::EnhancedDynamicThreshold {
                    uncontrolled_us, ..
                },
                "t2_us",
            ) => {
                *uncontrolled_us = Some(positive(policy, key, value)?);
            }
            _ => {
                return Err(PolicyParseError::UnknownParameter {
                    policy,
                    key: key.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// The policy for a switch as `scenario` has it.
    pub fn build(&self, scenario: &Scenario) -> AnyPolicy {
        match *self {
            PolicySpec::CompleteSharing | PolicySpec::Unlimited => {
                AnyPolicy::CompleteSharing(CompleteSharing)
            }
            PolicySpec::StaticThreshold => AnyPolicy::StaticThreshold(StaticThreshold),
            PolicySpec::DynamicThreshold { alpha } => {
                AnyPolicy::DynamicThreshold(DynamicThreshold { alpha })
            }
            PolicySpec::EnhancedDynamicThreshold { .. } => {
                let config = self.enhanced_config(scenario);
                AnyPolicy::EnhancedDynamicThreshold(EnhancedDynamicThreshold::new(
                    config,
                    scenario.port_count(),
                ))
            }
        }
    }

    fn enhanced_config(&self, scenario: &Scenario) -> EnhancedDynamicThresholdConfig {
        let suggested = |alpha| {
            EnhancedDynamicThresholdConfig::suggested(
                alpha,
                scenario.buffer_bytes,
                scenario.port_count(),
                scenario.rate(),
            )
        };
        let &PolicySpec::EnhancedDynamicThreshold {
            alpha,
            underload_dequeues,
            burst_enqueues,
            controlled_us,
            uncontrolled_us,
        } = self
        else {
            return suggested(1.0);
        };
        let derived = suggested(alpha);
        let time = |us: f64| crate::units::Time::from_secs_f64(us * 1e-6);
        EnhancedDynamicThresholdConfig {
            alpha,
            underload_dequeues: underload_dequeues.unwrap_or(derived.underload_dequeues),
            burst_enqueues: burst_enqueues.unwrap_or(derived.burst_enqueues),
            controlled_period: controlled_us.map_or(derived.controlled_period, time),
            uncontrolled_period: uncontrolled_us.map_or(derived.uncontrolled_period, time),
        }
    }

    /// Size of the buffer under this policy, bytes: the scenario's, or without limit.
    pub fn capacity(&self, scenario: &Scenario) -> u64 {
        match self {
            PolicySpec::Unlimited => u64::MAX / 2,
            _ => scenario.buffer_bytes,
        }
    }

    /// A simulation of `trace` under this policy.
    ///
    /// # Errors
    /// When the scenario is inconsistent or the trace does not fit it.
    pub fn simulator(&self, scenario: &Scenario, trace: &Trace) -> Result<Simulator, SimError> {
        Simulator::with_capacity(
            scenario,
            trace,
            self.build(scenario),
            self.capacity(scenario),
        )
    }
}

fn positive(policy: &'static str, key: &str, value: &str) -> Result<f64, PolicyParseError> {
    value
        .parse()
        .ok()
        .filter(|v: &f64| v.is_finite() && *v > 0.0)
        .ok_or_else(|| PolicyParseError::Value {
            policy,
            key: key.to_owned(),
            value: value.to_owned(),
            expected: "a number above 0",
        })
}

fn count(policy: &'static str, key: &str, value: &str) -> Result<u32, PolicyParseError> {
    value
        .parse()
        .ok()
        .filter(|v: &u32| *v > 0)
        .ok_or_else(|| PolicyParseError::Value {
            policy,
            key: key.to_owned(),
            value: value.to_owned(),
            expected: "a whole number above 0",
        })
}

impl FromStr for PolicySpec {
    type Err = PolicyParseError;

    fn from_str(text: &str) -> Result<PolicySpec, PolicyParseError> {
        let (name, parameters) = match text.split_once(':') {
            Some((name, parameters)) => (name, Some(parameters)),
            None => (text, None),
        };
        let mut spec =
            PolicySpec::default_of(name).ok_or_else(|| PolicyParseError::UnknownPolicy {
                name: name.to_owned(),
            })?;
        for part in parameters
            .iter()
            .flat_map(|parameters| parameters.split(','))
        {
            let (key, value) = part.split_once('=').ok_or_else(|| PolicyParseError::Form {
                policy: spec.name(),
                text: part.to_owned(),
            })?;
            spec.set(key.trim(), value.trim())?;
        }
        Ok(spec)
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        let mut parameters = Vec::new();
        match *self {
            PolicySpec::DynamicThreshold { alpha } if alpha != 1.0 => {
                parameters.push(format!("alpha={alpha}"));
            }
            PolicySpec::EnhancedDynamicThreshold {
                alpha,
                underload_dequeues,
                burst_enqueues,
                controlled_us,
                uncontrolled_us,
            } => {
                parameters.extend((alpha != 1.0).then(|| format!("alpha={alpha}")));
                parameters.extend(underload_dequeues.map(|v| format!("c1={v}")));
                parameters.extend(burst_enqueues.map(|v| format!("c2={v}")));
                parameters.extend(controlled_us.map(|v| format!("t1_us={v}")));
                parameters.extend(uncontrolled_us.map(|v| format!("t2_us={v}")));
            }
            _ => {}
        }
        if !parameters.is_empty() {
            write!(f, ":{}", parameters.join(","))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for text in [
            "cs",
            "st",
            "dt",
            "dt:alpha=8",
            "edt",
            "edt:alpha=2,c1=4,t2_us=500",
            "unlimited",
        ] {
            assert_eq!(text.parse::<PolicySpec>().unwrap().to_string(), text);
        }
        assert_eq!("dt:alpha=1".parse(), Ok(PolicySpec::BASELINE));
    }

    #[test]
    fn every_listed_policy_and_parameter_exists() {
        for info in CATALOGUE {
            let mut spec: PolicySpec = info.name.parse().unwrap();
            assert_eq!(spec.name(), info.name);
            for parameter in info.parameters {
                spec.set(parameter.name, "7").unwrap();
            }
        }
    }

    #[test]
    fn mistakes_are_named_with_the_nearest_right_thing() {
        let message = |text: &str| text.parse::<PolicySpec>().unwrap_err().to_string();
        assert!(message("dd").contains("`dt`"), "{}", message("dd"));
        assert!(message("dt:alfa=1").contains("`alpha`"));
        assert!(message("dt:alpha=-1").contains("above 0"));
        assert!(message("dt:alpha").contains("key=value"));
        assert!(message("cs:alpha=1").contains("none"));
    }
}
