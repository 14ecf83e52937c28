//! The algorithm that learns, behind what the training loop needs of it.

use std::path::Path;

use bufgym_agents::{Batch, LearnerError, Ppo, RoundMetrics, Sac, UpdateMetrics};
use bufgym_env::control::ActionSet;
use bufgym_models::{ActorWeights, Device};

use crate::config::Algorithm;
use crate::experience::Experience;
use crate::{TrainConfig, TrainError};

/// A learner of either kind.
// A training has one of them.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Learner {
    Sac(Sac),
    Ppo(Ppo),
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
        let actions = config.actions();
        Ok(match config.algorithm {
            Algorithm::Sac => Self::Sac(Sac::new(config.sac.clone(), actions, seed, device)?),
            Algorithm::Ppo => Self::Ppo(Ppo::new(config.ppo.clone(), actions, seed, device)?),
        })
    }

    /// The folder of its state.
    pub(crate) fn folder(algorithm: Algorithm) -> &'static str {
        match algorithm {
            Algorithm::Sac => "sac",
            Algorithm::Ppo => "ppo",
        }
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        match self {
            Self::Sac(_) => Algorithm::Sac,
            Self::Ppo(_) => Algorithm::Ppo,
        }
    }

    pub(crate) fn load(
        algorithm: Algorithm,
        dir: &Path,
        device: &Device,
    ) -> Result<Self, LearnerError> {
        Ok(match algorithm {
            Algorithm::Sac => Self::Sac(Sac::load(dir, device)?),
            Algorithm::Ppo => Self::Ppo(Ppo::load(dir, device)?),
        })
    }

    pub(crate) fn save(&self, dir: &Path) -> Result<(), TrainError> {
        match self {
            Self::Sac(sac) => sac.save(dir)?,
            Self::Ppo(ppo) => ppo.save(dir)?,
        }
        Ok(())
    }

    pub(crate) fn actor_weights(&self) -> ActorWeights {
        match self {
            Self::Sac(sac) => sac.actor_weights(),
            Self::Ppo(ppo) => ppo.actor_weights(),
        }
    }

    pub(crate) fn averaged_weights(&self) -> ActorWeights {
        match self {
            Self::Sac(sac) => sac.averaged_weights(),
            Self::Ppo(ppo) => ppo.averaged_weights(),
        }
    }

    pub(crate) fn actions(&self) -> ActionSet {
        match self {
            Self::Sac(sac) => sac.actions(),
            Self::Ppo(ppo) => ppo.actions(),
        }
    }

    pub(crate) fn updates(&self) -> u64 {
        match self {
            Self::Sac(sac) => sac.updates(),
            Self::Ppo(ppo) => ppo.updates(),
        }
    }

    /// The weights that it may go back to.
    pub(crate) fn kept_weights(&self) -> Option<ActorWeights> {
        match self {
            Self::Sac(sac) => sac.kept_weights(),
            Self::Ppo(_) => None,
        }
    }

    /// Keeps weights to go back to, where it is of the kind that does.
    pub(crate) fn keep(&mut self, weights: &ActorWeights) {
        if let Self::Sac(sac) = self {
            sac.keep(weights);
        }
    }

    /// Goes back to the weights that were kept last, where it is of the kind that does.
    pub(crate) fn return_to_kept(&mut self) {
        if let Self::Sac(sac) = self {
            sac.return_to_kept();
        }
    }
}

/// Makes `updates` updates, each on a batch of `n_step` returns. During an update the next
/// batch is drawn. The result is the same as without this overlap.
pub(crate) fn learn_from(
    replay: &mut Experience,
    sac: &mut Sac,
    batches: &mut [Batch; 2],
    updates: u64,
    n_step: usize,
) -> Learned {
    let [mut current, mut next] = batches.each_mut();
    let first = sac.updates();
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

/// Learns from what came since the last call.
pub(crate) fn learn_from_newest(replay: &mut Experience, ppo: &mut Ppo) -> Learned {
    let before = ppo.updates();
    let round = ppo.learn(&replay.take_new());
    Learned {
        updates: Vec::new(),
        round,
        steps: ppo.updates() - before,
    }
}
