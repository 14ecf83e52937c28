//! The start of a training: a linear rule that the network imitates.
//!
//! A training begins with a short [search](crate::rule_search) for a linear rule. Then the actor learns to imitate the
//! rule, at first in the states that the rule meets, then in those that the actor meets itself (DAgger: Ross, Gordon and
//! Bagnell 2011). From there on the learner continues with soft actor-critic.

use bufgym_agents::Examples;
use bufgym_agents::imitation::imitate as teach;
use bufgym_env::control::{ActionSet, Controller, cell_centre, run_controlled};
use bufgym_models::linear::{LINEAR, LinearFile};
use bufgym_models::{ActorWeights, Device, LinearRule};
use bufgym_sim::network::SimError;
use bufgym_sim::traffic::generate;
use bufgym_util::convert::index as index_of;
use bufgym_util::rng::{self, Split, trace_seed};

use crate::backend::Backend;
use crate::rule_search::{RuleSearch, RuleSearchConfig, SearchState};
use crate::simulations::{Decider, RunnablePolicy, Setting, TraceRef};
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

/// Continues the stored search of a training, or begins it.
pub(crate) fn search(
    config: &TrainConfig,
    backend: &Backend,
    stored: Option<SearchState>,
) -> Result<RuleSearch, TrainError> {
    let search = config.search();
    let settings = RuleSearchConfig {
        setting: config.setting(),
        seed: config.seed,
        stream: "start",
        first_trace: FIRST_TRACE,
        choosing_traces: whole(config, config.start.choosing_traces),
        generation_traces: whole(config, search.traces),
        candidates: config.start.candidates,
        step: search.step,
        check_every: CHECK_EVERY,
        average_share: Some(AVERAGE_SHARE),
        units: None,
    };
    RuleSearch::new(settings, backend, starts(config), stored)
}

/// The best rule of a search as a file: the policy `linear:FILE`.
pub(crate) fn rule_file(config: &TrainConfig, search: &RuleSearch) -> LinearFile {
    LinearFile {
        bufgym_version: env!("CARGO_PKG_VERSION").to_owned(),
        low_level: config.low_level.clone(),
        rule: search.best(),
        scenario: config.scenario_name().to_owned(),
        scenario_toml: config.scenario.to_toml(),
        objective: config.objective.to_string(),
        seed: config.seed,
        generations: search.state.best.generation,
        training: None,
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

/// Teaches an actor the rule. Returns its weights and the root mean squared difference of their actions.
pub(crate) fn imitate(
    config: &TrainConfig,
    mut weights: ActorWeights,
    rule: &LinearRule,
    device: &Device,
    backend: &Backend,
) -> Result<(ActorWeights, f32), TrainError> {
    let start = &config.start;
    let setting = config.setting();
    let count = setting.scenarios.len() as u64;
    let trace = |index: u64| TraceRef {
        scenario: index_of(index % count),
        seed: trace_seed(Split::Train, config.seed, FIRST_DAGGER_TRACE + index),
    };
    let each = whole(config, start.lesson_traces);
    let mut rng = rng::stream(config.seed, "imitation", 0);
    let mut examples: Vec<Examples> = Vec::new();
    let mut difference = f32::NAN;
    for number in 0..start.lessons {
        let student = match number {
            0 => Decider::linear(rule.clone()),
            _ => Decider::network(weights.clone()),
        };
        let traces: Vec<TraceRef> = (number * each..(number + 1) * each).map(trace).collect();
        let met = backend.teach(&setting, &traces, &student, rule)?;
        for met in met.into_iter().flatten() {
            of_ports(&mut examples, met.ports(), rule.outputs()).append(met);
        }
        let (steps, log_std) = (start.lesson_steps, start.log_std);
        (weights, difference) = teach(&weights, &examples, steps, log_std, &mut rng, device);
    }
    Ok((weights, difference))
}

/// Returns the teacher's actions in the states that the student meets on a trace, by number of ports.
///
/// # Errors
/// When the student does not fit the scenario.
///
/// # Panics
/// When the student is a rule.
pub(crate) fn dagger_round(
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
