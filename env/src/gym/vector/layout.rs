//! The shapes of the arrays that a step of a vector environment reads and writes.

use std::ops::Range;

use super::{VectorError, check_len};
use crate::gym::multi_agent::named_spaces;
use crate::gym::{Env, MultiAgentEnv};

/// Shapes of the arrays that one step of a [`VectorEnv`](super::VectorEnv) reads and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Number of environments.
    pub envs: usize,
    /// Shape of one observation, such as `[ports, 8, 5]`.
    pub observation: Vec<usize>,
    /// Shape of one action, such as `[ports]`.
    pub action: Vec<usize>,
    /// Shape of one privileged observation, such as `[ports, 22]`; empty when there is none.
    pub privileged: Vec<usize>,
    /// Components of the reward, such as `ports`.
    pub components: usize,
}

impl Layout {
    pub(super) fn of<E: Env>(envs: usize, env: &E) -> Layout {
        let privileged = env.privileged_space();
        Layout {
            envs,
            observation: env.observation_space().shape().to_vec(),
            action: env.action_space().shape().to_vec(),
            privileged: privileged.map_or(Vec::new(), |space| space.shape().to_vec()),
            components: env.reward_components(),
        }
    }

    /// Values of one observation.
    pub fn observation_len(&self) -> usize {
        self.observation.iter().product()
    }

    /// Values of one action.
    pub fn action_len(&self) -> usize {
        self.action.iter().product()
    }

    /// Values of one privileged observation; 0 when there is none.
    pub fn privileged_len(&self) -> usize {
        match self.privileged[..] {
            [] => 0,
            _ => self.privileged.iter().product(),
        }
    }
}

/// Shapes of the arrays that one step of a [`MultiAgentVectorEnv`](super::MultiAgentVectorEnv) reads and writes.
///
/// Agents may differ in their number of ports. Every agent has rows for as many ports as the largest agent; the rows
/// after an agent's own ports are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiAgentLayout {
    /// Number of environments.
    pub envs: usize,
    /// Number of ports of every agent.
    pub ports: Vec<usize>,
    /// Shape of the observation of one port, such as `[8, 5]`.
    pub observation: Vec<usize>,
    /// Shape of an action on one port: empty, or `[outputs]`.
    pub action: Vec<usize>,
    /// Shape of the privileged observation of one port, such as `[22]`.
    pub privileged: Vec<usize>,
}

impl MultiAgentLayout {
    pub(super) fn of<E: MultiAgentEnv>(
        envs: usize,
        env: &E,
    ) -> Result<MultiAgentLayout, VectorError> {
        // One agent is enough, none are too few.
        check_len("agents", env.agents().min(1), 1)?;
        let first_of = |shape: &[usize]| shape.first().copied().unwrap_or(0);
        let rests = named_spaces(env, 0).map(|(_, space)| space.shape().get(1..).unwrap_or(&[]));
        let ports: Vec<usize> = (0..env.agents())
            .map(|agent| first_of(env.observation_space(agent).shape()))
            .collect();
        for (agent, &ports) in ports.iter().enumerate() {
            for ((what, space), rest) in named_spaces(env, agent).into_iter().zip(rests) {
                match space.shape().split_first() {
                    Some((first, others)) if *first == ports && others == rest => {}
                    _ => {
                        let shape = space.shape().to_vec();
                        return Err(VectorError::Agents { agent, what, shape });
                    }
                }
            }
        }
        let [observation, action, privileged] = rests.map(<[usize]>::to_vec);
        Ok(MultiAgentLayout {
            envs,
            ports,
            observation,
            action,
            privileged,
        })
    }

    /// Number of agents of an environment.
    pub fn agents(&self) -> usize {
        self.ports.len()
    }

    /// Ports of the agent that has the most.
    pub fn max_ports(&self) -> usize {
        self.ports.iter().copied().max().unwrap_or(0)
    }

    /// Returns the number of values of one agent's observation, padding included.
    pub fn observation_len(&self) -> usize {
        self.max_ports() * self.observation.iter().product::<usize>()
    }

    /// Values of one agent's action, padding included.
    pub fn action_len(&self) -> usize {
        self.max_ports() * self.action.iter().product::<usize>()
    }

    /// Values of one agent's privileged observation, padding included.
    pub fn privileged_len(&self) -> usize {
        self.max_ports() * self.privileged.iter().product::<usize>()
    }
}

/// A layout, whose sizes are the same for one and for several agents.
pub trait Shape: Clone {
    /// Returns the sizes of the arrays.
    fn widths(&self) -> Widths;
}

impl Shape for Layout {
    /// One agent is treated as one with a single port, so that it has no padding.
    fn widths(&self) -> Widths {
        Widths {
            envs: self.envs,
            ports: vec![1],
            max_ports: 1,
            observation: self.observation_len(),
            action: self.action_len(),
            privileged: self.privileged_len(),
            parts: self.components,
        }
    }
}

impl Shape for MultiAgentLayout {
    fn widths(&self) -> Widths {
        Widths {
            envs: self.envs,
            ports: self.ports.clone(),
            max_ports: self.max_ports(),
            observation: self.observation_len(),
            action: self.action_len(),
            privileged: self.privileged_len(),
            parts: self.max_ports(),
        }
    }
}

/// Numbers of values in the arrays of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Widths {
    pub envs: usize,
    /// Number of ports of every agent.
    ports: Vec<usize>,
    max_ports: usize,
    /// Values of one agent's observation, padding included.
    pub observation: usize,
    /// Values of one agent's action, padding included.
    pub action: usize,
    /// Values of one agent's privileged observation, padding included.
    pub privileged: usize,
    /// Components of one agent's reward, padding included.
    pub parts: usize,
}

/// Numbers of values that one environment has in a column.
impl Widths {
    pub fn one(&self) -> usize {
        1
    }

    pub fn agents(&self) -> usize {
        self.ports.len()
    }

    pub fn observations(&self) -> usize {
        self.agents() * self.observation
    }

    pub fn actions(&self) -> usize {
        self.agents() * self.action
    }

    pub fn all_privileged(&self) -> usize {
        self.agents() * self.privileged
    }

    pub fn all_parts(&self) -> usize {
        self.agents() * self.parts
    }
}

impl Widths {
    /// Returns the position of an agent's values, without padding, in an array with `width` values for every agent of
    /// every environment.
    pub fn own(&self, env: usize, agent: usize, width: usize) -> Range<usize> {
        let start = (env * self.agents() + agent) * width;
        start..start + width / self.max_ports.max(1) * self.ports[agent]
    }
}
