//! The start of a training: a linear rule that the network imitates.
//!
//! A training begins with a short [search](crate::rule_search) for a linear rule. Then the actor learns to imitate the
//! rule, at first in the states that the rule meets, then in those that the actor meets itself (DAgger: Ross, Gordon and
//! Bagnell 2011). From there on the learner continues with soft actor-critic.

use bufgym_agents::Examples;
use bufgym_agents::imitation::imitate as teach;
use bufgym_env::control::Controller as _;
use bufgym_models::linear::LinearFile;
use bufgym_models::{ActorWeights, Device, LinearRule};
use bufgym_util::convert::index as index_of;
use bufgym_util::rng::{self, Split, trace_seed};

use crate::backend::Backend;
use crate::config::CHECK_EVERY;
use crate::rule_search::{RuleSearch, RuleSearchConfig, SearchState};
use crate::simulations::{Decider, TraceRef, of_ports};
use crate::{TrainConfig, TrainError};

/// Share with which the mean of a generation enters its moving average. Costs are largely noise, and the mean follows
/// it; the average does so less. (Polyak and Juditsky 1992)
const AVERAGE_SHARE: f64 = 0.2;

/// Index of the first training trace of a search; those of the rollouts begin at 0.
const FIRST_TRACE: u64 = 1 << 40;

/// Index of the first training trace of the imitation rounds.
const FIRST_DAGGER_TRACE: u64 = 1 << 41;

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
        choosing_traces: config.whole(config.start.choosing_traces),
        generation_traces: config.whole(search.traces),
        candidates: config.start.candidates,
        step: search.step,
        check_every: CHECK_EVERY,
        average_share: Some(AVERAGE_SHARE),
        units: None,
    };
    RuleSearch::new(settings, backend, config.start_rules(), stored)
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
    let each = config.whole(start.lesson_traces);
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
