//! Decisions of networks.

use std::fs;
use std::thread;

use bufgym_env::control::{ActionSet, Controller as _, FEATURES, HISTORY};
use bufgym_onnx::{OPSETS, OnnxNetwork, Settings};
use tract_onnx::pb::{StringStringEntryProto, tensor_proto::DataLocation};

use crate::build::{Builder, OPEN, decided, integer, integers, observation, simple};

const SHAPE: [i64; 2] = [HISTORY as i64, FEATURES as i64];

/// The mean of every port's observation.
fn means(ports: usize) -> Vec<f32> {
    let mean = |port: &[f32]| port.iter().sum::<f32>() / port.len() as f32;
    observation(ports)
        .chunks(HISTORY * FEATURES)
        .map(mean)
        .collect()
}

fn assert_near(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
    }
}

#[test]
fn the_number_of_ports_is_open() {
    let network = simple().load().unwrap();
    assert_eq!(network.low_level().to_string(), "dt");
    assert_eq!(network.facts().producer, "test");
    for ports in [1, 2, 16, 96, 3] {
        assert_near(&decided(&network, ports).unwrap(), &means(ports));
    }
}

#[test]
fn operators_may_be_of_a_later_version_than_the_runtime_is_tested_with() {
    let mut later = simple();
    later.0.opset_import[0].version = *OPSETS.end();
    assert_near(&decided(&later.load().unwrap(), 3).unwrap(), &means(3));
}

#[test]
fn an_output_has_any_name_where_it_is_the_only_one() {
    let named = Builder::new(&[OPEN, SHAPE[0], SHAPE[1]])
        .mean("x")
        .output("x");
    assert_near(&decided(&named.load().unwrap(), 5).unwrap(), &means(5));
}

#[test]
fn an_observation_may_be_flat() {
    // The form of a network that takes vectors: a batch, and values port after port.
    for sizes in [[OPEN, 4 * 40], [1, 4 * 40], [1, OPEN]] {
        let apart = Builder::new(&sizes)
            .integers("sizes", &[4, 40])
            .node("Reshape", &["observation", "sizes"], "of_port")
            .floats("w", &[40, 1], &[1.0 / 40.0; 40])
            .node("MatMul", &["of_port", "w"], "column")
            .integers("row", &[1, 4])
            .node("Reshape", &["column", "row"], "action")
            .output("action");
        let network = apart.load().unwrap();
        assert_near(&decided(&network, 4).unwrap(), &means(4));
        // The two values of a port stand next to each other, as in the actions of Stable-Baselines3.
        let mut joint = apart
            .node("Neg", &["column"], "negated")
            .node_with(
                "Concat",
                &["column", "negated"],
                &["pairs"],
                vec![integer("axis", 1)],
            )
            .integers("long", &[1, 8])
            .node("Reshape", &["pairs", "long"], "both");
        joint.graph().output[0].name = "both".to_owned();
        let settings = Settings {
            low_level: None,
            actions: Some(ActionSet::AlphaEarly),
        };
        let network = joint.load_with(&settings).unwrap();
        let expected: Vec<f32> = means(4).into_iter().flat_map(|m| [m, -m]).collect();
        assert_near(&decided(&network, 4).unwrap(), &expected);
    }
}

#[test]
fn tanh_of_a_mean_is_the_action() {
    // A batch, and a dimension of one after the ports.
    let network = Builder::new(&[1, OPEN, OPEN, SHAPE[1]])
        .mean("flat")
        .integers("behind", &[2])
        .node("Unsqueeze", &["flat", "behind"], "action_mean")
        .output("action_mean")
        .output("flat");
    let expected: Vec<f32> = means(7).into_iter().map(libm::tanhf).collect();
    assert_near(&decided(&network.load().unwrap(), 7).unwrap(), &expected);
}

#[test]
fn early_drop_is_a_second_output_or_a_second_value() {
    let settings = Settings {
        low_level: None,
        actions: Some(ActionSet::AlphaEarly),
    };
    let negated = simple().node("Neg", &["action"], "early_action");
    let apart = negated.clone().output("early_action");
    let joint = {
        let mut joint = negated
            .integers("behind", &[1])
            .node("Unsqueeze", &["action", "behind"], "a")
            .node("Unsqueeze", &["early_action", "behind"], "b")
            .node_with("Concat", &["a", "b"], &["both"], vec![integer("axis", 1)]);
        joint.graph().output[0].name = "both".to_owned();
        joint
    };
    let expected: Vec<f32> = means(4)
        .into_iter()
        .flat_map(|mean| [mean, -mean])
        .collect();
    for builder in [apart, joint] {
        let network = builder.load_with(&settings).unwrap();
        assert_eq!(network.low_level().to_string(), "dt+early");
        assert_near(&decided(&network, 4).unwrap(), &expected);
    }
}

#[test]
fn metadata_name_the_heuristic_and_settings_come_before_them() {
    let builder = simple()
        .fact("low_level", "abm+early")
        .fact("actions", "alpha,early")
        .fact("scenario", "some")
        .fact("objective", "fct")
        .fact("seed", "7")
        .node("Neg", &["action"], "early_action_mean")
        .output("early_action_mean");
    let network = builder.load().unwrap();
    assert_eq!(network.low_level().to_string(), "abm+early");
    assert_eq!(network.actor().outputs(), 2);
    assert_eq!(network.facts().scenario.as_deref(), Some("some"));
    assert_eq!(network.facts().objective.as_deref(), Some("fct"));
    assert_eq!(network.facts().seed, Some(7));
    for (low_level, actions, expected) in [
        (Some("edt"), None, "edt"),
        (None, Some(ActionSet::Alpha), "abm"),
        (Some("edt"), Some(ActionSet::AlphaEarly), "edt+early"),
    ] {
        let settings = Settings {
            low_level: low_level.map(|text| text.parse().unwrap()),
            actions,
        };
        let network = builder.load_with(&settings).unwrap();
        assert_eq!(network.low_level().to_string(), expected);
        assert_eq!(
            decided(&network, 3).unwrap().len(),
            3 * network.actor().outputs()
        );
    }
}

#[test]
fn what_the_actions_do_not_need_is_left_out() {
    let network = simple()
        .node("RandomNormalLike", &["action"], "noise")
        .node("NoSuchOperator", &["noise"], "sample")
        .output("noise")
        .output("sample");
    assert_near(&decided(&network.load().unwrap(), 3).unwrap(), &means(3));
}

#[test]
fn weights_in_a_file_beside_it_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let weights = [0.25f32, -0.5];
    let bytes: Vec<u8> = weights.iter().flat_map(|w| w.to_le_bytes()).collect();
    fs::write(folder.path().join("net.onnx.data"), &bytes).unwrap();
    let mut builder = Builder::new(&[OPEN, SHAPE[0], SHAPE[1]])
        .mean("mean_of_port")
        .floats("factor", &[1], &[0.0])
        .node("Mul", &["mean_of_port", "factor"], "action")
        .output("action");
    let factor = builder
        .graph()
        .initializer
        .iter_mut()
        .find(|constant| constant.name == "factor")
        .unwrap();
    factor.raw_data.clear();
    factor.data_location = Some(DataLocation::External as i32);
    let entry = |key: &str, value: &str| StringStringEntryProto {
        key: key.to_owned(),
        value: value.to_owned(),
    };
    factor.external_data = vec![
        entry("location", "net.onnx.data"),
        entry("offset", "4"),
        entry("length", "4"),
    ];
    let path = folder.path().join("net.onnx");
    fs::write(&path, builder.bytes()).unwrap();
    let network = OnnxNetwork::load(&path, &Settings::default()).unwrap();
    let expected: Vec<f32> = means(3).into_iter().map(|mean| -0.5 * mean).collect();
    assert_near(&decided(&network, 3).unwrap(), &expected);

    let refused = |word: &str| {
        let error = OnnxNetwork::load(&path, &Settings::default()).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("net.onnx.data") && text.contains(word),
            "{text}"
        );
    };
    fs::write(folder.path().join("net.onnx.data"), &bytes[..6]).unwrap();
    refused("end of file");
    fs::remove_file(folder.path().join("net.onnx.data")).unwrap();
    refused("No such file");
}

/// Weights are read from regular files below the folder of the network, and from nothing else.
#[cfg(unix)]
#[test]
fn weights_elsewhere_are_not_read() {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir_all(inner.join("below")).unwrap();
    let outside = folder.path().join("weights");
    fs::write(&outside, 0.5_f32.to_le_bytes()).unwrap();
    fs::write(inner.join("below/weights"), 0.5_f32.to_le_bytes()).unwrap();
    symlink(&outside, inner.join("out")).unwrap();
    symlink("below/weights", inner.join("in")).unwrap();
    symlink("/dev/zero", inner.join("zeros")).unwrap();
    let made = Command::new("mkfifo").arg(inner.join("pipe")).status();
    assert!(made.unwrap().success());
    let path = inner.join("net.onnx");
    let load = |location: &str| {
        let mut builder = Builder::new(&[OPEN, SHAPE[0], SHAPE[1]])
            .mean("m")
            .floats("factor", &[1], &[0.0])
            .node("Mul", &["m", "factor"], "action")
            .output("action");
        let mut constants = builder.graph().initializer.iter_mut();
        let factor = constants.find(|c| c.name == "factor").unwrap();
        factor.raw_data.clear();
        factor.data_location = Some(DataLocation::External as i32);
        factor.external_data = vec![StringStringEntryProto {
            key: "location".to_owned(),
            value: location.to_owned(),
        }];
        OnnxNetwork::parse(&builder.bytes(), &path, &Settings::default())
    };
    for location in ["below/weights", "./in"] {
        let expected: Vec<f32> = means(3).into_iter().map(|mean| 0.5 * mean).collect();
        assert_near(&decided(&load(location).unwrap(), 3).unwrap(), &expected);
    }
    let outside = outside.display().to_string();
    for (location, word) in [
        ("../weights", "inside the model directory"),
        (outside.as_str(), "inside the model directory"),
        ("out", "outside the model directory"),
        ("zeros", "outside the model directory"),
        ("pipe", "not a regular file"),
        ("below", "not a regular file"),
    ] {
        let text = load(location).unwrap_err().to_string();
        assert!(text.contains("net.onnx"), "{location}: {text}");
        assert!(text.contains(word), "{location}: {text}");
    }
}

/// A recurrent network over the steps of the history, whose last state is the action.
fn recurrent() -> Builder {
    let hidden = integer("hidden_size", 1);
    Builder::new(&[OPEN, SHAPE[0], SHAPE[1]])
        .node_with(
            "Transpose",
            &["observation"],
            &["steps"],
            vec![integers("perm", &[1, 0, 2])],
        )
        .floats("w", &[1, 1, 5], &[0.3, -0.2, 0.5, 0.1, -0.4])
        .floats("r", &[1, 1, 1], &[0.7])
        .node_with("RNN", &["steps", "w", "r"], &["", "last"], vec![hidden])
        .integers("places", &[0, 2])
        .node("Squeeze", &["last", "places"], "action")
        .output("action")
}

#[test]
fn nothing_is_remembered_from_one_decision_to_the_next() {
    let network = recurrent().load().unwrap();
    let ports = 3;
    let expected: Vec<f32> = observation(ports)
        .chunks(HISTORY * FEATURES)
        .map(|port| {
            port.chunks(FEATURES).fold(0.0, |state: f32, x| {
                let input: f32 = x
                    .iter()
                    .zip([0.3, -0.2, 0.5, 0.1, -0.4])
                    .map(|(x, w)| x * w)
                    .sum();
                libm::tanhf(input + 0.7 * state)
            })
        })
        .collect();
    let mut actor = network.actor();
    let mut action = vec![0.0; ports];
    for _ in 0..3 {
        actor
            .try_act(&observation(ports), ports, &mut action)
            .unwrap();
        assert_near(&action, &expected);
    }
}

#[test]
fn threads_share_a_network_and_decide_the_same_bits() {
    let network = recurrent().load().unwrap();
    let bits = |values: Vec<f32>| -> Vec<u32> { values.into_iter().map(f32::to_bits).collect() };
    let expected = bits(decided(&network, 16).unwrap());
    let fresh = recurrent().load().unwrap();
    thread::scope(|scope| {
        let runs: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| bits(decided(&fresh, 16).unwrap())))
            .collect();
        for run in runs {
            assert_eq!(run.join().unwrap(), expected);
        }
    });
}
