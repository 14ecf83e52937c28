//! Reinforcement-learning environments in the sense of Gymnasium 1.x, and with several agents in the
//! sense of PettingZoo's agent environment cycle.
//!
//! | Gymnasium | here |
//! |---|---|
//! | `Env` | [`Env`], with the whole contract in its documentation |
//! | `spaces` | [`Space`] |
//! | `VectorEnv`, `AutoresetMode` | [`VectorEnv`], [`AutoresetMode`] |
//! | `utils.env_checker.check_env` | [`checker::check_env`] |
//! | `register`, `make`, `make_vec` | [`Registry`], [`make`], [`make_vec`] |
//! | wrappers | [`wrappers`] |
//!
//! | PettingZoo | here |
//! |---|---|
//! | `AECEnv` | [`MultiAgentEnv`], with the whole contract in its documentation |
//! | `agent_selection` | [`Turn`] |
//! | `last()` | [`observation`](MultiAgentEnv::observation), [`reward`](MultiAgentEnv::reward), [`info`](MultiAgentEnv::info) |
//! | `test.api_test`, `test.seed_test` | [`checker::check_multi_agent_env`] |
//! | (none) | [`MultiAgentVectorEnv`], many in parallel; [`make_network`], [`make_network_vec`] |
//!
//! [`BufferEnv`] is the environment of one agent: a shared-memory switch whose ports' α are set by the
//! agent. [`NetworkEnv`] is a network of such switches, each an agent. One trace of flows is one episode.
//!
//! ```
//! use bufgym_env::gym::{Env, MakeOptions, ResetOptions, make};
//!
//! let mut env = make("bufgym/NDT-16x1G-v0", &MakeOptions::default())?;
//! let (seen, action) = (env.observation_space().clone(), vec![0.0; env.action_space().len()]);
//! env.reset(Some(7), &ResetOptions::default())?;
//! let step = env.step(&action)?;
//! let observation = seen.array(step.observation)?; // an ndarray view
//! assert_eq!(observation.shape(), [16, 8, 5]); // ports, decisions, features
//! assert!(step.reward <= 0.0); // minus the active time of all flows
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod autoreset;
mod buffer_env;
pub mod checker;
mod episodes;
mod multi_agent;
mod network_env;
mod registry;
mod space;
mod traces;
mod vector;
pub mod wrappers;

#[cfg(test)]
mod testing;

use serde::{Deserialize, Serialize};

use crate::control::IntervalReward;
use bufgym_sim::network::SimError;
use bufgym_sim::units::Duration;

pub use autoreset::{Autoreset, AutoresetMode, AutoresetSnapshot, AutoresetStep};
pub use buffer_env::BufferEnv;
pub use episodes::{BufferEnvOptions, EnvSnapshot, EpisodeSnapshot};
pub use multi_agent::{MultiAgentEnv, Turn};
pub use network_env::NetworkEnv;
pub use registry::{EnvSpec, MakeOptions, Registry, RegistryError};
pub use registry::{make, make_network, make_network_vec, make_vec};
pub use space::{BoxSpace, MultiDiscreteSpace, Space};
pub use traces::TraceSequence;
pub use vector::{Layout, StepBuffers, StepSlices, Vector, VectorEnv, VectorError, VectorSeed};
pub use vector::{MultiAgentAutoreset, MultiAgentBuffers, MultiAgentLayout, MultiAgentSlices};
pub use vector::{MultiAgentSnapshot, MultiAgentVectorEnv};

/// One environment: an agent acts, the world moves on to the next decision and answers with an
/// observation and a reward.
///
/// # Contract
///
/// * **Life cycle.** A new environment has no state: [`step`](Env::step) before the first
///   [`reset`](Env::reset) is [`EnvError::ResetNeeded`]. An episode runs from `reset` to the first
///   step with `terminated` or `truncated`; a further `step` is [`EnvError::ResetNeeded`] again.
///   `reset` may be called at any time and abandons the running episode.
/// * **Seeds.** `reset(Some(seed))` restarts the environment's randomness: the same seed on two
///   environments of the same options, followed by the same actions and `reset(None)`s, gives the
///   same bits. `reset(None)` draws the next episode of the sequence started by the last seed. The
///   very first `reset(None)` uses the seed of the environment's own options, so unlike in
///   Gymnasium nothing is ever drawn from the machine's entropy.
/// * **Actions** must lie in [`action_space`](Env::action_space), otherwise `step` returns
///   [`EnvError::InvalidAction`] and nothing has happened: the same step may be tried again.
/// * **Observations** lie in [`observation_space`](Env::observation_space) after every `reset` and
///   every `step`, the last of an episode included.
/// * **End.** `terminated`: the world has reached its end; nothing of value follows, so a
///   value function must not be bootstrapped. `truncated`: a limit from outside the task cut the
///   episode short. The return continues after the last observation, which must be
///   bootstrapped with the step's own [`Info::discount`]. They are never merged into one flag.
/// * **Rewards** are finite. Steps may differ in duration (a semi-Markov process): the factor
///   by which the value of the next observation counts is [`Info::discount`].
/// * **Info** never carries what the agent needs to act; it is for learning (privileged critics),
///   logging and evaluation. [`Info::episode`] is there at the last step of an episode and only
///   there.
/// * **Autoreset** is not part of this trait: see [`Autoreset`] and [`VectorEnv`].
/// * **No globals.** Any number of environments can exist at the same time and on any thread, without
///   influence on one another.
///
/// [`checker::check_env`] tests these rules on any implementation.
///
/// There is no `render`: to look at an episode, use the timeline of the simulator.
pub trait Env: Send {
    /// The set that every observation lies in.
    fn observation_space(&self) -> &Space;

    /// The set that every action has to lie in.
    fn action_space(&self) -> &Space;

    /// The set that [`Info::privileged`] lies in; `None` when the environment has no privileged
    /// observation.
    fn privileged_space(&self) -> Option<&Space> {
        None
    }

    /// Returns the number of components of the reward ([`Info::port_rewards`]), such as one per port; zero if it has
    /// none.
    fn reward_components(&self) -> usize {
        0
    }

    /// Begins an episode and returns its first observation.
    ///
    /// With a `seed` the sequence of episodes is started again from that seed. Without one, the sequence continues.
    ///
    /// # Errors
    /// [`EnvError`] when no episode can be started with these options; the environment then needs
    /// another `reset`.
    fn reset(&mut self, seed: Option<u64>, options: &ResetOptions) -> Result<Reset<'_>, EnvError>;

    /// Applies `action` and runs to the next decision or the end of the episode.
    ///
    /// # Errors
    /// [`EnvError::ResetNeeded`] when no episode is running and [`EnvError::InvalidAction`] when
    /// the action is not in the action space; both leave the environment as it was.
    fn step(&mut self, action: &[f32]) -> Result<Step<'_>, EnvError>;
}

/// An environment whose exact state can be saved and restored.
pub trait Resumable: Env {
    /// The state in a form that can be stored.
    type Snapshot: Clone + Serialize + for<'de> Deserialize<'de> + Send;

    /// The state at this moment.
    fn snapshot(&self) -> Self::Snapshot;

    /// Restores the state of `snapshot`: whatever follows is bit for bit what would have followed there. Returns the
    /// observation and info of that state, or `None` when no episode had been started.
    ///
    /// # Errors
    /// [`EnvError::Snapshot`] when the snapshot was taken with other options or is damaged.
    fn restore(&mut self, snapshot: &Self::Snapshot) -> Result<Option<Reset<'_>>, EnvError>;
}

/// Options of one [`Env::reset`]. An environment ignores options that it does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResetOptions {
    /// Play exactly this trace, by its index in the split. Afterwards the sequence continues as if the trace had not
    /// been played.
    pub trace: Option<u64>,
}

/// Result of [`Env::reset`].
#[derive(Clone, Copy, Debug)]
pub struct Reset<'a> {
    /// The first observation, flat, in the shape of the observation space.
    pub observation: &'a [f32],
    /// Data that is not needed to act.
    pub info: &'a Info,
}

/// Result of [`Env::step`].
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The observation after the step, flat, in the shape of the observation space.
    pub observation: &'a [f32],
    /// The reward of the step.
    pub reward: f64,
    /// The episode has reached its end: do not bootstrap.
    pub terminated: bool,
    /// The episode was cut short by a limit: bootstrap.
    pub truncated: bool,
    /// Data that is not needed to act.
    pub info: &'a Info,
}

impl Step<'_> {
    /// Returns true if the episode is over, for whichever reason.
    pub fn done(&self) -> bool {
        self.terminated || self.truncated
    }
}

/// Gymnasium's info dictionary, with fields instead of keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Info {
    /// Privileged observation: state that only the simulator knows, for critics; flat, in the shape of the privileged
    /// space.
    pub privileged: Vec<f32>,
    /// The components of the step's reward, [`Env::reward_components`] values; zeros after a
    /// reset.
    pub port_rewards: Vec<f32>,
    /// The factor by which the value of this observation counts in the return of the step,
    /// `e^{-Δt/τ}` in a semi-Markov process; 1 after a reset.
    pub discount: f32,
    /// The weight of the step's entropy bonus; 0 after a reset, 1 where all steps last equally
    /// long.
    pub entropy_weight: f32,
    /// Duration of the step in simulated time; zero after a reset.
    pub elapsed: Duration,
    /// After a reset: true if at least one trace ended without a decision and was skipped.
    pub no_decision: bool,
    /// After a reset: number of skipped traces.
    pub skipped: u64,
    /// Statistics of the episode, at its last step.
    pub episode: Option<EpisodeStats>,
}

impl Info {
    /// Puts the fields into the state of a reset that skipped `skipped` traces, and keeps the allocations.
    pub fn begin(&mut self, skipped: u64) {
        self.port_rewards.fill(0.0);
        self.discount = 1.0;
        self.entropy_weight = 0.0;
        self.elapsed = Duration::ZERO;
        self.no_decision = skipped > 0;
        self.skipped = skipped;
        self.episode = None;
    }

    /// Copies the reward, discount and duration of an interval.
    fn describe(&mut self, interval: &IntervalReward) {
        self.port_rewards.copy_from_slice(&interval.port_rewards);
        self.discount = interval.discount;
        self.entropy_weight = interval.entropy_weight;
        self.elapsed = interval.elapsed;
    }
}

/// One finished episode in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EpisodeStats {
    /// The seed of the trace.
    pub seed: u64,
    /// The index of the trace in its split.
    pub index: u64,
    /// Sum of the rewards of all steps.
    pub return_: f64,
    /// Sum of the rewards of all steps, each discounted to the first decision.
    pub discounted_return: f64,
    /// Steps of the episode.
    pub decisions: u64,
    /// Flows of the trace.
    pub flows: u64,
    /// Flows that completed; fewer than `flows` only in a truncated episode.
    pub completed: u64,
    /// Mean flow completion time of the completed flows in milliseconds; not a number without any.
    pub mean_fct_ms: f64,
    /// Packets dropped, push-outs included.
    pub drops: u64,
    /// Expiries of retransmission timers.
    pub timeouts: u64,
    /// Packets whose last bit left a switch port.
    pub packets_forwarded: u64,
    /// Simulated time in seconds.
    pub simulated_s: f64,
    /// True if at least one trace was skipped right before this episode, because it ended without a decision.
    pub no_decision: bool,
}

/// The reason why an environment could not fulfil a request.
#[derive(Debug, thiserror::Error)]
pub enum EnvError {
    /// No episode is running.
    #[error("no episode is running: call reset before step ({0})")]
    ResetNeeded(&'static str),
    /// The action does not lie in the action space.
    #[error("invalid action: {0}")]
    InvalidAction(String),
    /// Many traces in a row ended without one decision.
    #[error(
        "{tried} traces in a row ended without a decision, {empty} of them because they have no flows: the traffic \
         of scenario '{scenario}' never fills the share of a port; in a scenario whose traffic lasts for some time, \
         a longer `measure_ms`, more `load` or a greater `query_rate` gives it more"
    )]
    NoDecision {
        /// Traces tried.
        tried: u64,
        /// Those without flows among them.
        empty: u64,
        /// Name of the scenario.
        scenario: String,
    },
    /// A snapshot does not fit this environment.
    #[error("snapshot does not fit: {0}")]
    Snapshot(String),
    /// The options of an environment do not make sense.
    #[error("{0}")]
    Options(String),
    /// The simulator cannot run this scenario or trace.
    #[error(transparent)]
    Simulation(#[from] SimError),
}
