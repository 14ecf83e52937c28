//! What a learned policy saw on training traces: the inputs that exports of a network are checked
//! and calibrated with.

use bufgym_env::control::{ControlEnv, ControlOptions, Pause};
use bufgym_export::Recording;
use bufgym_sim::network::SimError;
use bufgym_sim::rng::Split;
use bufgym_sim::scenario::Scenario;
use rayon::prelude::*;

use crate::contestant::Contestant;
use crate::evaluate::{EvalError, NumberedTrace, split_traces};

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A rule has no observation.
    #[error("{0} is a rule: only a learned policy observes anything")]
    NotLearned(String),
    /// No decision was due on any trace.
    #[error("no decision was due on {0} traces of the scenario: there is nothing to record")]
    NoDecisions(u64),
    /// The scenario makes no sense, or a trace cannot be run.
    #[error(transparent)]
    Eval(#[from] EvalError),
}

/// Training traces that exports are calibrated on.
const EXPORT_TRACES: u64 = 4;
/// Their seed: whoever rounds the same weights to integers gets the same integers.
const EXPORT_SEED: u64 = 1;

/// What exports of a policy are calibrated on: [`record`] on four training traces, always the same.
///
/// # Errors
/// As [`record`].
pub fn for_export(scenario: &Scenario, contestant: &Contestant) -> Result<Recording, RecordError> {
    record(scenario, contestant, EXPORT_SEED, EXPORT_TRACES)
}

/// Every observation of `contestant` on the first `traces` training traces of `seed`, in the order
/// of the traces and of time. The same for any number of threads.
///
/// One decision is `ports * 40` numbers: a trace of `ndt-16x1g` has some hundred to some thousand.
///
/// # Errors
/// When the contestant is no learned policy, does not fit the scenario, or decides nothing.
///
/// ```
/// use bufgym_sim::scenario::Scenario;
/// use bufgym_eval::{Contestant, record::record};
/// use bufgym_models::LinearRule;
/// # use bufgym_models::LinearFile;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut scenario = Scenario::preset("ndt-16x1g")?;
/// scenario.set("flows=100..100")?;
/// # let policy = Contestant::linear("linear", &LinearFile {
/// #     bufgym_version: String::new(), low_level: "dt".parse()?, rule: LinearRule::constant(0.5),
/// #     scenario: String::new(), scenario_toml: String::new(), objective: String::new(), seed: 1,
/// #     generations: 0, training: None,
/// # });
/// let recording = record(&scenario, &policy, 1, 2)?;
/// assert_eq!(recording.observation(0).len(), 16 * 40);
/// # Ok(())
/// # }
/// ```
pub fn record(
    scenario: &Scenario,
    contestant: &Contestant,
    seed: u64,
    traces: u64,
) -> Result<Recording, RecordError> {
    let runs: Result<Vec<Vec<f32>>, RecordError> =
        split_traces(scenario, Split::Train, seed, traces)?
            .par_iter()
            .map(|numbered| run(scenario, contestant, numbered))
            .collect();
    let recording = Recording {
        ports: scenario.port_count(),
        observations: runs?.concat(),
    };
    match recording.count() {
        0 => Err(RecordError::NoDecisions(traces)),
        _ => Ok(recording),
    }
}

fn run(
    scenario: &Scenario,
    contestant: &Contestant,
    numbered: &NumberedTrace,
) -> Result<Vec<f32>, RecordError> {
    let (mut controller, low_level) = contestant
        .controller()
        .ok_or_else(|| RecordError::NotLearned(contestant.name().to_owned()))?;
    let options = ControlOptions {
        low_level,
        ..ControlOptions::default()
    };
    let failed = |source: SimError| EvalError::Simulation {
        policy: contestant.name().to_owned(),
        trace: numbered.index,
        source: Box::new(source),
    };
    let mut env = ControlEnv::new(scenario, &numbered.trace, &options).map_err(failed)?;
    let ports = env.ports();
    let mut action = vec![0.0; ports];
    let mut observations = Vec::new();
    while env.advance() == Pause::Decision {
        observations.extend_from_slice(env.observation());
        controller.act(env.observation(), ports, &mut action);
        env.act(&action);
    }
    Ok(observations)
}

#[cfg(test)]
mod tests {
    use bufgym_env::control::cell_centre;
    use bufgym_export::OBSERVATION;
    use bufgym_models::checkpoint::Manifest;
    use bufgym_models::{ActorWeights, FastActor};
    use bufgym_sim::rng;

    use super::*;

    fn scenario() -> Scenario {
        let mut scenario = Scenario::default();
        for change in ["flows=60", "active_ports=3", "buffer_bytes=200000"] {
            scenario.set(change).unwrap();
        }
        scenario
    }

    fn learned() -> (ActorWeights, Contestant) {
        let weights = ActorWeights::random(&mut rng::stream(1, "test", 0));
        let manifest = Manifest::new("ndt-16x1g", "", "fct", 1);
        let contestant = Contestant::from_checkpoint("ndt:test", &weights, &manifest);
        (weights, contestant)
    }

    #[test]
    fn traces_follow_each_other_and_seeds_differ() {
        let (_, contestant) = learned();
        let of = |seed, traces| record(&scenario(), &contestant, seed, traces).unwrap();
        let (one, two) = (of(1, 1), of(1, 2));
        assert!(two.observations.starts_with(&one.observations));
        assert!(two.count() > one.count());
        assert_eq!(two, of(1, 2));
        assert_ne!(two, of(2, 2));
    }

    #[test]
    fn the_actions_seen_are_those_of_the_policy() {
        let (weights, contestant) = learned();
        let recording = record(&scenario(), &contestant, 1, 1).unwrap();
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
    fn a_rule_and_a_quiet_scenario_have_nothing_to_record() {
        let rule = record(&scenario(), &Contestant::baseline(), 1, 1).unwrap_err();
        assert!(rule.to_string().contains("dt"), "{rule}");
        let mut quiet = scenario();
        for change in ["flows=1", "buffer_bytes=1000000000"] {
            quiet.set(change).unwrap();
        }
        let nothing = record(&quiet, &learned().1, 1, 2).unwrap_err();
        assert!(nothing.to_string().contains("2 traces"), "{nothing}");
    }
}
