//! Action-value networks with one value per port.
//!
//! The reward is a sum over ports, and so is the value: with one output per port each transition
//! teaches `ports` numbers instead of one. Every port's value depends on the state of all ports,
//! the joint value on the actions of all, and permuting the ports permutes the values.

pub mod privileged;
pub mod trunk;

use std::fmt;
use std::str::FromStr;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

pub use privileged::{ADVANTAGE, FRAMES, PrivilegedCritic, STATE, advantage_features};
pub use trunk::TrunkCritic;

/// Which network estimates action values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CriticKind {
    /// [`PrivilegedCritic`]: sees the simulator's state, which no switch can.
    #[default]
    Privileged,
    /// [`TrunkCritic`]: the paper's, sees what the actor sees.
    Trunk,
}

impl fmt::Display for CriticKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            CriticKind::Privileged => "privileged",
            CriticKind::Trunk => "trunk",
        })
    }
}

/// A text that names no critic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a critic; the critics are privileged and trunk")]
pub struct UnknownCritic(pub String);

impl FromStr for CriticKind {
    type Err = UnknownCritic;

    fn from_str(text: &str) -> Result<CriticKind, UnknownCritic> {
        match text {
            "privileged" => Ok(CriticKind::Privileged),
            "trunk" => Ok(CriticKind::Trunk),
            _ => Err(UnknownCritic(text.to_owned())),
        }
    }
}

/// What the critics look at. Each kind reads the part it needs.
#[derive(Clone, Debug)]
pub struct CriticInput {
    /// Unfolded observations, `[batch * ports * 8, 15]`.
    pub windows: Tensor<2>,
    /// Newest frames and privileged features, `[batch * ports, STATE]`.
    pub state: Tensor<2>,
}

/// One action-value network.
// Held once or twice per training, never in collections: the larger variant costs nothing.
#[allow(clippy::large_enum_variant)]
#[derive(Module, Debug)]
pub enum Critic {
    /// See [`PrivilegedCritic`].
    Privileged(PrivilegedCritic),
    /// See [`TrunkCritic`].
    Trunk(TrunkCritic),
}

impl Critic {
    /// A critic with random weights. `width` is that of the privileged critic's layers; the
    /// trunk's widths are the paper's.
    pub fn random(
        kind: CriticKind,
        width: usize,
        rng: &mut Xoshiro256PlusPlus,
        device: &Device,
    ) -> Critic {
        match kind {
            CriticKind::Privileged => {
                Critic::Privileged(PrivilegedCritic::random(width, rng, device))
            }
            CriticKind::Trunk => Critic::Trunk(TrunkCritic::random(rng, device)),
        }
    }

    /// Action values `[batch, ports]` of the actions `[batch, ports]`.
    pub fn forward(&self, input: &CriticInput, actions: Tensor<2>) -> Tensor<2> {
        match self {
            Critic::Privileged(critic) => critic.forward(input.state.clone(), actions),
            Critic::Trunk(critic) => critic.forward(input.windows.clone(), actions),
        }
    }

    /// What the network itself estimates, `[batch, ports]`: the value of the state where the
    /// critic keeps the advantage of the actions apart, else that of the actions.
    pub fn estimate(&self, input: &CriticInput, actions: Tensor<2>) -> Tensor<2> {
        match self {
            Critic::Privileged(critic) => critic.value(input.state.clone(), actions.dims()[0]),
            Critic::Trunk(_) => self.forward(input, actions),
        }
    }

    /// Sets the advantage's weights where the critic keeps it apart.
    ///
    /// # Panics
    /// As [`PrivilegedCritic::set_advantage`].
    pub fn set_advantage(&mut self, weights: &[f32]) {
        if let Critic::Privileged(critic) = self {
            critic.set_advantage(weights);
        }
    }

    /// As [`forward`](Critic::forward) up to a term that does not depend on the actions: enough
    /// for climbing, and cheaper where the network keeps that term apart.
    pub fn preference(&self, input: &CriticInput, actions: Tensor<2>) -> Tensor<2> {
        match self {
            Critic::Privileged(critic) => critic.advantage(input.state.clone(), actions),
            Critic::Trunk(_) => self.forward(input, actions),
        }
    }
}
