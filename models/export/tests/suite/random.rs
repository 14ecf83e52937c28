//! Random small networks of every form that the description allows.

use bufgym_export::{Actions, Convolution, Dense, Layer, Network};
use bufgym_models::checkpoint::Feature;
use rand::RngExt as _;
use rand_xoshiro::Xoshiro256PlusPlus;

type Rng = Xoshiro256PlusPlus;

/// The network with this number: the first have the rare forms, the others are random.
pub fn network(number: usize, rng: &mut Rng) -> Network {
    let (history, features, layers) = match number {
        0 => (1, 1, vec![convolution(1, 1, 1, rng)]),
        1 => (3, 2, vec![Layer::AppendMean, dense("a", 12, 1, false, rng)]),
        2 => doubled(rng),
        3 => (
            8,
            5,
            vec![convolution(5, 16, 3, rng), dense("a", 640, 1, true, rng)],
        ),
        _ => random(rng),
    };
    let levels = choose(rng, &[2, 5, 8, 16]);
    Network {
        history,
        features: self::features(features, rng),
        layers,
        actions: Actions {
            levels,
            unit: rng.random_range(0..levels),
        },
        gaps: None,
        gap_bytes: None,
    }
}

/// Returns the network with a second output, which sets early drop.
///
/// # Panics
/// When the last layer is no dense one.
#[must_use]
pub fn with_early(mut network: Network, rng: &mut Rng) -> Network {
    let Some(Layer::Dense(last)) = network.layers.last_mut() else {
        panic!("the last layer is dense");
    };
    last.weight.extend(numbers(last.inputs, last.inputs, rng));
    last.bias.extend(numbers(1, last.inputs, rng));
    last.outputs = 2;
    let levels = choose(rng, &[2, 5, 8, 16]);
    network.gaps = Some((0..levels).map(|_| rng.random_range(0..2048)).collect());
    network.gap_bytes = rng.random_bool(0.5).then(|| rng.random_range(1..1_000_000));
    network
}

/// An observation `[ports, history, features]`.
pub fn observation(network: &Network, ports: usize, rng: &mut Rng) -> Vec<f32> {
    let count = ports * network.history * network.features.len();
    (0..count).map(|_| rng.random_range(-1.0..1.0)).collect()
}

/// Means before and between convolution and layers, two in a row, and equal names.
fn doubled(rng: &mut Rng) -> (usize, usize, Vec<Layer>) {
    let layers = vec![
        convolution(2, 3, 5, rng),
        Layer::AppendMean,
        dense("mean.0", 2 * 2 * 3 * 4, 7, true, rng),
        Layer::AppendMean,
        Layer::AppendMean,
        dense("mean_0", 28, 18, true, rng),
        dense("mean.0", 18, 1, false, rng),
    ];
    (4, 2, layers)
}

fn random(rng: &mut Rng) -> (usize, usize, Vec<Layer>) {
    let history = choose(rng, &[1, 2, 3, 5, 8]);
    let features = rng.random_range(1..=6);
    let mut layers = Vec::new();
    let mut width = history * features;
    if rng.random_range(0..3) > 0 {
        let (filters, taps) = (choose(rng, &[1, 2, 5, 17]), choose(rng, &[1, 3, 5]));
        layers.push(convolution(features, filters, taps, rng));
        width *= filters;
    }
    let count = rng.random_range(1..=4);
    for layer in 0..count {
        if rng.random_range(0..2) == 0 {
            layers.push(Layer::AppendMean);
            width *= 2;
        }
        let last = layer + 1 == count;
        let outputs = if last {
            1
        } else {
            choose(rng, &[1, 2, 5, 16, 17, 33, 48])
        };
        let relu = !last && rng.random_range(0..4) > 0;
        layers.push(dense(&format!("layer.{layer}"), width, outputs, relu, rng));
        width = outputs;
    }
    (history, features, layers)
}

fn features(count: usize, rng: &mut Rng) -> Vec<Feature> {
    let normalised = rng.random_range(0..2) == 0;
    let mut feature = |index: usize| {
        let (mean, deviation) = match normalised {
            true => (rng.random_range(-0.5..0.5), rng.random_range(0.25..2.0)),
            false => (0.0, 1.0),
        };
        Feature {
            name: format!("feature {index}"),
            scale: "x / 2".to_owned(),
            clip: [-1.0, 1.0],
            mean,
            deviation,
        }
    };
    (0..count).map(&mut feature).collect()
}

fn convolution(features: usize, filters: usize, taps: usize, rng: &mut Rng) -> Layer {
    Layer::Convolution(Convolution {
        name: "conv".to_owned(),
        filters,
        taps,
        weight: numbers(features * filters * taps, taps, rng),
        bias: numbers(features * filters, taps, rng),
    })
}

fn dense(name: &str, inputs: usize, outputs: usize, relu: bool, rng: &mut Rng) -> Layer {
    Layer::Dense(Dense {
        name: name.to_owned(),
        inputs,
        outputs,
        weight: numbers(inputs * outputs, inputs, rng),
        bias: numbers(outputs, inputs, rng),
        relu,
    })
}

/// Returns uniform numbers, scaled so that sums over `inputs` are of order 1.
fn numbers(count: usize, inputs: usize, rng: &mut Rng) -> Vec<f32> {
    let bound = (3.0 / inputs as f32).sqrt();
    (0..count)
        .map(|_| rng.random_range(-bound..bound))
        .collect()
}

fn choose(rng: &mut Rng, from: &[usize]) -> usize {
    from[rng.random_range(0..from.len())]
}
