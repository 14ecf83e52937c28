//! The actor's forward pass in plain Rust.
//!
//! Batch-1 inference through a tensor library spends most of its time around the arithmetic. Here
//! nothing is allocated after the first call, and every inner loop runs over a fixed number of
//! outputs held in registers, which the compiler turns into vector instructions. The order of
//! every sum is fixed, so that the result does not depend on the machine's vector width.

use rand_xoshiro::Xoshiro256PlusPlus;

use bufgym_env::control::{Controller, FEATURES, HISTORY};

use crate::noise::standard_normal;
use crate::weights::{
    ActorWeights, CHANNELS, CONVOLVED, EMBEDDING, FILTERS, HIDDEN, LOG_STD_RANGE, step_major,
    tensor, transpose,
};
use crate::windows::{OBSERVATION, TAPS};

/// An actor ready to decide. Cheap to clone, one per thread.
#[derive(Clone, Debug)]
pub struct FastActor {
    /// `[feature, tap, filter]`, then the bias `[feature, filter]`.
    conv: Vec<[f32; FILTERS]>,
    conv_bias: Vec<[f32; FILTERS]>,
    /// `[step * channel, 64]`.
    embed: Vec<[f32; EMBEDDING]>,
    embed_bias: [f32; EMBEDDING],
    /// `[128, 32]`: the port's own embedding, then the mean.
    mix: Vec<[f32; HIDDEN]>,
    mix_bias: [f32; HIDDEN],
    heads: [Head; 2],
    /// `[ports, 64]`.
    embeddings: Vec<[f32; EMBEDDING]>,
    outputs: [Vec<f32>; 2],
}

/// 32 → 32 → 1.
#[derive(Clone, Debug)]
struct Head {
    hidden: Vec<[f32; HIDDEN]>,
    hidden_bias: [f32; HIDDEN],
    out: [f32; HIDDEN],
    out_bias: f32,
}

impl FastActor {
    /// An actor with these weights.
    pub fn new(weights: &ActorWeights) -> FastActor {
        let (conv, conv_bias) = weights.layer(tensor::CONV);
        let (embed, embed_bias) = weights.layer(tensor::EMBED);
        let (mix, mix_bias) = weights.layer(tensor::MIX);
        let mut reordered = vec![[0.0; EMBEDDING]; CONVOLVED];
        for (output, row) in embed.chunks_exact(CONVOLVED).enumerate() {
            for (input, &value) in row.iter().enumerate() {
                reordered[step_major(input)][output] = value;
            }
        }
        let conv = conv
            .chunks_exact(FILTERS * TAPS)
            .flat_map(|feature| rows(&transpose(feature, FILTERS)))
            .collect();
        FastActor {
            conv,
            conv_bias: rows(conv_bias),
            embed: reordered,
            embed_bias: array(embed_bias),
            mix: rows(&transpose(mix, HIDDEN)),
            mix_bias: array(mix_bias),
            heads: [tensor::MEAN, tensor::LOG_STD].map(|layers| Head::new(weights, layers)),
            embeddings: Vec::new(),
            outputs: [Vec::new(), Vec::new()],
        }
    }

    /// Mean (before tanh) and clamped logarithm of the standard deviation, each `[ports]`, for an
    /// observation `[ports, 8, 5]`.
    ///
    /// # Panics
    /// When the observation has another length, or there is no port.
    pub fn forward(&mut self, observation: &[f32], ports: usize) -> (&[f32], &[f32]) {
        assert!(ports > 0, "an observation has at least one port");
        assert_eq!(observation.len(), ports * OBSERVATION);
        self.embeddings.resize(ports, [0.0; EMBEDDING]);
        let mut mean = [0.0; EMBEDDING];
        for (port, history) in observation.as_chunks::<OBSERVATION>().0.iter().enumerate() {
            let embedding = self.embed_port(history);
            add(&mut mean, &embedding);
            self.embeddings[port] = embedding;
        }
        mean.iter_mut().for_each(|value| *value /= ports as f32);

        // The mean's share of the mixing layer is the same for every port.
        let mut shared = self.mix_bias;
        accumulate(&mut shared, &mean, &self.mix[EMBEDDING..]);
        self.outputs
            .iter_mut()
            .for_each(|output| output.resize(ports, 0.0));
        let [low, high] = LOG_STD_RANGE;
        for (port, embedding) in self.embeddings.iter().enumerate() {
            let mut mixed = shared;
            accumulate(&mut mixed, embedding, &self.mix[..EMBEDDING]);
            relu(&mut mixed);
            self.outputs[0][port] = self.heads[0].forward(&mixed);
            self.outputs[1][port] = self.heads[1].forward(&mixed).clamp(low, high);
        }
        (&self.outputs[0], &self.outputs[1])
    }

    /// One action per port, drawn from the policy, in `[-1, 1]`.
    ///
    /// # Panics
    /// As [`FastActor::forward`], and when `action` has another length than `ports`.
    pub fn sample(
        &mut self,
        observation: &[f32],
        ports: usize,
        rng: &mut Xoshiro256PlusPlus,
        action: &mut [f32],
    ) {
        assert_eq!(action.len(), ports);
        let (mean, log_std) = self.forward(observation, ports);
        for ((action, &mean), &log_std) in action.iter_mut().zip(mean).zip(log_std) {
            *action = libm::tanhf(mean + libm::expf(log_std) * standard_normal(rng));
        }
    }

    /// One port's history `[8, 5]` to its embedding.
    fn embed_port(&self, history: &[f32; OBSERVATION]) -> [f32; EMBEDDING] {
        let mut embedding = self.embed_bias;
        let mut channels = [0.0; CHANNELS];
        for step in 0..HISTORY {
            self.convolve(history, step, &mut channels);
            let weights = &self.embed[step * CHANNELS..(step + 1) * CHANNELS];
            accumulate(&mut embedding, &channels, weights);
        }
        relu(&mut embedding);
        embedding
    }

    /// The convolution's channels at one step.
    fn convolve(&self, history: &[f32; OBSERVATION], step: usize, out: &mut [f32; CHANNELS]) {
        for (feature, filters) in out.as_chunks_mut::<FILTERS>().0.iter_mut().enumerate() {
            *filters = self.conv_bias[feature];
            for tap in 0..TAPS {
                let Some(source) = (step + tap).checked_sub(1).filter(|&s| s < HISTORY) else {
                    continue;
                };
                let value = history[source * FEATURES + feature];
                multiply_add(filters, value, &self.conv[feature * TAPS + tap]);
            }
            relu(filters);
        }
    }
}

impl Controller for FastActor {
    /// The deterministic action, `tanh(mean)`.
    fn act(&mut self, observation: &[f32], ports: usize, action: &mut [f32]) {
        assert_eq!(action.len(), ports);
        let (mean, _) = self.forward(observation, ports);
        action
            .iter_mut()
            .zip(mean)
            .for_each(|(action, &mean)| *action = libm::tanhf(mean));
    }
}

impl Head {
    fn new(weights: &ActorWeights, [hidden, out]: [usize; 2]) -> Head {
        let (hidden_weight, hidden_bias) = weights.layer(hidden);
        let (out, out_bias) = weights.layer(out);
        Head {
            hidden: rows(&transpose(hidden_weight, HIDDEN)),
            hidden_bias: array(hidden_bias),
            out: array(out),
            out_bias: out_bias[0],
        }
    }

    fn forward(&self, mixed: &[f32; HIDDEN]) -> f32 {
        let mut hidden = self.hidden_bias;
        accumulate(&mut hidden, mixed, &self.hidden);
        relu(&mut hidden);
        hidden
            .iter()
            .zip(&self.out)
            .fold(self.out_bias, |sum, (a, b)| sum + a * b)
    }
}

/// `out += inputs · weights`, with the outputs in registers across the whole sum. Inputs that the
/// activation before has set to zero, about half, are skipped.
fn accumulate<const N: usize>(out: &mut [f32; N], inputs: &[f32], weights: &[[f32; N]]) {
    let mut sum = *out;
    for (&input, row) in inputs.iter().zip(weights) {
        if input != 0.0 {
            multiply_add(&mut sum, input, row);
        }
    }
    *out = sum;
}

fn multiply_add<const N: usize>(out: &mut [f32; N], factor: f32, row: &[f32; N]) {
    for (out, &weight) in out.iter_mut().zip(row) {
        *out += factor * weight;
    }
}

fn add<const N: usize>(out: &mut [f32; N], other: &[f32; N]) {
    out.iter_mut()
        .zip(other)
        .for_each(|(out, &value)| *out += value);
}

fn relu<const N: usize>(values: &mut [f32; N]) {
    values.iter_mut().for_each(|value| *value = value.max(0.0));
}

fn rows<const N: usize>(values: &[f32]) -> Vec<[f32; N]> {
    values.as_chunks::<N>().0.to_vec()
}

fn array<const N: usize>(values: &[f32]) -> [f32; N] {
    let mut array = [0.0; N];
    array.copy_from_slice(values);
    array
}
