//! Mutations of the structure of ONNX networks: operators, attributes, types, sizes, values and names.

use prost::Message as _;
use rand::RngExt as _;
use rand::seq::IndexedRandom as _;
use rand_xoshiro::Xoshiro256PlusPlus as Random;
use tract_onnx::pb::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};

/// Numbers on which sizes, dimensions and counts often fail.
const NUMBERS: [i64; 18] = [
    0,
    1,
    -1,
    2,
    -2,
    3,
    5,
    8,
    40,
    1_000,
    65_536,
    1 << 20,
    1 << 31,
    1 << 40,
    -(1 << 40),
    i64::MAX,
    i64::MIN,
    -7,
];

/// Operators that depend on sizes and indices, or contain loops.
const OPERATORS: [&str; 48] = [
    "Add",
    "ArgMax",
    "AveragePool",
    "Cast",
    "Clip",
    "Compress",
    "Concat",
    "ConstantOfShape",
    "Conv",
    "ConvTranspose",
    "CumSum",
    "DepthToSpace",
    "Div",
    "Einsum",
    "Expand",
    "EyeLike",
    "Flatten",
    "GRU",
    "Gather",
    "GatherElements",
    "GatherND",
    "Gemm",
    "LRN",
    "LSTM",
    "LayerNormalization",
    "MatMul",
    "MaxPool",
    "Mod",
    "NonZero",
    "OneHot",
    "Pad",
    "Pow",
    "RNN",
    "Range",
    "ReduceMean",
    "ReduceSum",
    "Reshape",
    "Resize",
    "ScatterND",
    "Shape",
    "Slice",
    "Softmax",
    "Split",
    "Squeeze",
    "Tile",
    "TopK",
    "Transpose",
    "Unsqueeze",
];

/// Attributes that operators have.
const ATTRIBUTES: [&str; 16] = [
    "axes",
    "axis",
    "batch_dims",
    "blocksize",
    "dilations",
    "group",
    "hidden_size",
    "k",
    "keepdims",
    "kernel_shape",
    "num_outputs",
    "pads",
    "perm",
    "split",
    "strides",
    "to",
];

/// Returns the network with one to three mutations; unchanged if the input is no network.
pub fn altered(network: &[u8], random: &mut Random) -> Vec<u8> {
    let Ok(mut model) = ModelProto::decode(network) else {
        return network.to_vec();
    };
    let graph = model.graph.get_or_insert_default();
    for _ in 0..random.random_range(1..=3) {
        alter(graph, random);
    }
    model.encode_to_vec()
}

fn alter(graph: &mut GraphProto, random: &mut Random) {
    let names: Vec<String> = names(graph);
    match random.random_range(0..10) {
        0 | 1 => insert(graph, &names, random),
        2 => with_node(graph, random, |node, random| {
            node.op_type = (*OPERATORS.choose(random).expect("operators")).to_owned();
        }),
        3 | 4 => with_node(graph, random, |node, random| {
            match node.attribute.is_empty() || random.random_range(0..3) == 0 {
                true => node.attribute.push(attribute(random)),
                false => {
                    let place = random.random_range(0..node.attribute.len());
                    alter_attribute(&mut node.attribute[place], random);
                }
            }
        }),
        5 => with_node(graph, random, |node, random| {
            let name = names.choose(random).cloned().unwrap_or_default();
            match node.input.is_empty() || random.random_range(0..4) == 0 {
                true => node.input.push(name),
                false => {
                    let place = random.random_range(0..node.input.len());
                    node.input[place] = name;
                }
            }
        }),
        6 => with_node(graph, random, |node, _| {
            node.input.pop();
        }),
        7 | 8 if !graph.initializer.is_empty() => {
            let place = random.random_range(0..graph.initializer.len());
            alter_constant(&mut graph.initializer[place], random);
        }
        _ => {
            let place = random.random_range(0..=graph.initializer.len());
            let constant = constant(format!("c{}", names.len()), random);
            graph.initializer.insert(place, constant);
        }
    }
}

/// Returns the names of all values of the graph.
fn names(graph: &GraphProto) -> Vec<String> {
    let inputs = graph.input.iter().map(|input| &input.name);
    let constants = graph.initializer.iter().map(|constant| &constant.name);
    let outputs = graph.node.iter().flat_map(|node| &node.output);
    inputs.chain(constants).chain(outputs).cloned().collect()
}

fn with_node(
    graph: &mut GraphProto,
    random: &mut Random,
    alter: impl FnOnce(&mut NodeProto, &mut Random),
) {
    if !graph.node.is_empty() {
        let place = random.random_range(0..graph.node.len());
        alter(&mut graph.node[place], random);
    }
}

/// Inserts an operator between a value and the operator that reads it, with constants as further inputs.
fn insert(graph: &mut GraphProto, names: &[String], random: &mut Random) {
    if graph.node.is_empty() {
        return;
    }
    let place = random.random_range(0..graph.node.len());
    let output = format!("v{}", names.len());
    let mut input: Vec<String> = graph.node[place]
        .input
        .first()
        .cloned()
        .into_iter()
        .collect();
    for number in 0..random.random_range(0..3) {
        let name = format!("k{}-{number}", names.len());
        graph.initializer.push(constant(name.clone(), random));
        input.push(name);
    }
    // Half of the operators have constants only.
    if input.len() > 1 && random.random() {
        input.remove(0);
    }
    let count = random.random_range(0..3);
    let inserted = NodeProto {
        input,
        output: vec![output.clone()],
        op_type: (*OPERATORS.choose(random).expect("operators")).to_owned(),
        attribute: (0..count).map(|_| attribute(random)).collect(),
        ..NodeProto::default()
    };
    if let Some(first) = graph.node[place].input.first_mut() {
        *first = output;
    }
    graph.node.insert(place, inserted);
}

fn number(random: &mut Random) -> i64 {
    *NUMBERS.choose(random).expect("numbers")
}

fn numbers(random: &mut Random) -> Vec<i64> {
    let count = random.random_range(0..5);
    (0..count).map(|_| number(random)).collect()
}

fn attribute(random: &mut Random) -> AttributeProto {
    const INT: i32 = 2;
    const INTS: i32 = 7;
    let name = *ATTRIBUTES.choose(random).expect("attributes");
    let is_list = [
        "axes",
        "dilations",
        "kernel_shape",
        "pads",
        "perm",
        "split",
        "strides",
    ]
    .contains(&name);
    AttributeProto {
        name: name.to_owned(),
        r#type: if is_list { INTS } else { INT },
        i: if is_list { 0 } else { number(random) },
        ints: if is_list { numbers(random) } else { Vec::new() },
        ..AttributeProto::default()
    }
}

fn alter_attribute(attribute: &mut AttributeProto, random: &mut Random) {
    match random.random_range(0..4) {
        0 => attribute.i = number(random),
        1 => attribute.ints = numbers(random),
        2 => attribute.r#type = random.random_range(0..14),
        _ => match attribute.ints.is_empty() {
            true => attribute.i = number(random),
            false => {
                let place = random.random_range(0..attribute.ints.len());
                attribute.ints[place] = number(random);
            }
        },
    }
}

/// Returns a constant of integers or floating-point numbers.
fn constant(name: String, random: &mut Random) -> TensorProto {
    const FLOAT: i32 = 1;
    const INT64: i32 = 7;
    let values = numbers(random);
    let is_whole = random.random();
    let raw_data = values.iter().flat_map(|&value| match is_whole {
        true => value.to_le_bytes().to_vec(),
        false => (value as f32).to_le_bytes().to_vec(),
    });
    TensorProto {
        name,
        dims: match values.len() {
            1 if random.random() => Vec::new(),
            length => vec![i64::try_from(length).expect("short lists")],
        },
        data_type: if is_whole { INT64 } else { FLOAT },
        raw_data: raw_data.collect(),
        ..TensorProto::default()
    }
}

fn alter_constant(constant: &mut TensorProto, random: &mut Random) {
    match random.random_range(0..6) {
        0 => constant.data_type = random.random_range(0..24),
        1 => constant.dims = numbers(random),
        2 => constant.dims.insert(0, 1),
        3 => {
            constant.raw_data.pop();
        }
        4 => constant.dims.reverse(),
        _ => {
            let (values, _) = constant.raw_data.as_chunks_mut::<8>();
            if !values.is_empty() {
                let place = random.random_range(0..values.len());
                values[place] = number(random).to_le_bytes();
            }
        }
    }
}
