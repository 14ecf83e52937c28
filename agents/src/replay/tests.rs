use super::*;
use bufgym_env::control::Observation;
use bufgym_models::noise::uniform;
use bufgym_models::windows::fill;
use proptest::prelude::*;
use sha2::Digest as _;

const PORTS: usize = 3;
const OUTPUTS: usize = 2;
/// The number of a stream's first transition is a multiple of this.
const STREAM: usize = 10_000;

/// A transition stored naively, with both observations.
#[derive(Clone, Debug)]
struct Naive {
    observation: Vec<f32>,
    privileged: Vec<f32>,
    rewards: Vec<f32>,
    discount: f32,
    /// Unique, so that a drawn transition can be found again.
    number: usize,
    terminated: bool,
    truncated: bool,
    next_observation: Vec<f32>,
    next_privileged: Vec<f32>,
}

impl Naive {
    /// Returns an action that differs from decision to decision.
    fn raw(&self) -> Vec<f32> {
        (0..OUTPUTS * PORTS)
            .map(|value| self.number as f32 + 0.01 * value as f32)
            .collect()
    }
}

fn numbers(count: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<f32> {
    (0..count).map(|_| uniform(rng)).collect()
}

/// Records the episodes of one stream into the replay and into a list. `episodes` holds the length of each episode in
/// decisions, and whether it terminates.
fn record(replay: &mut Replay, stream: usize, episodes: &[(usize, bool)], seed: u64) -> Vec<Naive> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut naive = Vec::new();
    for &(length, terminates) in episodes {
        let mut history = Observation::new(PORTS);
        let push = |history: &mut Observation, rng: &mut Xoshiro256PlusPlus| {
            let frames = numbers(PORTS * FEATURES, rng);
            history.push(|port| std::array::from_fn(|feature| frames[port * FEATURES + feature]));
            (
                history.as_slice().to_vec(),
                numbers(PORTS * PRIVILEGED, rng),
            )
        };
        let (mut observation, mut privileged) = push(&mut history, &mut rng);
        replay.start(stream, &Frame::newest(&observation, &privileged));
        for step in 0..length {
            let last = step + 1 == length;
            let (next_observation, next_privileged) = push(&mut history, &mut rng);
            let stored = Naive {
                observation,
                privileged,
                rewards: numbers(PORTS, &mut rng),
                discount: uniform(&mut rng),
                number: stream * STREAM + naive.len(),
                terminated: last && terminates,
                truncated: last && !terminates,
                next_observation: next_observation.clone(),
                next_privileged: next_privileged.clone(),
            };
            replay.push(stream, &as_transition(&stored));
            naive.push(stored);
            (observation, privileged) = (next_observation, next_privileged);
        }
    }
    naive
}

fn shape(capacity: usize, streams: usize, ports: usize) -> ReplayShape {
    ReplayShape {
        capacity,
        streams,
        ports,
        outputs: OUTPUTS,
        pairs: 0,
    }
}

fn as_transition(naive: &Naive) -> Transition {
    Transition {
        actions: vec![0; OUTPUTS * PORTS],
        raw: naive.raw(),
        port_rewards: naive.rewards.clone(),
        discount: naive.discount,
        terminated: naive.terminated,
        truncated: naive.truncated,
        next: Frame::newest(&naive.next_observation, &naive.next_privileged),
        reset: None,
    }
}

fn unfold(observation: &[f32]) -> Vec<f32> {
    let mut windows = vec![0.0; PORTS * UNFOLDED];
    fill(observation, &mut windows);
    windows
}

/// Returns the critic's input for a whole observation.
fn state(observation: &[f32], privileged: &[f32]) -> Vec<f32> {
    let ports = observation
        .chunks_exact(OBSERVATION)
        .zip(privileged.chunks_exact(PRIVILEGED));
    ports
        .flat_map(|(history, privileged)| {
            [&history[OBSERVATION - FRAMES * FEATURES..], privileged].concat()
        })
        .collect()
}

/// Returns the number of the transition in a row of the batch.
fn number(batch: &Batch, row: usize) -> usize {
    batch.raw[row * PORTS * OUTPUTS] as usize
}

/// Checks one row of a batch against the list it must come from.
fn check_row(batch: &Batch, row: usize, stored: &[Naive], n_step: usize) {
    let index = number(batch, row) % STREAM;
    let first = &stored[index];
    let of = |values: &[f32], width: usize| {
        values[row * PORTS * width..(row + 1) * PORTS * width].to_vec()
    };
    assert_eq!(of(&batch.raw, OUTPUTS), first.raw());
    assert_eq!(of(&batch.windows, UNFOLDED), unfold(&first.observation));
    assert_eq!(
        of(&batch.state, STATE),
        state(&first.observation, &first.privileged)
    );

    let mut rewards = vec![0.0; PORTS];
    let mut discount = 1.0;
    let mut last = index;
    loop {
        let here = &stored[last];
        rewards
            .iter_mut()
            .zip(&here.rewards)
            .for_each(|(sum, &r)| *sum += discount * r);
        discount *= if here.terminated { 0.0 } else { here.discount };
        let ends = here.terminated || here.truncated || last + 1 == stored.len();
        if ends || last + 1 - index == n_step {
            break;
        }
        last += 1;
    }
    let next = &stored[last];
    assert_eq!(of(&batch.rewards, 1), rewards);
    assert_eq!(batch.discounts[row], discount);
    assert_eq!(
        of(&batch.next_windows, UNFOLDED),
        unfold(&next.next_observation)
    );
    assert_eq!(
        of(&batch.next_state, STATE),
        state(&next.next_observation, &next.next_privileged)
    );
}

fn episodes() -> impl Strategy<Value = Vec<(usize, bool)>> {
    prop::collection::vec((1usize..30, any::<bool>()), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Small capacities make the rings wrap around several times.
    #[test]
    fn batches_equal_those_of_naive_storage(
        streams in prop::collection::vec(episodes(), 1..4),
        capacity in 16usize..400,
        n_step in 1usize..4,
        seed in any::<u64>(),
    ) {
        let mut replay = Replay::new(shape(capacity, streams.len(), PORTS), seed);
        let stored: Vec<Vec<Naive>> = streams
            .iter()
            .enumerate()
            .map(|(stream, episodes)| record(&mut replay, stream, episodes, seed ^ stream as u64))
            .collect();
        let pushed: usize = stored.iter().map(Vec::len).sum();
        prop_assert_eq!(replay.pushed(), pushed as u64);
        prop_assert!(replay.len() <= pushed);
        let mut batch = Batch::default();
        replay.sample(64, n_step, &mut batch);
        for row in 0..64 {
            let stream = number(&batch, row) / STREAM;
            check_row(&batch, row, &stored[stream], n_step);
        }
    }
}

#[test]
fn every_whole_transition_is_drawn_and_no_other() {
    let mut replay = Replay::new(shape(32, 1, PORTS), 5);
    let stored = record(&mut replay, 0, &[(40, false), (20, true)], 9);
    let mut seen = vec![false; stored.len()];
    let mut batch = Batch::default();
    for _ in 0..100 {
        replay.sample(32, 1, &mut batch);
        (0..32).for_each(|row| seen[number(&batch, row)] = true);
    }
    // 62 frames, of which 32 are kept: 30..=61. Decision k stands at frame k in the first episode
    // (frames 0..=40) and at frame k + 1 in the second (frames 41..=61, whole from its start).
    // In the first, a history of 8 frames reaches back to frame k - 7 >= 30.
    let expected: Vec<bool> = (0..60).map(|k| k >= 37).collect();
    assert_eq!(seen, expected);
    assert_eq!(replay.len(), 10 + 20);
}

#[test]
fn a_new_replay_is_not_ready_until_a_decision_has_been_pushed() {
    let mut replay = Replay::new(shape(100, 2, PORTS), 1);
    assert!(replay.is_empty() && !replay.is_ready(1));
    record(&mut replay, 1, &[(1, true)], 1);
    assert!(replay.is_ready(1) && !replay.is_ready(2));
}

#[test]
fn what_is_saved_is_loaded_and_draws_the_same_batches() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("replay.bin");
    let mut replay = Replay::new(shape(64, 2, PORTS), 3);
    record(&mut replay, 0, &[(50, false), (9, true)], 1);
    record(&mut replay, 1, &[(5, true)], 2);
    let mut batch = Batch::default();
    replay.sample(10, 1, &mut batch);
    replay.save(&path).unwrap();
    let mut loaded = Replay::load(&path, shape(64, 2, PORTS)).unwrap();
    assert_eq!(
        (loaded.len(), loaded.pushed()),
        (replay.len(), replay.pushed())
    );
    let mut again = Batch::default();
    for _ in 0..3 {
        replay.sample(40, 2, &mut batch);
        loaded.sample(40, 2, &mut again);
        assert_eq!(batch, again);
    }
    record(&mut replay, 1, &[(30, true)], 4);
    record(&mut loaded, 1, &[(30, true)], 4);
    replay.sample(40, 2, &mut batch);
    loaded.sample(40, 2, &mut again);
    assert_eq!(batch, again);
}

/// Headers with a valid checksum, but with numbers that no replay has.
#[test]
fn a_header_with_numbers_beyond_all_bounds_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("replay.bin");
    let mut replay = Replay::new(shape(16, 1, PORTS), 3);
    record(&mut replay, 0, &[(9, true)], 1);
    replay.save(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let start = whole.iter().position(|&byte| byte == b'{').unwrap();
    let end = whole.windows(2).rposition(|pair| pair == b"]}").unwrap() + 2;
    let header = std::str::from_utf8(&whole[start..end]).unwrap();
    let load = |from: &str, to: &str| {
        assert!(header.contains(from), "{header}");
        let header = header.replace(from, to);
        let mut bytes = whole[..start - 4].to_vec();
        bytes.extend(u32::try_from(header.len()).unwrap().to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(&whole[end..whole.len() - 32]);
        let digest = sha2::Sha256::digest(&bytes);
        bytes.extend(digest);
        std::fs::write(&path, bytes).unwrap();
        Replay::load(&path, shape(16, 1, PORTS)).map(|replay| replay.len())
    };
    assert_eq!(load("\"slots\":16", "\"slots\":16").unwrap(), replay.len());
    for (from, to) in [
        ("\"slots\":16", "\"slots\":18446744073709551615"),
        ("\"slots\":16", "\"slots\":1125899906842624"),
        ("\"ports\":3", "\"ports\":18446744073709551615"),
        ("\"ports\":3", "\"ports\":6148914691236517208"),
        (
            "\"streams\":[[",
            "\"streams\":[[18446744073709551615,false],[",
        ),
        ("\"streams\":[[", "\"streams\":[[0,true],["),
    ] {
        let loaded = load(from, to);
        assert!(matches!(loaded, Err(ReplayError::Corrupt { .. })), "{to}");
    }
}

#[test]
fn damaged_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("replay.bin");
    let mut replay = Replay::new(shape(16, 1, PORTS), 3);
    record(&mut replay, 0, &[(9, true)], 1);
    replay.save(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for position in (0..whole.len()).step_by(61) {
        std::fs::write(&path, &whole[..position]).unwrap();
        assert!(matches!(
            Replay::load(&path, shape(16, 1, PORTS)),
            Err(ReplayError::Corrupt { .. })
        ));
        let mut flipped = whole.clone();
        flipped[position] ^= 1;
        std::fs::write(&path, &flipped).unwrap();
        assert!(matches!(
            Replay::load(&path, shape(16, 1, PORTS)),
            Err(ReplayError::Corrupt { .. })
        ));
    }
    assert!(matches!(
        Replay::load(dir.path(), shape(16, 1, PORTS)),
        Err(ReplayError::Io { .. })
    ));
}

#[test]
fn a_file_of_another_replay_is_refused_before_it_takes_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("replay.bin");
    let mut replay = Replay::new(shape(16, 1, PORTS), 3);
    record(&mut replay, 0, &[(9, true)], 1);
    replay.save(&path).unwrap();
    for (capacity, streams, ports) in [(17, 1, PORTS), (32, 2, PORTS), (16, 1, PORTS + 1)] {
        let error = Replay::load(&path, shape(capacity, streams, ports)).unwrap_err();
        assert!(error.to_string().contains("other workers"), "{error}");
    }
    // A sparse file: reading it whole would take half a terabyte.
    let file = std::fs::OpenOptions::new().write(true).open(&path);
    file.unwrap().set_len(1 << 39).unwrap();
    let error = Replay::load(&path, shape(16, 1, PORTS))
        .unwrap_err()
        .to_string();
    assert!(error.contains("longer than"), "{error}");
}

/// All decisions since the last time are taken, in order, each followed by the frame that it led to.
#[test]
fn what_is_new_is_taken_once() {
    let mut replay = Replay::new(shape(400, 2, PORTS), 9);
    let mut taken = [0, 0];
    let lists = [[
        record(&mut replay, 0, &[(5, true), (3, false), (12, true)], 1),
        record(&mut replay, 1, &[(4, false)], 2),
    ]];
    let rollout = replay.take_new();
    let stored: Vec<&Naive> = lists[0].iter().flatten().collect();
    assert_eq!(rollout.decisions(), stored.len());
    let mut frames = 0..rollout.frames();
    for naive in stored {
        let frame = frames.find(|&frame| rollout.decided[frame]).unwrap();
        let of = |values: &[f32], frame: usize, width: usize| {
            values[frame * width..(frame + 1) * width].to_vec()
        };
        assert_eq!(
            of(&rollout.windows, frame, PORTS * UNFOLDED),
            unfold(&naive.observation)
        );
        assert_eq!(
            of(&rollout.state, frame, PORTS * STATE),
            state(&naive.observation, &naive.privileged)
        );
        assert_eq!(of(&rollout.raw, frame, PORTS * OUTPUTS), naive.raw());
        assert_eq!(of(&rollout.rewards, frame, PORTS), naive.rewards);
        assert_eq!(
            rollout.discounts[frame],
            if naive.terminated {
                0.0
            } else {
                naive.discount
            }
        );
        assert_eq!(
            of(&rollout.windows, frame + 1, PORTS * UNFOLDED),
            unfold(&naive.next_observation)
        );
        assert_eq!(
            rollout.decided[frame + 1],
            !(naive.terminated || naive.truncated)
        );
        taken[usize::from(naive.number >= STREAM)] += 1;
    }
    assert_eq!(taken, [20, 4]);
    assert_eq!(replay.take_new().frames(), 0);

    // An episode that continues, in two parts and across a saved file.
    let first = Frame::newest(&[0.5; PORTS * OBSERVATION], &[0.5; PORTS * PRIVILEGED]);
    replay.start(0, &first);
    let step = as_transition(&Naive {
        terminated: false,
        truncated: false,
        ..lists[0][0][0].clone()
    });
    replay.push(0, &step);
    assert_eq!(replay.take_new().decided, [true, false]);
    replay.push(0, &step);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("replay.bin");
    replay.save(&file).unwrap();
    let mut again = Replay::load(&file, shape(400, 2, PORTS)).unwrap();
    assert_eq!(again.take_new(), replay.take_new());
    assert_eq!(again.take_new().frames(), 0);
}

/// If more transitions came than the replay holds, all that it holds are taken.
#[test]
fn of_what_was_overwritten_nothing_is_taken() {
    let mut replay = Replay::new(shape(32, 1, PORTS), 9);
    let list = record(&mut replay, 0, &[(100, false)], 4);
    let rollout = replay.take_new();
    let (first, width) = (rollout.frames() - 1, PORTS * OUTPUTS);
    assert!(
        rollout.decisions() >= 20 && rollout.decisions() == first,
        "{}",
        rollout.decisions()
    );
    assert_eq!(rollout.raw[..width], list[100 - rollout.decisions()].raw());
}

/// A pair of which every number is `value`.
fn pair(value: f32) -> Pair {
    let numbers = |count: usize| vec![value; count];
    Pair {
        state: numbers(PAIR_ROWS * PORTS * STATE),
        actions: numbers(PAIR_ROWS * PORTS * OUTPUTS),
        means: numbers(PAIR_ROWS * PORTS * OUTPUTS),
        weights: numbers(PAIR_ROWS),
        differences: numbers(PORTS),
    }
}

/// A replay with transitions for batches, and room for so many pairs.
fn with_pairs(pairs: usize) -> Replay {
    let shape = ReplayShape {
        pairs,
        ..shape(64, 1, PORTS)
    };
    let mut replay = Replay::new(shape, 3);
    record(&mut replay, 0, &[(30, true)], 1);
    replay
}

#[test]
fn batches_have_pairs_once_there_are_enough_and_the_newest_ones() {
    let mut replay = with_pairs(100);
    let mut batch = Batch::default();
    let values = |replay: &mut Replay, batch: &mut Batch| -> Vec<f32> {
        let drawn = (0..60).flat_map(|_| {
            replay.sample(2 * PAIR_ROWS, 1, batch);
            assert!(batch.pairs.pairs == 0 || batch.pairs.pairs == 2);
            assert_eq!(batch.pairs.differences.len(), batch.pairs.pairs * PORTS);
            let whole = batch.pairs.pairs * PAIR_ROWS * PORTS * STATE;
            assert_eq!(batch.pairs.state.len(), whole);
            batch.pairs.differences.clone()
        });
        drawn.collect()
    };
    (0..63_u8).for_each(|value| replay.push_pair(&pair(value.into())));
    assert!(values(&mut replay, &mut batch).is_empty());
    (63..150_u8).for_each(|value| replay.push_pair(&pair(value.into())));
    let drawn = values(&mut replay, &mut batch);
    let (least, most) = drawn
        .iter()
        .fold((f32::MAX, 0.0_f32), |(least, most), &value| {
            (least.min(value), most.max(value))
        });
    assert!(
        (50.0..60.0).contains(&least) && most > 140.0,
        "{least} to {most}"
    );
    // Without room nothing is kept.
    let mut none = with_pairs(0);
    none.push_pair(&pair(1.0));
    assert!(values(&mut none, &mut batch).is_empty());
}

#[test]
fn pairs_are_saved_and_loaded() {
    let dir = tempfile::tempdir().unwrap();
    for count in [3, 130_u8] {
        let path = dir.path().join(format!("{count}.bin"));
        let mut replay = with_pairs(100);
        (0..count).for_each(|value| replay.push_pair(&pair(value.into())));
        replay.save(&path).unwrap();
        let shape = ReplayShape {
            pairs: 100,
            ..shape(64, 1, PORTS)
        };
        let mut loaded = Replay::load(&path, shape).unwrap();
        let (mut one, mut other) = (Batch::default(), Batch::default());
        for _ in 0..5 {
            replay.sample(16, 2, &mut one);
            loaded.sample(16, 2, &mut other);
            assert_eq!(one, other);
            replay.push_pair(&pair(7.0));
            loaded.push_pair(&pair(7.0));
        }
        let fewer = ReplayShape { pairs: 99, ..shape };
        let error = Replay::load(&path, fewer).unwrap_err().to_string();
        assert!(
            error.contains("other workers, ports, actions or capacity"),
            "{error}"
        );
    }
}
