//! Golden cases: recorded observations with known outputs, which every target is checked with.

use bufgym_env::control::{FEATURES, HISTORY, action_level};

use super::{File, IntegerNetwork};
use bufgym_models::fast::FastActor;
use bufgym_models::npy;
use bufgym_models::weights::ActorWeights;
use bufgym_models::windows::OBSERVATION;

/// Observations of a policy at a series of decisions.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Ports of the switch.
    pub ports: usize,
    /// `[decisions, ports, 8, 5]`.
    pub observations: Vec<f32>,
}

impl Recording {
    /// Decisions recorded.
    pub fn count(&self) -> usize {
        self.observations.len() / (self.ports * OBSERVATION)
    }

    /// The observation of one decision, `[ports, 8, 5]`.
    ///
    /// # Panics
    /// When there is no such decision.
    pub fn observation(&self, index: usize) -> &[f32] {
        let width = self.ports * OBSERVATION;
        &self.observations[index * width..][..width]
    }
}

/// Ports and batch size of the golden cases. They are small enough to be kept in a repository.
pub const SIZES: [(usize, usize); 4] = [(1, 16), (4, 8), (16, 4), (96, 1)];

/// Prefixes of file names, by output.
const PREFIXES: [&str; 2] = ["", "early-"];

/// Feature by which ports are chosen: the queue.
const QUEUE: usize = 0;

/// Returns one case for each of [`SIZES`], from decisions spread evenly over the recording. A switch with fewer ports
/// than recorded gets the ports with the longest queues. A switch with more ports combines several decisions.
///
/// # Panics
/// When nothing is recorded.
pub fn cases(recording: &Recording) -> Vec<Recording> {
    let count = recording.count();
    assert!(count > 0, "golden cases need a recorded decision");
    let case = |(ports, batch): (usize, usize)| {
        let joined = ports.div_ceil(recording.ports);
        let slots = batch * joined;
        let mut observations = Vec::with_capacity(batch * ports * OBSERVATION);
        for sample in 0..batch {
            let decisions = (0..joined).map(|part| (sample * joined + part) * count / slots);
            let rows: Vec<&[f32]> = decisions
                .flat_map(|decision| recording.observation(decision).chunks_exact(OBSERVATION))
                .collect();
            for port in busiest(&rows, ports) {
                observations.extend_from_slice(rows[port]);
            }
        }
        Recording {
            ports,
            observations,
        }
    };
    SIZES.map(case).to_vec()
}

/// The `count` ports with the longest queues in the newest step, in their own order.
fn busiest(rows: &[&[f32]], count: usize) -> Vec<usize> {
    let queue = |port: usize| rows[port][(HISTORY - 1) * FEATURES + QUEUE];
    let mut ports: Vec<usize> = (0..rows.len()).collect();
    ports.sort_by(|&a, &b| queue(b).total_cmp(&queue(a)));
    ports.truncate(count);
    ports.sort_unstable();
    ports
}

impl Recording {
    /// The observations and the actor's outputs as NumPy arrays, named after the number of ports,
    /// such as `observations-16.npy`:
    ///
    /// | file | type and shape | what |
    /// |---|---|---|
    /// | `observations-P.npy` | `f32 [batch, ports, 8, 5]` | the input |
    /// | `means-P.npy` | `f32 [batch, ports]` | the network's output μ |
    /// | `actions-P.npy` | `f32 [batch, ports]` | `tanh(μ)` |
    /// | `levels-P.npy` | `u8 [batch, ports]` | index into the levels of α |
    ///
    /// Where the actor sets early drop too, its second output is in `early-means-P.npy`,
    /// `early-actions-P.npy` and `early-levels-P.npy`.
    pub fn files(&self, weights: &ActorWeights) -> Vec<File> {
        let mut actor = FastActor::new(weights);
        let mut means = Vec::with_capacity(self.count() * self.ports);
        for observation in self.observations.chunks_exact(self.ports * OBSERVATION) {
            means.extend_from_slice(actor.forward(observation, self.ports).0);
        }
        let inputs = [self.count(), self.ports, HISTORY, FEATURES];
        let observations = npy::encode(&inputs, &self.observations);
        let mut files = vec![self.file("", "observations", observations)];
        let outputs = [self.count(), self.ports];
        for (output, prefix) in PREFIXES.into_iter().enumerate().take(weights.outputs()) {
            let means = every(&means, output, weights.outputs());
            let actions: Vec<f32> = means.iter().map(|&mean| libm::tanhf(mean)).collect();
            let levels: Vec<u8> = actions.iter().map(|&a| action_level(a)).collect();
            files.extend([
                self.file(prefix, "means", npy::encode(&outputs, &means)),
                self.file(prefix, "actions", npy::encode(&outputs, &actions)),
                self.file(prefix, "levels", npy::encode(&outputs, &levels)),
            ]);
        }
        files
    }

    fn file(&self, prefix: &str, name: &str, bytes: Vec<u8>) -> File {
        File::new(format!("{prefix}{name}-{}.npy", self.ports), bytes)
    }

    /// The outputs of the integer network for the same observations:
    ///
    /// | file | type and shape | what |
    /// |---|---|---|
    /// | `codes-P.npy` | `u8 [batch, ports, 8, 5]` | the input |
    /// | `outputs-int8-P.npy` | `i32 [batch, ports]` | the output |
    /// | `levels-int8-P.npy` | `u8 [batch, ports]` | index into the levels of α |
    ///
    /// Where the network sets early drop too, its second output is in `early-outputs-int8-P.npy` and
    /// `early-levels-int8-P.npy`.
    pub fn integer_files(&self, network: &IntegerNetwork) -> Vec<File> {
        let codes = network.encode(&self.observations);
        let rows = codes.chunks_exact(self.ports * OBSERVATION);
        let forward = |row| network.forward(row, self.ports);
        let sums: Vec<i32> = rows.flat_map(forward).collect();
        let inputs = [self.count(), self.ports, HISTORY, FEATURES];
        let mut files = vec![self.file("", "codes", npy::encode(&inputs, &codes))];
        let outputs = [self.count(), self.ports];
        for (output, prefix) in PREFIXES.into_iter().enumerate().take(network.outputs()) {
            let sums = every(&sums, output, network.outputs());
            let level = |&sum: &i32| level_byte(network.level(output, sum));
            let levels: Vec<u8> = sums.iter().map(level).collect();
            files.extend([
                self.file(prefix, "outputs-int8", npy::encode(&outputs, &sums)),
                self.file(prefix, "levels-int8", npy::encode(&outputs, &levels)),
            ]);
        }
        files
    }
}

/// Returns the values of one of so many outputs, from values `[.., outputs]`.
fn every<T: Copy>(values: &[T], output: usize, outputs: usize) -> Vec<T> {
    let own = values.iter().skip(output).step_by(outputs);
    own.copied().collect()
}

/// Returns a level in the type that arrays of levels have.
fn level_byte(level: usize) -> u8 {
    u8::try_from(level).expect("a network has at most 256 levels")
}

#[cfg(test)]
mod tests;
