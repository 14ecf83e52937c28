use super::advantage::LeastSquares;
use super::*;
use crate::replay::{Frame, Replay, ReplayShape, Transition};
use bufgym_env::control::{ALPHAS, Controller as _, Observation, PRIVILEGED, action_index};
use bufgym_models::CriticKind;
use bufgym_models::critic::advantage_weights;
use bufgym_models::noise::uniform;
use bufgym_models::parameters::collect;
use bufgym_models::probabilities::{Probabilities, UNIFORM};
use bufgym_models::windows::OBSERVATION;
use bufgym_models::{FastActor, cpu};

fn shape(capacity: usize, ports: usize, outputs: usize) -> ReplayShape {
    ReplayShape {
        capacity,
        streams: 1,
        ports,
        outputs,
    }
}

fn small(critic: CriticKind) -> SacConfig {
    SacConfig {
        batch_size: 32,
        critic,
        critic_width: 32,
        actor_lr: 2e-3,
        critic_lr: 2e-3,
        temperature_lr: 2e-3,
        polyak: 0.02,
        policy_delay: 1,
        entropy_of: EntropyOf::Action,
        advantage_ridge: 1.0,
        advantage_samples: 5_000,
        ..SacConfig::default()
    }
}

/// The first observation of an episode, whose newest frame's first feature is `signals`, one per
/// port.
fn observation(signals: &[f32]) -> Vec<f32> {
    let mut history = Observation::new(signals.len());
    history.push(|port| [signals[port], 0.0, 0.0, 0.0, 0.0]);
    history.as_slice().to_vec()
}

/// Indices of the chosen cells, and how likely each was.
fn act(
    actor: &mut FastActor,
    observation: &[f32],
    rng: &mut Xoshiro256PlusPlus,
) -> (Vec<u8>, Vec<Probabilities>) {
    let ports = observation.len() / OBSERVATION;
    let mut action = vec![0.0; ports * actor.outputs()];
    actor.sample(observation, ports, rng, &mut action);
    let indices = action.iter().map(|&action| action_index(action) as u8);
    (indices.collect(), actor.probabilities().collect())
}

fn transition(
    (actions, probabilities): (Vec<u8>, Vec<Probabilities>),
    port_rewards: Vec<f32>,
    next: Frame,
    terminated: bool,
) -> Transition {
    Transition {
        raw: vec![0.0; actions.len()],
        actions,
        probabilities,
        port_rewards,
        discount: 0.8,
        entropy_weight: 1.0,
        terminated,
        truncated: false,
        next,
        reset: None,
    }
}

/// The best α of a port depends on what it sees: a small one where the signal is 0, a large one
/// where it is 1. Every other choice costs its distance.
#[test]
fn a_bandit_with_a_known_best_alpha_is_learned() {
    const PORTS: usize = 4;
    const BEST: [usize; 2] = [1, 6];
    for critic in [CriticKind::Privileged, CriticKind::Trunk] {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let config = SacConfig {
            target_entropy: -1.5,
            ..small(critic)
        };
        let mut sac = Sac::new(config, ActionSet::Alpha, 1, &cpu()).unwrap();
        let mut replay = Replay::new(shape(4000, PORTS, 1), 2);
        let mut batch = Batch::default();
        let privileged = [0.0; PORTS * PRIVILEGED];
        for round in 0..60 {
            let mut actor = FastActor::new(&sac.actor_weights());
            for _ in 0..16 {
                let signals: [f32; PORTS] =
                    std::array::from_fn(|_| f32::from(uniform(&mut rng) < 0.5));
                let seen = observation(&signals);
                let choice = act(&mut actor, &seen, &mut rng);
                let rewards = choice.0.iter().zip(signals).map(|(&action, signal)| {
                    -(f32::from(action) - BEST[signal as usize] as f32).abs()
                });
                let rewards = rewards.collect();
                let frame = Frame::newest(&seen, &privileged);
                replay.start(0, &frame);
                replay.push(0, &transition(choice, rewards, frame, true));
            }
            for _ in 0..if round == 0 { 0 } else { 10 } {
                replay.sample(32, 1, &mut batch);
                sac.update(&batch);
            }
        }
        let mut actor = FastActor::new(&sac.actor_weights());
        let signals = [0.0, 1.0, 1.0, 0.0];
        let (mean, _) = actor.forward(&observation(&signals), PORTS);
        for (mean, signal) in mean.iter().zip(signals) {
            let index = action_index(mean.tanh());
            let best = BEST[signal as usize];
            assert!(
                index.abs_diff(best) <= 1,
                "{critic}: chose {index} where {best} is best"
            );
        }
    }
}

/// Each output is learned from its own effect: α as above, early drop the other way round.
#[test]
fn two_outputs_with_opposite_best_levels_are_learned() {
    const PORTS: usize = 4;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let config = SacConfig {
        target_entropy: -1.5,
        ..small(CriticKind::Privileged)
    };
    let mut sac = Sac::new(config, ActionSet::AlphaEarly, 1, &cpu()).unwrap();
    let mut replay = Replay::new(shape(4000, PORTS, 2), 2);
    let mut batch = Batch::default();
    let privileged = [0.0; PORTS * PRIVILEGED];
    let best = |signal: f32| if signal < 0.5 { [1, 6] } else { [6, 1] };
    for round in 0..80 {
        let mut actor = FastActor::new(&sac.actor_weights());
        for _ in 0..16 {
            let signals: [f32; PORTS] = std::array::from_fn(|_| f32::from(uniform(&mut rng) < 0.5));
            let seen = observation(&signals);
            let choice = act(&mut actor, &seen, &mut rng);
            let rewards = choice
                .0
                .chunks_exact(2)
                .zip(signals)
                .map(|(levels, signal)| {
                    let distances = levels.iter().zip(best(signal));
                    -distances
                        .map(|(&level, best)| f32::from(level.abs_diff(best)))
                        .sum::<f32>()
                });
            let rewards = rewards.collect();
            let frame = Frame::newest(&seen, &privileged);
            replay.start(0, &frame);
            replay.push(0, &transition(choice, rewards, frame, true));
        }
        for _ in 0..if round == 0 { 0 } else { 10 } {
            replay.sample(32, 1, &mut batch);
            sac.update(&batch);
        }
    }
    let mut actor = FastActor::new(&sac.actor_weights());
    let signals = [0.0, 1.0, 1.0, 0.0];
    let (mean, _) = actor.forward(&observation(&signals), PORTS);
    for (means, signal) in mean.chunks_exact(2).zip(signals) {
        for (mean, best) in means.iter().zip(best(signal)) {
            let chosen = action_index(mean.tanh());
            assert!(
                chosen.abs_diff(best.into()) <= 1,
                "chose {chosen} where {best} is best"
            );
        }
    }
}

/// A store that drifts: `x' = clip(x + (index - 3)/10)`, cost `x'²`. Every later x depends on the
/// next one alone, so the best choice brings that closest to zero.
#[test]
fn an_integrator_is_steered_to_its_optimum() {
    let step = |x: f32, index: u8| (x + (f32::from(index) - 3.0) / 10.0).clamp(-1.0, 1.0);
    let cost_after = |x: f32, index: &u8| step(x, *index).powi(2);
    let best = |x: f32| {
        (0..ALPHAS.len() as u8)
            .min_by(|a, b| cost_after(x, a).total_cmp(&cost_after(x, b)))
            .unwrap()
    };
    let see = |history: &mut Observation, x: f32| {
        history.push(|_| [x, 0.0, 0.0, 0.0, 0.0]);
        history.as_slice().to_vec()
    };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let config = SacConfig {
        target_entropy: -0.5,
        ..small(CriticKind::Privileged)
    };
    let mut sac = Sac::new(config, ActionSet::Alpha, 3, &cpu()).unwrap();
    let mut replay = Replay::new(shape(8000, 1, 1), 4);
    let mut batch = Batch::default();
    let privileged = [0.0; PRIVILEGED];
    for round in 0..300 {
        let mut actor = FastActor::new(&sac.actor_weights());
        let mut history = Observation::new(1);
        let mut x = 2.0 * uniform(&mut rng) - 1.0;
        let mut seen = see(&mut history, x);
        replay.start(0, &Frame::newest(&seen, &privileged));
        for k in 0..16 {
            let choice = act(&mut actor, &seen, &mut rng);
            x = step(x, choice.0[0]);
            seen = see(&mut history, x);
            let next = Frame::newest(&seen, &privileged);
            let given = transition(choice, vec![-10.0 * x * x], next, false);
            replay.push(
                0,
                &Transition {
                    truncated: k == 15,
                    ..given
                },
            );
        }
        for _ in 0..if round < 2 { 0 } else { 10 } {
            replay.sample(32, 1, &mut batch);
            sac.update(&batch);
        }
    }
    // The cost of 10 steps from both sides together against the least possible. At rest, the cell beside
    // the best one costs 0.01 a step. A processor with other vector units rounds otherwise and learns something
    // else, so a single start says little.
    let mut actor = FastActor::new(&sac.actor_weights());
    let (mut cost, mut least) = (0.0, 0.0);
    for start in [-0.8_f32, -0.3, 0.4, 0.9] {
        let (mut x, mut y) = (start, start);
        let mut history = Observation::new(1);
        for _ in 0..10 {
            let (mean, _) = actor.forward(&see(&mut history, x), 1);
            x = step(x, action_index(mean[0].tanh()) as u8);
            y = step(y, best(y));
            cost += x * x;
            least += y * y;
        }
    }
    assert!(
        cost < 1.3 * least + 0.8,
        "cost {cost}, least possible {least}"
    );
}

fn random_batch(rows: usize, ports: usize, actions: ActionSet, seed: u64) -> Batch {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut replay = Replay::new(shape(100, ports, actions.outputs()), seed);
    let mut numbers =
        |count: usize| -> Vec<f32> { (0..count).map(|_| uniform(&mut rng)).collect() };
    let (first, privileged) = (numbers(ports * OBSERVATION), numbers(ports * PRIVILEGED));
    replay.start(0, &Frame::newest(&first, &privileged));
    for k in 0..40 {
        let (next, privileged) = (numbers(ports * OBSERVATION), numbers(ports * PRIVILEGED));
        let next = Frame::newest(&next, &privileged);
        let values = ports * actions.outputs();
        let choice = (vec![k % 8; values], vec![UNIFORM; values]);
        replay.push(0, &transition(choice, numbers(ports), next, false));
    }
    let mut batch = Batch::default();
    replay.sample(rows, 1, &mut batch);
    batch
}

#[test]
fn a_saved_learner_continues_bit_for_bit() {
    let kinds = [CriticKind::Privileged, CriticKind::Trunk];
    let kinds = kinds.map(|critic| ActionSet::ALL.map(|actions| (critic, actions)));
    for (critic, actions) in kinds.into_iter().flatten() {
        let config = SacConfig {
            gradient_clip: Some(1.0),
            policy_delay: 2,
            ..small(critic)
        };
        let mut sac = Sac::new(config, actions, 5, &cpu()).unwrap();
        let batches: Vec<Batch> = (0..21)
            .map(|seed| random_batch(8, 3, actions, seed))
            .collect();
        batches[..11].iter().for_each(|batch| {
            sac.update(batch);
        });
        let dir = tempfile::tempdir().unwrap();
        sac.save(dir.path()).unwrap();
        let mut loaded = Sac::load(dir.path(), &cpu()).unwrap();
        assert_eq!(loaded.updates(), 11);
        for batch in &batches[11..] {
            assert_eq!(sac.update(batch), loaded.update(batch));
        }
        assert_eq!(sac.actor_weights(), loaded.actor_weights());
        assert_eq!(
            sac.temperature.log.to_bits(),
            loaded.temperature.log.to_bits()
        );
        for (a, b) in sac.critics.iter().zip(&loaded.critics) {
            assert_eq!(collect(&a.network), collect(&b.network));
            assert_eq!(collect(&a.target), collect(&b.target));
        }
        assert_eq!(sac.advantage, loaded.advantage);
    }
}

#[test]
fn the_same_seed_gives_the_same_weights_and_another_does_not() {
    let train = |actions, seed| {
        let mut sac = Sac::new(small(CriticKind::Privileged), actions, seed, &cpu()).unwrap();
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

#[test]
fn a_learner_returns_to_what_was_kept_and_goes_on() {
    let learn = |sac: &mut Sac, first: u64| {
        (first..first + 5).for_each(|k| {
            sac.update(&random_batch(8, 3, ActionSet::Alpha, k));
        });
    };
    let mut sac = Sac::new(small(CriticKind::Privileged), ActionSet::Alpha, 5, &cpu()).unwrap();
    let untrained = sac.actor_weights();
    sac.return_to_kept();
    assert_eq!(sac.actor_weights(), untrained, "nothing was kept yet");
    learn(&mut sac, 0);
    let kept = sac.averaged_weights();
    sac.keep(&kept);
    learn(&mut sac, 5);
    assert_ne!(sac.averaged_weights(), kept);

    let dir = tempfile::tempdir().unwrap();
    sac.save(dir.path()).unwrap();
    let loaded = Sac::load(dir.path(), &cpu()).unwrap();
    assert_eq!(loaded.kept_weights(), Some(kept.clone()));
    let [first, second] = [sac, loaded].map(|mut sac| {
        sac.return_to_kept();
        assert_eq!(sac.actor_weights(), kept);
        assert_eq!(sac.averaged_weights(), kept);
        learn(&mut sac, 10);
        sac.actor_weights()
    });
    assert_ne!(first, kept);
    assert_eq!(first, second);
}

#[test]
fn an_actor_learns_to_act_as_its_teacher() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut examples = Examples::new(3, 2);
    let teach = |signal: f32| [0.8 * signal - 0.2, -0.5 * signal];
    for _ in 0..400 {
        let signals: [f32; 3] = std::array::from_fn(|_| uniform(&mut rng) as f32);
        let actions: Vec<f32> = signals.into_iter().flat_map(teach).collect();
        examples.push(&observation(&signals), &actions);
    }
    assert_eq!(examples.len(), 400);
    let learner = || {
        let config = small(CriticKind::Privileged);
        Sac::new(config, ActionSet::AlphaEarly, 5, &cpu()).unwrap()
    };
    let mut sac = learner();
    let untaught = sac.imitate(std::slice::from_ref(&examples), 1, -1.0);
    let taught = sac.imitate(std::slice::from_ref(&examples), 400, -1.5);
    assert!(taught < 0.1 && taught < untaught, "{untaught} {taught}");
    assert_eq!(sac.actor_weights(), sac.averaged_weights());
    assert_eq!(sac.updates(), 0);

    let mut actor = FastActor::new(&sac.actor_weights());
    let (mean, log_std) = actor.forward(&observation(&[0.1, 0.5, 0.9]), 3);
    for (mean, signal) in mean.as_chunks::<2>().0.iter().zip([0.1, 0.5, 0.9]) {
        for (mean, taught) in mean.iter().zip(teach(signal)) {
            assert!(
                (libm::tanhf(*mean) - taught).abs() < 0.25,
                "{mean} {taught}"
            );
        }
    }
    assert!(log_std.iter().all(|log_std| (log_std + 1.5).abs() < 0.3));

    let mut again = learner();
    again.imitate(std::slice::from_ref(&examples), 1, -1.0);
    again.imitate(std::slice::from_ref(&examples), 400, -1.5);
    assert_eq!(again.actor_weights(), sac.actor_weights());
}

#[test]
fn damaged_states_are_refused_with_the_file_s_name() {
    let mut sac = Sac::new(small(CriticKind::Privileged), ActionSet::Alpha, 5, &cpu()).unwrap();
    sac.update(&random_batch(8, 3, ActionSet::Alpha, 1));
    let dir = tempfile::tempdir().unwrap();
    sac.save(dir.path()).unwrap();
    for file in std::fs::read_dir(dir.path()).unwrap() {
        let path = file.unwrap().path();
        let whole = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        for position in [0, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&path, &whole[..position]).unwrap();
            let error = Sac::load(dir.path(), &cpu())
                .err()
                .expect("a truncated file")
                .to_string();
            assert!(error.contains(name) && !error.contains('\n'), "{error}");
            let mut flipped = whole.clone();
            flipped[position.min(whole.len() - 1)] ^= 1;
            std::fs::write(&path, &flipped).unwrap();
            let error = Sac::load(dir.path(), &cpu()).err().expect("a flipped bit");
            assert!(error.to_string().contains(name), "{error}");
        }
        std::fs::write(&path, &whole).unwrap();
    }
    assert!(Sac::load(dir.path(), &cpu()).is_ok());
}

#[test]
fn a_learner_without_its_checksum_is_refused() {
    let sac = Sac::new(small(CriticKind::Privileged), ActionSet::Alpha, 5, &cpu()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    sac.save(dir.path()).unwrap();
    std::fs::remove_file(dir.path().join("sac.sha256")).unwrap();
    let message = || {
        let error = Sac::load(dir.path(), &cpu()).err().expect("not checked");
        error.to_string()
    };
    assert!(message().contains("sac.sha256"), "{}", message());
    // An earlier version wrote no checksum of this file.
    let path = dir.path().join("sac.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        text.replace("\"format_version\": 4", "\"format_version\": 3"),
    )
    .unwrap();
    assert!(message().contains("format_version is 3"), "{}", message());
    assert!(message().contains("train anew"), "{}", message());
}

#[test]
fn settings_out_of_range_are_named() {
    let wrong = SacConfig {
        polyak: 1.5,
        ..SacConfig::default()
    };
    let error = Sac::new(wrong, ActionSet::Alpha, 1, &cpu())
        .err()
        .expect("out of range");
    assert_eq!(
        error.to_string(),
        "the setting `polyak` must be between 1e-12 and 1"
    );
}

/// Nothing follows a terminated transition: its target is its reward, whatever the networks say.
#[test]
fn the_target_of_a_terminated_transition_is_its_reward() {
    let mut batch = random_batch(4, 3, ActionSet::Alpha, 1);
    batch.discounts.fill(0.0);
    let mut sac = Sac::new(small(CriticKind::Privileged), ActionSet::Alpha, 5, &cpu()).unwrap();
    let target = bufgym_models::parameters::host_values(sac.target(&batch));
    assert_eq!(target, batch.rewards);
}

#[test]
fn the_twin_minimum_on_the_sum_takes_all_ports_of_one_critic() {
    let matrix = |rows: [[f32; 3]; 2]| Tensor::<2>::from_floats(rows, &cpu());
    let first = || matrix([[1.0, 5.0, 0.0], [2.0, 2.0, 9.0]]);
    let second = || matrix([[4.0, 4.0, 4.0], [3.0, 3.0, 3.0]]);
    let values = |tensor| bufgym_models::parameters::host_values::<2>(tensor);
    let sum = twin_minimum([first(), second()], TwinMinimum::Sum);
    assert_eq!(values(sum), [1.0, 5.0, 0.0, 3.0, 3.0, 3.0]);
    let elementwise = twin_minimum([first(), second()], TwinMinimum::Elementwise);
    assert_eq!(values(elementwise), [1.0, 4.0, 0.0, 2.0, 2.0, 3.0]);
}

/// The density of tanh(x) integrates to one over the actions.
#[test]
fn the_log_density_is_that_of_a_tanh_gaussian() {
    let (mean, log_std) = (0.3_f32, -0.4_f32);
    let count = 20_001;
    let noise: Vec<f32> = (0..count)
        .map(|i| (i as f32 / 10_000.0 - 1.0) * 6.0)
        .collect();
    let tensor =
        |values: Vec<f32>| Tensor::<2>::from_data(TensorData::new(values, [count, 1]), &cpu());
    let output = ActorOutput {
        mean: tensor(vec![mean; count]),
        log_std: tensor(vec![log_std; count]),
    };
    let (actions, log_prob) = sample(output, tensor(noise), EntropyOf::Action);
    let values = bufgym_models::parameters::host_values::<2>;
    let (actions, log_prob) = (values(actions), values(log_prob));
    let integral: f32 = actions
        .windows(2)
        .zip(&log_prob)
        .map(|(pair, log_prob)| (pair[1] - pair[0]) * log_prob.exp())
        .sum();
    assert!((integral - 1.0).abs() < 1e-2, "{integral}");
}

#[test]
fn the_temperature_moves_towards_the_entropy_target() {
    let mut temperature = Temperature {
        log: 0.0,
        moments: [0.0; 2],
        steps: 0,
    };
    temperature.step(0.5, 0.1);
    // Adam's first step is the rate itself, against the surplus.
    assert!((temperature.log + 0.1).abs() < 1e-6);
}

#[test]
fn the_weights_solve_the_normal_equations() {
    let mut sums = LeastSquares::new(2);
    let n = advantage_weights(2);
    let value = |i: usize, j: usize| ((i * 7 + j * 13) % 11) as f64 / 11.0 - 0.4;
    for sample in 0..400 {
        for i in 0..n {
            for j in i..n {
                sums.gram[i * n + j] += value(sample, i * i) * value(sample, j * j);
            }
            sums.moment[i] += value(sample, i * i);
        }
    }
    let ridge = 0.5;
    let weights = sums.weights(ridge);
    for i in 0..n {
        let product: f64 = (0..n)
            .map(|j| {
                let (a, b) = (i.min(j), i.max(j));
                sums.gram[a * n + b] * weights[j]
            })
            .sum();
        let left = product + ridge * weights[i];
        assert!((left - sums.moment[i]).abs() < 1e-3, "{i}: {left}");
    }
}

/// Sums of samples in which the first term of the advantage has an effect, and the others have none; everything has
/// noise.
fn noisy(effect: f64, noise: f64, samples: u64, seed: u64) -> LeastSquares {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut sums = LeastSquares::new(1);
    let n = advantage_weights(1);
    for _ in 0..samples {
        let z: Vec<f64> = (0..n)
            .map(|_| f64::from(standard_normal(&mut rng)))
            .collect();
        let residual = effect * z[0] + noise * f64::from(standard_normal(&mut rng));
        for i in 0..n {
            sums.moment[i] += z[i] * residual;
            for j in i..n {
                sums.gram[i * n + j] += z[i] * z[j];
            }
        }
    }
    sums
}

#[test]
fn an_advantage_is_believed_as_far_as_its_halves_agree() {
    let of = |effect: f64| Advantage {
        halves: [noisy(effect, 30.0, 2_000, 1), noisy(effect, 30.0, 2_000, 2)],
    };
    let (weights, agreement) = of(20.0).weights(1.0);
    assert!(agreement > 0.9, "{agreement}");
    assert!((weights[0] - 20.0).abs() < 2.0, "{}", weights[0]);

    // Where nothing has an effect, what all samples say together is larger than what is believed of it.
    let chance = of(0.0);
    let (weights, agreement) = chance.weights(1.0);
    assert!(agreement.abs() < 0.4, "{agreement}");
    let [first, second] = &chance.halves;
    let all = first.clone().joined(second).weights(1.0);
    let size = |weights: &mut dyn Iterator<Item = f64>| weights.map(|w| w * w).sum::<f64>();
    let believed = size(&mut weights.iter().map(|&weight| f64::from(weight)));
    assert!(believed < 0.5 * size(&mut all.iter().copied()));
}

/// α at the upper end is best everywhere, and the actor begins in the middle.
#[test]
fn the_policy_stays_near_to_what_was_kept() {
    const PORTS: usize = 4;
    let farthest = |trust_radius: f64| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let config = SacConfig {
            trust_radius,
            ..small(CriticKind::Privileged)
        };
        let mut sac = Sac::new(config, ActionSet::Alpha, 1, &cpu()).unwrap();
        let seen = observation(&[0.0, 0.3, 0.6, 1.0]);
        let means = |sac: &Sac| {
            let mut actor = FastActor::new(&sac.actor_weights());
            let (mean, _) = actor.forward(&seen, PORTS);
            mean.iter().map(|mean| mean.tanh()).collect::<Vec<f32>>()
        };
        let kept = means(&sac);
        sac.keep(&sac.actor_weights());
        let mut replay = Replay::new(shape(4000, PORTS, 1), 2);
        let mut batch = Batch::default();
        let frame = Frame::newest(&seen, &[0.0; PORTS * PRIVILEGED]);
        for round in 0..40 {
            let mut actor = FastActor::new(&sac.actor_weights());
            for _ in 0..16 {
                let choice = act(&mut actor, &seen, &mut rng);
                let rewards = choice
                    .0
                    .iter()
                    .map(|&level| 0.1 * f32::from(level))
                    .collect();
                replay.start(0, &frame);
                replay.push(0, &transition(choice, rewards, frame.clone(), true));
            }
            for _ in 0..if round < 8 { 0 } else { 10 } {
                replay.sample(32, 1, &mut batch);
                sac.update(&batch);
            }
        }
        let distances = means(&sac).into_iter().zip(kept).map(|(a, b)| a - b);
        distances.fold(f32::NEG_INFINITY, f32::max)
    };
    let (near, free) = (farthest(0.2), farthest(2.0));
    assert!((0.1..0.3).contains(&near), "{near}");
    assert!(free > 0.5, "{free}");
}

/// The teacher looks at one feature. Half of the examples are of switches with two ports.
#[test]
fn examples_of_switches_with_other_numbers_of_ports_are_learned_together() {
    let taught = || {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let groups = [4, 2].map(|ports| {
            let mut examples = Examples::new(ports, 1);
            for _ in 0..200 {
                let signals: Vec<f32> = (0..ports).map(|_| uniform(&mut rng)).collect();
                let action: Vec<f32> = signals.iter().map(|signal| signal - 0.4).collect();
                examples.push(&observation(&signals), &action);
            }
            examples
        });
        let config = small(CriticKind::Privileged);
        let mut sac = Sac::new(config, ActionSet::Alpha, 1, &cpu()).unwrap();
        let difference = sac.imitate(&groups, 400, -1.0);
        (difference, sac.actor_weights(), sac.averaged_weights())
    };
    let (difference, weights, averaged) = taught();
    assert!(difference < 0.05, "{difference}");
    assert_eq!(weights, averaged);
    let signals = [0.1, 0.5, 0.9];
    let mut actor = FastActor::new(&weights);
    let (mean, log_std) = actor.forward(&observation(&signals), 3);
    for ((mean, log_std), signal) in mean.iter().zip(log_std).zip(signals) {
        assert!(
            (mean.tanh() - (signal - 0.4)).abs() < 0.15,
            "{signal}: {mean}"
        );
        assert!((log_std + 1.0).abs() < 0.3, "{log_std}");
    }
    assert_eq!(taught().1, weights, "the same bits");
}
