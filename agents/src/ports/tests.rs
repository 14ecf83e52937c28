use super::*;
use crate::replay::{Frame, Pair, Replay, ReplayShape, SHIFTED, Transition};
use bufgym_env::control::{
    ALPHAS, Controller as _, Observation as History, PRIVILEGED, action_index,
};
use bufgym_models::noise::uniform;
use bufgym_models::parameters::{apply, collect};
use bufgym_models::windows::OBSERVATION;
use bufgym_models::{FastActor, cpu, standard_normal};

fn small() -> SacConfig {
    SacConfig {
        batch_size: 32,
        critics: 2,
        actor_lr: 2e-3,
        critic_lr: 2e-3,
        temperature_lr: 2e-3,
        polyak: 0.02,
        initial_temperature: Some(0.1),
        target_entropy: -0.5,
        actor_starts: Some(20),
        actor_kl: 0.0,
        ..SacConfig::default()
    }
}

fn narrow() -> PortsConfig {
    PortsConfig {
        critic_width: 32,
        ..PortsConfig::default()
    }
}

fn learner(config: SacConfig, actions: ActionSet, seed: u64) -> PortSac {
    PortSac::new(config, narrow(), actions, seed, &cpu()).unwrap()
}

fn replay(ports: usize, outputs: usize) -> Replay {
    let shape = ReplayShape {
        capacity: 4_000,
        streams: 1,
        ports,
        outputs,
        pairs: 0,
    };
    Replay::new(shape, 2)
}

/// The first observation of an episode, whose newest frame's first feature is `signals`, one per port.
fn seen(history: &mut History, signals: &[f32]) -> Vec<f32> {
    history.push(|port| [signals[port], 0.0, 0.0, 0.0, 0.0]);
    history.as_slice().to_vec()
}

/// A frame of an observation in which all ports are busy.
fn busy_frame(observation: &[f32]) -> Frame {
    let mut privileged = vec![0.0; observation.len() / OBSERVATION * PRIVILEGED];
    privileged
        .iter_mut()
        .step_by(PRIVILEGED)
        .for_each(|flows| *flows = 0.3);
    Frame::newest(observation, &privileged)
}

fn drawn(actor: &mut FastActor, observation: &[f32], rng: &mut Xoshiro256PlusPlus) -> Vec<f32> {
    let ports = observation.len() / OBSERVATION;
    let mut raw: Vec<f32> = (0..ports * actor.outputs())
        .map(|_| standard_normal(rng))
        .collect();
    actor.perturb_raw(observation, ports, &mut raw);
    raw
}

fn level(raw: f32) -> usize {
    action_index(raw.tanh())
}

fn transition(raw: Vec<f32>, port_rewards: Vec<f32>, next: Frame, terminated: bool) -> Transition {
    Transition {
        actions: raw.iter().map(|&raw| level(raw) as u8).collect(),
        raw,
        port_rewards,
        discount: 0.8,
        terminated,
        truncated: false,
        next,
        reset: None,
    }
}

/// Returns the best levels of a port for its signal.
type Best = fn(f32) -> Vec<usize>;

/// Learns a task of one decision in which the best level of each output depends on the port's signal, 0 or 1. Every
/// other level costs its distance. Returns the policy's choice at ports with the signals 0 and 1.
fn bandit(actions: ActionSet, best: Best, seed: u64) -> [Vec<usize>; 2] {
    const PORTS: usize = 4;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let config = SacConfig {
        target_entropy: -1.5,
        ..small()
    };
    let mut sac = learner(config, actions, seed);
    let mut replay = replay(PORTS, actions.outputs());
    let mut batch = Batch::default();
    for round in 0..60 {
        let mut actor = FastActor::new(&sac.actor_weights());
        for _ in 0..16 {
            let signals: [f32; PORTS] =
                std::array::from_fn(|_| f32::from(u8::from(uniform(&mut rng) < 0.5)));
            let observation = seen(&mut History::new(PORTS), &signals);
            let raw = drawn(&mut actor, &observation, &mut rng);
            let ports = raw.chunks_exact(actions.outputs()).zip(signals);
            let cost = |(raw, signal): (&[f32], f32)| {
                let distances = raw
                    .iter()
                    .zip(best(signal))
                    .map(|(&raw, best)| level(raw).abs_diff(best));
                -(distances.sum::<usize>() as f32)
            };
            let rewards = ports.map(cost).collect();
            let frame = busy_frame(&observation);
            replay.start(0, &frame);
            replay.push(0, &transition(raw, rewards, frame, true));
        }
        for _ in 0..if round == 0 { 0 } else { 10 } {
            replay.sample(32, 1, &mut batch);
            sac.update(&batch);
        }
    }
    let mut actor = FastActor::new(&sac.actor_weights());
    let observation = seen(&mut History::new(PORTS), &[0.0, 1.0, 1.0, 0.0]);
    let (mean, _) = actor.forward(&observation, PORTS);
    let levels: Vec<usize> = mean.iter().map(|&mean| level(mean)).collect();
    [0, 1].map(|port| levels[port * actions.outputs()..][..actions.outputs()].to_vec())
}

/// Each output is learned from its own effect: α one way, early drop the other way round.
#[test]
fn bandits_with_known_best_levels_are_learned() {
    for seed in 1..=3 {
        let alpha = |signal: f32| if signal < 0.5 { vec![1] } else { vec![6] };
        let both = |signal: f32| if signal < 0.5 { vec![1, 6] } else { vec![6, 1] };
        let cases: [(ActionSet, Best); 2] =
            [(ActionSet::Alpha, alpha), (ActionSet::AlphaEarly, both)];
        for (actions, best) in cases {
            let found = bandit(actions, best, seed);
            for (levels, best) in found.iter().zip([best(0.0), best(1.0)]) {
                let near = levels
                    .iter()
                    .zip(&best)
                    .all(|(level, best)| level.abs_diff(*best) <= 1);
                assert!(
                    near,
                    "seed {seed}, {actions:?}: {levels:?} where {best:?} is best"
                );
            }
        }
    }
}

/// A store that drifts: `x' = clip(x + (level - 3)/10)`, cost `x'²`. Every later x depends on the next one alone, so the
/// best choice brings that closest to zero.
#[test]
fn an_integrator_is_steered_to_its_optimum() {
    let step = |x: f32, level: usize| (x + (level as f32 - 3.0) / 10.0).clamp(-1.0, 1.0);
    let cost = |x: f32, level: usize| step(x, level).powi(2);
    let best = |x: f32| {
        (0..ALPHAS.len())
            .min_by(|&a, &b| cost(x, a).total_cmp(&cost(x, b)))
            .unwrap()
    };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut sac = learner(small(), ActionSet::Alpha, 3);
    let mut replay = replay(1, 1);
    let mut batch = Batch::default();
    for round in 0..300 {
        let mut actor = FastActor::new(&sac.actor_weights());
        let mut history = History::new(1);
        let mut x = 2.0 * uniform(&mut rng) - 1.0;
        let mut observation = seen(&mut history, &[x]);
        replay.start(0, &busy_frame(&observation));
        for k in 0..16 {
            let raw = drawn(&mut actor, &observation, &mut rng);
            x = step(x, level(raw[0]));
            observation = seen(&mut history, &[x]);
            let next = busy_frame(&observation);
            let truncated = k == 15;
            replay.push(
                0,
                &Transition {
                    truncated,
                    ..transition(raw, vec![-10.0 * x * x], next, false)
                },
            );
        }
        for _ in 0..if round < 2 { 0 } else { 10 } {
            replay.sample(32, 1, &mut batch);
            sac.update(&batch);
        }
    }
    // Ten steps from both sides together, compared with the least possible cost. At rest, the cell next to the best one
    // costs 0.01 a step. A processor with other vector units rounds differently and so learns differently. A single
    // start is therefore weak evidence.
    let mut actor = FastActor::new(&sac.actor_weights());
    let (mut paid, mut least) = (0.0, 0.0);
    for start in [-0.8_f32, -0.3, 0.4, 0.9] {
        let (mut x, mut y) = (start, start);
        let mut history = History::new(1);
        for _ in 0..10 {
            let (mean, _) = actor.forward(&seen(&mut history, &[x]), 1);
            x = step(x, level(mean[0]));
            y = step(y, best(y));
            paid += x * x;
            least += y * y;
        }
    }
    assert!(
        paid < 1.3 * least + 0.8,
        "cost {paid}, least possible {least}"
    );
}

/// Transitions with random numbers in all fields. Ports with an even number are busy.
fn random_batch(rows: usize, ports: usize, actions: ActionSet, seed: u64) -> Batch {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut replay = replay(ports, actions.outputs());
    let frame = |rng: &mut Xoshiro256PlusPlus| {
        let mut numbers = |count: usize| -> Vec<f32> { (0..count).map(|_| uniform(rng)).collect() };
        let (observation, mut privileged) =
            (numbers(ports * OBSERVATION), numbers(ports * PRIVILEGED));
        for (port, features) in privileged
            .as_chunks_mut::<PRIVILEGED>()
            .0
            .iter_mut()
            .enumerate()
        {
            features[0] = if port % 2 == 0 {
                0.1 + features[0]
            } else {
                0.0
            };
        }
        Frame::newest(&observation, &privileged)
    };
    replay.start(0, &frame(&mut rng));
    for _ in 0..40 {
        let next = frame(&mut rng);
        let raw = (0..ports * actions.outputs())
            .map(|_| standard_normal(&mut rng))
            .collect();
        let rewards = (0..ports).map(|_| uniform(&mut rng)).collect();
        replay.push(0, &transition(raw, rewards, next, false));
    }
    let mut batch = Batch::default();
    replay.sample(rows, 1, &mut batch);
    batch
}

#[test]
fn a_saved_learner_continues_bit_for_bit_and_threads_change_nothing() {
    for actions in ActionSet::ALL {
        let config = SacConfig {
            critics: 3,
            actor_starts: Some(3),
            actor_kl: 0.01,
            ..small()
        };
        let mut sac = learner(config, actions, 5);
        let batches: Vec<Batch> = (0..80)
            .map(|seed| random_batch(8, 3, actions, seed))
            .collect();
        batches[..70].iter().for_each(|batch| {
            sac.update(batch);
        });
        let dir = tempfile::tempdir().unwrap();
        sac.save(dir.path()).unwrap();
        let mut loaded = PortSac::load(dir.path(), &cpu()).unwrap();
        assert_eq!(loaded.updates(), 70);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(4)
            .build()
            .unwrap();
        for batch in &batches[70..] {
            let found = pool.install(|| loaded.update(batch));
            assert_eq!(sac.update(batch), found);
        }
        assert_eq!(sac.actor_weights(), loaded.actor_weights());
        assert_eq!(sac.averaged_weights(), loaded.averaged_weights());
        assert_ne!(sac.actor_weights(), sac.averaged_weights());
    }
}

#[test]
fn the_same_seed_gives_the_same_weights_and_another_does_not() {
    let train = |actions, seed| {
        let mut sac = learner(
            SacConfig {
                actor_starts: Some(0),
                ..small()
            },
            actions,
            seed,
        );
        (0..5).for_each(|k| {
            sac.update(&random_batch(8, 3, actions, k));
        });
        sac.actor_weights()
    };
    for actions in ActionSet::ALL {
        assert_eq!(train(actions, 1), train(actions, 1));
        assert_ne!(train(actions, 1), train(actions, 2));
        assert_eq!(train(actions, 1).outputs(), actions.outputs());
    }
}

/// The actions and rewards of an idle port change no weight.
#[test]
fn idle_ports_teach_nothing() {
    let train = |changed: usize| {
        let config = SacConfig {
            actor_starts: Some(0),
            ..small()
        };
        let ports = PortsConfig {
            share: 0.0,
            ..narrow()
        };
        let mut sac = PortSac::new(config, ports, ActionSet::Alpha, 1, &cpu()).unwrap();
        for k in 0..5 {
            let mut batch = random_batch(8, 4, ActionSet::Alpha, k);
            for row in 0..batch.rows {
                batch.raw[row * 4 + changed] += 0.7;
                batch.rewards[row * 4 + changed] += 3.0;
            }
            sac.update(&batch);
        }
        sac.actor_weights()
    };
    assert_eq!(train(1), train(3), "ports 1 and 3 are idle");
    assert_ne!(train(1), train(2), "port 2 is not");
}

/// Rewards are noise here, and pairs of forks tell that port 0 gains by a higher action, and port 1 by a lower one.
/// Port 2 is idle: its differences are large, and teach nothing.
#[test]
fn pairs_of_forks_are_enough_to_learn_from() {
    const BEST: [f32; 3] = [1.0, -1.0, 4e4];
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
    let ports = PortsConfig {
        share: 0.0,
        ..narrow()
    };
    let mut sac = PortSac::new(small(), ports, ActionSet::Alpha, 4, &cpu()).unwrap();
    let shape = ReplayShape {
        capacity: 4_000,
        streams: 1,
        ports: 3,
        outputs: 1,
        pairs: 200,
    };
    let mut replay = Replay::new(shape, 2);
    let observation = seen(&mut History::new(3), &[0.2, 0.5, 0.9]);
    let mut busy = vec![0.0; 3 * PRIVILEGED];
    (busy[0], busy[PRIVILEGED]) = (0.3, 0.3);
    let frame = Frame::newest(&observation, &busy);
    let ports = observation.chunks(OBSERVATION).zip(busy.chunks(PRIVILEGED));
    let state: Vec<f32> = ports
        .flat_map(|(seen, busy)| [seen, busy].concat())
        .collect();
    for _ in 0..200 {
        let raw: Vec<f32> = (0..3).map(|_| standard_normal(&mut rng)).collect();
        replay.start(0, &frame);
        let noise: Vec<f32> = (0..3).map(|_| standard_normal(&mut rng)).collect();
        replay.push(0, &transition(raw, noise, frame.clone(), true));
        let signs: [f32; 3] = std::array::from_fn(|_| (uniform(&mut rng) - 0.5).signum());
        let side = |side: f32| signs.map(|sign| 0.5 * side * sign);
        let weights = [[1.0; SHIFTED], [-1.0; SHIFTED]];
        let gained = |port: usize| SHIFTED as f32 * signs[port] * BEST[port];
        replay.push_pair(&Pair {
            state: state.repeat(2 * SHIFTED),
            actions: [side(1.0).repeat(SHIFTED), side(-1.0).repeat(SHIFTED)].concat(),
            means: vec![0.0; 2 * SHIFTED * 3],
            weights: weights.concat(),
            differences: (0..3).map(gained).collect(),
        });
    }
    let mut batch = Batch::default();
    let means = |sac: &PortSac| {
        let mut actor = FastActor::new(&sac.actor_weights());
        actor.forward(&observation, 3).0.to_vec()
    };
    let before = means(&sac);
    for _ in 0..800 {
        replay.sample(32, 1, &mut batch);
        sac.update(&batch);
    }
    let after = means(&sac);
    assert!(after[0] > before[0] + 0.2, "{before:?} became {after:?}");
    assert!(after[1] < before[1] - 0.2, "{before:?} became {after:?}");
}

/// Where no action has a value, the means stay, however long entropy and temperature are at work.
#[test]
fn a_policy_does_not_fall_where_no_action_matters() {
    let config = SacConfig {
        actor_starts: Some(0),
        critic_lr: 1e-12,
        gaussian_entropy: Some(true),
        ..small()
    };
    let mut sac = learner(config.clone(), ActionSet::Alpha, 1);
    let critics = (0..2).map(|_| {
        let critic = PortCritic::random(32, 1, &mut Xoshiro256PlusPlus::seed_from_u64(1), &cpu());
        let mut tensors = collect(&critic);
        tensors
            .iter_mut()
            .for_each(|tensor| tensor.values.fill(0.0));
        apply(critic, tensors).unwrap()
    });
    sac.sac = Sac::new(config, sac.sac.policy(), critics.collect(), 1, &cpu()).unwrap();
    let observation = seen(&mut History::new(3), &[0.2, 0.5, 0.9]);
    let means = |sac: &PortSac| {
        let mut actor = FastActor::new(&sac.actor_weights());
        let (means, deviations) = actor.forward(&observation, 3);
        (means.to_vec(), deviations.to_vec())
    };
    sac.update(&random_batch(8, 3, ActionSet::Alpha, 0));
    let (before, spread) = means(&sac);
    for k in 0..400 {
        sac.update(&random_batch(8, 3, ActionSet::Alpha, k % 7));
    }
    let (after, narrowed) = means(&sac);
    assert!(spread != narrowed, "the entropy is at work");
    for (before, after) in before.iter().zip(after) {
        assert!((before - after).abs() < 1e-4, "{before} became {after}");
    }
}

/// The scales of the first update must not change the decisions of given weights.
#[test]
fn given_weights_act_the_same_after_the_scales_are_known() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
    let weights = ActorWeights::random_for(ActionSet::Alpha, &mut rng);
    let config = SacConfig {
        actor_starts: Some(1_000),
        ..small()
    };
    let mut sac = learner(config, ActionSet::Alpha, 1);
    sac.set_weights(&weights);
    sac.update(&random_batch(16, 3, ActionSet::Alpha, 1));
    let observation = seen(&mut History::new(3), &[0.2, 0.5, 0.9]);
    let [given, kept] = [weights, sac.actor_weights()].map(|weights| {
        let mut actor = FastActor::new(&weights);
        actor.forward(&observation, 3).0.to_vec()
    });
    for (given, kept) in given.iter().zip(kept) {
        assert!((given - kept).abs() < 1e-5, "{given} became {kept}");
    }
}

#[test]
fn damaged_states_are_refused_with_the_file_s_name() {
    let mut sac = learner(small(), ActionSet::Alpha, 5);
    sac.update(&random_batch(8, 3, ActionSet::Alpha, 1));
    let dir = tempfile::tempdir().unwrap();
    sac.save(dir.path()).unwrap();
    for file in std::fs::read_dir(dir.path()).unwrap() {
        let path = file.unwrap().path();
        let whole = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        for position in [0, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&path, &whole[..position]).unwrap();
            let error = PortSac::load(dir.path(), &cpu())
                .err()
                .expect("a truncated file")
                .to_string();
            assert!(error.contains(name) && !error.contains('\n'), "{error}");
            let mut flipped = whole.clone();
            flipped[position.min(whole.len() - 1)] ^= 1;
            std::fs::write(&path, &flipped).unwrap();
            let error = PortSac::load(dir.path(), &cpu())
                .err()
                .expect("a flipped bit");
            assert!(error.to_string().contains(name), "{error}");
        }
        std::fs::write(&path, &whole).unwrap();
    }
    assert!(PortSac::load(dir.path(), &cpu()).is_ok());
    std::fs::remove_file(dir.path().join("sac.sha256")).unwrap();
    let error = PortSac::load(dir.path(), &cpu())
        .err()
        .expect("not checked");
    assert!(error.to_string().contains("sac.sha256"), "{error}");
    // For an earlier version the error names the version, not the checksum or the fields that differ.
    let path = dir.path().join("sac.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        text.replace("\"format_version\": 7", "\"format_version\": 6"),
    )
    .unwrap();
    let error = PortSac::load(dir.path(), &cpu())
        .err()
        .expect("an earlier version")
        .to_string();
    assert!(
        error.contains("format_version is 6") && error.contains("train anew"),
        "{error}"
    );
}

#[test]
fn settings_out_of_range_are_named() {
    let message = |config, ports| {
        PortSac::new(config, ports, ActionSet::Alpha, 1, &cpu())
            .err()
            .expect("out of range")
            .to_string()
    };
    let wrong = SacConfig {
        polyak: 1.5,
        ..SacConfig::default()
    };
    assert_eq!(
        message(wrong, narrow()),
        "the setting `polyak` must be between 1e-12 and 1"
    );
    for critics in [1, usize::MAX] {
        let wrong = SacConfig {
            critics,
            ..SacConfig::default()
        };
        assert_eq!(
            message(wrong, narrow()),
            "the setting `critics` must be between 2 and 64"
        );
    }
    let wrong = PortsConfig {
        start_level: Some(8),
        ..narrow()
    };
    assert_eq!(
        message(SacConfig::default(), wrong),
        "the setting `start_level` must be a level from 0 to 7"
    );
}
