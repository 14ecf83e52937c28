//! Policies by name: what a user types, turned into a run.

use std::fmt;
use std::str::FromStr;

use super::policy::{
    BiggestAverageDrop, BiggestPacketDrop, CompleteSharing, Credence, DynamicThreshold, FollowLqd,
    Harmonic, LargestWorkDrop, LongestQueueDrop, MaximalRatioDrop, MinimalTotalValueDrop, Policy,
    Ratio, Scripted, StaticThreshold, drops_of_lqd, flipped,
};
use super::{
    Arrivals, Counts, Kind, NoObserver, Outcome, Packets, PolicyError, SlottedError, Switch, opt,
    run,
};
use bufgym_sim::rng;

/// The random stream by which predictions are inverted.
pub const ORACLE_STREAM: &str = "slotted oracle";

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
        /// With the flush of the analysis of Theorem 5.
        flush: bool,
    },
    /// Minimal Total Value Drop.
    MinimalTotalValueDrop,
    /// Maximal Ratio Drop.
    MaximalRatioDrop {
        /// Which ratio.
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
    /// The schedule of the proof that the arrivals are from.
    ScriptedOptimum,
}

impl PolicySpec {
    /// The names of all policies.
    pub const NAMES: [&'static str; 14] = [
        "cs",
        "st",
        "dt",
        "harmonic",
        "lqd",
        "bpd",
        "bad",
        "lwd",
        "mtvd",
        "mrd",
        "followlqd",
        "credence",
        "opt",
        "scripted-opt",
    ];

    /// The name without parameters.
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

    fn default_of(name: &str) -> Option<PolicySpec> {
        Some(match name {
            "cs" => PolicySpec::CompleteSharing,
            "st" => PolicySpec::StaticThreshold,
            "dt" => PolicySpec::DynamicThreshold { alpha: 1.0 },
            "harmonic" => PolicySpec::Harmonic,
            "lqd" => PolicySpec::LongestQueueDrop,
            "bpd" => PolicySpec::BiggestPacketDrop,
            "bad" => PolicySpec::BiggestAverageDrop,
            "lwd" => PolicySpec::LargestWorkDrop { flush: false },
            "mtvd" => PolicySpec::MinimalTotalValueDrop,
            "mrd" => PolicySpec::MaximalRatioDrop { ratio: Ratio::Mean },
            "followlqd" => PolicySpec::FollowLqd,
            "credence" => PolicySpec::Credence { flip: 0.0 },
            "opt" => PolicySpec::Optimum,
            "scripted-opt" => PolicySpec::ScriptedOptimum,
            _ => return None,
        })
    }

    /// The keys of its parameters.
    fn parameters(&self) -> &'static [&'static str] {
        match self {
            PolicySpec::DynamicThreshold { .. } => &["alpha"],
            PolicySpec::LargestWorkDrop { .. } => &["flush"],
            PolicySpec::MaximalRatioDrop { .. } => &["ratio"],
            PolicySpec::Credence { .. } => &["oracle", "flip"],
            _ => &[],
        }
    }

    fn set(&mut self, key: &str, text: &str) -> Result<(), PolicyError> {
        let (policy, known) = (self.name(), self.parameters());
        let value = |found: Option<f64>, expected| {
            found.ok_or_else(|| PolicyError::Value {
                policy,
                key: key.to_owned(),
                value: text.to_owned(),
                expected,
            })
        };
        let number = || text.parse().ok().filter(|v: &f64| v.is_finite());
        let word = |words: [&str; 2]| {
            let place = words.iter().position(|word| *word == text);
            place.map(|place| place as f64)
        };
        match (self, key) {
            (PolicySpec::DynamicThreshold { alpha }, "alpha") => {
                *alpha = value(number().filter(|v| *v > 0.0), "a number above 0")?;
            }
            (PolicySpec::LargestWorkDrop { flush }, "flush") => {
                *flush = value(word(["false", "true"]), "true or false")? > 0.0;
            }
            (PolicySpec::MaximalRatioDrop { ratio }, "ratio") => {
                let total = value(word(["mean", "total"]), "mean or total")? > 0.0;
                *ratio = if total { Ratio::Total } else { Ratio::Mean };
            }
            (PolicySpec::Credence { .. }, "oracle") => {
                let expected = "perfect; the slotted model has no other oracle, a forest needs features that only the packet simulator has";
                value((text == "perfect").then_some(0.0), expected)?;
            }
            (PolicySpec::Credence { flip }, "flip") => {
                let probability = number().filter(|v| (0.0..=1.0).contains(v));
                *flip = value(probability, "a probability from 0 to 1")?;
            }
            _ => {
                return Err(PolicyError::UnknownParameter {
                    policy,
                    key: key.to_owned(),
                    known,
                });
            }
        }
        Ok(())
    }

    /// Runs the policy on arrivals, until every queue is empty or, with `until_last_round`, to the
    /// end of the last round of generated arrivals. `seed` decides which predictions of Credence
    /// are inverted.
    ///
    /// # Errors
    /// Packets for which the policy is not defined, arrivals for more ports than the switch has,
    /// an optimum that is too large, no schedule of a proof, no rounds.
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
                let accepted = arrivals.script().ok_or(SlottedError::NoScript)?;
                case.run(Scripted { accepted })
            }
        }
    }
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
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<PolicySpec, PolicyError> {
        let (name, parameters) = match text.split_once(':') {
            Some((name, parameters)) => (name, Some(parameters)),
            None => (text, None),
        };
        let mut spec = PolicySpec::default_of(name).ok_or_else(|| PolicyError::Unknown {
            name: name.to_owned(),
        })?;
        for part in parameters.iter().flat_map(|list| list.split(',')) {
            let (key, value) = part.split_once('=').ok_or_else(|| PolicyError::Form {
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
        match *self {
            PolicySpec::DynamicThreshold { alpha } if alpha != 1.0 => write!(f, ":alpha={alpha}"),
            PolicySpec::LargestWorkDrop { flush: true } => f.write_str(":flush=true"),
            PolicySpec::MaximalRatioDrop {
                ratio: Ratio::Total,
            } => f.write_str(":ratio=total"),
            PolicySpec::Credence { flip } if flip != 0.0 => write!(f, ":flip={flip}"),
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
        for text in PolicySpec::NAMES.into_iter().chain(with_parameters) {
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
