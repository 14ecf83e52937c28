//! The actor's weights on the host, with PyTorch's names and shapes.
//!
//! The same network in PyTorch, for `[ports, 5, 8]` inputs (features before steps):
//!
//! ```python
//! conv = nn.Conv1d(5, 80, 3, padding=1, groups=5)   # 16 filters per feature
//! embed = nn.Linear(640, 64)                        # of conv's output, flattened
//! mix = nn.Linear(128, 32)                          # of [e_i, mean of all e]
//! mean = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
//! log_std = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
//! ```
//!
//! Where decisions set early drop in addition to α, the last layers have two outputs: α, then early drop.

use rand_xoshiro::Xoshiro256PlusPlus;

use bufgym_env::control::{ActionSet, FEATURES, HISTORY, cell_centre};

use crate::layers::uniform_fan_in;
use crate::windows::TAPS;

/// Filters per feature (§V-A).
pub const FILTERS: usize = 16;
/// Channels after the convolution.
pub const CHANNELS: usize = FEATURES * FILTERS;
/// Values after the convolution, per port.
pub const CONVOLVED: usize = HISTORY * CHANNELS;
/// Width of a port's embedding e_i (§V-A).
pub const EMBEDDING: usize = 64;
/// Width of the mixed embedding z_i, and of the two heads' hidden layers (§V-A).
pub const HIDDEN: usize = 32;
/// Range of the logarithm of the standard deviation, softly clamped. Above 2 the tanh saturates; at
/// -5 the standard deviation is a thirtieth of a level's cell.
pub const LOG_STD_RANGE: [f32; 2] = [-5.0, 2.0];

/// Softly clamps `x` to [`LOG_STD_RANGE`]: nearly `x` inside, and never quite one of the ends (Chua
/// et al. 2018, PETS, appendix A.1). A hard clamp has no gradient outside of the range, so a policy
/// could not come back into it.
#[inline(always)]
pub(crate) fn soft_clamp(x: f32) -> f32 {
    let [low, high] = LOG_STD_RANGE;
    let below = high - softplus(high - x);
    low + softplus(below - low)
}

#[inline(always)]
fn softplus(x: f32) -> f32 {
    x.max(0.0) + libm::log1pf(libm::expf(-x.abs()))
}

/// Name and shape of every tensor of a network with one output per port, in the order in which
/// [`ActorWeights`] holds them; [`shape`] for other numbers of outputs.
pub const TENSORS: [(&str, &[usize]); 14] = [
    ("conv.weight", &[CHANNELS, 1, TAPS]),
    ("conv.bias", &[CHANNELS]),
    ("embed.weight", &[EMBEDDING, CONVOLVED]),
    ("embed.bias", &[EMBEDDING]),
    ("mix.weight", &[HIDDEN, 2 * EMBEDDING]),
    ("mix.bias", &[HIDDEN]),
    ("mean.0.weight", &[HIDDEN, HIDDEN]),
    ("mean.0.bias", &[HIDDEN]),
    ("mean.2.weight", &[1, HIDDEN]),
    ("mean.2.bias", &[1]),
    ("log_std.0.weight", &[HIDDEN, HIDDEN]),
    ("log_std.0.bias", &[HIDDEN]),
    ("log_std.2.weight", &[1, HIDDEN]),
    ("log_std.2.bias", &[1]),
];

/// Indices into [`TENSORS`].
pub mod tensor {
    /// The weight of the convolution. Every weight is followed by its bias.
    pub const CONV: usize = 0;
    /// The weight of the embedding.
    pub const EMBED: usize = 2;
    /// The weight of the layer that mixes a port's embedding with the mean over ports.
    pub const MIX: usize = 4;
    /// The weights of the head for the mean.
    pub const MEAN: [usize; 2] = [6, 8];
    /// The weights of the head for the logarithm of the standard deviation.
    pub(crate) const LOG_STD: [usize; 2] = [10, 12];
}

/// Returns true if a tensor has a row for each output: the last layer of a head, or its bias.
fn is_last(index: usize) -> bool {
    [tensor::MEAN[1], tensor::LOG_STD[1]].contains(&(index & !1))
}

/// Shape of a tensor in a network with so many outputs per port.
///
/// # Panics
/// When there is no such tensor.
pub fn shape(index: usize, outputs: usize) -> Vec<usize> {
    let mut shape = TENSORS[index].1.to_vec();
    if is_last(index) {
        shape[0] = outputs;
    }
    shape
}

/// Weights of one actor.
#[derive(Clone, Debug, PartialEq)]
pub struct ActorWeights {
    tensors: [Vec<f32>; TENSORS.len()],
}

impl ActorWeights {
    /// Number of parameters with one output per port, as in the paper.
    pub const PARAMETERS: usize = 47_650;

    /// Number of parameters with so many outputs per port.
    pub fn parameters(outputs: usize) -> usize {
        Self::PARAMETERS + (outputs - 1) * 2 * (HIDDEN + 1)
    }

    /// Random weights for one output per port, PyTorch's default initialisation.
    pub fn random(rng: &mut Xoshiro256PlusPlus) -> ActorWeights {
        Self::random_for(ActionSet::Alpha, rng)
    }

    /// Random weights, PyTorch's default initialisation.
    pub fn random_for(actions: ActionSet, rng: &mut Xoshiro256PlusPlus) -> ActorWeights {
        let mut fan_in = 0;
        ActorWeights {
            tensors: std::array::from_fn(|index| {
                let shape = shape(index, actions.outputs());
                // A bias follows its weight and shares its bound.
                if shape.len() > 1 {
                    fan_in = shape[1..].iter().product();
                }
                uniform_fan_in(shape.iter().product(), fan_in, rng)
            }),
        }
    }

    /// Moves the mean of every output to the centre of its level's cell, and reduces the influence of the observation
    /// to a tenth, so that nearly every mean lies in that cell.
    ///
    /// # Panics
    /// When there is not one level per output.
    pub fn begin_at(&mut self, levels: &[u8]) {
        let [weight, bias] = [tensor::MEAN[1], tensor::MEAN[1] + 1];
        self.tensors[weight]
            .iter_mut()
            .for_each(|weight| *weight *= 0.1);
        let bias = &mut self.tensors[bias];
        assert_eq!(bias.len(), levels.len(), "a level for every output");
        for (bias, &level) in bias.iter_mut().zip(levels) {
            *bias = libm::atanhf(cell_centre(usize::from(level)));
        }
    }

    /// Brings the hidden layers from PyTorch's default to the initialisation of He et al. 2015, eq. 10: weights of
    /// variance `2 / inputs` and biases of zero. The output of a layer is then as large as its input; by default it
    /// shrinks to a third.
    pub fn widen(&mut self) {
        // PyTorch's weights have variance 1 / (3 inputs).
        let factor = 6.0_f32.sqrt();
        for layer in [tensor::CONV, tensor::EMBED, tensor::MIX, tensor::MEAN[0]] {
            self.tensors[layer]
                .iter_mut()
                .for_each(|weight| *weight *= factor);
            self.tensors[layer + 1].fill(0.0);
        }
    }

    /// Multiplies each feature's input weights by the feature's factor. The network's output for an observation then
    /// equals its earlier output for the observation times the factors.
    pub fn scale_inputs(&mut self, factors: &[f32; FEATURES]) {
        let convolution = &mut self.tensors[tensor::CONV];
        let features = convolution.chunks_exact_mut(FILTERS * TAPS).zip(factors);
        features.for_each(|(taps, factor)| taps.iter_mut().for_each(|weight| *weight *= factor));
    }

    /// Gives every output this logarithm of the standard deviation, for any observation.
    ///
    /// # Panics
    /// When it is not inside of [`LOG_STD_RANGE`].
    pub fn fix_log_std(&mut self, log_std: f32) {
        let [low, high] = LOG_STD_RANGE;
        assert!(low < log_std && log_std < high, "a deviation out of range");
        // The inverse of `soft_clamp`, whose two halves are softplus functions.
        let inverse = |x: f32| libm::logf(libm::expm1f(x));
        let value = high - inverse(high - (low + inverse(log_std - low)));
        let [weight, bias] = [tensor::LOG_STD[1], tensor::LOG_STD[1] + 1];
        self.tensors[weight].fill(0.0);
        self.tensors[bias].fill(value);
    }

    /// Takes tensors in the order of [`TENSORS`], row-major, of a network with so many outputs.
    ///
    /// # Errors
    /// The index of the first tensor with another length.
    pub fn from_tensors(
        tensors: [Vec<f32>; TENSORS.len()],
        outputs: usize,
    ) -> Result<ActorWeights, usize> {
        let length = |index| shape(index, outputs).iter().product::<usize>();
        let wrong = (0..tensors.len()).find(|&index| length(index) != tensors[index].len());
        wrong.map_or(Ok(ActorWeights { tensors }), Err)
    }

    /// Outputs per port: one for each thing that decisions set.
    pub fn outputs(&self) -> usize {
        self.layer(tensor::MEAN[1]).1.len()
    }

    /// All tensors, in the order of [`TENSORS`].
    pub fn tensors(&self) -> &[Vec<f32>; TENSORS.len()] {
        &self.tensors
    }

    /// Weight and bias of the layer whose weight has this index, one of [`tensor`].
    ///
    /// # Panics
    /// When there is no such tensor, or none after it.
    pub fn layer(&self, index: usize) -> (&[f32], &[f32]) {
        (&self.tensors[index], &self.tensors[index + 1])
    }

    /// Returns true if every weight is a finite number.
    pub fn is_finite(&self) -> bool {
        self.tensors.iter().flatten().all(|value| value.is_finite())
    }
}

/// Converts `[outputs, inputs]`, PyTorch's layout of a linear layer, to Burn's `[inputs, outputs]`.
///
/// # Panics
/// When `outputs` is zero.
pub fn transpose(weight: &[f32], outputs: usize) -> Vec<f32> {
    let inputs = weight.len() / outputs;
    let mut transposed = vec![0.0; weight.len()];
    for output in 0..outputs {
        for input in 0..inputs {
            transposed[input * outputs + output] = weight[output * inputs + input];
        }
    }
    transposed
}

/// Maps an index of PyTorch's flattened convolution (channel, then step) to that of this program
/// (step, then channel), which needs no copy after the matrix product.
pub(crate) fn step_major(channel_major: usize) -> usize {
    let (channel, step) = (channel_major / HISTORY, channel_major % HISTORY);
    step * CHANNELS + channel
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn the_paper_counts_47_650_parameters() {
        for (actions, parameters) in [(ActionSet::Alpha, 47_650), (ActionSet::AlphaEarly, 47_716)] {
            let rng = &mut Xoshiro256PlusPlus::seed_from_u64(0);
            let weights = ActorWeights::random_for(actions, rng);
            assert_eq!(weights.outputs(), actions.outputs());
            let count: usize = weights.tensors().iter().map(Vec::len).sum();
            assert_eq!(count, parameters);
            assert_eq!(count, ActorWeights::parameters(actions.outputs()));
        }
    }

    #[test]
    fn a_beginning_sets_the_mean_of_every_output() {
        let random = || {
            let rng = &mut Xoshiro256PlusPlus::seed_from_u64(0);
            ActorWeights::random_for(ActionSet::AlphaEarly, rng)
        };
        let (before, mut after) = (random(), random());
        after.begin_at(&[5, 0]);
        let (weight, bias) = after.layer(tensor::MEAN[1]);
        let centres: Vec<f32> = bias.iter().map(|&bias| libm::tanhf(bias)).collect();
        // Level 5 of 0 to 7 is the cell from 0.25 to 0.5.
        assert!((centres[0] - 0.375).abs() < 1e-6 && (centres[1] + 0.875).abs() < 1e-6);
        let pairs = weight.iter().zip(before.layer(tensor::MEAN[1]).0);
        assert!(pairs.clone().count() > 0);
        assert!(
            pairs
                .into_iter()
                .all(|(after, before)| *after == before * 0.1)
        );
        let others = before.tensors().iter().zip(after.tensors());
        assert_eq!(others.filter(|(a, b)| a != b).count(), 2);
    }

    #[test]
    fn a_tensor_of_another_length_is_named() {
        let weights = ActorWeights::random(&mut Xoshiro256PlusPlus::seed_from_u64(0));
        let mut tensors = weights.tensors;
        tensors[5].push(0.0);
        assert_eq!(ActorWeights::from_tensors(tensors, 1), Err(5));
    }
}
