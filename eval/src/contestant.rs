//! A policy that takes part in a comparison.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use bufgym_env::control::{ControlOptions, LowLevel, RunOptions, run_controlled};
use bufgym_env::network::{Outcome, SimError};
use bufgym_env::scenario::Scenario;
use bufgym_env::switch::{Policy as _, PolicyParseError, PolicySpec};
use bufgym_env::traffic::Trace;
use bufgym_env::units::Time;
use bufgym_models::checkpoint::{self, CheckpointError, Manifest};
use bufgym_models::{ActorWeights, FastActor};

use crate::data::{BASELINE, Entry, Role, UNLIMITED};
use crate::format;

/// What a learned policy is called in policy strings.
const LEARNED: &str = "ndt";

/// A text that names no policy, or a checkpoint that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ContestantError {
    /// No such rule, or not with these parameters.
    #[error(transparent)]
    Rule(#[from] PolicyParseError),
    /// `ndt` without a folder.
    #[error("policy `{0}` needs a checkpoint folder, as in ndt:checkpoints/ndt-fct")]
    NoFolder(String),
    /// The folder holds no usable checkpoint.
    #[error("policy `{policy}`: {source}")]
    Checkpoint {
        /// The policy string.
        policy: String,
        /// What is wrong with it.
        source: CheckpointError,
    },
}

/// A named policy, ready to run any trace.
#[derive(Clone, Debug)]
pub struct Contestant {
    name: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Rule(PolicySpec),
    Tuned(PolicySpec),
    Learned {
        actor: Box<FastActor>,
        low_level: LowLevel,
        origin: String,
    },
}

impl Contestant {
    /// A fixed rule.
    pub fn rule(spec: PolicySpec) -> Contestant {
        Contestant {
            name: spec.to_string(),
            kind: Kind::Rule(spec),
        }
    }

    /// A rule with parameters that were tuned on training traces.
    pub fn tuned(spec: PolicySpec) -> Contestant {
        Contestant {
            name: spec.to_string(),
            kind: Kind::Tuned(spec),
        }
    }

    /// A network that decides by its mean, over Dynamic Threshold. `name` is its policy string,
    /// `origin` says in a few words how it was trained.
    pub fn learned(name: &str, actor: FastActor, origin: &str) -> Contestant {
        let kind = Kind::Learned {
            actor: Box::new(actor),
            low_level: LowLevel::default(),
            origin: origin.to_string(),
        };
        Contestant {
            name: name.to_string(),
            kind,
        }
    }

    /// The same network over another heuristic; rules stay what they are.
    #[must_use]
    pub fn over(mut self, heuristic: LowLevel) -> Contestant {
        if let Kind::Learned { low_level, .. } = &mut self.kind {
            *low_level = heuristic;
        }
        self
    }

    /// DT with α = 1, which every ratio is relative to.
    pub fn baseline() -> Contestant {
        Contestant::rule(PolicySpec::baseline())
    }

    /// The reference line: complete sharing with a buffer that never fills.
    pub fn unlimited() -> Contestant {
        Contestant::rule(PolicySpec::unlimited())
    }

    /// The policy of a checkpoint that is already loaded, under the given policy string, over the
    /// heuristic that it was trained with.
    pub fn from_checkpoint(name: &str, weights: &ActorWeights, manifest: &Manifest) -> Contestant {
        let actor = FastActor::new(weights);
        Contestant::learned(name, actor, &origin(manifest)).over(manifest.low_level.clone())
    }

    /// Loads the checkpoint of a policy string `ndt:DIR`.
    fn load(policy: &str, folder: &str) -> Result<Contestant, ContestantError> {
        let (weights, manifest) = checkpoint::load_actor(Path::new(folder)).map_err(|source| {
            ContestantError::Checkpoint {
                policy: policy.to_string(),
                source,
            }
        })?;
        let name = format!("{LEARNED}:{}", folder.trim_end_matches('/'));
        Ok(Contestant::from_checkpoint(&name, &weights, &manifest))
    }

    /// The policy string in its canonical form.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What part the policy plays.
    pub fn role(&self) -> Role {
        match &self.kind {
            Kind::Learned { .. } => Role::Learned,
            _ if self.name == BASELINE => Role::Baseline,
            _ if self.name == UNLIMITED => Role::Reference,
            Kind::Rule(_) | Kind::Tuned(_) => Role::Heuristic,
        }
    }

    /// The network of a learned policy and the heuristic that it steers.
    pub fn network(&self) -> Option<(&FastActor, LowLevel)> {
        match &self.kind {
            Kind::Learned {
                actor, low_level, ..
            } => Some((actor, low_level.clone())),
            Kind::Rule(_) | Kind::Tuned(_) => None,
        }
    }

    /// Whether the policy removes packets that were admitted, which today's switches cannot do.
    pub fn pushes_out(&self, scenario: &Scenario) -> bool {
        match &self.kind {
            Kind::Rule(spec) | Kind::Tuned(spec) => {
                spec.build(scenario).is_ok_and(|policy| policy.pushes_out())
            }
            Kind::Learned { .. } => false,
        }
    }

    /// The policy as tables name it.
    pub fn entry(&self) -> Entry {
        let origin = match &self.kind {
            Kind::Learned { origin, .. } => origin.clone(),
            Kind::Tuned(_) => "tuned on training traces".to_owned(),
            Kind::Rule(_) => String::new(),
        };
        Entry {
            policy: self.name.clone(),
            role: self.role(),
            origin,
        }
    }

    /// Runs a trace to its end, recording a timeline at the given interval if there is one.
    ///
    /// # Errors
    /// When the scenario is inconsistent or the trace does not fit it.
    pub fn run(
        &self,
        scenario: &Scenario,
        trace: &Trace,
        timeline: Option<Time>,
    ) -> Result<Outcome, SimError> {
        match &self.kind {
            Kind::Rule(spec) | Kind::Tuned(spec) => {
                let mut simulator = spec.simulator(scenario, trace)?;
                simulator.measure_waits();
                if let Some(interval) = timeline {
                    simulator.record_timeline(interval);
                }
                Ok(simulator.run())
            }
            Kind::Learned {
                actor, low_level, ..
            } => {
                let mut actor = actor.clone();
                let options = RunOptions {
                    timeline,
                    control: ControlOptions {
                        low_level: low_level.clone(),
                        ..ControlOptions::default()
                    },
                };
                run_controlled(scenario, trace, actor.as_mut(), &options)
            }
        }
    }
}

/// How a checkpoint was trained, in one line.
pub fn origin(manifest: &Manifest) -> String {
    let validated = manifest.validation.as_ref().map(|result| {
        let interval = format!("{:.3} [{:.3}–{:.3}]", result.value, result.low, result.high);
        format!(
            "; {} on {} validation traces: {interval}",
            result.metric, result.traces
        )
    });
    let over = match &manifest.low_level {
        dt if dt.is_default() => String::new(),
        other => format!(" over {other}"),
    };
    format!(
        "trained on {} for {}{over}, seed {}, {} decisions, {} updates{}",
        manifest.scenario,
        manifest.objective,
        manifest.seed,
        format::count(manifest.decisions),
        format::count(manifest.updates),
        validated.unwrap_or_default(),
    )
}

impl FromStr for Contestant {
    type Err = ContestantError;

    /// Reads `dt`, `dt:alpha=8`, … and `ndt:DIR`, whose checkpoint it loads.
    fn from_str(text: &str) -> Result<Contestant, ContestantError> {
        match text.split_once(':').unwrap_or((text, "")) {
            (LEARNED, "") => Err(ContestantError::NoFolder(text.to_string())),
            (LEARNED, folder) => Contestant::load(text, folder),
            _ => Ok(Contestant::rule(text.parse()?)),
        }
    }
}

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_know_their_part() {
        let role = |text: &str| text.parse::<Contestant>().unwrap().role();
        assert_eq!(role("dt"), Role::Baseline);
        assert_eq!(role("dt:alpha=1"), Role::Baseline);
        assert_eq!(role("dt:alpha=8"), Role::Heuristic);
        assert_eq!(role("unlimited"), Role::Reference);
        assert_eq!(role("cs"), Role::Heuristic);
    }

    #[test]
    fn mistakes_are_one_clear_line() {
        let message = |text: &str| text.parse::<Contestant>().unwrap_err().to_string();
        assert!(message("ett").contains("`edt`"), "{}", message("ett"));
        assert!(message("ndt").contains("ndt:checkpoints/ndt-fct"));
        assert!(message("ndt:").contains("needs a checkpoint folder"));
        let missing = message("ndt:no/such/folder");
        assert!(
            missing.contains("no/such/folder") && !missing.contains('\n'),
            "{missing}"
        );
    }
}
