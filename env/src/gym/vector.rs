//! Several environments of one kind, stepped in parallel.

use rayon::prelude::*;

use super::{Autoreset, AutoresetMode, Env, EnvError, MultiAgentEnv, ResetOptions};

mod buffers;
mod layout;
mod worker;

pub use buffers::{MultiAgentBuffers, MultiAgentSlices, StepBuffers, StepSlices};
pub use layout::{Layout, MultiAgentLayout};
pub use worker::{MultiAgentAutoreset, MultiAgentSnapshot};

use buffers::{Buffers, Columns};
use layout::{Shape, Widths};
use worker::{ResumableWorker, Worker};

/// `N` environments of one agent, with the semantics of Gymnasium's `VectorEnv` in all three [`AutoresetMode`]s. Its
/// methods are those of [`Vector`].
///
/// There are two ways to use it. [`step`](Vector::step) moves all environments by one step and waits
/// for the slowest. [`par_map`](VectorEnv::par_map) gives each environment to its own closure, which may step
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
pub type VectorEnv<E> = Vector<Autoreset<E>>;

/// `N` environments with the same agents, in the same three [`AutoresetMode`]s as a [`VectorEnv`]. Its methods are
/// those of [`Vector`].
///
/// In a step the agent whose turn it is makes its decision, a different agent in every environment. The results are
/// rows by environment and agent. A step writes the rows of the agent that has the next turn; at the end of an episode
/// it writes the rows of all agents. [`MultiAgentBuffers::ended`] tells which rows are new transitions. A reset writes
/// the rows of all agents: the agent whose turn it is gets its observation, the others the values that hold before a
/// first turn.
///
/// Actions have the shape `[envs, agents, ports, outputs]`. A step reads the row of the agent whose turn it is, as far
/// as that agent has ports.
///
/// ```
/// use bufgym_env::gym::{AutoresetMode, MakeOptions, ResetOptions, VectorSeed, make_network_vec};
///
/// let options = MakeOptions {
///     settings: vec!["warmup_ms=0".to_owned(), "measure_ms=10".to_owned()],
///     ..MakeOptions::default()
/// };
/// let mode = AutoresetMode::NextStep;
/// let mut envs = make_network_vec("bufgym/LeafSpine-4x4-v0", 2, mode, &options)?;
/// let mut buffers = envs.buffers();
/// envs.reset(VectorSeed::From(1), &ResetOptions::default(), &mut buffers)?;
/// let layout = envs.layout().clone();
/// assert_eq!(layout.ports, [6, 6, 6, 6, 4, 4]); // four leaves and two spines
/// let mut actions = vec![0.0; 2 * 6 * 6]; // [envs, agents, ports]
/// for env in 0..2 {
///     let switch = buffers.turns[env];
///     let row = buffers.at(env, switch) * layout.action_len();
///     actions[row..row + layout.ports[switch]].fill(0.25);
/// }
/// envs.step(&actions, &mut buffers)?;
/// assert_eq!(buffers.observations.len(), 2 * 6 * 6 * 8 * 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type MultiAgentVectorEnv<E> = Vector<MultiAgentAutoreset<E>>;

/// Environments of one kind, stepped in parallel on the current rayon pool: a [`VectorEnv`] of environments with one
/// agent, or a [`MultiAgentVectorEnv`] of environments with several.
///
/// Results depend on the seeds and the actions alone: environments share no state, so the number of
/// threads changes nothing.
///
/// # Panics
/// [`reset`](Vector::reset) and [`step`](Vector::step) panic when an environment returns
/// slices of other lengths than its spaces have; the [`checker`](super::checker) finds such environments.
#[derive(Clone, Debug)]
pub struct Vector<W: Worker> {
    workers: Vec<W>,
    mode: AutoresetMode,
    layout: W::Layout,
    widths: Widths,
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
    fn of(self, env: usize) -> Option<u64> {
        match self {
            VectorSeed::Keep => None,
            VectorSeed::From(seed) => Some(seed.wrapping_add(env as u64)),
            VectorSeed::Each(seeds) => seeds.get(env).copied().flatten(),
        }
    }
}

/// The reason why a call on a [`VectorEnv`] or a [`MultiAgentVectorEnv`] failed.
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

impl<W: Worker> Vector<W> {
    /// Combines `envs`. They have to be reset before the first step.
    ///
    /// # Errors
    /// [`VectorError::Empty`] without environments, [`VectorError::Length`] without agents,
    /// [`VectorError::Mixed`] when the environments differ in agents or spaces, and
    /// [`VectorError::Agents`] when the spaces of the agents of an environment differ in more than the
    /// number of ports, their first dimension.
    pub fn new(envs: Vec<W::Env>, mode: AutoresetMode) -> Result<Vector<W>, VectorError> {
        let first = envs.first().ok_or(VectorError::Empty)?;
        for (env, other) in envs.iter().enumerate() {
            if let Some(what) = W::difference(first, other) {
                return Err(VectorError::Mixed { env, what });
            }
        }
        let layout = W::layout(envs.len(), first)?;
        let workers = envs.into_iter().map(|env| W::wrap(env, mode)).collect();
        Ok(Vector {
            workers,
            mode,
            widths: layout.widths(),
            layout,
        })
    }

    /// Number of environments.
    pub fn len(&self) -> usize {
        self.workers.len()
    }

    /// Never true: a vector environment has at least one environment.
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    /// The rule by which environments are reset.
    pub fn mode(&self) -> AutoresetMode {
        self.mode
    }

    /// Returns the shapes of the arrays that one step reads and writes.
    pub fn layout(&self) -> &W::Layout {
        &self.layout
    }

    /// Buffers of the right size.
    pub fn buffers(&self) -> W::Buffers {
        W::Buffers::new(&self.layout)
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
        buffers: &mut W::Buffers,
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
        buffers: &mut W::Buffers,
    ) -> Result<(), VectorError> {
        self.reset_into(mask, seed, options, buffers.slices())
    }

    /// Same as [`reset_where`](Vector::reset_where), but writes into memory of the caller.
    ///
    /// # Errors
    /// Same as [`reset_where`](Vector::reset_where).
    pub fn reset_into(
        &mut self,
        mask: &[bool],
        seed: VectorSeed<'_>,
        options: &ResetOptions,
        buffers: <W::Buffers as Buffers>::Slices<'_>,
    ) -> Result<(), VectorError> {
        check_selection(mask, seed, self.len())?;
        buffers.check(&self.widths)?;
        let rows = buffers.rows(&self.widths);
        let reset = |env: usize, worker: &mut W, row| match mask[env] {
            true => worker.reset_row(seed.of(env), options, row),
            false => Ok(()),
        };
        for_each(&mut self.workers, rows, reset).map(|_| ())
    }

    /// Moves every environment by one step (or one reset, by the rule of the mode).
    ///
    /// `actions` has the shape `[envs, action…]`. All actions are checked before any environment
    /// moves.
    ///
    /// # Errors
    /// [`VectorError`] when an argument has the wrong length, an action lies outside its space, or
    /// an environment fails or needs a reset.
    pub fn step(&mut self, actions: &[f32], buffers: &mut W::Buffers) -> Result<(), VectorError> {
        self.step_into(actions, buffers.slices())
    }

    /// Same as [`step`](Vector::step), but writes into memory of the caller.
    ///
    /// # Errors
    /// Same as [`step`](Vector::step).
    pub fn step_into(
        &mut self,
        actions: &[f32],
        buffers: <W::Buffers as Buffers>::Slices<'_>,
    ) -> Result<(), VectorError> {
        let width = self.widths.actions();
        check_len("actions", actions.len(), self.len() * width)?;
        buffers.check(&self.widths)?;
        let width = width.max(1);
        let pairs = self.workers.iter().zip(actions.chunks_exact(width));
        for (env, (worker, action)) in pairs.enumerate() {
            let checked = worker.check(&self.widths, action);
            checked.map_err(|source| VectorError::Env { env, source })?;
        }
        let rows = buffers.rows(&self.widths).into_par_iter();
        let rows = rows.zip(actions.par_chunks_exact(width));
        let step = |_, worker: &mut W, (row, action)| worker.step_row(action, row);
        for_each(&mut self.workers, rows, step).map(|_| ())
    }
}

impl<W: ResumableWorker> Vector<W> {
    /// The states of all environments.
    pub fn snapshot(&self) -> Vec<W::Snapshot> {
        self.workers.iter().map(W::snapshot).collect()
    }

    /// Restores the states of `snapshots`, in parallel. Buffers are not part of a snapshot: copy them too if you
    /// continue elsewhere.
    ///
    /// # Errors
    /// [`VectorError::Length`] when there is not one snapshot per environment, and
    /// [`VectorError::Env`] as [`Resumable::restore`](super::Resumable::restore).
    pub fn restore(&mut self, snapshots: &[W::Snapshot]) -> Result<(), VectorError>
    where
        W::Snapshot: Sync,
    {
        check_len("snapshots", snapshots.len(), self.len())?;
        let restore = |_, worker: &mut W, snapshot| worker.restore(snapshot);
        for_each(&mut self.workers, snapshots, restore).map(|_| ())
    }
}

impl<E: Env> VectorEnv<E> {
    /// The environments.
    pub fn envs(&self) -> &[Autoreset<E>] {
        &self.workers
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
        let nothing = vec![(); self.len()];
        for_each(&mut self.workers, nothing, |i, worker, ()| work(i, worker))
    }

    /// Like [`par_map`](VectorEnv::par_map), but every environment has its own companion, such as a replay shard or a
    /// random number generator.
    ///
    /// # Errors
    /// [`VectorError::Length`] when there is not one companion per environment, and as
    /// [`par_map`](VectorEnv::par_map).
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
        for_each(&mut self.workers, companions, work)
    }
}

impl<E: MultiAgentEnv> MultiAgentVectorEnv<E> {
    /// The environments.
    pub fn envs(&self) -> impl ExactSizeIterator<Item = &E> {
        self.workers.iter().map(MultiAgentAutoreset::env)
    }
}

/// Runs `work` in parallel on the workers, each with its own companion. Returns the results, or the first error by
/// index; the others have run to their ends.
fn for_each<W: Send, C: Send, T: Send>(
    workers: &mut [W],
    companions: impl IntoParallelIterator<Iter: IndexedParallelIterator<Item = C>>,
    work: impl Fn(usize, &mut W, C) -> Result<T, EnvError> + Sync,
) -> Result<Vec<T>, VectorError> {
    let pairs = workers.par_iter_mut().zip(companions).enumerate();
    let results: Vec<Result<T, EnvError>> = pairs
        .map(|(env, (worker, companion))| work(env, worker, companion))
        .collect();
    let named = results.into_iter().enumerate();
    named
        .map(|(env, result)| result.map_err(|source| VectorError::Env { env, source }))
        .collect()
}

/// Checks that there is a mask, and a seed if any, for each of `envs` environments.
fn check_selection(mask: &[bool], seed: VectorSeed<'_>, envs: usize) -> Result<(), VectorError> {
    check_len("mask", mask.len(), envs)?;
    match seed {
        VectorSeed::Each(seeds) => check_len("seeds", seeds.len(), envs),
        VectorSeed::Keep | VectorSeed::From(_) => Ok(()),
    }
}

fn check_len(what: &'static str, given: usize, expected: usize) -> Result<(), VectorError> {
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

#[cfg(test)]
mod multi_agent_tests;
#[cfg(test)]
mod tests;
