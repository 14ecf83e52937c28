//! Search of the best parameters of a policy on training traces, so that comparisons can be made with
//! tuned baselines.
//!
//! It is a coordinate search: one parameter at a time takes the values of a grid while the others
//! stay. The values of a parameter are compared by successive halving (Jamieson and Talwalkar,
//! AISTATS 2016): all of them run the first traces, and only the better ones run more traces. All
//! candidates run the same traces and are judged by the objective's [metric](crate::metric) relative
//! to DT (α = 1).

mod grid;
mod store;

use std::collections::HashMap;
use std::time::Instant;

use bufgym_sim::rng::Split;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use rayon::prelude::*;
use serde::Serialize;

use crate::evaluate::{EvalError, NumberedTrace, split_traces};
use crate::metric::{Comparison, IsolatedPorts, Metric, Sample, compare};

pub use store::{StoreError, Stored};

/// Default number of traces.
pub const TRACES: u64 = 64;

/// How often each parameter is searched, at most.
const PASSES: usize = 2;

/// What to search and on what.
#[derive(Clone, Debug)]
pub struct TuneConfig {
    /// Switch, transport and traffic.
    pub scenario: Scenario,
    /// The policy. The search starts from its parameters.
    pub policy: PolicySpec,
    /// Number of training traces, at least 1.
    pub traces: u64,
    /// Seed from which the seeds of the traces follow.
    pub seed: u64,
    /// What the policy is judged by.
    pub metric: Metric,
}

/// The result of one set of parameters.
#[derive(Clone, Debug, Serialize)]
pub struct Candidate {
    /// The policy string.
    pub policy: String,
    /// Number of traces it ran: the first ones.
    pub traces: usize,
    /// [`Comparison::value`] on these traces; lower is better.
    pub ratio_to_dt: f64,
    /// Mean over these traces of its mean FCT over DT's.
    pub fct_ratio_to_dt: f64,
}

/// The result of a search.
#[derive(Clone, Debug, Serialize)]
pub struct Tuning {
    /// The best candidate, on all traces.
    pub best: Candidate,
    /// The candidate that the search started from, on all traces.
    pub start: Candidate,
    /// All candidates: those that ran more traces first, and among these the better ones first.
    pub tried: Vec<Candidate>,
    /// Names of the parameters without a grid: paths, lists and seeds.
    pub not_tuned: Vec<&'static str>,
    /// Number of simulations run.
    pub simulations: usize,
    /// Wall time, seconds.
    pub wall_s: f64,
}

/// Called with the best candidate so far after the search of each parameter.
pub type OnRound<'a> = &'a mut dyn FnMut(&Candidate);

/// Searches the parameters of a policy on training traces, in parallel. The result does not depend
/// on the number of threads.
///
/// # Errors
/// When there is no trace, when the scenario is invalid, or when the policy as given does not fit it.
/// Values of the grid that do not fit are skipped.
pub fn tune(config: &TuneConfig, on_round: OnRound<'_>) -> Result<Tuning, EvalError> {
    let started = Instant::now();
    if config.traces == 0 {
        return Err(EvalError::NoTraces);
    }
    let traces = split_traces(&config.scenario, Split::Train, config.seed, config.traces)?;
    let mut race = Race::new(&config.scenario, config.metric, &traces)?;
    let mut best = config.policy.clone();
    race.run(&best, traces.len())?;
    let parameters = config.policy.info().parameters;
    let mut not_tuned = Vec::new();
    for pass in 0..PASSES {
        let before = best.clone();
        for parameter in parameters {
            let values = grid::values(parameter, &config.scenario);
            if values.is_empty() && pass == 0 {
                not_tuned.push(parameter.name);
            }
            let others = values
                .iter()
                .filter_map(|value| best.clone().with(parameter.name, value).ok());
            let policies: Vec<PolicySpec> = std::iter::once(best.clone()).chain(others).collect();
            best = race.winner(policies)?;
            on_round(&race.candidate(&best));
        }
        if best == before || parameters.len() < 2 {
            break;
        }
    }
    race.run(&best, traces.len())?;
    let mut tried: Vec<Candidate> = race
        .results
        .keys()
        .map(|policy| race.candidate_named(policy))
        .collect();
    tried.sort_by(|a, b| {
        let longer = b.traces.cmp(&a.traces);
        let better = a.ratio_to_dt.total_cmp(&b.ratio_to_dt);
        longer.then(better).then(a.policy.cmp(&b.policy))
    });
    Ok(Tuning {
        best: race.candidate(&best),
        start: race.candidate(&config.policy),
        tried,
        not_tuned,
        simulations: race.simulations,
        wall_s: started.elapsed().as_secs_f64(),
    })
}

/// The traces of a search and the results of all policies on them.
struct Race<'a> {
    scenario: &'a Scenario,
    metric: Metric,
    traces: &'a [NumberedTrace],
    /// The isolated ports of every trace, if the metric needs them.
    ports: Vec<Option<IsolatedPorts>>,
    /// The samples of DT (α = 1), one per trace.
    baseline: Vec<Sample>,
    /// By policy string, its samples on the first traces; empty if its parameters do not fit.
    results: HashMap<String, Vec<Sample>>,
    simulations: usize,
}

impl<'a> Race<'a> {
    fn new(
        scenario: &'a Scenario,
        metric: Metric,
        traces: &'a [NumberedTrace],
    ) -> Result<Race<'a>, EvalError> {
        let ports = |numbered: &NumberedTrace| {
            metric
                .isolated_ports(scenario, &numbered.trace)
                .map_err(EvalError::simulation("cs", numbered))
        };
        let mut race = Race {
            scenario,
            metric,
            traces,
            ports: traces.par_iter().map(ports).collect::<Result<_, _>>()?,
            baseline: Vec::new(),
            results: HashMap::new(),
            simulations: traces.len(),
        };
        let dt = PolicySpec::baseline();
        race.baseline = (0..traces.len())
            .into_par_iter()
            .map(|trace| race.sample(&dt, trace))
            .collect::<Result<_, _>>()?;
        Ok(race)
    }

    fn sample(&self, policy: &PolicySpec, trace: usize) -> Result<Sample, EvalError> {
        let numbered = &self.traces[trace];
        let outcome = policy
            .simulator(self.scenario, &numbered.trace)
            .map(|mut simulator| {
                simulator.measure_waits();
                simulator.run()
            })
            .map_err(EvalError::simulation(&policy.to_string(), numbered))?;
        let ports = self.ports[trace].as_ref();
        Ok(Sample::of(self.metric, &outcome, ports))
    }

    /// Runs one policy on the first `count` traces.
    fn run(&mut self, policy: &PolicySpec, count: usize) -> Result<(), EvalError> {
        self.run_all(std::slice::from_ref(policy), count).map(drop)
    }

    /// Runs the policies on those of the first `count` traces that they have not run yet. Returns the
    /// policies that fit the scenario.
    fn run_all(
        &mut self,
        policies: &[PolicySpec],
        count: usize,
    ) -> Result<Vec<PolicySpec>, EvalError> {
        let done = |policy: &PolicySpec| self.results.get(&policy.to_string()).map_or(0, Vec::len);
        let jobs: Vec<(&PolicySpec, usize)> = policies
            .iter()
            .flat_map(|policy| (done(policy)..count).map(move |trace| (policy, trace)))
            .collect();
        let samples: Vec<Result<Sample, EvalError>> = jobs
            .par_iter()
            .map(|&(policy, trace)| self.sample(policy, trace))
            .collect();
        self.simulations += jobs.len();
        let mut refused: HashMap<String, EvalError> = HashMap::new();
        for ((policy, _), sample) in jobs.iter().zip(samples) {
            match sample {
                Ok(sample) => self
                    .results
                    .entry(policy.to_string())
                    .or_default()
                    .push(sample),
                Err(error) => {
                    refused.entry(policy.to_string()).or_insert(error);
                }
            }
        }
        let fits = |policy: &&PolicySpec| !refused.contains_key(&policy.to_string());
        let left: Vec<PolicySpec> = policies.iter().filter(fits).cloned().collect();
        match refused.into_values().next() {
            Some(error) if left.is_empty() => Err(error),
            _ => Ok(left),
        }
    }

    /// The best policy by successive halving: all run an eighth of the traces, the best third (at
    /// least three) three eighths, and the best three all traces. The first policy, which was the best
    /// before, is never dropped.
    fn winner(&mut self, policies: Vec<PolicySpec>) -> Result<PolicySpec, EvalError> {
        let all = self.traces.len();
        let mut left = policies;
        left.dedup();
        let first = left[0].clone();
        for (count, kept) in [
            (all.div_ceil(8), left.len().div_ceil(3).max(3)),
            ((3 * all).div_ceil(8), 3),
        ] {
            left = self.run_all(&left, count)?;
            self.rank(&mut left, count);
            left.truncate(kept);
            if !left.contains(&first) {
                left.push(first.clone());
            }
        }
        left = self.run_all(&left, all)?;
        self.rank(&mut left, all);
        Ok(left.swap_remove(0))
    }

    /// Sorts policies by their results on the first `count` traces, best first. The sort is stable.
    fn rank(&self, policies: &mut [PolicySpec], count: usize) {
        let score = |policy: &PolicySpec| self.compared(&policy.to_string(), count).value;
        policies.sort_by(|a, b| score(a).total_cmp(&score(b)));
    }

    fn candidate(&self, policy: &PolicySpec) -> Candidate {
        self.candidate_named(&policy.to_string())
    }

    fn candidate_named(&self, policy: &str) -> Candidate {
        let traces = self.results[policy].len();
        let found = self.compared(policy, traces);
        Candidate {
            policy: policy.to_owned(),
            traces,
            ratio_to_dt: found.value,
            fct_ratio_to_dt: found.fct_ratio,
        }
    }

    /// A policy against DT on the first `count` traces.
    fn compared(&self, policy: &str, count: usize) -> Comparison {
        let samples = &self.results[policy][..count];
        compare(self.metric, samples, &self.baseline[..count], 0)
    }
}

#[cfg(test)]
mod tests;
