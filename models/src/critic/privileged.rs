//! A small critic that sees more than the switch.
//!
//! A critic is needed in training only, where the simulator's state is at hand: flows waiting for
//! a timeout, bytes still to send. With these the value of a situation can be read off instead of
//! being inferred from a history (asymmetric actor-critic, Pinto et al. 2018).

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor, TensorData};
use rand_xoshiro::Xoshiro256PlusPlus;

use bufgym_env::control::{ALPHAS, FEATURES, PRIVILEGED, cell_centre};

use crate::layers::{add_to_each_port, linear, matrix, max_over_ports, mean_over_ports};

/// How many of the newest frames the critic sees.
pub const FRAMES: usize = 3;
/// Inputs per port beside the action: the newest frames, newest last, then the privileged
/// features.
pub const STATE: usize = FRAMES * FEATURES + PRIVILEGED;
/// One radial basis function per α.
const BASES: usize = ALPHAS.len();
/// Standard deviation of a basis function: the distance between neighbours, so that their sum is
/// nearly constant and the derivative nowhere vanishes.
const BASIS_WIDTH: f64 = 0.25;

/// Per-port layers around a mean and a maximum over ports.
///
/// `h_i = relu(A [s_i, a_i, φ(a_i)])`, `e_i = relu(B h_i)`,
/// `z_i = relu(norm(C e_i + D mean(e) + E max(e)))`, `Q_i = w z_i + u_i`, with φ eight radial basis
/// functions: α enters the dataplane as one of eight levels, so the value is a step-like function
/// of the action that a plain linear input would smooth away. Layer norm without scale and shift
/// bounds the value's growth outside the data (Ball et al. 2023, RLPD §4.2).
#[derive(Module, Debug)]
pub struct PrivilegedCritic {
    state: Linear,
    action: Param<Tensor<2>>,
    embed: Linear,
    mix_own: Linear,
    mix_mean: Param<Tensor<2>>,
    mix_max: Param<Tensor<2>>,
    out: Linear,
}

impl PrivilegedCritic {
    /// A critic with PyTorch's default initialisation and layers of this width.
    pub fn random(width: usize, rng: &mut Xoshiro256PlusPlus, device: &Device) -> PrivilegedCritic {
        PrivilegedCritic {
            state: linear(STATE, width, rng, device),
            action: matrix([1 + BASES, width], 1 + BASES, rng, device),
            embed: linear(width, width, rng, device),
            mix_own: linear(width, width, rng, device),
            mix_mean: matrix([width, width], width, rng, device),
            mix_max: matrix([width, width], width, rng, device),
            out: linear(width, 1, rng, device),
        }
    }

    /// `[batch * ports, STATE]` and `[batch, ports]` to `[batch, ports]`.
    pub fn forward(&self, state: Tensor<2>, actions: Tensor<2>) -> Tensor<2> {
        let [batch, ports] = actions.dims();
        let acted = action_features(actions.reshape([batch * ports, 1]));
        let hidden = relu(self.state.forward(state) + acted.matmul(self.action.val()));
        let embedding = relu(self.embed.forward(hidden));
        let mean = mean_over_ports(embedding.clone(), batch).matmul(self.mix_mean.val());
        let max = max_over_ports(embedding.clone(), batch).matmul(self.mix_max.val());
        let mixed = add_to_each_port(self.mix_own.forward(embedding), mean + max);
        self.out
            .forward(relu(normalise(mixed)))
            .reshape([batch, ports])
    }
}

/// `[rows, 1]` to `[rows, 9]`: the action itself and its basis functions.
fn action_features(actions: Tensor<2>) -> Tensor<2> {
    let centres: Vec<f32> = (0..BASES).map(cell_centre).collect();
    let centres = Tensor::<2>::from_data(
        TensorData::new(centres, [1, BASES]),
        &actions.device().inner(),
    );
    let distance = actions.clone() - centres;
    let bases = (distance.square() * (-0.5 / (BASIS_WIDTH * BASIS_WIDTH))).exp();
    Tensor::cat(vec![actions, bases], 1)
}

/// Each row with mean 0 and variance 1.
fn normalise(rows: Tensor<2>) -> Tensor<2> {
    let centred = rows.clone() - rows.mean_dim(1);
    let deviation = (centred.clone().square().mean_dim(1) + 1e-5).sqrt();
    centred / deviation
}
