//! The rollout workers of a training, wherever they play.

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
    /// Workers in their first episodes.
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

    /// Workers as they were stored. An environment is restored by a replay of its episode up to the stored
    /// decision.
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

    /// Every worker makes so many decisions with `actor`, or uniformly at random without one.
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

    /// What each worker did in the last round, in their order.
    pub(crate) fn played(&self) -> Box<dyn Iterator<Item = &Played> + '_> {
        match self {
            Self::Here(workers) => Box::new(workers.iter().map(Worker::played)),
            Self::Afar(crew) => Box::new(crew.played()),
        }
    }

    /// Each worker as it is to be stored, in their order.
    pub(crate) fn states(&self) -> Vec<WorkerState> {
        match self {
            Self::Here(workers) => workers.iter().map(Worker::state).collect(),
            Self::Afar(crew) => crew.states(),
        }
    }

    /// Multiplies later rewards of a worker with `factor` more.
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
