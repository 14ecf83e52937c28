//! The start of a training: a linear rule that the network imitates.
//!
//! A training begins with a short search over whole traces for the weights of a [`LinearRule`] (CMA-ES). The search
//! ranks rules by their results on whole traces. So it finds behaviour whose value no single decision shows, such as
//! giving room to a port only after it has lost packets. Then the actor learns to imitate the rule, at first in the
//! states that the rule meets, then in those that the actor meets itself (DAgger: Ross, Gordon and Bagnell 2011). From
//! there on the learner continues with soft actor-critic.
//!
//! The search can be stored between any two generations.

use std::ops::Range;

use bufgym_agents::imitation::imitate as teach;
use bufgym_agents::{Evolution, Examples};
use bufgym_env::control::{ActionSet, Controller, cell_centre, run_controlled};
use bufgym_models::linear::{LINEAR, LinearFile};
use bufgym_models::{ActorWeights, Device, LinearRule};
use bufgym_sim::network::SimError;
use bufgym_sim::traffic::generate;
use bufgym_util::convert::index as index_of;
use bufgym_util::rng::{self, Split, trace_seed};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use crate::backend::Backend;
use crate::simulations::{Decider, RunnablePolicy, Setting, TraceRef};
use crate::validation::ValidationSet;
use crate::{TrainConfig, TrainError};

/// Share with which the mean of a generation enters its moving average. Costs are largely noise, and the mean follows
/// it; the average does so less. (Polyak and Juditsky 1992)
const AVERAGE_SHARE: f64 = 0.2;

/// Index of the first training trace of a search; those of the rollouts begin at 0.
const FIRST_TRACE: u64 = 1 << 40;

/// Index of the first training trace of the imitation rounds.
const FIRST_DAGGER_TRACE: u64 = 1 << 41;

/// Generations between two measurements of the mean; also the least number of generations of a search.
pub(crate) const CHECK_EVERY: u64 = 4;

/// Indices in [`LINEAR_FEATURES`](bufgym_models::linear::LINEAR_FEATURES).
const DROPS_MEAN: usize = 7;
const QUEUE_LOG: usize = 12;
const DROPS_RECENT: usize = 13;
const ARRIVALS_BEFORE: usize = 14;
const ACTIONS_MEAN: usize = 15;

/// A search that is not finished.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartSearch {
    evolution: Evolution,
    /// Moving average of the distribution's mean.
    average: Vec<f64>,
    rng: Xoshiro256PlusPlus,
    best: Measured,
    simulations: u64,
}

/// A rule with its result on the traces that choose.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Measured {
    generation: u64,
    weights: Vec<f64>,
    /// Same as [`ValidationResult::value`](crate::ValidationResult::value).
    value: f64,
}

impl StartSearch {
    /// Measures the rules that a search may begin from, and begins from the best.
    pub(crate) fn begin(config: &TrainConfig, chooser: &ValidationSet) -> Result<Self, TrainError> {
        let starts = starts(config);
        let rules = rules(config, starts.iter().map(Vec::as_slice));
        let values = chooser.values(&rules)?;
        let measured = starts.into_iter().zip(values);
        let best = measured.map(|(weights, value)| Measured {
            generation: 0,
            weights,
            value,
        });
        let best = best.reduce(Measured::better).expect("there are starts");
        let scales = vec![1.0; best.weights.len()];
        Ok(Self {
            average: best.weights.clone(),
            evolution: Evolution::new(best.weights.clone(), &scales, config.search().step),
            rng: rng::stream(config.seed, "start", 0),
            simulations: (rules.len() as u64 + 1) * whole(config, config.start.choosing_traces),
            best,
        })
    }

    /// Runs one generation on traces of its own.
    pub(crate) fn generation(
        &mut self,
        config: &TrainConfig,
        chooser: &ValidationSet,
        backend: &Backend,
    ) -> Result<(), TrainError> {
        let start = &config.start;
        let asked = self.evolution.ask(start.candidates, &mut self.rng);
        let rules = rules(config, asked.iter().map(Vec::as_slice));
        let each = whole(config, config.search().traces);
        let first = whole(config, start.choosing_traces) + self.generations() * each;
        let costs = traces(config, first..first + each, backend)?.values(&rules)?;
        self.evolution.tell(&asked, &costs);
        for (average, mean) in self.average.iter_mut().zip(self.evolution.mean()) {
            *average += AVERAGE_SHARE * (mean - *average);
        }
        self.simulations += (rules.len() as u64 + 1) * each;
        match self.is_measured() {
            true => self.measure(config, chooser),
            false => Ok(()),
        }
    }

    /// Returns true if the mean of the last generation has been measured.
    pub(crate) fn is_measured(&self) -> bool {
        self.generations().is_multiple_of(CHECK_EVERY)
    }

    /// Measures the mean of the distribution and its average, if that has not been done.
    pub(crate) fn conclude(
        &mut self,
        config: &TrainConfig,
        chooser: &ValidationSet,
    ) -> Result<(), TrainError> {
        match self.is_measured() {
            true => Ok(()),
            false => self.measure(config, chooser),
        }
    }

    fn measure(&mut self, config: &TrainConfig, chooser: &ValidationSet) -> Result<(), TrainError> {
        let measured = [self.evolution.mean(), &self.average];
        let values = chooser.values(&rules(config, measured.into_iter()))?;
        self.simulations += measured.len() as u64 * whole(config, config.start.choosing_traces);
        for (weights, value) in measured.into_iter().zip(values) {
            let found = Measured {
                generation: self.generations(),
                weights: weights.to_vec(),
                value,
            };
            self.best = self.best.clone().better(found);
        }
        Ok(())
    }

    pub(crate) fn generations(&self) -> u64 {
        self.evolution.generations()
    }

    /// Simulations so far, those of DT included.
    pub(crate) fn simulations(&self) -> u64 {
        self.simulations
    }

    /// Returns true if its rules have as many weights as those of this program; those of earlier programs may not.
    pub(crate) fn fits(&self, actions: ActionSet) -> bool {
        let weights = actions.outputs() * LINEAR;
        [&self.best.weights[..], &self.average, self.evolution.mean()]
            .iter()
            .all(|list| list.len() == weights)
    }

    /// The best rule that was measured, and its metric relative to DT's.
    pub(crate) fn best(&self, actions: ActionSet) -> (LinearRule, f64) {
        let rule = LinearRule::from_slice(actions, &self.best.weights);
        (rule, self.best.value)
    }
}

/// The best rule of a search as a file: the policy `linear:FILE`.
pub(crate) fn rule_file(config: &TrainConfig, search: &StartSearch) -> LinearFile {
    LinearFile {
        bufgym_version: env!("CARGO_PKG_VERSION").to_owned(),
        low_level: config.low_level.clone(),
        rule: search.best(config.actions()).0,
        scenario: config.scenario_name().to_owned(),
        scenario_toml: config.scenario.to_toml(),
        objective: config.objective.to_string(),
        seed: config.seed,
        generations: search.best.generation,
        training: None,
    }
}

impl Measured {
    /// Returns the measurement with the lower value; of equals `self`.
    fn better(self, other: Self) -> Self {
        match other.value < self.value {
            true => other,
            false => self,
        }
    }
}

/// Returns the rules that a search may begin from, unless the settings name one, `[outputs * LINEAR]` each.
///
/// - α alone: α = 4 and α = 32 always; α = 1, but up to 32 where a port has just lost packets; and a rule whose levels
///   last.
/// - With early drop: three of its levels, each with a high α; and no early drop in queues of up to 0.5 % of the
///   buffer, a gap of 256 at 1.6 % and of 16 from 5 % on. In a network also a rule that keeps queues short, with α = 1/2 and a
///   gap of 16: senders there need no more, and it leaves room for answers to queries.
/// - Lossless packets: α = 1 at both sides, and three rules that give lossless packets more room than lossy ones.
fn starts(config: &TrainConfig) -> Vec<Vec<f64>> {
    let start = &config.start;
    if !start.rule.is_empty() {
        return vec![start.rule.clone()];
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
    match config.actions() {
        ActionSet::Alpha => vec![
            rule(&[(centre(4), 0.0)]),
            rule(&[(centre(7), 0.0)]),
            rule(&[(centre(2), 3.0)]),
            lasting(),
        ],
        ActionSet::AlphaEarly => {
            let mut by_queue = rule(&[(centre(7), 0.0), (-1.95, 0.0)]);
            by_queue[LINEAR + QUEUE_LOG] = 1.29;
            let in_network = config.scenario.is_fabric();
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

/// Returns the simulations of a search of so many generations and of the following imitation rounds, including those of
/// DT.
pub(crate) fn start_simulations(config: &TrainConfig, generations: u64) -> u64 {
    let start = &config.start;
    if generations == 0 && start.rule.is_empty() {
        return 0;
    }
    let begun = starts(config).len() as u64 + 1;
    let measured = begun + 2 * generations.div_ceil(CHECK_EVERY);
    measured * whole(config, start.choosing_traces)
        + generations * generation_simulations(config)
        + dagger_simulations(config)
}

/// Returns the simulations of all imitation rounds.
pub(crate) fn dagger_simulations(config: &TrainConfig) -> u64 {
    config.start.lessons * whole(config, config.start.lesson_traces)
}

/// Returns the simulations of a generation, including those of DT.
pub(crate) fn generation_simulations(config: &TrainConfig) -> u64 {
    (config.start.candidates as u64 + 1) * whole(config, config.search().traces)
}

/// Rounds a number of traces up so that every scenario has its turn equally often.
fn whole(config: &TrainConfig, traces: u64) -> u64 {
    traces.next_multiple_of(config.scenarios().len() as u64)
}

/// The rules with these weights.
fn rules<'a>(config: &TrainConfig, weights: impl Iterator<Item = &'a [f64]>) -> Vec<Decider> {
    let rule = |weights| Decider::linear(LinearRule::from_slice(config.actions(), weights));
    weights.map(rule).collect()
}

/// The traces that choose between rules.
pub(crate) fn chooser(
    config: &TrainConfig,
    backend: &Backend,
) -> Result<ValidationSet, TrainError> {
    let indices = 0..whole(config, config.start.choosing_traces);
    traces(config, indices, backend)
}

/// Training traces of the search with these indices.
fn traces(
    config: &TrainConfig,
    indices: Range<u64>,
    backend: &Backend,
) -> Result<ValidationSet, TrainError> {
    let indices = FIRST_TRACE + indices.start..FIRST_TRACE + indices.end;
    let source = (Split::Train, config.seed);
    ValidationSet::new(backend, config.setting(), source, indices)
}

/// Teaches an actor the rule. Returns its weights and the root mean squared difference of their actions.
pub(crate) fn imitate(
    config: &TrainConfig,
    mut weights: ActorWeights,
    rule: &LinearRule,
    device: &Device,
    backend: &Backend,
) -> Result<(ActorWeights, f32), TrainError> {
    let start = &config.start;
    let each = whole(config, start.lesson_traces);
    let mut rng = rng::stream(config.seed, "imitation", 0);
    let mut examples: Vec<Examples> = Vec::new();
    let mut difference = f32::NAN;
    for number in 0..start.lessons {
        let indices = number * each..(number + 1) * each;
        let student = match number {
            0 => Decider::linear(rule.clone()),
            _ => Decider::network(weights.clone()),
        };
        let met = dagger_round(config, &student, rule, indices, backend)?;
        let outputs = rule.outputs();
        for met in met {
            of_ports(&mut examples, met.ports(), outputs).append(met);
        }
        let (steps, log_std) = (start.lesson_steps, start.log_std);
        (weights, difference) = teach(&weights, &examples, steps, log_std, &mut rng, device);
    }
    Ok((weights, difference))
}

/// Returns the teacher's actions in the states that the student meets, by trace and number of ports.
fn dagger_round(
    config: &TrainConfig,
    student: &Decider,
    teacher: &LinearRule,
    indices: Range<u64>,
    backend: &Backend,
) -> Result<Vec<Examples>, TrainError> {
    let setting = config.setting();
    let count = setting.scenarios.len() as u64;
    let traces = indices.map(|index| TraceRef {
        scenario: index_of(index % count),
        seed: trace_seed(Split::Train, config.seed, FIRST_DAGGER_TRACE + index),
    });
    let traces: Vec<TraceRef> = traces.collect();
    let met = backend.teach(&setting, &traces, student, teacher)?;
    Ok(met.into_iter().flatten().collect())
}

/// Returns the teacher's actions in the states that the student meets on a trace, by number of ports.
///
/// # Errors
/// When the student does not fit the scenario.
///
/// # Panics
/// When the student is a rule.
pub(crate) fn dagger_round_on(
    setting: &Setting,
    at: TraceRef,
    student: &RunnablePolicy,
    teacher: &LinearRule,
) -> Result<Vec<Examples>, SimError> {
    let scenario = &setting.scenarios[at.scenario];
    let trace = generate(scenario, at.seed);
    let mut student = Student {
        examples: Vec::new(),
        controller: student.controller(),
        teacher: teacher.clone(),
        taught: Vec::new(),
    };
    run_controlled(scenario, &trace, &mut student, &setting.options())?;
    Ok(student.examples)
}

/// A student controller with a teacher, whose action is recorded at every decision.
struct Student {
    controller: Box<dyn Controller>,
    teacher: LinearRule,
    taught: Vec<f32>,
    /// Examples for every number of ports of a switch, in the order in which they are met.
    examples: Vec<Examples>,
}

/// The examples of switches with so many ports.
fn of_ports(all: &mut Vec<Examples>, ports: usize, outputs: usize) -> &mut Examples {
    let found = all.iter().position(|examples| examples.ports() == ports);
    let place = found.unwrap_or_else(|| {
        all.push(Examples::new(ports, outputs));
        all.len() - 1
    });
    &mut all[place]
}

impl Controller for Student {
    fn outputs(&self) -> usize {
        self.controller.outputs()
    }

    fn act(&mut self, observation: &[f32], ports: usize, action: &mut [f32]) {
        self.taught.resize(action.len(), 0.0);
        self.teacher.act(observation, ports, &mut self.taught);
        let outputs = action.len() / ports;
        of_ports(&mut self.examples, ports, outputs).push(observation, &self.taught);
        self.controller.act(observation, ports, action);
    }
}
