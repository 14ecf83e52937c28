//! Adam with a stored state that can be read on a machine without the device that wrote it.

use bufgym_models::cpu;
use burn::grad_clipping::GradientClippingConfig;
use burn::optim::{
    Adam, AdamConfig, AdamState, LearningRate, ModuleOptimizer, Optimizer, RecordState, StateSink,
    StateSource,
};
use burn::tensor::{Device, Tensor};

/// Adam for a single number, with its usual decays of 0.9 and 0.999.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ScalarAdam {
    /// Moving averages of the gradient and of its square.
    pub(crate) moments: [f64; 2],
    pub(crate) steps: i32,
}

impl ScalarAdam {
    /// Returns the change of the number for a step of size `rate` against this gradient.
    pub(crate) fn step(&mut self, rate: f64, gradient: f64) -> f64 {
        let [first, second] = &mut self.moments;
        self.steps += 1;
        *first += 0.1 * (gradient - *first);
        *second += 0.001 * (gradient * gradient - *second);
        let unbiased =
            |moment: f64, decay: f64| moment / (1.0 - libm::pow(decay, self.steps.into()));
        let deviation = libm::sqrt(unbiased(*second, 0.999)) + 1e-8;
        -rate * unbiased(*first, 0.9) / deviation
    }
}

/// Adam (Kingma and Ba 2015) for a network on any device, without a state. `clip` is the largest norm
/// of each parameter tensor's gradient.
pub fn adam(clip: Option<f32>) -> ModuleOptimizer {
    // Burn's default epsilon is 1e-5; every published setting assumes 1e-8.
    let optimizer = ModuleOptimizer::from(HostRead(AdamConfig::new().with_epsilon(1e-8).build()));
    match clip.map(GradientClippingConfig::Norm) {
        Some(clip) => optimizer.with_grad_clipping(clip.init()),
        None => optimizer,
    }
}

/// Burn's Adam. Burn puts a state that is read onto its own default device. That device is a graphics processor in
/// every program that can use one, so a training could not continue on the processor without one. Here the state is
/// read on the processor; its first step takes it to the network's device.
#[derive(Clone)]
struct HostRead(Adam);

/// The state of one parameter tensor.
#[derive(Clone)]
struct HostReadState<const D: usize>(AdamState<D>);

impl Optimizer for HostRead {
    type State<const D: usize> = HostReadState<D>;

    fn step<const D: usize>(
        &self,
        rate: LearningRate,
        tensor: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<HostReadState<D>>,
    ) -> (Tensor<D>, Option<HostReadState<D>>) {
        let state = state.map(|state| state.0);
        let (tensor, state) = self.0.step(rate, tensor, gradient, state);
        (tensor, state.map(HostReadState))
    }

    fn to_device<const D: usize>(state: HostReadState<D>, device: &Device) -> HostReadState<D> {
        HostReadState(Adam::to_device(state.0, device))
    }
}

impl<const D: usize> RecordState for HostReadState<D> {
    fn state_flatten(&self, prefix: &str, out: &mut StateSink) {
        self.0.state_flatten(prefix, out);
    }

    fn state_unflatten(prefix: &str, source: &mut StateSource, _default: &Device) -> Option<Self> {
        AdamState::state_unflatten(prefix, source, &cpu()).map(HostReadState)
    }
}
