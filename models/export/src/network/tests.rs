use rand::{RngExt as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use bufgym_env::control::ActionSet;
use bufgym_models::FastActor;

fn actor() -> (ActorWeights, Network) {
    actor_for(ActionSet::Alpha)
}

fn actor_for(actions: ActionSet) -> (ActorWeights, Network) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let weights = ActorWeights::random_for(actions, &mut rng);
    let network = Network::from_actor(&weights, &Manifest::new("ndt-16x1g", "", "fct", 1));
    (weights, network)
}

#[test]
fn the_description_computes_what_the_actor_computes() {
    for actions in ActionSet::ALL {
        let (weights, network) = actor_for(actions);
        assert_eq!(network.outputs(), actions.outputs());
        let mut fast = FastActor::new(&weights);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
        for ports in [1, 4, 16, 96] {
            let observation: Vec<f32> = (0..ports * 40)
                .map(|_| rng.random_range(-1.0..1.0))
                .collect();
            let (mean, _) = fast.forward(&observation, ports);
            let plain = network.forward(&observation, ports);
            assert_eq!(mean.len(), plain.len());
            for (&fast, plain) in mean.iter().zip(plain) {
                assert!((f64::from(fast) - plain).abs() < 1e-5, "{fast} {plain}");
            }
        }
    }
}

#[test]
fn the_edges_are_where_the_index_changes() {
    let actions = actor().1.actions;
    assert_eq!(actions.alphas(), ALPHAS);
    for (index, edge) in actions.edges().into_iter().enumerate() {
        let level = |mu: f64| bufgym_env::control::action_index(libm::tanh(mu) as f32);
        assert_eq!(level(edge - 1e-6), index);
        assert_eq!(level(edge + 1e-6), index + 1);
    }
}

#[test]
fn layers_that_do_not_fit_are_named() {
    let (_, network) = actor();
    let message = |change: &dyn Fn(&mut Vec<Layer>)| {
        let mut network = network.clone();
        change(&mut network.layers);
        network.widths().unwrap_err().to_string()
    };
    let without_mean = message(&|layers| {
        layers.remove(2);
    });
    assert_eq!(without_mean, "layer 2 (mix): 128 inputs, but 64 come");
    assert!(message(&|layers| layers.truncate(4)).contains("32 outputs; must be 1"));
    let mut early = actor_for(ActionSet::AlphaEarly).1;
    assert_eq!(early.gaps.as_deref(), Some(&GAPS[..]));
    assert_eq!(early.levels(), [8, 8]);
    let weights = actor_for(ActionSet::AlphaEarly).0;
    let gaps = |heuristic: &str| {
        let manifest = Manifest::new("ndt-16x1g", "", "fct", 1).over(heuristic.parse().unwrap());
        let network = Network::from_actor(&weights, &manifest);
        (network.gaps.unwrap(), network.gap_bytes)
    };
    let finer = [0, 128, 64, 32, 16, 8, 4, 2];
    assert_eq!(gaps("fab+early:finest=2"), (finer.to_vec(), None));
    let multiples = [0, 64, 32, 16, 8, 4, 2, 1];
    let scaled = gaps("fab+early:finest=buffer");
    assert_eq!(scaled, (multiples.to_vec(), Some(125_000)));
    early.gaps = None;
    let error = early.widths().unwrap_err().to_string();
    assert!(error.contains("2 outputs; must be 1"), "{error}");
    assert!(message(&|layers| layers.rotate_right(1)).contains("mean.2"));
    let short = message(&|layers| {
        if let Layer::Convolution(conv) = &mut layers[0] {
            conv.bias.pop();
        }
    });
    assert!(short.contains("240 weights and 79 biases"), "{short}");
}

#[test]
fn normalisation_comes_before_the_first_layer() {
    let (_, mut network) = actor();
    let observation = [0.25; 40];
    let plain = network.forward(&observation, 1);
    for feature in &mut network.features {
        (feature.mean, feature.deviation) = (0.5, 2.0);
    }
    let shifted: Vec<f32> = observation.map(|x| 0.5 + 2.0 * x).to_vec();
    assert_eq!(network.forward(&shifted, 1), plain);
}
