//! Quantisation of a network from floating point to integers.

use super::rounding::{Compensation, Moments};
use super::{
    EarlyOutput, InputCode, IntegerConvolution, IntegerDense, IntegerLayer, IntegerNetwork,
    IntegerNetworkError, Rescale,
};
use crate::{Convolution, Dense, Layer, Network, network};
use bufgym_models::checkpoint::Feature;
use bufgym_util::convert::{floor_u8, whole_i32};

/// Largest magnitude of a weight.
const WEIGHT_RANGE: f64 = 127.0;
/// Largest activation.
const ACTIVATION_RANGE: f64 = 255.0;
/// Bits of `cap >> pre` and of multipliers.
const FACTOR_BITS: u32 = 15;
/// Largest number of bits of a bias at the scale of its weights.
const BIAS_BITS: i32 = 24;
/// One in this many ports is used for the moments.
const MOMENTS_STRIDE: usize = 2;
/// Largest ratio between the ranges of a layer's channels.
const CHANNEL_RANGE: f64 = 16.0;
/// Largest ratio between a layer's ratios of unit and scale.
const RATIO_RANGE: f64 = 64.0;

/// Statistics of the activations on recorded observations. Their range sets the scale of every
/// layer; their covariance decides how weights are rounded.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The value that becomes the largest code, per layer of the [`Network`] and channel.
    ceilings: Vec<Vec<f64>>,
    /// By feature: true if it takes negative values.
    signed: Vec<bool>,
    /// Moments of each layer's inputs, for dense layers after another layer.
    moments: Vec<Option<Moments>>,
}

/// The reason why a network cannot be quantised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantiseError {
    /// A mean over ports is not between a layer with ReLU and a dense layer.
    #[error("layer {0}: a mean over ports must follow a layer with ReLU and precede a dense layer")]
    MisplacedMean(usize),
    /// A layer before the last has no ReLU, or the last one has it.
    #[error("layer {0}: the last layer, and no other, is without ReLU")]
    Relu(String),
    /// The result cannot be run.
    #[error(transparent)]
    Network(#[from] IntegerNetworkError),
}

impl Calibration {
    /// Measures observations, each `[ports, history, features]` for any number of ports.
    /// Activations above the largest recorded one will be clipped.
    ///
    /// # Panics
    /// When an observation does not have whole ports, or the layers do not form a network.
    pub fn measure<'a>(
        network: &Network,
        observations: impl IntoIterator<Item = &'a [f32]>,
    ) -> Calibration {
        let features = network.features.len();
        let mut signed = vec![false; features];
        let widths = network.layers.iter().map(|layer| match layer {
            Layer::Convolution(conv) => conv.bias.len(),
            Layer::Dense(dense) => dense.outputs,
            Layer::AppendMean => 0,
        });
        let mut largest: Vec<Vec<f64>> = widths.map(|width| vec![0.0; width]).collect();
        let layers = network.layers.iter().enumerate();
        let mut moments: Vec<Option<Moments>> = layers
            .map(|(index, layer)| match layer {
                Layer::Dense(dense) if index > 0 => Some(Moments::new(dense.inputs)),
                _ => None,
            })
            .collect();
        for observation in observations {
            for (index, &value) in observation.iter().enumerate() {
                signed[index % features] |= value < 0.0;
            }
            let ports = observation.len() / (features * network.history);
            network.trace(observation, ports, |layer, rows| {
                if let Some(Some(moments)) = moments.get_mut(layer + 1) {
                    let some = rows.iter().step_by(MOMENTS_STRIDE);
                    some.for_each(|row| moments.add(row));
                }
                let channels = &mut largest[layer];
                for row in rows {
                    // A convolution has a row of steps per channel.
                    let steps = row.len() / channels.len().max(1);
                    for (values, largest) in row.chunks_exact(steps).zip(channels.iter_mut()) {
                        *largest = values.iter().fold(*largest, |max, &x| max.max(x));
                    }
                }
            });
        }
        Calibration {
            ceilings: largest.into_iter().map(ceilings).collect(),
            signed,
            moments,
        }
    }

    /// A feature without negative values uses all 255 steps for `[0, 1]`. One with negative values
    /// has its zero in the middle, so that the centres of eight equal cells are exact.
    fn input(&self, index: usize, feature: &Feature) -> InputCode {
        let (zero, scale) = match self.signed[index] {
            true => (128, 1.0 / 128.0),
            false => (0, 1.0 / ACTIVATION_RANGE),
        };
        let padding = f64::from(zero) + f64::from(feature.mean) / scale;
        InputCode {
            name: feature.name.clone(),
            zero,
            scale,
            padding: floor_u8(padding.round()),
        }
    }
}

/// The ranges of a layer's channels from their largest activations. A channel that was hardly ever
/// active gets a share of the layer's range.
fn ceilings(largest: Vec<f64>) -> Vec<f64> {
    let layer = largest.iter().fold(0.0f64, |max, &x| max.max(x));
    if layer <= 0.0 {
        return vec![1.0; largest.len()];
    }
    let ceiling = |x: f64| x.max(layer / CHANNEL_RANGE);
    largest.into_iter().map(ceiling).collect()
}

/// The inputs of a layer: each code stands for `(code - zero) * scale`.
struct Inputs {
    scale: Vec<f64>,
    zero: Vec<f64>,
}

/// Rounds a network to 8-bit weights and activations. Every output of a layer has a separate scale
/// for its weights; all activations of a layer share one scale.
///
/// # Errors
/// See [`QuantiseError`].
///
/// # Panics
/// When the layers do not form a network.
pub fn quantise(
    network: &Network,
    calibration: &Calibration,
) -> Result<IntegerNetwork, QuantiseError> {
    let numbered = network.features.iter().enumerate();
    let inputs: Vec<InputCode> = numbered.map(|(i, f)| calibration.input(i, f)).collect();
    let mut current = first_inputs(network, &inputs);
    let mut layers = Vec::new();
    let mut units = Vec::new();
    let mut mean_pending = false;
    for (index, layer) in network.layers.iter().enumerate() {
        let ceilings = calibration.ceilings[index].iter();
        let scales: Vec<f64> = ceilings.map(|ceiling| ceiling / ACTIVATION_RANGE).collect();
        match layer {
            Layer::Convolution(conv) => {
                let integer = convolution(conv, network, &inputs, &scales);
                layers.push(IntegerLayer::Convolution(integer));
                let steps = |&scale| std::iter::repeat_n(scale, network.history);
                current = activations(scales.iter().flat_map(steps).collect());
            }
            Layer::AppendMean => {
                let next = network.layers.get(index + 1);
                if layers.is_empty() || mean_pending || !matches!(next, Some(Layer::Dense(_))) {
                    return Err(QuantiseError::MisplacedMean(index));
                }
                mean_pending = true;
            }
            Layer::Dense(dense) => {
                if dense.relu == (index + 1 == network.layers.len()) {
                    return Err(QuantiseError::Relu(dense.name.clone()));
                }
                let outputs = dense.relu.then_some(scales.as_slice());
                let moments = calibration.moments[index].as_ref();
                let compensation =
                    moments.map(|moments| Compensation::new(moments, &current.scale));
                let (integer, own) =
                    quantise_dense(dense, &current, mean_pending, outputs, compensation);
                units = own;
                layers.push(IntegerLayer::Dense(integer));
                current = activations(scales);
                mean_pending = false;
            }
        }
    }
    let unit = |output: usize| units.get(output).copied().unwrap_or(1.0);
    let edges = |levels: usize, unit: f64| {
        let edges = network::edges(levels).into_iter();
        edges.map(|edge| whole_i32((edge / unit).ceil())).collect()
    };
    let early = network.gaps.as_ref().map(|gaps| EarlyOutput {
        edges: edges(gaps.len(), unit(1)),
        gaps: gaps.clone(),
        gap_bytes: network.gap_bytes,
        output_scale: unit(1),
    });
    let integer = IntegerNetwork {
        history: network.history,
        inputs,
        layers,
        edges: edges(network.actions.levels, unit(0)),
        unit: network.actions.unit,
        output_scale: unit(0),
        early,
    };
    integer.check()?;
    Ok(integer)
}

/// The codes after normalisation: again `x = (code - zero) * scale`, with a fractional `zero`.
fn first_inputs(network: &Network, inputs: &[InputCode]) -> Inputs {
    let both = inputs.iter().zip(&network.features);
    let (scale, zero): (Vec<f64>, Vec<f64>) = both
        .map(|(input, feature)| {
            let offset = f64::from(feature.mean) / input.scale;
            (
                input.scale / f64::from(feature.deviation),
                f64::from(input.zero) + offset,
            )
        })
        .unzip();
    Inputs {
        scale: scale.repeat(network.history),
        zero: zero.repeat(network.history),
    }
}

fn activations(scale: Vec<f64>) -> Inputs {
    Inputs {
        zero: vec![0.0; scale.len()],
        scale,
    }
}

/// The outputs of a layer in integers.
struct Rows {
    /// `[outputs, inputs]`.
    weight: Vec<i8>,
    /// `[outputs]`, in units of its weights.
    bias: Vec<i32>,
    /// The value of one unit of each output's sum.
    units: Vec<f64>,
}

/// One output before rounding: its weights per unit of the input codes, and its bias, which
/// includes the zeros of the codes.
struct RealRow {
    weights: Vec<f64>,
    bias: f64,
}

impl RealRow {
    fn new(weights: Vec<f64>, bias: f32, zeros: &[f64]) -> RealRow {
        let products = weights.iter().zip(zeros.iter().cycle());
        let zero_share: f64 = products.map(|(w, zero)| w * zero).sum();
        RealRow {
            weights,
            bias: f64::from(bias) - zero_share,
        }
    }

    /// The smallest unit in which weights and bias have few enough bits.
    fn unit(&self) -> f64 {
        let largest = self.weights.iter().fold(0.0f64, |max, w| max.max(w.abs()));
        (largest / WEIGHT_RANGE).max(self.bias.abs() / 2f64.powi(BIAS_BITS))
    }
}

/// Rounds the outputs of a layer, each in its own unit. `scales` are those of the layer's
/// activations.
///
/// The ratios of unit and scale are kept within a factor of [`RATIO_RANGE`]. An output whose
/// weights are small compared with its activations then has fewer bits, which is enough for it.
fn round_rows(rows: &[RealRow], scales: &[f64], compensation: Option<&Compensation>) -> Rows {
    let ratios = rows
        .iter()
        .zip(scales)
        .map(|(row, scale)| row.unit() / scale);
    let least = ratios.fold(f64::MIN_POSITIVE.sqrt(), f64::max) / RATIO_RANGE;
    let mut rounded = Rows {
        weight: Vec::new(),
        bias: Vec::new(),
        units: Vec::new(),
    };
    for (row, scale) in rows.iter().zip(scales) {
        let unit = row.unit().max(least * scale);
        let weights: Vec<f64> = row.weights.iter().map(|w| w / unit).collect();
        let (whole, gain) = match compensation {
            Some(compensation) => compensation.round(&weights, WEIGHT_RANGE),
            None => (weights.iter().map(|w| w.round()).collect(), 0.0),
        };
        rounded.weight.extend(whole.iter().map(|&w| weight(w)));
        rounded
            .bias
            .push(whole_i32((row.bias / unit + gain).round()));
        rounded.units.push(unit);
    }
    rounded
}

/// A weight that was rounded in its unit; at the ends it is cut to the range.
fn weight(rounded: f64) -> i8 {
    let whole = whole_i32(rounded.clamp(-WEIGHT_RANGE, WEIGHT_RANGE));
    i8::try_from(whole).expect("the range of weights is that of a signed byte")
}

fn convolution(
    conv: &Convolution,
    network: &Network,
    inputs: &[InputCode],
    scales: &[f64],
) -> IntegerConvolution {
    let first = first_inputs(network, inputs);
    let channels = conv.weight.chunks_exact(conv.taps).zip(&conv.bias);
    let rows = channels.enumerate().map(|(channel, (filter, &bias))| {
        let feature = channel / conv.filters;
        let in_codes = |&w: &f32| f64::from(w) * first.scale[feature];
        let weights = filter.iter().map(in_codes).collect();
        RealRow::new(weights, bias, &first.zero[feature..=feature])
    });
    let rows = round_rows(&rows.collect::<Vec<_>>(), scales, None);
    IntegerConvolution {
        name: conv.name.clone(),
        filters: conv.filters,
        taps: conv.taps,
        weight: rows.weight,
        bias: rows.bias,
        rescale: rescale(&rows.units, scales),
    }
}

/// The layer and the units of its outputs. Without `scales` it is the last layer.
fn quantise_dense(
    dense: &Dense,
    inputs: &Inputs,
    with_mean: bool,
    scales: Option<&[f64]>,
    compensation: Option<Compensation>,
) -> (IntegerDense, Vec<f64>) {
    // The mean has the same scale as its terms.
    let in_codes = |row: &[f32]| {
        let both = row.iter().zip(inputs.scale.iter().cycle());
        both.map(|(&w, scale)| f64::from(w) * scale).collect()
    };
    let outputs = dense.weight.chunks_exact(dense.inputs).zip(&dense.bias);
    let rows: Vec<RealRow> = outputs
        .map(|(row, &bias)| RealRow::new(in_codes(row), bias, &inputs.zero))
        .collect();
    let same = vec![1.0; rows.len()];
    let rows = round_rows(&rows, scales.unwrap_or(&same), compensation.as_ref());
    let integer = IntegerDense {
        name: dense.name.clone(),
        inputs: inputs.scale.len(),
        with_mean,
        outputs: dense.outputs,
        weight: rows.weight,
        bias: rows.bias,
        rescale: scales.map(|scales| rescale(&rows.units, scales)),
    };
    (integer, rows.units)
}

/// The rescaling from sums in `units` to activations in `scales`.
///
/// The cap is the sum at which the output with the smallest ratio reaches 255. All other outputs
/// reach it earlier.
fn rescale(units: &[f64], scales: &[f64]) -> Rescale {
    let ratios = units.iter().zip(scales).map(|(unit, scale)| unit / scale);
    let ratios: Vec<f64> = ratios.collect();
    let largest = ratios.iter().fold(f64::MIN_POSITIVE, |max, &r| max.max(r));
    let smallest = ratios.iter().fold(largest, |min, &r| min.min(r));
    let cap = ((ACTIVATION_RANGE + 1.0) / smallest).ceil();
    let cap = whole_i32(cap);
    let pre = (cap.ilog2() + 1).saturating_sub(FACTOR_BITS);
    // ratio = multiplier / 2^(pre + post), where the largest multiplier uses all its bits.
    let exponent = whole_i32(largest.log2().floor()) + 1;
    let bits = FACTOR_BITS.cast_signed() - exponent - pre.cast_signed();
    let post = bits.clamp(1, 30).cast_unsigned();
    let unit = 2f64.powi((post + pre).cast_signed());
    let limit = f64::from((1 << FACTOR_BITS) - 1);
    let multiplier = |ratio: &f64| whole_i32((ratio * unit).round().min(limit));
    Rescale {
        cap,
        pre,
        multipliers: ratios.iter().map(multiplier).collect(),
        post,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::Rescale;

    /// The rescaling of a layer with one output.
    pub(in super::super) fn rescale_of(ratio: f64) -> Rescale {
        super::rescale(&[ratio], &[1.0])
    }
}
