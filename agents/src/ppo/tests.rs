use super::*;
use crate::replay::{Frame, Replay, ReplayShape, Transition};
use bufgym_env::control::{Observation, PRIVILEGED, action_index, cell_centre};
use bufgym_models::noise::uniform;
use bufgym_models::{FastActor, cpu};

const PORTS: usize = 4;

fn small() -> PpoConfig {
    PpoConfig {
        minibatch: 64,
        actor_starts: 1,
        ..PpoConfig::default()
    }
}

/// A learner whose ports get a share of the others' rewards.
fn sharing(config: PpoConfig, share: f64) -> Ppo {
    let ports = PortsConfig { share, ..narrow() };
    Ppo::new(config, ports, ActionSet::Alpha, 5, &cpu()).unwrap()
}

fn narrow() -> PortsConfig {
    PortsConfig {
        critic_width: 16,
        ..PortsConfig::default()
    }
}

fn learner(config: PpoConfig) -> Ppo {
    Ppo::new(config, narrow(), ActionSet::Alpha, 5, &cpu()).unwrap()
}

fn replay(streams: usize) -> Replay {
    let shape = ReplayShape {
        capacity: 4_000,
        streams,
        ports: PORTS,
        outputs: 1,
        pairs: 0,
    };
    Replay::new(shape, 1)
}

/// The first observation of an episode, whose newest frame's first feature is `signals`, and privileged features that
/// say which ports have flows.
fn first_frame(signals: [f32; PORTS], busy: [bool; PORTS]) -> (Vec<f32>, Frame) {
    let mut history = Observation::new(PORTS);
    history.push(|port| [signals[port], 0.0, 0.0, 0.0, 0.0]);
    let mut privileged = vec![0.0; PORTS * PRIVILEGED];
    for (port, &busy) in busy.iter().enumerate() {
        privileged[port * PRIVILEGED] = if busy { 0.3 } else { 0.0 };
    }
    let observation = history.as_slice().to_vec();
    let frame = Frame::newest(&observation, &privileged);
    (observation, frame)
}

fn transition(raw: Vec<f32>, port_rewards: Vec<f32>, next: Frame, terminated: bool) -> Transition {
    Transition {
        actions: raw
            .iter()
            .map(|raw| action_index(raw.tanh()) as u8)
            .collect(),
        raw,
        port_rewards,
        discount: 0.8,
        terminated,
        truncated: false,
        next,
        reset: None,
    }
}

/// Episodes of one decision. The best level of a port is 1 where its signal is 0 and 6 where it is 1; the others cost
/// their distance. Returns the mean distance of the chosen levels.
fn play(ppo: &Ppo, replay: &mut Replay, episodes: usize, rng: &mut Xoshiro256PlusPlus) -> f32 {
    const BEST: [f32; 2] = [1.0, 6.0];
    let mut actor = FastActor::new(&ppo.actor_weights());
    let mut cost = 0.0;
    for _ in 0..episodes {
        let signals = std::array::from_fn(|_| f32::from(u8::from(uniform(rng) < 0.5)));
        let (seen, frame) = first_frame(signals, [true; PORTS]);
        let mut raw: Vec<f32> = (0..PORTS)
            .map(|_| bufgym_models::standard_normal(rng))
            .collect();
        actor.perturb_raw(&seen, PORTS, &mut raw);
        let level = |raw: &f32| action_index(raw.tanh()) as f32;
        let distances = raw
            .iter()
            .zip(signals)
            .map(|(raw, signal)| (level(raw) - BEST[signal as usize]).abs());
        let rewards: Vec<f32> = distances.map(|distance| -distance).collect();
        cost -= rewards.iter().sum::<f32>();
        replay.start(0, &frame);
        replay.push(0, &transition(raw, rewards, frame, true));
    }
    cost / (episodes * PORTS) as f32
}

#[test]
fn a_bandit_with_a_known_best_alpha_is_learned() {
    for seed in 1..=3 {
        let config = PpoConfig {
            kl: 0.2,
            actor_lr: 1e-3,
            epochs: 2,
            ..small()
        };
        let mut ppo = Ppo::new(config, narrow(), ActionSet::Alpha, seed, &cpu()).unwrap();
        let mut replay = replay(1);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let first = play(&ppo, &mut replay, 256, &mut rng);
        for _ in 0..40 {
            ppo.learn(&[replay.take_new()]).unwrap();
            play(&ppo, &mut replay, 256, &mut rng);
        }
        let mut actor = FastActor::new(&ppo.averaged_weights());
        let (seen, _) = first_frame([0.0, 1.0, 1.0, 0.0], [true; PORTS]);
        let (means, _) = actor.forward(&seen, PORTS);
        let levels: Vec<usize> = means.iter().map(|mean| action_index(mean.tanh())).collect();
        let pairs = levels.iter().zip([1, 6, 6, 1]);
        let far = pairs.filter(|(level, best)| level.abs_diff(*best) > 1);
        assert_eq!(
            far.count(),
            0,
            "{levels:?} with seed {seed}, first cost {first}"
        );
    }
}

/// A stream of three decisions, of which the second ends an episode, with rewards of 1, 10, 100 of the first port and
/// a tenth of these of the second.
fn three_decisions() -> Rollout {
    let mut replay = replay(1);
    let (_, frame) = first_frame([0.0; PORTS], [true; PORTS]);
    replay.start(0, &frame);
    for (reward, terminated) in [(1.0, false), (10.0, true), (100.0, false)] {
        let mut done = transition(
            vec![0.1; PORTS],
            vec![reward, 0.1 * reward, 0.0, 0.0],
            frame.clone(),
            terminated,
        );
        done.reset = terminated.then(|| frame.clone());
        replay.push(0, &done);
    }
    replay.take_new()
}

#[test]
fn credit_is_a_ports_own_and_a_share_of_the_others() {
    let rollout = three_decisions();
    assert_eq!(rollout.decided, [true, true, false, true, false]);
    let config = PpoConfig {
        lambda: 0.5,
        ..small()
    };
    // Before the first round every value is zero, so that advantages are sums of rewards alone.
    let samples = sharing(config, 0.25).credit(&rollout);
    let paid = |reward: f32| {
        [
            reward + 0.025 * reward,
            0.1 * reward + 0.25 * reward,
            0.275 * reward,
            0.275 * reward,
        ]
    };
    let last = paid(100.0);
    let second = paid(10.0);
    let first: Vec<f32> = paid(1.0)
        .iter()
        .zip(second)
        .map(|(own, later)| own + 0.8 * 0.5 * later)
        .collect();
    let expected = [&first[..], &second, &[0.0; PORTS], &last, &[0.0; PORTS]].concat();
    for (found, expected) in samples.advantages.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-4, "{:?}", samples.advantages);
    }
    assert_eq!(samples.returns, samples.advantages);
}

/// Random decisions in which the last two ports have no flows.
fn with_idle_ports(change: f32) -> Rollout {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut replay = replay(2);
    for stream in 0..2 {
        let mut next = || {
            let signals = std::array::from_fn(|_| uniform(&mut rng));
            let raw: Vec<f32> = (0..PORTS).map(|_| uniform(&mut rng) - 0.5).collect();
            let rewards: Vec<f32> = (0..PORTS).map(|_| -uniform(&mut rng)).collect();
            (
                first_frame(signals, [true, true, false, false]).1,
                raw,
                rewards,
            )
        };
        replay.start(stream, &next().0);
        for _ in 0..100 {
            let (frame, mut raw, mut rewards) = next();
            raw[2] += change;
            rewards[3] += change;
            replay.push(stream, &transition(raw, rewards, frame, false));
        }
    }
    replay.take_new()
}

fn after(config: PpoConfig, rounds: &[Rollout]) -> Ppo {
    let mut ppo = learner(config);
    for rollout in rounds {
        ppo.learn(std::slice::from_ref(rollout)).unwrap();
    }
    ppo
}

#[test]
fn what_idle_ports_do_and_are_paid_teaches_nothing() {
    let learned = |share, change| {
        let mut ppo = sharing(small(), share);
        for _ in 0..2 {
            ppo.learn(&[with_idle_ports(change)]).unwrap();
        }
        ppo.actor_weights()
    };
    assert_eq!(learned(0.0, 0.0), learned(0.0, 0.7));
    // With a share of the others' rewards, these rewards count.
    assert_ne!(learned(0.3, 0.0), learned(0.3, 0.7));
}

#[test]
fn a_learner_that_was_stored_learns_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut ppo = after(small(), &[with_idle_ports(0.0), with_idle_ports(0.1)]);
    ppo.save(folder.path()).unwrap();
    let mut again = Ppo::load(folder.path(), &cpu()).unwrap();
    let next = with_idle_ports(0.2);
    assert_eq!(
        ppo.learn(std::slice::from_ref(&next)),
        again.learn(std::slice::from_ref(&next))
    );
    assert_eq!(ppo.actor_weights(), again.actor_weights());
    assert_eq!(ppo.averaged_weights(), again.averaged_weights());
    assert_eq!(ppo.updates(), again.updates());

    let record = folder.path().join("ppo.json");
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, text.replacen("\"rounds\": 2", "\"rounds\": 3", 1)).unwrap();
    let error = Ppo::load(folder.path(), &cpu()).err().unwrap().to_string();
    assert!(
        error.contains("ppo.json") && error.contains("damaged"),
        "{error}"
    );
}

#[test]
fn the_order_of_ports_makes_no_difference() {
    let rollout = with_idle_ports(0.0);
    let width = |values: &[f32]| values.len() / rollout.frames() / PORTS;
    let turned = |values: &[f32]| -> Vec<f32> {
        let (ports, each) = (PORTS, width(values));
        let frames = values.chunks_exact(ports * each);
        frames
            .flat_map(|frame| [&frame[each..], &frame[..each]].concat())
            .collect()
    };
    let other = Rollout {
        windows: turned(&rollout.windows),
        state: turned(&rollout.state),
        raw: turned(&rollout.raw),
        rewards: turned(&rollout.rewards),
        ..rollout.clone()
    };
    let one = after(small(), &[rollout.clone(), rollout]).actor_weights();
    let two = after(small(), &[other.clone(), other]).actor_weights();
    let pairs = one
        .tensors()
        .iter()
        .flatten()
        .zip(two.tensors().iter().flatten());
    let distance = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    // Sums are computed in another order.
    assert!(distance < 1e-3, "{distance}");
}

#[test]
fn an_untrained_policy_holds_the_level_that_it_starts_at() {
    let ppo = learner(small());
    let mut actor = FastActor::new(&ppo.actor_weights());
    let (seen, _) = first_frame([0.0, 0.3, 0.9, 1.0], [true; PORTS]);
    let (means, deviations) = actor.forward(&seen, PORTS);
    let wanted = libm::atanhf(cell_centre(2));
    assert!(
        means.iter().all(|mean| (mean - wanted).abs() < 0.15),
        "{means:?}"
    );
    let first = small().deviation[0].ln() as f32;
    assert!(
        deviations.iter().all(|found| (found - first).abs() < 1e-4),
        "{deviations:?}"
    );
}

#[test]
fn settings_out_of_range_are_named() {
    let with = |change: fn(&mut PpoConfig)| {
        let mut config = PpoConfig::default();
        change(&mut config);
        config.validate().unwrap_err().to_string()
    };
    for (message, part) in [
        (with(|c| c.epochs = 0), "`epochs`"),
        (with(|c| c.lambda = 1.5), "`lambda`"),
        (with(|c| c.deviation = [0.3, 0.5]), "`deviation`"),
        (with(|c| c.kl = f64::NAN), "`kl`"),
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert!(PpoConfig::default().validate().is_ok());
}
