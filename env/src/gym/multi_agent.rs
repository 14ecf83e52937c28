//! Environments in which several agents take turns.

use super::{EnvError, EnvSnapshot, EpisodeStats, Info, ResetOptions, Space};

/// The agent whose turn it is, or the end of the episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// A decision of this agent is due.
    Agent(usize),
    /// The world has reached its end: do not bootstrap.
    Terminated,
    /// The episode was cut short by a limit: bootstrap, for every agent.
    Truncated,
}

/// An environment with several agents, one of which acts at a time, in the sense of the agent environment
/// cycle (Terry et al., "PettingZoo: Gym for Multi-Agent Reinforcement Learning", NeurIPS 2021).
///
/// # Contract
///
/// The contract of [`Env`](super::Env) holds, with these differences:
///
/// * **Turns.** [`reset`](MultiAgentEnv::reset) and [`step`](MultiAgentEnv::step) return whose turn it is;
///   the action of the next `step` is that agent's. Agents have turns as often as the world asks them: some
///   may have many and others none in an episode. [`Turn::Terminated`] and [`Turn::Truncated`] end the
///   episode for all agents at once.
/// * **Transitions.** An agent's decision is in force until its own next turn. At its turn
///   [`observation`](MultiAgentEnv::observation), [`reward`](MultiAgentEnv::reward) and
///   [`info`](MultiAgentEnv::info) of that agent are those of the time since its last turn; at its first
///   turn of an episode its info is that of a reset and its reward zero. When the episode ends, so does
///   the last interval of every agent, and these methods describe it.
/// * **Spaces** may differ between agents, but not from one episode to the next. The first dimension of
///   each of an agent's spaces is its number of ports, which is also the number of
///   [port rewards](Info::port_rewards) in its info.
/// * **Statistics** of the episode are in [`episode`](MultiAgentEnv::episode), not in an agent's info.
pub trait MultiAgentEnv: Send + Sync {
    /// Number of agents, at least one.
    fn agents(&self) -> usize;

    /// The set that an agent's observations lie in.
    ///
    /// # Panics
    /// This and the following methods panic when there is no such agent.
    fn observation_space(&self, agent: usize) -> &Space;

    /// The set that an agent's actions have to lie in.
    fn action_space(&self, agent: usize) -> &Space;

    /// The set that an agent's [`Info::privileged`] lies in.
    fn privileged_space(&self, agent: usize) -> &Space;

    /// Begins an episode and runs to its first turn; `seed` as in [`Env::reset`](super::Env::reset).
    ///
    /// # Errors
    /// [`EnvError`] when no episode can be started with these options; the environment then needs another
    /// `reset`.
    fn reset(&mut self, seed: Option<u64>, options: &ResetOptions) -> Result<Turn, EnvError>;

    /// Applies the action of the agent whose turn it is, and runs to the next turn.
    ///
    /// # Errors
    /// [`EnvError::ResetNeeded`] when no episode is running and [`EnvError::InvalidAction`] when the action is
    /// not in the agent's action space; both leave the environment as it was.
    fn step(&mut self, action: &[f32]) -> Result<Turn, EnvError>;

    /// Returns the observation of an agent at its last turn, or at the end; zeros before its first turn of an episode.
    fn observation(&self, agent: usize) -> &[f32];

    /// Reward of an agent's interval that ended with its last turn, or with the episode.
    fn reward(&self, agent: usize) -> f64;

    /// Returns the data that an agent does not need to act; it belongs to the agent's observation.
    fn info(&self, agent: usize) -> &Info;

    /// Statistics of the episode, once it is over. Returns are sums over agents.
    fn episode(&self) -> Option<&EpisodeStats>;

    /// A copy that goes on by itself from this moment: with the same actions, both continue identically, bit for bit.
    fn fork(&self) -> Box<dyn MultiAgentEnv>;

    /// The state at this moment.
    fn snapshot(&self) -> EnvSnapshot;

    /// Restores the state of `snapshot`: whatever follows is bit for bit what would have followed there. Returns whose
    /// turn it is, or `None` when no episode had been started.
    ///
    /// # Errors
    /// [`EnvError::Snapshot`] when the snapshot was taken with other options or is damaged.
    fn restore(&mut self, snapshot: &EnvSnapshot) -> Result<Option<Turn>, EnvError>;
}

/// The spaces of an agent with their names.
pub(super) fn named_spaces<E: MultiAgentEnv>(env: &E, agent: usize) -> [(&'static str, &Space); 3] {
    [
        ("observation space", env.observation_space(agent)),
        ("action space", env.action_space(agent)),
        ("privileged space", env.privileged_space(agent)),
    ]
}
