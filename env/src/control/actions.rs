//! What a decision sets on every port.

use std::fmt;
use std::str::FromStr;

use bufgym_sim::input::excerpt;
use bufgym_sim::switch::aqm::AqmSpec;
use bufgym_sim::switch::aqm::early::EARLY_OFF;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{ALPHAS, BasePolicy, INITIAL_LEVEL};

/// What a decision sets on every port: one number of [-1, 1] for each output, quantised to eight levels
/// by [`action_level`](super::action_level).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ActionSet {
    /// The control factor α, as in the paper: `alpha`.
    #[default]
    Alpha,
    /// α, then the level of [early drop](bufgym_sim::switch::aqm::early): `alpha,early`.
    AlphaEarly,
}

/// The largest number of outputs per port.
pub const MAX_OUTPUTS: usize = 2;

/// A text that names no action set.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("actions '{}' are not known; there are alpha and alpha,early", excerpt(.0))]
pub struct UnknownActionSet(String);

impl ActionSet {
    /// All action sets.
    pub const ALL: [ActionSet; 2] = [ActionSet::Alpha, ActionSet::AlphaEarly];

    /// What decisions over this heuristic set.
    pub fn of(low_level: &BasePolicy) -> ActionSet {
        match low_level.drops_early() {
            true => ActionSet::AlphaEarly,
            false => ActionSet::Alpha,
        }
    }

    /// The heuristic with its early drop left open to decisions or not: with `+early` behind it, or
    /// without an early drop that is open.
    ///
    /// # Errors
    /// When decisions are to set early drop and other queue management stands there.
    pub fn over(self, low_level: &BasePolicy) -> Result<BasePolicy, TakenByAqm> {
        let aqm = low_level.policy().aqm();
        match (self, aqm) {
            (ActionSet::AlphaEarly, None) => Ok(low_level.managed_by(Some(AqmSpec::early()))),
            (ActionSet::AlphaEarly, Some(aqm)) if !aqm.is_open() => Err(TakenByAqm {
                low_level: low_level.to_string(),
            }),
            (ActionSet::Alpha, Some(aqm)) if aqm.is_open() => Ok(low_level.managed_by(None)),
            _ => Ok(low_level.clone()),
        }
    }

    /// Outputs per port.
    pub fn outputs(self) -> usize {
        match self {
            ActionSet::Alpha => 1,
            ActionSet::AlphaEarly => 2,
        }
    }

    /// Whether decisions set early drop.
    pub fn drops_early(self) -> bool {
        self == ActionSet::AlphaEarly
    }

    /// The levels in force before the first decision, by output: α = 1 and no early drop.
    pub fn initial(self) -> &'static [u8] {
        &[INITIAL_LEVEL, EARLY_OFF][..self.outputs()]
    }

    /// Its name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ActionSet::Alpha => "alpha",
            ActionSet::AlphaEarly => "alpha,early",
        }
    }
}

/// Decisions are to set early drop where other queue management stands.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "low level {low_level}: the actions alpha,early put early drop in the place of queue management; leave out what stands behind the +"
)]
pub struct TakenByAqm {
    low_level: String,
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
            let low_level: BasePolicy = low_level.parse().unwrap();
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
        ] {
            assert_eq!(over(set, low_level).unwrap(), expected);
        }
        for taken in ["dt+red", "dt+early:gap=64"] {
            let error = over(ActionSet::AlphaEarly, taken).unwrap_err().to_string();
            assert!(error.contains(taken), "{error}");
        }
        let error = "early".parse::<ActionSet>().unwrap_err().to_string();
        assert!(
            error.contains("'early'") && error.contains("alpha,early"),
            "{error}"
        );
    }
}
