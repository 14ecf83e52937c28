//! ONNX: a graph that runtimes for servers and embedded machines load.
//!
//! | | name | type and shape |
//! |---|---|---|
//! | input | `observation` | `float32 [batch, ports, history, features]` |
//! | output | `action` | `float32 [batch, ports]`, `tanh(μ)` |
//! | output | `level` | `int64 [batch, ports]`, index into the levels of α |
//!
//! `batch` and `ports` are dynamic. Every operator works on `[batch, ports, ..]`, so that shape
//! inference keeps both, and the mean over ports enters the layer after it as a product of its own
//! that is added to all ports.

mod graph;
mod protobuf;

use super::ExportError;
use super::network::{Convolution, Network};
use super::stages::{Stage, Stages};
use bufgym_models::checkpoint::Manifest;
use bufgym_models::weights::transpose;
use graph::{Attribute, Graph};
use protobuf::Message;

/// Name of the exported file.
pub const FILE: &str = "actor.onnx";
/// Version of the operators.
pub const OPSET: i64 = 18;
/// Version of the file format, ONNX 1.12.
pub const IR_VERSION: i64 = 8;

const INPUT: &str = "observation";
const ACTION: &str = "action";
const LEVEL: &str = "level";

/// The network as the bytes of an ONNX file (`onnx.proto`, `ModelProto`).
///
/// # Errors
/// When the layers do not form a network, or a number has no meaning.
pub fn encode(network: &Network, manifest: &Manifest) -> Result<Vec<u8>, ExportError> {
    let stages = Stages::of(network, str::to_owned)?;
    let mut graph = Graph::new();
    let mut values = normalise(&mut graph, network);
    values = match &stages.convolution {
        Some((name, conv)) => convolve(&mut graph, network, name, conv, &values),
        None => {
            let flat = graph.integers("flat", &[0, 0, stages.inputs as i64]);
            graph.node("Reshape", "flatten", &[&values, &flat], &[])
        }
    };
    for stage in &stages.stages {
        values = dense(&mut graph, stage, &values);
    }
    act(&mut graph, network, &values);

    let (history, features) = (network.history as i64, network.features.len() as i64);
    graph.input(INPUT, &["batch", "ports"], &[history, features]);
    graph.float_output(ACTION, &["batch", "ports"]);
    graph.integer_output(LEVEL, &["batch", "ports"]);
    Ok(model(graph, network, manifest)?.into_bytes())
}

/// Subtracts means and divides by deviations where there are any.
fn normalise(graph: &mut Graph, network: &Network) -> String {
    let mut values = INPUT.to_owned();
    let constants = |of: fn(&bufgym_models::checkpoint::Feature) -> f32| -> Vec<f32> {
        network.features.iter().map(of).collect()
    };
    let means = constants(|feature| feature.mean);
    if means.iter().any(|&mean| mean != 0.0) {
        let means = graph.floats("normalise.mean", &[means.len()], &means);
        values = graph.node("Sub", "normalise.subtract", &[&values, &means], &[]);
    }
    let deviations = constants(|feature| feature.deviation);
    if deviations.iter().any(|&deviation| deviation != 1.0) {
        let deviations = graph.floats("normalise.deviation", &[deviations.len()], &deviations);
        values = graph.node("Div", "normalise.divide", &[&values, &deviations], &[]);
    }
    values
}

/// `[batch, ports, history, features]` to `[batch, ports, features * filters * history]`, as an
/// image with a row per port and filters of one row.
fn convolve(
    graph: &mut Graph,
    network: &Network,
    name: &str,
    conv: &Convolution,
    values: &str,
) -> String {
    let (features, half) = (network.features.len(), (conv.taps / 2) as i64);
    let channels = features * conv.filters;
    let weight = graph.floats(
        &format!("{name}.weight"),
        &[channels, 1, 1, conv.taps],
        &conv.weight,
    );
    let bias = graph.floats(&format!("{name}.bias"), &[channels], &conv.bias);
    let step = |step: &str| format!("{name}.{step}");
    let order = |order: [i64; 4]| [("perm", Attribute::Integers(order.to_vec()))];
    let image = graph.node(
        "Transpose",
        &step("features_first"),
        &[values],
        &order([0, 3, 1, 2]),
    );
    let attributes = [
        ("group", Attribute::Integer(features as i64)),
        (
            "kernel_shape",
            Attribute::Integers(vec![1, conv.taps as i64]),
        ),
        ("pads", Attribute::Integers(vec![0, half, 0, half])),
    ];
    let convolved = graph.node("Conv", name, &[&image, &weight, &bias], &attributes);
    let positive = graph.node("Relu", &step("relu"), &[&convolved], &[]);
    let ports = graph.node(
        "Transpose",
        &step("ports_first"),
        &[&positive],
        &order([0, 2, 1, 3]),
    );
    let flat = [0, 0, (channels * network.history) as i64];
    let flat = graph.integers(&step("shape"), &flat);
    graph.node("Reshape", &step("flatten"), &[&ports, &flat], &[])
}

fn dense(graph: &mut Graph, stage: &Stage<'_>, values: &str) -> String {
    let step = |step: &str| format!("{}.{step}", stage.name);
    let shape = [stage.inputs, stage.outputs];
    let weight = graph.floats(
        &step("weight"),
        &shape,
        &transpose(&stage.own, stage.outputs),
    );
    let bias = graph.floats(&step("bias"), &[stage.outputs], stage.bias);
    let mut sum = graph.node("MatMul", &step("own"), &[values, &weight], &[]);
    if let Some(mean) = &stage.mean {
        let weight = graph.floats(
            &step("weight_of_mean"),
            &shape,
            &transpose(mean, stage.outputs),
        );
        let ports = graph.integers(&step("ports"), &[1]);
        let keep = [("keepdims", Attribute::Integer(1))];
        let mean = graph.node("ReduceMean", &step("mean"), &[values, &ports], &keep);
        let shared = graph.node("MatMul", &step("shared"), &[&mean, &weight], &[]);
        sum = graph.node("Add", &step("mix"), &[&sum, &shared], &[]);
    }
    let sum = graph.node("Add", &step("add_bias"), &[&sum, &bias], &[]);
    match stage.relu {
        true => graph.node("Relu", &step("relu"), &[&sum], &[]),
        false => sum,
    }
}

/// From μ to the outputs, in the order of operations of
/// [`action_index`](bufgym_env::control::action_index).
fn act(graph: &mut Graph, network: &Network, values: &str) {
    let last = graph.integers("act.last", &[2]);
    let mean = graph.node("Squeeze", "act.mean", &[values, &last], &[]);
    graph.node_to("Tanh", "act.tanh", &[&mean], ACTION, &[]);
    let levels = network.actions.levels as f32;
    let mut number = |name: &str, value: f32| graph.floats(&format!("act.{name}"), &[], &[value]);
    let (one, half, levels, low, high) = (
        number("one", 1.0),
        number("half", 0.5),
        number("levels", levels),
        number("low", 0.0),
        number("high", levels - 1.0),
    );
    let shifted = graph.node("Add", "act.shift", &[ACTION, &one], &[]);
    let share = graph.node("Mul", "act.share", &[&shifted, &half], &[]);
    let cell = graph.node("Mul", "act.cell", &[&share, &levels], &[]);
    let index = graph.node("Floor", "act.floor", &[&cell], &[]);
    let index = graph.node("Clip", "act.clip", &[&index, &low, &high], &[]);
    let integer = [("to", Attribute::Integer(graph::INT64))];
    graph.node_to("Cast", "act.index", &[&index], LEVEL, &integer);
}

fn model(graph: Graph, network: &Network, manifest: &Manifest) -> Result<Message, ExportError> {
    let alphas: Vec<String> = network
        .actions
        .alphas()
        .iter()
        .map(ToString::to_string)
        .collect();
    let about = format!(
        "Sets the threshold factor alpha of every port of a shared-memory switch over the heuristic \
         {}. Trained on {} for {}, seed {}.",
        manifest.low_level, manifest.scenario, manifest.objective, manifest.seed
    );
    let facts = [
        ("features", serde_json::to_string(&network.features)?),
        ("history", format!("{} steps, newest last", network.history)),
        ("alphas", alphas.join(", ")),
        ("low_level", manifest.low_level.to_string()),
        ("scenario", manifest.scenario.clone()),
        ("objective", manifest.objective.clone()),
        ("seed", manifest.seed.to_string()),
        ("weights_sha256", manifest.weights_sha256.clone()),
        ("producer", format!("bufgym {}", env!("CARGO_PKG_VERSION"))),
    ];
    let mut opset = Message::new();
    opset.text(1, "").integer(2, OPSET);
    let mut model = Message::new();
    model
        .integer(1, IR_VERSION)
        .text(2, "bufgym")
        .text(3, env!("CARGO_PKG_VERSION"))
        .text(6, &about)
        .message(7, &graph.into_message("ndt", &about))
        .message(8, &opset);
    for (key, value) in &facts {
        let mut entry = Message::new();
        entry.text(1, key).text(2, value);
        model.message(14, &entry);
    }
    Ok(model)
}
