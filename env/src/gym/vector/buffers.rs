//! The contiguous memory that a step of a vector environment writes to, as columns with a row for every environment.

use super::layout::{Layout, MultiAgentLayout, Shape, Widths};
use super::{VectorError, check_len};
use crate::gym::{EpisodeStats, Info};

/// Memory that a [`Vector`](super::Vector) allocates for its results.
pub trait Buffers {
    /// Shapes of the columns.
    type Layout: Shape;
    /// The columns as slices.
    type Slices<'a>: Columns
    where
        Self: 'a;

    /// Returns buffers for environments of this layout, all zero.
    fn new(layout: &Self::Layout) -> Self;

    /// Returns all columns as slices.
    fn slices(&mut self) -> Self::Slices<'_>;
}

/// Columns that belong to the caller of a step.
pub trait Columns {
    /// Refuses columns of other lengths, because callers choose them.
    fn check(&self, widths: &Widths) -> Result<(), VectorError>;

    /// Returns the rows, to be written in parallel. The lengths must have been checked.
    fn rows<'a>(self, widths: &'a Widths) -> Vec<Row<'a>>
    where
        Self: 'a;
}

/// Defines buffers and their slices from a list of columns. A column has a type, a method of [`Widths`] that returns
/// its number of values per environment, and a name for errors.
macro_rules! columns {
    (
        $(#[$doc:meta])* $buffers:ident,
        $(#[$slices_doc:meta])* $slices:ident, $layout:ident;
        $($(#[$column_doc:meta])* $column:ident: $type:ty, $width:ident, $name:literal;)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $buffers {
            $($(#[$column_doc])* pub $column: Vec<$type>,)*
            layout: $layout,
            widths: Widths,
        }

        $(#[$slices_doc])*
        #[derive(Debug, PartialEq)]
        #[allow(missing_docs, reason = "the fields are those of the buffers")]
        pub struct $slices<'a> {
            $(pub $column: &'a mut [$type],)*
        }

        impl $buffers {
            /// Buffers for environments of this layout, all zero.
            pub fn new(layout: &$layout) -> $buffers {
                let widths = layout.widths();
                $buffers {
                    $($column: vec![<$type>::default(); widths.envs * widths.$width()],)*
                    layout: layout.clone(),
                    widths,
                }
            }

            /// Returns the shapes.
            pub fn layout(&self) -> &$layout {
                &self.layout
            }

            /// All fields as slices.
            pub fn slices(&mut self) -> $slices<'_> {
                $slices { $($column: &mut self.$column,)* }
            }
        }

        impl Buffers for $buffers {
            type Layout = $layout;
            type Slices<'a> = $slices<'a>;

            fn new(layout: &$layout) -> $buffers {
                $buffers::new(layout)
            }

            fn slices(&mut self) -> $slices<'_> {
                $buffers::slices(self)
            }
        }

        impl Columns for $slices<'_> {
            fn check(&self, widths: &Widths) -> Result<(), VectorError> {
                $(
                    let expected = widths.envs * widths.$width();
                    check_len(concat!("buffer of ", $name), self.$column.len(), expected)?;
                )*
                Ok(())
            }

            fn rows<'a>(self, widths: &'a Widths) -> Vec<Row<'a>>
            where
                Self: 'a,
            {
                $(let mut $column = self.$column;)*
                let row = |_| Row {
                    $($column: $column.split_off_mut(..widths.$width()).unwrap_or_default(),)*
                    ..Row::empty(widths)
                };
                (0..widths.envs).map(row).collect()
            }
        }
    };
}

columns! {
    /// Results of one step of all environments. Row `i` of every field belongs to environment `i`.
    /// [`VectorEnv::buffers`](super::VectorEnv::buffers) allocates them once; every step overwrites
    /// them.
    StepBuffers,
    /// Memory of the caller that a step of a [`VectorEnv`](super::VectorEnv) writes to: the fields of
    /// [`StepBuffers`] as slices.
    StepSlices, Layout;

    /// `[envs, observation…]`, such as `[envs, ports, 8, 5]`: the observations on which to act next.
    observations: f32, observations, "observations";
    /// `[envs, privileged…]`, such as `[envs, ports, 22]`; belongs to `observations`.
    privileged: f32, all_privileged, "privileged observations";
    /// `[envs]`: the rewards of the step.
    rewards: f64, agents, "rewards";
    /// `[envs, components]`, such as `[envs, ports]`: the rewards in parts.
    port_rewards: f32, all_parts, "port rewards";
    /// `[envs]`: factor of the value of the next observation.
    discounts: f32, agents, "discounts";
    /// `[envs]`: weight of the entropy bonus.
    entropy_weights: f32, agents, "entropy weights";
    /// `[envs]`: simulated duration in picoseconds.
    elapsed_ps: u64, agents, "durations";
    /// `[envs]`: the episode reached its end; do not bootstrap.
    terminated: bool, one, "terminations";
    /// `[envs]`: the episode was cut short; bootstrap.
    truncated: bool, one, "truncations";
    /// `[envs]`: the row holds the beginning of an episode and no transition.
    resets: bool, one, "resets";
    /// Same shape as `observations`: the last observation of the ended episode. Written where an episode ended under
    /// [`AutoresetMode::SameStep`](crate::gym::AutoresetMode::SameStep), stale elsewhere.
    final_observations: f32, observations, "final observations";
    /// Same shape as `privileged`; belongs to `final_observations`.
    final_privileged: f32, all_privileged, "final privileged observations";
    /// `[envs]`: statistics of the episodes that ended in this step.
    infos: Option<EpisodeStats>, one, "infos";
}

columns! {
    /// Results of one step of all environments, by environment and agent.
    /// [`MultiAgentVectorEnv::buffers`](super::MultiAgentVectorEnv::buffers) allocates them once. A step overwrites
    /// only the rows that it changes: the rows of an agent whose turn it is not keep the values of its last turn.
    /// `ports` is [`MultiAgentLayout::max_ports`].
    MultiAgentBuffers,
    /// Memory of the caller that a step of a [`MultiAgentVectorEnv`](super::MultiAgentVectorEnv) writes to: the fields
    /// of [`MultiAgentBuffers`] as slices.
    MultiAgentSlices, MultiAgentLayout;

    /// `[envs]`: the agent whose decision is due. If an episode is over and none has begun, the agent of the last
    /// decision.
    turns: usize, one, "turns";
    /// `[envs, agents, ports, …]`, such as `[envs, agents, ports, 8, 5]`: the observation of each agent at its last
    /// turn.
    observations: f32, observations, "observations";
    /// `[envs, agents, ports, …]`, such as `[envs, agents, ports, 22]`; belongs to `observations`.
    privileged: f32, all_privileged, "privileged observations";
    /// `[envs, agents]`: the reward of each agent's last interval.
    rewards: f64, agents, "rewards";
    /// `[envs, agents, ports]`: the rewards in parts.
    port_rewards: f32, all_parts, "port rewards";
    /// `[envs, agents]`: factor of the value of the observation at the end of the interval.
    discounts: f32, agents, "discounts";
    /// `[envs, agents]`: weight of the entropy bonus.
    entropy_weights: f32, agents, "entropy weights";
    /// `[envs, agents]`: simulated duration in picoseconds.
    elapsed_ps: u64, agents, "durations";
    /// `[envs, agents]`: true if this step ended an interval of the agent, from a decision of its own to its next turn
    /// or the end of the episode. Only these rows are new transitions.
    ended: bool, agents, "ended intervals";
    /// `[envs]`: the episode reached its end; do not bootstrap.
    terminated: bool, one, "terminations";
    /// `[envs]`: the episode was cut short; bootstrap, for every agent.
    truncated: bool, one, "truncations";
    /// `[envs]`: the rows hold the beginning of an episode and no transition.
    resets: bool, one, "resets";
    /// Same shape as `observations`: the last ones of the ended episode. Written where an episode ended under
    /// [`AutoresetMode::SameStep`](crate::gym::AutoresetMode::SameStep), stale elsewhere.
    final_observations: f32, observations, "final observations";
    /// Same shape as `privileged`; belongs to `final_observations`.
    final_privileged: f32, all_privileged, "final privileged observations";
    /// `[envs]`: statistics of the episodes that ended in this step.
    infos: Option<EpisodeStats>, one, "infos";
}

impl StepBuffers {
    /// The observation of environment `env`.
    ///
    /// # Panics
    /// This and the following methods panic when there is no such environment.
    pub fn observation(&self, env: usize) -> &[f32] {
        &self.observations[self.widths.own(env, 0, self.widths.observation)]
    }

    /// The privileged observation of environment `env`.
    pub fn privileged(&self, env: usize) -> &[f32] {
        &self.privileged[self.widths.own(env, 0, self.widths.privileged)]
    }

    /// The last observation of the episode that environment `env` ended in this step, under
    /// [`AutoresetMode::SameStep`](crate::gym::AutoresetMode::SameStep).
    pub fn final_observation(&self, env: usize) -> &[f32] {
        &self.final_observations[self.widths.own(env, 0, self.widths.observation)]
    }

    /// The reward components of environment `env`.
    pub fn port_rewards(&self, env: usize) -> &[f32] {
        &self.port_rewards[self.widths.own(env, 0, self.widths.parts)]
    }
}

impl MultiAgentBuffers {
    /// Position of an agent in the fields of shape `[envs, agents]`.
    pub fn at(&self, env: usize, agent: usize) -> usize {
        env * self.widths.agents() + agent
    }

    /// Returns the observation of an agent at its last turn, without padding.
    ///
    /// # Panics
    /// This and the following methods panic when there is no such environment or agent.
    pub fn observation(&self, env: usize, agent: usize) -> &[f32] {
        &self.observations[self.widths.own(env, agent, self.widths.observation)]
    }

    /// The privileged observation of an agent, without padding.
    pub fn privileged(&self, env: usize, agent: usize) -> &[f32] {
        &self.privileged[self.widths.own(env, agent, self.widths.privileged)]
    }

    /// The last observation of an agent in the episode that ended in this step, without padding, under
    /// [`AutoresetMode::SameStep`](crate::gym::AutoresetMode::SameStep).
    pub fn final_observation(&self, env: usize, agent: usize) -> &[f32] {
        &self.final_observations[self.widths.own(env, agent, self.widths.observation)]
    }

    /// The reward of an agent's last interval by port.
    pub fn port_rewards(&self, env: usize, agent: usize) -> &[f32] {
        &self.port_rewards[self.widths.own(env, agent, self.widths.parts)]
    }
}

/// The values of one environment in all columns, agent after agent. Columns that buffers do not have are empty.
pub struct Row<'a> {
    pub widths: &'a Widths,
    pub turns: &'a mut [usize],
    pub observations: &'a mut [f32],
    pub privileged: &'a mut [f32],
    pub rewards: &'a mut [f64],
    pub port_rewards: &'a mut [f32],
    pub discounts: &'a mut [f32],
    pub entropy_weights: &'a mut [f32],
    pub elapsed_ps: &'a mut [u64],
    pub ended: &'a mut [bool],
    pub terminated: &'a mut [bool],
    pub truncated: &'a mut [bool],
    pub resets: &'a mut [bool],
    pub final_observations: &'a mut [f32],
    pub final_privileged: &'a mut [f32],
    pub infos: &'a mut [Option<EpisodeStats>],
}

impl<'a> Row<'a> {
    fn empty(widths: &'a Widths) -> Row<'a> {
        Row {
            widths,
            turns: &mut [],
            observations: &mut [],
            privileged: &mut [],
            rewards: &mut [],
            port_rewards: &mut [],
            discounts: &mut [],
            entropy_weights: &mut [],
            elapsed_ps: &mut [],
            ended: &mut [],
            terminated: &mut [],
            truncated: &mut [],
            resets: &mut [],
            final_observations: &mut [],
            final_privileged: &mut [],
            infos: &mut [],
        }
    }

    /// Clears everything that belongs to a single step, and not to an agent's last interval.
    pub fn clear(&mut self) {
        self.ended.fill(false);
        self.terminated.fill(false);
        self.truncated.fill(false);
        self.resets.fill(false);
        self.infos.fill(None);
    }

    /// Writes the observation of an agent.
    pub fn write_state(&mut self, agent: usize, observation: &[f32], info: &Info) {
        let widths = self.widths;
        self.observations[widths.own(0, agent, widths.observation)].copy_from_slice(observation);
        self.privileged[widths.own(0, agent, widths.privileged)].copy_from_slice(&info.privileged);
    }

    /// Writes the observation of an agent as the last one of its episode.
    pub fn write_final_state(&mut self, agent: usize, observation: &[f32], info: &Info) {
        let widths = self.widths;
        let own = widths.own(0, agent, widths.observation);
        self.final_observations[own].copy_from_slice(observation);
        let own = widths.own(0, agent, widths.privileged);
        self.final_privileged[own].copy_from_slice(&info.privileged);
    }

    /// Writes the last interval of an agent.
    pub fn write_interval(&mut self, agent: usize, reward: f64, info: &Info) {
        let own = self.widths.own(0, agent, self.widths.parts);
        self.port_rewards[own].copy_from_slice(&info.port_rewards);
        self.rewards[agent] = reward;
        self.discounts[agent] = info.discount;
        self.entropy_weights[agent] = info.entropy_weight;
        self.elapsed_ps[agent] = info.elapsed.as_ps();
    }
}
