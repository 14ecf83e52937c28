//! ONNX: a graph that runtimes for servers and embedded machines load.
//!
//! | | name | type and shape |
//! |---|---|---|
//! | input | `observation` | `float32 [batch, ports, history, features]` |
//! | output | `action` | `float32 [batch, ports]`, `tanh(μ)` |
//! | output | `level` | `int64 [batch, ports]`, index into the levels of α |
//! | output | `early_action` | as `action`, for early drop; where the network sets it |
//! | output | `early_level` | as `level`, index into the gaps of early drop |
//!
//! `batch` and `ports` are dynamic. Every operator works on `[batch, ports, ..]`, so that shape
//! inference keeps both. The mean over ports enters the next layer as a separate product that is
//! added to all ports.

use super::ExportError;
use super::network::{Convolution, Network};
use super::stages::{Stage, Stages};
use bufgym_env::control::ActionSet;
use bufgym_models::checkpoint::Manifest;
use bufgym_models::weights::transpose;
use bufgym_util::convert::signed;

/// Name of the exported file.
pub const FILE: &str = "actor.onnx";
/// Version of the operators.
pub const OPSET: i64 = 18;
/// Version of the file format, ONNX 1.12.
pub const IR_VERSION: i64 = 8;

const INPUT: &str = "observation";
const ACTION: &str = "action";
const LEVEL: &str = "level";
const EARLY_ACTION: &str = "early_action";
const EARLY_LEVEL: &str = "early_level";

/// The network as the bytes of an ONNX file (`onnx.proto`, `ModelProto`).
///
/// # Errors
/// When the layers do not form a network, or a number is out of range.
pub fn encode(network: &Network, manifest: &Manifest) -> Result<Vec<u8>, ExportError> {
    let stages = Stages::of(network, str::to_owned)?;
    let mut graph = Graph::new();
    let mut values = normalise(&mut graph, network);
    values = match &stages.convolution {
        Some((name, conv)) => convolve(&mut graph, network, name, conv, &values),
        None => {
            let flat = graph.integers("flat", &[0, 0, signed(stages.inputs)]);
            graph.node("Reshape", "flatten", &[&values, &flat], &[])
        }
    };
    for stage in &stages.stages {
        values = dense(&mut graph, stage, &values);
    }
    let outputs = split(&mut graph, network, &values);
    let named = [("act", ACTION, LEVEL), ("early", EARLY_ACTION, EARLY_LEVEL)];
    for ((mean, levels), (prefix, action, level)) in outputs.iter().zip(network.levels()).zip(named)
    {
        act(&mut graph, prefix, mean, levels, [action, level]);
    }

    let (history, features) = (signed(network.history), signed(network.features.len()));
    graph.input(INPUT, &["batch", "ports"], &[history, features]);
    for (_, action, level) in named.iter().take(outputs.len()) {
        graph.float_output(action, &["batch", "ports"]);
        graph.integer_output(level, &["batch", "ports"]);
    }
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

/// `[batch, ports, history, features]` to `[batch, ports, features * filters * history]`, computed as
/// the convolution of an image that has a row per port, with filters of one row.
fn convolve(
    graph: &mut Graph,
    network: &Network,
    name: &str,
    conv: &Convolution,
    values: &str,
) -> String {
    let (features, half) = (network.features.len(), signed(conv.taps / 2));
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
        ("group", Attribute::Integer(signed(features))),
        (
            "kernel_shape",
            Attribute::Integers(vec![1, signed(conv.taps)]),
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
    let flat = [0, 0, signed(channels * network.history)];
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

/// `[batch, ports, outputs]` to the μ of each output, `[batch, ports]`.
fn split(graph: &mut Graph, network: &Network, values: &str) -> Vec<String> {
    match network.outputs() {
        1 => {
            let last = graph.integers("act.last", &[2]);
            vec![graph.node("Squeeze", "act.mean", &[values, &last], &[])]
        }
        outputs => (0..outputs)
            .map(|output| {
                let place = graph.integer(&format!("output.{output}"), signed(output));
                let axis = [("axis", Attribute::Integer(2))];
                let name = format!("output.{output}.mean");
                graph.node("Gather", &name, &[values, &place], &axis)
            })
            .collect(),
    }
}

/// Adds the nodes from the μ of an output to its action and its level, with the same order of operations as
/// [`action_index`](bufgym_env::control::action_index). Nodes and constants are named after `prefix`.
fn act(graph: &mut Graph, prefix: &str, mean: &str, levels: usize, [action, level]: [&str; 2]) {
    let named = |name: &str| format!("{prefix}.{name}");
    graph.node_to("Tanh", &named("tanh"), &[mean], action, &[]);
    let levels = levels as f32;
    let mut number = |name: &str, value: f32| graph.floats(&named(name), &[], &[value]);
    let (one, half, levels, low, high) = (
        number("one", 1.0),
        number("half", 0.5),
        number("levels", levels),
        number("low", 0.0),
        number("high", levels - 1.0),
    );
    let shifted = graph.node("Add", &named("shift"), &[action, &one], &[]);
    let share = graph.node("Mul", &named("share"), &[&shifted, &half], &[]);
    let cell = graph.node("Mul", &named("cell"), &[&share, &levels], &[]);
    let index = graph.node("Floor", &named("floor"), &[&cell], &[]);
    let index = graph.node("Clip", &named("clip"), &[&index, &low, &high], &[]);
    let integer = [("to", Attribute::Integer(INT64))];
    graph.node_to("Cast", &named("index"), &[&index], level, &integer);
}

fn model(graph: Graph, network: &Network, manifest: &Manifest) -> Result<Message, ExportError> {
    let alphas: Vec<String> = network
        .actions
        .alphas()
        .iter()
        .map(ToString::to_string)
        .collect();
    let (actions, sets) = match network.gaps {
        None => (ActionSet::Alpha, "alpha"),
        Some(_) => (ActionSet::AlphaEarly, "alpha and the level of early drop"),
    };
    let about = format!(
        "Sets the threshold factor {sets} of every port of a shared-memory switch over the heuristic \
         {}. Trained on {} for {}, seed {}.",
        manifest.low_level, manifest.scenario, manifest.objective, manifest.seed
    );
    let mut facts = vec![
        ("features", serde_json::to_string(&network.features)?),
        ("history", format!("{} steps, newest last", network.history)),
        ("alphas", alphas.join(", ")),
        ("low_level", manifest.low_level.to_string()),
        ("actions", actions.to_string()),
        ("scenario", manifest.scenario.clone()),
        ("objective", manifest.objective.clone()),
        ("seed", manifest.seed.to_string()),
        ("weights_sha256", manifest.weights_sha256.clone()),
        ("producer", format!("bufgym {}", env!("CARGO_PKG_VERSION"))),
    ];
    if let Some(gaps) = &network.gaps {
        let numbers: Vec<String> = gaps.iter().map(ToString::to_string).collect();
        let meaning = "level: index into alphas; early_level: index into early_gaps, where of the packets \
                       that find a long queue one in a gap is dropped, drawn from 1 to so many; 0: none";
        facts.push(("early_gaps", numbers.join(", ")));
        match network.gap_bytes {
            None => facts.push(("outputs", meaning.to_owned())),
            Some(bytes) => {
                let unit = "early_gaps are multiples of the shortest gap of the switch: one packet for every \
                            early_gap_bytes of its buffer, rounded down to a power of two, 2 at least";
                facts.push(("early_gap_bytes", bytes.to_string()));
                facts.push(("outputs", format!("{meaning}; {unit}")));
            }
        }
    }
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

/// `TensorProto.DataType`.
const FLOAT: i64 = 1;
const INT64: i64 = 7;

/// `AttributeProto.AttributeType`.
const INTEGER: i64 = 2;
const INTEGERS: i64 = 7;

/// The value of an attribute.
enum Attribute {
    Integer(i64),
    Integers(Vec<i64>),
}

/// A graph under construction (`onnx.proto`: `GraphProto`, `NodeProto`, `TensorProto`,
/// `ValueInfoProto`). Nodes must be added in an order in which they can run.
#[derive(Default)]
struct Graph {
    nodes: Vec<Message>,
    constants: Vec<Message>,
    inputs: Vec<Message>,
    outputs: Vec<Message>,
}

impl Graph {
    fn new() -> Graph {
        Graph::default()
    }

    /// Adds a constant and returns its name.
    fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) -> String {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        self.constant(name, FLOAT, shape, &bytes.collect::<Vec<u8>>())
    }

    /// Adds a constant vector and returns its name.
    fn integers(&mut self, name: &str, values: &[i64]) -> String {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        self.constant(name, INT64, &[values.len()], &bytes.collect::<Vec<u8>>())
    }

    /// Adds a constant without dimensions and returns its name.
    fn integer(&mut self, name: &str, value: i64) -> String {
        self.constant(name, INT64, &[], &value.to_le_bytes())
    }

    fn constant(&mut self, name: &str, kind: i64, shape: &[usize], bytes: &[u8]) -> String {
        let mut tensor = Message::new();
        for &size in shape {
            tensor.integer(1, signed(size));
        }
        tensor.integer(2, kind).text(8, name).bytes(9, bytes);
        self.constants.push(tensor);
        name.to_owned()
    }

    /// Adds an operator and returns the name of its output.
    fn node(
        &mut self,
        operator: &str,
        name: &str,
        inputs: &[&str],
        attributes: &[(&str, Attribute)],
    ) -> String {
        let output = format!("{name}.out");
        self.node_to(operator, name, inputs, &output, attributes);
        output
    }

    /// Adds an operator whose output has this name.
    fn node_to(
        &mut self,
        operator: &str,
        name: &str,
        inputs: &[&str],
        output: &str,
        attributes: &[(&str, Attribute)],
    ) {
        let mut node = Message::new();
        for input in inputs {
            node.text(1, input);
        }
        node.text(2, output).text(3, name).text(4, operator);
        for (name, value) in attributes {
            let mut attribute = Message::new();
            attribute.text(1, name);
            match value {
                Attribute::Integer(value) => attribute.integer(3, *value).integer(20, INTEGER),
                Attribute::Integers(values) => {
                    for &value in values {
                        attribute.integer(8, value);
                    }
                    attribute.integer(20, INTEGERS)
                }
            };
            node.message(5, &attribute);
        }
        self.nodes.push(node);
    }

    /// Adds an input of floats with dynamic sizes, then fixed ones.
    fn input(&mut self, name: &str, dynamic: &[&str], fixed: &[i64]) {
        self.inputs.push(value_info(name, FLOAT, dynamic, fixed));
    }

    /// Adds an output of floats with dynamic sizes.
    fn float_output(&mut self, name: &str, dynamic: &[&str]) {
        self.outputs.push(value_info(name, FLOAT, dynamic, &[]));
    }

    /// Adds an output of integers with dynamic sizes.
    fn integer_output(&mut self, name: &str, dynamic: &[&str]) {
        self.outputs.push(value_info(name, INT64, dynamic, &[]));
    }

    fn into_message(self, name: &str, about: &str) -> Message {
        let mut graph = Message::new();
        let mut all = |field: u64, messages: &[Message]| {
            for message in messages {
                graph.message(field, message);
            }
        };
        all(1, &self.nodes);
        all(5, &self.constants);
        all(11, &self.inputs);
        all(12, &self.outputs);
        graph.text(2, name).text(10, about);
        graph
    }
}

fn value_info(name: &str, kind: i64, dynamic: &[&str], fixed: &[i64]) -> Message {
    let mut shape = Message::new();
    for name in dynamic {
        let mut size = Message::new();
        size.text(2, name);
        shape.message(1, &size);
    }
    for &size in fixed {
        let mut dimension = Message::new();
        dimension.integer(1, size);
        shape.message(1, &dimension);
    }
    let mut tensor = Message::new();
    tensor.integer(1, kind).message(2, &shape);
    let mut kind = Message::new();
    kind.message(1, &tensor);
    let mut info = Message::new();
    info.text(1, name).message(2, &kind);
    info
}

/// A Protocol Buffers message under construction, with the few kinds of fields that ONNX needs
/// (<https://protobuf.dev/programming-guides/encoding>).
#[derive(Clone, Debug, Default)]
struct Message(Vec<u8>);

const VARINT: u64 = 0;
const LENGTH: u64 = 2;

impl Message {
    fn new() -> Message {
        Message::default()
    }

    /// An `int32`, `int64` or `enum` field.
    fn integer(&mut self, field: u64, value: i64) -> &mut Message {
        self.varint(field << 3 | VARINT);
        self.varint(value.cast_unsigned());
        self
    }

    /// A `bytes` field.
    fn bytes(&mut self, field: u64, value: &[u8]) -> &mut Message {
        self.varint(field << 3 | LENGTH);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// A `string` field.
    fn text(&mut self, field: u64, value: &str) -> &mut Message {
        self.bytes(field, value.as_bytes())
    }

    /// A message within this one.
    fn message(&mut self, field: u64, value: &Message) -> &mut Message {
        self.bytes(field, &value.0)
    }

    fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Writes seven bits per byte, lowest first. The highest bit of a byte is set if another byte follows.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push((value & 0x7f) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification() {
        let mut inner = Message::new();
        inner.integer(1, 150);
        assert_eq!(inner.0, [0x08, 0x96, 0x01]);
        let mut outer = Message::new();
        outer.text(2, "testing");
        assert_eq!(outer.0, b"\x12\x07testing");
        let mut outer = Message::new();
        outer.message(3, &inner);
        assert_eq!(outer.into_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let mut negative = Message::new();
        negative.integer(1, -2);
        let expected = [
            0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
        ];
        assert_eq!(negative.0, expected);
    }
}
