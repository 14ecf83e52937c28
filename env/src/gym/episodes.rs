//! The traces of a sequence as episodes.

use serde::{Deserialize, Serialize};

use super::{EnvError, EpisodeStats, ResetOptions, TraceSequence};
use crate::control::{ControlEnv, ControlOptions, ControlTopology, StopReason, action_level};
use bufgym_sim::network::SimError;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::{TraceError, generate};

/// Largest number of traces without a decision that one reset skips.
const MAX_SKIPPED: u64 = 1_000;

/// Largest index of a level.
const MAX_LEVEL: u8 = 7;

/// Options of a [`BufferEnv`](super::BufferEnv) or a [`NetworkEnv`](super::NetworkEnv).
#[derive(Clone, Debug, Default)]
pub struct BufferEnvOptions {
    /// Switch, hosts, transport and traffic.
    pub scenario: Scenario,
    /// Traces to play, and their order.
    pub traces: TraceSequence,
    /// Trigger, objective and scale of the reward.
    pub control: ControlOptions,
}

/// The exact state of a [`BufferEnv`](super::BufferEnv) or of a [`NetworkEnv`](super::NetworkEnv). The simulator is
/// deterministic, so the trace and the actions determine it. A snapshot is small, and independent of the simulator's
/// inner structures.
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

/// A sequence of traces, one of which may be in progress.
#[derive(Clone, Debug)]
pub(super) struct Episodes<T: ControlTopology> {
    pub(super) options: BufferEnvOptions,
    /// Number in the sequence of the next trace.
    pub(super) next: u64,
    pub(super) current: Option<Episode<T>>,
}

/// The trace being played.
#[derive(Clone, Debug)]
pub(super) struct Episode<T: ControlTopology> {
    pub(super) control: ControlEnv<T>,
    pub(super) stats: EpisodeStats,
    /// Number of traces skipped before this one.
    pub(super) skipped: u64,
    /// Indices of all actions so far, decision by decision `[ports, outputs]`.
    actions: Vec<u8>,
    pub(super) over: bool,
}

impl<T: ControlTopology> Episodes<T> {
    /// # Errors
    /// [`EnvError::Simulation`] when the scenario is not valid, [`EnvError::Options`] when the
    /// sequence of traces is not.
    pub(super) fn new(options: BufferEnvOptions) -> Result<Episodes<T>, EnvError> {
        let valid = options.scenario.validate();
        valid.map_err(|error| EnvError::Simulation(error.into()))?;
        options.traces.validate()?;
        Ok(Episodes {
            options,
            next: 0,
            current: None,
        })
    }

    /// Runs the trace `index` to its first decision; returns `None` if it ends without one.
    fn begin(&self, index: u64, skipped: u64) -> Result<Option<Episode<T>>, EnvError> {
        let BufferEnvOptions {
            scenario,
            traces,
            control,
        } = &self.options;
        let seed = traces.trace_seed(index);
        let mut control = ControlEnv::in_network(scenario, &generate(scenario, seed), control)?;
        let stats = EpisodeStats {
            seed,
            index,
            no_decision: skipped > 0,
            ..EpisodeStats::default()
        };
        let decision = control.advance() == StopReason::Decision;
        let episode = Episode {
            control,
            stats,
            skipped,
            actions: Vec::new(),
            over: false,
        };
        Ok(decision.then_some(episode))
    }

    /// Returns the next trace of the sequence that has a decision. Those without flows have none.
    fn draw(&mut self) -> Result<Episode<T>, EnvError> {
        let period = self.options.traces.period();
        let limit = period.unwrap_or(MAX_SKIPPED).min(MAX_SKIPPED);
        let mut empty = 0;
        for skipped in 0..limit {
            let index = self.options.traces.index(self.next);
            self.next += 1;
            match self.begin(index, skipped) {
                Ok(Some(episode)) => return Ok(episode),
                Ok(None) => {}
                Err(EnvError::Simulation(SimError::Trace(TraceError::NoFlows))) => empty += 1,
                Err(error) => return Err(error),
            }
        }
        Err(self.no_decision(limit, empty))
    }

    fn no_decision(&self, tried: u64, empty: u64) -> EnvError {
        EnvError::NoDecision {
            tried,
            empty,
            scenario: self.options.scenario.name.clone(),
        }
    }

    /// Begins an episode, as described for [`Env::reset`](super::Env::reset).
    pub(super) fn reset(
        &mut self,
        seed: Option<u64>,
        options: &ResetOptions,
    ) -> Result<&mut Episode<T>, EnvError> {
        if let Some(seed) = seed {
            self.options.traces.seed = seed;
            self.next = 0;
        }
        self.current = None;
        let episode = match options.trace {
            Some(index) => self
                .begin(index, 0)?
                .ok_or_else(|| self.no_decision(1, 0))?,
            None => self.draw()?,
        };
        Ok(self.current.insert(episode))
    }

    /// Returns the episode in progress.
    pub(super) fn running(&mut self) -> Result<&mut Episode<T>, EnvError> {
        match &mut self.current {
            None => Err(EnvError::ResetNeeded("it has not been reset yet")),
            Some(episode) if episode.over => Err(EnvError::ResetNeeded("the last one is over")),
            Some(episode) => Ok(episode),
        }
    }

    pub(super) fn snapshot(&self) -> EnvSnapshot {
        let saved = |episode: &Episode<T>| EpisodeSnapshot {
            index: episode.stats.index,
            skipped: episode.skipped,
            actions: episode.actions.clone(),
        };
        EnvSnapshot {
            options: self.options.fingerprint(),
            seed: self.options.traces.seed,
            next: self.next,
            episode: self.current.as_ref().map(saved),
        }
    }

    /// Begins the episode of a snapshot, whose actions have to be repeated then. Returns `None` if the snapshot has no
    /// episode.
    pub(super) fn reopen<'a>(
        &mut self,
        snapshot: &'a EnvSnapshot,
    ) -> Result<Option<Replayed<'a>>, EnvError> {
        let own = self.options.fingerprint();
        if own != snapshot.options {
            let theirs = &snapshot.options;
            return Err(EnvError::Snapshot(format!(
                "it was taken of {theirs}, this is {own}"
            )));
        }
        self.current = None;
        self.options.traces.seed = snapshot.seed;
        self.next = snapshot.next;
        let Some(saved) = &snapshot.episode else {
            return Ok(None);
        };
        let replayed = Replayed {
            index: saved.index,
            rest: &saved.actions,
            decisions: 0,
        };
        if saved.actions.iter().any(|&level| level > MAX_LEVEL) {
            return Err(replayed.damaged("its actions are damaged"));
        }
        let episode = self.begin(saved.index, saved.skipped)?;
        let damaged = || replayed.damaged("it has no decision");
        self.current = Some(episode.ok_or_else(damaged)?);
        Ok(Some(replayed))
    }
}

impl<T: ControlTopology> Episode<T> {
    /// Makes a decision, `[ports, outputs]`, and runs to the next pause.
    pub(super) fn act(&mut self, action: &[f32]) -> StopReason {
        let levels = action.iter().map(|&value| action_level(value));
        self.actions.extend(levels);
        self.control.act(action);
        self.stats.decisions += 1;
        self.control.advance()
    }

    /// Returns the statistics of the ended episode.
    pub(super) fn finish(&mut self) -> EpisodeStats {
        self.over = true;
        let summary = self.control.outcome().summary;
        let stats = &mut self.stats;
        stats.flows = summary.flows;
        stats.completed = summary.completed;
        stats.mean_fct_ms = summary.mean_fct_ms;
        stats.drops = summary.drops;
        stats.timeouts = summary.timeouts;
        stats.packets_forwarded = summary.packets_forwarded;
        stats.simulated_s = summary.simulated_s;
        stats.clone()
    }
}

/// The actions of a snapshot that have not been repeated yet.
#[derive(Clone, Debug)]
pub(super) struct Replayed<'a> {
    index: u64,
    rest: &'a [u8],
    decisions: u64,
}

impl Replayed<'_> {
    fn damaged(&self, what: &str) -> EnvError {
        EnvError::Snapshot(format!("trace {}: {what}", self.index))
    }

    /// Returns the levels of the next decision, of so many values; `None` after the last one. `running` is true if the
    /// episode continues.
    pub(super) fn next(&mut self, values: usize, running: bool) -> Result<Option<&[u8]>, EnvError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        if !running {
            return Err(self.damaged(&format!("it ended after {} decisions", self.decisions)));
        }
        let split = self.rest.split_at_checked(values);
        let (levels, rest) = split.ok_or_else(|| self.damaged("its actions are damaged"))?;
        self.rest = rest;
        self.decisions += 1;
        Ok(Some(levels))
    }
}

impl BufferEnvOptions {
    /// Returns a description of all options except the seed.
    fn fingerprint(&self) -> String {
        let TraceSequence {
            split,
            start,
            stride,
            traces,
            ..
        } = self.traces;
        let traces = traces.map_or("endless".to_owned(), |traces| format!("{traces} traces"));
        // All settings matter, not only the scenario's name; a short hash of them is enough.
        let ControlOptions {
            objective,
            tau_s,
            low_level,
            trigger,
            baseline,
            horizon_s,
            reference_interval_s,
            flow_times: _,
        } = &self.control;
        let control = format!(
            "ControlOptions {{ objective: {objective:?}, tau_s: {tau_s:?}, low_level: {low_level:?}, trigger: {trigger:?}, \
             baseline: {baseline:?}, horizon_s: {horizon_s:?}, reference_interval_s: {reference_interval_s:?} }}"
        );
        let hash = fnv1a(format!("{} {control}", self.scenario.to_toml()).as_bytes());
        format!(
            "{} {hash:016x}, {split} traces {start} by {stride}, {traces}",
            self.scenario.name
        )
    }
}

/// The 64-bit hash FNV-1a (Fowler, Noll, Vo; draft-eastlake-fnv).
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
