//! The switch as an environment: one trace of flows is one episode.

use serde::{Deserialize, Serialize};

use super::TraceSequence;
use super::{Env, EnvError, EpisodeStats, Info, Reset, ResetOptions, Resumable, Space, Step};
use crate::control::{ActionSet, FEATURES, HISTORY, PRIVILEGED, action_level, cell_centre};
use crate::control::{ControlEnv, ControlOptions, Pause};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::generate;

/// Traces without a decision that one reset passes over before it gives up.
const MAX_SKIPPED: u64 = 1_000;

/// What a [`BufferEnv`] simulates.
#[derive(Clone, Debug, Default)]
pub struct BufferEnvOptions {
    /// Switch, hosts, transport and traffic.
    pub scenario: Scenario,
    /// Which traces it plays in which order.
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
/// `reset` runs to the first trigger. A trace that ends without one leaves nothing to decide; it is
/// passed over, the next one of the sequence is drawn and `info.no_decision` is set.
///
/// The seed of `reset` takes the place of [`TraceSequence::seed`] and starts the sequence again.
#[derive(Clone, Debug)]
pub struct BufferEnv {
    options: BufferEnvOptions,
    observation_space: Space,
    action_space: Space,
    privileged_space: Space,
    /// Number in the sequence of the next trace.
    next: u64,
    episode: Option<Episode>,
    info: Info,
    action: Vec<f32>,
}

/// The trace being played.
#[derive(Clone, Debug)]
struct Episode {
    control: ControlEnv,
    stats: EpisodeStats,
    /// Traces passed over before this one.
    skipped: u64,
    /// Discount from the first decision to now.
    discount: f64,
    /// Indices of all actions so far, `[decisions, ports, outputs]`.
    actions: Vec<u8>,
    over: bool,
}

/// The exact state of a [`BufferEnv`]: the simulator is deterministic, so the trace and the
/// actions determine it. Small, and independent of the simulator's inner structures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvSnapshot {
    /// Scenario, objective and sequence of traces in words; they must be the same at the restore.
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
    /// Traces passed over before this one.
    pub skipped: u64,
    /// Indices of the actions so far, `[decisions, ports, outputs]`.
    pub actions: Vec<u8>,
}

impl BufferEnv {
    /// An environment that has not been reset yet.
    ///
    /// # Errors
    /// [`EnvError::Simulation`] when the scenario is not valid, [`EnvError::Options`] when the
    /// sequence of traces is not.
    pub fn new(options: BufferEnvOptions) -> Result<BufferEnv, EnvError> {
        options
            .scenario
            .validate()
            .map_err(|error| EnvError::Simulation(error.into()))?;
        options.traces.validate()?;
        let ports = options.scenario.port_count();
        let actions = match ActionSet::of(&options.control.low_level) {
            ActionSet::Alpha => vec![ports],
            more => vec![ports, more.outputs()],
        };
        let reals = f32::NEG_INFINITY..f32::INFINITY;
        Ok(BufferEnv {
            observation_space: Space::uniform_box(&[ports, HISTORY, FEATURES], -1.0, 1.0),
            action_space: Space::uniform_box(&actions, -1.0, 1.0),
            privileged_space: Space::uniform_box(&[ports, PRIVILEGED], reals.start, reals.end),
            next: 0,
            episode: None,
            info: Info {
                privileged: vec![0.0; ports * PRIVILEGED],
                port_rewards: vec![0.0; ports],
                ..Info::default()
            },
            action: vec![0.0; actions.iter().product()],
            options,
        })
    }

    /// What is simulated.
    pub fn options(&self) -> &BufferEnvOptions {
        &self.options
    }

    /// Number of ports.
    pub fn ports(&self) -> usize {
        self.options.scenario.port_count()
    }

    /// The simulator under its control loop, for looking at flows and queues; `None` before the
    /// first reset.
    pub fn control(&self) -> Option<&ControlEnv> {
        self.episode.as_ref().map(|episode| &episode.control)
    }

    /// Index in its split of the trace being played; `None` before the first reset.
    pub fn trace_index(&self) -> Option<u64> {
        self.episode.as_ref().map(|episode| episode.stats.index)
    }

    /// The trace `index` run to its first decision; `None` when it ends without one.
    fn begin(&self, index: u64, skipped: u64) -> Result<Option<Episode>, EnvError> {
        let seed = self.options.traces.trace_seed(index);
        let trace = generate(&self.options.scenario, seed);
        let mut control = ControlEnv::new(&self.options.scenario, &trace, &self.options.control)?;
        let stats = EpisodeStats {
            seed,
            index,
            no_decision: skipped > 0,
            ..EpisodeStats::default()
        };
        let decision = control.advance() == Pause::Decision;
        let actions = Vec::new();
        let episode = Episode {
            control,
            stats,
            skipped,
            discount: 1.0,
            actions,
            over: false,
        };
        Ok(decision.then_some(episode))
    }

    /// The next trace of the sequence that has a decision.
    fn draw(&mut self) -> Result<Episode, EnvError> {
        let limit = self
            .options
            .traces
            .period()
            .unwrap_or(MAX_SKIPPED)
            .min(MAX_SKIPPED);
        for skipped in 0..limit {
            let index = self.options.traces.index(self.next);
            self.next += 1;
            if let Some(episode) = self.begin(index, skipped)? {
                return Ok(episode);
            }
        }
        Err(self.no_decision(limit))
    }

    fn no_decision(&self, tried: u64) -> EnvError {
        EnvError::NoDecision {
            tried,
            scenario: self.options.scenario.name.clone(),
        }
    }

    /// Makes `episode` the current one and describes its beginning.
    fn enter(&mut self, episode: Episode) {
        self.info.begin(episode.skipped);
        let episode = self.episode.insert(episode);
        episode.control.privileged(&mut self.info.privileged);
    }

    /// Applies `self.action` to the running episode.
    fn apply(&mut self) -> Result<(f64, Pause), EnvError> {
        let episode = running(&mut self.episode)?;
        episode
            .actions
            .extend(self.action.iter().map(|action| action_level(*action)));
        episode.control.act(&self.action);
        let pause = episode.control.advance();
        let reward = episode.control.reward();
        let total = reward.total;
        self.info.begin(0);
        self.info.port_rewards.copy_from_slice(&reward.port_rewards);
        self.info.discount = reward.discount;
        self.info.entropy_weight = reward.entropy_weight;
        self.info.elapsed = reward.elapsed;
        episode.stats.return_ += total;
        episode.stats.discounted_return += episode.discount * total;
        episode.discount *= f64::from(reward.discount);
        episode.stats.decisions += 1;
        episode.control.privileged(&mut self.info.privileged);
        if pause != Pause::Decision {
            episode.over = true;
            self.info.episode = Some(episode.finish());
        }
        Ok((total, pause))
    }
}

impl Episode {
    /// Statistics of the episode as it has ended.
    fn finish(&mut self) -> EpisodeStats {
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

fn running(episode: &mut Option<Episode>) -> Result<&mut Episode, EnvError> {
    match episode {
        None => Err(EnvError::ResetNeeded("it has not been reset yet")),
        Some(episode) if episode.over => Err(EnvError::ResetNeeded("the last one is over")),
        Some(episode) => Ok(episode),
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
        if let Some(seed) = seed {
            self.options.traces.seed = seed;
            self.next = 0;
        }
        self.episode = None;
        let episode = match options.trace {
            Some(index) => self.begin(index, 0)?.ok_or_else(|| self.no_decision(1))?,
            None => self.draw()?,
        };
        self.enter(episode);
        Ok(Reset {
            observation: observation(&self.episode),
            info: &self.info,
        })
    }

    fn step(&mut self, action: &[f32]) -> Result<Step<'_>, EnvError> {
        running(&mut self.episode)?;
        self.action_space.accept_action(action)?;
        self.action.copy_from_slice(action);
        let (reward, pause) = self.apply()?;
        Ok(Step {
            observation: observation(&self.episode),
            reward,
            terminated: pause == Pause::Finished,
            truncated: pause == Pause::Truncated,
            info: &self.info,
        })
    }
}

fn observation(episode: &Option<Episode>) -> &[f32] {
    episode
        .as_ref()
        .map_or(&[], |episode| episode.control.observation())
}

impl Resumable for BufferEnv {
    type Snapshot = EnvSnapshot;

    fn snapshot(&self) -> EnvSnapshot {
        EnvSnapshot {
            options: self.options.fingerprint(),
            seed: self.options.traces.seed,
            next: self.next,
            episode: self.episode.as_ref().map(|episode| EpisodeSnapshot {
                index: episode.stats.index,
                skipped: episode.skipped,
                actions: episode.actions.clone(),
            }),
        }
    }

    /// Plays the trace of the snapshot again with the same actions. That takes as long as the
    /// episode took so far.
    fn restore(&mut self, snapshot: &EnvSnapshot) -> Result<Option<Reset<'_>>, EnvError> {
        let own = self.options.fingerprint();
        if own != snapshot.options {
            let theirs = &snapshot.options;
            return Err(EnvError::Snapshot(format!(
                "it was taken of {theirs}, this is {own}"
            )));
        }
        self.episode = None;
        self.options.traces.seed = snapshot.seed;
        self.next = snapshot.next;
        let Some(saved) = &snapshot.episode else {
            return Ok(None);
        };
        let damaged = |what: String| EnvError::Snapshot(format!("trace {}: {what}", saved.index));
        let width = self.action_space.len();
        if saved.actions.len() % width != 0 || saved.actions.iter().any(|index| *index > 7) {
            return Err(damaged("its actions are damaged".to_owned()));
        }
        let episode = self.begin(saved.index, saved.skipped)?;
        self.enter(episode.ok_or_else(|| damaged("it has no decision".to_owned()))?);
        for (decision, indices) in saved.actions.chunks_exact(width).enumerate() {
            self.action.clear();
            self.action
                .extend(indices.iter().map(|index| cell_centre(usize::from(*index))));
            if running(&mut self.episode).is_err() {
                return Err(damaged(format!("it ended after {decision} decisions")));
            }
            self.apply()?;
        }
        Ok(Some(Reset {
            observation: observation(&self.episode),
            info: &self.info,
        }))
    }
}

impl BufferEnvOptions {
    /// Everything but the seed, in words.
    fn fingerprint(&self) -> String {
        let TraceSequence {
            split,
            start,
            stride,
            traces,
            ..
        } = self.traces;
        let traces = traces.map_or("endless".to_owned(), |traces| format!("{traces} traces"));
        // The scenario's settings matter, not only its name; a short hash of them is enough.
        let hash = fnv1a(format!("{} {:?}", self.scenario.to_toml(), self.control).as_bytes());
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

#[cfg(test)]
mod tests;
