use bufgym_env::control::{ActionSet, action_index};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use bufgym_models::noise::uniform;

fn recording(ports: usize, count: usize) -> Recording {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let values = ports * count * OBSERVATION;
    Recording {
        ports,
        observations: (0..values).map(|_| uniform(&mut rng)).collect(),
    }
}

#[test]
fn cases_have_their_sizes_for_any_recording() {
    for (ports, count) in [(16, 1), (16, 50), (4, 3), (96, 2)] {
        let cases = cases(&recording(ports, count));
        let sizes: Vec<_> = cases
            .iter()
            .map(|case| (case.ports, case.count()))
            .collect();
        assert_eq!(sizes, SIZES);
    }
}

#[test]
fn ports_keep_their_history_and_the_busiest_are_chosen() {
    let recording = recording(16, 50);
    let cases = cases(&recording);
    let first = recording.observation(0);
    let queue = |row: &[f32]| row[OBSERVATION - FEATURES];
    let longest = first
        .chunks(OBSERVATION)
        .max_by(|a, b| queue(a).total_cmp(&queue(b)));
    assert_eq!(Some(&cases[0].observations[..OBSERVATION]), longest);
    assert_eq!(cases[2].observations[..first.len()], *first);
    let last = recording.observation(5 * 50 / 6);
    assert!(cases[3].observations.ends_with(last));
}

#[test]
fn the_outputs_are_those_of_the_actor() {
    for actions in ActionSet::ALL {
        check_outputs(actions);
    }
}

fn check_outputs(actions: ActionSet) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
    let weights = ActorWeights::random_for(actions, &mut rng);
    let outputs = actions.outputs();
    let case = &cases(&recording(16, 9))[1];
    let files = case.files(&weights);
    let names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let expected = [
        "observations-4.npy",
        "means-4.npy",
        "actions-4.npy",
        "levels-4.npy",
        "early-means-4.npy",
        "early-actions-4.npy",
        "early-levels-4.npy",
    ];
    assert_eq!(names, expected[..1 + 3 * outputs]);
    let mut actor = FastActor::new(&weights);
    let second = &case.observations[4 * OBSERVATION..8 * OBSERVATION];
    let means = actor.forward(second, 4).0.to_vec();
    let value = |file: &File, index: usize| {
        let start = file.bytes.len() - 4 * (32 - index);
        f32::from_le_bytes(file.bytes[start..start + 4].try_into().unwrap())
    };
    for (place, &mean) in means.iter().enumerate() {
        let (port, files) = (place / outputs, &files[1 + 3 * (place % outputs)..]);
        let action = libm::tanhf(mean);
        assert_eq!(value(&files[0], 4 + port), mean);
        assert_eq!(value(&files[1], 4 + port), action);
        let level = files[2].bytes[files[2].bytes.len() - 32 + 4 + port];
        assert_eq!(usize::from(level), action_index(action));
    }
}
