//! The integer network as a policy.

use std::mem::take;

use bufgym_env::control::{CodeHistory, Controller, Reading, cell_centre};
use bufgym_sim::network::SimError;

use super::{IntegerDense, IntegerLayer, IntegerNetwork, mean, mean_share, reciprocal};

/// An [`IntegerNetwork`] with the buffers to run it. One per run.
#[derive(Clone, Debug)]
pub struct IntegerActor {
    network: IntegerNetwork,
    arch: pulp::Arch,
    /// History of codes of every switch that has decided, by switch.
    histories: Vec<Option<CodeHistory>>,
    buffers: Buffers,
}

/// Buffers of a forward pass, kept between passes.
#[derive(Clone, Debug, Default)]
struct Buffers {
    /// Activations of all ports, port by port.
    rows: Vec<u8>,
    /// Activations after the current layer.
    next: Vec<u8>,
    /// The start of every port's sums.
    start: Vec<i32>,
    means: Vec<i32>,
    outputs: Vec<i32>,
}

impl IntegerActor {
    /// Runs a network that has been [checked](IntegerNetwork::check).
    pub fn new(network: IntegerNetwork) -> IntegerActor {
        IntegerActor {
            network,
            arch: pulp::Arch::new(),
            histories: Vec::new(),
            buffers: Buffers::default(),
        }
    }

    /// The network.
    pub fn network(&self) -> &IntegerNetwork {
        &self.network
    }

    /// The same as [`IntegerNetwork::forward`], bit for bit, without allocation after the first
    /// call.
    ///
    /// # Panics
    /// Same as [`IntegerNetwork::forward`].
    pub fn forward(&mut self, codes: &[u8], ports: usize) -> &[i32] {
        assert_eq!(codes.len(), ports * self.network.inputs_per_port());
        self.buffers.rows.clear();
        self.buffers.rows.extend_from_slice(codes);
        let reciprocal = reciprocal(ports);
        let arch = self.arch;
        arch.dispatch(Forward {
            actor: self,
            reciprocal,
        });
        &self.buffers.outputs
    }

    /// The levels of every port, `[ports, outputs]`, for codes `[ports, history, features]`.
    ///
    /// # Panics
    /// Same as [`IntegerNetwork::forward`].
    pub fn levels(&mut self, codes: &[u8], ports: usize) -> impl Iterator<Item = usize> + '_ {
        self.forward(codes, ports);
        let network = &self.network;
        let (numbered, outputs) = (self.buffers.outputs.iter().enumerate(), network.outputs());
        numbered.map(move |(place, &value)| network.level(place % outputs, value))
    }

    #[inline(always)]
    fn compute(&mut self, reciprocal: u32) {
        let network = &self.network;
        let inputs = network.inputs_per_port();
        let buffers = &mut self.buffers;
        for layer in &network.layers {
            buffers.next.clear();
            match layer {
                IntegerLayer::Convolution(conv) => {
                    for row in buffers.rows.chunks_exact(inputs) {
                        conv.forward(row, &network.inputs, &mut buffers.next);
                    }
                }
                IntegerLayer::Dense(dense) => buffers.dense(dense, reciprocal),
            }
            std::mem::swap(&mut buffers.rows, &mut buffers.next);
        }
    }
}

impl Buffers {
    #[inline(always)]
    fn dense(&mut self, dense: &IntegerDense, reciprocal: u32) {
        let (width, weights) = (dense.inputs, dense.row_weights());
        self.start.clone_from(&dense.bias);
        if dense.with_mean {
            self.add_mean(dense, reciprocal);
        }
        self.outputs.clear();
        for row in self.rows.chunks_exact(width) {
            let outputs = dense.weight.chunks_exact(weights).zip(&self.start);
            for (output, (weights, start)) in outputs.enumerate() {
                let sum = start + dot(row, &weights[..width]);
                match &dense.rescale {
                    Some(rescale) => self.next.push(rescale.apply(output, sum)),
                    None => self.outputs.push(sum),
                }
            }
        }
    }

    /// Adds the share of the mean over ports to the start of every port's sums.
    #[inline(always)]
    fn add_mean(&mut self, dense: &IntegerDense, reciprocal: u32) {
        self.means.clear();
        self.means.extend((0..dense.inputs).map(|k| {
            let column = self.rows[k..].iter().step_by(dense.inputs);
            mean(column.map(|&x| u32::from(x)).sum(), reciprocal)
        }));
        let rows = dense.weight.chunks_exact(dense.row_weights());
        for (start, row) in self.start.iter_mut().zip(rows) {
            *start += mean_share(&row[dense.inputs..], &self.means);
        }
    }
}

/// Integer sums do not depend on the order, so the compiler may use vector instructions.
#[inline(always)]
fn dot(inputs: &[u8], weights: &[i8]) -> i32 {
    let products = inputs.iter().zip(weights);
    products.map(|(&x, &w)| i32::from(w) * i32::from(x)).sum()
}

struct Forward<'a> {
    actor: &'a mut IntegerActor,
    reciprocal: u32,
}

impl pulp::NullaryFnOnce for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.actor.compute(self.reciprocal);
    }
}

impl Controller for IntegerActor {
    fn outputs(&self) -> usize {
        self.network.outputs()
    }

    /// Decides from the codes that a dataplane computes in integers, so that both decide the same.
    fn decide(&mut self, at: &Reading<'_>, action: &mut [f32]) -> Result<(), SimError> {
        let (ports, switch) = (at.ports(), at.switch().index());
        if self.histories.len() <= switch {
            self.histories.resize(switch + 1, None);
        }
        let history = take(&mut self.histories[switch]);
        let mut codes = history.unwrap_or_else(|| CodeHistory::new(ports));
        codes.observe(at);
        for (action, level) in action.iter_mut().zip(self.levels(codes.as_slice(), ports)) {
            *action = cell_centre(level);
        }
        self.histories[switch] = Some(codes);
        Ok(())
    }

    /// Decides on the codes nearest to an observation. The action is the centre of the level's
    /// cell.
    fn act(&mut self, observation: &[f32], ports: usize, action: &mut [f32]) {
        assert_eq!(action.len(), ports * self.outputs());
        let codes = self.network.encode(observation);
        for (action, level) in action.iter_mut().zip(self.levels(&codes, ports)) {
            *action = cell_centre(level);
        }
    }
}
