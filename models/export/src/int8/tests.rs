use proptest::prelude::*;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::Network;
use bufgym_env::control::{ActionSet, Controller as _, action_index};
use bufgym_models::ActorWeights;
use bufgym_models::checkpoint::Manifest;

fn observations(rng: &mut Xoshiro256PlusPlus, count: usize, ports: usize) -> Vec<Vec<f32>> {
    let mut value = |index: usize| match index % 5 {
        3 => bufgym_env::control::cell_centre(rng.random_range(0..8)),
        _ => rng.random_range(0.0f32..1.0),
    };
    (0..count)
        .map(|_| (0..ports * 40).map(&mut value).collect())
        .collect()
}

fn quantised(seed: u64) -> (Network, IntegerNetwork, Vec<Vec<f32>>) {
    quantised_for(ActionSet::Alpha, seed)
}

fn quantised_for(actions: ActionSet, seed: u64) -> (Network, IntegerNetwork, Vec<Vec<f32>>) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut weights = ActorWeights::random_for(actions, &mut rng);
    if actions.drops_early() {
        weights.begin_at(&[6, 1]);
    }
    let network = Network::from_actor(&weights, &Manifest::new("ndt-16x1g", "", "fct", 1));
    let recorded = observations(&mut rng, 20, 16);
    let calibration = Calibration::measure(&network, recorded.iter().map(Vec::as_slice));
    let integer = quantise(&network, &calibration).unwrap();
    (network, integer, observations(&mut rng, 20, 16))
}

#[test]
fn eight_bits_are_close_to_the_network() {
    let (network, integer, unseen) = quantised(1);
    let mut squared = [0.0, 0.0];
    let mut mean = 0.0;
    let outputs: Vec<(f64, f64)> = unseen
        .iter()
        .flat_map(|observation| {
            let codes = integer.encode(observation);
            let integer_outputs = integer.forward(&codes, 16).into_iter();
            let scaled = integer_outputs.map(|output| f64::from(output) * integer.output_scale);
            network
                .forward(observation, 16)
                .into_iter()
                .zip(scaled.collect::<Vec<_>>())
        })
        .collect();
    for (exact, _) in &outputs {
        mean += exact / outputs.len() as f64;
    }
    for (exact, integer) in &outputs {
        squared[0] += (exact - mean).powi(2);
        squared[1] += (exact - integer).powi(2);
    }
    // This holds even for an untrained network, whose outputs hardly differ.
    assert!(squared[1] < 0.03 * squared[0], "{squared:?}");
}

/// Both outputs, each in its own unit and with its own mean.
#[test]
fn eight_bits_are_close_for_early_drop_too() {
    let (network, integer, unseen) = quantised_for(ActionSet::AlphaEarly, 1);
    let scales = [
        integer.output_scale,
        integer.early.as_ref().unwrap().output_scale,
    ];
    let (mut means, mut pairs) = ([0.0; 2], [Vec::new(), Vec::new()]);
    for observation in &unseen {
        let found = integer.forward(&integer.encode(observation), 16);
        let exact = network.forward(observation, 16);
        assert_eq!((found.len(), exact.len()), (32, 32));
        for (place, (exact, found)) in exact.into_iter().zip(found).enumerate() {
            let output = place % 2;
            pairs[output].push((exact, f64::from(found) * scales[output]));
            means[output] += exact / (16 * unseen.len()) as f64;
        }
    }
    for (pairs, mean) in pairs.iter().zip(means) {
        let sum = |of: fn(f64, f64, f64) -> f64| -> f64 {
            pairs
                .iter()
                .map(|&(exact, found)| of(exact, found, mean).powi(2))
                .sum()
        };
        let (spread, error) = (
            sum(|exact, _, mean| exact - mean),
            sum(|exact, found, _| exact - found),
        );
        assert!(error < 0.03 * spread, "{error} {spread}");
    }
}

#[test]
fn the_fast_form_is_the_definition() {
    for actions in ActionSet::ALL {
        let (_, integer, _) = quantised_for(actions, 2);
        let mut actor = IntegerActor::new(integer.clone());
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        for ports in [1, 2, 5, 16, 96, 7] {
            let codes: Vec<u8> = (0..ports * 40).map(|_| rng.random()).collect();
            assert_eq!(actor.forward(&codes, ports), integer.forward(&codes, ports));
        }
    }
}

#[test]
fn a_policy_sets_both_levels() {
    let (_, integer, unseen) = quantised_for(ActionSet::AlphaEarly, 2);
    let mut actor = IntegerActor::new(integer.clone());
    assert_eq!(actor.outputs(), 2);
    let mut action = [0.0; 32];
    let mut levels = [[0; 8]; 2];
    for observation in &unseen {
        actor.act(observation, 16, &mut action);
        let outputs = integer.forward(&integer.encode(observation), 16);
        for (place, (&action, value)) in action.iter().zip(outputs).enumerate() {
            let level = integer.level(place % 2, value);
            assert_eq!(action_index(action), level);
            levels[place % 2][level] += 1;
        }
    }
    assert_eq!(levels[0][4..].iter().sum::<i32>(), 320, "{levels:?}");
    assert_eq!(levels[1][..4].iter().sum::<i32>(), 320, "{levels:?}");
}

#[test]
fn no_input_overflows() {
    let (_, integer, _) = quantised(4);
    for code in [0, 255] {
        for ports in [1, 3, 300] {
            let outputs = integer.forward(&vec![code; ports * 40], ports);
            assert!(outputs.windows(2).all(|pair| pair[0] == pair[1]));
        }
    }
}

#[test]
fn means_are_exact_for_equal_ports() {
    for ports in [1, 2, 3, 7, 96, 1000, MAX_PORTS] {
        for byte in [0u32, 1, 77, 255] {
            let mean = mean(byte * ports as u32, reciprocal(ports));
            // The reciprocal is rounded, which shows from some hundred ports on.
            let rounding = ((ports * 255) >> 17) as i32;
            let error = mean - (byte << MEAN_FRACTION) as i32;
            assert!(error.abs() <= rounding, "{byte} at {ports} ports: {error}");
        }
    }
}

#[test]
fn a_network_that_could_fail_is_refused() {
    let (_, integer, _) = quantised(5);
    let refused = |change: &dyn Fn(&mut IntegerNetwork)| {
        let mut integer = integer.clone();
        change(&mut integer);
        integer.check().unwrap_err().to_string()
    };
    let dense = |integer: &mut IntegerNetwork, index: usize, change: &dyn Fn(&mut IntegerDense)| {
        let IntegerLayer::Dense(dense) = &mut integer.layers[index] else {
            panic!("layer {index} is dense");
        };
        change(dense);
    };
    let overflow = refused(&|n| dense(n, 1, &|d| d.bias[3] = i32::MAX - 5));
    assert_eq!(
        overflow,
        "layer embed: some inputs would make a sum overflow 32 bits"
    );
    let sizes = refused(&|n| dense(n, 2, &|d| d.with_mean = false));
    assert_eq!(sizes, "layer mix: its sizes do not belong together");
    assert!(refused(&|n| dense(n, 3, &|d| d.rescale = None)).contains("last layer"));
    let post = refused(&|n| dense(n, 1, &|d| d.rescale.as_mut().unwrap().post = 0));
    assert!(post.contains("rescaling"), "{post}");
    assert!(refused(&|n| n.edges.swap(0, 1)).contains("ascend"));
    let (_, mut early, _) = quantised_for(ActionSet::AlphaEarly, 5);
    early.early.as_mut().unwrap().edges.swap(0, 1);
    assert!(early.check().unwrap_err().to_string().contains("ascend"));
    early.early = None;
    assert!(
        early
            .check()
            .unwrap_err()
            .to_string()
            .contains("last layer")
    );
    let conv = |integer: &mut IntegerNetwork, change: &dyn Fn(&mut IntegerConvolution)| {
        let IntegerLayer::Convolution(conv) = &mut integer.layers[0] else {
            panic!("the first layer is a convolution");
        };
        change(conv);
    };
    // Products that are right again when they are cut to 64 bits.
    for sizes in [
        refused(&|n| conv(n, &|c| c.taps += 1 << (64 - c.bias.len().trailing_zeros()))),
        refused(&|n| conv(n, &|c| c.filters = 0)),
        refused(&|n| conv(n, &|c| c.filters = usize::MAX)),
    ] {
        assert!(
            sizes.ends_with("its sizes do not belong together"),
            "{sizes}"
        );
    }
    assert!(refused(&|n| n.layers.clear()).contains("last layer"));
}

#[test]
fn text_brings_it_back() {
    for actions in [ActionSet::Alpha, ActionSet::AlphaEarly] {
        let (_, integer, _) = quantised_for(actions, 6);
        let text = serde_json::to_string(&integer).unwrap();
        assert_eq!(text.contains("\"early\""), actions.drops_early());
        assert_eq!(
            serde_json::from_str::<IntegerNetwork>(&text).unwrap(),
            integer
        );
    }
}

proptest! {
    #[test]
    fn rescaling_is_the_ratio_rounded(sum in -2_000_000i32..2_000_000, ratio in 1e-5f64..0.5) {
        let rescale = quantise::tests::rescale_of(ratio);
        let exact = (f64::from(sum) * ratio).clamp(0.0, 255.0);
        let found = f64::from(rescale.apply(0, sum));
        prop_assert!((found - exact).abs() < 0.55, "{found} {exact}");
    }
}
