//! The search for the weights of a [`LinearRule`]: CMA-ES ([`Evolution`]) over whole traces.
//!
//! With sixteen weights for each output the search needs no gradients and no values of single decisions. It ranks
//! candidates by their results on whole traces relative to DT. So it finds behaviour whose value no single decision
//! shows, such as giving room to a port only after it has lost packets. Every generation has new traces, the same for
//! all its candidates, so that the search cannot overfit to any of them. The result is a mean of the distribution, which
//! is less noisy than any candidate. Now and then the mean is measured on a fixed set of further traces, and the best one
//! is kept.
//!
//! The search can be stored between any two generations.

use std::iter;
use std::ops::Range;

use bufgym_agents::Evolution;
use bufgym_env::control::ActionSet;
use bufgym_models::LinearRule;
use bufgym_models::checkpoint::Validation;
use bufgym_models::linear::LINEAR;
use bufgym_util::rng::{self, Split};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use crate::TrainError;
use crate::backend::Backend;
use crate::simulations::{Decider, Setting};
use crate::validation::{RESAMPLES, ValidationResult, ValidationSet};

/// Settings of a search.
#[derive(Clone, Debug)]
pub(crate) struct RuleSearchConfig {
    /// Scenarios and heuristic of the simulations, and the metric that judges the rules.
    pub(crate) setting: Setting,
    /// Seed of the traces and of the candidates.
    pub(crate) seed: u64,
    /// Random stream of the candidates.
    pub(crate) stream: &'static str,
    /// Index of the first training trace. The traces that choose come first, then those of each generation.
    pub(crate) first_trace: u64,
    /// Traces that choose between means.
    pub(crate) choosing_traces: u64,
    /// Traces of a generation.
    pub(crate) generation_traces: u64,
    /// Rules of a generation, at least 2.
    pub(crate) candidates: usize,
    /// Standard deviation of every weight in the first generation.
    pub(crate) step: f64,
    /// Generations between two measurements of the mean.
    pub(crate) check_every: u64,
    /// Share with which the mean of a generation enters a moving average, which is measured too; `None` for no average.
    pub(crate) average_share: Option<f64>,
    /// Weights are rounded to multiples of 1 over this before they are measured; `None` for no rounding.
    pub(crate) units: Option<f64>,
}

/// A search that runs.
pub(crate) struct RuleSearch {
    config: RuleSearchConfig,
    backend: Backend,
    /// The traces that choose.
    chooser: ValidationSet,
    pub(crate) state: SearchState,
    /// The rules that were measured since the search was begun or resumed, in their order.
    pub(crate) checked: Vec<CheckedRule>,
}

/// The state of a search between two generations.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchState {
    pub(crate) evolution: Evolution,
    /// Moving average of the distribution's mean.
    average: Vec<f64>,
    rng: Xoshiro256PlusPlus,
    pub(crate) best: BestRule,
    /// Simulations so far, those of DT included.
    pub(crate) simulations: u64,
}

/// The best rule on the traces that choose.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BestRule {
    pub(crate) generation: u64,
    weights: Vec<f64>,
    /// Same as [`ValidationResult::value`](crate::ValidationResult::value).
    pub(crate) value: f64,
}

/// A rule with its result on the traces that choose.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedRule {
    /// Generations before this rule.
    pub generation: u64,
    /// Weights; in JSON as in the rule's file.
    #[serde(flatten)]
    pub weights: LinearRule,
    /// Comparison with DT (α = 1).
    pub result: Validation,
    /// Mean over the traces of the rule's mean FCT over DT's.
    pub fct_ratio_to_dt: f64,
}

impl RuleSearchConfig {
    fn rule(&self, weights: &[f64]) -> LinearRule {
        LinearRule::from_slice(ActionSet::of(&self.setting.low_level), weights)
    }

    /// Returns the training traces with these indices, counted from the first.
    fn traces(&self, backend: &Backend, indices: Range<u64>) -> Result<ValidationSet, TrainError> {
        let indices = self.first_trace + indices.start..self.first_trace + indices.end;
        let source = (Split::Train, self.seed);
        ValidationSet::new(backend, self.setting.clone(), source, indices)
    }

    /// Measures rules. Returns them in their order, and the best; of equals the first.
    ///
    /// # Panics
    /// When there are none.
    fn check(
        &self,
        chooser: &ValidationSet,
        generation: u64,
        mut rules: Vec<Vec<f64>>,
    ) -> Result<(Vec<CheckedRule>, BestRule), TrainError> {
        if let Some(units) = self.units {
            let weights = rules.iter_mut().flatten();
            weights.for_each(|weight| *weight = (*weight * units).round() / units);
        }
        let deciders = rules.iter().map(|rule| Decider::linear(self.rule(rule)));
        let found = chooser.comparisons(&deciders.collect::<Vec<Decider>>(), RESAMPLES)?;
        let results: Vec<ValidationResult> = found.iter().map(|one| chooser.result(one)).collect();
        let checked = rules
            .iter()
            .zip(&results)
            .map(|(rule, result)| CheckedRule {
                generation,
                weights: self.rule(rule),
                result: chooser.for_manifest(result),
                fct_ratio_to_dt: result.fct_ratio,
            });
        let checked = checked.collect();
        let rules = rules.into_iter().zip(results);
        let rules = rules.map(|(weights, result)| BestRule {
            generation,
            weights,
            value: result.value,
        });
        Ok((
            checked,
            rules.reduce(BestRule::better).expect("there are rules"),
        ))
    }
}

impl RuleSearch {
    /// Continues a stored search. Without one, measures the rules in `starts` and begins from the best.
    ///
    /// # Panics
    /// When there is no rule to begin from.
    pub(crate) fn new(
        config: RuleSearchConfig,
        backend: &Backend,
        starts: Vec<Vec<f64>>,
        stored: Option<SearchState>,
    ) -> Result<Self, TrainError> {
        let chooser = config.traces(backend, 0..config.choosing_traces)?;
        let mut checked = Vec::new();
        let state = match stored {
            Some(state) => state,
            None => {
                let simulations = (starts.len() as u64 + 1) * config.choosing_traces;
                let (measured, best) = config.check(&chooser, 0, starts)?;
                checked = measured;
                let (weights, scales) = (best.weights.clone(), vec![1.0; best.weights.len()]);
                SearchState {
                    average: weights.clone(),
                    evolution: Evolution::new(weights, &scales, config.step),
                    rng: rng::stream(config.seed, config.stream, 0),
                    best,
                    simulations,
                }
            }
        };
        Ok(Self {
            config,
            backend: backend.clone(),
            chooser,
            state,
            checked,
        })
    }

    /// Runs one generation on traces of its own, and returns the costs of its candidates. It does not measure the mean.
    pub(crate) fn generation(&mut self) -> Result<Vec<f64>, TrainError> {
        let (config, each) = (&self.config, self.config.generation_traces);
        let first = config.choosing_traces + self.generations() * each;
        let state = &mut self.state;
        let asked = state.evolution.ask(config.candidates, &mut state.rng);
        let rules = asked.iter().map(|rule| Decider::linear(config.rule(rule)));
        let traces = config.traces(&self.backend, first..first + each)?;
        let found = traces.comparisons(&rules.collect::<Vec<Decider>>(), 0)?;
        let costs: Vec<f64> = found.iter().map(|found| found.value).collect();
        state.evolution.tell(&asked, &costs);
        if let Some(share) = config.average_share {
            for (average, mean) in state.average.iter_mut().zip(state.evolution.mean()) {
                *average += share * (mean - *average);
            }
        }
        state.simulations += (asked.len() as u64 + 1) * each;
        Ok(costs)
    }

    /// Returns true if the mean is to be measured after this number of generations.
    pub(crate) fn is_check_due(&self) -> bool {
        self.generations().is_multiple_of(self.config.check_every)
    }

    /// Measures the mean of the distribution, and its average if there is one.
    pub(crate) fn check(&mut self) -> Result<(), TrainError> {
        let (config, state) = (&self.config, &mut self.state);
        let average = config.average_share.map(|_| state.average.clone());
        let mean = state.evolution.mean().to_vec();
        let rules: Vec<Vec<f64>> = iter::once(mean).chain(average).collect();
        state.simulations += rules.len() as u64 * config.choosing_traces;
        let generation = state.evolution.generations();
        let (checked, best) = config.check(&self.chooser, generation, rules)?;
        state.best = state.best.clone().better(best);
        self.checked.extend(checked);
        Ok(())
    }

    pub(crate) fn generations(&self) -> u64 {
        self.state.evolution.generations()
    }

    /// Returns the best rule that was measured.
    pub(crate) fn best(&self) -> LinearRule {
        self.config.rule(&self.state.best.weights)
    }
}

impl SearchState {
    /// Returns true if its rules have as many weights as those of this program; those of earlier programs may not.
    pub(crate) fn fits(&self, actions: ActionSet) -> bool {
        let weights = actions.outputs() * LINEAR;
        [&self.best.weights[..], &self.average, self.evolution.mean()]
            .iter()
            .all(|list| list.len() == weights)
    }
}

impl BestRule {
    /// Returns the rule with the lower value; of equals `self`.
    fn better(self, other: Self) -> Self {
        match other.value < self.value {
            true => other,
            false => self,
        }
    }
}
