//! Value networks with one value per port.
//!
//! They see more than the switch (asymmetric actor-critic, Pinto et al. 2018). Only training needs a critic, and there
//! the simulator's state is available: flows waiting for a timeout, bytes still to send, flows yet to start.
//!
//! The reward is per port, and so are values: each transition teaches `ports` numbers instead of one. All ports have the
//! same weights, and permuting the ports permutes the values.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::activation::relu;
use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor, TensorData};
use rand_xoshiro::Xoshiro256PlusPlus;

use bufgym_env::control::{FEATURES, HISTORY, PRIVILEGED};

use crate::layers::{add_to_each_port, linear, matrix, max_over_ports, mean_over_ports, normalise};

/// Frames that a critic sees: as many as the actor. With fewer frames, an action would reveal to the critic what the
/// actor has seen earlier. The critic would then mistake the cause of an action for its effect.
pub const FRAMES: usize = HISTORY;
/// Inputs per port: the frames, newest last, then the privileged features.
pub const STATE: usize = FRAMES * FEATURES + PRIVILEGED;

/// Newest frames from which the value of a state is estimated. No action enters there, and more frames add noise.
const VALUE_FRAMES: usize = 3;
/// Inputs per port of [`StateValue`]: the newest three frames, then the privileged features.
pub const VALUE_STATE: usize = VALUE_FRAMES * FEATURES + PRIVILEGED;

/// The part of a critic's inputs that [`StateValue`] sees: `[rows, STATE]` to `[rows, VALUE_STATE]`.
pub fn newest(state: &[f32]) -> Vec<f32> {
    let rows = state.as_chunks::<STATE>().0.iter();
    rows.flat_map(|row| &row[STATE - VALUE_STATE..])
        .copied()
        .collect()
}

/// The value of a state: `h_i = relu(A s_i)`, `e_i = relu(B h_i)`,
/// `z_i = relu(norm(C e_i + D mean(e) + E max(e)))`, `V_i = w z_i + u`.
///
/// Layer norm without scale and shift bounds the growth outside the data (Ball et al. 2023, RLPD §4.2).
#[derive(Module, Debug)]
pub struct StateValue {
    state: Linear,
    embed: Linear,
    mix_own: Linear,
    mix_mean: Param<Tensor<2>>,
    mix_max: Param<Tensor<2>>,
    out: Linear,
}

impl StateValue {
    /// A network with PyTorch's default initialisation and layers of this width.
    pub fn random(width: usize, rng: &mut Xoshiro256PlusPlus, device: &Device) -> StateValue {
        StateValue {
            state: linear(VALUE_STATE, width, rng, device),
            embed: linear(width, width, rng, device),
            mix_own: linear(width, width, rng, device),
            mix_mean: matrix([width, width], width, rng, device),
            mix_max: matrix([width, width], width, rng, device),
            out: linear(width, 1, rng, device),
        }
    }

    /// `[batch * ports, VALUE_STATE]` to `[batch, ports]`.
    pub fn forward(&self, state: Tensor<2>, batch: usize) -> Tensor<2> {
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

/// The ports of a batch that are busy. Only their values are computed.
#[derive(Clone, Debug)]
pub struct BusyPorts {
    /// 1 where a port is busy, else 0, `[batch, ports]`.
    pub mask: Tensor<2>,
    /// Indices of the busy ports among `batch * ports`.
    ports: Tensor<1, Int>,
    /// Index of the sample of each.
    samples: Tensor<1, Int>,
}

impl BusyPorts {
    /// Takes `batch * ports` marks. Where none is set, the first port counts among those that are computed.
    ///
    /// # Panics
    /// When there are no marks, or more than `i32` counts.
    pub fn new(busy: &[bool], ports: usize, device: &Device) -> BusyPorts {
        let mask: Vec<f32> = busy.iter().map(|&busy| f32::from(u8::from(busy))).collect();
        let mut marked: Vec<usize> = (0..busy.len()).filter(|&index| busy[index]).collect();
        if marked.is_empty() {
            marked.push(0);
        }
        let tensor = |index: fn(usize, usize) -> usize| {
            let indices = marked.iter().map(|&marked| index(marked, ports));
            let indices: Vec<i32> = indices
                .map(|index| i32::try_from(index).expect("few ports"))
                .collect();
            let count = indices.len();
            Tensor::from_data(TensorData::new(indices, [count]), device)
        };
        BusyPorts {
            mask: Tensor::from_data(TensorData::new(mask, [busy.len() / ports, ports]), device),
            ports: tensor(|index, _| index),
            samples: tensor(|index, ports| index / ports),
        }
    }

    /// The same on the device with automatic differentiation.
    #[must_use]
    pub fn autodiff(&self) -> BusyPorts {
        BusyPorts {
            mask: self.mask.clone().autodiff(),
            ports: self.ports.clone().autodiff(),
            samples: self.samples.clone().autodiff(),
        }
    }
}

/// The value of the actions of all ports in a state: `h_i = relu(norm(A [s_i, b_i a_i]))` with `b_i` one where port i
/// is busy and else zero, `z_i = relu(norm(B h_i + C m_i))` with the mean `m_i` of h over the other ports,
/// `y_i = relu(norm(D z_i))`, `Q_i = w y_i + u`.
///
/// The value of a port depends on its own state and action, and on the mean over the other ports. Idle ports enter the
/// mean, because they may soon be busy, and because the mean then reflects the number of busy ports. Their actions do
/// not enter. Layer norm bounds the values of actions that were never tried (Ball et al. 2023, RLPD §4.2).
#[derive(Module, Debug)]
pub struct PortCritic {
    state: Linear,
    action: Param<Tensor<2>>,
    mix_own: Linear,
    mix_others: Param<Tensor<2>>,
    hidden: Linear,
    out: Linear,
}

impl PortCritic {
    /// A critic with PyTorch's default initialisation, for `outputs` values of an action per port.
    pub fn random(
        width: usize,
        outputs: usize,
        rng: &mut Xoshiro256PlusPlus,
        device: &Device,
    ) -> PortCritic {
        PortCritic {
            state: linear(STATE, width, rng, device),
            action: matrix([outputs, width], outputs, rng, device),
            mix_own: linear(width, width, rng, device),
            mix_others: matrix([width, width], width, rng, device),
            hidden: linear(width, width, rng, device),
            out: linear(width, 1, rng, device),
        }
    }

    /// States `[batch * ports, STATE]` and actions `[batch, ports * outputs]`, to values `[batch, ports]`, 0 at idle
    /// ports.
    pub fn forward(&self, state: Tensor<2>, busy: &BusyPorts, actions: Tensor<2>) -> Tensor<2> {
        let ([batch, ports], [_, values]) = (busy.mask.dims(), actions.dims());
        let rows = batch * ports;
        let acted = (actions.reshape([rows, values / ports])
            * busy.mask.clone().reshape([rows, 1]))
        .matmul(self.action.val());
        let all = relu(normalise(self.state.forward(state) + acted));
        let [_, width] = all.dims();
        let sums = all.clone().reshape([batch, ports, width]).sum_dim(1);
        let own = all.select(0, busy.ports.clone());
        let sums = sums.reshape([batch, width]).select(0, busy.samples.clone());
        let others = (sums - own.clone()) / (ports - 1).max(1) as f32;
        let others = others.matmul(self.mix_others.val());
        let mixed = relu(normalise(self.mix_own.forward(own) + others));
        let hidden = relu(normalise(self.hidden.forward(mixed)));
        let found = self.out.forward(hidden);
        let none = Tensor::zeros([rows, 1], &found.device());
        none.select_assign(0, busy.ports.clone(), found, IndexingUpdateOp::Add)
            .reshape([batch, ports])
    }
}
