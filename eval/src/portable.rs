//! Policies in a form that another process reads and that decides the same there, bit by bit.

use std::fmt;

use bufgym_env::control::ActionSet;
use bufgym_export::IntegerActor;
use bufgym_models::linear::LINEAR;
use bufgym_models::weights::TENSORS;
use bufgym_models::{ActorWeights, LinearRule};
use bufgym_sim::switch::PolicySpec;
use serde::{Deserialize, Serialize};

/// Reason why a policy cannot be sent, or why the received data are no policy: one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotPortable(pub String);

/// The deciding part of a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Portable {
    /// A rule as a policy string.
    Rule(String),
    /// A linear rule: its outputs, and its weights, `[outputs * LINEAR]`.
    Linear {
        /// Name of the [`ActionSet`].
        actions: String,
        /// The weights for α, then the others.
        weights: Vec<f64>,
    },
    /// A network.
    Network(Box<PortableNetwork>),
    /// A network of integers, in JSON.
    Integer(String),
}

/// The weights of an actor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortableNetwork {
    outputs: usize,
    tensors: [Vec<f32>; TENSORS.len()],
}

/// A policy under its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortableEntrant {
    pub(crate) name: String,
    pub(crate) decides: Portable,
    /// The heuristic whose α the policy sets; empty for a rule.
    pub(crate) low_level: String,
}

impl From<&PolicySpec> for Portable {
    fn from(spec: &PolicySpec) -> Self {
        Self::Rule(spec.to_string())
    }
}

impl From<&LinearRule> for Portable {
    fn from(rule: &LinearRule) -> Self {
        let second = rule.second().map_or(&[][..], |second| second.as_slice());
        Self::Linear {
            actions: rule.actions().to_string(),
            weights: [rule.alpha().as_slice(), second].concat(),
        }
    }
}

impl From<&ActorWeights> for Portable {
    fn from(weights: &ActorWeights) -> Self {
        Self::Network(Box::new(weights.into()))
    }
}

impl From<&ActorWeights> for PortableNetwork {
    fn from(weights: &ActorWeights) -> Self {
        Self {
            outputs: weights.outputs(),
            tensors: weights.tensors().clone(),
        }
    }
}

impl TryFrom<&IntegerActor> for Portable {
    type Error = NotPortable;

    fn try_from(actor: &IntegerActor) -> Result<Self, NotPortable> {
        let json = serde_json::to_string(actor.network());
        json.map(Self::Integer).map_err(unfit)
    }
}

impl TryFrom<PortableNetwork> for ActorWeights {
    type Error = NotPortable;

    fn try_from(network: PortableNetwork) -> Result<Self, NotPortable> {
        let PortableNetwork { outputs, tensors } = network;
        if !ActionSet::ALL.iter().any(|set| set.outputs() == outputs) {
            return Err(unfit(format_args!("a network with {outputs} outputs")));
        }
        ActorWeights::from_tensors(tensors, outputs)
            .map_err(|index| unfit(format_args!("{} has another size", TENSORS[index].0)))
    }
}

/// Builds a linear rule with these weights.
fn linear(actions: &str, weights: &[f64]) -> Result<LinearRule, NotPortable> {
    let actions: ActionSet = actions.parse().map_err(unfit)?;
    let fits = weights.len() == actions.outputs() * LINEAR
        && weights.iter().all(|weight| weight.is_finite());
    match fits {
        true => Ok(LinearRule::from_slice(actions, weights)),
        false => Err(unfit(format_args!(
            "a rule for {actions} with other weights"
        ))),
    }
}

/// Reads a network of integers from JSON.
fn integer(json: &str) -> Result<IntegerActor, NotPortable> {
    let network: bufgym_export::int8::IntegerNetwork = serde_json::from_str(json).map_err(unfit)?;
    network.check().map_err(unfit)?;
    Ok(IntegerActor::new(network))
}

pub(crate) fn unfit(problem: impl fmt::Display) -> NotPortable {
    NotPortable(problem.to_string())
}

/// The decoded form of a [`Portable`], ready to use.
#[derive(Clone, Debug)]
pub enum Decides {
    /// A rule.
    Rule(PolicySpec),
    /// A linear rule.
    Linear(Box<LinearRule>),
    /// A network.
    Network(Box<ActorWeights>),
    /// A network of integers.
    Integer(Box<IntegerActor>),
}

impl TryFrom<Portable> for Decides {
    type Error = NotPortable;

    fn try_from(portable: Portable) -> Result<Self, NotPortable> {
        Ok(match portable {
            Portable::Rule(text) => Self::Rule(text.parse().map_err(unfit)?),
            Portable::Linear { actions, weights } => {
                Self::Linear(Box::new(linear(&actions, &weights)?))
            }
            Portable::Network(network) => Self::Network(Box::new((*network).try_into()?)),
            Portable::Integer(json) => Self::Integer(Box::new(integer(&json)?)),
        })
    }
}
