//! The needs of a network are bounded before it is loaded and before it runs.

use std::time::Instant;

use bufgym_onnx::{OnnxError, OnnxNetwork};
use tract_onnx::pb::{AttributeProto, GraphProto, attribute_proto};

use crate::build::{Builder, OPEN, decided, integer, integers, simple};

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
fn unusable(network: &OnnxNetwork, words: &[&str]) {
    assert_says(&decided(network, 3).unwrap_err(), words);
}

/// Builds a network whose action is multiplied by a value that one operator computes from constants.
fn with(operator: &str, constants: &[(&str, &[i64])], attributes: Vec<AttributeProto>) -> Builder {
    let mut builder = Builder::new(&[OPEN, 8, 5]).mean("m");
    for (name, values) in constants {
        builder = builder.integers(name, values);
    }
    let names: Vec<&str> = constants.iter().map(|(name, _)| *name).collect();
    builder
        .node_with(operator, &names, &["made"], attributes)
        .node_with("Cast", &["made"], &["cast"], vec![integer("to", 1)])
        .node_with(
            "ReduceMax",
            &["cast"],
            &["largest"],
            vec![integer("keepdims", 0)],
        )
        .node("Tanh", &["largest"], "factor")
        .node("Mul", &["m", "factor"], "action")
        .output("action")
}

#[test]
fn sizes_that_follow_from_constants() {
    let huge = 1 << 30;
    for (operator, constants) in [
        ("ConstantOfShape", [("shape", [huge].as_slice())].as_slice()),
        ("ConstantOfShape", &[("shape", &[1 << 20, 1 << 20])]),
        ("ConstantOfShape", &[("shape", &[-5])]),
        ("Expand", &[("one", &[1]), ("shape", &[1 << 20, 1 << 20])]),
        ("Tile", &[("one", &[1]), ("times", &[huge])]),
        ("Tile", &[("one", &[1]), ("times", &[-1])]),
        ("Pad", &[("one", &[1]), ("pads", &[huge, 0])]),
    ] {
        let network = with(operator, constants, vec![]).load().unwrap();

        unusable(
            &network,
            &[
                operator_in_runtime(operator),
                "too large or has a negative size",
            ],
        );
    }
    // A size within the limit for one value can exceed the limit for all values.
    let network = with("ConstantOfShape", &[("shape", &[1 << 25])], vec![]).load();
    let large = Builder::new(&[OPEN, 8, 5])
        .mean("m")
        .integers("shape", &[1 << 24, 1])
        .node("Expand", &["m", "shape"], "wide")
        .integers("first", &[0])
        .node("ReduceMax", &["wide", "first"], "action")
        .output("action");
    unusable(&large.load().unwrap(), &["192 MiB", "64 MiB"]);
    assert!(decided(&network.unwrap(), 3).is_ok());
}

/// Returns the runtime's own name of an operator.
fn operator_in_runtime(operator: &str) -> &str {
    match operator {
        "Expand" => "MultiBroadcastTo",
        other => other,
    }
}

#[test]
fn sizes_that_follow_from_observations() {
    let positive = Builder::new(&[OPEN, 8, 5])
        .node("NonZero", &["observation"], "places")
        .node_with("Cast", &["places"], &["cast"], vec![integer("to", 1)])
        .node_with(
            "ReduceMax",
            &["cast"],
            &["largest"],
            vec![integer("keepdims", 0)],
        )
        .mean("m")
        .node("Mul", &["m", "largest"], "action")
        .output("action");
    unusable(&positive.load().unwrap(), &["follows from the observation"]);
}

#[test]
fn ranges() {
    let range = |start: f32, end: f32, step: f32| {
        let builder = Builder::new(&[OPEN, 8, 5])
            .mean("m")
            .floats("start", &[], &[start])
            .floats("end", &[], &[end])
            .floats("step", &[], &[step])
            .node("Range", &["start", "end", "step"], "made")
            .node_with(
                "ReduceMin",
                &["made"],
                &["least"],
                vec![integer("keepdims", 0)],
            )
            .node("Tanh", &["least"], "factor")
            .node("Mul", &["m", "factor"], "action")
            .output("action");
        decided(&builder.load().unwrap(), 3)
    };
    assert!(range(0.0, 8.0, 2.0).is_ok());
    for (start, end, step) in [
        (0.0, 1e12, 1.0),
        (1e12, 0.0, -1.0),
        (0.0, 1.0, 1e-12),
        (0.0, 1.0, 0.0),
        (0.0, f32::INFINITY, 1.0),
    ] {
        assert_says(&range(start, end, step).unwrap_err(), &["Range"]);
    }
}

#[test]
fn dimensions_that_there_are_not() {
    for (operator, constants, attributes) in [
        (
            "Unsqueeze",
            [("one", [1].as_slice()), ("axes", &[1 << 40])].as_slice(),
            vec![],
        ),
        ("Squeeze", &[("one", &[1]), ("axes", &[-7])], vec![]),
        ("CumSum", &[("one", &[1]), ("axis", &[9])], vec![]),
        (
            "Concat",
            &[("one", &[1]), ("two", &[2])],
            vec![integer("axis", -3)],
        ),
    ] {
        let network = with(operator, constants, attributes).load().unwrap();
        unusable(&network, &["there is no dimension"]);
    }
    let scalar = Builder::new(&[OPEN, 8, 5])
        .mean("m")
        .floats("scalar", &[], &[1.0])
        .node_with(
            "LayerNormalization",
            &["scalar", "scalar"],
            &["n", "mean"],
            vec![],
        )
        .node("Mul", &["m", "mean"], "action")
        .output("action");
    unusable(
        &scalar.load().unwrap(),
        &["input 0 has 0 dimensions; must have at least 1"],
    );
    refused(
        &with("Concat", &[("one", &[1])], vec![integer("axis", 1 << 40)]),
        &["`axis` of Concat `made`", "at most 8"],
    );
    refused(
        &with(
            "MaxPool",
            &[("one", &[1])],
            vec![integers("kernel_shape", &[1 << 30])],
        ),
        &["`kernel_shape` of MaxPool", "at most 1048576"],
    );
}

#[test]
fn values_that_there_are_not() {
    // The runtime would read past the end of these.
    let dropout = Builder::new(&[OPEN, 8, 5])
        .mean("m")
        .floats("ratio", &[0], &[])
        .integers("training", &[])
        .node("Dropout", &["m", "ratio", "training"], "action")
        .output("action");
    unusable(&dropout.load().unwrap(), &["input 1 has no values"]);
    let range = with("Range", &[("a", &[]), ("b", &[]), ("c", &[])], vec![]);
    unusable(&range.load().unwrap(), &["input 0 has no values"]);
    // A shape without sizes is that of a single number.
    let scalar = with("ConstantOfShape", &[("shape", &[])], vec![]);
    assert!(decided(&scalar.load().unwrap(), 3).is_ok());
}

#[test]
fn the_work_of_a_decision() {
    let mut builder = Builder::new(&[OPEN, 8, 5])
        .integers("row", &[1, -1])
        .node("Reshape", &["observation", "row"], "x0")
        .integers("square", &[1_000, 120])
        .node("Expand", &["x0", "square"], "x");
    for layer in 0..2 {
        builder = builder.integers(&format!("t{layer}"), &[120, 1_000]);
    }
    let builder = builder
        .node_with("Transpose", &["x"], &["y"], vec![integers("perm", &[1, 0])])
        .node("MatMul", &["x", "y"], "z0")
        .node("MatMul", &["z0", "z0"], "z1")
        .node("MatMul", &["z1", "z1"], "z2")
        .integers("all", &[0, 1])
        .node_with(
            "ReduceMax",
            &["z2", "all"],
            &["largest"],
            vec![integer("keepdims", 0)],
        )
        .mean("m")
        .node("Add", &["m", "largest"], "action_mean")
        .output("action_mean");
    unusable(
        &builder.load().unwrap(),
        &["2.1e9 multiplications", "at most 1.1e9"],
    );
}

#[test]
fn the_number_of_operators_and_graphs_in_one_another() {
    let chain = |length: usize| {
        let mut builder = Builder::new(&[OPEN, 8, 5]).mean("x0");
        for place in 0..length {
            let (from, to) = (format!("x{place}"), format!("x{}", place + 1));
            builder = builder.node("Tanh", &[&from], &to);
        }
        builder.output(&format!("x{length}"))
    };
    let start = Instant::now();
    assert!(decided(&chain(1_000).load().unwrap(), 2).is_ok());
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
    refused(&chain(1_100), &["more than 1024 operators"]);

    let within = |depth: usize| {
        let branch = |name: &str, graph: &GraphProto| AttributeProto {
            name: name.to_owned(),
            r#type: attribute_proto::AttributeType::Graph as i32,
            g: Some(graph.clone()),
            ..AttributeProto::default()
        };
        let mut inner = Builder::new(&[1]).node("Neg", &["m"], "x0").output("x0");
        inner.graph().input.clear();
        for level in 1..=depth {
            let name = format!("x{level}");
            let graph = inner.graph().clone();
            let branches = vec![branch("then_branch", &graph), branch("else_branch", &graph)];
            inner = Builder::new(&[1])
                .node("IsNaN", &["largest"], "flag")
                .node_with("If", &["flag"], &[&name], branches)
                .output(&name);
            inner.graph().input.clear();
        }
        let mut builder = Builder::new(&[OPEN, 8, 5]).mean("m").node_with(
            "ReduceMax",
            &["m"],
            &["largest"],
            vec![integer("keepdims", 0)],
        );
        builder.graph().node.extend(inner.graph().node.clone());
        builder.output(&format!("x{depth}"))
    };
    let start = Instant::now();
    let _ = within(3).load().map(|network| decided(&network, 2));
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
    refused(&within(4), &["more than 3 graphs within one another"]);
}

#[test]
fn constants_have_the_values_of_their_shape() {
    let altered = |alter: fn(&mut tract_onnx::pb::TensorProto)| {
        let mut builder = simple()
            .floats("w", &[1], &[1.0])
            .node("Mul", &["action", "w"], "x");
        builder.graph().output[0].name = "x".to_owned();
        let constants = &mut builder.graph().initializer;
        alter(
            constants
                .iter_mut()
                .find(|constant| constant.name == "w")
                .unwrap(),
        );
        builder
    };
    refused(
        &altered(|w| w.dims = vec![2]),
        &["`w` is [2] of 4 bytes each and has 4 bytes"],
    );
    refused(&altered(|w| w.dims = vec![-1]), &["`w` is [-1]"]);
    refused(
        &altered(|w| w.dims = vec![1; 9]),
        &["`w`", "at most 8 dimensions"],
    );
    refused(&altered(|w| w.dims = vec![1 << 40, 1 << 40]), &["`w`"]);
    refused(
        &altered(|w| w.data_type = 8),
        &["`w` has a type that cannot be run"],
    );
    refused(
        &altered(|w| {
            w.raw_data.pop();
        }),
        &["`w`", "damaged"],
    );
    refused(
        &altered(|w| {
            w.dims = vec![1 << 30];
            w.data_location = Some(1);
            w.raw_data.clear();
        }),
        &["more than 256 MiB"],
    );
}
