//! The description of a network that exporters read: layers, weights, normalisation, action table.

use bufgym_env::control::{ALPHAS, HISTORY, INITIAL_INDEX};
use bufgym_sim::switch::aqm::early::{EarlyGaps, GAPS};

use bufgym_models::checkpoint::{Feature, Manifest};
use bufgym_models::weights::{
    ActorWeights, CHANNELS, CONVOLVED, EMBEDDING, FILTERS, HIDDEN, tensor,
};
use bufgym_models::windows::TAPS;
use bufgym_util::convert::whole_i32;

/// A permutation-equivariant network with one or two outputs per port.
///
/// The layers are applied to every port, each with the output of the one before. The first reads
/// the port's history `[history, features]`; the outputs of the last are the means μ of the policy
/// before tanh: for α, then for early drop where the network sets it.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Steps of history, newest last.
    pub history: usize,
    /// The inputs of one step, in order.
    pub features: Vec<Feature>,
    /// The layers, first to last.
    pub layers: Vec<Layer>,
    /// The levels of α that the first output stands for.
    pub actions: Actions,
    /// Longest gaps between early drops that the second output stands for, packets, by level; 0 drops none. Without
    /// them there is no second output.
    pub gaps: Option<Vec<u32>>,
    /// If present, the gaps are multiples of the shortest gap of the switch: one packet per this many bytes of its
    /// buffer, rounded down to a power of two, at least 2.
    pub gap_bytes: Option<u64>,
}

/// One layer of a [`Network`].
#[derive(Clone, Debug, PartialEq)]
pub enum Layer {
    /// `[history, features]` to `[features * filters, history]`, then ReLU. Comes first or not at
    /// all.
    Convolution(Convolution),
    /// `[inputs]` to `[outputs]`.
    Dense(Dense),
    /// `[width]` to `[2 * width]`: appends the mean over all ports.
    AppendMean,
}

/// A convolution over the steps with separate filters for every feature. The normalised features
/// are padded with zeros, so that the number of steps stays the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Convolution {
    /// Name of the layer, as in PyTorch's state dictionary.
    pub name: String,
    /// Filters per feature.
    pub filters: usize,
    /// Steps that a filter covers, odd.
    pub taps: usize,
    /// `[features * filters, taps]`.
    pub weight: Vec<f32>,
    /// `[features * filters]`.
    pub bias: Vec<f32>,
}

/// A fully connected layer, `y = W x + b`, then ReLU if `relu`.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    /// Name of the layer, as in PyTorch's state dictionary.
    pub name: String,
    /// Width of the input.
    pub inputs: usize,
    /// Width of the output.
    pub outputs: usize,
    /// `[outputs, inputs]`.
    pub weight: Vec<f32>,
    /// `[outputs]`.
    pub bias: Vec<f32>,
    /// True if ReLU follows.
    pub relu: bool,
}

/// The levels of α, a power of two each, in equal cells of `[-1, 1]` (NDT §V-A).
#[derive(Clone, Debug, PartialEq)]
pub struct Actions {
    /// Number of levels.
    pub levels: usize,
    /// Level `index` is `α = 2^(index - unit)`.
    pub unit: usize,
}

/// Returns the least μ for each of the levels 1, 2, …, of `levels` in all: there `tanh μ` enters the next of as many
/// equal cells. These are `levels - 1` numbers, ascending.
pub fn edges(levels: usize) -> Vec<f64> {
    let cell = |index: usize| -1.0 + 2.0 * index as f64 / levels as f64;
    (1..levels).map(|index| libm::atanh(cell(index))).collect()
}

impl Actions {
    /// The [`edges`] between the levels.
    pub fn edges(&self) -> Vec<f64> {
        edges(self.levels)
    }

    /// The levels of α.
    pub fn alphas(&self) -> Vec<f64> {
        (0..self.levels)
            .map(|index| 2f64.powi(whole_i32(index as f64 - self.unit as f64)))
            .collect()
    }
}

/// The reason why layers do not form a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// A layer does not fit the one before it, or its own sizes.
    #[error("layer {index} ({name}): {reason}")]
    Layer {
        /// Number of the layer, from 0.
        index: usize,
        /// Name of the layer.
        name: String,
        /// Description of the mismatch.
        reason: String,
    },
    /// The last layer has another number of outputs than there are tables of levels, or there is none.
    #[error(
        "the last layer has {found} outputs; must be {expected}, one for alpha and one for early drop where the network sets it"
    )]
    Outputs {
        /// Outputs of the last layer; 0 without layers.
        found: usize,
        /// Outputs that have levels.
        expected: usize,
    },
}

impl Network {
    /// Returns the mean of a trained actor with the manifest of its checkpoint. If it has neither one nor two outputs,
    /// it does not pass [`widths`](Network::widths).
    pub fn from_actor(weights: &ActorWeights, manifest: &Manifest) -> Network {
        let dense = |name: &str, index: usize, relu: bool| {
            let (weight, bias) = weights.layer(index);
            Layer::Dense(Dense {
                name: name.to_owned(),
                inputs: weight.len() / bias.len(),
                outputs: bias.len(),
                weight: weight.to_vec(),
                bias: bias.to_vec(),
                relu,
            })
        };
        let (weight, bias) = weights.layer(tensor::CONV);
        let [hidden, out] = tensor::MEAN;
        let gaps = (weights.outputs() > 1).then(|| {
            let gaps = manifest.low_level.early_gaps();
            gaps.unwrap_or(EarlyGaps::Packets(GAPS))
        });
        let network = Network {
            history: HISTORY,
            features: manifest.features.clone(),
            layers: vec![
                Layer::Convolution(Convolution {
                    name: "conv".to_owned(),
                    filters: FILTERS,
                    taps: TAPS,
                    weight: weight.to_vec(),
                    bias: bias.to_vec(),
                }),
                dense("embed", tensor::EMBED, true),
                Layer::AppendMean,
                dense("mix", tensor::MIX, true),
                dense("mean.0", hidden, true),
                dense("mean.2", out, false),
            ],
            actions: Actions {
                levels: ALPHAS.len(),
                unit: INITIAL_INDEX,
            },
            gaps: gaps.map(|gaps| gaps.by_level().to_vec()),
            gap_bytes: gaps.and_then(EarlyGaps::bytes_per_packet),
        };
        debug_assert_eq!(
            network.widths(),
            Ok(vec![
                CHANNELS * HISTORY,
                EMBEDDING,
                2 * EMBEDDING,
                HIDDEN,
                HIDDEN,
                weights.outputs()
            ])
        );
        debug_assert_eq!(CONVOLVED, CHANNELS * HISTORY);
        network
    }

    /// Outputs per port: α, and early drop where the network sets it.
    pub fn outputs(&self) -> usize {
        self.levels().len()
    }

    /// The number of levels of every output.
    pub fn levels(&self) -> Vec<usize> {
        let early = self.gaps.iter().map(Vec::len);
        std::iter::once(self.actions.levels).chain(early).collect()
    }

    /// Width of every layer's output at one port.
    ///
    /// # Errors
    /// When the layers do not form a network.
    pub fn widths(&self) -> Result<Vec<usize>, NetworkError> {
        let mut width = self.history * self.features.len();
        let mut widths = Vec::with_capacity(self.layers.len());
        for (index, layer) in self.layers.iter().enumerate() {
            width = layer
                .width(index, width, self.features.len(), self.history)
                .map_err(|reason| NetworkError::Layer {
                    index,
                    name: layer.name().to_owned(),
                    reason,
                })?;
            widths.push(width);
        }
        let found = widths.last().copied().unwrap_or(0);
        let expected = self.outputs();
        match found == expected {
            true => Ok(widths),
            false => Err(NetworkError::Outputs { found, expected }),
        }
    }

    /// The outputs μ of every port, `[ports, outputs]`, for an observation `[ports, history, features]`,
    /// in double precision. Exports are tested against it.
    ///
    /// # Panics
    /// When the observation has another length, or the layers do not form a network.
    pub fn forward(&self, observation: &[f32], ports: usize) -> Vec<f64> {
        let mut outputs = Vec::new();
        self.trace(observation, ports, |_, rows| outputs = rows.concat());
        outputs
    }

    /// Same as [`forward`](Network::forward), but also calls `see` with the number of every layer and its output, a row
    /// per port.
    ///
    /// # Panics
    /// Same as [`forward`](Network::forward).
    pub fn trace(
        &self,
        observation: &[f32],
        ports: usize,
        mut see: impl FnMut(usize, &[Vec<f64>]),
    ) {
        let inputs = self.history * self.features.len();
        assert_eq!(observation.len(), ports * inputs);
        let mut rows: Vec<Vec<f64>> = observation
            .chunks_exact(inputs)
            .map(|row| self.normalised(row))
            .collect();
        for (index, layer) in self.layers.iter().enumerate() {
            rows = match layer {
                Layer::Convolution(conv) => {
                    let of = |row: &Vec<f64>| conv.forward(row, self.features.len());
                    rows.iter().map(of).collect()
                }
                Layer::Dense(dense) => rows.iter().map(|row| dense.forward(row)).collect(),
                Layer::AppendMean => append_mean(rows),
            };
            see(index, &rows);
        }
    }

    fn normalised(&self, row: &[f32]) -> Vec<f64> {
        let features = self.features.iter().cycle();
        row.iter()
            .zip(features)
            .map(|(&x, f)| (f64::from(x) - f64::from(f.mean)) / f64::from(f.deviation))
            .collect()
    }
}

impl Layer {
    /// Returns the name of the layer; `mean` for the layer without weights.
    pub fn name(&self) -> &str {
        match self {
            Layer::Convolution(conv) => &conv.name,
            Layer::Dense(dense) => &dense.name,
            Layer::AppendMean => "mean",
        }
    }

    fn width(
        &self,
        index: usize,
        inputs: usize,
        features: usize,
        history: usize,
    ) -> Result<usize, String> {
        match self {
            Layer::Convolution(conv) => {
                let channels = features * conv.filters;
                let sizes = [conv.weight.len(), conv.bias.len()];
                if index != 0 {
                    return Err("a convolution can only come first".to_owned());
                }
                if conv.taps % 2 == 0 {
                    return Err(format!("{} taps; their number must be odd", conv.taps));
                }
                fits(sizes, [channels * conv.taps, channels])?;
                Ok(channels * history)
            }
            Layer::Dense(dense) if dense.inputs != inputs => {
                Err(format!("{} inputs, but {inputs} come", dense.inputs))
            }
            Layer::Dense(dense) => {
                let sizes = [dense.weight.len(), dense.bias.len()];
                fits(sizes, [dense.inputs * dense.outputs, dense.outputs])?;
                Ok(dense.outputs)
            }
            Layer::AppendMean => Ok(2 * inputs),
        }
    }
}

fn fits(found: [usize; 2], expected: [usize; 2]) -> Result<(), String> {
    match found == expected {
        true => Ok(()),
        false => Err(format!(
            "{} weights and {} biases; its sizes need {} and {}",
            found[0], found[1], expected[0], expected[1]
        )),
    }
}

impl Convolution {
    /// `[history, features]` to `[features * filters, history]`.
    fn forward(&self, row: &[f64], features: usize) -> Vec<f64> {
        let (history, half) = (row.len() / features, self.taps / 2);
        let channels = self.bias.iter().zip(self.weight.chunks_exact(self.taps));
        let mut out = Vec::with_capacity(self.bias.len() * history);
        for (channel, (&bias, filter)) in channels.enumerate() {
            let feature = channel / self.filters;
            for step in 0..history {
                let taps = filter.iter().enumerate().filter_map(|(tap, &weight)| {
                    let source = (step + tap).checked_sub(half).filter(|&s| s < history)?;
                    Some(f64::from(weight) * row[source * features + feature])
                });
                out.push((f64::from(bias) + taps.sum::<f64>()).max(0.0));
            }
        }
        out
    }
}

impl Dense {
    fn forward(&self, row: &[f64]) -> Vec<f64> {
        let outputs = self.weight.chunks_exact(self.inputs).zip(&self.bias);
        outputs
            .map(|(weights, &bias)| {
                let products = weights.iter().zip(row).map(|(&w, x)| f64::from(w) * x);
                let sum = f64::from(bias) + products.sum::<f64>();
                if self.relu { sum.max(0.0) } else { sum }
            })
            .collect()
    }
}

fn append_mean(mut rows: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let ports = rows.len() as f64;
    let width = rows.first().map_or(0, Vec::len);
    let mean: Vec<f64> = (0..width)
        .map(|k| rows.iter().map(|row| row[k]).sum::<f64>() / ports)
        .collect();
    rows.iter_mut().for_each(|row| row.extend(&mean));
    rows
}

#[cfg(test)]
mod tests;
