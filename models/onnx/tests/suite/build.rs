//! Small ONNX files, built message by message.

use std::path::Path;

use bufgym_env::control::{Controller as _, FEATURES, HISTORY};
use bufgym_onnx::{OnnxError, OnnxNetwork, Settings};
use prost::Message as _;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension};
use tract_onnx::pb::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto,
    TensorProto, TensorShapeProto, TypeProto, ValueInfoProto, attribute_proto, type_proto,
};

/// A size that is left open.
pub const OPEN: i64 = -1;

/// A model under construction.
#[derive(Clone)]
pub struct Builder(pub ModelProto);

impl Builder {
    /// An empty graph with an input `observation` of these sizes.
    pub fn new(sizes: &[i64]) -> Builder {
        let standard = OperatorSetIdProto {
            domain: String::new(),
            version: 18,
        };
        let builder = Builder(ModelProto {
            ir_version: 8,
            opset_import: vec![standard],
            producer_name: "test".to_owned(),
            graph: Some(GraphProto {
                name: "graph".to_owned(),
                ..GraphProto::default()
            }),
            ..ModelProto::default()
        });
        builder.input("observation", DataType::Float, Some(sizes))
    }

    pub fn graph(&mut self) -> &mut GraphProto {
        self.0.graph.as_mut().unwrap()
    }

    pub fn input(mut self, name: &str, kind: DataType, sizes: Option<&[i64]>) -> Builder {
        self.graph().input.push(value(name, kind, sizes));
        self
    }

    /// Declares an output, a float of unknown shape.
    pub fn output(mut self, name: &str) -> Builder {
        let output = value(name, DataType::Float, None);
        self.graph().output.push(output);
        self
    }

    pub fn floats(mut self, name: &str, shape: &[i64], values: &[f32]) -> Builder {
        self.graph().initializer.push(TensorProto {
            name: name.to_owned(),
            dims: shape.to_vec(),
            data_type: DataType::Float as i32,
            raw_data: values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            ..TensorProto::default()
        });
        self
    }

    pub fn integers(mut self, name: &str, values: &[i64]) -> Builder {
        self.graph().initializer.push(TensorProto {
            name: name.to_owned(),
            dims: vec![values.len() as i64],
            data_type: DataType::Int64 as i32,
            raw_data: values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            ..TensorProto::default()
        });
        self
    }

    pub fn node(self, operator: &str, inputs: &[&str], output: &str) -> Builder {
        self.node_with(operator, inputs, &[output], vec![])
    }

    pub fn node_with(
        mut self,
        operator: &str,
        inputs: &[&str],
        outputs: &[&str],
        attribute: Vec<AttributeProto>,
    ) -> Builder {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        self.graph().node.push(NodeProto {
            input: owned(inputs),
            output: owned(outputs),
            op_type: operator.to_owned(),
            attribute,
            ..NodeProto::default()
        });
        self
    }

    pub fn fact(mut self, key: &str, text: &str) -> Builder {
        self.0.metadata_props.push(StringStringEntryProto {
            key: key.to_owned(),
            value: text.to_owned(),
        });
        self
    }

    /// The mean over the last two dimensions as `name`.
    pub fn mean(self, name: &str) -> Builder {
        self.integers("last", &[-2, -1]).node_with(
            "ReduceMean",
            &["observation", "last"],
            &[name],
            vec![integer("keepdims", 0)],
        )
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.0.encode_to_vec()
    }

    pub fn load(&self) -> Result<OnnxNetwork, OnnxError> {
        self.load_with(&Settings::default())
    }

    pub fn load_with(&self, settings: &Settings) -> Result<OnnxNetwork, OnnxError> {
        OnnxNetwork::parse(&self.bytes(), Path::new("net.onnx"), settings)
    }
}

/// The mean of a port's observation as its action; the number of ports is open.
pub fn simple() -> Builder {
    Builder::new(&[OPEN, HISTORY as i64, FEATURES as i64])
        .mean("action")
        .output("action")
}

pub fn integer(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        r#type: attribute_proto::AttributeType::Int as i32,
        i: value,
        ..AttributeProto::default()
    }
}

pub fn integers(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        r#type: attribute_proto::AttributeType::Ints as i32,
        ints: values.to_vec(),
        ..AttributeProto::default()
    }
}

fn value(name: &str, kind: DataType, sizes: Option<&[i64]>) -> ValueInfoProto {
    let dimension = |&size: &i64| {
        let open = dimension::Value::DimParam("n".to_owned());
        Dimension {
            value: Some(match size {
                OPEN => open,
                size => dimension::Value::DimValue(size),
            }),
            ..Dimension::default()
        }
    };
    let shape = sizes.map(|sizes| TensorShapeProto {
        dim: sizes.iter().map(dimension).collect(),
    });
    let tensor = type_proto::Tensor {
        elem_type: kind as i32,
        shape,
    };
    ValueInfoProto {
        name: name.to_owned(),
        r#type: Some(TypeProto {
            value: Some(type_proto::Value::TensorType(tensor)),
            ..TypeProto::default()
        }),
        ..ValueInfoProto::default()
    }
}

/// An observation of so many ports with values in [-0.8, 0.8], all different.
pub fn observation(ports: usize) -> Vec<f32> {
    let count = ports * HISTORY * FEATURES;
    let value = |place: usize| 0.8 * libm::sinf(1.7 * place as f32 + 0.3);
    (0..count).map(value).collect()
}

/// Returns the decision of a network on [`observation`].
pub fn decided(network: &OnnxNetwork, ports: usize) -> Result<Vec<f32>, OnnxError> {
    let mut actor = network.actor();
    let mut action = vec![0.0; ports * actor.outputs()];
    actor.try_act(&observation(ports), ports, &mut action)?;
    Ok(action)
}
