//! A network of switches, in which each switch is an agent.

use std::sync::Mutex;

use bufgym::env::gym::{self, MultiAgentEnv as _, Space, Turn};
use numpy::PyArrayDyn;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::array::{Reals, bounds, copied};
use crate::failure::{invalid, locked, released};
use crate::info::{InfoShape, dictionary, statistics};
use crate::options::{self, EnvArguments};

const WHAT: &str = "environment";

/// A network under control; `bufgym.pettingzoo.NetworkEnv` makes it an environment of PettingZoo.
#[pyclass(frozen, module = "bufgym._native")]
pub struct NetworkEnv {
    state: Mutex<State>,
    leaves: usize,
}

struct State {
    env: gym::NetworkEnv,
    turn: usize,
    agents: Vec<Agent>,
    over: bool,
}

struct Agent {
    observation: Vec<usize>,
    action: Vec<usize>,
    info: InfoShape,
    /// True if the agent has decided in this episode.
    decided: bool,
    /// True if the agent's interval ended with the last step.
    transition: bool,
}

impl State {
    /// Records a turn, or the end of the episode. Returns whether the episode was terminated, and truncated.
    fn settle(&mut self, turn: Turn) -> (bool, bool) {
        self.over = !matches!(turn, Turn::Agent(_));
        if let Turn::Agent(agent) = turn {
            self.turn = agent;
        }
        for (number, agent) in self.agents.iter_mut().enumerate() {
            agent.transition = agent.decided && (self.over || number == self.turn);
        }
        (turn == Turn::Terminated, turn == Turn::Truncated)
    }
}

#[pymethods]
impl NetworkEnv {
    #[new]
    fn new(py: Python<'_>, id: &str, arguments: EnvArguments<'_>) -> PyResult<NetworkEnv> {
        let options = arguments.resolve()?;
        let env = released(py, || gym::make_network(id, &options))?.map_err(invalid)?;
        let agent = |number| Agent {
            observation: env.observation_space(number).shape().to_vec(),
            action: env.action_space(number).shape().to_vec(),
            info: InfoShape {
                privileged: env.privileged_space(number).shape().to_vec(),
                components: env.observation_space(number).shape()[0],
            },
            decided: false,
            transition: false,
        };
        Ok(NetworkEnv {
            leaves: env.options().scenario.network.leaves as usize,
            state: Mutex::new(State {
                agents: (0..env.agents()).map(agent).collect(),
                turn: 0,
                over: true,
                env,
            }),
        })
    }

    /// Returns the names of all agents.
    fn agents(&self) -> PyResult<Vec<String>> {
        let agents = locked(&self.state, WHAT)?.agents.len();
        let name = |number: usize| match number.checked_sub(self.leaves) {
            None => format!("leaf_{number}"),
            Some(spine) => format!("spine_{spine}"),
        };
        Ok((0..agents).map(name).collect())
    }

    /// Returns the shape, least and largest value of every agent's observation.
    fn observation_spaces<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.spaces(py, |env, agent| env.observation_space(agent))
    }

    /// Returns the shape, least and largest value of every agent's action.
    fn action_spaces<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.spaces(py, |env, agent| env.action_space(agent))
    }

    /// Returns the number of the agent whose turn it is.
    fn turn(&self) -> PyResult<usize> {
        Ok(locked(&self.state, WHAT)?.turn)
    }

    /// Begins an episode and runs to its first turn.
    #[pyo3(signature = (seed=None, trace=None))]
    fn reset(
        &self,
        py: Python<'_>,
        seed: Option<&Bound<'_, PyAny>>,
        trace: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let seed = seed.map_or(Ok(None), options::seed)?;
        let options = options::reset(trace)?;
        let mut state = locked(&self.state, WHAT)?;
        let state = &mut *state;
        let turn = released(py, || state.env.reset(seed, &options))?.map_err(invalid)?;
        state
            .agents
            .iter_mut()
            .for_each(|agent| agent.decided = false);
        state.settle(turn);
        Ok(())
    }

    /// Makes the decision of the agent whose turn it is; returns whether the episode was terminated and
    /// whether it was truncated.
    fn step(&self, py: Python<'_>, action: &Bound<'_, PyAny>) -> PyResult<(bool, bool)> {
        let mut state = locked(&self.state, WHAT)?;
        let state = &mut *state;
        let action = Reals::take(action, "action", &state.agents[state.turn].action)?;
        let action = action.values();
        let turn = released(py, || state.env.step(action))?.map_err(invalid)?;
        state.agents[state.turn].decided = true;
        Ok(state.settle(turn))
    }

    /// Returns the observation, reward and info of every agent.
    #[expect(clippy::type_complexity, reason = "a tuple per agent")]
    fn told<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Vec<(Bound<'py, PyArrayDyn<f32>>, f64, Bound<'py, PyDict>)>> {
        let state = locked(&self.state, WHAT)?;
        let told = |(number, agent): (usize, &Agent)| {
            let env = &state.env;
            let observation = copied(py, &agent.observation, env.observation(number))?;
            let reward = match agent.transition {
                true => env.reward(number),
                false => 0.0,
            };
            let info = dictionary(py, &agent.info, env.info(number))?;
            info.set_item("turn", !state.over && number == state.turn)?;
            info.set_item("transition", agent.transition)?;
            if let Some(stats) = env.episode() {
                info.set_item("episode_stats", statistics(py, stats)?)?;
            }
            Ok((observation, reward, info))
        };
        state.agents.iter().enumerate().map(told).collect()
    }
}

impl NetworkEnv {
    fn spaces<'py>(
        &self,
        py: Python<'py>,
        space: impl Fn(&gym::NetworkEnv, usize) -> &Space,
    ) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let state = locked(&self.state, WHAT)?;
        let agents = 0..state.agents.len();
        agents
            .map(|agent| bounds(py, space(&state.env, agent)))
            .collect()
    }
}
