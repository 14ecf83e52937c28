//! The objective: weights of the reward terms.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use bufgym_util::input::{excerpt, suggestion};

/// Weights of the reward terms; written `fct`, or `fct=1,loss=0.1`.
///
/// | term | reward of a port and interval, before scaling | source |
/// |---|---|---|
/// | `fct` | minus the discounted time its flows are active | paper, §III |
/// | `loss` | minus its lost data packets | paper, §III |
/// | `throughput` | payload bytes delivered to applications | |
/// | `delay` | minus ∫ q_i dt | |
/// | `fairness` | minus the growth of its share of the variance of port slowdowns; with one switch | paper, §VI-D |
/// | `slowdown` | minus the discounted time its flows are active, each over its base time | |
/// | `incast` | the same of the answers to queries alone | |
/// | `paused` | minus the time for which it has paused its neighbour, see [lossless packets](super::ActionSet::AlphaIngress) | |
///
/// `pfc` is `incast=1,paused=1`, and `tails` is `slowdown=1,incast=1`.
///
/// In a network of several switches a flow counts at every port of its path, in equal parts.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Objective {
    /// Flow completion time.
    pub fct: f64,
    /// Lost data packets.
    pub loss: f64,
    /// Delivered bytes.
    pub throughput: f64,
    /// Queued bytes over time.
    pub delay: f64,
    /// Variance of port slowdowns.
    pub fairness: f64,
    /// Flow completion time over base time.
    pub slowdown: f64,
    /// Flow completion time over base time of the answers to queries.
    pub incast: f64,
    /// Time for which neighbours are paused.
    pub paused: f64,
}

/// The reason why a text is not an objective.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ObjectiveError {
    /// No such term.
    #[error("objective '{}' is not known{}; use fct, loss, throughput, delay, fairness, slowdown, incast, paused, pfc or tails, or weights such as fct=1,loss=0.1", excerpt(.name), suggestion(.name, &NAMES))]
    Unknown {
        /// The name given.
        name: String,
    },
    /// A weight is negative or not a finite number.
    #[error("objective '{}': weight '{}' is not a number of at least 0", excerpt(.term), excerpt(.weight))]
    Weight {
        /// The term.
        term: String,
        /// The weight given.
        weight: String,
    },
    /// Every weight is zero.
    #[error("objective '{}' has no positive weight; use for example fct=1", excerpt(.text))]
    Empty {
        /// The text given.
        text: String,
    },
}

/// Names of the terms, in the order of their weights, followed by the names of combined objectives.
const NAMES: [&str; 10] = [
    "fct",
    "loss",
    "throughput",
    "delay",
    "fairness",
    "slowdown",
    "incast",
    "paused",
    "pfc",
    "tails",
];

/// Flow time's weight in the objective `delay`: an empty buffer is no use if flows do not finish.
const DELAY_FLOW_WEIGHT: f64 = 0.2;

impl Objective {
    /// All weights zero.
    pub const NONE: Objective = Objective {
        fct: 0.0,
        loss: 0.0,
        throughput: 0.0,
        delay: 0.0,
        fairness: 0.0,
        slowdown: 0.0,
        incast: 0.0,
        paused: 0.0,
    };

    /// Mean flow completion time, the paper's main objective.
    pub const FCT: Objective = Objective {
        fct: 1.0,
        ..Objective::NONE
    };

    /// Returns true if the slowdowns of flows enter the objective.
    pub fn measures_slowdowns(&self) -> bool {
        self.slowdown > 0.0 || self.incast > 0.0
    }

    /// Returns true if the duration of flows enters the objective.
    pub fn measures_time(&self) -> bool {
        self.fct > 0.0 || self.measures_slowdowns()
    }

    fn named(name: &str) -> Option<Objective> {
        let none = Objective::NONE;
        Some(match name {
            "fct" => Objective::FCT,
            "loss" => Objective { loss: 1.0, ..none },
            "throughput" => Objective {
                throughput: 1.0,
                ..none
            },
            "delay" => Objective {
                delay: 1.0,
                fct: DELAY_FLOW_WEIGHT,
                ..none
            },
            "fairness" => Objective {
                fct: 1.0,
                fairness: 1.0,
                ..none
            },
            "slowdown" => Objective {
                slowdown: 1.0,
                ..none
            },
            "incast" => Objective {
                incast: 1.0,
                ..none
            },
            "paused" => Objective {
                paused: 1.0,
                ..none
            },
            "pfc" => Objective {
                incast: 1.0,
                paused: 1.0,
                ..none
            },
            "tails" => Objective {
                slowdown: 1.0,
                incast: 1.0,
                ..none
            },
            _ => return None,
        })
    }

    fn weights(&self) -> [f64; 8] {
        [
            self.fct,
            self.loss,
            self.throughput,
            self.delay,
            self.fairness,
            self.slowdown,
            self.incast,
            self.paused,
        ]
    }

    fn set(&mut self, term: &str, weight: f64) -> bool {
        let slot = match term {
            "fct" => &mut self.fct,
            "loss" => &mut self.loss,
            "throughput" => &mut self.throughput,
            "delay" => &mut self.delay,
            "fairness" => &mut self.fairness,
            "slowdown" => &mut self.slowdown,
            "incast" => &mut self.incast,
            "paused" => &mut self.paused,
            _ => return false,
        };
        *slot = weight;
        true
    }
}

impl Default for Objective {
    fn default() -> Self {
        Objective::FCT
    }
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Objective, ObjectiveError> {
        if let Some(objective) = Objective::named(text.trim()) {
            return Ok(objective);
        }
        let mut objective = Objective::NONE;
        for part in text.split(',') {
            let Some((term, weight)) = part.split_once('=') else {
                return Err(ObjectiveError::Unknown {
                    name: part.trim().to_owned(),
                });
            };
            let (term, weight) = (term.trim(), weight.trim());
            let value = weight
                .parse::<f64>()
                .ok()
                .filter(|w| w.is_finite() && *w >= 0.0);
            let Some(value) = value else {
                return Err(ObjectiveError::Weight {
                    term: term.to_owned(),
                    weight: weight.to_owned(),
                });
            };
            if !objective.set(term, value) {
                return Err(ObjectiveError::Unknown {
                    name: term.to_owned(),
                });
            }
        }
        if objective == Objective::NONE {
            return Err(ObjectiveError::Empty {
                text: text.to_owned(),
            });
        }
        Ok(objective)
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = NAMES
            .iter()
            .find(|name| Objective::named(name) == Some(*self))
        {
            return f.write_str(name);
        }
        let mut separator = "";
        for (term, weight) in NAMES.iter().zip(self.weights()).filter(|(_, w)| *w != 0.0) {
            write!(f, "{separator}{term}={weight}")?;
            separator = ",";
        }
        Ok(())
    }
}

impl TryFrom<String> for Objective {
    type Error = ObjectiveError;
    fn try_from(text: String) -> Result<Objective, ObjectiveError> {
        text.parse()
    }
}

impl From<Objective> for String {
    fn from(objective: Objective) -> String {
        objective.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_weights_round_trip() {
        for text in [
            "fct",
            "loss",
            "throughput",
            "delay",
            "fairness",
            "slowdown",
            "fct=1,loss=0.1",
            "fct=0.5,slowdown=1",
        ] {
            let objective: Objective = text.parse().unwrap();
            assert_eq!(objective.to_string(), text);
        }
        assert_eq!("fct=1".parse(), Ok(Objective::FCT));
    }

    #[test]
    fn mistakes_are_named() {
        let message = |text: &str| text.parse::<Objective>().unwrap_err().to_string();
        assert!(message("fcd").contains("fct"));
        assert!(message("fct=-1").contains("at least 0"));
        assert!(message("fct=nan").contains("nan"));
        assert!(message("fct=0").contains("no positive weight"));
        assert!(message("fct=1,speed=2").contains("speed"));
    }
}
