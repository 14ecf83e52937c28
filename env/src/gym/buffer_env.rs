//! The switch as an environment: one trace of flows is one episode.

use serde::{Deserialize, Serialize};

use super::TraceSequence;
use super::episodes::Episodes;
use super::{Env, EnvError, Info, Reset, ResetOptions, Resumable, Space, Step};
use crate::control::{ActionSet, FEATURES, HISTORY, PRIVILEGED, cell_centre};
use crate::control::{ControlEnv, ControlOptions, StopReason};
use bufgym_sim::network::OneSwitch;
use bufgym_sim::scenario::Scenario;

/// Options of a [`BufferEnv`].
#[derive(Clone, Debug, Default)]
pub struct BufferEnvOptions {
    /// Switch, hosts, transport and traffic.
    pub scenario: Scenario,
    /// Traces to play, and their order.
    pub traces: TraceSequence,
    /// Trigger, objective and scale of the reward.
    pub control: ControlOptions,
}

/// A shared-memory switch under NDT's two-level control (Wang et al., §III-IV): the agent sets one
/// α per port, and between two decisions every packet is admitted by `q_i < α_i (B - Q)`. Over a
/// heuristic that ends in `+early` it also sets a level of
/// [early drop](bufgym_sim::switch::aqm::early) per port.
///
/// | | shape | |
/// |---|---|---|
/// | action | `[ports]` in [-1, 1] | eight equal cells: `α ∈ {2^-2, …, 2^5}` |
/// | with early drop | `[ports, 2]` in [-1, 1] | α, then the level of early drop, from none to 12 % |
/// | observation | `[ports, 8, 5]` in [-1, 1] | the last 8 decisions, newest last, of [`FEATURE_NAMES`](crate::control::FEATURE_NAMES) |
/// | `info.privileged` | `[ports, 22]` | [`PRIVILEGED_NAMES`](crate::control::PRIVILEGED_NAMES) |
/// | reward | | by the [`Objective`](crate::control::Objective); by port in `info.port_rewards` |
///
/// A step runs to the next trigger (Eq. 5), so steps differ in length; `info.discount` is
/// `e^{-Δt/τ}`. `terminated`: all flows are complete, and the last reward runs to that instant.
/// `truncated`: the scenario's `max_decisions` or `max_simulated_ms` is reached.
///
/// `reset` runs to the first trigger. A trace that ends without one leaves nothing to decide; it is skipped, the next
/// one of the sequence is drawn and `info.no_decision` is set.
///
/// The seed of `reset` replaces [`TraceSequence::seed`] and starts the sequence again.
#[derive(Clone, Debug)]
pub struct BufferEnv {
    episodes: Episodes<OneSwitch>,
    observation_space: Space,
    action_space: Space,
    privileged_space: Space,
    /// Discount from the first decision to now.
    discount: f64,
    info: Info,
    action: Vec<f32>,
}

/// The exact state of a [`BufferEnv`] or of a [`NetworkEnv`](super::NetworkEnv): the simulator is deterministic, so the trace and the
/// actions determine it. Small, and independent of the simulator's inner structures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvSnapshot {
    /// Description of scenario, objective and sequence of traces; they must be the same when the state is restored.
    pub options: String,
    /// The seed of the experiment in force.
    pub seed: u64,
    /// Number in the sequence of the next trace.
    pub next: u64,
    /// The episode in progress or just ended.
    pub episode: Option<EpisodeSnapshot>,
}

/// The part of an [`EnvSnapshot`] that belongs to its episode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpisodeSnapshot {
    /// Index of the trace in its split.
    pub index: u64,
    /// Number of traces skipped before this one.
    pub skipped: u64,
    /// Indices of the actions so far, decision by decision `[ports, outputs]`.
    pub actions: Vec<u8>,
}

impl BufferEnv {
    /// An environment that has not been reset yet.
    ///
    /// # Errors
    /// [`EnvError::Simulation`] when the scenario is not valid, [`EnvError::Options`] when the
    /// sequence of traces is not.
    pub fn new(options: BufferEnvOptions) -> Result<BufferEnv, EnvError> {
        let ports = options.scenario.port_count();
        let [observation_space, action_space, privileged_space] = spaces(&options, ports);
        Ok(BufferEnv {
            discount: 1.0,
            info: blank_info(ports),
            action: vec![0.0; action_space.len()],
            observation_space,
            action_space,
            privileged_space,
            episodes: Episodes::new(options)?,
        })
    }

    /// Returns the options of the environment.
    pub fn options(&self) -> &BufferEnvOptions {
        &self.episodes.options
    }

    /// Number of ports.
    pub fn ports(&self) -> usize {
        self.options().scenario.port_count()
    }

    /// The simulator under its control loop, for looking at flows and queues; `None` before the
    /// first reset.
    pub fn control(&self) -> Option<&ControlEnv> {
        self.episodes
            .current
            .as_ref()
            .map(|episode| &episode.control)
    }

    /// Index in its split of the trace being played; `None` before the first reset.
    pub fn trace_index(&self) -> Option<u64> {
        let current = self.episodes.current.as_ref();
        current.map(|episode| episode.stats.index)
    }

    /// Describes the beginning of the current episode.
    fn enter(&mut self) -> Result<(), EnvError> {
        let episode = self.episodes.running()?;
        self.info.begin(episode.skipped);
        self.discount = 1.0;
        episode.control.privileged(&mut self.info.privileged);
        Ok(())
    }

    /// Applies `self.action` to the running episode.
    fn apply(&mut self) -> Result<(f64, StopReason), EnvError> {
        let episode = self.episodes.running()?;
        let stop = episode.act(&self.action);
        let reward = episode.control.reward();
        let total = reward.total;
        self.info.begin(0);
        self.info.describe(reward);
        episode.stats.return_ += total;
        episode.stats.discounted_return += self.discount * total;
        self.discount *= f64::from(reward.discount);
        episode.control.privileged(&mut self.info.privileged);
        if stop != StopReason::Decision {
            self.info.episode = Some(episode.finish());
        }
        Ok((total, stop))
    }

    fn observation(&self) -> &[f32] {
        let current = self.episodes.current.as_ref();
        current.map_or(&[], |episode| episode.control.observation())
    }
}

/// Returns the spaces of a switch: observation, action, and privileged observation.
pub(super) fn spaces(options: &BufferEnvOptions, ports: usize) -> [Space; 3] {
    let actions = match ActionSet::of(&options.control.low_level) {
        ActionSet::Alpha => vec![ports],
        more => vec![ports, more.outputs()],
    };
    [
        Space::uniform_box(&[ports, HISTORY, FEATURES], -1.0, 1.0),
        Space::uniform_box(&actions, -1.0, 1.0),
        Space::uniform_box(&[ports, PRIVILEGED], f32::NEG_INFINITY, f32::INFINITY),
    ]
}

/// The info of a switch before the first episode.
pub(super) fn blank_info(ports: usize) -> Info {
    Info {
        privileged: vec![0.0; ports * PRIVILEGED],
        port_rewards: vec![0.0; ports],
        ..Info::default()
    }
}

impl Env for BufferEnv {
    fn observation_space(&self) -> &Space {
        &self.observation_space
    }

    fn action_space(&self) -> &Space {
        &self.action_space
    }

    fn privileged_space(&self) -> Option<&Space> {
        Some(&self.privileged_space)
    }

    fn reward_components(&self) -> usize {
        self.ports()
    }

    fn reset(&mut self, seed: Option<u64>, options: &ResetOptions) -> Result<Reset<'_>, EnvError> {
        self.episodes.reset(seed, options)?;
        self.enter()?;
        Ok(Reset {
            observation: self.observation(),
            info: &self.info,
        })
    }

    fn step(&mut self, action: &[f32]) -> Result<Step<'_>, EnvError> {
        self.episodes.running()?;
        self.action_space.accept_action(action)?;
        self.action.copy_from_slice(action);
        let (reward, stop) = self.apply()?;
        Ok(Step {
            observation: self.observation(),
            reward,
            terminated: stop == StopReason::Finished,
            truncated: stop == StopReason::Truncated,
            info: &self.info,
        })
    }
}

impl Resumable for BufferEnv {
    type Snapshot = EnvSnapshot;

    fn snapshot(&self) -> EnvSnapshot {
        self.episodes.snapshot()
    }

    /// Plays the trace of the snapshot again with the same actions. That takes as long as the
    /// episode took so far.
    fn restore(&mut self, snapshot: &EnvSnapshot) -> Result<Option<Reset<'_>>, EnvError> {
        let Some(mut replayed) = self.episodes.reopen(snapshot)? else {
            return Ok(None);
        };
        self.enter()?;
        loop {
            let running = self.episodes.running().is_ok();
            let Some(levels) = replayed.next(self.action.len(), running)? else {
                break;
            };
            fill_levels(&mut self.action, levels);
            self.apply()?;
        }
        Ok(Some(Reset {
            observation: self.observation(),
            info: &self.info,
        }))
    }
}

/// Writes an action with these levels.
pub(super) fn fill_levels(action: &mut [f32], levels: &[u8]) {
    for (value, &level) in action.iter_mut().zip(levels) {
        *value = cell_centre(usize::from(level));
    }
}

#[cfg(test)]
mod tests;
