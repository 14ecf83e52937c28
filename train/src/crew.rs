//! The rollout workers of a training, in this process or on hosts.

use bufgym_env::gym::EnvError;
use bufgym_models::{ActorWeights, FastActor};
use rayon::prelude::*;

use crate::remote::{Cluster, RemoteCrew};
use crate::rollout::{Played, Worker, WorkerState};
use crate::{TrainConfig, TrainError};

/// All workers of a training.
pub(crate) enum Crew {
    /// In this process, in parallel on the current pool.
    Here(Vec<Worker>),
    /// On the hosts of a cluster.
    Afar(RemoteCrew),
}

impl Crew {
    /// Creates workers in their first episodes.
    pub(crate) fn begin(
        config: &TrainConfig,
        cluster: Option<&Cluster>,
    ) -> Result<Self, TrainError> {
        if let Some(cluster) = cluster {
            return Ok(Self::Afar(RemoteCrew::begin(config, cluster)?));
        }
        let mut workers = new_workers(config)?;
        workers.par_iter_mut().try_for_each(Worker::begin)?;
        Ok(Self::Here(workers))
    }

    /// Restores stored workers. An environment is restored by a replay of its episode up to the stored decision.
    pub(crate) fn restore(
        config: &TrainConfig,
        states: &[WorkerState],
        cluster: Option<&Cluster>,
    ) -> Result<Self, TrainError> {
        if let Some(cluster) = cluster {
            return Ok(Self::Afar(RemoteCrew::restore(config, states, cluster)));
        }
        let mut workers = new_workers(config)?;
        let pairs = workers.par_iter_mut().zip(states);
        pairs.try_for_each(|(worker, state)| worker.restore(state))?;
        Ok(Self::Here(workers))
    }

    /// Makes every worker decide so many times with `actor`, or uniformly at random without one.
    pub(crate) fn collect(
        &mut self,
        decisions: u64,
        actor: Option<&ActorWeights>,
    ) -> Result<(), TrainError> {
        match self {
            Self::Here(workers) => {
                let actor = actor.map(FastActor::new);
                workers
                    .par_iter_mut()
                    .try_for_each(|worker| worker.collect(decisions, actor.as_ref()))?;
                Ok(())
            }
            Self::Afar(crew) => Ok(crew.collect(decisions, actor)?),
        }
    }

    /// Returns the rollouts of the workers in the last round, in the workers' order.
    pub(crate) fn played(&self) -> Box<dyn Iterator<Item = &Played> + '_> {
        match self {
            Self::Here(workers) => Box::new(workers.iter().map(Worker::played)),
            Self::Afar(crew) => Box::new(crew.played()),
        }
    }

    /// Returns the state of each worker for storage, in the workers' order.
    pub(crate) fn states(&self) -> Vec<WorkerState> {
        match self {
            Self::Here(workers) => workers.iter().map(Worker::state).collect(),
            Self::Afar(crew) => crew.states(),
        }
    }

    /// Multiplies later rewards of a worker by another factor `factor`.
    pub(crate) fn scale(&mut self, worker: usize, factor: f32) {
        match self {
            Self::Here(workers) => workers[worker].scale(factor),
            Self::Afar(crew) => crew.scale(worker, factor),
        }
    }
}

fn new_workers(config: &TrainConfig) -> Result<Vec<Worker>, EnvError> {
    (0..config.rollout.workers)
        .map(|index| Worker::new(config, index))
        .collect()
}
