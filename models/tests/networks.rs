//! The networks' symmetries, and a comparison of the two forward passes of the actor.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests convert the small numbers that they make"
)]

use bufgym_env::control::{ActionSet, Controller, FEATURES, HISTORY};
use bufgym_models::critic::{BusyPorts, STATE, VALUE_STATE, newest};
use bufgym_models::noise::uniform;
use bufgym_models::parameters::{collect, host_values};
use bufgym_models::windows::{OBSERVATION, UNFOLDED, WINDOW, fill};
use bufgym_models::{Actor, ActorWeights, FastActor, PortCritic, StateValue, cpu};
use burn::tensor::{Tensor, TensorData};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const BATCH: usize = 3;

fn numbers(count: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<f32> {
    (0..count).map(|_| 2.0 * uniform(rng) - 1.0).collect()
}

fn permutation(count: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    (1..count).for_each(|i| order.swap(i, (rng.next_u64() % (i as u64 + 1)) as usize));
    order
}

/// Reorders the ports of `[BATCH, ports, width]`.
fn permute(values: &[f32], order: &[usize], width: usize) -> Vec<f32> {
    let sample = order.len() * width;
    values
        .chunks_exact(sample)
        .flat_map(|sample| {
            order
                .iter()
                .flat_map(move |&port| &sample[port * width..][..width])
        })
        .copied()
        .collect()
}

fn matrix(values: &[f32], columns: usize) -> Tensor<2> {
    let shape = [values.len() / columns, columns];
    Tensor::from_data(TensorData::new(values.to_vec(), shape), &cpu())
}

fn unfold(observations: &[f32]) -> Tensor<2> {
    let mut windows = vec![0.0; observations.len() / OBSERVATION * UNFOLDED];
    fill(observations, &mut windows);
    matrix(&windows, WINDOW)
}

#[track_caller]
fn assert_close(a: &[f32], b: &[f32], tolerance: f32) {
    assert_eq!(a.len(), b.len());
    for (index, (a, b)) in a.iter().zip(b).enumerate() {
        assert!(
            (a - b).abs() <= tolerance * (1.0 + b.abs()),
            "entry {index}: {a} and {b}"
        );
    }
}

#[test]
fn permuting_the_ports_permutes_the_actor_s_outputs() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let actor = Actor::random(ActionSet::Alpha, &mut rng, &cpu());
    for ports in [1, 4, 16, 96] {
        let observations = numbers(BATCH * ports * OBSERVATION, &mut rng);
        let order = permutation(ports, &mut rng);
        let plain = actor.forward(unfold(&observations), BATCH);
        let permuted = actor.forward(unfold(&permute(&observations, &order, OBSERVATION)), BATCH);
        for (plain, permuted) in [
            (plain.mean, permuted.mean),
            (plain.log_std, permuted.log_std),
        ] {
            assert_eq!(plain.dims(), [BATCH, ports]);
            let plain = permute(&host_values(plain), &order, 1);
            assert_close(&host_values(permuted), &plain, 1e-5);
        }
    }
}

#[test]
fn permuting_the_ports_permutes_the_values() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    for outputs in [1, 2] {
        let critic = PortCritic::random(96, outputs, &mut rng, &cpu());
        let value = StateValue::random(96, &mut rng, &cpu());
        for ports in [1, 4, 16, 96] {
            let state = numbers(BATCH * ports * STATE, &mut rng);
            let actions = numbers(BATCH * ports * outputs, &mut rng);
            let busy: Vec<f32> = numbers(BATCH * ports, &mut rng)
                .iter()
                .map(|&number| f32::from(u8::from(number > 0.0)))
                .collect();
            let order = permutation(ports, &mut rng);
            let values = |order: &[usize]| {
                let state = permute(&state, order, STATE);
                let actions = matrix(&permute(&actions, order, outputs), ports * outputs);
                let busy = busy_ports(&permute(&busy, order, 1), ports);
                let of_actions = critic.forward(matrix(&state, STATE), &busy, actions);
                let of_state = value.forward(matrix(&newest(&state), VALUE_STATE), BATCH);
                [of_actions, of_state].map(host_values)
            };
            let identity: Vec<usize> = (0..ports).collect();
            let pairs = values(&order).into_iter().zip(values(&identity));
            for (found, plain) in pairs {
                assert_close(&found, &permute(&plain, &order, 1), 1e-5);
            }
        }
    }
}

/// Ports are busy where the number is 1.
fn busy_ports(busy: &[f32], ports: usize) -> BusyPorts {
    let busy: Vec<bool> = busy.iter().map(|&busy| busy == 1.0).collect();
    BusyPorts::new(&busy, ports, &cpu())
}

/// The value of a busy port depends on the actions of all busy ports, and on no action of an idle one. Idle ports have
/// no value.
#[test]
fn values_depend_on_what_busy_ports_do() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let critic = PortCritic::random(64, 1, &mut rng, &cpu());
    let ports = 5;
    let state = matrix(&numbers(ports * STATE, &mut rng), STATE);
    let busy = busy_ports(&[1.0, 0.0, 1.0, 1.0, 0.0], ports);
    let actions = numbers(ports, &mut rng);
    let values = |changed: Option<usize>| {
        let mut actions = actions.clone();
        if let Some(port) = changed {
            actions[port] = -actions[port];
        }
        host_values(critic.forward(state.clone(), &busy, matrix(&actions, ports)))
    };
    let before = values(None);
    let changed = |port| -> Vec<bool> {
        let after = values(Some(port));
        before.iter().zip(&after).map(|(a, b)| a != b).collect()
    };
    assert_eq!((before[1], before[4]), (0.0, 0.0));
    assert_eq!(changed(2), [true, false, true, true, false]);
    assert_eq!(changed(1), [false; 5]);
}

#[test]
fn the_plain_forward_pass_equals_burn_s() {
    ActionSet::ALL.into_iter().for_each(compare_with_burn);
}

fn compare_with_burn(actions: ActionSet) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
    let weights = ActorWeights::random_for(actions, &mut rng);
    let actor = Actor::from_weights(&weights, &cpu());
    let mut fast = FastActor::new(&weights);
    // Falling and growing numbers, so that buffers of the larger count are reused for the smaller.
    for ports in [16, 1, 4, 96, 2] {
        let observation = numbers(ports * OBSERVATION, &mut rng);
        let output = actor.forward(unfold(&observation), 1);
        let (mean, log_std) = fast.forward(&observation, ports);
        assert_close(mean, &host_values(output.mean.clone()), 1e-5);
        assert_close(log_std, &host_values(output.log_std), 1e-5);
        let mut action = vec![0.0; ports * actions.outputs()];
        fast.act(&observation, ports, &mut action);
        assert_close(&action, &host_values(output.mean.tanh()), 1e-5);
    }
}

#[test]
fn the_fast_actor_gives_back_the_weights_that_it_was_made_from() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(8);
    for actions in ActionSet::ALL {
        let weights = ActorWeights::random_for(actions, &mut rng);
        assert_eq!(FastActor::new(&weights).weights(), weights);
    }
}

#[test]
fn sampled_actions_have_the_policy_s_mean_and_spread() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let mut fast = FastActor::new(&ActorWeights::random(&mut rng));
    let observation = numbers(2 * OBSERVATION, &mut rng);
    let mut action = [0.0; 2];
    let mut raw: Vec<f64> = Vec::new();
    for _ in 0..20_000 {
        fast.sample(&observation, 2, &mut rng, &mut action);
        raw.push(f64::from(action[1]).atanh());
    }
    let (mean, log_std) = fast.forward(&observation, 2);
    let average = raw.iter().sum::<f64>() / raw.len() as f64;
    let spread = raw.iter().map(|x| (x - average).powi(2)).sum::<f64>() / raw.len() as f64;
    assert!(
        (average - f64::from(mean[1])).abs() < 0.03,
        "{average} and {}",
        mean[1]
    );
    assert!((spread.sqrt().ln() - f64::from(log_std[1])).abs() < 0.03);
}

#[test]
fn the_actor_has_the_paper_s_47_650_parameters() {
    let actor = Actor::random(
        ActionSet::Alpha,
        &mut Xoshiro256PlusPlus::seed_from_u64(6),
        &cpu(),
    );
    let count: usize = collect(&actor)
        .iter()
        .map(|tensor| tensor.values.len())
        .sum();
    assert_eq!(count, 47_650);
}

#[test]
fn weights_come_back_from_burn_unchanged() {
    for actions in ActionSet::ALL {
        let weights = ActorWeights::random_for(actions, &mut Xoshiro256PlusPlus::seed_from_u64(7));
        assert_eq!(Actor::from_weights(&weights, &cpu()).to_weights(), weights);
    }
}

/// The convolution against its definition, in the layout that PyTorch would use.
#[test]
fn the_trunk_is_a_grouped_convolution_and_a_dense_layer() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(8);
    let weights = ActorWeights::random(&mut rng);
    let observation = numbers(OBSERVATION, &mut rng);
    let [
        conv,
        conv_bias,
        embed,
        embed_bias,
        mix,
        mix_bias,
        h,
        h_bias,
        out,
        out_bias,
        ..,
    ] = weights.tensors();
    let mut flat = Vec::new();
    for channel in 0..80 {
        for step in 0..HISTORY {
            let mut sum = conv_bias[channel];
            for tap in 0..3 {
                if let Some(source) = (step + tap).checked_sub(1).filter(|&s| s < HISTORY) {
                    sum += conv[channel * 3 + tap] * observation[source * FEATURES + channel / 16];
                }
            }
            flat.push(sum.max(0.0));
        }
    }
    let dense = |weight: &[f32], bias: &[f32], input: &[f32]| -> Vec<f32> {
        let rows = weight.chunks_exact(input.len()).zip(bias);
        rows.map(|(row, bias)| bias + row.iter().zip(input).map(|(a, b)| a * b).sum::<f32>())
            .collect()
    };
    let relu = |values: Vec<f32>| -> Vec<f32> { values.iter().map(|v| v.max(0.0)).collect() };
    let embedding = relu(dense(embed, embed_bias, &flat));
    let mixed = relu(dense(
        mix,
        mix_bias,
        &[embedding.clone(), embedding].concat(),
    ));
    let mean = dense(out, out_bias, &relu(dense(h, h_bias, &mixed)));
    let mut fast = FastActor::new(&weights);
    let (found, _) = fast.forward(&observation, 1);
    assert_close(found, &mean, 1e-5);
}

#[test]
fn factors_of_the_features_are_taken_into_the_weights() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(21);
    let weights = ActorWeights::random(&mut rng);
    let factors = [0.5, 2.0, 30.0, 1.0, 4.0];
    let observation: Vec<f32> = (0..3 * 40).map(|_| uniform(&mut rng)).collect();
    let scaled: Vec<f32> = observation
        .iter()
        .zip(factors.iter().cycle())
        .map(|(value, factor)| value * factor)
        .collect();
    let mut with_factors = weights.clone();
    with_factors.scale_inputs(&factors);
    let (mut plain, mut taken) = (FastActor::new(&weights), FastActor::new(&with_factors));
    let expected = plain.forward(&scaled, 3).0.to_vec();
    for (found, expected) in taken.forward(&observation, 3).0.iter().zip(expected) {
        assert!(
            (found - expected).abs() < 1e-4 * expected.abs().max(1.0),
            "{found} {expected}"
        );
    }
}

#[test]
fn a_fixed_deviation_is_what_the_network_gives() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(22);
    let observation: Vec<f32> = (0..2 * 40).map(|_| uniform(&mut rng)).collect();
    for log_std in [-4.5, -1.2, -0.1, 1.7] {
        let mut weights = ActorWeights::random(&mut rng);
        weights.fix_log_std(log_std);
        let found = FastActor::new(&weights).forward(&observation, 2).1.to_vec();
        assert!(
            found.iter().all(|found| (found - log_std).abs() < 1e-3),
            "{found:?} {log_std}"
        );
    }
}

/// He et al. 2015: values keep their size through a hidden layer.
#[test]
fn wide_weights_keep_the_size_of_what_goes_through() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(23);
    let narrow = ActorWeights::random(&mut rng);
    let mut wide = narrow.clone();
    wide.widen();
    for (layer, inputs) in [(0, 3), (2, 640), (4, 128), (6, 32)] {
        let weights = wide.layer(layer).0;
        let squares = weights.iter().map(|&w| f64::from(w * w)).sum::<f64>() / weights.len() as f64;
        let expected = 2.0 / f64::from(inputs);
        assert!(
            (squares / expected - 1.0).abs() < 0.2,
            "layer {layer}: {squares} {expected}"
        );
        assert!(wide.layer(layer).1.iter().all(|&bias| bias == 0.0));
    }
    assert_eq!(wide.layer(8), narrow.layer(8));
}
