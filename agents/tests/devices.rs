//! Compares the results of graphics processors with those of the processor.
//!
//! Every device that is built in and that this machine has is checked. A missing device is reported on standard error
//! and skipped, unless the environment variable `BUFGYM_DEVICES` names it:
//!
//! ```sh
//! BUFGYM_DEVICES=wgpu cargo test --profile device -p bufgym-agents --features wgpu --test devices
//! ```
//!
//! Two devices add in another order and have other exponential functions, so that numbers differ in
//! their last bits. The tolerances are far above that, and far below what a wrong operation would do.
//! With `-- --nocapture` the differences are shown.

use std::env;
use std::io::Write as _;
use std::path::Path;

use bufgym_agents::{
    Batch, Frame, PortSac, PortsConfig, Replay, ReplayShape, SacConfig, Transition,
};
use bufgym_env::control::{ActionSet, HISTORY, PRIVILEGED};
use bufgym_models::files::decode_tensors;
use bufgym_models::noise::uniform;
use bufgym_models::parameters::{NamedTensor, host_values};
use bufgym_models::windows::{OBSERVATION, WINDOW};
use bufgym_models::{Actor, ActorWeights, Device, DeviceChoice, DeviceError, cpu};
use burn::tensor::{Tensor, TensorData};
use rand::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

const PORTS: usize = 5;
const ROWS: usize = 24;
/// Largest difference of a number that a network or an update gives, relative to the largest of its
/// kind.
const OUTPUT: f32 = 1e-3;
/// Largest difference of the weights after an update, relative to how far the update has moved them,
/// both as norms over a network. Adam's first steps have the gradient's sign and a fixed length, so
/// that the last bit turns a weight whose gradient is nearly zero by the whole step.
const MOVEMENT: f64 = 0.05;

/// Calls `check` for every device except the processor.
fn on_every_device(check: impl Fn(&Device)) {
    let required = env::var("BUFGYM_DEVICES").unwrap_or_default();
    for choice in DeviceChoice::ALL {
        if choice == DeviceChoice::Cpu || !choice.is_built_in() {
            continue;
        }
        match choice.open() {
            Ok(open) => {
                tell(&format!("{choice} is {}", open.name));
                check(&open.device);
            }
            Err(error @ DeviceError::Unavailable { .. })
                if !required.split(',').any(|name| name == choice.name()) =>
            {
                tell(&format!("NOT CHECKED: {error}"));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Writes a line to standard error itself, which the test harness does not capture.
fn tell(line: &str) {
    let mut stderr = std::io::stderr();
    writeln!(stderr, "devices: {line}").unwrap();
}

/// Numbers in [-1, 1).
fn numbers(count: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<f32> {
    (0..count).map(|_| 2.0 * uniform(rng) - 1.0).collect()
}

fn assert_close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(0.0_f32, |max, x| max.max(x.abs()));
    let differences = found
        .iter()
        .zip(expected)
        .map(|(a, b)| (a - b).abs() / scale);
    let worst = differences.max_by(f32::total_cmp).unwrap();
    println!("{what}: {worst:.1e} of {scale}");
    assert!(worst <= OUTPUT, "{what}: {worst} of {scale} apart");
}

#[test]
fn the_actor_has_the_same_outputs() {
    on_every_device(|device| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        for actions in [ActionSet::Alpha, ActionSet::AlphaEarly] {
            let weights = ActorWeights::random_for(actions, &mut rng);
            let shape = [ROWS * PORTS * HISTORY, WINDOW];
            let windows = TensorData::new(numbers(shape[0] * shape[1], &mut rng), shape);
            let outputs = |device: &Device| {
                let actor = Actor::from_weights(&weights, device);
                assert_eq!(
                    actor.to_weights(),
                    weights,
                    "weights come back as they were"
                );
                let output = actor.forward(Tensor::from_data(windows.clone(), device), ROWS);
                [host_values(output.mean), host_values(output.log_std)]
            };
            let (found, expected) = (outputs(device), outputs(&cpu()));
            assert_close(&found[0], &expected[0], "mean");
            assert_close(&found[1], &expected[1], "log_std");
        }
    });
}

/// A batch of transitions with random observations, actions and rewards.
fn batch(actions: ActionSet) -> Batch {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let outputs = actions.outputs();
    let shape = ReplayShape {
        capacity: 4 * ROWS,
        streams: 1,
        ports: PORTS,
        outputs,
        pairs: 0,
    };
    let mut replay = Replay::new(shape, 4);
    let frame = |rng: &mut Xoshiro256PlusPlus| {
        let observation = numbers(PORTS * OBSERVATION, rng);
        Frame::newest(&observation, &numbers(PORTS * PRIVILEGED, rng))
    };
    replay.start(0, &frame(&mut rng));
    for _ in 0..2 * ROWS {
        let transition = Transition {
            actions: vec![0; PORTS * outputs],
            raw: numbers(PORTS * outputs, &mut rng),
            port_rewards: numbers(PORTS, &mut rng),
            discount: 0.9,
            terminated: false,
            truncated: false,
            next: frame(&mut rng),
            reset: None,
        };
        replay.push(0, &transition);
    }
    let mut batch = Batch::default();
    replay.sample(ROWS, 1, &mut batch);
    batch
}

fn learner(actions: ActionSet, device: &Device) -> PortSac {
    let config = SacConfig {
        batch_size: ROWS,
        actor_starts: Some(0),
        ..SacConfig::default()
    };
    let ports = PortsConfig {
        critic_width: 32,
        ..PortsConfig::default()
    };
    PortSac::new(config, ports, actions, 11, device).unwrap()
}

/// Every network of a stored learner.
fn networks(folder: &Path) -> Vec<NamedTensor> {
    let bytes = std::fs::read(folder.join("networks.safetensors")).unwrap();
    decode_tensors(&bytes).unwrap()
}

fn stored(sac: &PortSac) -> Vec<NamedTensor> {
    let folder = tempfile::tempdir().unwrap();
    sac.save(folder.path()).unwrap();
    networks(folder.path())
}

fn distance(a: &[NamedTensor], b: &[NamedTensor]) -> f64 {
    let squares = a.iter().zip(b).flat_map(|(a, b)| {
        assert_eq!((&a.name, &a.shape), (&b.name, &b.shape));
        a.values.iter().zip(&b.values)
    });
    let sum: f64 = squares.map(|(a, b)| f64::from(a - b).powi(2)).sum();
    sum.sqrt()
}

/// Asserts that every network has moved from `before` to `found` as it has to `expected`.
fn assert_moved_alike(before: &[NamedTensor], found: &[NamedTensor], expected: &[NamedTensor]) {
    let critics = (0..SacConfig::default().critics)
        .flat_map(|place| [format!("critics.{place}"), format!("targets.{place}")]);
    for network in ["actor", "averaged"]
        .map(str::to_owned)
        .into_iter()
        .chain(critics)
    {
        let prefix = format!("{network}.");
        let of = |tensors: &[NamedTensor]| -> Vec<NamedTensor> {
            let own = tensors.iter().filter(|t| t.name.starts_with(&prefix));
            own.cloned().collect()
        };
        let (before, found, expected) = (of(before), of(found), of(expected));
        let moved = distance(&expected, &before);
        assert!(moved > 0.0, "{network} did not learn");
        let apart = distance(&found, &expected) / moved;
        println!("{network}: {apart:.1e} of the way apart");
        assert!(apart <= MOVEMENT, "{network}: {apart} of the way apart");
    }
}

#[test]
fn an_update_moves_every_network_alike() {
    on_every_device(|device| {
        for actions in [ActionSet::AlphaEarly, ActionSet::Alpha] {
            let batch = batch(actions);
            let [mut here, mut there] = [&cpu(), device].map(|at| learner(actions, at));
            let before = stored(&here);
            assert_eq!(distance(&stored(&there), &before), 0.0, "the same start");
            let [expected, found] = [&mut here, &mut there].map(|sac| {
                let metrics = sac.update(&batch);
                [
                    metrics.critic_loss,
                    metrics.actor.unwrap()[0],
                    metrics.actor.unwrap()[1],
                    metrics.q_mean,
                    metrics.target_mean,
                    metrics.td_error,
                ]
            });
            assert_close(&found, &expected, "what the update measured");
            assert_moved_alike(&before, &stored(&there), &stored(&here));
        }
    });
}

/// Every device reads the state that another one has stored, and continues with the optimisers' moments: without them
/// the next step would have another length and direction.
#[test]
fn a_training_goes_on_on_another_device() {
    on_every_device(|device| {
        let batch = batch(ActionSet::Alpha);
        for [first, second] in [[&cpu(), device], [device, &cpu()]] {
            let folder = tempfile::tempdir().unwrap();
            let mut stays = learner(ActionSet::Alpha, first);
            for _ in 0..3 {
                stays.update(&batch);
            }
            stays.save(folder.path()).unwrap();
            let mut moves = PortSac::load(folder.path(), second).unwrap();
            let before = networks(folder.path());
            assert_eq!(distance(&stored(&moves), &before), 0.0, "read as stored");
            stays.update(&batch);
            moves.update(&batch);
            assert_moved_alike(&before, &stored(&moves), &stored(&stays));
        }
    });
}
