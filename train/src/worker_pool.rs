//! The rollout workers of a training, in this process or on hosts.

use bufgym_env::gym::EnvError;
use bufgym_models::{ActorWeights, FastActor};
use rayon::prelude::*;

use crate::rollout::{RolloutResult, Worker, WorkerState};
use crate::{TrainConfig, TrainError};

/// All workers of a training. Lists are in the order of the workers.
pub(crate) trait WorkerPool: Send {
    /// Makes every worker decide so many times with `actor`, or uniformly at random without one.
    ///
    /// # Errors
    /// When an environment fails, or the hosts do.
    fn collect(&mut self, decisions: u64, actor: Option<&ActorWeights>) -> Result<(), TrainError>;

    /// Returns the rollouts of the last round.
    fn played(&self) -> Vec<&RolloutResult>;

    /// Returns the state of each worker for storage.
    fn states(&self) -> Vec<WorkerState>;

    /// Multiplies later rewards of a worker by another factor `factor`.
    fn scale(&mut self, worker: usize, factor: f32);
}

/// Workers in this process, in parallel on the current pool.
impl WorkerPool for Vec<Worker> {
    fn collect(&mut self, decisions: u64, actor: Option<&ActorWeights>) -> Result<(), TrainError> {
        let actor = actor.map(FastActor::new);
        let workers = self.par_iter_mut();
        Ok(workers.try_for_each(|worker| worker.collect(decisions, actor.as_ref()))?)
    }

    fn played(&self) -> Vec<&RolloutResult> {
        self.iter().map(Worker::played).collect()
    }

    fn states(&self) -> Vec<WorkerState> {
        self.iter().map(Worker::state).collect()
    }

    fn scale(&mut self, worker: usize, factor: f32) {
        self[worker].scale(factor);
    }
}

/// Creates workers in this process, in their first episodes.
pub(crate) fn begin(config: &TrainConfig) -> Result<Vec<Worker>, EnvError> {
    let mut workers = new_workers(config)?;
    workers.par_iter_mut().try_for_each(Worker::begin)?;
    Ok(workers)
}

/// Restores stored workers in this process.
pub(crate) fn restore(
    config: &TrainConfig,
    states: &[WorkerState],
) -> Result<Vec<Worker>, EnvError> {
    let mut workers = new_workers(config)?;
    let pairs = workers.par_iter_mut().zip(states);
    pairs.try_for_each(|(worker, state)| worker.restore(state))?;
    Ok(workers)
}

fn new_workers(config: &TrainConfig) -> Result<Vec<Worker>, EnvError> {
    (0..config.rollout.workers)
        .map(|index| Worker::new(config, index))
        .collect()
}
