//! The observations of a learned policy on training traces. Exports of a network are calibrated and
//! checked with them.

use bufgym_env::control::{Controller, run_controlled};
use bufgym_export::{OBSERVATION, Recording};
use bufgym_sim::scenario::{RangeU32, Scenario};
use bufgym_util::rng::Split;
use rayon::prelude::*;

use super::{Entrant, run_options};
use crate::traces::{EvalError, NumberedTrace, split_traces};

/// An error that prevents the collection of observations.
#[derive(Debug, thiserror::Error)]
pub enum ObservationsError {
    /// A rule has no observation.
    #[error("{0} is a rule: only a learned policy observes anything")]
    NotLearned(String),
    /// No decision was due on any trace.
    #[error("no decision was due on {0} traces of the scenario: there is nothing to record")]
    NoDecisions(u64),
    /// The scenario is invalid, or a trace cannot be run.
    #[error(transparent)]
    Eval(#[from] EvalError),
}

/// Number of training traces that exports are calibrated on.
const EXPORT_TRACES: u64 = 4;
/// Largest number of flows of such a trace: ten times those of the largest preset.
const EXPORT_FLOWS: u32 = 20_000;
/// Largest number of decisions on such a trace: several times those of any preset.
const EXPORT_DECISIONS: u64 = 20_000;
/// Largest size of the observations of such a trace, bytes.
const EXPORT_BYTES: u64 = 128 << 20;
/// Seed of these traces. It is fixed, so that the same weights always round to the same integers.
const EXPORT_SEED: u64 = 1;

/// Returns the observations for calibrating exports of a policy: [`collect`] on four fixed training traces,
/// of at most 20,000 flows and 20,000 decisions each and 128 MiB of observations.
///
/// # Errors
/// Returns the errors of [`collect`].
pub fn for_export(scenario: &Scenario, entrant: &Entrant) -> Result<Recording, ObservationsError> {
    collect(&bounded(scenario), entrant, EXPORT_SEED, EXPORT_TRACES)
}

/// Returns the scenario with traces that are short enough for an export. A checkpoint may come from anybody,
/// with a scenario of any size.
fn bounded(scenario: &Scenario) -> Scenario {
    let observation = (scenario.network.ports as usize * OBSERVATION * size_of::<f32>()) as u64;
    let decisions = (EXPORT_BYTES / observation).clamp(1, EXPORT_DECISIONS);
    let RangeU32 { min, max } = scenario.traffic.flows;
    scenario.clone().with(|changed| {
        changed.traffic.flows = RangeU32::new(min.min(EXPORT_FLOWS), max.min(EXPORT_FLOWS));
        changed.control.max_decisions = match scenario.control.max_decisions {
            0 => decisions,
            limit => limit.min(decisions),
        };
    })
}

/// Runs `entrant` on the first `traces` training traces of `seed` and returns all its observations,
/// ordered by trace, then by time. The result does not depend on the number of threads.
///
/// One observation is `ports * 40` numbers. A trace of `ndt-16x1g` has between some hundred and some
/// thousand observations.
///
/// # Errors
/// Fails if the entrant is not a learned policy, does not fit the scenario, or makes no decision.
///
/// ```
/// use bufgym_sim::scenario::Scenario;
/// use bufgym_eval::Entrant;
/// use bufgym_eval::entrant::observations;
/// use bufgym_models::LinearRule;
/// # use bufgym_models::LinearFile;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut scenario = Scenario::preset("ndt-16x1g")?;
/// scenario.set("flows=100..100")?;
/// # let policy = Entrant::linear("linear", &LinearFile {
/// #     bufgym_version: String::new(), low_level: "dt".parse()?, rule: LinearRule::constant(&[0.5]),
/// #     scenario: String::new(), scenario_toml: String::new(), objective: String::new(), seed: 1,
/// #     generations: 0, training: None,
/// # });
/// let recording = observations::collect(&scenario, &policy, 1, 2)?;
/// assert_eq!(recording.observation(0).len(), 16 * 40);
/// # Ok(())
/// # }
/// ```
pub fn collect(
    scenario: &Scenario,
    entrant: &Entrant,
    seed: u64,
    traces: u64,
) -> Result<Recording, ObservationsError> {
    let of_traces = split_traces(scenario, Split::Train, seed, traces)?
        .par_iter()
        .map(|numbered| on_trace(scenario, entrant, numbered))
        .collect::<Result<Vec<Vec<f32>>, ObservationsError>>()?;
    let recording = Recording {
        ports: scenario.port_count(),
        observations: of_traces.concat(),
    };
    match recording.count() {
        0 => Err(ObservationsError::NoDecisions(traces)),
        _ => Ok(recording),
    }
}

/// Collects all observations of one run, `[decisions, ports, HISTORY, FEATURES]`.
fn on_trace(
    scenario: &Scenario,
    entrant: &Entrant,
    numbered: &NumberedTrace,
) -> Result<Vec<f32>, ObservationsError> {
    let (controller, low_level) = entrant
        .controller()
        .ok_or_else(|| ObservationsError::NotLearned(entrant.name().to_owned()))?;
    let mut collector = Collector {
        controller,
        observations: Vec::new(),
    };
    let options = run_options(low_level, None);
    run_controlled(scenario, &numbered.trace, &mut collector, &options)
        .map_err(EvalError::simulation(entrant.name(), numbered))?;
    Ok(collector.observations)
}

/// Passes every observation to a controller and keeps a copy of it.
struct Collector {
    controller: Box<dyn Controller>,
    observations: Vec<f32>,
}

impl Controller for Collector {
    fn outputs(&self) -> usize {
        self.controller.outputs()
    }

    fn act(&mut self, observation: &[f32], ports: usize, action: &mut [f32]) {
        self.observations.extend_from_slice(observation);
        self.controller.act(observation, ports, action);
    }
}

#[cfg(test)]
mod tests {
    use bufgym_env::control::cell_centre;
    use bufgym_models::checkpoint::Manifest;
    use bufgym_models::{ActorWeights, FastActor};
    use bufgym_util::rng;

    use super::*;

    fn scenario() -> Scenario {
        let mut scenario = Scenario::default();
        for change in ["flows=60", "active_ports=3", "buffer_bytes=200000"] {
            scenario.set(change).unwrap();
        }
        scenario
    }

    fn learned() -> (ActorWeights, Entrant) {
        let weights = ActorWeights::random(&mut rng::stream(1, "test", 0));
        let manifest = Manifest::new("ndt-16x1g", "", "fct", 1);
        let entrant = Entrant::from_checkpoint("ndt:test", &weights, &manifest);
        (weights, entrant)
    }

    #[test]
    fn traces_follow_each_other_and_seeds_differ() {
        let (_, entrant) = learned();
        let of = |seed, traces| collect(&scenario(), &entrant, seed, traces).unwrap();
        let (one, two) = (of(1, 1), of(1, 2));
        assert!(two.observations.starts_with(&one.observations));
        assert!(two.count() > one.count());
        assert_eq!(two, of(1, 2));
        assert_ne!(two, of(2, 2));
    }

    #[test]
    fn the_actions_seen_are_those_of_the_policy() {
        let (weights, entrant) = learned();
        let recording = collect(&scenario(), &entrant, 1, 1).unwrap();
        let mut actor = FastActor::new(&weights);
        let decide = |actor: &mut FastActor, row: &[f32]| -> Vec<f32> {
            let (mean, _) = actor.forward(row, 16);
            let index = |mean: &f32| bufgym_env::control::action_index(mean.tanh());
            mean.iter().map(|mean| cell_centre(index(mean))).collect()
        };
        assert!(recording.count() > 20);
        for step in 1..recording.count() {
            let decided = decide(&mut actor, recording.observation(step - 1));
            let seen = recording.observation(step).chunks_exact(OBSERVATION);
            let seen: Vec<f32> = seen.map(|port| port[OBSERVATION - 2]).collect();
            assert_eq!(seen, decided, "after decision {step}");
        }
    }

    #[test]
    fn an_export_simulates_little_of_a_scenario_of_any_size() {
        assert_eq!(bounded(&scenario()).traffic.flows, scenario().traffic.flows);
        let mut large = scenario();
        for change in ["flows=10000000", "ports=4096", "workload=data_mining"] {
            large.set(change).unwrap();
        }
        let small = bounded(&large);
        assert_eq!(
            (small.traffic.flows.min, small.traffic.flows.max),
            (20_000, 20_000)
        );
        let bytes = small.control.max_decisions * 4_096 * 40 * 4;
        assert!(bytes <= EXPORT_BYTES && bytes > EXPORT_BYTES / 2, "{bytes}");
        for preset in Scenario::presets() {
            let preset = preset.scenario();
            if preset.is_fabric() {
                continue;
            }
            let limited = bounded(&preset);
            assert_eq!(limited.traffic.flows, preset.traffic.flows);
            assert!(limited.control.max_decisions > 8_000, "{}", preset.name);
        }
    }

    #[test]
    fn a_rule_and_a_quiet_scenario_have_nothing_to_collect() {
        let rule = collect(&scenario(), &Entrant::baseline(), 1, 1).unwrap_err();
        assert!(rule.to_string().contains("dt"), "{rule}");
        let mut quiet = scenario();
        for change in ["flows=1", "buffer_bytes=1000000000"] {
            quiet.set(change).unwrap();
        }
        let nothing = collect(&quiet, &learned().1, 1, 2).unwrap_err();
        assert!(nothing.to_string().contains("2 traces"), "{nothing}");
    }
}
