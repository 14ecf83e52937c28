//! The search over all policies: every rule with every queue management, with the same number of simulations for each,
//! or more for the best of them. Results are stored one by one, so that an interrupted search can resume.

use std::iter;
use std::path::PathBuf;

use bufgym_eval::metric::Metric;
use bufgym_eval::tune::Tuned;
use bufgym_sim::network::SimError;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::switch::aqm::{self, AqmSpec};
use bufgym_sim::switch::policy::{Deployment, catalogue};
use bufgym_sim::traffic::TraceError;
use serde::Serialize;

use super::kept::{Kept, Results};
use super::{MIN_SIMULATIONS, TuneConfig, tune};
use crate::TrainError;
use crate::backend::Backend;
use crate::error::KeptError;
use crate::remote::RemoteError;

/// Queue management that marks and never drops: useless for hosts without ECN.
const MARKING: &str = "step";

/// Divisor of the simulations that every policy gets, if only the best ones get the rest.
const SCREENING_SHARE: u64 = 8;

/// Settings of a search over all policies.
#[derive(Clone, Debug)]
pub struct AllConfig<'a> {
    /// Switch, transport and traffic.
    pub scenario: Scenario,
    /// Metric of the search.
    pub metric: Metric,
    /// Seed of the traces and of the searches.
    pub seed: u64,
    /// Simulations to spend on a policy, at least [`MIN_SIMULATIONS`].
    pub simulations: u64,
    /// Validation traces that choose a result, as in [`TuneConfig`].
    pub traces: u64,
    /// Number of policies that get all simulations; the others get an eighth. `None`: all policies.
    pub best: Option<u64>,
    /// Earlier results. Searches start from them, and new ones are added.
    pub results: Results<'a>,
    /// True if results of other searches may be replaced.
    pub force: bool,
}

/// The result of a search over all policies.
#[derive(Clone, Debug)]
pub struct AllTuned {
    /// The policies, the best first, and those that do not fit the scenario last.
    pub policies: Vec<TunedPolicy>,
    /// Simulations spent, without those of earlier results.
    pub simulations: u64,
    /// The file with the results, if there are any.
    pub file: Option<PathBuf>,
}

/// The result of a policy.
#[derive(Clone, Debug, Serialize)]
pub struct TunedPolicy {
    #[serde(skip)]
    policy: PolicySpec,
    /// Names of the policy and its queue management.
    pub names: String,
    /// Its result.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The result of a policy that fits the scenario, or the reason why it does not.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    /// The result.
    Tuned {
        /// The result as it is stored.
        tuned: Tuned,
        /// True if it existed already.
        before: bool,
    },
    /// The policy does not fit the scenario.
    Unfit {
        /// The reason.
        problem: String,
    },
}

impl TunedPolicy {
    /// Returns the result, if the policy fits the scenario.
    fn tuned(&self) -> Option<&Tuned> {
        match &self.outcome {
            Outcome::Tuned { tuned, .. } => Some(tuned),
            Outcome::Unfit { .. } => None,
        }
    }
}

/// Progress of a search over all policies.
#[derive(Clone, Copy, Debug)]
pub struct AllProgress<'a> {
    /// Names of the policy that is searched, and of its queue management.
    pub names: &'a str,
    /// Simulations so far, of all policies or of the best alone. Earlier policies count as if they had spent all that
    /// they may.
    pub done: u64,
    /// Simulations that these policies may spend.
    pub total: u64,
}

/// A search that every policy gets, or only the best ones.
#[derive(Clone, Copy)]
struct Stage {
    /// Number of simulations that the search may spend.
    simulations: u64,
    /// Total number of simulations of the policy after the search, with those of the previous stage.
    budget: u64,
}

/// Searches the parameters of every policy, and stores the results.
///
/// # Errors
/// Same as [`tune`]; and [`TrainError::Kept`] when results of other searches may not be replaced, are broken or cannot
/// be written.
pub fn tune_all(
    config: &AllConfig<'_>,
    backend: &Backend,
    on_progress: &mut dyn FnMut(AllProgress<'_>),
) -> Result<AllTuned, TrainError> {
    let stages = config.stages();
    let (mut policies, wanted) = config.divide(&stages)?;
    let mut searches = Searches {
        config,
        backend,
        on_progress,
    };
    let mut simulations = searches.run(wanted, stages[0], &mut policies)?;
    if let Some(&rest) = stages.get(1) {
        // With more traces, a rule may turn out worse; then another one is among the best.
        loop {
            let wanted = config.unfinished(&mut policies);
            if wanted.is_empty() {
                break;
            }
            simulations += searches.run(wanted, rest, &mut policies)?;
        }
    }
    let file = match policies.iter().find(|policy| policy.tuned().is_some()) {
        Some(policy) => config.kept(policy.names.clone()).there()?,
        None => None,
    };
    Ok(AllTuned {
        policies,
        simulations,
        file: file.map(|(path, _)| path),
    })
}

impl AllConfig<'_> {
    /// Returns the stages. A stage that is too small for a search is left out.
    fn stages(&self) -> Vec<Stage> {
        let all = self.simulations;
        let share = all / SCREENING_SHARE;
        let stage = |simulations: u64, budget: u64| Stage {
            simulations,
            budget,
        };
        match self.best.is_none() || share < MIN_SIMULATIONS {
            true => vec![stage(all, all)],
            false => vec![stage(share, share), stage(all - share, all)],
        }
    }

    fn kept(&self, names: String) -> Kept<'_> {
        Kept {
            results: self.results,
            scenario: &self.scenario,
            metric: self.metric,
            names,
            force: self.force,
        }
    }

    /// Returns the settings of a policy's search, without its starts.
    fn tuning(&self, policy: &PolicySpec, stage: Stage) -> TuneConfig {
        TuneConfig {
            metric: self.metric,
            simulations: stage.simulations,
            traces: self.traces,
            ..TuneConfig::new(self.scenario.clone(), policy.clone(), self.seed)
        }
    }

    /// Divides the policies into those with results, from the same seed and number of simulations, or from the previous
    /// stage, and those to search.
    ///
    /// # Errors
    /// Fails if results of other searches are in the way and may not be replaced.
    fn divide(&self, stages: &[Stage]) -> Result<(Vec<TunedPolicy>, Vec<PolicySpec>), KeptError> {
        let (mut policies, mut wanted, mut in_the_way) = (Vec::new(), Vec::new(), Vec::new());
        let mut place = None;
        for policy in all_policies(&self.scenario) {
            let kept = self.kept(policy.names());
            let Some((path, tuned)) = kept.there()? else {
                wanted.push(policy);
                continue;
            };
            let same = tuned.seed == self.seed
                && stages.iter().any(|stage| {
                    let traces = self.tuning(&policy, *stage).validation_traces();
                    (tuned.budget, tuned.traces) == (Some(stage.budget), traces)
                });
            if same {
                policies.push(TunedPolicy {
                    policy,
                    names: kept.names,
                    outcome: Outcome::Tuned {
                        tuned,
                        before: true,
                    },
                });
            } else {
                in_the_way.push(kept.names);
                place = Some(path);
                wanted.push(policy);
            }
        }
        match place {
            Some(path) if !self.force => {
                let problem = format!(
                    " has results with another seed or number of simulations or traces: {}; give --force to search again, from them, and replace them",
                    in_the_way.join(", ")
                );
                Err(KeptError::refused(&path, problem))
            }
            _ => Ok((policies, wanted)),
        }
    }

    /// Removes and returns those of the best policies that have not had all their simulations yet.
    fn unfinished(&self, policies: &mut Vec<TunedPolicy>) -> Vec<PolicySpec> {
        let best = self.best.unwrap_or(u64::MAX);
        let (mut wanted, mut others) = (Vec::new(), Vec::new());
        for (place, policy) in (0..).zip(policies.drain(..)) {
            let tuned = policy.tuned();
            let screened = tuned.is_some_and(|tuned| tuned.budget != Some(self.simulations));
            match screened && place < best {
                true => wanted.push(policy.policy),
                false => others.push(policy),
            }
        }
        *policies = others;
        wanted
    }
}

/// The settings that the searches of a run share.
struct Searches<'a> {
    config: &'a AllConfig<'a>,
    backend: &'a Backend,
    on_progress: &'a mut dyn FnMut(AllProgress<'_>),
}

impl Searches<'_> {
    /// Searches each policy in turn and stores the results. The policies stay sorted: the best first, and those that do
    /// not fit last. Returns the simulations spent.
    fn run(
        &mut self,
        wanted: Vec<PolicySpec>,
        stage: Stage,
        policies: &mut Vec<TunedPolicy>,
    ) -> Result<u64, TrainError> {
        let total = wanted.len() as u64 * stage.simulations;
        let mut spent = 0;
        for (number, policy) in (0..).zip(wanted) {
            let place = (number * stage.simulations, total);
            let (found, simulations) = self.one(policy, place, stage)?;
            policies.push(found);
            spent += simulations;
        }
        let key = |policy: &TunedPolicy| policy.tuned().map_or(f64::INFINITY, |t| t.ratio_to_dt);
        policies.sort_by(|a, b| key(a).total_cmp(&key(b)).then(a.names.cmp(&b.names)));
        Ok(spent)
    }

    fn one(
        &mut self,
        policy: PolicySpec,
        (before, total): (u64, u64),
        stage: Stage,
    ) -> Result<(TunedPolicy, u64), TrainError> {
        let config = self.config;
        let mut kept = config.kept(policy.names());
        let mut tell = |done: u64| {
            (self.on_progress)(AllProgress {
                names: &kept.names,
                done: before + done,
                total,
            });
        };
        tell(0);
        let tuning = TuneConfig {
            starts: config
                .results
                .starts(config.metric, &policy, &config.scenario)?,
            ..config.tuning(&policy, stage)
        };
        // The result of the previous stage is replaced.
        let earlier = match stage.budget > stage.simulations {
            true => kept.there()?.and_then(|(_, tuned)| tuned.simulations),
            false => None,
        };
        let found = tune(&tuning, self.backend, &mut |progress| tell(progress.done));
        let (outcome, spent) = match found {
            Ok(found) => {
                let tuned = Tuned {
                    budget: Some(stage.budget),
                    simulations: Some(found.simulations + earlier.unwrap_or_default()),
                    ..found.kept(&tuning)
                };
                kept.force |= earlier.is_some();
                kept.keep(tuned.clone())?;
                let before = false;
                (Outcome::Tuned { tuned, before }, found.simulations)
            }
            Err(error) => (
                Outcome::Unfit {
                    problem: unfit(error)?,
                },
                0,
            ),
        };
        let names = kept.names;
        let found = TunedPolicy {
            policy,
            names,
            outcome,
        };
        Ok((found, spent))
    }
}

/// Returns the reason if the policy does not fit the scenario, which is valid; otherwise the error.
fn unfit(error: TrainError) -> Result<String, TrainError> {
    match error {
        TrainError::Simulation(SimError::Trace(TraceError::NoFlows)) => Err(error),
        TrainError::Simulation(error) => Ok(error.to_string()),
        TrainError::Remote(RemoteError::Unfit(problem)) => Ok(problem),
        error => Err(error),
    }
}

/// Returns every rule that a switch can have, alone and with every queue management that hosts can answer to.
fn all_policies(scenario: &Scenario) -> Vec<PolicySpec> {
    let disciplines = aqm::catalogue().iter().map(|known| known.info.name);
    let disciplines = disciplines.filter(|&name| name != MARKING || scenario.uses_ecn());
    let parsed =
        disciplines.map(|name| AqmSpec::parse(name).expect("the catalogue has valid names"));
    let disciplines: Vec<Option<AqmSpec>> = iter::once(None).chain(parsed).collect();
    let rules = catalogue().iter().map(|definition| &definition.info);
    rules
        .filter(|info| info.deployment != Deployment::Reference)
        .map(|info| PolicySpec::named(info.name))
        .flat_map(|rule| {
            disciplines
                .iter()
                .map(move |aqm| rule.clone().with_aqm(aqm.clone()))
        })
        .collect()
}
