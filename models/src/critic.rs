//! Action-value networks with one value per port.
//!
//! The reward is a sum over ports, and so is the value. With one output per port each transition
//! teaches `ports` numbers instead of one. Every port's value depends on the state of all ports,
//! the joint value depends on the actions of all, and permuting the ports permutes the values.

use std::fmt;

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor, TensorData};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use bufgym_env::control::{
    ALPHAS, FEATURES, PRIVILEGED, SENDER_FEATURES, action_index, cell_centre,
};

use crate::actor::{Trunk, mix_layers};
use crate::layers::{add_to_each_port, linear, matrix, max_over_ports, mean_over_ports};
use crate::weights::{CONVOLVED, EMBEDDING, HIDDEN};

/// How many of the newest frames the critic sees.
pub const FRAMES: usize = 3;
/// Inputs per port besides the action: the newest frames, newest last, then the privileged
/// features.
pub const STATE: usize = FRAMES * FEATURES + PRIVILEGED;
/// The inputs that the effect of an action may depend on: all but those about the future.
const PRESENT: usize = FRAMES * FEATURES + SENDER_FEATURES;
/// Index of the newest queue, q/B, in the inputs.
const QUEUE: usize = (FRAMES - 1) * FEATURES;
/// Index of the occupancy, Q/B, in the inputs.
const OCCUPANCY: usize = FRAMES * FEATURES + bufgym_env::control::OCCUPANCY_FEATURE;
/// Number of terms that an action's effect is linear in: a constant and the present inputs.
const PRODUCTS: usize = 1 + PRESENT;
/// Rounded standard deviations of the present inputs under a learned policy in `ndt-16x1g`. In
/// these units one ridge suits rare and frequent features alike. They need not be exact.
const DEVIATIONS: [f32; PRESENT] = [
    0.15, 0.16, 0.03, 0.54, 0.21, // the three frames
    0.15, 0.16, 0.03, 0.54, 0.21, //
    0.15, 0.16, 0.03, 0.54, 0.21, //
    0.18, 0.13, 0.10, 0.13, 0.08, 0.30, 0.24, 0.11, 0.13, 0.15, 0.24, 0.08,
];
/// Number of features of one output of an action, see [`action_features`].
const ACTION: usize = 3;

/// Number of weights of the advantage where decisions have so many outputs per port.
pub const fn advantage_weights(outputs: usize) -> usize {
    PRODUCTS * ACTION * outputs
}

/// Which network estimates action values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CriticKind {
    /// [`PrivilegedCritic`]: sees the simulator's state, which no switch sees.
    #[default]
    Privileged,
    /// [`TrunkCritic`]: the paper's, sees what the actor sees.
    Trunk,
}

impl fmt::Display for CriticKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            CriticKind::Privileged => "privileged",
            CriticKind::Trunk => "trunk",
        })
    }
}

/// The input of a critic. Each kind reads the part that it needs.
#[derive(Clone, Debug)]
pub struct CriticInput {
    /// Unfolded observations, `[batch * ports * 8, 15]`.
    pub windows: Tensor<2>,
    /// Newest frames and privileged features, `[batch * ports, STATE]`.
    pub state: Tensor<2>,
}

impl CriticInput {
    /// The same on the device with automatic differentiation.
    #[must_use]
    pub fn autodiff(&self) -> CriticInput {
        CriticInput {
            windows: self.windows.clone().autodiff(),
            state: self.state.clone().autodiff(),
        }
    }
}

/// One action-value network.
// A training holds four of them, so the size of the larger variant does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(Module, Debug)]
pub enum Critic {
    /// See [`PrivilegedCritic`].
    Privileged(PrivilegedCritic),
    /// See [`TrunkCritic`].
    Trunk(TrunkCritic),
}

impl Critic {
    /// A critic with random weights, for `outputs` values of an action per port. `width` is that of
    /// the privileged critic's layers; the trunk's widths are the paper's.
    pub fn random(
        kind: CriticKind,
        width: usize,
        outputs: usize,
        rng: &mut Xoshiro256PlusPlus,
        device: &Device,
    ) -> Critic {
        match kind {
            CriticKind::Privileged => {
                Critic::Privileged(PrivilegedCritic::random(width, outputs, rng, device))
            }
            CriticKind::Trunk => Critic::Trunk(TrunkCritic::random(outputs, rng, device)),
        }
    }

    /// Action values `[batch, ports]` of the actions `[batch, ports * outputs]`.
    pub fn forward(&self, input: &CriticInput, actions: Tensor<2>) -> Tensor<2> {
        match self {
            Critic::Privileged(critic) => critic.forward(input.state.clone(), actions),
            Critic::Trunk(critic) => critic.forward(input.windows.clone(), actions),
        }
    }

    /// The part that gradient descent trains, `[batch, ports]`: the value of the state where the
    /// critic has a separate advantage, else the value of the actions.
    pub fn estimate(&self, input: &CriticInput, actions: Tensor<2>) -> Tensor<2> {
        match self {
            Critic::Privileged(critic) => critic.value(input.state.clone(), actions.dims()[0]),
            Critic::Trunk(_) => self.forward(input, actions),
        }
    }

    /// Sets the advantage's weights where the critic has a separate advantage.
    ///
    /// # Panics
    /// As [`PrivilegedCritic::set_advantage`].
    pub fn set_advantage(&mut self, weights: &[f32]) {
        if let Critic::Privileged(critic) = self {
            critic.set_advantage(weights);
        }
    }

    /// As [`forward`](Critic::forward), up to a term that does not depend on the actions. That is
    /// enough for the actor's gradient, and cheaper where the critic has a separate advantage.
    pub fn preference(&self, input: &CriticInput, actions: Tensor<2>) -> Tensor<2> {
        match self {
            Critic::Privileged(critic) => critic.advantage(input.state.clone(), actions),
            Critic::Trunk(_) => self.forward(input, actions),
        }
    }
}

/// `Q_i = V_i(s) + A_i(s, a)` (dueling architecture, Wang et al. 2016), all ports' `V` and `A` with
/// the same weights.
///
/// This critic sees more than the switch (asymmetric actor-critic, Pinto et al. 2018). Only
/// training needs a critic, and there the simulator's state is at hand: flows waiting for a
/// timeout, bytes still to send, flows yet to start.
///
/// One decision moves the value by a hundredth of what chance does. A network that fits both passes
/// the noise on to the actor as a gradient. So `V` is a network, and `A_i = Σ_k ψ_k(a_i) W_k · y_i`
/// is linear in weights W that are fitted separately by least squares
/// ([`set_advantage`](PrivilegedCritic::set_advantage)). y is 1 and the present part of the state;
/// ψ are three features of the action.
#[derive(Module, Debug)]
pub struct PrivilegedCritic {
    value: Value,
    advantage: Param<Tensor<2>>,
}

/// `h_i = relu(A s_i)`, `e_i = relu(B h_i)`, `z_i = relu(norm(C e_i + D mean(e) + E max(e)))`,
/// `V_i = w z_i + u`. Layer norm without scale and shift bounds the growth outside the data
/// (Ball et al. 2023, RLPD §4.2).
#[derive(Module, Debug)]
struct Value {
    state: Linear,
    embed: Linear,
    mix_own: Linear,
    mix_mean: Param<Tensor<2>>,
    mix_max: Param<Tensor<2>>,
    out: Linear,
}

impl PrivilegedCritic {
    /// A critic with PyTorch's default initialisation; `width` is that of the value's layers.
    pub fn random(
        width: usize,
        outputs: usize,
        rng: &mut Xoshiro256PlusPlus,
        device: &Device,
    ) -> PrivilegedCritic {
        let weights = vec![0.0f32; advantage_weights(outputs)];
        PrivilegedCritic {
            value: Value {
                state: linear(STATE, width, rng, device),
                embed: linear(width, width, rng, device),
                mix_own: linear(width, width, rng, device),
                mix_mean: matrix([width, width], width, rng, device),
                mix_max: matrix([width, width], width, rng, device),
                out: linear(width, 1, rng, device),
            },
            advantage: Param::from_data(
                TensorData::new(weights, [PRODUCTS, ACTION * outputs]),
                device,
            ),
        }
    }

    /// Sets the weights W of the advantage, `[PRODUCTS, ACTION * outputs]` in row-major order.
    ///
    /// # Panics
    /// When there are not [as many](advantage_weights).
    pub fn set_advantage(&mut self, weights: &[f32]) {
        let shape = self.advantage.dims();
        assert_eq!(
            weights.len(),
            shape[0] * shape[1],
            "one weight per product and action feature"
        );
        let data = TensorData::new(weights.to_vec(), shape);
        self.advantage = self
            .advantage
            .clone()
            .map(|old| like(&old, Tensor::from_data(data, &old.device().inner())));
    }

    /// `V`, `[batch * ports, STATE]` to `[batch, ports]`.
    pub fn value(&self, state: Tensor<2>, batch: usize) -> Tensor<2> {
        self.value.forward(state, batch)
    }

    /// `A`: the effect of each port's action on the mean value of all ports, credited to the port
    /// that acts. `[batch * ports, STATE]` and `[batch, ports * outputs]` to `[batch, ports]`.
    pub fn advantage(&self, state: Tensor<2>, actions: Tensor<2>) -> Tensor<2> {
        let ([batch, values], [rows, _]) = (actions.dims(), state.dims());
        let ports = rows / batch;
        let acted = action_features(&state, actions.reshape([rows, values / ports]));
        let coefficients = products(state).matmul(self.advantage.val());
        (coefficients * acted).sum_dim(1).reshape([batch, ports])
    }

    /// `V + A`, shapes as in [`advantage`](PrivilegedCritic::advantage).
    pub fn forward(&self, state: Tensor<2>, actions: Tensor<2>) -> Tensor<2> {
        let [batch, _] = actions.dims();
        self.value(state.clone(), batch) + self.advantage(state, actions)
    }
}

impl Value {
    fn forward(&self, state: Tensor<2>, batch: usize) -> Tensor<2> {
        let [rows, _] = state.dims();
        let embedding = relu(self.embed.forward(relu(self.state.forward(state))));
        let mean = mean_over_ports(embedding.clone(), batch).matmul(self.mix_mean.val());
        let max = max_over_ports(embedding.clone(), batch).matmul(self.mix_max.val());
        let mixed = add_to_each_port(self.mix_own.forward(embedding), mean + max);
        self.out
            .forward(relu(normalise(mixed)))
            .reshape([batch, rows / batch])
    }
}

/// `[rows, STATE]` to `[rows, PRODUCTS]`: 1 and the present inputs in units of [`DEVIATIONS`].
fn products(state: Tensor<2>) -> Tensor<2> {
    let present = state.narrow(1, 0, PRESENT);
    let ones = present.clone().narrow(1, 0, 1) * 0.0 + 1.0;
    let deviations = TensorData::new(DEVIATIONS.to_vec(), [1, PRESENT]);
    let deviations = like(
        &present,
        Tensor::from_data(deviations, &present.device().inner()),
    );
    Tensor::cat(vec![ones, present / deviations], 1)
}

/// `constant` on the device of `tensor`.
fn like(tensor: &Tensor<2>, constant: Tensor<2>) -> Tensor<2> {
    if tensor.is_autodiff() {
        constant.autodiff()
    } else {
        constant
    }
}

/// `[rows, outputs]` to `[rows, 3 * outputs]`. Of α: the action, its square, and how far the queue may
/// still grow; of early drop: the action, its square, and the share of packets that is lost, relative
/// to the largest.
fn action_features(state: &Tensor<2>, actions: Tensor<2>) -> Tensor<2> {
    // Cell k has its centre at -1 + (k + 1/2)/4; α is 2^(k-2), and level k loses 2^(k-7) of what the
    // last one does.
    let power =
        |values: &Tensor<2>, at: f64| ((values.clone() * 4.0 + at) * std::f64::consts::LN_2).exp();
    let [_, outputs] = actions.dims();
    let alpha = actions.clone().narrow(1, 0, 1);
    let room = room(state, power(&alpha, 1.5));
    let mut features = vec![alpha.clone(), alpha.square(), room];
    if outputs > 1 {
        let early = actions.narrow(1, 1, 1);
        let share = power(&early, 3.5 - 7.0);
        features.extend([early.clone(), early.square(), share]);
    }
    Tensor::cat(features, 1)
}

/// Adds the terms that the advantage of one decision is linear in to `out`,
/// `[PRODUCTS, ACTION * outputs]`: the mean over ports of `(ψ_k(a) - E ψ_k) y_f`.
///
/// The expectation `E ψ_k` is over the `probabilities` with which the action was drawn. It is
/// subtracted because a policy is nearly a function of the state: without that, the advantage would
/// explain errors of `V` by the actions that are usual in such states. (Partialling out: Robinson
/// 1988; for effects that vary with the state: Nie and Wager 2021.)
///
/// `state` is `[ports, STATE]`, `actions` is `[ports, outputs]` and holds centres of cells,
/// `probabilities` is `[ports, outputs, 8]`.
pub fn advantage_features(state: &[f32], actions: &[f32], probabilities: &[f32], out: &mut [f64]) {
    let rows = state.as_chunks::<STATE>().0;
    let outputs = actions.len() / rows.len();
    let share = 1.0 / rows.len() as f64;
    let probabilities = probabilities.as_chunks::<{ ALPHAS.len() }>().0;
    let ports = actions
        .chunks_exact(outputs)
        .zip(probabilities.chunks_exact(outputs));
    for (row, (actions, probabilities)) in rows.iter().zip(ports) {
        for (output, (&action, probabilities)) in actions.iter().zip(probabilities).enumerate() {
            let beyond = beyond_usual(row, share, (output, action), probabilities);
            let (constant, present) = out.split_at_mut(ACTION * outputs);
            let first = output * ACTION;
            for k in 0..ACTION {
                constant[first + k] += beyond[k];
            }
            let products = present.chunks_exact_mut(ACTION * outputs);
            for (product, (&value, deviation)) in products.zip(row.iter().zip(DEVIATIONS)) {
                let value = f64::from(value / deviation);
                for k in 0..ACTION {
                    product[first + k] += beyond[k] * value;
                }
            }
        }
    }
}

/// `share · (ψ_k(a) - E ψ_k)` of one output of a port, as [`action_features`] has ψ.
fn beyond_usual(
    row: &[f32; STATE],
    share: f64,
    (output, action): (usize, f32),
    probabilities: &[f32; ALPHAS.len()],
) -> [f64; ACTION] {
    let occupancy = f64::from(row[OCCUPANCY]);
    let features = |action: f32, cell: usize| {
        let last = match output {
            0 => {
                let room = ALPHAS[cell] * (1.0 - occupancy) - f64::from(row[QUEUE]);
                (16.0 * room.max(0.0)).ln_1p() / 65f64.ln()
            }
            _ => libm::exp2(cell as f64 - 7.0),
        };
        [f64::from(action), f64::from(action * action), last]
    };
    let mut beyond = features(action, action_index(action)).map(|feature| feature * share);
    let possible = probabilities
        .iter()
        .enumerate()
        .filter(|(_, probability)| **probability > 0.0);
    for (cell, &probability) in possible {
        let usual = features(cell_centre(cell), cell);
        for (beyond, usual) in beyond.iter_mut().zip(usual) {
            *beyond -= share * f64::from(probability) * usual;
        }
    }
    beyond
}

/// How far the threshold `α (B - Q)` lies above `q`: `log(1 + 16 x / B) / log 65` of the difference
/// x.
fn room(state: &Tensor<2>, alpha: Tensor<2>) -> Tensor<2> {
    let queue = state.clone().narrow(1, QUEUE, 1);
    let occupancy = state.clone().narrow(1, OCCUPANCY, 1);
    let room = relu(alpha * (-occupancy + 1.0) - queue);
    (room * 16.0 + 1.0).log() * (1.0 / 65f64.ln())
}

/// Each row with mean 0 and variance 1.
fn normalise(rows: Tensor<2>) -> Tensor<2> {
    let centred = rows.clone() - rows.mean_dim(1);
    let deviation = (centred.clone().square().mean_dim(1) + 1e-5).sqrt();
    centred / deviation
}

/// The paper's critic: the actor's trunk with the port's action as a further input of the dense
/// layer, and one head.
///
/// The action enters before the mean over ports, so that every port's value depends on the actions
/// of all ports.
#[derive(Module, Debug)]
pub struct TrunkCritic {
    trunk: Trunk,
    /// The dense layer's rows for the action: `[outputs, 64]`.
    action: Param<Tensor<2>>,
    mix_own: Linear,
    mix_mean: Param<Tensor<2>>,
    hidden: Linear,
    out: Linear,
}

impl TrunkCritic {
    /// A critic with PyTorch's default initialisation.
    pub fn random(outputs: usize, rng: &mut Xoshiro256PlusPlus, device: &Device) -> TrunkCritic {
        let trunk = Trunk::random(rng, device);
        let action = matrix([outputs, EMBEDDING], CONVOLVED + outputs, rng, device);
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

    /// `[batch * ports * 8, 15]` and `[batch, ports * outputs]` to `[batch, ports]`.
    pub fn forward(&self, windows: Tensor<2>, actions: Tensor<2>) -> Tensor<2> {
        let [outputs, _] = self.action.val().dims();
        let [batch, values] = actions.dims();
        let ports = values / outputs;
        let acted = actions
            .reshape([batch * ports, outputs])
            .matmul(self.action.val());
        let embedding = relu(self.trunk.forward(windows) + acted);
        let mean = mean_over_ports(embedding.clone(), batch).matmul(self.mix_mean.val());
        let mixed = relu(add_to_each_port(self.mix_own.forward(embedding), mean));
        self.out
            .forward(relu(self.hidden.forward(mixed)))
            .reshape([batch, ports])
    }
}
