//! The network in integer arithmetic: 8-bit weights and activations, 32-bit sums, multiplications
//! and shifts, no division and no floating point.
//!
//! [`IntegerNetwork`] is the definition that every integer target computes, bit for bit. A layer
//! forms `sum = bias + Σ weight · input` and, where ReLU follows, rescales it to eight bits:
//!
//! ```text
//! clipped = min(max(sum, 0), cap) >> pre
//! output  = min((clipped * multiplier + 2^(post - 1)) >> post, 255)
//! ```
//!
//! with a `multiplier` per output. No input can make a sum overflow; this is checked when a network
//! is made or read. The mean over ports has sixteen bits, of which the lower eight are a fraction,
//! so that one port among many still changes it.

mod actor;
mod check;
mod file;
mod quantise;
mod rounding;

pub use actor::IntegerActor;
pub use check::IntegerNetworkError;
pub use file::{Agreement, FILE, IntegerFile, IntegerFileError};
pub use quantise::{Calibration, QuantiseError, quantise};

use bufgym_util::convert::floor_u8;
use serde::{Deserialize, Serialize};

/// A permutation-equivariant network in integers. Its inputs are codes of one byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntegerNetwork {
    /// Steps of history, newest last.
    pub history: usize,
    /// The code of each feature.
    pub inputs: Vec<InputCode>,
    /// The layers, first to last.
    pub layers: Vec<IntegerLayer>,
    /// The least output for level 1, 2, …; ascending.
    pub edges: Vec<i32>,
    /// Level `index` is `α = 2^(index - unit)`.
    pub unit: usize,
    /// The policy's mean μ is approximately the output times this.
    pub output_scale: f64,
    /// The second output, where the network sets early drop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early: Option<EarlyOutput>,
}

/// The output of an [`IntegerNetwork`] that sets early drop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlyOutput {
    /// The least output for level 1, 2, …; ascending.
    pub edges: Vec<i32>,
    /// The longest gap between drops, packets, by level; 0 drops none.
    pub gaps: Vec<u32>,
    /// If present, the gaps are multiples of the shortest gap of the switch: one packet per this many bytes of its
    /// buffer, rounded down to a power of two, at least 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_bytes: Option<u64>,
    /// Factor from the output to the policy's mean μ, approximately.
    pub output_scale: f64,
}

/// The code of a feature, which stands for `(code - zero) * scale`, before normalisation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputCode {
    /// Name of the feature.
    pub name: String,
    /// The code of 0.
    pub zero: u8,
    /// The value of one unit.
    pub scale: f64,
    /// The code with which a convolution pads the history: the code of 0 after normalisation.
    pub padding: u8,
}

/// One layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum IntegerLayer {
    /// `[history, features]` to `[features * filters, history]`. Comes first or not at all.
    Convolution(IntegerConvolution),
    /// `[inputs]` to `[outputs]`.
    Dense(IntegerDense),
}

/// A convolution over the steps with separate filters for every feature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntegerConvolution {
    /// Name of the layer.
    pub name: String,
    /// Filters per feature.
    pub filters: usize,
    /// Steps that a filter covers, odd.
    pub taps: usize,
    /// `[features * filters, taps]`.
    pub weight: Vec<i8>,
    /// `[features * filters]`.
    pub bias: Vec<i32>,
    /// Rescaling of sums to outputs.
    pub rescale: Rescale,
}

/// A fully connected layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntegerDense {
    /// Name of the layer.
    pub name: String,
    /// Width of the port's own input.
    pub inputs: usize,
    /// True if the mean of all ports' inputs follows the port's own inputs, which doubles the weights.
    pub with_mean: bool,
    /// Width of the output.
    pub outputs: usize,
    /// `[outputs, inputs]`, or `[outputs, 2 * inputs]` with the mean.
    pub weight: Vec<i8>,
    /// `[outputs]`.
    pub bias: Vec<i32>,
    /// Rescaling of sums to outputs. Only the last layer has none.
    pub rescale: Option<Rescale>,
}

/// From 32-bit sums to eight bits, see the [module](self).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rescale {
    /// Sums are clipped to this. `cap >> pre` is below 2^15.
    pub cap: i32,
    /// Shift before the multiplication.
    pub pre: u32,
    /// Factor of every output, `0 ..= 2^15 - 1`.
    pub multipliers: Vec<i32>,
    /// Shift after the multiplication, at least 1.
    pub post: u32,
}

/// Bits of the fraction of the mean over ports.
pub(crate) const MEAN_FRACTION: u32 = 8;

/// Bits of the fraction of [`reciprocal`].
const RECIPROCAL_FRACTION: u32 = 24;

/// The most ports that the arithmetic of the mean allows.
pub const MAX_PORTS: usize = 1 << 16;

/// `2^24 / ports`, rounded.
///
/// # Panics
/// When there is no port, or more than [`MAX_PORTS`].
pub fn reciprocal(ports: usize) -> u32 {
    assert!((1..=MAX_PORTS).contains(&ports), "{ports} ports");
    let ports = u32::try_from(ports).expect("at most 2^16");
    ((1 << RECIPROCAL_FRACTION) + ports / 2) / ports
}

/// The mean of bytes whose sum over `ports` ports is `sum`, with [`MEAN_FRACTION`] bits after the
/// point.
#[inline(always)]
fn mean(sum: u32, reciprocal: u32) -> i32 {
    const SHIFT: u32 = RECIPROCAL_FRACTION - MEAN_FRACTION;
    // At most 255 · 2^24 and a rounding of half a unit per port: below 2^32.
    ((sum * reciprocal + (1 << (SHIFT - 1))) >> SHIFT).cast_signed()
}

/// The share of the means in a sum.
#[inline(always)]
fn mean_share(weights: &[i8], means: &[i32]) -> i32 {
    let products = weights.iter().zip(means);
    let sum: i32 = products.map(|(&w, &mean)| i32::from(w) * mean).sum();
    (sum + (1 << (MEAN_FRACTION - 1))) >> MEAN_FRACTION
}

impl Rescale {
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no factor is negative: `check` refuses such networks"
    )]
    fn apply(&self, output: usize, sum: i32) -> u8 {
        let clipped = sum.clamp(0, self.cap) >> self.pre;
        let scaled = (clipped * self.multipliers[output] + (1 << (self.post - 1))) >> self.post;
        scaled.min(255) as u8
    }
}

impl IntegerNetwork {
    /// Codes of one port.
    pub fn inputs_per_port(&self) -> usize {
        self.history * self.inputs.len()
    }

    /// Outputs per port: α, and early drop where the network sets it.
    pub fn outputs(&self) -> usize {
        1 + usize::from(self.early.is_some())
    }

    /// Returns the level of an output's value: the number of edges that it reaches. Output 0 is α, output 1 is early
    /// drop.
    ///
    /// # Panics
    /// When there is no such output.
    #[inline]
    pub fn level(&self, output: usize, value: i32) -> usize {
        let edges = match (output, &self.early) {
            (0, _) => &self.edges,
            (1, Some(early)) => &early.edges,
            _ => panic!("there is no output {output}"),
        };
        edges.iter().filter(|&&edge| value >= edge).count()
    }

    /// The codes of float observations `[.., features]` before normalisation, rounded to the
    /// nearest (halves up) and clipped to a byte.
    pub fn encode(&self, observation: &[f32]) -> Vec<u8> {
        let inputs = self.inputs.iter().cycle();
        observation
            .iter()
            .zip(inputs)
            .map(|(&value, input)| {
                let code = f64::from(value) / input.scale + f64::from(input.zero);
                floor_u8((code + 0.5).floor())
            })
            .collect()
    }

    /// Memory of weights, biases and multipliers in a dataplane, with 1, 4 and 2 bytes each.
    pub fn bytes(&self) -> usize {
        let layers = self.layers.iter();
        layers
            .map(|layer| match layer {
                IntegerLayer::Convolution(c) => c.weight.len() + 6 * c.bias.len(),
                IntegerLayer::Dense(d) => {
                    let multipliers = d.rescale.as_ref().map_or(0, |r| r.multipliers.len());
                    d.weight.len() + 4 * d.bias.len() + 2 * multipliers
                }
            })
            .sum()
    }

    /// The outputs of every port, `[ports, outputs]`, for codes `[ports, history, features]`. This is the
    /// definition, written for readability; [`IntegerActor`] computes the same faster.
    ///
    /// # Panics
    /// When there is no port, or more than [`MAX_PORTS`], or the codes have another length.
    pub fn forward(&self, codes: &[u8], ports: usize) -> Vec<i32> {
        let inputs = self.inputs_per_port();
        assert_eq!(codes.len(), ports * inputs);
        let reciprocal = reciprocal(ports);
        let mut rows: Vec<Vec<u8>> = codes.chunks_exact(inputs).map(<[u8]>::to_vec).collect();
        let mut outputs = Vec::new();
        for layer in &self.layers {
            match layer {
                IntegerLayer::Convolution(conv) => {
                    for row in &mut rows {
                        let codes = std::mem::take(row);
                        conv.forward(&codes, &self.inputs, row);
                    }
                }
                IntegerLayer::Dense(dense) => {
                    let shared = dense.shared(&rows, reciprocal);
                    let sums = |row: &Vec<u8>| dense.sums(row, &shared);
                    let sums: Vec<Vec<i32>> = rows.iter().map(sums).collect();
                    match &dense.rescale {
                        None => outputs = sums.concat(),
                        Some(rescale) => {
                            let eight_bits = |sums: Vec<i32>| {
                                let numbered = sums.into_iter().enumerate();
                                numbered.map(|(o, sum)| rescale.apply(o, sum)).collect()
                            };
                            rows = sums.into_iter().map(eight_bits).collect();
                        }
                    }
                }
            }
        }
        outputs
    }
}

impl IntegerConvolution {
    /// Convolves `[history, features]` and appends the result, `[features * filters, history]`.
    fn forward(&self, row: &[u8], inputs: &[InputCode], out: &mut Vec<u8>) {
        let features = inputs.len();
        let (history, half) = (row.len() / features, self.taps / 2);
        for (channel, filter) in self.weight.chunks_exact(self.taps).enumerate() {
            let feature = channel / self.filters;
            let code = |step: usize, tap: usize| {
                let source = (step + tap).checked_sub(half).filter(|&s| s < history);
                source.map_or(inputs[feature].padding, |s| row[s * features + feature])
            };
            for step in 0..history {
                let taps = filter.iter().enumerate();
                let products = taps.map(|(tap, &w)| i32::from(w) * i32::from(code(step, tap)));
                let sum = self.bias[channel] + products.sum::<i32>();
                out.push(self.rescale.apply(channel, sum));
            }
        }
    }
}

impl IntegerDense {
    /// The start of every port's sums: the bias and the share of the mean.
    fn shared(&self, rows: &[Vec<u8>], reciprocal: u32) -> Vec<i32> {
        if !self.with_mean {
            return self.bias.clone();
        }
        let means: Vec<i32> = (0..self.inputs)
            .map(|k| mean(rows.iter().map(|row| u32::from(row[k])).sum(), reciprocal))
            .collect();
        let weights = self.weight.chunks_exact(2 * self.inputs);
        weights
            .zip(&self.bias)
            .map(|(row, bias)| bias + mean_share(&row[self.inputs..], &means))
            .collect()
    }

    fn sums(&self, row: &[u8], shared: &[i32]) -> Vec<i32> {
        let weights = self.weight.chunks_exact(self.row_weights());
        weights
            .zip(shared)
            .map(|(weights, start)| {
                let products = weights.iter().zip(row);
                start
                    + products
                        .map(|(&w, &x)| i32::from(w) * i32::from(x))
                        .sum::<i32>()
            })
            .collect()
    }

    /// Weights of one output.
    pub(crate) fn row_weights(&self) -> usize {
        self.inputs * (1 + usize::from(self.with_mean))
    }
}

#[cfg(test)]
mod tests;
