//! Policies as text: parsing them, and running the policy that a text names.

use std::fmt;
use std::str::FromStr;

use bufgym_util::parameters::{self, ParameterError};
use bufgym_util::rng;

use super::oracle::{drops_of_lqd, flipped};
use super::policy::{
    BiggestAverageDrop, BiggestPacketDrop, CompleteSharing, Credence, DynamicThreshold, FollowLqd,
    Harmonic, LargestWorkDrop, LongestQueueDrop, MaximalRatioDrop, MinimalTotalValueDrop, Policy,
    Ratio, Scripted, StaticThreshold,
};
use super::{
    Arrivals, Counts, Generator, Kind, NoObserver, Outcome, Packets, SlottedError, Switch, opt, run,
};

/// Name of the random stream that decides which predictions are inverted.
pub(crate) const ORACLE_STREAM: &str = "slotted oracle";

/// A policy of the slotted model and its parameters, written `name` or `name:key=value,key=value`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PolicySpec {
    /// Complete sharing.
    CompleteSharing,
    /// Complete partitioning.
    StaticThreshold,
    /// Dynamic Threshold.
    DynamicThreshold {
        /// Control factor.
        alpha: f64,
    },
    /// Harmonic.
    Harmonic,
    /// Longest Queue Drop.
    LongestQueueDrop,
    /// Biggest Packet Drop.
    BiggestPacketDrop,
    /// Biggest Average Drop.
    BiggestAverageDrop,
    /// Largest Work Drop.
    LargestWorkDrop {
        /// True for the flush of the analysis of Theorem 5.
        flush: bool,
    },
    /// Minimal Total Value Drop.
    MinimalTotalValueDrop,
    /// Maximal Ratio Drop.
    MaximalRatioDrop {
        /// Ratio that the policy uses.
        ratio: Ratio,
    },
    /// FollowLQD.
    FollowLqd,
    /// Credence with LQD's own losses as predictions.
    Credence {
        /// Probability that a prediction is inverted.
        flip: f64,
    },
    /// The exact offline optimum.
    Optimum,
    /// The schedule of the proof that constructs the arrivals.
    ScriptedOptimum,
}

impl PolicySpec {
    /// Every policy with its default parameters.
    pub const ALL: [PolicySpec; 14] = [
        PolicySpec::CompleteSharing,
        PolicySpec::StaticThreshold,
        PolicySpec::DynamicThreshold { alpha: 1.0 },
        PolicySpec::Harmonic,
        PolicySpec::LongestQueueDrop,
        PolicySpec::BiggestPacketDrop,
        PolicySpec::BiggestAverageDrop,
        PolicySpec::LargestWorkDrop { flush: false },
        PolicySpec::MinimalTotalValueDrop,
        PolicySpec::MaximalRatioDrop { ratio: Ratio::Mean },
        PolicySpec::FollowLqd,
        PolicySpec::Credence { flip: 0.0 },
        PolicySpec::Optimum,
        PolicySpec::ScriptedOptimum,
    ];

    /// Returns the names of all policies.
    pub fn names() -> Vec<&'static str> {
        PolicySpec::ALL.iter().map(PolicySpec::name).collect()
    }

    /// Returns the name without parameters.
    pub fn name(&self) -> &'static str {
        match self {
            PolicySpec::CompleteSharing => "cs",
            PolicySpec::StaticThreshold => "st",
            PolicySpec::DynamicThreshold { .. } => "dt",
            PolicySpec::Harmonic => "harmonic",
            PolicySpec::LongestQueueDrop => "lqd",
            PolicySpec::BiggestPacketDrop => "bpd",
            PolicySpec::BiggestAverageDrop => "bad",
            PolicySpec::LargestWorkDrop { .. } => "lwd",
            PolicySpec::MinimalTotalValueDrop => "mtvd",
            PolicySpec::MaximalRatioDrop { .. } => "mrd",
            PolicySpec::FollowLqd => "followlqd",
            PolicySpec::Credence { .. } => "credence",
            PolicySpec::Optimum => "opt",
            PolicySpec::ScriptedOptimum => "scripted-opt",
        }
    }

    /// Returns the keys of the policy's parameters.
    fn parameters(&self) -> &'static [&'static str] {
        match self {
            PolicySpec::DynamicThreshold { .. } => &["alpha"],
            PolicySpec::LargestWorkDrop { .. } => &["flush"],
            PolicySpec::MaximalRatioDrop { .. } => &["ratio"],
            PolicySpec::Credence { .. } => &["oracle", "flip"],
            _ => &[],
        }
    }

    fn set(&mut self, key: &str, text: &str) -> Result<(), ParameterError> {
        let (owner, known) = (self.name(), self.parameters());
        let number = text.parse().ok().filter(|value: &f64| value.is_finite());
        let (accepted, expected) = match (self, key) {
            (PolicySpec::DynamicThreshold { alpha }, "alpha") => {
                let positive = number.filter(|value| *value > 0.0);
                (assign(alpha, positive), "a number above 0")
            }
            (PolicySpec::LargestWorkDrop { flush }, "flush") => {
                (assign(flush, text.parse().ok()), "true or false")
            }
            (PolicySpec::MaximalRatioDrop { ratio }, "ratio") => {
                let named = [("mean", Ratio::Mean), ("total", Ratio::Total)]
                    .into_iter()
                    .find_map(|(name, ratio)| (name == text).then_some(ratio));
                (assign(ratio, named), "mean or total")
            }
            (PolicySpec::Credence { .. }, "oracle") => (
                text == "perfect",
                "perfect; the slotted model has no other oracle, a forest needs features that only the packet simulator has",
            ),
            (PolicySpec::Credence { flip }, "flip") => {
                let probability = number.filter(|value| (0.0..=1.0).contains(value));
                (assign(flip, probability), "a probability from 0 to 1")
            }
            _ => {
                return Err(ParameterError::Unknown {
                    owner,
                    key: key.to_owned(),
                    known: known.to_vec(),
                });
            }
        };
        if accepted {
            return Ok(());
        }
        Err(ParameterError::Value {
            owner,
            key: key.to_owned(),
            value: text.to_owned(),
            expected: expected.to_owned(),
        })
    }

    /// Runs the policy on arrivals until every queue is empty. With `until_last_round` the run
    /// stops at the end of the last round of generated arrivals. `seed` decides which predictions
    /// of Credence are inverted.
    ///
    /// # Errors
    /// Packets for which the policy is not defined; arrivals for more ports than the switch has; an
    /// instance that is too large for the search of the optimum; no schedule of a proof for
    /// `scripted-opt`; no rounds for `until_last_round`.
    pub fn run(
        &self,
        switch: &Switch,
        arrivals: &Arrivals,
        seed: u64,
        until_last_round: bool,
    ) -> Result<Outcome, SlottedError> {
        arrivals.check_ports(switch)?;
        let end = match (until_last_round, arrivals.rounds_end()) {
            (false, _) => None,
            (true, Some(end)) => Some(end),
            (true, None) => return Err(SlottedError::NoRounds),
        };
        let case = Case {
            switch,
            arrivals,
            end,
        };
        match *self {
            PolicySpec::CompleteSharing => case.run(CompleteSharing),
            PolicySpec::StaticThreshold => case.run(StaticThreshold),
            PolicySpec::DynamicThreshold { alpha } => case.run(DynamicThreshold { alpha }),
            PolicySpec::Harmonic => case.run(Harmonic::new(switch)),
            PolicySpec::LongestQueueDrop => case.run(LongestQueueDrop),
            PolicySpec::BiggestPacketDrop => case.run(BiggestPacketDrop),
            PolicySpec::BiggestAverageDrop => case.run(BiggestAverageDrop),
            PolicySpec::LargestWorkDrop { flush: false } => case.run(LargestWorkDrop::default()),
            PolicySpec::LargestWorkDrop { flush: true } => case.run(LargestWorkDrop::flushing()),
            PolicySpec::MinimalTotalValueDrop => case.run(MinimalTotalValueDrop),
            PolicySpec::MaximalRatioDrop { ratio } => case.run(MaximalRatioDrop { ratio }),
            PolicySpec::FollowLqd => case.run(FollowLqd::new(switch)),
            PolicySpec::Credence { flip } => {
                let drops = drops_of_lqd(switch, arrivals.packets())?;
                let drops = flipped(&drops, flip, rng::stream(seed, ORACLE_STREAM, 0));
                case.run(Credence::new(switch, drops))
            }
            PolicySpec::Optimum => opt::optimum(switch, arrivals, end),
            PolicySpec::ScriptedOptimum => {
                let accepted = arrivals.script().ok_or(SlottedError::NoScript {
                    generators: Generator::SCRIPTED,
                })?;
                case.run(Scripted { accepted })
            }
        }
    }
}

/// Stores a value if there is one. Returns true if there was one.
fn assign<T>(field: &mut T, value: Option<T>) -> bool {
    value.map(|value| *field = value).is_some()
}

struct Case<'a> {
    switch: &'a Switch,
    arrivals: &'a Arrivals,
    end: Option<u64>,
}

impl Case<'_> {
    fn run(&self, mut policy: impl Policy) -> Result<Outcome, SlottedError> {
        let (packets, end) = (self.arrivals.packets(), self.end);
        match self.arrivals.kind() {
            Kind::Unit => {
                let mut queues = Counts::new(self.switch);
                run(&mut queues, &mut policy, packets, end, &mut NoObserver)
            }
            kind => {
                let mut queues = Packets::new(self.switch, kind);
                run(&mut queues, &mut policy, packets, end, &mut NoObserver)
            }
        }
    }
}

impl FromStr for PolicySpec {
    type Err = SlottedError;

    fn from_str(text: &str) -> Result<PolicySpec, SlottedError> {
        let (name, parameters) = parameters::split(text);
        let mut spec = PolicySpec::ALL
            .into_iter()
            .find(|policy| policy.name() == name)
            .ok_or_else(|| SlottedError::UnknownPolicy {
                name: name.to_owned(),
                known: PolicySpec::names(),
            })?;
        for parameter in parameters {
            let (key, value) = parameter.map_err(|error| error.of(spec.name()))?;
            spec.set(key, value)?;
        }
        Ok(spec)
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if PolicySpec::ALL.contains(self) {
            return Ok(());
        }
        match self {
            PolicySpec::DynamicThreshold { alpha } => write!(f, ":alpha={alpha}"),
            PolicySpec::LargestWorkDrop { flush } => write!(f, ":flush={flush}"),
            PolicySpec::MaximalRatioDrop { .. } => f.write_str(":ratio=total"),
            PolicySpec::Credence { flip } => write!(f, ":flip={flip}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let with_parameters = [
            "dt:alpha=8",
            "lwd:flush=true",
            "mrd:ratio=total",
            "credence:flip=0.3",
        ];
        for text in PolicySpec::names().into_iter().chain(with_parameters) {
            assert_eq!(text.parse::<PolicySpec>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn mistakes_are_named_with_the_nearest_right_thing() {
        let message = |text: &str| text.parse::<PolicySpec>().unwrap_err().to_string();
        assert!(message("lqdd").contains("`lqd`"), "{}", message("lqdd"));
        assert!(message("dt:alfa=1").contains("`alpha`"));
        assert!(message("dt:alpha=0").contains("above 0"));
        assert!(message("cs:alpha=1").contains("none"));
        assert!(message("credence:flip=1.5").contains("from 0 to 1"));
        assert!(message("credence:oracle=forest").contains("perfect"));
        assert!(message("mrd:ratio").contains("key=value"));
    }
}
