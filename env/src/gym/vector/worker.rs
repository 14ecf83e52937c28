//! One environment of a vector, with the state of its episode.

use serde::{Deserialize, Serialize};

use super::VectorError;
use super::buffers::{Buffers, MultiAgentBuffers, Row, StepBuffers};
use super::layout::{Layout, MultiAgentLayout, Shape, Widths};
use crate::gym::multi_agent::named_spaces;
use crate::gym::{Autoreset, AutoresetMode, AutoresetSnapshot, EnvSnapshot};
use crate::gym::{Env, EnvError, MultiAgentEnv, ResetOptions, Resumable, Turn};

/// An environment of a [`Vector`](super::Vector) that is reset by the rule of an [`AutoresetMode`].
pub trait Worker: Send + Sized {
    /// The environment itself.
    type Env;
    /// Shapes of what a step reads and writes.
    type Layout: Shape;
    /// Memory that a step writes to.
    type Buffers: Buffers<Layout = Self::Layout>;

    /// Wraps an environment, which has to be reset before the first step.
    fn wrap(env: Self::Env, mode: AutoresetMode) -> Self;

    /// Returns the name of the first difference between the spaces of two environments, if there is one.
    fn difference(one: &Self::Env, other: &Self::Env) -> Option<&'static str>;

    /// Returns the layout of so many environments like `env`.
    fn layout(envs: usize, env: &Self::Env) -> Result<Self::Layout, VectorError>;

    /// Checks that a step with these actions of all agents is possible.
    fn check(&self, widths: &Widths, actions: &[f32]) -> Result<(), EnvError>;

    /// Begins an episode.
    fn reset_row(
        &mut self,
        seed: Option<u64>,
        options: &ResetOptions,
        row: Row<'_>,
    ) -> Result<(), EnvError>;

    /// Makes one step, or one reset where the mode requires it.
    fn step_row(&mut self, actions: &[f32], row: Row<'_>) -> Result<(), EnvError>;
}

/// A worker whose exact state can be saved and restored.
pub trait ResumableWorker: Worker {
    /// The state in a form that can be stored.
    type Snapshot;

    fn snapshot(&self) -> Self::Snapshot;

    fn restore(&mut self, snapshot: &Self::Snapshot) -> Result<(), EnvError>;
}

impl<E: Env> Worker for Autoreset<E> {
    type Env = E;
    type Layout = Layout;
    type Buffers = StepBuffers;

    fn wrap(env: E, mode: AutoresetMode) -> Autoreset<E> {
        Autoreset::new(env, mode)
    }

    fn difference(one: &E, other: &E) -> Option<&'static str> {
        if one.observation_space() != other.observation_space() {
            Some("observation space")
        } else if one.action_space() != other.action_space() {
            Some("action space")
        } else if one.privileged_space() != other.privileged_space() {
            Some("privileged space")
        } else if one.reward_components() != other.reward_components() {
            Some("reward")
        } else {
            None
        }
    }

    fn layout(envs: usize, env: &E) -> Result<Layout, VectorError> {
        Ok(Layout::of(envs, env))
    }

    fn check(&self, _: &Widths, action: &[f32]) -> Result<(), EnvError> {
        match self.reset_due() {
            true => Ok(()),
            false => self.env().action_space().accept_action(action),
        }
    }

    fn reset_row(
        &mut self,
        seed: Option<u64>,
        options: &ResetOptions,
        mut row: Row<'_>,
    ) -> Result<(), EnvError> {
        let reset = self.reset(seed, options)?;
        row.clear();
        row.resets[0] = true;
        row.write_state(0, reset.observation, reset.info);
        row.write_interval(0, 0.0, reset.info);
        Ok(())
    }

    fn step_row(&mut self, action: &[f32], mut row: Row<'_>) -> Result<(), EnvError> {
        let step = self.step(action)?;
        row.clear();
        row.terminated[0] = step.terminated;
        row.truncated[0] = step.truncated;
        row.resets[0] = step.reset;
        row.infos[0].clone_from(&step.step_info().episode);
        row.write_state(0, step.observation, step.info);
        row.write_interval(0, step.reward, step.step_info());
        if let (Some(observation), Some(info)) = (step.final_observation, step.final_info) {
            row.write_final_state(0, observation, info);
        }
        Ok(())
    }
}

impl<E: Resumable> ResumableWorker for Autoreset<E> {
    type Snapshot = AutoresetSnapshot<E::Snapshot>;

    fn snapshot(&self) -> AutoresetSnapshot<E::Snapshot> {
        Autoreset::snapshot(self)
    }

    fn restore(&mut self, snapshot: &AutoresetSnapshot<E::Snapshot>) -> Result<(), EnvError> {
        Autoreset::restore(self, snapshot)
    }
}

/// An environment with several agents that is reset by the rule of an [`AutoresetMode`], as an [`Autoreset`] does for
/// one agent. It writes what its agents see into the rows of a [`Vector`](super::Vector) and keeps no copies.
#[derive(Clone, Debug)]
pub struct MultiAgentAutoreset<E> {
    env: E,
    mode: AutoresetMode,
    /// `None` before the first reset and after one that failed.
    turn: Option<Turn>,
    /// The next step resets ([`AutoresetMode::NextStep`] only).
    reset_due: bool,
    /// By agent: true if it has decided in this episode.
    decided: Vec<bool>,
}

/// The state of one environment of a [`MultiAgentVectorEnv`](super::MultiAgentVectorEnv).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MultiAgentSnapshot {
    /// The state of the environment itself.
    pub env: EnvSnapshot,
    /// The next step is a reset.
    pub reset_due: bool,
    /// By agent: true if it has decided in the episode in progress.
    pub decided: Vec<bool>,
}

impl<E> MultiAgentAutoreset<E> {
    /// The wrapped environment.
    pub fn env(&self) -> &E {
        &self.env
    }
}

impl<E: MultiAgentEnv> MultiAgentAutoreset<E> {
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
            row.write_state(agent, self.env.observation(agent), self.env.info(agent));
        }
        row.turns[0] = self.deciding()?;
        Ok(())
    }

    /// Writes the end of the episode.
    fn end(&mut self, row: &mut Row<'_>) -> Result<(), EnvError> {
        row.terminated[0] = self.turn == Some(Turn::Terminated);
        row.truncated[0] = self.turn == Some(Turn::Truncated);
        row.infos[0] = self.env.episode().cloned();
        row.ended.copy_from_slice(&self.decided);
        for agent in 0..self.env.agents() {
            let (observation, info) = (self.env.observation(agent), self.env.info(agent));
            row.write_interval(agent, self.env.reward(agent), info);
            match self.mode {
                AutoresetMode::SameStep => row.write_final_state(agent, observation, info),
                AutoresetMode::NextStep | AutoresetMode::Disabled => {
                    row.write_state(agent, observation, info);
                }
            }
        }
        self.reset_due = self.mode == AutoresetMode::NextStep;
        match self.mode {
            AutoresetMode::SameStep => self.begin(None, &ResetOptions::default(), row),
            AutoresetMode::NextStep | AutoresetMode::Disabled => Ok(()),
        }
    }
}

impl<E: MultiAgentEnv> Worker for MultiAgentAutoreset<E> {
    type Env = E;
    type Layout = MultiAgentLayout;
    type Buffers = MultiAgentBuffers;

    fn wrap(env: E, mode: AutoresetMode) -> MultiAgentAutoreset<E> {
        MultiAgentAutoreset {
            decided: vec![false; env.agents()],
            env,
            mode,
            turn: None,
            reset_due: false,
        }
    }

    fn difference(one: &E, other: &E) -> Option<&'static str> {
        if one.agents() != other.agents() {
            return Some("number of agents");
        }
        (0..one.agents()).find_map(|agent| {
            let spaces = named_spaces(one, agent).into_iter();
            let mut pairs = spaces.zip(named_spaces(other, agent));
            pairs.find_map(|((name, a), (_, b))| (a != b).then_some(name))
        })
    }

    fn layout(envs: usize, env: &E) -> Result<MultiAgentLayout, VectorError> {
        MultiAgentLayout::of(envs, env)
    }

    fn check(&self, widths: &Widths, actions: &[f32]) -> Result<(), EnvError> {
        if self.reset_due {
            return Ok(());
        }
        let agent = self.deciding()?;
        let action = &actions[widths.own(0, agent, widths.action)];
        self.env.action_space(agent).accept_action(action)
    }

    fn reset_row(
        &mut self,
        seed: Option<u64>,
        options: &ResetOptions,
        mut row: Row<'_>,
    ) -> Result<(), EnvError> {
        self.begin(seed, options, &mut row)?;
        for agent in 0..self.env.agents() {
            row.write_interval(agent, self.env.reward(agent), self.env.info(agent));
        }
        row.clear();
        row.resets[0] = true;
        Ok(())
    }

    fn step_row(&mut self, actions: &[f32], mut row: Row<'_>) -> Result<(), EnvError> {
        if self.reset_due {
            return self.reset_row(None, &ResetOptions::default(), row);
        }
        let agent = self.deciding()?;
        let action = row.widths.own(0, agent, row.widths.action);
        let turn = self.env.step(&actions[action])?;
        self.turn = Some(turn);
        self.decided[agent] = true;
        row.clear();
        let Turn::Agent(next) = turn else {
            return self.end(&mut row);
        };
        let info = self.env.info(next);
        row.write_state(next, self.env.observation(next), info);
        row.write_interval(next, self.env.reward(next), info);
        row.ended[next] = self.decided[next];
        row.turns[0] = next;
        Ok(())
    }
}

impl<E: MultiAgentEnv> ResumableWorker for MultiAgentAutoreset<E> {
    type Snapshot = MultiAgentSnapshot;

    fn snapshot(&self) -> MultiAgentSnapshot {
        MultiAgentSnapshot {
            env: self.env.snapshot(),
            reset_due: self.reset_due,
            decided: self.decided.clone(),
        }
    }

    fn restore(&mut self, snapshot: &MultiAgentSnapshot) -> Result<(), EnvError> {
        let (taken, agents) = (snapshot.decided.len(), self.env.agents());
        if taken != agents {
            return Err(EnvError::Snapshot(format!(
                "it was taken of {taken} agents, this has {agents}"
            )));
        }
        self.turn = None;
        self.turn = self.env.restore(&snapshot.env)?;
        self.reset_due = snapshot.reset_due;
        self.decided.clone_from(&snapshot.decided);
        Ok(())
    }
}
