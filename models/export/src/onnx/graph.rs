//! The parts of an ONNX graph (`onnx.proto`: `GraphProto`, `NodeProto`, `TensorProto`,
//! `ValueInfoProto`). Numbers of fields are those of that file.

use super::protobuf::Message;

/// `TensorProto.DataType`.
const FLOAT: i64 = 1;
pub(super) const INT64: i64 = 7;

/// `AttributeProto.AttributeType`.
const INTEGER: i64 = 2;
const INTEGERS: i64 = 7;

/// The value of an attribute.
pub(super) enum Attribute {
    Integer(i64),
    Integers(Vec<i64>),
}

/// A graph under construction. Nodes must be added in an order in which they can run.
#[derive(Default)]
pub(super) struct Graph {
    nodes: Vec<Message>,
    constants: Vec<Message>,
    inputs: Vec<Message>,
    outputs: Vec<Message>,
}

impl Graph {
    pub(super) fn new() -> Graph {
        Graph::default()
    }

    /// A constant; returns its name.
    pub(super) fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) -> String {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        self.constant(name, FLOAT, shape, &bytes.collect::<Vec<u8>>())
    }

    /// A constant vector; returns its name.
    pub(super) fn integers(&mut self, name: &str, values: &[i64]) -> String {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        self.constant(name, INT64, &[values.len()], &bytes.collect::<Vec<u8>>())
    }

    fn constant(&mut self, name: &str, kind: i64, shape: &[usize], bytes: &[u8]) -> String {
        let mut tensor = Message::new();
        for &size in shape {
            tensor.integer(1, size as i64);
        }
        tensor.integer(2, kind).text(8, name).bytes(9, bytes);
        self.constants.push(tensor);
        name.to_owned()
    }

    /// An operator; returns the name of its output.
    pub(super) fn node(
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

    /// An operator with an output of this name.
    pub(super) fn node_to(
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

    /// An input of floats with dynamic sizes, then fixed ones.
    pub(super) fn input(&mut self, name: &str, dynamic: &[&str], fixed: &[i64]) {
        self.inputs.push(value_info(name, FLOAT, dynamic, fixed));
    }

    /// An output of floats with dynamic sizes.
    pub(super) fn float_output(&mut self, name: &str, dynamic: &[&str]) {
        self.outputs.push(value_info(name, FLOAT, dynamic, &[]));
    }

    /// An output of integers with dynamic sizes.
    pub(super) fn integer_output(&mut self, name: &str, dynamic: &[&str]) {
        self.outputs.push(value_info(name, INT64, dynamic, &[]));
    }

    pub(super) fn into_message(self, name: &str, about: &str) -> Message {
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
