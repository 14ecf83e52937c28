//! The learner on an external task: Gymnasium's Pendulum-v1.

#![allow(
    clippy::cast_possible_truncation,
    reason = "Gymnasium rounds to 32 bits in the same places"
)]

use bufgym_agents::{PlainSac, PlainShape, SacConfig};
use bufgym_models::cpu;
use rand::{RngExt as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::f64::consts::PI;

/// `pendulum.py` of Gymnasium 1.2: a pendulum that a weak motor has to swing up and hold. 200 steps are an episode.
struct Pendulum {
    angle: f64,
    speed: f64,
}

impl Pendulum {
    const STEPS: usize = 200;

    fn reset(rng: &mut Xoshiro256PlusPlus) -> Pendulum {
        Pendulum {
            angle: rng.random_range(-PI..PI),
            speed: rng.random_range(-1.0..1.0),
        }
    }

    /// Cosine and sine of the angle, and the speed.
    fn observation(&self) -> [f32; 3] {
        [self.angle.cos(), self.angle.sin(), self.speed].map(|value| value as f32)
    }

    /// Makes a step with this torque, clipped to ±2. Returns the reward. Gymnasium computes the torque and its products
    /// with constants in 32 bits, and so does this step.
    fn step(&mut self, torque: f32) -> f64 {
        let torque = torque.clamp(-2.0, 2.0);
        let angle = (self.angle + PI).rem_euclid(2.0 * PI) - PI;
        let effort = f64::from(0.001_f32 * (torque * torque));
        let cost = angle * angle + 0.1 * (self.speed * self.speed) + effort;
        let (gravity, push) = (
            3.0 * 10.0 / 2.0 * self.angle.sin(),
            f64::from(3.0_f32 * torque),
        );
        self.speed = (self.speed + (gravity + push) * 0.05).clamp(-8.0, 8.0);
        self.angle += self.speed * 0.05;
        -cost
    }
}

/// The trajectory that Gymnasium computes: torque, then angle, speed and reward after the step, from the state of the
/// first line.
#[test]
fn the_pendulum_is_gymnasiums_step_by_step() {
    let text = include_str!("data/pendulum.csv");
    let mut lines = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            line.split(',')
                .map(|value| value.parse::<f64>().unwrap())
                .collect::<Vec<_>>()
        });
    let first = lines.next().unwrap();
    let mut pendulum = Pendulum {
        angle: first[0],
        speed: first[1],
    };
    let mut steps = 0;
    for line in lines {
        let reward = pendulum.step(line[0] as f32);
        for (found, expected) in [pendulum.angle, pendulum.speed, reward]
            .into_iter()
            .zip(&line[1..])
        {
            assert!(
                (found - expected).abs() < 1e-9 * expected.abs().max(1.0),
                "step {steps}: {found}, not {expected}"
            );
        }
        steps += 1;
    }
    assert_eq!(steps, 200);
}

/// Steps of a training.
const BUDGET: usize = 5_000;

/// The mean return after the whole training.
fn learned(seed: u64) -> f64 {
    trained(seed, BUDGET)
}

/// Trains for so many steps, and returns the mean return of ten further episodes without noise.
fn trained(seed: u64, budget: usize) -> f64 {
    let config = SacConfig {
        batch_size: 128,
        ..SacConfig::published()
    };
    let shape = PlainShape {
        observation: 3,
        action: 1,
        width: 64,
        capacity: BUDGET,
    };
    let mut learner = PlainSac::new(config, shape, 0.99, seed, &cpu()).unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut pendulum = Pendulum::reset(&mut rng);
    for step in 0..budget {
        let observation = pendulum.observation();
        let action = match step {
            0..500 => learner.random_action(),
            _ => learner.act(&observation, true),
        };
        let reward = pendulum.step(2.0 * action[0]);
        learner.push(
            &observation,
            &action,
            reward as f32,
            &pendulum.observation(),
            false,
        );
        if (step + 1) % Pendulum::STEPS == 0 {
            pendulum = Pendulum::reset(&mut rng);
        }
        if step >= 500 {
            learner.update();
        }
    }
    let episodes = 10;
    let mut sum = 0.0;
    for _ in 0..episodes {
        let mut pendulum = Pendulum::reset(&mut rng);
        for _ in 0..Pendulum::STEPS {
            let action = learner.act(&pendulum.observation(), false);
            sum += pendulum.step(2.0 * action[0]);
        }
    }
    sum / f64::from(episodes)
}

/// A policy that does nothing scores about -1,200; one that holds the pendulum up scores -150. A policy that cannot yet
/// hold it from every start loses some hundreds more per episode.
#[test]
fn five_seeds_learn_to_swing_a_pendulum_up() {
    let found: Vec<f64> = (1..=5).map(learned).collect();
    assert!(found.iter().all(|&mean| mean > -500.0), "{found:?}");
    let held = found.iter().filter(|&&mean| mean > -200.0).count();
    assert!(held >= 3, "{found:?}");
}

#[test]
fn the_same_seed_learns_the_same() {
    let [first, second] = [(); 2].map(|()| trained(7, 700));
    assert_eq!(first.to_bits(), second.to_bits());
}

/// Files grow with the number of critics, and so does the size up to which they are read.
#[test]
fn a_learner_with_many_critics_is_saved_and_loaded() {
    let config = SacConfig {
        critics: 64,
        batch_size: 8,
        ..SacConfig::published()
    };
    let shape = PlainShape {
        observation: 3,
        action: 1,
        width: 64,
        capacity: 20,
    };
    let mut learner = PlainSac::new(config, shape, 0.99, 1, &cpu()).unwrap();
    for step in 0..20 {
        let seen = [0.1 * step as f32; 3];
        learner.push(&seen, &[0.5], 1.0, &seen, false);
    }
    learner.update();
    let folder = tempfile::tempdir().unwrap();
    learner.save(folder.path()).unwrap();
    let mut loaded = PlainSac::load(folder.path(), &cpu()).unwrap();
    let seen = [0.3; 3];
    assert_eq!(loaded.act(&seen, false), learner.act(&seen, false));
}
