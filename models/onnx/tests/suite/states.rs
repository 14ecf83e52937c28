//! Recurrent networks: the states that they pass from one decision of a switch to the next.

use std::collections::BTreeMap;
use std::path::Path;

use bufgym_env::control::{Controller, Reading, RunOptions, run_controlled};
use bufgym_onnx::{OnnxActor, OnnxNetwork, Settings};
use bufgym_sim::network::{SimError, SwitchId};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::generate;
use tract_onnx::pb::tensor_proto::DataType;

use crate::build::{Builder, OPEN, decided, observation};

/// Builds a network. The next state of a port is half of its last one plus the mean of the observation; tanh of it is
/// the action.
fn recurrent() -> Builder {
    Builder::new(&[OPEN, 8, 5])
        .input("state", DataType::Float, Some(&[1, OPEN]))
        .mean("m")
        .floats("half", &[1], &[0.5])
        .node("Mul", &["state", "half"], "kept")
        .node("Add", &["kept", "m"], "next")
        .integers("first", &[0])
        .node("Squeeze", &["next", "first"], "flat")
        .node("Tanh", &["flat"], "action")
        .output("action")
        .output("next")
}

fn means(observation: &[f32]) -> Vec<f32> {
    let ports = observation.chunks(40);
    ports.map(|port| port.iter().sum::<f32>() / 40.0).collect()
}

/// A controller that decides with a network, and follows its state with the formula.
struct Followed {
    actor: OnnxActor,
    states: BTreeMap<SwitchId, Vec<f32>>,
    decisions: usize,
}

impl Controller for Followed {
    fn act(&mut self, _observation: &[f32], _ports: usize, _action: &mut [f32]) {
        panic!("runs ask at a switch");
    }

    fn decide(&mut self, at: &Reading<'_>, action: &mut [f32]) -> Result<(), SimError> {
        self.actor.decide(at, action)?;
        let states = self.states.entry(at.switch());
        let states = states.or_insert_with(|| vec![0.0; at.ports()]);
        for ((state, mean), &action) in states.iter_mut().zip(means(at.observation())).zip(&*action)
        {
            *state = 0.5 * *state + mean;
            assert!((libm::tanhf(*state) - action).abs() < 1e-5);
        }
        self.decisions += 1;
        Ok(())
    }
}

#[test]
fn every_switch_has_a_state_that_goes_from_decision_to_decision() {
    for (preset, switches) in [("ndt-16x1g", 1), ("leafspine-4x4", 4)] {
        let mut scenario = Scenario::preset(preset).unwrap();
        scenario.set("flows=200..200").unwrap();
        let mut followed = Followed {
            actor: recurrent().load().unwrap().actor(),
            states: BTreeMap::new(),
            decisions: 0,
        };
        let trace = generate(&scenario, 3);
        run_controlled(&scenario, &trace, &mut followed, &RunOptions::default()).unwrap();
        assert!(followed.decisions > 20 * switches, "{}", followed.decisions);
        assert!(followed.states.len() >= switches);
    }
}

#[test]
fn an_observation_alone_is_decided_from_zeros() {
    let network = recurrent().load().unwrap();
    let mut actor = network.actor();
    let expected: Vec<f32> = means(&observation(5))
        .into_iter()
        .map(libm::tanhf)
        .collect();
    for _ in 0..3 {
        let mut action = vec![0.0; 5];
        actor.try_act(&observation(5), 5, &mut action).unwrap();
        for (found, expected) in action.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-6);
        }
    }
}

#[test]
fn there_may_be_several_states() {
    let builder = recurrent()
        .input("more", DataType::Float, Some(&[2]))
        .node("Neg", &["more"], "more_next")
        .output("more_next");
    let network = builder.load().unwrap();
    let expected: Vec<f32> = means(&observation(5))
        .into_iter()
        .map(libm::tanhf)
        .collect();
    for (found, expected) in decided(&network, 5).unwrap().iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-6);
    }
}

#[test]
fn states_that_cannot_be_handed_on_are_refused() {
    let with = |kind: DataType, sizes: Option<&[i64]>| {
        let mut builder = recurrent();
        builder.graph().input.truncate(1);
        builder.input("state", kind, sizes)
    };
    let says = |error: String, words: &[&str]| {
        for word in words {
            assert!(error.contains(word), "no {word} in: {error}");
        }
    };
    let mut unnamed = recurrent();
    unnamed.graph().input[0] = Builder::new(&[4, 8, 5]).graph().input[0].clone();
    for (builder, words) in [
        (
            with(DataType::Double, Some(&[1, OPEN])),
            ["`state` is float64 [1, n]", "float32"],
        ),
        (with(DataType::Float, None), ["without a shape", "fixed"]),
        (unnamed, ["`state` is float32 [1, n]", "named as the ports"]),
    ] {
        says(builder.load().unwrap_err().to_string(), &words);
    }
    let many = (0..16).fold(recurrent(), |builder, number| {
        builder.input(&format!("s{number}"), DataType::Float, Some(&[1]))
    });
    says(
        many.load().unwrap_err().to_string(),
        &["18 inputs", "at most 16 states"],
    );
    let mut without = recurrent();
    without.graph().output.truncate(1);
    says(
        without.load().unwrap_err().to_string(),
        &["`state` is a state", "no output is its next value"],
    );
    let mut other = recurrent();
    other.graph().output[1].name = "flat".to_owned();
    says(
        decided(&other.load().unwrap(), 3).unwrap_err().to_string(),
        &["`flat` is float32 [3]", "float32 [1, 3]", "`state`"],
    );
    let mut endless = recurrent().node("Log", &["state"], "lost").output("lost");
    endless.graph().output.remove(1);
    says(
        decided(&endless.load().unwrap(), 3)
            .unwrap_err()
            .to_string(),
        &["state `lost` is -inf", "finite"],
    );
}

/// The first decision of a GRU equals that of ONNX's reference implementation (`onnx.reference`, 1.23).
#[test]
fn a_gru_decides_as_the_reference() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cli/onnx/gru_state.onnx");
    let network = OnnxNetwork::load(&path, &Settings::default()).unwrap();
    let observation: Vec<f32> = (0..640).map(|i| ((i * 7) % 13) as f32 / 13.0).collect();
    let mut action = vec![0.0; 16];
    let mut actor = network.actor();
    actor.try_act(&observation, 16, &mut action).unwrap();
    let expected = [
        -0.094_259_58,
        -0.458_022_92,
        -0.284_148_48,
        -0.514_023_66_f32,
    ];
    for (found, expected) in action.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
    }
}
