//! Credence: the safeguard, the oracle, and the forest as a file.

use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::policy::{Credence, FollowLqd, Forest, ForestModel, MODEL_FILE, Tree};
use bufgym_sim::switch::{Loss, PolicySpec};
use bufgym_sim::units::Instant;
use bufgym_util::rng;

use crate::policies::switch::{PACKET, lengths, lost, of, scenario, slot};

/// Returns a tree with the same prediction for every arrival.
fn always(lost: bool) -> Tree {
    Tree {
        feature: vec![-1],
        split: vec![0.0],
        left: vec![-1],
        right: vec![-1],
        lost: vec![f32::from(u8::from(lost))],
    }
}

/// Returns a tree that expects a loss above a third of the buffer in the queue, half of the time.
fn tree() -> Tree {
    Tree {
        feature: vec![0, -1, 3, -1, -1],
        split: vec![1.0 / 3.0, 0.0, 0.1, 0.0, 0.0],
        left: vec![1, -1, 3, -1, -1],
        right: vec![2, -1, 4, -1, -1],
        lost: vec![0.25, 0.0, 0.5, 0.25, 0.75],
    }
}

fn credence(ports: u32, packets: u64, loss: bool) -> Credence {
    let forest = Forest::new(&[always(loss)], 0.5).unwrap();
    Credence::new(&scenario(ports, packets * PACKET), forest)
}

/// While every queue is shorter than B/N, an oracle that expects every packet to be lost is not asked;
/// after that it is.
#[test]
fn below_an_equal_part_everything_is_accepted() {
    let mut switch = of(4, 40, credence(4, 40, true));
    for _ in 0..12 {
        for port in 0..4 {
            switch.arrive(Instant::ZERO, port, PACKET);
        }
    }
    // The first queue to reach ten packets ends this for all queues.
    assert_eq!(lengths(&switch), [10, 9, 9, 9]);
    assert_eq!(lost(&switch, Loss::Refused), 48 - 37);
    switch.arrive(slot(1), 3, PACKET);
    assert_eq!(
        lengths(&switch),
        [9, 8, 8, 9],
        "a slot later all are short again"
    );
}

/// Lemma 2: at least 1/N of the packets leave that complete sharing could send, however wrong the
/// predictions are.
#[test]
fn wrong_predictions_cannot_starve_it() {
    let mut switch = of(8, 80, credence(8, 80, true));
    for at in 0..1_000 {
        for port in 0..8 {
            switch.arrive(slot(at), port, PACKET);
            switch.arrive(slot(at), port, PACKET);
        }
    }
    switch.run_until(slot(1_000));
    assert!(switch.sent() >= 8_000 / 8, "{} sent", switch.sent());
    assert!(lost(&switch, Loss::Refused) > 1_000);
}

/// With an oracle that expects no loss, only FollowLQD's thresholds and the safeguard apply.
#[test]
fn thresholds_hold_whatever_the_oracle_says() {
    let (mut credence, mut follow) = (
        of(4, 40, credence(4, 40, false)),
        of(4, 40, FollowLqd::new(4, 1)),
    );
    let mut refused = 0;
    let mut random = rng::stream(1, "credence thresholds", 0);
    for at in 0..2_000 {
        for _ in 0..rng::below(&mut random, 9) {
            let port = (rng::below(&mut random, 4) * rng::below(&mut random, 2)) as usize;
            credence.run_until(slot(at));
            let long = lengths(&credence).iter().any(|length| *length >= 10);
            let before = lengths(&credence)[port];
            credence.arrive(slot(at), port, PACKET);
            follow.arrive(slot(at), port, PACKET);
            let view = credence.view();
            let limit = credence.policy().virtual_queues().length(view, port) / PACKET;
            let virtual_of_follow = follow.policy().virtual_queues();
            assert_eq!(
                limit,
                virtual_of_follow.length(follow.view(), port) / PACKET
            );
            let accepted = lengths(&credence)[port] > before;
            let fits = lengths(&credence).iter().sum::<u64>() - u64::from(accepted) < 40;
            assert_eq!(accepted, fits && (!long || before < limit), "slot {at}");
            refused += u32::from(fits && !accepted);
        }
    }
    assert!(refused > 20, "{refused} refused");
}

#[test]
fn flips_turn_predictions_round_and_come_from_a_seed() {
    let accepted = |flip: f64, seed: u64| {
        let policy = credence(4, 40, true).with_flips(flip, seed);
        let mut switch = of(4, 40, policy);
        for at in 0..400 {
            for _ in 0..3 {
                switch.arrive(slot(at), 0, PACKET);
            }
        }
        lengths(&switch)[0]
    };
    assert_eq!(accepted(0.0, 1), 10);
    assert_eq!(
        accepted(1.0, 1),
        40,
        "every prediction is wrong: all is kept"
    );
    let trace = |seed| {
        let policy = credence(4, 40, true).with_flips(0.5, seed);
        let mut switch = of(4, 40, policy);
        for at in 0..200 {
            switch.arrive(slot(at), 0, PACKET);
            switch.arrive(slot(at), 0, PACKET);
        }
        switch.fates().to_vec()
    };
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}

#[test]
fn a_model_is_read_back_as_it_was_written() {
    let trees = vec![tree(), always(false), tree()];
    let model = ForestModel::new("ndt-16x1g", 7, 10, 0.25, trees.clone()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(MODEL_FILE), model.encode()).unwrap();
    for path in [folder.path().to_path_buf(), folder.path().join(MODEL_FILE)] {
        let read = ForestModel::load(&path).unwrap();
        assert_eq!(read.trees, trees);
        assert_eq!((read.seed, read.traces, read.threshold), (7, 10, 0.25));
        assert_eq!(read.encode(), model.encode());
        let mut random = rng::stream(1, "features", 0);
        for _ in 0..1_000 {
            let features = [(); 4].map(|()| rng::uniform(&mut random) as f32);
            assert_eq!(
                read.forest.predicts_loss(&features),
                model.forest.predicts_loss(&features)
            );
        }
    }
}

#[test]
fn a_model_that_cannot_be_used_is_refused_in_one_line() {
    let model = ForestModel::new("ndt-16x1g", 7, 10, 0.5, vec![tree()]).unwrap();
    let refused = |text: &str| {
        let error = ForestModel::decode(text, "x/forest.json").unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("x/forest.json") && !message.contains('\n'),
            "{message}"
        );
        message
    };
    let text = model.encode();
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    assert!(refused(&text[..text.len() / 2]).contains("damaged"));
    assert!(refused("[1, 2]").contains("damaged"));
    let other = refused(&changed("queue_average", "queue_median"));
    assert!(
        other.contains("features") && other.contains("queue_median"),
        "{other}"
    );
    assert!(refused(&changed("\"depth\": 2", "\"depth\": 6")).contains("at most 4"));
    assert!(refused(&changed("\"version\": 1", "\"version\": 2")).contains("reads"));
    assert!(refused(&changed("\"threshold\": 0.5", "\"threshold\": 0")).contains("threshold"));
    assert!(refused(&changed("\"left\"", "\"lft\"")).contains("damaged"));
}

#[test]
fn the_oracle_is_chosen_by_name() {
    let build = |text: &str| {
        let spec: PolicySpec = text.parse().unwrap();
        spec.build(&Scenario::default())
    };
    assert!(build("credence").is_ok());
    assert!(build("credence:flip=0.5,seed=3").is_ok());
    let perfect = build("credence:oracle=perfect").unwrap_err().to_string();
    for word in ["undefined", "senders", "bufgym slotted", "oracle=forest"] {
        assert!(perfect.contains(word), "{perfect}");
    }
    let missing = build("credence:model=/no/such/folder")
        .unwrap_err()
        .to_string();
    assert!(
        missing.contains("/no/such/folder") && missing.contains("train"),
        "{missing}"
    );
    assert!("credence:flip=1.5".parse::<PolicySpec>().is_err());
}

/// The built-in forest keeps packets while there is room.
#[test]
fn the_forest_that_comes_with_the_program_expects_losses_only_in_full_buffers() {
    let model = ForestModel::built_in().unwrap();
    assert!(!model.forest.predicts_loss(&[0.0; 4]));
    assert!(model.forest.predicts_loss(&[0.9, 0.9, 1.0, 1.0]));
}
