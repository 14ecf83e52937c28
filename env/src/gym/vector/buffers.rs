//! The contiguous memory that a step of a vector environment writes to.

use super::{Env, EpisodeStats, VectorError, check_len};

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
        Layout {
            envs,
            observation: env.observation_space().shape().to_vec(),
            action: env.action_space().shape().to_vec(),
            privileged: env
                .privileged_space()
                .map_or(Vec::new(), |space| space.shape().to_vec()),
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
        if self.privileged.is_empty() {
            0
        } else {
            self.privileged.iter().product()
        }
    }
}

/// Results of one step of all environments. Row `i` of every field belongs to environment `i`.
/// [`VectorEnv::buffers`](super::VectorEnv::buffers) allocates them once; every step overwrites
/// them.
#[derive(Clone, Debug, PartialEq)]
pub struct StepBuffers {
    /// `[envs, observation…]`, such as `[envs, ports, 8, 5]`: the observations on which to act next.
    pub observations: Vec<f32>,
    /// `[envs, privileged…]`, such as `[envs, ports, 22]`; belongs to `observations`.
    pub privileged: Vec<f32>,
    /// `[envs]`: the rewards of the step.
    pub rewards: Vec<f64>,
    /// `[envs, components]`, such as `[envs, ports]`: the rewards in parts.
    pub port_rewards: Vec<f32>,
    /// `[envs]`: factor of the value of the next observation.
    pub discounts: Vec<f32>,
    /// `[envs]`: weight of the entropy bonus.
    pub entropy_weights: Vec<f32>,
    /// `[envs]`: simulated duration in picoseconds.
    pub elapsed_ps: Vec<u64>,
    /// `[envs]`: the episode reached its end; do not bootstrap.
    pub terminated: Vec<bool>,
    /// `[envs]`: the episode was cut short; bootstrap.
    pub truncated: Vec<bool>,
    /// `[envs]`: the row holds the beginning of an episode and no transition.
    pub resets: Vec<bool>,
    /// Same shape as `observations`: the last observation of the ended episode. Written where an episode ended under
    /// [`AutoresetMode::SameStep`](super::AutoresetMode::SameStep), stale elsewhere.
    pub final_observations: Vec<f32>,
    /// Same shape as `privileged`; belongs to `final_observations`.
    pub final_privileged: Vec<f32>,
    /// `[envs]`: statistics of the episodes that ended in this step.
    pub infos: Vec<Option<EpisodeStats>>,
    layout: Layout,
}

impl StepBuffers {
    /// Buffers for environments of this layout, all zero.
    pub fn new(layout: &Layout) -> StepBuffers {
        let envs = layout.envs;
        let (observations, privileged) = (
            envs * layout.observation_len(),
            envs * layout.privileged_len(),
        );
        StepBuffers {
            observations: vec![0.0; observations],
            privileged: vec![0.0; privileged],
            rewards: vec![0.0; envs],
            port_rewards: vec![0.0; envs * layout.components],
            discounts: vec![0.0; envs],
            entropy_weights: vec![0.0; envs],
            elapsed_ps: vec![0; envs],
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
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The observation of environment `env`.
    ///
    /// # Panics
    /// When there is no such environment.
    pub fn observation(&self, env: usize) -> &[f32] {
        row(&self.observations, env, self.layout.observation_len())
    }

    /// The privileged observation of environment `env`.
    ///
    /// # Panics
    /// When there is no such environment.
    pub fn privileged(&self, env: usize) -> &[f32] {
        row(&self.privileged, env, self.layout.privileged_len())
    }

    /// The last observation of the episode that environment `env` ended in this step, under
    /// [`AutoresetMode::SameStep`](super::AutoresetMode::SameStep).
    ///
    /// # Panics
    /// When there is no such environment.
    pub fn final_observation(&self, env: usize) -> &[f32] {
        row(&self.final_observations, env, self.layout.observation_len())
    }

    /// The reward components of environment `env`.
    ///
    /// # Panics
    /// When there is no such environment.
    pub fn port_rewards(&self, env: usize) -> &[f32] {
        row(&self.port_rewards, env, self.layout.components)
    }

    /// All fields as slices.
    pub fn slices(&mut self) -> StepSlices<'_> {
        StepSlices {
            observations: &mut self.observations,
            privileged: &mut self.privileged,
            rewards: &mut self.rewards,
            port_rewards: &mut self.port_rewards,
            discounts: &mut self.discounts,
            entropy_weights: &mut self.entropy_weights,
            elapsed_ps: &mut self.elapsed_ps,
            terminated: &mut self.terminated,
            truncated: &mut self.truncated,
            resets: &mut self.resets,
            final_observations: &mut self.final_observations,
            final_privileged: &mut self.final_privileged,
            infos: &mut self.infos,
        }
    }
}

/// Memory of the caller that a step of a [`VectorEnv`](super::VectorEnv) writes to: the fields of [`StepBuffers`] as
/// slices.
#[derive(Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are those of StepBuffers")]
pub struct StepSlices<'a> {
    pub observations: &'a mut [f32],
    pub privileged: &'a mut [f32],
    pub rewards: &'a mut [f64],
    pub port_rewards: &'a mut [f32],
    pub discounts: &'a mut [f32],
    pub entropy_weights: &'a mut [f32],
    pub elapsed_ps: &'a mut [u64],
    pub terminated: &'a mut [bool],
    pub truncated: &'a mut [bool],
    pub resets: &'a mut [bool],
    pub final_observations: &'a mut [f32],
    pub final_privileged: &'a mut [f32],
    pub infos: &'a mut [Option<EpisodeStats>],
}

impl<'a> StepSlices<'a> {
    /// Refuses buffers without the shapes of `layout`, because callers choose them.
    pub(super) fn check(&self, layout: &Layout) -> Result<(), VectorError> {
        let envs = layout.envs;
        let observations = envs * layout.observation_len();
        let privileged = envs * layout.privileged_len();
        let lengths = [
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
            (
                "buffer of port rewards",
                self.port_rewards.len(),
                envs * layout.components,
            ),
            ("buffer of rewards", self.rewards.len(), envs),
            ("buffer of discounts", self.discounts.len(), envs),
            (
                "buffer of entropy weights",
                self.entropy_weights.len(),
                envs,
            ),
            ("buffer of durations", self.elapsed_ps.len(), envs),
            ("buffer of terminations", self.terminated.len(), envs),
            ("buffer of truncations", self.truncated.len(), envs),
            ("buffer of resets", self.resets.len(), envs),
            ("buffer of infos", self.infos.len(), envs),
        ];
        lengths
            .into_iter()
            .try_for_each(|(what, given, expected)| check_len(what, given, expected))
    }

    /// The rows, to be written in parallel. The lengths must have been checked.
    pub(super) fn rows(self, layout: &Layout) -> Vec<Row<'a>> {
        let (observation, privileged) = (layout.observation_len(), layout.privileged_len());
        let mut observations = Rows(self.observations, observation);
        let mut privileged_rows = Rows(self.privileged, privileged);
        let mut port_rewards = Rows(self.port_rewards, layout.components);
        let mut final_observations = Rows(self.final_observations, observation);
        let mut final_privileged = Rows(self.final_privileged, privileged);
        let flags = self
            .terminated
            .iter_mut()
            .zip(self.truncated)
            .zip(self.resets);
        let weights = self.discounts.iter_mut().zip(self.entropy_weights);
        let scalars = self.rewards.iter_mut().zip(self.elapsed_ps).zip(self.infos);
        flags
            .zip(weights)
            .zip(scalars)
            .map(
                |((((terminated, truncated), reset), (discount, entropy_weight)), scalars)| {
                    let ((reward, elapsed_ps), info) = scalars;
                    Row {
                        observation: observations.take_row(),
                        privileged: privileged_rows.take_row(),
                        port_rewards: port_rewards.take_row(),
                        final_observation: final_observations.take_row(),
                        final_privileged: final_privileged.take_row(),
                        reward,
                        discount,
                        entropy_weight,
                        elapsed_ps,
                        terminated,
                        truncated,
                        reset,
                        info,
                    }
                },
            )
            .collect()
    }
}

/// The rows that one environment writes.
pub(super) struct Row<'a> {
    pub observation: &'a mut [f32],
    pub privileged: &'a mut [f32],
    pub port_rewards: &'a mut [f32],
    pub final_observation: &'a mut [f32],
    pub final_privileged: &'a mut [f32],
    pub reward: &'a mut f64,
    pub discount: &'a mut f32,
    pub entropy_weight: &'a mut f32,
    pub elapsed_ps: &'a mut u64,
    pub terminated: &'a mut bool,
    pub truncated: &'a mut bool,
    pub reset: &'a mut bool,
    pub info: &'a mut Option<EpisodeStats>,
}

/// Like `chunks_exact_mut`, but rows may be empty.
pub(in crate::gym) struct Rows<'a, T>(pub &'a mut [T], pub usize);

impl<'a, T> Rows<'a, T> {
    pub(in crate::gym) fn take_row(&mut self) -> &'a mut [T] {
        let (row, rest) = std::mem::take(&mut self.0).split_at_mut(self.1);
        self.0 = rest;
        row
    }
}

pub(in crate::gym) fn row(values: &[f32], row: usize, width: usize) -> &[f32] {
    &values[row * width..(row + 1) * width]
}
