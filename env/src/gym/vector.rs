//! Several environments of one kind, stepped in parallel.

use rayon::prelude::*;

use super::{Autoreset, AutoresetMode, AutoresetSnapshot, AutoresetStep, Env, EnvError};
use super::{EpisodeStats, Reset, ResetOptions, Resumable};

mod buffers;

use buffers::Row;
pub use buffers::{Layout, StepBuffers, StepSlices};
pub(super) use buffers::{Rows, row};

/// `N` environments of one kind, stepped in parallel on the current rayon pool, with the semantics
/// of Gymnasium's `VectorEnv` in all three [`AutoresetMode`]s.
///
/// Results depend on the seeds and the actions alone: environments share no state, so the number of
/// threads changes nothing.
///
/// # Panics
/// [`reset`](VectorEnv::reset) and [`step`](VectorEnv::step) panic when an environment returns
/// slices of other lengths than its spaces have; [`check_env`](super::checker::check_env) finds
/// such environments.
///
/// There are two ways to use it. [`VectorEnv::step`] moves all environments by one step and waits
/// for the slowest. [`VectorEnv::par_map`] gives each environment to its own closure, which may step
/// it any number of times: for agents that do not act on a common batch.
///
/// ```
/// use bufgym_env::gym::{AutoresetMode, MakeOptions, ResetOptions, VectorSeed, make_vec};
///
/// let options = MakeOptions::default();
/// let mut envs = make_vec("bufgym/NDT-16x1G-v0", 4, AutoresetMode::NextStep, &options)?;
/// let mut buffers = envs.buffers();
/// envs.reset(VectorSeed::Keep, &ResetOptions::default(), &mut buffers)?;
/// let actions = vec![0.0; 4 * 16];
/// envs.step(&actions, &mut buffers)?;
/// assert_eq!(buffers.observations.len(), 4 * 16 * 8 * 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct VectorEnv<E> {
    envs: Vec<Autoreset<E>>,
    mode: AutoresetMode,
    layout: Layout,
}

/// The seeds of a reset of many environments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VectorSeed<'a> {
    /// Every environment continues with its own sequence of episodes.
    #[default]
    Keep,
    /// Environment `i` gets `seed + i`, as in Gymnasium.
    From(u64),
    /// Environment `i` gets its own value.
    Each(&'a [Option<u64>]),
}

impl VectorSeed<'_> {
    pub(super) fn of(self, env: usize) -> Option<u64> {
        match self {
            VectorSeed::Keep => None,
            VectorSeed::From(seed) => Some(seed.wrapping_add(env as u64)),
            VectorSeed::Each(seeds) => seeds.get(env).copied().flatten(),
        }
    }
}

/// The reason why a call on a [`VectorEnv`] failed.
#[derive(Debug, thiserror::Error)]
pub enum VectorError {
    /// One environment failed; of several, the one with the lowest index.
    #[error("environment {env}: {source}")]
    Env {
        /// Index of the environment.
        env: usize,
        /// Error of the environment.
        source: EnvError,
    },
    /// No environments were given.
    #[error("a vector environment needs at least one environment")]
    Empty,
    /// The environments differ in their spaces.
    #[error("environment {env} has another {what} than environment 0")]
    Mixed {
        /// Index of the environment.
        env: usize,
        /// Name of the space that differs.
        what: &'static str,
    },
    /// The agents of an environment differ in more than their number of ports.
    #[error(
        "agent {agent}: the {what} of shape {shape:?} does not fit: it begins with the agent's ports, \
         and the rest is the same for all agents"
    )]
    Agents {
        /// Index of the agent.
        agent: usize,
        /// Name of the space.
        what: &'static str,
        /// The shape of that space.
        shape: Vec<usize>,
    },
    /// An argument has the wrong length.
    #[error("{what}: {given} given where {expected} are needed")]
    Length {
        /// Name of the argument.
        what: &'static str,
        /// Length of the argument.
        given: usize,
        /// Required length.
        expected: usize,
    },
}

impl<E: Env> VectorEnv<E> {
    /// Combines `envs`. They have to be reset before the first step.
    ///
    /// # Errors
    /// [`VectorError::Empty`] without environments, [`VectorError::Mixed`] when their spaces
    /// differ.
    pub fn new(envs: Vec<E>, mode: AutoresetMode) -> Result<VectorEnv<E>, VectorError> {
        let first = envs.first().ok_or(VectorError::Empty)?;
        for (env, other) in envs.iter().enumerate() {
            let differs = [
                (
                    "observation space",
                    first.observation_space() != other.observation_space(),
                ),
                ("action space", first.action_space() != other.action_space()),
                (
                    "privileged space",
                    first.privileged_space() != other.privileged_space(),
                ),
                (
                    "reward",
                    first.reward_components() != other.reward_components(),
                ),
            ];
            if let Some((what, _)) = differs.into_iter().find(|(_, differs)| *differs) {
                return Err(VectorError::Mixed { env, what });
            }
        }
        let layout = Layout::of(envs.len(), first);
        let envs = envs
            .into_iter()
            .map(|env| Autoreset::new(env, mode))
            .collect();
        Ok(VectorEnv { envs, mode, layout })
    }

    /// Number of environments.
    pub fn len(&self) -> usize {
        self.envs.len()
    }

    /// Never true: a vector environment has at least one environment.
    pub fn is_empty(&self) -> bool {
        self.envs.is_empty()
    }

    /// The rule by which environments are reset.
    pub fn mode(&self) -> AutoresetMode {
        self.mode
    }

    /// Returns the shapes of the arrays that one step reads and writes.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Buffers of the right size.
    pub fn buffers(&self) -> StepBuffers {
        StepBuffers::new(&self.layout)
    }

    /// The environments.
    pub fn envs(&self) -> &[Autoreset<E>] {
        &self.envs
    }

    /// Runs `work` on every environment in parallel and returns the results in the order of the
    /// environments. `work` is given the index of the environment and the environment itself, and
    /// may step it any number of times.
    ///
    /// # Errors
    /// [`VectorError::Env`] with the first error by index; the others have run to their ends.
    pub fn par_map<T, F>(&mut self, work: F) -> Result<Vec<T>, VectorError>
    where
        T: Send,
        F: Fn(usize, &mut Autoreset<E>) -> Result<T, EnvError> + Sync,
    {
        let results: Vec<Result<T, EnvError>> = self
            .envs
            .par_iter_mut()
            .enumerate()
            .map(|(i, env)| work(i, env))
            .collect();
        first_error(results)
    }

    /// Like [`VectorEnv::par_map`], but every environment has its own companion, such as a replay shard or a random
    /// number generator.
    ///
    /// # Errors
    /// [`VectorError::Length`] when there is not one companion per environment, and as
    /// [`VectorEnv::par_map`].
    pub fn par_map_with<C, T, F>(
        &mut self,
        companions: &mut [C],
        work: F,
    ) -> Result<Vec<T>, VectorError>
    where
        C: Send,
        T: Send,
        F: Fn(usize, &mut Autoreset<E>, &mut C) -> Result<T, EnvError> + Sync,
    {
        check_len("companions", companions.len(), self.len())?;
        let results: Vec<Result<T, EnvError>> = self
            .envs
            .par_iter_mut()
            .zip(companions)
            .enumerate()
            .map(|(i, (env, companion))| work(i, env, companion))
            .collect();
        first_error(results)
    }

    /// Begins an episode in every environment. Observations and privileged observations are
    /// written, rewards and flags cleared.
    ///
    /// # Errors
    /// [`VectorError`] when an argument has the wrong length or an environment fails.
    pub fn reset(
        &mut self,
        seed: VectorSeed<'_>,
        options: &ResetOptions,
        buffers: &mut StepBuffers,
    ) -> Result<(), VectorError> {
        let all = vec![true; self.len()];
        self.reset_where(&all, seed, options, buffers)
    }

    /// Begins an episode in the environments whose `mask` is set and leaves the others and their
    /// rows alone: Gymnasium's `options={"reset_mask": …}`, for [`AutoresetMode::Disabled`].
    ///
    /// # Errors
    /// [`VectorError`] when an argument has the wrong length or an environment fails.
    pub fn reset_where(
        &mut self,
        mask: &[bool],
        seed: VectorSeed<'_>,
        options: &ResetOptions,
        buffers: &mut StepBuffers,
    ) -> Result<(), VectorError> {
        self.reset_into(mask, seed, options, buffers.slices())
    }

    /// Same as [`VectorEnv::reset_where`], but writes into memory of the caller.
    ///
    /// # Errors
    /// Same as [`VectorEnv::reset_where`].
    pub fn reset_into(
        &mut self,
        mask: &[bool],
        seed: VectorSeed<'_>,
        options: &ResetOptions,
        buffers: StepSlices<'_>,
    ) -> Result<(), VectorError> {
        check_selection(mask, seed, self.len())?;
        buffers.check(&self.layout)?;
        let rows = buffers.rows(&self.layout);
        on_selected(mask, &mut self.envs, rows, |i, env, mut row| {
            row.write_reset(&env.reset(seed.of(i), options)?);
            Ok(())
        })
    }

    /// Moves every environment by one step (or one reset, by the rule of the mode).
    ///
    /// `actions` has the shape `[envs, action…]`. All actions are checked before any environment
    /// moves.
    ///
    /// # Errors
    /// [`VectorError`] when an argument has the wrong length, an action lies outside its space, or
    /// an environment fails or needs a reset.
    pub fn step(&mut self, actions: &[f32], buffers: &mut StepBuffers) -> Result<(), VectorError> {
        self.step_into(actions, buffers.slices())
    }

    /// Same as [`VectorEnv::step`], but writes into memory of the caller.
    ///
    /// # Errors
    /// Same as [`VectorEnv::step`].
    pub fn step_into(
        &mut self,
        actions: &[f32],
        buffers: StepSlices<'_>,
    ) -> Result<(), VectorError> {
        let width = self.layout.action_len();
        check_len("actions", actions.len(), self.len() * width)?;
        buffers.check(&self.layout)?;
        let actions: Vec<&[f32]> = actions.chunks_exact(width.max(1)).collect();
        for (env, (worker, action)) in self.envs.iter().zip(&actions).enumerate() {
            if !worker.reset_due() {
                let checked = worker.env().action_space().accept_action(action);
                checked.map_err(|source| VectorError::Env { env, source })?;
            }
        }
        let rows = buffers.rows(&self.layout);
        let results: Vec<Result<(), EnvError>> = self
            .envs
            .par_iter_mut()
            .zip(actions)
            .zip(rows)
            .map(|((env, action), mut row)| {
                row.write_step(&env.step(action)?);
                Ok(())
            })
            .collect();
        first_error(results).map(|_| ())
    }
}

impl<E: Resumable> VectorEnv<E> {
    /// The states of all environments.
    pub fn snapshot(&self) -> Vec<AutoresetSnapshot<E::Snapshot>> {
        self.envs.iter().map(Autoreset::snapshot).collect()
    }

    /// Restores the states of `snapshots`, in parallel.
    ///
    /// # Errors
    /// [`VectorError::Length`] when there is not one snapshot per environment, and
    /// [`VectorError::Env`] as [`Resumable::restore`].
    pub fn restore(
        &mut self,
        snapshots: &[AutoresetSnapshot<E::Snapshot>],
    ) -> Result<(), VectorError>
    where
        E::Snapshot: Sync,
    {
        check_len("snapshots", snapshots.len(), self.len())?;
        self.par_map(|i, env| env.restore(&snapshots[i]))
            .map(|_| ())
    }
}

impl Row<'_> {
    fn write_reset(&mut self, reset: &Reset<'_>) {
        self.observation.copy_from_slice(reset.observation);
        self.privileged.copy_from_slice(&reset.info.privileged);
        self.port_rewards.fill(0.0);
        *self.reward = 0.0;
        *self.discount = reset.info.discount;
        *self.entropy_weight = reset.info.entropy_weight;
        *self.elapsed_ps = 0;
        *self.terminated = false;
        *self.truncated = false;
        *self.reset = true;
        *self.info = None;
    }

    fn write_step(&mut self, step: &AutoresetStep<'_>) {
        let info = step.step_info();
        self.observation.copy_from_slice(step.observation);
        self.privileged.copy_from_slice(&step.info.privileged);
        self.port_rewards.copy_from_slice(&info.port_rewards);
        *self.reward = step.reward;
        *self.discount = info.discount;
        *self.entropy_weight = info.entropy_weight;
        *self.elapsed_ps = info.elapsed.as_ps();
        *self.terminated = step.terminated;
        *self.truncated = step.truncated;
        *self.reset = step.reset;
        self.info.clone_from(&info.episode);
        if let (Some(observation), Some(info)) = (step.final_observation, step.final_info) {
            self.final_observation.copy_from_slice(observation);
            self.final_privileged.copy_from_slice(&info.privileged);
        }
    }
}

/// Runs `work` in parallel on the environments whose `mask` is set and on their rows.
pub(super) fn on_selected<E: Send, R: Send>(
    mask: &[bool],
    envs: &mut [E],
    rows: Vec<R>,
    work: impl Fn(usize, &mut E, R) -> Result<(), EnvError> + Sync,
) -> Result<(), VectorError> {
    let results: Vec<Result<(), EnvError>> = envs
        .par_iter_mut()
        .zip(rows)
        .enumerate()
        .filter(|(env, _)| mask[*env])
        .map(|(i, (env, row))| work(i, env, row))
        .collect();
    // The results have the positions of the selected environments only.
    let indices = (0..mask.len()).filter(|env| mask[*env]);
    for (env, result) in indices.zip(results) {
        result.map_err(|source| VectorError::Env { env, source })?;
    }
    Ok(())
}

/// Checks that there is a mask, and a seed if any, for each of `envs` environments.
pub(super) fn check_selection(
    mask: &[bool],
    seed: VectorSeed<'_>,
    envs: usize,
) -> Result<(), VectorError> {
    check_len("mask", mask.len(), envs)?;
    match seed {
        VectorSeed::Each(seeds) => check_len("seeds", seeds.len(), envs),
        VectorSeed::Keep | VectorSeed::From(_) => Ok(()),
    }
}

pub(super) fn check_len(
    what: &'static str,
    given: usize,
    expected: usize,
) -> Result<(), VectorError> {
    if given == expected {
        Ok(())
    } else {
        Err(VectorError::Length {
            what,
            given,
            expected,
        })
    }
}

pub(super) fn first_error<T>(results: Vec<Result<T, EnvError>>) -> Result<Vec<T>, VectorError> {
    let named = results.into_iter().enumerate();
    named
        .map(|(env, result)| result.map_err(|source| VectorError::Env { env, source }))
        .collect()
}

#[cfg(test)]
mod tests;
