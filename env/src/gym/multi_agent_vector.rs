//! Several multi-agent environments of one kind, stepped in parallel.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::multi_agent::named_spaces;
use super::vector::{check_len, check_selection, first_error, on_selected};
use super::{AutoresetMode, EnvError, EnvSnapshot, MultiAgentEnv, ResetOptions, Turn};
use super::{VectorError, VectorSeed};

mod buffers;

use buffers::Row;
pub use buffers::{MultiAgentBuffers, MultiAgentLayout};

/// `N` environments with the same agents, stepped in parallel on the current rayon pool. It corresponds to
/// [`VectorEnv`](super::VectorEnv) for one agent, with the same three [`AutoresetMode`]s.
///
/// In a step the agent whose turn it is makes its decision, a different agent in every environment. The results are
/// rows by environment and agent. A step writes the rows of the agent that has the next turn; at the end of an episode
/// it writes the rows of all agents. [`MultiAgentBuffers::ended`] tells which rows are new transitions.
///
/// Results depend on the seeds and the actions alone, not on the number of threads.
///
/// # Panics
/// [`reset`](MultiAgentVectorEnv::reset) and [`step`](MultiAgentVectorEnv::step) panic when an
/// environment returns slices of other lengths than its spaces have;
/// [`check_multi_agent_env`](super::checker::check_multi_agent_env) finds such environments.
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
#[derive(Clone, Debug)]
pub struct MultiAgentVectorEnv<E> {
    workers: Vec<Worker<E>>,
    mode: AutoresetMode,
    layout: MultiAgentLayout,
}

/// One environment and the state of its episode.
#[derive(Clone, Debug)]
struct Worker<E> {
    env: E,
    /// `None` before the first reset and after one that failed.
    turn: Option<Turn>,
    /// The next step resets ([`AutoresetMode::NextStep`] only).
    reset_due: bool,
    /// By agent: true if it has decided in this episode.
    decided: Vec<bool>,
}

/// The state of one environment of a [`MultiAgentVectorEnv`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MultiAgentSnapshot {
    /// The state of the environment itself.
    pub env: EnvSnapshot,
    /// The next step is a reset.
    pub reset_due: bool,
    /// By agent: true if it has decided in the episode in progress.
    pub decided: Vec<bool>,
}

impl<E: MultiAgentEnv> MultiAgentVectorEnv<E> {
    /// Combines `envs`. They have to be reset before the first step.
    ///
    /// # Errors
    /// [`VectorError::Empty`] without environments, [`VectorError::Length`] without agents,
    /// [`VectorError::Mixed`] when the environments differ in agents or spaces, and
    /// [`VectorError::Agents`] when the spaces of the agents of an environment differ in more than the
    /// number of ports, their first dimension.
    pub fn new(envs: Vec<E>, mode: AutoresetMode) -> Result<MultiAgentVectorEnv<E>, VectorError> {
        let first = envs.first().ok_or(VectorError::Empty)?;
        // One agent is enough, none are too few.
        check_len("agents", first.agents().min(1), 1)?;
        for (env, other) in envs.iter().enumerate() {
            if let Some(what) = difference(first, other) {
                return Err(VectorError::Mixed { env, what });
            }
        }
        let layout = MultiAgentLayout::of(envs.len(), first)?;
        let workers = envs.into_iter().map(Worker::new).collect();
        Ok(MultiAgentVectorEnv {
            workers,
            mode,
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
    pub fn layout(&self) -> &MultiAgentLayout {
        &self.layout
    }

    /// Buffers of the right size.
    pub fn buffers(&self) -> MultiAgentBuffers {
        MultiAgentBuffers::new(&self.layout)
    }

    /// The environments.
    pub fn envs(&self) -> impl ExactSizeIterator<Item = &E> {
        self.workers.iter().map(|worker| &worker.env)
    }

    /// Begins an episode in every environment. The rows of all agents are written. The agent whose turn it is gets its
    /// observation, the others the values that hold before a first turn.
    ///
    /// # Errors
    /// [`VectorError`] when an argument has the wrong length or an environment fails.
    pub fn reset(
        &mut self,
        seed: VectorSeed<'_>,
        options: &ResetOptions,
        buffers: &mut MultiAgentBuffers,
    ) -> Result<(), VectorError> {
        let all = vec![true; self.len()];
        self.reset_where(&all, seed, options, buffers)
    }

    /// Begins an episode in the environments whose `mask` is set and leaves the others and their rows
    /// alone, for [`AutoresetMode::Disabled`].
    ///
    /// # Errors
    /// [`VectorError`] when an argument has the wrong length or an environment fails.
    pub fn reset_where(
        &mut self,
        mask: &[bool],
        seed: VectorSeed<'_>,
        options: &ResetOptions,
        buffers: &mut MultiAgentBuffers,
    ) -> Result<(), VectorError> {
        check_selection(mask, seed, self.len())?;
        buffers.check(&self.layout)?;
        let rows = buffers.rows(&self.layout);
        on_selected(mask, &mut self.workers, rows, |i, worker, mut row| {
            worker.reset(seed.of(i), options, &mut row)
        })
    }

    /// Moves every environment by one decision (or one reset, by the rule of the mode).
    ///
    /// `actions` has the shape `[envs, agents, ports, outputs]`. Only the row of the agent whose turn it is is read, as
    /// far as that agent has ports. Before any environment moves, all environments and all actions that are read are
    /// checked.
    ///
    /// # Errors
    /// [`VectorError`] when an argument has the wrong length, an action lies outside its space, or an
    /// environment fails or needs a reset.
    pub fn step(
        &mut self,
        actions: &[f32],
        buffers: &mut MultiAgentBuffers,
    ) -> Result<(), VectorError> {
        let width = self.layout.agents() * self.layout.action_len();
        check_len("actions", actions.len(), self.len() * width)?;
        buffers.check(&self.layout)?;
        let (layout, mode) = (&self.layout, self.mode);
        let actions: Vec<&[f32]> = actions.chunks_exact(width.max(1)).collect();
        for (env, (worker, actions)) in self.workers.iter().zip(&actions).enumerate() {
            let checked = worker.check(layout, actions);
            checked.map_err(|source| VectorError::Env { env, source })?;
        }
        let results: Vec<Result<(), EnvError>> = self
            .workers
            .par_iter_mut()
            .zip(actions)
            .zip(buffers.rows(layout))
            .map(|((worker, actions), mut row)| worker.step(layout, mode, actions, &mut row))
            .collect();
        first_error(results).map(|_| ())
    }

    /// The states of all environments.
    pub fn snapshot(&self) -> Vec<MultiAgentSnapshot> {
        let state = |worker: &Worker<E>| MultiAgentSnapshot {
            env: worker.env.snapshot(),
            reset_due: worker.reset_due,
            decided: worker.decided.clone(),
        };
        self.workers.iter().map(state).collect()
    }

    /// Restores the states of `snapshots`, in parallel. Buffers are not part of a snapshot: copy them too if you
    /// continue elsewhere.
    ///
    /// # Errors
    /// [`VectorError::Length`] when there is not one snapshot per environment, and [`VectorError::Env`] as
    /// [`MultiAgentEnv::restore`].
    pub fn restore(&mut self, snapshots: &[MultiAgentSnapshot]) -> Result<(), VectorError> {
        check_len("snapshots", snapshots.len(), self.len())?;
        let workers = self.workers.par_iter_mut().zip(snapshots);
        let results = workers.map(|(worker, snapshot)| worker.restore(snapshot));
        first_error(results.collect()).map(|_| ())
    }
}

/// Returns the first difference between two environments, if there is one.
fn difference<E: MultiAgentEnv>(one: &E, other: &E) -> Option<&'static str> {
    if one.agents() != other.agents() {
        return Some("number of agents");
    }
    (0..one.agents()).find_map(|agent| {
        let pairs = named_spaces(one, agent)
            .into_iter()
            .zip(named_spaces(other, agent));
        let mut differing = pairs.filter(|((_, a), (_, b))| a != b);
        differing.next().map(|((name, _), _)| name)
    })
}

impl<E: MultiAgentEnv> Worker<E> {
    fn new(env: E) -> Worker<E> {
        Worker {
            decided: vec![false; env.agents()],
            env,
            turn: None,
            reset_due: false,
        }
    }

    /// Returns the agent whose decision is due.
    fn deciding(&self) -> Result<usize, EnvError> {
        match self.turn {
            Some(Turn::Agent(agent)) => Ok(agent),
            None => Err(EnvError::ResetNeeded("it has not been reset yet")),
            Some(Turn::Terminated | Turn::Truncated) => {
                Err(EnvError::ResetNeeded("the last one is over"))
            }
        }
    }

    /// Checks that a step with the actions `[agents, ports, outputs]` is possible.
    fn check(&self, layout: &MultiAgentLayout, actions: &[f32]) -> Result<(), EnvError> {
        if self.reset_due {
            return Ok(());
        }
        let agent = self.deciding()?;
        let action = action_of(layout, agent, actions);
        self.env.action_space(agent).accept_action(action)
    }

    fn reset(
        &mut self,
        seed: Option<u64>,
        options: &ResetOptions,
        row: &mut Row<'_>,
    ) -> Result<(), EnvError> {
        self.begin(seed, options, row)?;
        for agent in 0..self.env.agents() {
            row.write_interval(&self.env, agent);
        }
        row.clear();
        *row.reset = true;
        Ok(())
    }

    /// Begins an episode and writes the agents' observations, but no intervals and flags.
    fn begin(
        &mut self,
        seed: Option<u64>,
        options: &ResetOptions,
        row: &mut Row<'_>,
    ) -> Result<(), EnvError> {
        self.turn = None;
        self.turn = Some(self.env.reset(seed, options)?);
        self.reset_due = false;
        self.decided.fill(false);
        for agent in 0..self.env.agents() {
            row.write_state(&self.env, agent);
        }
        *row.turn = self.deciding()?;
        Ok(())
    }

    fn step(
        &mut self,
        layout: &MultiAgentLayout,
        mode: AutoresetMode,
        actions: &[f32],
        row: &mut Row<'_>,
    ) -> Result<(), EnvError> {
        if self.reset_due {
            return self.reset(None, &ResetOptions::default(), row);
        }
        let agent = self.deciding()?;
        let turn = self.env.step(action_of(layout, agent, actions))?;
        self.turn = Some(turn);
        self.decided[agent] = true;
        row.clear();
        match turn {
            Turn::Agent(next) => {
                row.write_state(&self.env, next);
                row.write_interval(&self.env, next);
                row.ended[next] = self.decided[next];
                *row.turn = next;
                Ok(())
            }
            Turn::Terminated | Turn::Truncated => self.end(mode, row),
        }
    }

    /// Writes the end of the episode.
    fn end(&mut self, mode: AutoresetMode, row: &mut Row<'_>) -> Result<(), EnvError> {
        *row.terminated = self.turn == Some(Turn::Terminated);
        *row.truncated = self.turn == Some(Turn::Truncated);
        *row.info = self.env.episode().cloned();
        row.ended.copy_from_slice(&self.decided);
        for agent in 0..self.env.agents() {
            row.write_interval(&self.env, agent);
            match mode {
                AutoresetMode::SameStep => row.write_final_state(&self.env, agent),
                AutoresetMode::NextStep | AutoresetMode::Disabled => {
                    row.write_state(&self.env, agent);
                }
            }
        }
        self.reset_due = mode == AutoresetMode::NextStep;
        match mode {
            AutoresetMode::SameStep => self.begin(None, &ResetOptions::default(), row),
            AutoresetMode::NextStep | AutoresetMode::Disabled => Ok(()),
        }
    }

    fn restore(&mut self, snapshot: &MultiAgentSnapshot) -> Result<(), EnvError> {
        if snapshot.decided.len() != self.env.agents() {
            return Err(EnvError::Snapshot(format!(
                "it was taken of {} agents, this has {}",
                snapshot.decided.len(),
                self.env.agents()
            )));
        }
        self.turn = None;
        self.turn = self.env.restore(&snapshot.env)?;
        self.reset_due = snapshot.reset_due;
        self.decided.clone_from(&snapshot.decided);
        Ok(())
    }
}

/// Returns the action of one agent without padding, from the actions of all agents.
fn action_of<'a>(layout: &MultiAgentLayout, agent: usize, actions: &'a [f32]) -> &'a [f32] {
    let width = layout.action_len();
    layout.own(agent, &actions[agent * width..(agent + 1) * width])
}

#[cfg(test)]
mod tests;
