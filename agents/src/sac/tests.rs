use bufgym_env::control::ActionSet;
use bufgym_models::critic::{BusyPorts, STATE};
use bufgym_models::noise::uniform;
use bufgym_models::windows::WINDOW;
use bufgym_models::{Actor, ActorWeights, PortCritic, cpu};

use super::*;
use crate::ports::PortStates;

const ROWS: usize = 6;
const PORTS: usize = 4;

/// Numbers in (-1, 1).
fn numbers(shape: [usize; 2], rng: &mut Xoshiro256PlusPlus) -> Tensor<2> {
    let values: Vec<f32> = (0..shape[0] * shape[1])
        .map(|_| 2.0 * uniform(rng) - 1.0)
        .collect();
    Tensor::from_data(TensorData::new(values, shape), &cpu())
}

fn learner(common_slope: f64, actions: ActionSet) -> Sac<Actor, PortCritic> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let weights = ActorWeights::random_for(actions, &mut rng);
    let critics = (0..2)
        .map(|_| PortCritic::random(16, actions.outputs(), &mut rng, &cpu()))
        .collect();
    let config = SacConfig {
        critics: 2,
        common_slope,
        ..SacConfig::default()
    };
    let actor = Actor::from_weights(&weights, &cpu());
    Sac::new(config, actor, critics, 1, &cpu()).unwrap()
}

/// A batch in which ports with an even number are busy.
fn batch(outputs: usize, rng: &mut Xoshiro256PlusPlus) -> Samples<PortStates> {
    let busy: Vec<bool> = (0..ROWS * PORTS).map(|port| port % 2 == 0).collect();
    let busy = BusyPorts::new(&busy, PORTS, &cpu());
    let mut states = || PortStates {
        windows: numbers([ROWS * PORTS * 8, WINDOW], rng),
        state: numbers([ROWS * PORTS, STATE], rng),
        busy: busy.clone(),
    };
    let (now, next) = (states(), states());
    Samples {
        now,
        next,
        actions: numbers([ROWS, PORTS * outputs], rng),
        rewards: numbers([ROWS, PORTS], rng),
        discounts: numbers([ROWS, 1], rng),
        active: busy.mask.clone(),
        next_active: busy.mask,
        pairs: None,
    }
}

/// What a common change of all means before tanh gains, for each output.
fn common(slopes: &[f32], actions: &[f32], outputs: usize) -> Vec<f32> {
    let gained = |output| {
        let pairs = slopes.iter().zip(actions).skip(output).step_by(outputs);
        pairs
            .map(|(slope, action)| slope * (1.0 - action * action))
            .sum()
    };
    (0..outputs).map(gained).collect()
}

/// A share of what a common change of all means gains is left out, for each output by itself. Idle ports have no slope.
#[test]
fn slopes_lose_what_they_have_in_common() {
    for actions in [ActionSet::Alpha, ActionSet::AlphaEarly] {
        let outputs = actions.outputs();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let batch = batch(outputs, &mut rng);
        let taken = numbers([ROWS, PORTS * outputs], &mut rng);
        let acted: Vec<f32> = taken.clone().into_data().try_to_vec().unwrap();
        let [whole, tenth, none] = [1.0, 0.1, 0.0].map(|kept| {
            let (_, slopes) = learner(kept, actions).slopes(&batch, taken.clone());
            let slopes: Vec<f32> = slopes.into_data().try_to_vec().unwrap();
            let idle = slopes.chunks_exact(outputs).skip(1).step_by(2);
            assert!(idle.flatten().all(|&slope| slope == 0.0));
            common(&slopes, &acted, outputs)
        });
        for output in 0..outputs {
            let all = whole[output];
            assert!(all.abs() > 1e-3, "the batch says nothing");
            assert!(
                (tenth[output] - 0.1 * all).abs() < 1e-5,
                "{tenth:?} of {whole:?}"
            );
            assert!(none[output].abs() < 1e-5, "{none:?} of {whole:?}");
        }
    }
}
