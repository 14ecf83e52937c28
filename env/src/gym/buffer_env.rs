//! The switch as an environment: one trace of flows is one episode.

use super::{BufferEnvOptions, EnvError, EnvSnapshot, NetworkEnv, Reset, ResetOptions, Space};
use super::{Env, MultiAgentEnv, Resumable, Step, Turn};
use crate::control::ControlEnv;
use bufgym_sim::network::OneSwitch;

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
/// The seed of `reset` replaces [`TraceSequence::seed`](super::TraceSequence::seed) and starts the sequence again.
#[derive(Clone, Debug)]
pub struct BufferEnv {
    /// The switch is a network of one, and its agent the only one.
    network: NetworkEnv<OneSwitch>,
}

impl BufferEnv {
    /// An environment that has not been reset yet.
    ///
    /// # Errors
    /// [`EnvError::Simulation`] when the scenario is not valid or has several switches, [`EnvError::Options`] when the
    /// sequence of traces is not valid.
    pub fn new(options: BufferEnvOptions) -> Result<BufferEnv, EnvError> {
        let network = NetworkEnv::new(options)?;
        Ok(BufferEnv { network })
    }

    /// Returns the options of the environment.
    pub fn options(&self) -> &BufferEnvOptions {
        self.network.options()
    }

    /// Number of ports.
    pub fn ports(&self) -> usize {
        self.options().scenario.port_count()
    }

    /// The simulator under its control loop, for looking at flows and queues; `None` before the
    /// first reset.
    pub fn control(&self) -> Option<&ControlEnv> {
        self.network.control()
    }

    /// Index in its split of the trace being played; `None` before the first reset.
    pub fn trace_index(&self) -> Option<u64> {
        let current = self.network.episodes.current.as_ref();
        current.map(|episode| episode.stats.index)
    }

    /// Returns the current state as that of a reset.
    fn state(&mut self) -> Reset<'_> {
        let (observation, _, info) = self.network.alone();
        Reset { observation, info }
    }
}

impl Env for BufferEnv {
    fn observation_space(&self) -> &Space {
        self.network.observation_space(0)
    }

    fn action_space(&self) -> &Space {
        self.network.action_space(0)
    }

    fn privileged_space(&self) -> Option<&Space> {
        Some(self.network.privileged_space(0))
    }

    fn reward_components(&self) -> usize {
        self.ports()
    }

    fn reset(&mut self, seed: Option<u64>, options: &ResetOptions) -> Result<Reset<'_>, EnvError> {
        self.network.reset(seed, options)?;
        Ok(self.state())
    }

    fn step(&mut self, action: &[f32]) -> Result<Step<'_>, EnvError> {
        let turn = self.network.step(action)?;
        let (observation, reward, info) = self.network.alone();
        Ok(Step {
            observation,
            reward,
            terminated: turn == Turn::Terminated,
            truncated: turn == Turn::Truncated,
            info,
        })
    }
}

impl Resumable for BufferEnv {
    type Snapshot = EnvSnapshot;

    fn snapshot(&self) -> EnvSnapshot {
        self.network.snapshot()
    }

    /// Plays the trace of the snapshot again with the same actions. That takes as long as the
    /// episode took so far.
    fn restore(&mut self, snapshot: &EnvSnapshot) -> Result<Option<Reset<'_>>, EnvError> {
        let restored = self.network.restore(snapshot)?;
        Ok(restored.map(|_| self.state()))
    }
}

#[cfg(test)]
mod tests;
