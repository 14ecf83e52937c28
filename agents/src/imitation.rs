//! Imitation learning: a teacher's decisions as examples for the actor.

use std::path::Path;

use bufgym_env::control::ActionSet;
use bufgym_models::files::current_folder;
use bufgym_models::windows::{OBSERVATION, UNFOLDED, WINDOW, fill};
use bufgym_models::{Actor, ActorWeights, Device, cpu};
use bufgym_util::convert::single;
use burn::optim::GradientsParams;
use burn::tensor::{Tensor, TensorData};
use rand::{RngExt as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use crate::optimizer::adam;
use crate::stored::{
    Checked, Files, Form, LearnerError, Sums, corrupt, prefixed, read_record, restore,
};

/// Adam's first step size; it falls to zero.
const RATE: f64 = 2e-3;

/// Examples per step, for switches with as many ports as those of the first group. Steps on other groups have about as
/// many ports in total.
const ROWS: usize = 64;

/// Observations of whole switches, each with the teacher's action.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Examples {
    ports: usize,
    outputs: usize,
    /// `[examples, ports, 8, 5]`
    observations: Vec<f32>,
    /// `[examples, ports, outputs]`, in [-1, 1].
    actions: Vec<f32>,
}

impl Examples {
    /// Creates an empty set for switches with so many ports.
    pub fn new(ports: usize, outputs: usize) -> Examples {
        Examples {
            ports,
            outputs,
            ..Examples::default()
        }
    }

    /// Adds one example.
    ///
    /// # Panics
    /// When `observation` is not `[ports, 8, 5]`, or `action` not `[ports, outputs]`.
    pub fn push(&mut self, observation: &[f32], action: &[f32]) {
        assert_eq!(observation.len(), self.ports * OBSERVATION);
        assert_eq!(action.len(), self.ports * self.outputs);
        self.observations.extend_from_slice(observation);
        self.actions.extend_from_slice(action);
    }

    /// Adds all examples of another set with the same numbers of ports and outputs.
    pub fn append(&mut self, others: Examples) {
        assert_eq!((self.ports, self.outputs), (others.ports, others.outputs));
        self.observations.extend(others.observations);
        self.actions.extend(others.actions);
    }

    /// Returns the number of ports of each example.
    pub fn ports(&self) -> usize {
        self.ports
    }

    /// Returns the number of examples.
    pub fn len(&self) -> usize {
        self.actions.len() / (self.ports * self.outputs).max(1)
    }

    /// Returns true if there is no example.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Draws `rows`, with replacement: unfolded observations `[rows * ports * 8, 15]` and actions
    /// `[rows, ports, outputs]`.
    fn draw(&self, rows: usize, rng: &mut Xoshiro256PlusPlus) -> (Vec<f32>, Vec<f32>) {
        let (seen, decided) = (self.ports * OBSERVATION, self.ports * self.outputs);
        let mut windows = vec![0.0; rows * self.ports * UNFOLDED];
        let mut actions = Vec::with_capacity(rows * decided);
        for windows in windows.chunks_exact_mut(self.ports * UNFOLDED) {
            let index = rng.random_range(0..self.len());
            fill(&self.observations[index * seen..][..seen], windows);
            actions.extend_from_slice(&self.actions[index * decided..][..decided]);
        }
        (windows, actions)
    }
}

/// A policy that only learns to imitate a teacher.
#[derive(Clone, Debug)]
pub struct Imitator {
    weights: ActorWeights,
    actions: ActionSet,
}

const FORM: Form = Form {
    record: "imitator.json",
    checksum: "imitator.sha256",
    version: 1,
};
const NETWORK: &str = "network.safetensors";
const ACTOR: &str = "actor";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    format_version: u32,
    actions: ActionSet,
    sha256: Sums,
}

impl Imitator {
    /// Creates a policy with random weights, for decisions that set `actions`.
    pub fn new(actions: ActionSet, seed: u64) -> Imitator {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Imitator {
            weights: ActorWeights::random_for(actions, &mut rng),
            actions,
        }
    }

    /// Returns the policy's weights.
    pub fn weights(&self) -> &ActorWeights {
        &self.weights
    }

    /// Replaces the policy's weights, such as by those that [`imitate`] returns.
    pub fn set_weights(&mut self, weights: &ActorWeights) {
        self.weights = weights.clone();
    }

    /// Returns the outputs that its decisions set.
    pub fn actions(&self) -> ActionSet {
        self.actions
    }

    /// Writes the policy into an existing folder, and waits until it is on the disk.
    ///
    /// # Errors
    /// Returns errors of the file system.
    pub fn save(&self, dir: &Path) -> Result<(), LearnerError> {
        let actor = Actor::from_weights(&self.weights, &cpu());
        let mut files = Files::default();
        files.add_tensors(dir, NETWORK, &prefixed(ACTOR, &actor).collect::<Vec<_>>())?;
        let record = Record {
            format_version: FORM.version,
            actions: self.actions,
            sha256: files.sums(),
        };
        files.write(dir, &FORM, &record)
    }

    /// Reads what [`Imitator::save`] wrote.
    ///
    /// # Errors
    /// When a file is missing, truncated, altered or of another version.
    pub fn load(dir: &Path) -> Result<Imitator, LearnerError> {
        let dir = &current_folder(dir);
        let record: Record = read_record(dir, &FORM)?;
        let files = Checked {
            dir,
            form: &FORM,
            sums: &record.sha256,
            most: 32 << 20,
        };
        let mut imitator = Imitator::new(record.actions, 0);
        let actor = Actor::from_weights(&imitator.weights, &cpu());
        let actor = restore(actor, ACTOR, &files.tensors(NETWORK)?);
        imitator.weights = actor
            .map_err(|reason| corrupt(dir, NETWORK, reason))?
            .to_weights();
        Ok(imitator)
    }
}

/// Teaches an actor to imitate a teacher: `steps` steps of Adam on the squared difference of the actions, and of the
/// logarithm of the deviation from `log_std`. The groups of examples, one for each number of ports, take turns. Returns
/// the weights and the root of the mean squared difference of the actions in the last tenth of the steps.
///
/// # Panics
/// When there is no group, or one without examples.
pub fn imitate(
    weights: &ActorWeights,
    groups: &[Examples],
    steps: u64,
    log_std: f32,
    rng: &mut Xoshiro256PlusPlus,
    device: &Device,
) -> (ActorWeights, f32) {
    let filled = groups.iter().all(|examples| !examples.is_empty());
    assert!(filled && !groups.is_empty(), "a teacher needs an example");
    let device = device.clone().without_autodiff();
    let mut actor = Actor::from_weights(weights, &device.clone().autodiff());
    let mut optimizer = adam(None);
    let (mut sum, mut count) = (0.0, 0_u64);
    for (step, examples) in (0..steps).zip(groups.iter().cycle()) {
        let rows = (ROWS * groups[0].ports() / examples.ports()).max(1);
        let (windows, actions) = examples.draw(rows, rng);
        let tensor = |values: Vec<f32>, width: usize| {
            let shape = [values.len() / width, width];
            Tensor::<2>::from_data(TensorData::new(values, shape), &device).autodiff()
        };
        let width = actions.len() / rows;
        let output = actor.forward(tensor(windows, WINDOW), rows);
        let difference = (output.mean.tanh() - tensor(actions, width))
            .square()
            .mean();
        let spread = (output.log_std - log_std).square().mean();
        let error = difference.clone().inner().into_scalar::<f32>();
        let gradients = GradientsParams::from_grads((difference + spread * 0.1).backward(), &actor);
        let left = 1.0 - step as f64 / steps as f64;
        actor = optimizer.step(RATE * left, actor, gradients);
        if step >= steps - steps.div_ceil(10) {
            sum += f64::from(error);
            count += 1;
        }
    }
    let difference = single((sum / count.max(1) as f64).sqrt());
    (actor.to_weights(), difference)
}
