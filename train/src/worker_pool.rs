//! The rollout workers of a training, in this process or on hosts.

use bufgym_env::gym::EnvError;
use bufgym_models::{ActorWeights, FastActor};
use rayon::prelude::*;

use crate::remote::{Cluster, RemoteWorkers};
use crate::rollout::{RolloutResult, Worker, WorkerState};
use crate::{TrainConfig, TrainError};

/// All workers of a training.
pub(crate) enum WorkerPool {
    /// In this process, in parallel on the current pool.
    Local(Vec<Worker>),
    /// On the hosts of a cluster.
    Remote(RemoteWorkers),
}

impl WorkerPool {
    /// Creates workers in their first episodes.
    pub(crate) fn begin(
        config: &TrainConfig,
        cluster: Option<&Cluster>,
    ) -> Result<Self, TrainError> {
        if let Some(cluster) = cluster {
            return Ok(Self::Remote(RemoteWorkers::begin(config, cluster)?));
        }
        let mut workers = new_workers(config)?;
        workers.par_iter_mut().try_for_each(Worker::begin)?;
        Ok(Self::Local(workers))
    }

    /// Restores stored workers. An environment is restored by a replay of its episode up to the stored decision.
    pub(crate) fn restore(
        config: &TrainConfig,
        states: &[WorkerState],
        cluster: Option<&Cluster>,
    ) -> Result<Self, TrainError> {
        if let Some(cluster) = cluster {
            return Ok(Self::Remote(RemoteWorkers::restore(
                config, states, cluster,
            )));
        }
        let mut workers = new_workers(config)?;
        let pairs = workers.par_iter_mut().zip(states);
        pairs.try_for_each(|(worker, state)| worker.restore(state))?;
        Ok(Self::Local(workers))
    }

    /// Makes every worker decide so many times with `actor`, or uniformly at random without one.
    pub(crate) fn collect(
        &mut self,
        decisions: u64,
        actor: Option<&ActorWeights>,
    ) -> Result<(), TrainError> {
        match self {
            Self::Local(workers) => {
                let actor = actor.map(FastActor::new);
                workers
                    .par_iter_mut()
                    .try_for_each(|worker| worker.collect(decisions, actor.as_ref()))?;
                Ok(())
            }
            Self::Remote(workers) => Ok(workers.collect(decisions, actor)?),
        }
    }

    /// Returns the rollouts of the workers in the last round, in the workers' order.
    pub(crate) fn played(&self) -> Box<dyn Iterator<Item = &RolloutResult> + '_> {
        match self {
            Self::Local(workers) => Box::new(workers.iter().map(Worker::played)),
            Self::Remote(workers) => Box::new(workers.played()),
        }
    }

    /// Returns the state of each worker for storage, in the workers' order.
    pub(crate) fn states(&self) -> Vec<WorkerState> {
        match self {
            Self::Local(workers) => workers.iter().map(Worker::state).collect(),
            Self::Remote(workers) => workers.states(),
        }
    }

    /// Multiplies later rewards of a worker by another factor `factor`.
    pub(crate) fn scale(&mut self, worker: usize, factor: f32) {
        match self {
            Self::Local(workers) => workers[worker].scale(factor),
            Self::Remote(workers) => workers.scale(worker, factor),
        }
    }
}

fn new_workers(config: &TrainConfig) -> Result<Vec<Worker>, EnvError> {
    (0..config.rollout.workers)
        .map(|index| Worker::new(config, index))
        .collect()
}
