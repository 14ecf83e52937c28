//! The search for the weights of a [`LinearRule`](bufgym_models::LinearRule) as a tuning of its own.
//!
//! It runs CMA-ES ([`Evolution`](bufgym_agents::Evolution)) over whole traces. The result is a mean of the distribution.

use std::time::Instant;

use bufgym_env::control::{ActionSet, LowLevelPolicy, Objective, cell_centre};
use bufgym_eval::metric::Metric;
use bufgym_eval::tune;
use bufgym_models::LinearFile;
use bufgym_models::linear::LINEAR;
use bufgym_sim::scenario::Scenario;
use serde::Serialize;

use crate::TrainError;
use crate::backend::Backend;
use crate::config::default_low_level;
use crate::limits::require_least;
use crate::rule_search::{RuleSearch, RuleSearchConfig};
use crate::simulations::Setting;

pub use crate::rule_search::CheckedRule;

/// Default number of generations: some ten minutes on two cores.
const GENERATIONS: u64 = 25;

/// Default number of candidates of a generation.
const CANDIDATES: usize = 24;

/// Default number of traces of a generation.
const GENERATION_TRACES: u64 = 16;

/// Generations between two measurements of the mean.
const CHECK_EVERY: u64 = 5;

/// The search starts from the rule that always sets this level of α on every port, and
const START_ALPHA: usize = 4;

/// this level of early drop where decisions set it, and the same α at the ingress where they set that.
const START_EARLY: usize = 3;

/// Standard deviation of every weight in the first generation. The cell of a level of α is 0.25
/// wide and features are of order 1.
const START_STEP: f64 = 0.4;

/// Weights are rounded to multiples of 1 over this. Further digits are noise, and short numbers are
/// readable.
const UNITS: f64 = 1e4;

/// Settings of a search.
#[derive(Clone, Debug)]
pub struct LinearConfig {
    /// Switch, transport and traffic.
    pub scenario: Scenario,
    /// Objective whose [metric](Metric::of) judges the rule.
    pub objective: Objective,
    /// The heuristic whose α the rule sets.
    pub low_level: LowLevelPolicy,
    /// Seed of the traces and of the search.
    pub seed: u64,
    /// Training traces that choose between the means, at least 1. The parameters of other policies
    /// are tuned on the same traces.
    pub traces: u64,
    /// Generations, at least 1.
    pub generations: u64,
    /// Candidates of a generation, at least 2.
    pub candidates: usize,
    /// Training traces of a generation, at least 1.
    pub generation_traces: u64,
}

impl LinearConfig {
    /// Returns the default settings; the heuristic is that of a training.
    pub fn new(scenario: Scenario, seed: u64) -> LinearConfig {
        LinearConfig {
            scenario,
            objective: Objective::FCT,
            low_level: default_low_level(ActionSet::Alpha, &Scenario::default()),
            seed,
            traces: tune::TRACES,
            generations: GENERATIONS,
            candidates: CANDIDATES,
            generation_traces: GENERATION_TRACES,
        }
    }

    fn search(&self) -> RuleSearchConfig {
        RuleSearchConfig {
            setting: Setting {
                scenarios: vec![self.scenario.clone()],
                metric: Metric::of(&self.objective),
                low_level: self.low_level.clone(),
            },
            seed: self.seed,
            stream: "linear search",
            first_trace: 0,
            choosing_traces: self.traces,
            generation_traces: self.generation_traces,
            candidates: self.candidates,
            step: START_STEP,
            check_every: CHECK_EVERY,
            average_share: None,
            units: Some(UNITS),
        }
    }

    fn check(&self) -> Result<(), TrainError> {
        require_least(&[
            ("traces", self.traces, 1),
            ("generations", self.generations, 1),
            ("candidates", self.candidates as u64, 2),
            ("generation_traces", self.generation_traces, 1),
        ])
    }
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinearTuning {
    /// The best of `checked`; of equals the first.
    pub best: CheckedRule,
    /// All measured means in the order of the search, beginning with the start.
    pub checked: Vec<CheckedRule>,
    /// Simulations run, including those of DT.
    pub simulations: u64,
    /// Wall time, seconds.
    pub wall_s: f64,
}

impl LinearTuning {
    /// The best rule as a file.
    pub fn file(&self, config: &LinearConfig) -> LinearFile {
        LinearFile {
            bufgym_version: env!("CARGO_PKG_VERSION").to_owned(),
            low_level: config.low_level.clone(),
            rule: self.best.weights.clone(),
            scenario: config.scenario.name.clone(),
            scenario_toml: config.scenario.to_toml(),
            objective: config.objective.to_string(),
            seed: config.seed,
            generations: self.best.generation,
            training: Some(self.best.result.clone()),
        }
    }
}

/// A finished generation.
#[derive(Clone, Copy, Debug)]
pub struct Generation<'a> {
    /// Number of the generation, from 1.
    pub number: u64,
    /// Lowest cost of the candidates, on the generation's own traces: the metric relative to DT's.
    pub best: f64,
    /// Mean cost of the candidates.
    pub mean: f64,
    /// Step size after the generation.
    pub step: f64,
    /// Mean of the distribution after the generation, if it was measured.
    pub checked: Option<&'a CheckedRule>,
}

/// Searches the weights on training traces, with the simulations on `backend`, which does not change the result.
/// `on_generation` is called after every generation.
///
/// # Errors
/// [`TrainError::Setting`] when a number of the configuration is too low,
/// [`TrainError::Simulation`] when the scenario makes no sense or the heuristic does not fit it, and
/// [`TrainError::Remote`] when the hosts fail.
pub fn tune_linear(
    config: &LinearConfig,
    backend: &Backend,
    on_generation: &mut dyn FnMut(&Generation<'_>),
) -> Result<LinearTuning, TrainError> {
    let started = Instant::now();
    config.check()?;
    let starts = vec![start(ActionSet::of(&config.low_level))];
    let mut search = RuleSearch::new(config.search(), backend, starts, None)?;
    for number in 1..=config.generations {
        let costs = search.generation()?;
        let due = search.is_check_due() || number == config.generations;
        if due {
            search.check()?;
        }
        on_generation(&Generation {
            number,
            best: costs.iter().copied().fold(f64::INFINITY, f64::min),
            mean: costs.iter().sum::<f64>() / costs.len() as f64,
            step: search.state.evolution.step(),
            checked: search.checked.last().filter(|_| due),
        });
    }
    let RuleSearch { checked, state, .. } = search;
    // Every generation has at most one of them.
    let mut best = checked.iter();
    let best = best.find(|rule| rule.generation == state.best.generation);
    Ok(LinearTuning {
        best: best.expect("the best is one of them").clone(),
        checked,
        simulations: state.simulations,
        wall_s: started.elapsed().as_secs_f64(),
    })
}

/// Returns the start of the search, `[outputs * LINEAR]`.
fn start(actions: ActionSet) -> Vec<f64> {
    let mut start = vec![0.0; actions.outputs() * LINEAR];
    let second = match actions {
        ActionSet::Alpha | ActionSet::AlphaEarly => START_EARLY,
        ActionSet::AlphaIngress => START_ALPHA,
    };
    let levels = [START_ALPHA, second].map(cell_centre);
    for (constant, level) in start.iter_mut().step_by(LINEAR).zip(levels) {
        *constant = f64::from(level);
    }
    start
}

#[cfg(test)]
mod tests {
    use bufgym_env::control::ALPHAS;
    use bufgym_models::LinearRule;

    use super::*;

    fn small(generations: u64) -> LinearConfig {
        let mut scenario = Scenario::default();
        let settings = [
            "ports=4",
            "active_ports=2..4",
            "incast_degree=2..3",
            "flows=40..60",
            "buffer_bytes=200000",
        ];
        scenario.set_all(settings).unwrap();
        LinearConfig {
            traces: 3,
            generations,
            candidates: 4,
            generation_traces: 2,
            ..LinearConfig::new(scenario, 5)
        }
    }

    fn tuned(config: &LinearConfig) -> LinearTuning {
        tune_linear(config, &Backend::default(), &mut |_| ()).unwrap()
    }

    #[test]
    fn the_search_repeats_itself_on_any_number_of_threads() {
        let config = small(6);
        let run = |count| {
            let mut told = Vec::new();
            let backend = Backend::default().with_threads(count).unwrap();
            let found = tune_linear(&config, &backend, &mut |generation| {
                told.push((generation.number, generation.checked.is_some()));
            });
            (
                LinearTuning {
                    wall_s: 0.0,
                    ..found.unwrap()
                },
                told,
            )
        };
        let (found, told) = run(1);
        assert_eq!((found.clone(), told.clone()), run(3));
        let looks: Vec<u64> = told
            .iter()
            .filter(|(_, due)| *due)
            .map(|(n, _)| *n)
            .collect();
        assert_eq!(looks, [5, 6]);
        let generations: Vec<u64> = found.checked.iter().map(|c| c.generation).collect();
        assert_eq!(generations, [0, 5, 6]);
        assert_eq!(found.simulations, 3 + 3 * 3 + 6 * 5 * 2);
        assert!(
            found
                .checked
                .iter()
                .all(|c| found.best.result.value <= c.result.value)
        );
        assert_ne!(found.checked[1].weights, found.checked[0].weights);
    }

    #[test]
    fn it_starts_from_the_same_alpha_everywhere() {
        let found = tuned(&small(1));
        assert_eq!(ALPHAS[START_ALPHA], 4.0);
        assert_eq!(found.checked[0].weights, LinearRule::constant(&[0.125]));
        let config = LinearConfig {
            low_level: "dt+early".parse().unwrap(),
            ..small(1)
        };
        let found = tuned(&config);
        assert_eq!(
            found.checked[0].weights,
            LinearRule::constant(&[0.125, -0.125])
        );
        assert_eq!(found.file(&config).rule.actions(), ActionSet::AlphaEarly);
    }

    #[test]
    fn what_is_kept_says_where_it_comes_from() {
        let config = LinearConfig {
            low_level: "abm".parse().unwrap(),
            objective: "loss".parse().unwrap(),
            ..small(1)
        };
        let found = tuned(&config);
        let file = found.file(&config);
        let origin = std::path::Path::new("f");
        assert_eq!(
            LinearFile::parse(file.to_json().as_bytes(), origin).unwrap(),
            file
        );
        assert_eq!(file.low_level, config.low_level);
        assert_eq!((file.objective.as_str(), file.seed), ("loss", 5));
        assert_eq!(
            Scenario::from_toml_str(&file.scenario_toml, "f").unwrap(),
            config.scenario
        );
        assert_eq!(file.training.unwrap().traces, 3);
    }

    #[test]
    fn numbers_that_are_too_low_are_named() {
        let refused = |change: &dyn Fn(&mut LinearConfig)| {
            let mut config = small(1);
            change(&mut config);
            tune_linear(&config, &Backend::default(), &mut |_| ())
                .unwrap_err()
                .to_string()
        };
        assert!(refused(&|c| c.traces = 0).starts_with("traces: 0"));
        assert!(refused(&|c| c.generations = 0).starts_with("generations: 0"));
        assert!(refused(&|c| c.candidates = 1).starts_with("candidates: 1"));
        assert!(refused(&|c| c.generation_traces = 0).starts_with("generation_traces: 0"));
        assert!(refused(&|c| c.scenario.network.ports = 1).contains("ports"));
    }
}
