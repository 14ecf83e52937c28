//! A network as an environment: every switch is an agent.

use super::episodes::{BufferEnvOptions, EnvSnapshot, Episodes};
use super::{EnvError, EpisodeStats, Info, MultiAgentEnv, ResetOptions, Space, Turn};
use crate::control::{ActionSet, FEATURES, HISTORY, PRIVILEGED, cell_centre};
use crate::control::{ControlEnv, ControlTopology, StopReason, switch_id};
use bufgym_sim::network::{LeafSpine, OneSwitch, SimError};

/// A network of shared-memory switches under NDT's two-level control, by default of leaves and spines. Agents
/// are switches: leaves first, then spines. Each has the spaces of a [`BufferEnv`](super::BufferEnv) with
/// its own number of ports, and its own trigger (Eq. 5), so that switches have turns at different times and
/// differently often. A decision is about the ports of one switch; traces and seed are as in a `BufferEnv`.
/// A switch is paid for its ports. The cost of a flow is shared equally by the ports of the switches on its path. So
/// the rewards of all switches add up to the cost of all flows, as far as it belongs to the time between a switch's
/// first decision and the end.
///
/// ```
/// use bufgym_env::gym::{MultiAgentEnv, ResetOptions, Turn, make_network};
///
/// let mut env = make_network("bufgym/LeafSpine-4x4-v0", &Default::default())?;
/// assert_eq!(env.agents(), 6); // four leaves of six ports and two spines of four
/// let mut turn = env.reset(Some(7), &ResetOptions::default())?;
/// for _ in 0..3 {
///     let Turn::Agent(switch) = turn else { break };
///     let action = vec![0.25; env.action_space(switch).len()];
///     turn = env.step(&action)?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct NetworkEnv<T: ControlTopology = LeafSpine> {
    pub(super) episodes: Episodes<T>,
    agents: Vec<Agent>,
    /// Agent whose turn it is, while an episode is running.
    turn: usize,
    ended: Option<EpisodeStats>,
}

/// State of the environment for one switch.
#[derive(Clone, Debug)]
struct Agent {
    observation_space: Space,
    action_space: Space,
    privileged_space: Space,
    action: Vec<f32>,
    /// True if an interval of the agent has been described in this episode.
    told: bool,
    /// True if the agent has decided in this episode.
    decided: bool,
    /// Discount from its first decision to its last turn.
    discount: f64,
    reward: f64,
    info: Info,
    blank: Vec<f32>,
}

impl Agent {
    fn new(options: &BufferEnvOptions, ports: usize) -> Agent {
        let actions = match ActionSet::of(&options.control.low_level) {
            ActionSet::Alpha => vec![ports],
            more => vec![ports, more.outputs()],
        };
        let observation_space = Space::uniform_box(&[ports, HISTORY, FEATURES], -1.0, 1.0);
        let action_space = Space::uniform_box(&actions, -1.0, 1.0);
        let (low, high) = (f32::NEG_INFINITY, f32::INFINITY);
        Agent {
            blank: vec![0.0; observation_space.len()],
            action: vec![0.0; action_space.len()],
            observation_space,
            action_space,
            privileged_space: Space::uniform_box(&[ports, PRIVILEGED], low, high),
            told: false,
            decided: false,
            discount: 1.0,
            reward: 0.0,
            info: Info {
                privileged: vec![0.0; ports * PRIVILEGED],
                port_rewards: vec![0.0; ports],
                ..Info::default()
            },
        }
    }

    /// Puts the data into the state before the first turn of an episode.
    fn clear(&mut self) {
        self.told = false;
        self.decided = false;
        self.discount = 1.0;
        self.reward = 0.0;
        self.info.begin(0);
        self.info.privileged.fill(0.0);
    }
}

impl<T: ControlTopology> NetworkEnv<T> {
    /// An environment that has not been reset yet.
    ///
    /// # Errors
    /// [`EnvError::Simulation`] when the scenario is not valid or has several switches and `T` one,
    /// [`EnvError::Options`] when it has one and `T` several or the sequence of traces is not valid.
    pub fn new(options: BufferEnvOptions) -> Result<NetworkEnv<T>, EnvError> {
        let episodes = Episodes::new(options)?;
        let options = &episodes.options;
        if T::IS_FABRIC && !options.scenario.is_fabric() {
            return Err(EnvError::Options(format!(
                "scenario '{}' is a single switch: a network needs topology=leafspine and at least two \
                 leaves; the environment of a single switch is BufferEnv",
                options.scenario.name
            )));
        }
        T::for_trace(&options.scenario, 0).map_err(SimError::from)?;
        let ports = options.scenario.ports_by_switch().into_iter();
        Ok(NetworkEnv {
            agents: ports.map(|ports| Agent::new(options, ports)).collect(),
            turn: 0,
            ended: None,
            episodes,
        })
    }

    /// Returns the options of the environment.
    pub fn options(&self) -> &BufferEnvOptions {
        &self.episodes.options
    }

    /// The simulator under its control loops, for looking at flows and queues; `None` before the first
    /// reset.
    pub fn control(&self) -> Option<&ControlEnv<T>> {
        let current = self.episodes.current.as_ref();
        current.map(|episode| &episode.control)
    }

    /// Resets the data of all agents.
    fn clear(&mut self) {
        self.ended = None;
        self.agents.iter_mut().for_each(Agent::clear);
    }

    /// Applies the action of the agent whose turn it is.
    fn apply(&mut self) -> Result<Turn, EnvError> {
        let agent = &mut self.agents[self.turn];
        agent.decided = true;
        let stop = self.episodes.running()?.act(&agent.action);
        self.settle(stop)
    }

    /// Describes the intervals that ended with a pause, and returns whose turn it is.
    fn settle(&mut self, stop: StopReason) -> Result<Turn, EnvError> {
        if stop == StopReason::Decision {
            self.turn = self.episodes.running()?.control.at().index();
            self.close(self.turn)?;
            return Ok(Turn::Agent(self.turn));
        }
        (0..self.agents.len()).try_for_each(|agent| self.close(agent))?;
        self.ended = Some(self.episodes.running()?.finish());
        Ok(match stop {
            StopReason::Finished => Turn::Terminated,
            _ => Turn::Truncated,
        })
    }

    /// Describes an agent's interval that has just ended.
    fn close(&mut self, number: usize) -> Result<(), EnvError> {
        let episode = self.episodes.running()?;
        let agent = &mut self.agents[number];
        let switch = switch_id(number);
        agent.told = true;
        agent.info.begin(episode.skipped);
        agent.reward = 0.0;
        if agent.decided {
            let interval = episode.control.reward_of(switch);
            agent.info.begin(0);
            agent.info.describe(interval);
            agent.reward = interval.total;
            episode.stats.return_ += interval.total;
            episode.stats.discounted_return += agent.discount * interval.total;
            agent.discount *= f64::from(interval.discount);
        }
        let privileged = &mut agent.info.privileged;
        episode.control.privileged_of(switch, privileged);
        Ok(())
    }
}

impl NetworkEnv<OneSwitch> {
    /// Returns the data of the only agent as an [`Env`](super::Env) returns it: observation, reward, and info with the
    /// statistics of the episode.
    pub(super) fn alone(&mut self) -> (&[f32], f64, &Info) {
        self.agents[0].info.episode = self.ended.clone();
        (self.observation(0), self.reward(0), self.info(0))
    }
}

impl<T: ControlTopology + 'static> MultiAgentEnv for NetworkEnv<T> {
    fn agents(&self) -> usize {
        self.agents.len()
    }

    fn observation_space(&self, agent: usize) -> &Space {
        &self.agents[agent].observation_space
    }

    fn action_space(&self, agent: usize) -> &Space {
        &self.agents[agent].action_space
    }

    fn privileged_space(&self, agent: usize) -> &Space {
        &self.agents[agent].privileged_space
    }

    fn reset(&mut self, seed: Option<u64>, options: &ResetOptions) -> Result<Turn, EnvError> {
        self.clear();
        self.episodes.reset(seed, options)?;
        self.settle(StopReason::Decision)
    }

    fn step(&mut self, action: &[f32]) -> Result<Turn, EnvError> {
        self.episodes.running()?;
        let agent = &mut self.agents[self.turn];
        agent.action_space.accept_action(action)?;
        agent.action.copy_from_slice(action);
        self.apply()
    }

    fn observation(&self, agent: usize) -> &[f32] {
        // Before its first turn a switch already has a history, that of its α.
        let told = &self.agents[agent];
        let control = self.control().filter(|_| told.told);
        control.map_or(&told.blank, |control| {
            control.observation_of(switch_id(agent))
        })
    }

    fn reward(&self, agent: usize) -> f64 {
        self.agents[agent].reward
    }

    fn info(&self, agent: usize) -> &Info {
        &self.agents[agent].info
    }

    fn episode(&self) -> Option<&EpisodeStats> {
        self.ended.as_ref()
    }

    fn fork(&self) -> Box<dyn MultiAgentEnv> {
        Box::new(self.clone())
    }

    fn snapshot(&self) -> EnvSnapshot {
        self.episodes.snapshot()
    }

    /// Plays the trace of the snapshot again with the same actions. That takes as long as the episode took
    /// so far.
    fn restore(&mut self, snapshot: &EnvSnapshot) -> Result<Option<Turn>, EnvError> {
        let replayed = self.episodes.reopen(snapshot)?;
        self.clear();
        let Some(mut replayed) = replayed else {
            return Ok(None);
        };
        let mut turn = self.settle(StopReason::Decision)?;
        loop {
            let running = self.episodes.running().is_ok();
            let agent = &mut self.agents[self.turn];
            let Some(levels) = replayed.next(agent.action.len(), running)? else {
                return Ok(Some(turn));
            };
            for (value, &level) in agent.action.iter_mut().zip(levels) {
                *value = cell_centre(usize::from(level));
            }
            turn = self.apply()?;
        }
    }
}

#[cfg(test)]
mod tests;
