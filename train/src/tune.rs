//! The search for the parameters of a rule and of its queue management, all at once. So a learner is compared with
//! rules that had as many simulations for tuning.
//!
//! Every parameter has a [range](bufgym_sim::switch::policy::Search) next to its definition. First the search screens
//! the defaults, known results, every combination of words and random places. CMA-ES
//! ([`Evolution`](bufgym_agents::Evolution)) then starts from the best of them. Every generation has fresh training
//! traces, the same for all its candidates, so that the search cannot overfit to any of them. Validation traces choose
//! among the best candidates, of which the default is always one.

mod all;
mod kept;
pub mod names;
mod search;
mod space;

use std::ops::Range;

use bufgym_env::control::LowLevelPolicy;
use bufgym_eval::metric::{Comparison, Metric};
use bufgym_eval::tune::{TRACES, Tuned};
use bufgym_sim::network::{SimError, Simulation};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::Trace;
use bufgym_util::rng::{Split, stream};
use serde::Serialize;

use crate::TrainError;
use crate::backend::Backend;
use crate::config::{Start, TrainConfig, built_in};
use crate::limits::require_least;
use crate::simulations::{Decider, Setting};
use crate::validation::ValidationSet;

use search::{Plan, search, validation_traces};
use space::Space;

pub use all::{AllConfig, AllProgress, AllTuned, Outcome, TunedPolicy, tune_all};
pub use kept::{Kept, Results};

pub use crate::error::KeptError;
pub use space::Edge;

/// Least number of simulations of a search.
pub const MIN_SIMULATIONS: u64 = 100;

/// Largest number of policies, in addition to the default, from which a search starts.
const MAX_STARTS: usize = 4;

/// Bootstrap resamples of an interval.
const RESAMPLES: usize = 1_000;

/// Settings of a search.
#[derive(Clone, Debug)]
pub struct TuneConfig {
    /// Switch, transport and traffic.
    pub scenario: Scenario,
    /// The policy, with queue management or without. The search starts from its parameters and from the
    /// defaults.
    pub policy: PolicySpec,
    /// Further starts: results of earlier searches. At most four are used, and none that differs in parameters that are
    /// not searched.
    pub starts: Vec<PolicySpec>,
    /// Metric of the search.
    pub metric: Metric,
    /// Seed of the traces and of the search.
    pub seed: u64,
    /// Simulations to spend, at least [`MIN_SIMULATIONS`], including those of DT (α = 1).
    pub simulations: u64,
    /// Validation traces that choose the result, at least 1; fewer where they would take more than
    /// a third of the simulations.
    pub traces: u64,
}

impl TuneConfig {
    /// Creates settings with as many simulations as a default training of the network.
    pub fn new(scenario: Scenario, policy: PolicySpec, seed: u64) -> TuneConfig {
        TuneConfig {
            scenario,
            policy,
            starts: Vec::new(),
            metric: Metric::MeanFct,
            seed,
            simulations: default_simulations(),
            traces: TRACES,
        }
    }

    /// Validation traces that choose the result.
    pub fn validation_traces(&self) -> u64 {
        validation_traces(self.simulations, self.traces)
    }
}

/// Simulations of the training of the shipped policy, from a searched rule: the default of a search.
///
/// # Panics
/// When the built-in heuristic has a mistake, which a test would find.
pub fn default_simulations() -> u64 {
    let mut training = TrainConfig {
        low_level: built_in("fab+front"),
        ..TrainConfig::default()
    };
    training.start.from = Start::Rule;
    training.budget.steps = Some(150_000);
    let simulations = training.simulations().unwrap_or_default();
    simulations.max(MIN_SIMULATIONS)
}

/// A candidate of the comparison at the end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// The policy string.
    pub policy: String,
    /// Number of validation traces.
    pub traces: u64,
    /// [`Comparison::value`](bufgym_eval::metric::Comparison::value) on them; lower is better.
    pub ratio_to_dt: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end of its 95 % interval.
    pub high: f64,
    /// Mean over the traces of its mean FCT over DT's.
    pub fct_ratio_to_dt: f64,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tuning {
    /// The best candidate on validation traces; of equals the first of the search.
    pub best: Candidate,
    /// The policy with its defaults; where they do not fit the scenario, as it was given.
    pub start: Candidate,
    /// All that were compared at the end, the best first.
    pub tried: Vec<Candidate>,
    /// Names of the parameters that were not searched.
    pub not_tuned: Vec<String>,
    /// Parameters of the best one that are at an edge of their ranges.
    pub edges: Vec<Edge>,
    /// Simulations run, including those of DT.
    pub simulations: u64,
    /// Simulations that it was given.
    pub budget: u64,
    /// Wall time, seconds.
    pub wall_s: f64,
}

impl Tuning {
    /// Returns the result in the form for a file.
    pub fn kept(&self, config: &TuneConfig) -> Tuned {
        Tuned {
            policy: self.best.policy.clone(),
            ratio_to_dt: self.best.ratio_to_dt,
            start_ratio_to_dt: self.start.ratio_to_dt,
            traces: self.best.traces,
            seed: config.seed,
            split: Some(Split::Validation.to_string()),
            simulations: Some(self.simulations),
            budget: Some(self.budget),
            edges: self.edges.iter().map(Edge::note).collect(),
        }
    }
}

/// Progress of a search.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Simulations so far.
    pub done: u64,
    /// Simulations that it may spend.
    pub budget: u64,
    /// The best candidate of the last generation.
    pub best: &'a PolicySpec,
    /// Its ratio to DT on the traces of that generation.
    pub ratio_to_dt: f64,
}

/// Searches the parameters, with the simulations on `backend`, which does not change the result. `on_progress` is called
/// after every generation.
///
/// # Errors
/// [`TrainError::Setting`] when a number of the configuration is too low,
/// [`TrainError::Simulation`] when the scenario makes no sense or the policy as given does not fit it, and
/// [`TrainError::Remote`] when the hosts fail.
pub fn tune(
    config: &TuneConfig,
    backend: &Backend,
    on_progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Tuning, TrainError> {
    let started = std::time::Instant::now();
    config.check()?;
    let space = Space::new(&config.policy, &config.scenario);
    let plan = Plan::new(config.simulations, config.traces, &space);
    fits(&config.policy, &config.scenario)?;
    let given = config.given(&space);
    let mut rng = stream(config.seed, "parameter search", 0);
    let mut schedule = TraceSchedule {
        config,
        backend,
        next: 0,
        simulations: 0,
    };
    let finalists = search(&space, &plan, &given, &mut rng, &mut |policies| {
        let costs = schedule.costs(policies, plan.traces)?;
        if let Some((best, cost)) = lowest(policies, &costs) {
            on_progress(Progress {
                done: schedule.simulations,
                budget: config.simulations,
                best,
                ratio_to_dt: cost,
            });
        }
        Ok::<_, TrainError>(costs)
    })?;
    let mut tried = schedule.compare(&finalists, plan.validation)?;
    let start = tried[0].clone();
    // The sort is stable: of equals the default comes first.
    tried.sort_by(|a, b| a.ratio_to_dt.total_cmp(&b.ratio_to_dt));
    let best = tried[0].clone();
    let edges = best.policy.parse().map(|spec| space.edges(&spec));
    Ok(Tuning {
        best,
        start,
        tried,
        not_tuned: space.fixed().to_vec(),
        edges: edges.unwrap_or_default(),
        simulations: schedule.simulations,
        budget: config.simulations,
        wall_s: started.elapsed().as_secs_f64(),
    })
}

fn lowest<'a>(policies: &'a [PolicySpec], costs: &[f64]) -> Option<(&'a PolicySpec, f64)> {
    let pairs = policies.iter().zip(costs.iter().copied());
    pairs.min_by(|a, b| a.1.total_cmp(&b.1))
}

impl TuneConfig {
    fn check(&self) -> Result<(), TrainError> {
        require_least(&[
            ("simulations", self.simulations, MIN_SIMULATIONS),
            ("traces", self.traces, 1),
        ])
    }

    /// The default, the policy as it is given, and the other starts, as far as they fit the scenario.
    fn given(&self, space: &Space) -> Vec<PolicySpec> {
        let mut given = Vec::new();
        let policies = [space.default(), self.policy.clone()];
        for policy in policies.iter().chain(&self.starts) {
            // Parameters that are not searched have to be the same.
            let same = Space::new(policy, &self.scenario).default() == policies[0];
            let usable = same && fits(policy, &self.scenario).is_ok();
            if usable && !given.contains(policy) && given.len() <= MAX_STARTS {
                given.push(policy.clone());
            }
        }
        given
    }
}

/// The traces of a search, one set after the other.
struct TraceSchedule<'a> {
    config: &'a TuneConfig,
    backend: &'a Backend,
    /// The next training trace.
    next: u64,
    simulations: u64,
}

impl TraceSchedule<'_> {
    /// The value of each policy relative to DT on so many fresh training traces; infinite if it does not fit.
    fn costs(&mut self, policies: &[PolicySpec], traces: u64) -> Result<Vec<f64>, TrainError> {
        let indices = self.next..self.next + traces;
        self.next += traces;
        let found = self.comparisons(policies, Split::Train, indices, 0)?;
        let cost = |found: Option<Comparison>| found.map_or(f64::INFINITY, |found| found.value);
        Ok(found.into_iter().map(cost).collect())
    }

    /// Compares the candidates that fit on validation traces.
    fn compare(
        &mut self,
        finalists: &[PolicySpec],
        traces: u64,
    ) -> Result<Vec<Candidate>, TrainError> {
        let found = self.comparisons(finalists, Split::Validation, 0..traces, RESAMPLES)?;
        let candidate = |(policy, found): (&PolicySpec, Option<Comparison>)| {
            found.map(|found| Candidate {
                policy: policy.to_string(),
                traces,
                ratio_to_dt: found.value,
                low: found.ratio.low,
                high: found.ratio.high,
                fct_ratio_to_dt: found.fct_ratio,
            })
        };
        Ok(finalists.iter().zip(found).filter_map(candidate).collect())
    }

    /// Compares policies with DT; `None` for one that does not fit the scenario.
    fn comparisons(
        &mut self,
        policies: &[PolicySpec],
        split: Split,
        indices: Range<u64>,
        resamples: usize,
    ) -> Result<Vec<Option<Comparison>>, TrainError> {
        let config = self.config;
        let usable = policies
            .iter()
            .map(|policy| fits(policy, &config.scenario).is_ok());
        let usable: Vec<bool> = usable.collect();
        let running = policies.iter().zip(&usable).filter(|(_, usable)| **usable);
        let running: Vec<Decider> = running
            .map(|(policy, _)| Decider::Rule(policy.clone()))
            .collect();
        self.simulations += (running.len() as u64 + 1) * (indices.end - indices.start);
        let setting = Setting {
            scenarios: vec![config.scenario.clone()],
            metric: config.metric,
            low_level: LowLevelPolicy::default(),
        };
        let set = ValidationSet::new(self.backend, setting, (split, config.seed), indices)?;
        let mut found = set.comparisons(&running, resamples)?.into_iter();
        let of = |usable: &bool| usable.then(|| found.next()).flatten();
        Ok(usable.iter().map(of).collect())
    }
}

/// Returns true if policy and queue management can be built for the scenario.
fn fits(policy: &PolicySpec, scenario: &Scenario) -> Result<(), SimError> {
    // Simulators are built for traces, and a trace has at least one flow.
    let flow = "id,src,dst,start_ns,size_bytes\n0,0,1,0,1\n";
    let trace = Trace::from_reader(flow.as_bytes(), "one flow")?;
    Simulation::new(scenario, &trace, policy).map(drop)
}

#[cfg(test)]
mod tests;
