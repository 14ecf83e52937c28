//! Soft actor-critic for any task whose observation and action are lists of numbers: the algorithm with plain networks,
//! a replay of its own, and the loop's parts. With the settings of [`SacConfig::published`] it is the paper's.
//!
//! Actions are in (-1, 1); the caller scales them to the task's range.

use std::path::Path;

use bufgym_models::files::current_folder;
use bufgym_models::noise::uniform;
use bufgym_models::parameters::host_values;
use bufgym_models::{ActorOutput, Device, GaussianPerceptron, ValuePerceptron, standard_normal};
use burn::tensor::{Tensor, TensorData};
use rand::{Rng as _, RngExt as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use crate::sac::{
    ActionValue, Observation, Policy, Sac, SacConfig, SacRecord, Samples, UpdateMetrics,
};
use crate::stored::{Checked, Files, Form, LearnerError, Sums, corrupt, read_record};

impl Observation for Tensor<2> {
    fn autodiff(&self) -> Tensor<2> {
        self.clone().autodiff()
    }
}

impl Policy for GaussianPerceptron {
    type Observation = Tensor<2>;

    fn gaussian(&self, seen: &Tensor<2>, _rows: usize) -> ActorOutput {
        self.forward(seen.clone())
    }
}

impl ActionValue<Tensor<2>> for ValuePerceptron {
    fn values(&self, seen: &Tensor<2>, actions: Tensor<2>) -> Tensor<2> {
        self.forward(seen.clone(), actions)
    }
}

/// The sizes of a task and of the networks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlainShape {
    /// Numbers of an observation.
    pub observation: usize,
    /// Numbers of an action.
    pub action: usize,
    /// Width of both hidden layers of all networks. (Haarnoja et al. 2018b: 256)
    pub width: usize,
    /// Transitions that the replay holds. (Haarnoja et al. 2018b: 10^6)
    pub capacity: usize,
}

/// The learner and its replay.
pub struct PlainSac {
    sac: Sac<GaussianPerceptron, ValuePerceptron>,
    shape: PlainShape,
    batch: usize,
    discount: f32,
    device: Device,
    replay: Vec<f32>,
    pushed: usize,
    rng: Xoshiro256PlusPlus,
}

impl PlainSac {
    /// A learner with random weights and an empty replay. The same seed gives the same weights.
    ///
    /// # Errors
    /// When a setting is out of range.
    ///
    /// # Panics
    /// When a size is zero.
    pub fn new(
        config: SacConfig,
        shape: PlainShape,
        discount: f32,
        seed: u64,
        device: &Device,
    ) -> Result<PlainSac, LearnerError> {
        let sizes = [shape.observation, shape.width, shape.action];
        assert!(
            !sizes.contains(&0) && shape.capacity > 0,
            "no size of a task is zero"
        );
        config.validate()?;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let policy = GaussianPerceptron::random(sizes, &mut rng, device);
        let critics = (0..config.critics)
            .map(|_| ValuePerceptron::random(sizes, &mut rng, device))
            .collect();
        Ok(PlainSac {
            batch: config.batch_size,
            sac: Sac::new(config, policy, critics, rng.next_u64(), device)?,
            device: device.clone().without_autodiff(),
            replay: Vec::new(),
            pushed: 0,
            shape,
            discount,
            rng,
        })
    }

    /// The sizes.
    pub fn shape(&self) -> PlainShape {
        self.shape
    }

    /// Updates so far.
    pub fn updates(&self) -> u64 {
        self.sac.updates()
    }

    /// Transitions held.
    pub fn held(&self) -> usize {
        self.pushed.min(self.shape.capacity)
    }

    /// An action drawn uniformly.
    pub fn random_action(&mut self) -> Vec<f32> {
        (0..self.shape.action)
            .map(|_| 2.0 * uniform(&mut self.rng) - 1.0)
            .collect()
    }

    /// Returns the policy's action for an observation: drawn at random if `explores` is true, else the mean.
    ///
    /// # Panics
    /// When the observation has another length.
    pub fn act(&mut self, observation: &[f32], explores: bool) -> Vec<f32> {
        assert_eq!(observation.len(), self.shape.observation);
        let seen = self.tensor(observation.to_vec(), self.shape.observation);
        let output = self.sac.policy().forward(seen);
        let pairs = host_values(output.mean)
            .into_iter()
            .zip(host_values(output.log_std));
        let rng = &mut self.rng;
        let mut noise = || if explores { standard_normal(rng) } else { 0.0 };
        pairs
            .map(|(mean, log_std)| libm::tanhf(mean + libm::expf(log_std) * noise()))
            .collect()
    }

    /// Stores a transition; when the replay is full, it replaces the oldest one. `terminated` means that no value
    /// follows.
    ///
    /// # Panics
    /// When a list has another length.
    pub fn push(
        &mut self,
        observation: &[f32],
        action: &[f32],
        reward: f32,
        next: &[f32],
        terminated: bool,
    ) {
        let PlainShape {
            observation: seen,
            action: acted,
            capacity,
            ..
        } = self.shape;
        assert!(observation.len() == seen && next.len() == seen && action.len() == acted);
        let row = [
            observation,
            next,
            action,
            &[reward, if terminated { 0.0 } else { self.discount }],
        ]
        .concat();
        match self.pushed.checked_rem(capacity) {
            Some(slot) if self.pushed >= capacity => {
                self.replay[slot * row.len()..][..row.len()].copy_from_slice(&row);
            }
            _ => self.replay.extend(row),
        }
        self.pushed += 1;
    }

    /// Learns from a batch drawn uniformly, with replacement.
    ///
    /// # Panics
    /// When the replay is empty.
    pub fn update(&mut self) -> UpdateMetrics {
        let PlainShape {
            observation,
            action,
            ..
        } = self.shape;
        let width = 2 * observation + action + 2;
        let held = self.held();
        assert!(held > 0, "an update needs a transition");
        let mut columns = [const { Vec::new() }; 5];
        for _ in 0..self.batch {
            let mut row = &self.replay[self.rng.random_range(0..held) * width..][..width];
            for (column, size) in columns
                .iter_mut()
                .zip([observation, observation, action, 1, 1])
            {
                let (part, rest) = row.split_at(size);
                column.extend_from_slice(part);
                row = rest;
            }
        }
        let [now, next, actions, rewards, discounts] = columns;
        let active = Tensor::ones([self.batch, 1], &self.device);
        let samples = Samples {
            now: self.tensor(now, observation),
            next: self.tensor(next, observation),
            actions: self.tensor(actions, action),
            rewards: self.tensor(rewards, 1),
            discounts: self.tensor(discounts, 1),
            next_active: active.clone(),
            active,
            pairs: None,
        };
        self.sac.update(&samples)
    }

    fn tensor(&self, values: Vec<f32>, width: usize) -> Tensor<2> {
        let shape = [values.len() / width, width];
        Tensor::from_data(TensorData::new(values, shape), &self.device)
    }
}

// --- Storage ------------------------------------------------------------------------------------

const FORM: Form = Form {
    record: "plain-sac.json",
    checksum: "plain-sac.sha256",
    version: 3,
};

/// Most numbers of a layer that is read.
const MAX_SIZE: usize = 1 << 14;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    format_version: u32,
    shape: PlainShape,
    discount_bits: u32,
    rng: Xoshiro256PlusPlus,
    sac: SacRecord,
    sha256: Sums,
}

impl PlainSac {
    /// Writes networks, optimisers and random streams into an existing folder, and waits until they are on the disk. The
    /// replay is not written.
    ///
    /// # Errors
    /// Returns errors of the file system.
    pub fn save(&self, dir: &Path) -> Result<(), LearnerError> {
        let mut files = Files::default();
        let sac = self.sac.write(dir, &mut files)?;
        let record = Record {
            format_version: FORM.version,
            shape: self.shape,
            discount_bits: self.discount.to_bits(),
            rng: self.rng.clone(),
            sac,
            sha256: files.sums(),
        };
        files.write(dir, &FORM, &record)
    }

    /// Reads what [`PlainSac::save`] wrote. Its replay is empty.
    ///
    /// # Errors
    /// When a file is missing, truncated, altered or of another version.
    pub fn load(dir: &Path, device: &Device) -> Result<PlainSac, LearnerError> {
        let dir = &current_folder(dir);
        let record: Record = read_record(dir, &FORM)?;
        let PlainShape {
            observation,
            action,
            width,
            capacity,
        } = record.shape;
        let sizes = [observation, action, width];
        if capacity == 0 || sizes.iter().any(|size| !(1..=MAX_SIZE).contains(size)) {
            let reason = "a size is zero, or larger than any network here";
            return Err(corrupt(dir, FORM.record, reason));
        }
        let discount = f32::from_bits(record.discount_bits);
        let mut learner =
            PlainSac::new(record.sac.config.clone(), record.shape, discount, 0, device)?;
        let numbers = (observation + action + width + 1) as u64;
        let files = Checked {
            dir,
            form: &FORM,
            sums: &record.sha256,
            most: numbers
                .saturating_mul(numbers)
                .saturating_mul(4 * 8)
                .saturating_mul(record.sac.config.critics as u64)
                .saturating_add(1 << 20),
        };
        learner.sac.read(record.sac, &files)?;
        learner.rng = record.rng;
        Ok(learner)
    }
}
