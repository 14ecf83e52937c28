//! The actor's forward pass in plain Rust.
//!
//! With a batch of 1, a tensor library spends most of its time outside the arithmetic. Here nothing
//! is allocated after the first call, and every inner loop runs over a fixed number of outputs in
//! registers, which the compiler turns into vector instructions. The widest vectors of the
//! processor are chosen at run time. The order of every sum is fixed and no multiplication is fused
//! with an addition, so the result does not depend on that choice.

use rand_xoshiro::Xoshiro256PlusPlus;

use bufgym_env::control::{Controller, FEATURES, HISTORY};

use crate::noise::standard_normal;
use crate::weights::{
    ActorWeights, CHANNELS, CONVOLVED, EMBEDDING, FILTERS, HIDDEN, soft_clamp, step_major, tensor,
    transpose,
};
use crate::windows::{OBSERVATION, TAPS};

/// An actor with the buffers to run it. Cheap to clone; every thread needs its own.
#[derive(Clone, Debug)]
pub struct FastActor {
    /// `[tap, channel]`.
    conv: [[f32; CHANNELS]; TAPS],
    conv_bias: [f32; CHANNELS],
    /// `[step * channel, 64]`.
    embed: Vec<[f32; EMBEDDING]>,
    embed_bias: [f32; EMBEDDING],
    /// `[128, 32]`: the port's own embedding, then the mean.
    mix: Vec<[f32; HIDDEN]>,
    mix_bias: [f32; HIDDEN],
    heads: [Head; 2],
    arch: pulp::Arch,
    /// `[ports, step, channel]`.
    channels: Vec<[[f32; CHANNELS]; HISTORY]>,
    /// `[ports, 64]`.
    embeddings: Vec<[f32; EMBEDDING]>,
    outputs: [Vec<f32>; 2],
}

/// 32 → 32 → outputs.
#[derive(Clone, Debug)]
struct Head {
    hidden: Vec<[f32; HIDDEN]>,
    hidden_bias: [f32; HIDDEN],
    /// `[outputs, 32]`.
    out: Vec<[f32; HIDDEN]>,
    out_bias: Vec<f32>,
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
        FastActor {
            conv: std::array::from_fn(|tap| std::array::from_fn(|c| conv[c * TAPS + tap])),
            conv_bias: array(conv_bias),
            embed: reordered,
            embed_bias: array(embed_bias),
            mix: rows(&transpose(mix, HIDDEN)),
            mix_bias: array(mix_bias),
            heads: [tensor::MEAN, tensor::LOG_STD].map(|layers| Head::new(weights, layers)),
            arch: pulp::Arch::new(),
            channels: Vec::new(),
            embeddings: Vec::new(),
            outputs: [Vec::new(), Vec::new()],
        }
    }

    /// Returns the weights from which the actor was made.
    ///
    /// # Panics
    /// Never: its parts have the sizes of a network.
    pub fn weights(&self) -> ActorWeights {
        let filters = 0..CHANNELS;
        let conv = filters.flat_map(|channel| self.conv.iter().map(move |tap| tap[channel]));
        let mut embed = vec![0.0; EMBEDDING * CONVOLVED];
        for (output, row) in embed.chunks_exact_mut(CONVOLVED).enumerate() {
            for (input, value) in row.iter_mut().enumerate() {
                *value = self.embed[step_major(input)][output];
            }
        }
        let mix = transpose(self.mix.as_flattened(), 2 * EMBEDDING);
        let [[a, b, c, d], [e, f, g, h]] = self.heads.each_ref().map(Head::tensors);
        let tensors = [
            conv.collect(),
            self.conv_bias.to_vec(),
            embed,
            self.embed_bias.to_vec(),
            mix,
            self.mix_bias.to_vec(),
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            h,
        ];
        ActorWeights::from_tensors(tensors, self.heads[0].out.len())
            .expect("the parts have the sizes of a network")
    }

    /// Mean (before tanh) and softly clamped logarithm of the standard deviation, each
    /// `[ports, outputs]`, for an observation `[ports, 8, 5]`.
    ///
    /// # Panics
    /// When the observation has another length, or there is no port.
    pub fn forward(&mut self, observation: &[f32], ports: usize) -> (&[f32], &[f32]) {
        assert!(ports > 0, "an observation has at least one port");
        assert_eq!(observation.len(), ports * OBSERVATION);
        self.channels.resize(ports, [[0.0; CHANNELS]; HISTORY]);
        self.embeddings.resize(ports, [0.0; EMBEDDING]);
        let values = self.outputs();
        self.outputs
            .iter_mut()
            .for_each(|output| output.resize(ports * values, 0.0));
        let arch = self.arch;
        arch.dispatch(Forward {
            actor: self,
            observation,
        });
        (&self.outputs[0], &self.outputs[1])
    }

    /// Fills `action`, `[ports, outputs]`, with values in `[-1, 1]` drawn from the policy.
    ///
    /// # Panics
    /// Same as [`FastActor::forward`], and when `action` has another length.
    pub fn sample(
        &mut self,
        observation: &[f32],
        ports: usize,
        rng: &mut Xoshiro256PlusPlus,
        action: &mut [f32],
    ) {
        assert_eq!(action.len(), ports * self.outputs());
        action.fill_with(|| standard_normal(rng));
        self.perturb(observation, ports, action);
    }

    /// Turns standard normal numbers, `[ports, outputs]`, into the corresponding actions of the policy, in `[-1, 1]`.
    ///
    /// # Panics
    /// Same as [`FastActor::forward`], and when `noise` has another length.
    pub fn perturb(&mut self, observation: &[f32], ports: usize, noise: &mut [f32]) {
        self.perturb_raw(observation, ports, noise);
        noise
            .iter_mut()
            .for_each(|value| *value = libm::tanhf(*value));
    }

    /// Same as [`perturb`](FastActor::perturb), before tanh.
    ///
    /// # Panics
    /// Same as [`perturb`](FastActor::perturb).
    pub fn perturb_raw(&mut self, observation: &[f32], ports: usize, noise: &mut [f32]) {
        assert_eq!(noise.len(), ports * self.outputs());
        let (mean, log_std) = self.forward(observation, ports);
        for ((noise, &mean), &log_std) in noise.iter_mut().zip(mean).zip(log_std) {
            *noise = mean + libm::expf(log_std) * *noise;
        }
    }

    // All functions below are inlined into one function per vector width.
    #[inline(always)]
    fn compute(&mut self, observation: &[f32]) {
        let mean = self.embed(observation);
        // The mean's share of the mixing layer is the same for every port.
        let mut shared = self.mix_bias;
        accumulate(&mut shared, &mean, &self.mix[EMBEDDING..]);
        for (port, embedding) in self.embeddings.iter().enumerate() {
            let mut mixed = shared;
            accumulate(&mut mixed, embedding, &self.mix[..EMBEDDING]);
            relu(&mut mixed);
            let values = self.heads[0].out.len();
            let [mean, log_std] = &mut self.outputs;
            let span = port * values..(port + 1) * values;
            self.heads[0].forward(&mixed, &mut mean[span.clone()]);
            self.heads[1].forward(&mixed, &mut log_std[span.clone()]);
            for value in &mut log_std[span] {
                *value = soft_clamp(*value);
            }
        }
    }

    /// Fills the embeddings of all ports and returns their mean.
    ///
    /// Step by step rather than port by port: one step's share of the dense layer (20 kB) stays in
    /// the first-level cache while all ports use it.
    #[inline(always)]
    fn embed(&mut self, observation: &[f32]) -> [f32; EMBEDDING] {
        let histories = observation.as_chunks::<OBSERVATION>().0;
        for (history, channels) in histories.iter().zip(&mut self.channels) {
            convolve(&self.conv, &self.conv_bias, history, channels);
        }
        self.embeddings.fill(self.embed_bias);
        for step in 0..HISTORY {
            let weights = &self.embed[step * CHANNELS..(step + 1) * CHANNELS];
            // Two ports at a time, because the additions of one port depend on each other.
            let pairs = self.channels.chunks(2).zip(self.embeddings.chunks_mut(2));
            for (channels, embeddings) in pairs {
                match (channels, embeddings) {
                    ([a, b], [first, second]) => {
                        accumulate_two([first, second], [&a[step], &b[step]], weights);
                    }
                    ([a], [last]) => accumulate(last, &a[step], weights),
                    _ => {}
                }
            }
        }
        let mut mean = [0.0; EMBEDDING];
        for embedding in &mut self.embeddings {
            relu(embedding);
            multiply_add(&mut mean, 1.0, embedding);
        }
        mean.iter_mut()
            .for_each(|value| *value /= histories.len() as f32);
        mean
    }
}

/// The convolution of one port's history `[8, 5]`, `[8, 80]`.
///
/// Every frame is first expanded to one value per filter, so that the rest is arithmetic on rows of
/// equal length.
#[inline(always)]
fn convolve(
    weights: &[[f32; CHANNELS]; TAPS],
    bias: &[f32; CHANNELS],
    history: &[f32; OBSERVATION],
    out: &mut [[f32; CHANNELS]; HISTORY],
) {
    let mut frames = [[0.0; CHANNELS]; HISTORY + 2];
    for (wide, frame) in frames[1..]
        .iter_mut()
        .zip(history.as_chunks::<FEATURES>().0)
    {
        for (filters, &value) in wide.as_chunks_mut::<FILTERS>().0.iter_mut().zip(frame) {
            *filters = [value; FILTERS];
        }
    }
    for (step, out) in out.iter_mut().enumerate() {
        let [before, now, after] = [&frames[step], &frames[step + 1], &frames[step + 2]];
        for c in 0..CHANNELS {
            let sum = bias[c]
                + before[c] * weights[0][c]
                + now[c] * weights[1][c]
                + after[c] * weights[2][c];
            out[c] = if sum > 0.0 { sum } else { 0.0 };
        }
    }
}

/// The forward pass as an operation that is compiled once per vector width. A closure is not
/// certain to be inlined.
struct Forward<'a> {
    actor: &'a mut FastActor,
    observation: &'a [f32],
}

impl pulp::NullaryFnOnce for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.actor.compute(self.observation);
    }
}

impl Controller for FastActor {
    fn outputs(&self) -> usize {
        self.heads[0].out.len()
    }

    /// The deterministic action, `tanh(mean)`.
    fn act(&mut self, observation: &[f32], ports: usize, action: &mut [f32]) {
        assert_eq!(action.len(), ports * self.outputs());
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
            out: rows(out),
            out_bias: out_bias.to_vec(),
        }
    }

    /// Weight and bias of both layers, in PyTorch's layout.
    fn tensors(&self) -> [Vec<f32>; 4] {
        [
            transpose(self.hidden.as_flattened(), HIDDEN),
            self.hidden_bias.to_vec(),
            self.out.as_flattened().to_vec(),
            self.out_bias.clone(),
        ]
    }

    #[inline(always)]
    fn forward(&self, mixed: &[f32; HIDDEN], values: &mut [f32]) {
        let mut hidden = self.hidden_bias;
        accumulate(&mut hidden, mixed, &self.hidden);
        relu(&mut hidden);
        for ((value, weights), &bias) in values.iter_mut().zip(&self.out).zip(&self.out_bias) {
            let products = hidden.iter().zip(weights);
            *value = products.fold(bias, |sum, (a, b)| sum + a * b);
        }
    }
}

/// [`accumulate`] for two rows of inputs at once.
#[inline(always)]
fn accumulate_two<const N: usize, const K: usize>(
    [first, second]: [&mut [f32; N]; 2],
    inputs: [&[f32; K]; 2],
    weights: &[[f32; N]],
) {
    let (mut a, mut b) = (*first, *second);
    for (k, row) in weights.iter().enumerate().take(K) {
        multiply_add(&mut a, inputs[0][k], row);
        multiply_add(&mut b, inputs[1][k], row);
    }
    (*first, *second) = (a, b);
}

/// `out += inputs · weights`, with the outputs in registers across the whole sum.
#[inline(always)]
fn accumulate<const N: usize>(out: &mut [f32; N], inputs: &[f32], weights: &[[f32; N]]) {
    let mut sum = *out;
    for (&input, row) in inputs.iter().zip(weights) {
        multiply_add(&mut sum, input, row);
    }
    *out = sum;
}

#[inline(always)]
fn multiply_add<const N: usize>(out: &mut [f32; N], factor: f32, row: &[f32; N]) {
    for i in 0..N {
        out[i] += factor * row[i];
    }
}

#[inline(always)]
fn relu<const N: usize>(values: &mut [f32; N]) {
    for value in values {
        // `f32::max` needs more instructions, because it treats NaN differently.
        *value = if *value > 0.0 { *value } else { 0.0 };
    }
}

fn rows<const N: usize>(values: &[f32]) -> Vec<[f32; N]> {
    values.as_chunks::<N>().0.to_vec()
}

fn array<const N: usize>(values: &[f32]) -> [f32; N] {
    let mut array = [0.0; N];
    array.copy_from_slice(values);
    array
}
