//! The outputs of a decision on every port.

use std::fmt;
use std::str::FromStr;

use bufgym_sim::switch::aqm::AqmSpec;
use bufgym_sim::switch::aqm::early::EARLY_OFF;
use bufgym_util::input::excerpt;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::observation::{FEATURE_NAMES, FEATURES, INGRESS_FEATURE_NAMES};
use super::{ALPHAS, INITIAL_LEVEL, LowLevelPolicy};

/// The outputs of a decision on every port: one number of [-1, 1] for each output, quantised to eight levels by
/// [`action_level`](super::action_level).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ActionSet {
    /// The control factor α, as in the paper: `alpha`.
    #[default]
    Alpha,
    /// α, then the level of [early drop](bufgym_sim::switch::aqm::early): `alpha,early`.
    AlphaEarly,
    /// Where packets are lossless: α of the egress queues of lossy packets, then that of the ingress queues
    /// of lossless ones: `alpha,ingress`.
    AlphaIngress,
}

/// The largest number of outputs per port.
pub const MAX_OUTPUTS: usize = 2;

/// A text that names no action set.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("actions '{}' are not known; there are alpha, alpha,early and alpha,ingress", excerpt(.0))]
pub struct UnknownActionSet(String);

impl ActionSet {
    /// All action sets.
    pub const ALL: [ActionSet; 3] = [
        ActionSet::Alpha,
        ActionSet::AlphaEarly,
        ActionSet::AlphaIngress,
    ];

    /// Returns the outputs of decisions over this heuristic.
    pub fn of(low_level: &LowLevelPolicy) -> ActionSet {
        match (low_level.is_lossless(), low_level.drops_early()) {
            (true, _) => ActionSet::AlphaIngress,
            (false, true) => ActionSet::AlphaEarly,
            (false, false) => ActionSet::Alpha,
        }
    }

    /// Returns the heuristic for these actions: with `+early` if decisions set early drop, else without an early drop
    /// that is left open to decisions.
    ///
    /// # Errors
    /// When decisions are to set early drop but the heuristic has other queue management, and when they are to set an
    /// output that the heuristic does not have.
    pub fn over(self, low_level: &LowLevelPolicy) -> Result<LowLevelPolicy, Unfit> {
        let aqm = low_level.policy().aqm();
        if low_level.is_lossless() != (self == ActionSet::AlphaIngress) {
            return Err(Unfit::Ingress {
                low_level: low_level.to_string(),
                actions: self,
                only: ActionSet::of(low_level),
            });
        }
        match (self, aqm) {
            (ActionSet::AlphaEarly, None) => Ok(low_level.with_aqm(Some(AqmSpec::early()))),
            (ActionSet::AlphaEarly, Some(aqm)) if !aqm.is_open() => Err(Unfit::TakenByAqm {
                low_level: low_level.to_string(),
            }),
            (ActionSet::Alpha, Some(aqm)) if aqm.is_open() => Ok(low_level.with_aqm(None)),
            _ => Ok(low_level.clone()),
        }
    }

    /// Outputs per port.
    pub fn outputs(self) -> usize {
        match self {
            ActionSet::Alpha => 1,
            ActionSet::AlphaEarly | ActionSet::AlphaIngress => 2,
        }
    }

    /// Returns true if decisions set early drop.
    pub fn drops_early(self) -> bool {
        self == ActionSet::AlphaEarly
    }

    /// Returns true if decisions set the control factors of ingress queues.
    pub fn sets_ingress(self) -> bool {
        self == ActionSet::AlphaIngress
    }

    /// The levels in force before the first decision, by output: α = 1 and no early drop.
    pub fn initial(self) -> &'static [u8] {
        match self {
            ActionSet::Alpha => &[INITIAL_LEVEL],
            ActionSet::AlphaEarly => &[INITIAL_LEVEL, EARLY_OFF],
            ActionSet::AlphaIngress => &[INITIAL_LEVEL; 2],
        }
    }

    /// Returns the names of the features that are observed of every port at a step, with their scales.
    pub fn feature_names(self) -> &'static [&'static str; FEATURES] {
        match self {
            ActionSet::AlphaIngress => &INGRESS_FEATURE_NAMES,
            ActionSet::Alpha | ActionSet::AlphaEarly => &FEATURE_NAMES,
        }
    }

    /// Returns the name of the action set in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ActionSet::Alpha => "alpha",
            ActionSet::AlphaEarly => "alpha,early",
            ActionSet::AlphaIngress => "alpha,ingress",
        }
    }
}

/// The reason why decisions over a heuristic cannot set the requested outputs.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unfit {
    /// Early drop is to be set, but the heuristic has other queue management.
    #[error(
        "low level {low_level}: the actions alpha,early put early drop in the place of queue management; leave out what stands behind the +"
    )]
    TakenByAqm {
        /// The heuristic.
        low_level: String,
    },
    /// Only memory management has control factors of ingress queues, and it has no other outputs.
    #[error(
        "low level {low_level}: decisions over it set {only}, not {actions}; leave out the actions, or choose another low level"
    )]
    Ingress {
        /// The heuristic.
        low_level: String,
        /// Requested outputs.
        actions: ActionSet,
        /// Outputs that decisions over the heuristic can set.
        only: ActionSet,
    },
}

/// Number of levels of every output.
pub const LEVELS: usize = ALPHAS.len();

impl fmt::Display for ActionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ActionSet {
    type Err = UnknownActionSet;

    fn from_str(text: &str) -> Result<ActionSet, UnknownActionSet> {
        let named = ActionSet::ALL.into_iter().find(|set| set.name() == text);
        named.ok_or_else(|| UnknownActionSet(text.to_owned()))
    }
}

impl Serialize for ActionSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for ActionSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ActionSet, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for set in ActionSet::ALL {
            assert_eq!(set.to_string().parse(), Ok(set));
            assert_eq!(set.initial().len(), set.outputs());
            assert!(set.outputs() <= MAX_OUTPUTS);
            let json = serde_json::to_string(&set).unwrap();
            assert_eq!(serde_json::from_str::<ActionSet>(&json).unwrap(), set);
        }
        let over = |set: ActionSet, low_level: &str| {
            let low_level: LowLevelPolicy = low_level.parse().unwrap();
            set.over(&low_level).map(|found| found.to_string())
        };
        for (set, low_level, expected) in [
            (ActionSet::AlphaEarly, "dt", "dt+early"),
            (
                ActionSet::AlphaEarly,
                "fab+early:min_bytes=9",
                "fab+early:min_bytes=9",
            ),
            (ActionSet::Alpha, "fab+early", "fab"),
            (ActionSet::Alpha, "dt+red", "dt+red"),
            (ActionSet::Alpha, "dt+early:gap=64", "dt+early:gap=64"),
            (
                ActionSet::AlphaIngress,
                "reverie:gamma=0.9",
                "reverie:gamma=0.9",
            ),
        ] {
            assert_eq!(over(set, low_level).unwrap(), expected);
        }
        for taken in ["dt+red", "dt+early:gap=64"] {
            let error = over(ActionSet::AlphaEarly, taken).unwrap_err().to_string();
            assert!(error.contains(taken), "{error}");
        }
        for (set, low_level) in [
            (ActionSet::Alpha, "reverie"),
            (ActionSet::AlphaEarly, "sonic"),
            (ActionSet::AlphaIngress, "dt"),
        ] {
            let error = over(set, low_level).unwrap_err().to_string();
            assert!(
                error.contains(low_level) && error.contains(set.name()),
                "{error}"
            );
        }
        let error = "early".parse::<ActionSet>().unwrap_err().to_string();
        assert!(
            error.contains("'early'") && error.contains("alpha,early"),
            "{error}"
        );
    }
}
