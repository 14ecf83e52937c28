//! The integer network as C99.
//!
//! No allocation, no division, no floating point: sums of bytes, multiplications and shifts. The
//! dense layers and the convolution have forms for AVX-512 VNNI and AVX2, chosen when the code is
//! compiled, and a plain one; all give the same bits. Ports that are alike are computed once.

mod render;

use super::c::text::identifier;
use super::int8::{IntegerDense, IntegerLayer, IntegerNetwork, MAX_PORTS};

/// Name of the header.
pub const HEADER: &str = "ndt_int8.h";
/// Name of the source file.
pub const SOURCE: &str = "ndt_int8.c";

/// The header and the source file. `origin` are lines about where the network comes from.
///
/// # Panics
/// When the network has not been [checked](IntegerNetwork::check).
pub fn render(network: &IntegerNetwork, origin: &[String]) -> [String; 2] {
    let plan = Plan::new(network);
    [
        render::header(network, &plan, origin),
        render::source(network, &plan, origin),
    ]
}

/// A dense layer as it lies in memory.
struct Packed<'a> {
    /// What its arrays are called, unlike any other layer's.
    name: String,
    dense: &'a IntegerDense,
    /// `[groups of 4 inputs][outputs][4]`, zero where there is none.
    own: Vec<i8>,
    /// `[inputs][outputs]` for the mean, empty without.
    mean: Vec<i8>,
    groups: usize,
    /// A multiple of 16.
    outputs: usize,
}

/// Layers between two means, computed port by port.
#[derive(Default)]
struct Stage<'a> {
    convolution: bool,
    layers: Vec<Packed<'a>>,
}

/// How the layers are computed.
struct Plan<'a> {
    stages: Vec<Stage<'a>>,
    /// Weights of the last layer in the order of its inputs.
    last: &'a IntegerDense,
    /// The widest row of activations.
    width: usize,
    /// The widest row that is kept between stages.
    kept: usize,
}

impl<'a> Plan<'a> {
    fn new(network: &'a IntegerNetwork) -> Plan<'a> {
        let mut stages = vec![Stage::default()];
        let mut order: Vec<usize> = (0..network.inputs_per_port()).collect();
        let mut widths = vec![order.len()];
        let mut kept = 1;
        let mut last = None;
        for (index, layer) in network.layers.iter().enumerate() {
            match layer {
                IntegerLayer::Convolution(conv) => {
                    let channels = conv.bias.len();
                    // Steps outside, channels inside; the description has it the other way round.
                    let place = |i: usize| i % channels * network.history + i / channels;
                    order = (0..channels * network.history).map(place).collect();
                    stages[0].convolution = true;
                    widths.push(order.len());
                }
                IntegerLayer::Dense(dense) => {
                    if dense.with_mean {
                        kept = kept.max(padded(order.len()));
                        stages.push(Stage::default());
                    }
                    let stage = stages.last_mut().expect("there is a first stage");
                    stage.layers.push(Packed::new(index, dense, &order));
                    order = (0..dense.outputs).collect();
                    widths.push(dense.outputs);
                    last = Some(dense);
                }
            }
        }
        Plan {
            stages,
            last: last.expect("a checked network ends in a dense layer"),
            width: widths.into_iter().map(padded).max().unwrap_or(16),
            kept,
        }
    }
}

/// To whole vectors.
fn padded(width: usize) -> usize {
    width.next_multiple_of(16)
}

impl<'a> Packed<'a> {
    /// `order[k]` is the number, in the description, of the input that lies at `k`.
    fn new(index: usize, dense: &'a IntegerDense, order: &[usize]) -> Packed<'a> {
        let groups = dense.inputs.div_ceil(4);
        let outputs = padded(dense.outputs);
        let mut own = vec![0; groups * outputs * 4];
        let mut mean = vec![
            0;
            if dense.with_mean {
                dense.inputs * outputs
            } else {
                0
            }
        ];
        let rows = dense.weight.chunks_exact(dense.row_weights());
        for (output, row) in rows.enumerate() {
            for (place, &input) in order.iter().enumerate() {
                own[(place / 4 * outputs + output) * 4 + place % 4] = row[input];
                if dense.with_mean {
                    mean[place * outputs + output] = row[dense.inputs + input];
                }
            }
        }
        Packed {
            name: format!("ndt_layer_{index}_{}", identifier(&dense.name)),
            dense,
            own,
            mean,
            groups,
            outputs,
        }
    }
}

/// The most ports that the code can be compiled for.
const PORT_LIMIT: usize = MAX_PORTS;
