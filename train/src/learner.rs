//! The algorithm that learns, behind one interface for the training loop.

use std::path::Path;

use bufgym_agents::imitation::Imitator;
use bufgym_agents::{Batch, LearnerError, PortSac, Ppo, RoundMetrics, UpdateMetrics};
use bufgym_env::control::ActionSet;
use bufgym_models::{ActorWeights, Device};

use crate::config::Algorithm;
use crate::experience::Experience;
use crate::{TrainConfig, TrainError};

/// A learner of either kind.
// A training has one of them.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Learner {
    Sac(PortSac),
    Ppo(Ppo),
    /// Only imitates the rule that was found.
    Cma(Imitator),
}

/// The measurements of a round of updates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Learned {
    pub(crate) updates: Vec<UpdateMetrics>,
    pub(crate) round: Option<RoundMetrics>,
    /// Gradient steps.
    pub(crate) steps: u64,
}

impl Learner {
    pub(crate) fn new(
        config: &TrainConfig,
        seed: u64,
        device: &Device,
    ) -> Result<Self, LearnerError> {
        let (ports, actions) = (config.ports.clone(), config.actions());
        Ok(match config.algorithm {
            Algorithm::Sac => Self::Sac(PortSac::new(
                config.sac.clone(),
                ports,
                actions,
                seed,
                device,
            )?),
            Algorithm::Ppo => {
                Self::Ppo(Ppo::new(config.ppo.clone(), ports, actions, seed, device)?)
            }
            Algorithm::Cma => Self::Cma(Imitator::new(actions, seed)),
        })
    }

    /// The folder of its state.
    pub(crate) fn folder(algorithm: Algorithm) -> &'static str {
        match algorithm {
            Algorithm::Sac => "sac",
            Algorithm::Ppo => "ppo",
            Algorithm::Cma => "cma",
        }
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        match self {
            Self::Sac(_) => Algorithm::Sac,
            Self::Ppo(_) => Algorithm::Ppo,
            Self::Cma(_) => Algorithm::Cma,
        }
    }

    pub(crate) fn load(
        algorithm: Algorithm,
        dir: &Path,
        device: &Device,
    ) -> Result<Self, LearnerError> {
        Ok(match algorithm {
            Algorithm::Sac => Self::Sac(PortSac::load(dir, device)?),
            Algorithm::Ppo => Self::Ppo(Ppo::load(dir, device)?),
            Algorithm::Cma => Self::Cma(Imitator::load(dir)?),
        })
    }

    pub(crate) fn save(&self, dir: &Path) -> Result<(), TrainError> {
        match self {
            Self::Sac(sac) => sac.save(dir)?,
            Self::Ppo(ppo) => ppo.save(dir)?,
            Self::Cma(imitator) => imitator.save(dir)?,
        }
        Ok(())
    }

    pub(crate) fn actor_weights(&self) -> ActorWeights {
        match self {
            Self::Sac(sac) => sac.actor_weights(),
            Self::Ppo(ppo) => ppo.actor_weights(),
            Self::Cma(imitator) => imitator.weights().clone(),
        }
    }

    pub(crate) fn averaged_weights(&self) -> ActorWeights {
        match self {
            Self::Sac(sac) => sac.averaged_weights(),
            Self::Ppo(ppo) => ppo.averaged_weights(),
            Self::Cma(imitator) => imitator.weights().clone(),
        }
    }

    pub(crate) fn actions(&self) -> ActionSet {
        match self {
            Self::Sac(sac) => sac.actions(),
            Self::Ppo(ppo) => ppo.actions(),
            Self::Cma(imitator) => imitator.actions(),
        }
    }

    pub(crate) fn updates(&self) -> u64 {
        match self {
            Self::Sac(sac) => sac.updates(),
            Self::Ppo(ppo) => ppo.updates(),
            Self::Cma(_) => 0,
        }
    }

    /// Continues from these weights, if the learner is of a kind that can.
    pub(crate) fn set_weights(&mut self, weights: &ActorWeights) {
        match self {
            Self::Sac(sac) => sac.set_weights(weights),
            Self::Ppo(_) => (),
            Self::Cma(imitator) => imitator.set_weights(weights),
        }
    }
}

/// Makes `updates` updates, each on a batch of `n_step` returns. During an update the next
/// batch is drawn. The result is the same as without this overlap.
pub(crate) fn learn_from(
    replay: &mut Experience,
    sac: &mut PortSac,
    batches: &mut [Batch; 2],
    updates: u64,
    n_step: usize,
) -> Learned {
    let [mut current, mut next] = batches.each_mut();
    let first = sac.updates();
    if updates > 0 && !sac.has_scales() {
        replay.sample_many(first, n_step, current);
        sac.measure_scales(current);
    }
    if updates > 0 {
        replay.sample(first, n_step, current);
    }
    let measured = (1..=updates).map(|number| {
        let draw = || {
            if number < updates {
                replay.sample(first + number, n_step, next);
            }
        };
        let (metrics, ()) = rayon::join(|| sac.update(current), draw);
        std::mem::swap(&mut current, &mut next);
        metrics
    });
    Learned {
        updates: measured.collect(),
        round: None,
        steps: updates,
    }
}

/// Learns from the decisions since the last call.
pub(crate) fn learn_from_newest(replay: &mut Experience, ppo: &mut Ppo) -> Learned {
    let before = ppo.updates();
    let round = ppo.learn(&replay.take_new());
    Learned {
        updates: Vec::new(),
        round,
        steps: ppo.updates() - before,
    }
}
