//! The paper's critic.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::actor::{Trunk, mix_layers};
use crate::layers::{add_to_each_port, linear, matrix, mean_over_ports};
use crate::weights::{CONVOLVED, EMBEDDING, HIDDEN};

/// The actor's trunk with the port's action as a further input of the dense layer, and one head.
///
/// The action enters before the mean over ports is taken, so that every port's value depends on
/// the actions of all.
#[derive(Module, Debug)]
pub struct TrunkCritic {
    trunk: Trunk,
    /// The dense layer's row for the action: `[1, 64]`.
    action: Param<Tensor<2>>,
    mix_own: Linear,
    mix_mean: Param<Tensor<2>>,
    hidden: Linear,
    out: Linear,
}

impl TrunkCritic {
    /// A critic with PyTorch's default initialisation.
    pub fn random(rng: &mut Xoshiro256PlusPlus, device: &Device) -> TrunkCritic {
        let trunk = Trunk::random(rng, device);
        let action = matrix([1, EMBEDDING], CONVOLVED + 1, rng, device);
        let (mix_own, mix_mean) = mix_layers(rng, device);
        TrunkCritic {
            trunk,
            action,
            mix_own,
            mix_mean,
            hidden: linear(HIDDEN, HIDDEN, rng, device),
            out: linear(HIDDEN, 1, rng, device),
        }
    }

    /// `[batch * ports * 8, 15]` and `[batch, ports]` to `[batch, ports]`.
    pub fn forward(&self, windows: Tensor<2>, actions: Tensor<2>) -> Tensor<2> {
        let [batch, ports] = actions.dims();
        let acted = actions
            .reshape([batch * ports, 1])
            .matmul(self.action.val());
        let embedding = relu(self.trunk.forward(windows) + acted);
        let mean = mean_over_ports(embedding.clone(), batch).matmul(self.mix_mean.val());
        let mixed = relu(add_to_each_port(self.mix_own.forward(embedding), mean));
        self.out
            .forward(relu(self.hidden.forward(mixed)))
            .reshape([batch, ports])
    }
}
