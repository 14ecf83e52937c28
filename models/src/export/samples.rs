//! Networks to try exporters on: random weights, and random shapes.

use rand::{RngExt as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::int8::{Calibration, quantise};
use super::{Actions, Convolution, Dense, IntegerNetwork, Layer, Network};
use crate::checkpoint::{Feature, Manifest};
use crate::weights::ActorWeights;

/// Observations `[ports, history, features]` of values in `[0, 1]`, for some number of ports.
fn observations(network: &Network, rng: &mut Xoshiro256PlusPlus) -> Vec<Vec<f32>> {
    let inputs = network.history * network.features.len();
    let mut observation = |ports: usize| -> Vec<f32> {
        (0..ports * inputs)
            .map(|_| rng.random_range(0.0..1.0))
            .collect()
    };
    [1, 4, 7, 16].into_iter().map(&mut observation).collect()
}

fn integer(network: &Network, rng: &mut Xoshiro256PlusPlus) -> IntegerNetwork {
    let recorded = observations(network, rng);
    let calibration = Calibration::measure(network, recorded.iter().map(Vec::as_slice));
    quantise(network, &calibration).unwrap()
}

/// The actor with random weights, in integers.
pub fn integer_actor(seed: u64) -> IntegerNetwork {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let weights = ActorWeights::random(&mut rng);
    let network = Network::from_actor(&weights, &Manifest::new("ndt-16x1g", "", "fct", 1));
    integer(&network, &mut rng)
}

/// A small network of a random shape, in integers.
pub fn integer_network(seed: u64) -> IntegerNetwork {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let network = network(seed, &mut rng);
    integer(&network, &mut rng)
}

/// A small network: with a convolution for even seeds, with a mean except for every third.
fn network(seed: u64, rng: &mut Xoshiro256PlusPlus) -> Network {
    let (history, features) = (rng.random_range(1..9), rng.random_range(1..6));
    let mut layers = Vec::new();
    let mut width = history * features;
    if seed.is_multiple_of(2) {
        let filters = [1, 3, 16][rng.random_range(0..3)];
        let taps = [1, 3, 5][rng.random_range(0..3)];
        layers.push(Layer::Convolution(Convolution {
            name: "conv".to_owned(),
            filters,
            taps,
            weight: values(features * filters * taps, rng),
            bias: values(features * filters, rng),
        }));
        width = features * filters * history;
    }
    let mut dense = |inputs: usize, outputs: usize, relu: bool, rng: &mut Xoshiro256PlusPlus| {
        let name = format!("layer.{}", layers.len());
        layers.push(Layer::Dense(Dense {
            name,
            inputs,
            outputs,
            weight: values(inputs * outputs, rng),
            bias: values(outputs, rng),
            relu,
        }));
        outputs
    };
    let hidden = rng.random_range(1..40);
    width = dense(width, hidden, true, rng);
    if !seed.is_multiple_of(3) {
        let hidden = rng.random_range(1..40);
        let doubled = 2 * width;
        width = dense(doubled, hidden, true, rng);
        dense(width, 1, false, rng);
        layers.insert(layers.len() - 2, Layer::AppendMean);
    } else {
        dense(width, 1, false, rng);
    }
    let network = Network {
        history,
        features: (0..features).map(feature).collect(),
        layers,
        actions: Actions { levels: 8, unit: 2 },
    };
    network.widths().unwrap();
    network
}

fn values(count: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<f32> {
    (0..count).map(|_| rng.random_range(-0.5..0.5)).collect()
}

fn feature(index: usize) -> Feature {
    Feature {
        name: format!("feature{index}"),
        scale: String::new(),
        clip: [-1.0, 1.0],
        mean: 0.0,
        deviation: 1.0,
    }
}
