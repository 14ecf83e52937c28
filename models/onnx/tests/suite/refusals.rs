//! Files that are no policy are refused in one line that names the file, the place and the remedy.

use std::path::Path;

use bufgym_env::control::{ActionSet, Controller as _};
use bufgym_onnx::{OnnxError, OnnxNetwork, Settings};
use tract_onnx::pb::tensor_proto::DataType;

use crate::build::{Builder, OPEN, decided, integer, observation, simple};

/// Checks an error's message: one line, with the name of the file and these words.
fn assert_says(error: &OnnxError, words: &[&str]) {
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    for word in ["net.onnx"].iter().chain(words) {
        assert!(text.contains(word), "no {word} in: {text}");
    }
}

fn refused(builder: &Builder, words: &[&str]) {
    assert_says(&builder.load().unwrap_err(), words);
}

/// Asserts the error of a network that can be read but not run with three ports.
fn unusable(builder: &Builder, words: &[&str]) {
    let network = builder.load().unwrap();
    assert_says(&decided(&network, 3).unwrap_err(), words);
}

fn with_input(kind: DataType, sizes: Option<&[i64]>) -> Builder {
    let mut builder = simple();
    builder.graph().input.clear();
    builder.input("observation", kind, sizes)
}

#[test]
fn files_that_are_no_onnx_files() {
    let parse = |bytes: &[u8]| {
        OnnxNetwork::parse(bytes, Path::new("net.onnx"), &Settings::default()).unwrap_err()
    };
    for bytes in [
        b"".as_slice(),
        b"{}",
        b"{\"format\": \"bufgym-linear\"}",
        &[0xff; 64],
    ] {
        assert_says(
            &parse(bytes),
            &["not an ONNX file", "export the network again"],
        );
    }
    let missing = OnnxNetwork::load(Path::new("no/net.onnx"), &Settings::default());
    assert_says(&missing.unwrap_err(), &["No such file"]);
}

#[test]
fn inputs_of_another_shape() {
    let expected = ["`observation`", "float32 [ports, 8, 5]"];
    for (builder, found) in [
        (
            with_input(DataType::Double, Some(&[OPEN, 8, 5])),
            "float64 [n, 8, 5]",
        ),
        (
            with_input(DataType::Float, Some(&[OPEN, 8])),
            "float32 [n, 8]",
        ),
        (
            with_input(DataType::Float, Some(&[8, 640])),
            "float32 [8, 640]",
        ),
        (
            with_input(DataType::Float, Some(&[OPEN, 8, 6])),
            "float32 [n, 8, 6]",
        ),
        (
            with_input(DataType::Float, Some(&[2, OPEN, 8, 5])),
            "float32 [2, n, 8, 5]",
        ),
        (
            with_input(DataType::Float, Some(&[0, 8, 5])),
            "float32 [0, 8, 5]",
        ),
        (
            with_input(DataType::Float, Some(&[1, 641])),
            "float32 [1, 641]",
        ),
        (with_input(DataType::Float, Some(&[1, 0])), "float32 [1, 0]"),
        (with_input(DataType::Float, None), "without a shape"),
    ] {
        refused(&builder, &[expected[0], expected[1], found]);
    }
    let mut none = simple();
    none.graph().input.clear();
    refused(&none, &["no input", expected[1]]);
}

#[test]
fn outputs_that_cannot_be_told_or_do_not_fit() {
    let mut unnamed = simple().node("Neg", &["action"], "b").output("b");
    unnamed.graph().output[0].name = "observation".to_owned();
    refused(
        &unnamed,
        &["2 outputs (observation, b)", "`action`", "`action_mean`"],
    );
    let mut none = simple();
    none.graph().output.clear();
    refused(&none, &["0 outputs", "`action`"]);

    let mut whole = simple();
    whole.graph().output[0].name = "observation".to_owned();
    unusable(
        &whole,
        &[
            "`observation`",
            "[3] or [3, 1]",
            "float32 [3, 8, 5]",
            "low_level",
        ],
    );
    let mut integer = simple().node_with(
        "Cast",
        &["action"],
        &["level"],
        vec![integer("to", DataType::Int64 as i64)],
    );
    integer.graph().output[0].name = "level".to_owned();
    unusable(&integer, &["`level` is int64 [3]", "float32"]);

    let early = Settings {
        low_level: Some("dt+early".parse().unwrap()),
        actions: None,
    };
    let error = simple().load_with(&early).unwrap();
    let error = decided(&error, 3).unwrap_err();
    assert_says(
        &error,
        &["`action`", "[3, 2]", "`early_action`", "alpha,early"],
    );
}

#[test]
fn another_number_of_ports_than_the_fixed_one() {
    let builder = with_input(DataType::Float, Some(&[4, 8, 5]));
    let network = builder.load().unwrap();
    network.prepare(4).unwrap();
    assert_eq!(decided(&network, 4).unwrap().len(), 4);
    let error = network.prepare(16).unwrap_err();
    assert_says(&error, &["`observation`", "4 ports", "16", "ports=4"]);
    assert!(matches!(
        error,
        OnnxError::Ports {
            fixed: 4,
            ports: 16,
            ..
        }
    ));

    // The size is open in the declaration, but fixed in the graph.
    let inside = Builder::new(&[OPEN, 8, 5])
        .integers("sizes", &[4, 40])
        .node("Reshape", &["observation", "sizes"], "flat")
        .integers("one", &[1])
        .node_with(
            "ReduceMean",
            &["flat", "one"],
            &["action"],
            vec![integer("keepdims", 0)],
        )
        .output("action");
    assert_eq!(decided(&inside.load().unwrap(), 4).unwrap().len(), 4);
    unusable(&inside, &["3 ports"]);
}

#[test]
fn values_that_are_no_actions() {
    let scaled = |factor: f32, output: &str| {
        Builder::new(&[OPEN, 8, 5])
            .mean("m")
            .floats("factor", &[1], &[factor])
            .node("Mul", &["m", "factor"], output)
            .output(output)
    };
    unusable(
        &scaled(1e4, "action"),
        &[
            "`action`",
            "at port 0",
            "[-1, 1]",
            "Clip to [-1, 1]",
            "`action_mean`",
        ],
    );
    let root_of_negative = |output: &str| {
        Builder::new(&[OPEN, 8, 5])
            .mean("m")
            .floats("two", &[1], &[2.0])
            .node("Sub", &["m", "two"], "negative")
            .node("Sqrt", &["negative"], output)
            .output(output)
    };
    unusable(&root_of_negative("action"), &["`action` is NaN"]);
    unusable(
        &root_of_negative("action_mean"),
        &["`action_mean` is NaN", "finite"],
    );
    refused(&scaled(f32::NAN, "action"), &["`factor`", "not a number"]);
    unusable(
        &scaled(f32::INFINITY, "action_mean"),
        &["`action_mean`", "inf", "finite"],
    );
    let large = scaled(1e4, "action_mean").load().unwrap();
    assert!(
        decided(&large, 3)
            .unwrap()
            .iter()
            .all(|action| action.abs() == 1.0)
    );

    let mut actor = root_of_negative("action").load().unwrap().actor();
    let mut action = [0.5; 3];
    actor.act(&observation(3), 3, &mut action);
    assert_eq!(action, [0.0; 3]);
}

#[test]
fn operators_that_cannot_be_run() {
    let through = |operator: &str| {
        Builder::new(&[OPEN, 8, 5])
            .mean("m")
            .node(operator, &["m"], "action")
            .output("action")
    };
    refused(
        &through("Frobnicate"),
        &["Frobnicate `action`", "does not have"],
    );
    refused(
        &through("RandomNormalLike"),
        &["RandomNormalLike `action`", "random"],
    );
    let mut custom = through("Tanh");
    custom.graph().node[1].domain = "com.example".to_owned();
    refused(&custom, &["Tanh `action`", "com.example"]);
    for (operator, version) in [("AveragePool", 20), ("GroupNormalization", 21)] {
        let mut changed = through(operator);
        changed.0.opset_import[0].version = version;
        refused(
            &changed,
            &[&format!("{operator} `action`"), "opset_version=18"],
        );
    }
    for version in [8, 22, 99] {
        let mut other = simple();
        other.0.opset_import[0].version = version;
        refused(
            &other,
            &["9 to 21", &version.to_string(), "opset_version=18"],
        );
    }
}

#[test]
fn graphs_that_are_damaged() {
    let mut builder = simple();
    builder.graph().node[0].input[0] = "nothing".to_owned();
    refused(&builder, &["`nothing`", "damaged"]);
    let mut builder = simple();
    builder.graph().output[0].name = "nothing".to_owned();
    refused(&builder, &["`nothing`", "damaged"]);
    let twice = simple().node("Neg", &["action"], "action");
    refused(&twice, &["`action` is computed twice", "other names"]);
    let mut circle = Builder::new(&[OPEN, 8, 5])
        .node("Neg", &["b"], "a")
        .node("Neg", &["a"], "b")
        .output("action");
    circle.graph().output[0].name = "b".to_owned();
    refused(&circle, &["`b`", "damaged"]);
}

#[test]
fn metadata_that_say_something_else() {
    refused(&simple().fact("low_level", "cs"), &["`low_level`", "'cs'"]);
    refused(
        &simple().fact("actions", "beta"),
        &["`actions`", "alpha,early"],
    );
    refused(&simple().fact("seed", "x"), &["`seed`", "'x'"]);
    refused(
        &simple().fact("alphas", "1, 2"),
        &["`alphas`", "1, 2", "0.25"],
    );
    refused(&simple().fact("features", "no"), &["`features`"]);
    let other = r#"[{"name": "age", "scale": "s"}]"#;
    refused(
        &simple().fact("features", other),
        &["`features`", "age: s", "queue"],
    );
    refused(
        &simple().fact("features", "[]"),
        &["`features`", "0 features"],
    );
    let gaps = simple()
        .fact("low_level", "dt+early")
        .fact("early_gaps", "0, 9");
    refused(&gaps, &["`early_gaps`", "0, 9", "1024"]);
    let multiples = simple()
        .fact("low_level", "dt+early:finest=buffer")
        .fact("early_gaps", "0, 64, 32, 16, 8, 4, 2, 1");
    refused(&multiples, &["`early_gap_bytes`", "absent", "125000"]);
    let other = simple()
        .fact("low_level", "dt+early:finest=buffer")
        .fact("early_gaps", "0, 64, 32, 16, 8, 4, 2, 1")
        .fact("early_gap_bytes", "9");
    refused(&other, &["`early_gap_bytes`", "9", "125000"]);
    let packets = simple()
        .fact("low_level", "dt+early")
        .fact("early_gaps", "0, 1024, 512, 256, 128, 64, 32, 16")
        .fact("early_gap_bytes", "125000");
    refused(&packets, &["`early_gap_bytes`", "125000", "absent"]);
    let error = simple().load_with(&Settings {
        low_level: Some("dt+red".parse().unwrap()),
        actions: Some(ActionSet::AlphaEarly),
    });
    assert_says(&error.unwrap_err(), &["dt+red"]);
}
