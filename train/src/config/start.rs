//! The settings of the linear rule that a training starts from.

use bufgym_env::control::{ActionSet, cell_centre};
use bufgym_models::linear::LINEAR;
use bufgym_util::convert::floor_u64;
use serde::{Deserialize, Serialize};

use super::{Algorithm, Start, TrainConfig};

/// Generations between two measurements of the mean; also the least number of generations of a search.
pub(crate) const CHECK_EVERY: u64 = 4;

/// Largest number of generations of a search.
pub(crate) const MAX_GENERATIONS: u64 = 1_000_000;

/// Indices in [`LINEAR_FEATURES`](bufgym_models::linear::LINEAR_FEATURES).
const DROPS_MEAN: usize = 7;
const QUEUE_LOG: usize = 12;
const DROPS_RECENT: usize = 13;
const ARRIVALS_BEFORE: usize = 14;
const ACTIONS_MEAN: usize = 15;

/// The search for the linear rule that a training starts from, and the imitation of the rule by the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StartConfig {
    /// Initial weights for soft actor-critic. CMA-ES always starts from a rule, proximal policy optimisation never.
    pub from: Start,
    /// Weights of the rule that the search begins from, sixteen for each output in the order of
    /// [`LINEAR_FEATURES`](bufgym_models::linear::LINEAR_FEATURES). If empty, it begins from the best of a few rules.
    pub rule: Vec<f64>,
    /// Generations, at most 10^6. A new training makes no more of them than `share` allows, and none if that is fewer
    /// than four. 0: no search; without `rule` too, the training starts from random weights and random decisions.
    /// Default: 8, or 14 where decisions set early drop too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generations: Option<u64>,
    /// Largest share of a training that the generations take, 0 to 1: of all its simulations where `budget.steps` ends
    /// it, or of `budget.minutes`. Default: 0.8, or 0.65 where decisions set early drop too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Standard deviation of every weight in the first generation, 10^-6 to 10^3. The cell of a level is 0.25 wide and
    /// features are of order 1. Default: 0.2, or 0.12 where decisions set early drop too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
    /// Rules of a generation, 2 to 10,000.
    pub candidates: usize,
    /// Training traces of a generation, 1 to 10^6. Every generation has its own. Default: 16, or 8 where decisions set
    /// early drop too. For α alone, eight traces cannot distinguish rules, because they differ too little.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traces: Option<u64>,
    /// Training traces that choose between the means of generations and their averages, 1 to 10^6.
    pub choosing_traces: u64,
    /// Number of imitation rounds, each on further traces, 1 to 10,000. The first round uses the states that the rule
    /// meets, the others also those that the network meets.
    pub lessons: u64,
    /// Training traces of an imitation round, 1 to 10^6.
    pub lesson_traces: u64,
    /// Gradient updates of an imitation round, 1 to 10^6.
    pub lesson_steps: u64,
    /// Logarithm of the deviation, before tanh, that the network's actions start with; -5 to 2.
    pub log_std: f32,
}

impl Default for StartConfig {
    fn default() -> Self {
        Self {
            from: Start::default(),
            rule: Vec::new(),
            generations: None,
            share: None,
            step: None,
            candidates: 16,
            traces: None,
            choosing_traces: 32,
            lessons: 3,
            lesson_traces: 8,
            lesson_steps: 1_000,
            log_std: -1.4,
        }
    }
}

/// Settings of [`StartConfig`] whose defaults depend on the outputs that decisions set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SearchSettings {
    pub(crate) generations: u64,
    pub(crate) share: f64,
    pub(crate) step: f64,
    pub(crate) traces: u64,
}

impl TrainConfig {
    /// Returns the settings of the search for the rule to start from. With early drop, constant outputs are close to the
    /// optimum, and distant rules are worse. With α alone, a generation needs more traces to find the direction.
    pub(crate) fn search(&self) -> SearchSettings {
        let (generations, share, step, traces) = match self.actions() {
            ActionSet::Alpha => (8, 0.8, 0.2, 16),
            ActionSet::AlphaEarly | ActionSet::AlphaIngress => (14, 0.65, 0.12, 8),
        };
        let start = &self.start;
        let is_all = self.algorithm == Algorithm::Cma;
        let generations = if is_all { MAX_GENERATIONS } else { generations };
        SearchSettings {
            generations: start.generations.unwrap_or(generations),
            share: if is_all {
                1.0
            } else {
                start.share.unwrap_or(share)
            },
            step: start.step.unwrap_or(step),
            traces: start.traces.unwrap_or(traces),
        }
    }

    /// Generations of the search that the training starts with: no more than fit into its share of the
    /// simulations. Where only the time ends the training, that ends the search too.
    pub(crate) fn start_generations(&self) -> u64 {
        let search = self.search();
        if !self.may_start_from_rule() {
            return 0;
        }
        let Some(steps) = self.budget.steps else {
            return search.generations;
        };
        let rest = self.simulations_of(steps / self.decisions_per_trace(), steps);
        let each = self.generation_simulations();
        let most = match self.algorithm {
            Algorithm::Cma => rest as f64,
            // All of it, if the share is 1.
            _ => rest as f64 * search.share / (1.0 - search.share).max(f64::MIN_POSITIVE),
        };
        let fit = floor_u64(most / each.max(1) as f64);
        match search.generations.min(fit) {
            few if few < search.generations.min(CHECK_EVERY) => 0,
            enough => enough,
        }
    }

    /// Returns true if the training starts from a rule.
    pub(crate) fn starts_from_rule(&self) -> bool {
        let searches = self.search().generations > 0 || !self.start.rule.is_empty();
        self.may_start_from_rule() && (searches || self.algorithm == Algorithm::Cma)
    }

    pub(super) fn may_start_from_rule(&self) -> bool {
        match self.algorithm {
            Algorithm::Sac => self.start.from == Start::Rule,
            Algorithm::Ppo => false,
            Algorithm::Cma => true,
        }
    }

    /// Returns the rules that a search may begin from, unless the settings name one, `[outputs * LINEAR]` each.
    ///
    /// - α alone: α = 4 and α = 32 always; α = 1, but up to 32 where a port has just lost packets; and a rule whose
    ///   levels last.
    /// - With early drop: three of its levels, each with a high α; and no early drop in queues of up to 0.5 % of the
    ///   buffer, a gap of 256 at 1.6 % and of 16 from 5 % on. In a network also a rule that keeps queues short, with
    ///   α = 1/2 and a gap of 16: senders there need no more, and it leaves room for answers to queries.
    /// - Lossless packets: α = 1 at both sides, and three rules that give lossless packets more room than lossy ones.
    pub(crate) fn start_rules(&self) -> Vec<Vec<f64>> {
        if !self.start.rule.is_empty() {
            return vec![self.start.rule.clone()];
        }
        let centre = |level: usize| f64::from(cell_centre(level));
        let rule = |outputs: &[(f64, f64)]| {
            let mut weights = vec![0.0; outputs.len() * LINEAR];
            for (weights, (constant, drops)) in weights.chunks_exact_mut(LINEAR).zip(outputs) {
                weights[0] = *constant;
                weights[DROPS_MEAN] = *drops;
            }
            weights
        };
        match self.actions() {
            ActionSet::Alpha => vec![
                rule(&[(centre(4), 0.0)]),
                rule(&[(centre(7), 0.0)]),
                rule(&[(centre(2), 3.0)]),
                lasting(),
            ],
            ActionSet::AlphaEarly => {
                let mut by_queue = rule(&[(centre(7), 0.0), (-1.95, 0.0)]);
                by_queue[LINEAR + QUEUE_LOG] = 1.29;
                let in_network = self.scenario.is_fabric();
                let short_queues = in_network.then(|| rule(&[(centre(1), 0.0), (centre(7), 0.0)]));
                vec![
                    rule(&[(centre(5), 0.0), (centre(4), 0.0)]),
                    rule(&[(centre(7), 0.0), (centre(5), 0.0)]),
                    rule(&[(centre(7), 0.0), (centre(7), 0.0)]),
                    by_queue,
                ]
                .into_iter()
                .chain(short_queues)
                .collect()
            }
            ActionSet::AlphaIngress => [(2, 2), (2, 6), (0, 4), (4, 7)]
                .map(|(egress, ingress)| rule(&[(centre(egress), 0.0), (centre(ingress), 0.0)]))
                .to_vec(),
        }
    }

    /// Returns the simulations of a search of so many generations and of the following imitation rounds, including those
    /// of DT.
    pub(crate) fn start_simulations(&self, generations: u64) -> u64 {
        let start = &self.start;
        if generations == 0 && start.rule.is_empty() {
            return 0;
        }
        let begun = self.start_rules().len() as u64 + 1;
        let measured = begun + 2 * generations.div_ceil(CHECK_EVERY);
        measured * self.whole(start.choosing_traces)
            + generations * self.generation_simulations()
            + self.dagger_simulations()
    }

    /// Returns the simulations of all imitation rounds.
    pub(crate) fn dagger_simulations(&self) -> u64 {
        self.start.lessons * self.whole(self.start.lesson_traces)
    }

    /// Returns the simulations of a generation, including those of DT.
    fn generation_simulations(&self) -> u64 {
        (self.start.candidates as u64 + 1) * self.whole(self.search().traces)
    }

    /// Rounds a number of traces up so that every scenario has its turn equally often.
    pub(crate) fn whole(&self, traces: u64) -> u64 {
        traces.next_multiple_of(self.scenarios().len() as u64)
    }
}

/// Returns the weights of a rule whose levels last for some decisions: a high α for a port that has just lost packets,
/// and a low one for a port with many arrivals.
fn lasting() -> Vec<f64> {
    let mut weights = vec![0.0; LINEAR];
    weights[0] = 0.1;
    weights[DROPS_RECENT] = 3.0;
    weights[ARRIVALS_BEFORE] = -1.0;
    weights[ACTIONS_MEAN] = 0.7;
    weights
}
