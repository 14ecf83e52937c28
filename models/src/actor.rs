//! The policy network (NDT §IV-A, §V-A).

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::activation::{relu, softplus};
use burn::tensor::{Device, Tensor, TensorData};
use rand_xoshiro::Xoshiro256PlusPlus;

use bufgym_env::control::{ActionSet, FEATURES, HISTORY};

use crate::layers::{add_to_each_port, linear_from, mean_over_ports};
use crate::weights::{
    ActorWeights, CHANNELS, CONVOLVED, EMBEDDING, FILTERS, HIDDEN, LOG_STD_RANGE, step_major,
    tensor, transpose,
};
use crate::windows::{TAPS, WINDOW};

/// Computes per-port features from per-port histories: one convolution per feature, then a dense layer.
#[derive(Module, Debug)]
struct Trunk {
    /// `[feature, tap, filter]`.
    conv_weight: Param<Tensor<3>>,
    /// `[feature * filter]`.
    conv_bias: Param<Tensor<1>>,
    /// `[step * channel] → 64`.
    embed: Linear,
}

impl Trunk {
    /// `[rows * 8, 15] → [rows, 64]`, before the activation.
    fn forward(&self, windows: Tensor<2>) -> Tensor<2> {
        let [steps, _] = windows.dims();
        let device = windows.device();
        // Each feature has its own filters, so the matrix is block-diagonal with 5 blocks of [3,
        // 16]. One product with it does five times the necessary work, but is faster than five
        // products.
        let diagonal = Tensor::<2>::eye(FEATURES, &device).reshape([FEATURES, 1, FEATURES, 1]);
        let blocks = self.conv_weight.val().reshape([FEATURES, TAPS, 1, FILTERS]) * diagonal;
        let bias = self.conv_bias.val();
        let convolved =
            burn::tensor::module::linear(windows, blocks.reshape([WINDOW, CHANNELS]), Some(bias));
        self.embed
            .forward(relu(convolved).reshape([steps / HISTORY, CONVOLVED]))
    }
}

fn conv_parameter(feature_tap_filter: Vec<f32>, device: &Device) -> Param<Tensor<3>> {
    Param::from_data(
        TensorData::new(feature_tap_filter, [FEATURES, TAPS, FILTERS]),
        device,
    )
}

/// The policy: a tanh-Gaussian per port and output, with weights shared by all ports.
#[derive(Module, Debug)]
pub struct Actor {
    trunk: Trunk,
    /// The mixing layer's half for the port's own embedding, with the bias: 64 → 32.
    mix_own: Linear,
    /// The mixing layer's half for the mean embedding: `[64, 32]`.
    mix_mean: Param<Tensor<2>>,
    mean_hidden: Linear,
    mean_out: Linear,
    log_std_hidden: Linear,
    log_std_out: Linear,
}

/// The Gaussian of every port and output, before tanh.
#[derive(Clone, Debug)]
pub struct ActorOutput {
    /// `[batch, ports * outputs]`, the outputs of a port next to each other.
    pub mean: Tensor<2>,
    /// `[batch, ports * outputs]`, softly clamped to [`LOG_STD_RANGE`].
    pub log_std: Tensor<2>,
}

impl Actor {
    /// An actor with PyTorch's default initialisation.
    pub fn random(actions: ActionSet, rng: &mut Xoshiro256PlusPlus, device: &Device) -> Actor {
        Actor::from_weights(&ActorWeights::random_for(actions, rng), device)
    }

    /// The Gaussians for `[batch * ports * 8, 15]` unfolded observations (see
    /// [`crate::windows`]).
    ///
    /// # Panics
    /// When `batch` does not divide the number of rows.
    pub fn forward(&self, windows: Tensor<2>, batch: usize) -> ActorOutput {
        let embedding = relu(self.trunk.forward(windows));
        let [rows, _] = embedding.dims();
        let mean = mean_over_ports(embedding.clone(), batch).matmul(self.mix_mean.val());
        let mixed = relu(add_to_each_port(self.mix_own.forward(embedding), mean));
        let head = |hidden: &Linear, out: &Linear, mixed: Tensor<2>| {
            let values = out.forward(relu(hidden.forward(mixed)));
            let [_, outputs] = values.dims();
            values.reshape([batch, rows / batch * outputs])
        };
        ActorOutput {
            mean: head(&self.mean_hidden, &self.mean_out, mixed.clone()),
            // With shared layers the entropy would move the means.
            log_std: soft_clamp(head(
                &self.log_std_hidden,
                &self.log_std_out,
                mixed.detach(),
            )),
        }
    }

    /// An actor with these weights.
    pub fn from_weights(weights: &ActorWeights, device: &Device) -> Actor {
        let (conv_weight, conv_bias) = weights.layer(tensor::CONV);
        let (embed_weight, embed_bias) = weights.layer(tensor::EMBED);
        let (mix_weight, mix_bias) = weights.layer(tensor::MIX);
        let layer = |index: usize| {
            let (weight, bias) = weights.layer(index);
            linear_from(transpose(weight, bias.len()), bias.to_vec(), device)
        };
        let mut embed = vec![0.0; CONVOLVED * EMBEDDING];
        for (output, row) in embed_weight.chunks_exact(CONVOLVED).enumerate() {
            for (input, &value) in row.iter().enumerate() {
                embed[step_major(input) * EMBEDDING + output] = value;
            }
        }
        let mix = transpose(mix_weight, HIDDEN);
        let (own, mean) = mix.split_at(EMBEDDING * HIDDEN);
        Actor {
            trunk: Trunk {
                conv_weight: conv_parameter(conv_to_burn(conv_weight), device),
                conv_bias: Param::from_data(
                    TensorData::new(conv_bias.to_vec(), [CHANNELS]),
                    device,
                ),
                embed: linear_from(embed, embed_bias.to_vec(), device),
            },
            mix_own: linear_from(own.to_vec(), mix_bias.to_vec(), device),
            mix_mean: Param::from_data(TensorData::new(mean.to_vec(), [EMBEDDING, HIDDEN]), device),
            mean_hidden: layer(tensor::MEAN[0]),
            mean_out: layer(tensor::MEAN[1]),
            log_std_hidden: layer(tensor::LOG_STD[0]),
            log_std_out: layer(tensor::LOG_STD[1]),
        }
    }

    /// A host copy of the weights.
    pub fn to_weights(&self) -> ActorWeights {
        let embed_burn = values(&self.trunk.embed.weight);
        let mut embed = vec![0.0; CONVOLVED * EMBEDDING];
        for (output, row) in embed.chunks_exact_mut(CONVOLVED).enumerate() {
            for (input, value) in row.iter_mut().enumerate() {
                *value = embed_burn[step_major(input) * EMBEDDING + output];
            }
        }
        let mix = [values(&self.mix_own.weight), values(&self.mix_mean)].concat();
        let weight = |layer: &Linear| {
            let [inputs, _] = layer.weight.val().dims();
            transpose(&values(&layer.weight), inputs)
        };
        let tensors = [
            conv_from_burn(&values(&self.trunk.conv_weight)),
            values(&self.trunk.conv_bias),
            embed,
            bias(&self.trunk.embed),
            transpose(&mix, 2 * EMBEDDING),
            bias(&self.mix_own),
            weight(&self.mean_hidden),
            bias(&self.mean_hidden),
            weight(&self.mean_out),
            bias(&self.mean_out),
            weight(&self.log_std_hidden),
            bias(&self.log_std_hidden),
            weight(&self.log_std_out),
            bias(&self.log_std_out),
        ];
        let outputs = tensors[tensor::MEAN[1] + 1].len();
        ActorWeights::from_tensors(tensors, outputs)
            .expect("an actor's own tensors have its own shapes")
    }
}

/// [`crate::weights::soft_clamp`] for tensors.
pub(crate) fn soft_clamp(x: Tensor<2>) -> Tensor<2> {
    let [low, high] = LOG_STD_RANGE.map(f64::from);
    let below = -softplus(-x + high, 1.0) + high;
    softplus(below - low, 1.0) + low
}

fn values<const D: usize>(parameter: &Param<Tensor<D>>) -> Vec<f32> {
    crate::parameters::host_values(parameter.val())
}

fn bias(layer: &Linear) -> Vec<f32> {
    layer.bias.as_ref().map(values).unwrap_or_default()
}

/// `[feature, filter, tap]` to `[feature, tap, filter]`.
fn conv_to_burn(weight: &[f32]) -> Vec<f32> {
    weight
        .chunks_exact(FILTERS * TAPS)
        .flat_map(|feature| transpose(feature, FILTERS))
        .collect()
}

/// `[feature, tap, filter]` to `[feature, filter, tap]`.
fn conv_from_burn(weight: &[f32]) -> Vec<f32> {
    weight
        .chunks_exact(FILTERS * TAPS)
        .flat_map(|feature| transpose(feature, TAPS))
        .collect()
}
