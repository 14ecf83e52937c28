use bufgym_env::control::{ALPHAS, INITIAL_INDEX, Observation, action_index, cell_centre};
use bufgym_util::rng;
use proptest::prelude::*;

use super::*;

/// Returns an observation as in the control: queues fill at most the buffer, the other features are in [0, 1].
fn observation(ports: usize, seed: u64) -> Vec<f32> {
    let mut rng = rng::stream(seed, "test observation", 0);
    let mut observation = Observation::new(ports);
    for _ in 0..HISTORY {
        observation.push(|_| {
            std::array::from_fn(|feature| {
                let value = rng::uniform(&mut rng) as f32;
                match feature {
                    QUEUE => value / ports as f32,
                    _ => value,
                }
            })
        });
    }
    observation.as_slice().to_vec()
}

/// Returns a rule with few enough large weights that most actions are not clamped.
fn rule(seed: u64) -> LinearRule {
    let mut rng = rng::stream(seed, "test weights", 0);
    let weights = [(); 2 * LINEAR].map(|()| rng::uniform(&mut rng) - 0.5);
    LinearRule::from_slice(ActionSet::AlphaEarly, &weights)
}

fn act(rule: &LinearRule, observation: &[f32]) -> Vec<f32> {
    let ports = observation.len() / OBSERVATION;
    let mut action = vec![f32::NAN; ports * rule.actions().outputs()];
    rule.clone().act(observation, ports, &mut action);
    action
}

proptest! {
    #[test]
    fn permuting_the_ports_permutes_the_actions(
        order in (1_usize..=96).prop_flat_map(|ports| {
            Just((0..ports).collect::<Vec<usize>>()).prop_shuffle()
        }),
        seed: u64,
    ) {
        let whole = observation(order.len(), seed);
        let permuted: Vec<f32> = order
            .iter()
            .flat_map(|&port| whole[port * OBSERVATION..][..OBSERVATION].to_vec())
            .collect();
        let rule = rule(seed);
        let (actions, permuted) = (act(&rule, &whole), act(&rule, &permuted));
        for (&port, action) in order.iter().zip(permuted.chunks_exact(2)) {
            for (output, action) in action.iter().enumerate() {
                // Sums over ports in another order differ in their last bits.
                prop_assert!((actions[2 * port + output] - action).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn features_stay_in_their_ranges(ports in 1_usize..=96, seed: u64) {
        let most = [
            1.0, 4.0, 1.0, 1.0, 2.0, 2.0, 2.0, 4.0, 1.0, 1.0, 4.0, 4.0, 4.0, 16.0, 2.0, 1.0,
        ];
        for features in features(&observation(ports, seed)) {
            for ((name, value), most) in LINEAR_FEATURES.iter().zip(features).zip(most) {
                prop_assert!((0.0..=most + 1e-6).contains(&value), "{name} = {value}");
            }
        }
    }

    #[test]
    fn actions_are_in_range_whatever_the_weights(
        weights in proptest::array::uniform::<_, LINEAR>(-1e6_f64..1e6),
        seed: u64,
    ) {
        for action in act(&LinearRule::from_slice(ActionSet::Alpha, &weights), &observation(16, seed)) {
            prop_assert!((-1.0..=1.0).contains(&action));
        }
    }
}

#[test]
fn a_constant_rule_takes_the_same_alpha_everywhere() {
    for ports in [1, 16, 96] {
        for index in 0..ALPHAS.len() {
            let rule = LinearRule::constant(&[cell_centre(index)]);
            let actions = act(&rule, &observation(ports, 7));
            assert_eq!(actions.len(), ports);
            assert!(actions.iter().all(|&action| action_index(action) == index));
        }
    }
    for (beyond, index) in [(9.0, ALPHAS.len() - 1), (-9.0, 0)] {
        let actions = act(&LinearRule::constant(&[beyond]), &observation(2, 7));
        assert!(actions.iter().all(|&action| action_index(action) == index));
    }
}

#[test]
fn features_follow_their_formulas() {
    let mut seen = Observation::new(4);
    for step in 0..HISTORY as u16 {
        let last = step + 1 == HISTORY as u16;
        seen.push(|port| match (port, last) {
            (0, true) => [0.5, 0.25, 0.125, 0.0, 0.75],
            (1, true) => [0.25, 0.0, 0.375, 0.0, 0.75],
            // Active once, eight steps ago.
            (2, false) if step == 0 => [0.03125, 0.5, 0.0, 0.0, 0.0],
            (_, true) => [0.0, 0.0, 0.0, 0.0, 0.75],
            _ => [0.0; FEATURES],
        });
    }
    let found: Vec<[f64; LINEAR]> = features(seen.as_slice()).collect();
    let log = |value| 4.0 / 9.0 * libm::log2(value);
    let expected = [
        [
            1.0,
            2.0,
            1.0,
            0.75,
            0.5,
            0.0625,
            0.25,
            0.0625,
            0.75,
            0.75,
            0.25,
            0.5,
            log(256.5),
            1.0,
            0.0,
            0.0,
        ],
        [
            1.0,
            1.0,
            0.5,
            0.75,
            0.0,
            0.0,
            0.75,
            0.1875,
            0.75,
            0.75,
            0.125,
            0.5,
            log(128.75),
            3.0,
            0.0,
            0.0,
        ],
        [
            1.0, 0.0, 0.0, 0.75, 0.0, 0.125, 0.0, 0.0, 0.75, 0.75, 0.015625, 0.5, 0.0, 0.0, 0.0,
            0.0,
        ],
        [
            1.0, 0.0, 0.0, 0.75, 0.0, 0.0, 0.0, 0.0, 0.75, 0.75, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0,
        ],
    ];
    assert_eq!(found, expected);
}

#[test]
fn features_tell_when_something_happened() {
    let mut seen = Observation::new(1);
    for step in 0..HISTORY {
        seen.push(|_| match step {
            4 => [0.0, 0.0, 0.5, 0.25, 0.0],
            6 => [0.0, 0.375, 0.25, 0.5, 0.0],
            7 => [0.0, 0.125, 0.0, -0.25, 0.0],
            _ => [0.0; FEATURES],
        });
    }
    let found: Vec<[f64; LINEAR]> = features(seen.as_slice()).collect();
    let recent = 8.0 * (0.25 / 2.0 + 0.5 / 8.0);
    assert_eq!(found[0][13..], [recent, 0.75, 0.0625]);
}

#[test]
fn before_anything_happened_the_constant_and_the_first_action_count() {
    let found: Vec<[f64; LINEAR]> = features(Observation::new(3).as_slice()).collect();
    let mut expected = [0.0; LINEAR];
    expected[0] = 1.0;
    expected[15] = -0.375;
    assert_eq!(found, [expected; 3]);
    let start = LinearRule::constant(&[cell_centre(INITIAL_INDEX)]);
    assert_eq!(act(&start, Observation::new(1).as_slice()), [-0.375]);
}

#[test]
fn each_output_has_its_own_weights() {
    let rule = LinearRule::constant(&[0.25, -0.75]);
    assert_eq!(rule.actions(), ActionSet::AlphaEarly);
    assert_eq!(act(&rule, &observation(2, 7)), [0.25, -0.75, 0.25, -0.75]);
}

#[test]
#[should_panic(expected = "finite")]
fn weights_are_numbers() {
    let _ = LinearRule::constant(&[f32::NAN]);
}
