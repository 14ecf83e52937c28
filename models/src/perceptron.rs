//! Plain networks of two hidden layers, for tasks whose observation is one list of numbers.

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::actor::{ActorOutput, soft_clamp};
use crate::layers::linear;

/// A tanh-Gaussian policy: two hidden layers with `relu`, then a head for the mean and one for the logarithm of the
/// deviation, as in the published code of Haarnoja et al. 2018.
#[derive(Module, Debug)]
pub struct GaussianPerceptron {
    hidden: [Linear; 2],
    mean: Linear,
    log_std: Linear,
}

impl GaussianPerceptron {
    /// A policy with PyTorch's default initialisation.
    pub fn random(
        [inputs, width, outputs]: [usize; 3],
        rng: &mut Xoshiro256PlusPlus,
        device: &Device,
    ) -> GaussianPerceptron {
        GaussianPerceptron {
            hidden: [
                linear(inputs, width, rng, device),
                linear(width, width, rng, device),
            ],
            mean: linear(width, outputs, rng, device),
            log_std: linear(width, outputs, rng, device),
        }
    }

    /// The Gaussians before tanh of observations `[batch, inputs]`; the deviation is softly clamped as
    /// [`Actor`](crate::Actor)'s.
    pub fn forward(&self, observations: Tensor<2>) -> ActorOutput {
        let [first, second] = &self.hidden;
        let hidden = relu(second.forward(relu(first.forward(observations))));
        ActorOutput {
            mean: self.mean.forward(hidden.clone()),
            log_std: soft_clamp(self.log_std.forward(hidden)),
        }
    }
}

/// An action-value function: observation and action next to each other, two hidden layers with `relu`, one value.
#[derive(Module, Debug)]
pub struct ValuePerceptron {
    layers: [Linear; 3],
}

impl ValuePerceptron {
    /// A function with PyTorch's default initialisation.
    pub fn random(
        [inputs, width, outputs]: [usize; 3],
        rng: &mut Xoshiro256PlusPlus,
        device: &Device,
    ) -> ValuePerceptron {
        ValuePerceptron {
            layers: [[inputs + outputs, width], [width, width], [width, 1]]
                .map(|[inputs, outputs]| linear(inputs, outputs, rng, device)),
        }
    }

    /// Observations `[batch, inputs]` and actions `[batch, outputs]` to values `[batch, 1]`.
    pub fn forward(&self, observations: Tensor<2>, actions: Tensor<2>) -> Tensor<2> {
        let [first, second, out] = &self.layers;
        let seen = Tensor::cat(vec![observations, actions], 1);
        out.forward(relu(second.forward(relu(first.forward(seen)))))
    }
}
