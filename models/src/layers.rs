//! Linear layers made from a seeded host stream.
//!
//! Burn's own initialisers draw from one generator per process, so that two networks made at the
//! same time would disturb each other; these do not.

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, TensorData};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::noise::uniform;

/// `count` numbers uniform in `±1/√fan_in`, PyTorch's default for linear and convolution layers.
pub(crate) fn uniform_fan_in(
    count: usize,
    fan_in: usize,
    rng: &mut Xoshiro256PlusPlus,
) -> Vec<f32> {
    let bound = 1.0 / (fan_in as f32).sqrt();
    (0..count)
        .map(|_| bound * (2.0 * uniform(rng) - 1.0))
        .collect()
}

/// A linear layer `[.., inputs] → [.., outputs]` from its weight `[inputs, outputs]` (row major)
/// and bias `[outputs]`.
///
/// # Panics
/// When the lengths do not fit.
pub(crate) fn linear_from(weight: Vec<f32>, bias: Vec<f32>, device: &Device) -> Linear {
    let outputs = bias.len();
    let inputs = weight.len() / outputs;
    Linear {
        weight: Param::from_data(TensorData::new(weight, [inputs, outputs]), device),
        bias: Some(Param::from_data(TensorData::new(bias, [outputs]), device)),
    }
}

/// A linear layer with random weights.
pub fn linear(
    inputs: usize,
    outputs: usize,
    rng: &mut Xoshiro256PlusPlus,
    device: &Device,
) -> Linear {
    let weight = uniform_fan_in(inputs * outputs, inputs, rng);
    let bias = uniform_fan_in(outputs, inputs, rng);
    linear_from(weight, bias, device)
}

/// A random matrix `[inputs, outputs]` without bias, for one of several inputs of a layer whose
/// inputs together have `fan_in` values.
pub fn matrix(
    [inputs, outputs]: [usize; 2],
    fan_in: usize,
    rng: &mut Xoshiro256PlusPlus,
    device: &Device,
) -> Param<Tensor<2>> {
    let values = uniform_fan_in(inputs * outputs, fan_in, rng);
    Param::from_data(TensorData::new(values, [inputs, outputs]), device)
}

/// `own` of `[batch * ports, width]` plus `shared` of `[batch, width]`, repeated for each port.
pub(crate) fn add_to_each_port(own: Tensor<2>, shared: Tensor<2>) -> Tensor<2> {
    let [batch, width] = shared.dims();
    let [rows, _] = own.dims();
    let sum = own.reshape([batch, rows / batch, width]) + shared.reshape([batch, 1, width]);
    sum.reshape([rows, width])
}

/// The mean over ports: `[batch * ports, width] → [batch, width]`.
pub(crate) fn mean_over_ports(rows: Tensor<2>, batch: usize) -> Tensor<2> {
    let [count, width] = rows.dims();
    rows.reshape([batch, count / batch, width])
        .mean_dim(1)
        .reshape([batch, width])
}

/// The maximum over ports: `[batch * ports, width] → [batch, width]`.
pub(crate) fn max_over_ports(rows: Tensor<2>, batch: usize) -> Tensor<2> {
    let [count, width] = rows.dims();
    rows.reshape([batch, count / batch, width])
        .max_dim(1)
        .reshape([batch, width])
}

/// Each row with mean 0 and variance 1.
pub fn normalise(rows: Tensor<2>) -> Tensor<2> {
    let centred = rows.clone() - rows.mean_dim(1);
    let deviation = (centred.clone().square().mean_dim(1) + 1e-5).sqrt();
    centred / deviation
}
