//! The contiguous memory that a step of several multi-agent environments writes to.

use crate::gym::multi_agent::named_spaces;
use crate::gym::vector::{Rows, check_len, row};
use crate::gym::{EpisodeStats, MultiAgentEnv, Space, VectorError};

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
        let first_of = |shape: &[usize]| shape.first().copied().unwrap_or(0);
        let rest_of = |shape: &[usize]| shape.get(1..).unwrap_or(&[]).to_vec();
        let layout = MultiAgentLayout {
            envs,
            ports: (0..env.agents())
                .map(|agent| first_of(env.observation_space(agent).shape()))
                .collect(),
            observation: rest_of(env.observation_space(0).shape()),
            action: rest_of(env.action_space(0).shape()),
            privileged: rest_of(env.privileged_space(0).shape()),
        };
        for (agent, &ports) in layout.ports.iter().enumerate() {
            let rests = [&layout.observation, &layout.action, &layout.privileged];
            for ((what, space), rest) in named_spaces(env, agent).into_iter().zip(rests) {
                check_shape(agent, what, space, ports, rest)?;
            }
        }
        Ok(layout)
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

    /// Returns an agent's own part of `values`, which has room for the ports of any agent.
    pub(super) fn own<'a, T>(&self, agent: usize, values: &'a [T]) -> &'a [T] {
        &values[..self.own_len(agent, values.len())]
    }

    fn own_mut<'a, T>(&self, agent: usize, values: &'a mut [T]) -> &'a mut [T] {
        let len = self.own_len(agent, values.len());
        &mut values[..len]
    }

    fn own_len(&self, agent: usize, padded: usize) -> usize {
        padded / self.max_ports().max(1) * self.ports[agent]
    }
}

fn check_shape(
    agent: usize,
    what: &'static str,
    space: &Space,
    ports: usize,
    rest: &[usize],
) -> Result<(), VectorError> {
    match space.shape().split_first() {
        Some((first, others)) if *first == ports && others == rest => Ok(()),
        _ => Err(VectorError::Agents {
            agent,
            what,
            shape: space.shape().to_vec(),
        }),
    }
}

/// Results of one step of all environments, by environment and agent.
/// [`MultiAgentVectorEnv::buffers`](super::MultiAgentVectorEnv::buffers) allocates them once. A step overwrites only
/// the rows that it changes: the rows of an agent whose turn it is not keep the values of its last turn. `ports` is
/// [`MultiAgentLayout::max_ports`].
#[derive(Clone, Debug, PartialEq)]
pub struct MultiAgentBuffers {
    /// `[envs]`: the agent whose decision is due. If an episode is over and none has begun, the agent of the last
    /// decision.
    pub turns: Vec<usize>,
    /// `[envs, agents, ports, …]`, such as `[envs, agents, ports, 8, 5]`: the observation of each agent at its last
    /// turn.
    pub observations: Vec<f32>,
    /// `[envs, agents, ports, …]`, such as `[envs, agents, ports, 22]`; belongs to `observations`.
    pub privileged: Vec<f32>,
    /// `[envs, agents]`: the reward of each agent's last interval.
    pub rewards: Vec<f64>,
    /// `[envs, agents, ports]`: the rewards in parts.
    pub port_rewards: Vec<f32>,
    /// `[envs, agents]`: factor of the value of the observation at the end of the interval.
    pub discounts: Vec<f32>,
    /// `[envs, agents]`: weight of the entropy bonus.
    pub entropy_weights: Vec<f32>,
    /// `[envs, agents]`: simulated duration in picoseconds.
    pub elapsed_ps: Vec<u64>,
    /// `[envs, agents]`: true if this step ended an interval of the agent, from a decision of its own to its next turn
    /// or the end of the episode. Only these rows are new transitions.
    pub ended: Vec<bool>,
    /// `[envs]`: the episode reached its end; do not bootstrap.
    pub terminated: Vec<bool>,
    /// `[envs]`: the episode was cut short; bootstrap, for every agent.
    pub truncated: Vec<bool>,
    /// `[envs]`: the rows hold the beginning of an episode and no transition.
    pub resets: Vec<bool>,
    /// Same shape as `observations`: the last ones of the ended episode. Written where an episode ended under
    /// [`AutoresetMode::SameStep`](crate::gym::AutoresetMode::SameStep), stale elsewhere.
    pub final_observations: Vec<f32>,
    /// Same shape as `privileged`; belongs to `final_observations`.
    pub final_privileged: Vec<f32>,
    /// `[envs]`: statistics of the episodes that ended in this step.
    pub infos: Vec<Option<EpisodeStats>>,
    layout: MultiAgentLayout,
}

impl MultiAgentBuffers {
    /// Buffers for environments of this layout, all zero.
    pub fn new(layout: &MultiAgentLayout) -> MultiAgentBuffers {
        let envs = layout.envs;
        let agents = envs * layout.agents();
        let observations = agents * layout.observation_len();
        let privileged = agents * layout.privileged_len();
        MultiAgentBuffers {
            turns: vec![0; envs],
            observations: vec![0.0; observations],
            privileged: vec![0.0; privileged],
            rewards: vec![0.0; agents],
            port_rewards: vec![0.0; agents * layout.max_ports()],
            discounts: vec![0.0; agents],
            entropy_weights: vec![0.0; agents],
            elapsed_ps: vec![0; agents],
            ended: vec![false; agents],
            terminated: vec![false; envs],
            truncated: vec![false; envs],
            resets: vec![false; envs],
            final_observations: vec![0.0; observations],
            final_privileged: vec![0.0; privileged],
            infos: vec![None; envs],
            layout: layout.clone(),
        }
    }

    /// Returns the shapes.
    pub fn layout(&self) -> &MultiAgentLayout {
        &self.layout
    }

    /// Position of an agent in the fields of shape `[envs, agents]`.
    pub fn at(&self, env: usize, agent: usize) -> usize {
        env * self.layout.agents() + agent
    }

    /// Returns the observation of an agent at its last turn, without padding.
    ///
    /// # Panics
    /// This and the following methods panic when there is no such environment or agent.
    pub fn observation(&self, env: usize, agent: usize) -> &[f32] {
        let width = self.layout.observation_len();
        self.own(&self.observations, env, agent, width)
    }

    /// The privileged observation of an agent, without padding.
    pub fn privileged(&self, env: usize, agent: usize) -> &[f32] {
        self.own(&self.privileged, env, agent, self.layout.privileged_len())
    }

    /// The last observation of an agent in the episode that ended in this step, without padding, under
    /// [`AutoresetMode::SameStep`](crate::gym::AutoresetMode::SameStep).
    pub fn final_observation(&self, env: usize, agent: usize) -> &[f32] {
        let width = self.layout.observation_len();
        self.own(&self.final_observations, env, agent, width)
    }

    /// The reward of an agent's last interval by port.
    pub fn port_rewards(&self, env: usize, agent: usize) -> &[f32] {
        self.own(&self.port_rewards, env, agent, self.layout.max_ports())
    }

    fn own<'a>(&self, values: &'a [f32], env: usize, agent: usize, width: usize) -> &'a [f32] {
        self.layout
            .own(agent, row(values, self.at(env, agent), width))
    }

    /// Refuses buffers without the shapes of `layout`: callers can replace the fields.
    pub(super) fn check(&self, layout: &MultiAgentLayout) -> Result<(), VectorError> {
        let envs = layout.envs;
        let agents = envs * layout.agents();
        let observations = agents * layout.observation_len();
        let privileged = agents * layout.privileged_len();
        let parts = agents * layout.max_ports();
        [
            ("buffer of turns", self.turns.len(), envs),
            (
                "buffer of observations",
                self.observations.len(),
                observations,
            ),
            (
                "buffer of final observations",
                self.final_observations.len(),
                observations,
            ),
            (
                "buffer of privileged observations",
                self.privileged.len(),
                privileged,
            ),
            (
                "buffer of final privileged observations",
                self.final_privileged.len(),
                privileged,
            ),
            ("buffer of port rewards", self.port_rewards.len(), parts),
            ("buffer of rewards", self.rewards.len(), agents),
            ("buffer of discounts", self.discounts.len(), agents),
            (
                "buffer of entropy weights",
                self.entropy_weights.len(),
                agents,
            ),
            ("buffer of durations", self.elapsed_ps.len(), agents),
            ("buffer of ended intervals", self.ended.len(), agents),
            ("buffer of terminations", self.terminated.len(), envs),
            ("buffer of truncations", self.truncated.len(), envs),
            ("buffer of resets", self.resets.len(), envs),
            ("buffer of infos", self.infos.len(), envs),
        ]
        .into_iter()
        .try_for_each(|(what, given, expected)| check_len(what, given, expected))
    }

    /// The rows, to be written in parallel. The lengths must have been checked against `layout`.
    pub(super) fn rows<'a>(&'a mut self, layout: &'a MultiAgentLayout) -> Vec<Row<'a>> {
        let agents = layout.agents();
        let observation = agents * layout.observation_len();
        let privileged = agents * layout.privileged_len();
        let mut observations = Rows(&mut self.observations, observation);
        let mut privileged_rows = Rows(&mut self.privileged, privileged);
        let mut rewards = Rows(&mut self.rewards, agents);
        let mut port_rewards = Rows(&mut self.port_rewards, agents * layout.max_ports());
        let mut discounts = Rows(&mut self.discounts, agents);
        let mut entropy_weights = Rows(&mut self.entropy_weights, agents);
        let mut elapsed_ps = Rows(&mut self.elapsed_ps, agents);
        let mut ended = Rows(&mut self.ended, agents);
        let mut final_observations = Rows(&mut self.final_observations, observation);
        let mut final_privileged = Rows(&mut self.final_privileged, privileged);
        let flags = self.terminated.iter_mut().zip(&mut self.truncated);
        let others = self.turns.iter_mut().zip(&mut self.infos);
        flags
            .zip(&mut self.resets)
            .zip(others)
            .map(|(((terminated, truncated), reset), (turn, info))| Row {
                layout,
                turn,
                observations: observations.take_row(),
                privileged: privileged_rows.take_row(),
                rewards: rewards.take_row(),
                port_rewards: port_rewards.take_row(),
                discounts: discounts.take_row(),
                entropy_weights: entropy_weights.take_row(),
                elapsed_ps: elapsed_ps.take_row(),
                ended: ended.take_row(),
                final_observations: final_observations.take_row(),
                final_privileged: final_privileged.take_row(),
                terminated,
                truncated,
                reset,
                info,
            })
            .collect()
    }
}

/// The rows that one environment writes, agent after agent.
pub(super) struct Row<'a> {
    layout: &'a MultiAgentLayout,
    pub turn: &'a mut usize,
    observations: &'a mut [f32],
    privileged: &'a mut [f32],
    rewards: &'a mut [f64],
    port_rewards: &'a mut [f32],
    discounts: &'a mut [f32],
    entropy_weights: &'a mut [f32],
    elapsed_ps: &'a mut [u64],
    pub ended: &'a mut [bool],
    final_observations: &'a mut [f32],
    final_privileged: &'a mut [f32],
    pub terminated: &'a mut bool,
    pub truncated: &'a mut bool,
    pub reset: &'a mut bool,
    pub info: &'a mut Option<EpisodeStats>,
}

impl Row<'_> {
    /// Resets the flags.
    pub fn clear(&mut self) {
        self.ended.fill(false);
        *self.terminated = false;
        *self.truncated = false;
        *self.reset = false;
        *self.info = None;
    }

    /// Writes the observation of an agent.
    pub fn write_state(&mut self, env: &impl MultiAgentEnv, agent: usize) {
        let (observations, privileged) = (&mut *self.observations, &mut *self.privileged);
        write_state(self.layout, env, agent, observations, privileged);
    }

    /// Writes the observation of an agent as the last one of its episode.
    pub fn write_final_state(&mut self, env: &impl MultiAgentEnv, agent: usize) {
        let observations = &mut *self.final_observations;
        write_state(self.layout, env, agent, observations, self.final_privileged);
    }

    /// Writes the last interval of an agent.
    pub fn write_interval(&mut self, env: &impl MultiAgentEnv, agent: usize) {
        let info = env.info(agent);
        let parts = agent_row(self.port_rewards, agent, self.layout.max_ports());
        self.layout
            .own_mut(agent, parts)
            .copy_from_slice(&info.port_rewards);
        self.rewards[agent] = env.reward(agent);
        self.discounts[agent] = info.discount;
        self.entropy_weights[agent] = info.entropy_weight;
        self.elapsed_ps[agent] = info.elapsed.as_ps();
    }
}

fn write_state(
    layout: &MultiAgentLayout,
    env: &impl MultiAgentEnv,
    agent: usize,
    observations: &mut [f32],
    privileged: &mut [f32],
) {
    let observation = agent_row(observations, agent, layout.observation_len());
    layout
        .own_mut(agent, observation)
        .copy_from_slice(env.observation(agent));
    let privileged = agent_row(privileged, agent, layout.privileged_len());
    layout
        .own_mut(agent, privileged)
        .copy_from_slice(&env.info(agent).privileged);
}

fn agent_row(values: &mut [f32], agent: usize, width: usize) -> &mut [f32] {
    &mut values[agent * width..(agent + 1) * width]
}
