//! All settings of a training, as read from and stored in TOML.

mod file;
mod mixed;
mod start;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use bufgym_agents::{PortsConfig, PpoConfig, SacConfig};
use bufgym_env::control::{ActionSet, LowLevelPolicy, Objective, RewardBaseline};
use bufgym_eval::metric::Metric;
use bufgym_sim::scenario::Scenario;
use bufgym_util::convert::index;
use bufgym_util::input::excerpt;
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Deserializer, Serialize};

use crate::TrainError;
use crate::forks::ForkConfig;
use crate::mixture::{self, MIXED};
use crate::simulations::Setting;

pub use file::ConfigFile;
pub use start::StartConfig;

pub(crate) use start::{CHECK_EVERY, MAX_GENERATIONS};

/// All settings of a training.
///
/// The TOML form has the same names. Missing settings keep their defaults ([`ConfigFile`] says which), which a run
/// folder's `config.toml` shows. `scenario` is the name of a preset or a file, or a table with the scenario's settings:
///
/// ```
/// use bufgym_train::TrainConfig;
///
/// let config = TrainConfig::from_toml_str(
///     "scenario = 'ndt-16x1g'\nobjective = 'fct'\n[rollout]\nworkers = 8\n",
///     "mine.toml".as_ref(),
/// )?;
/// assert_eq!(config.rollout.workers, 8);
/// # Ok::<(), bufgym_train::TrainError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// The run folder to make.
    #[serde(skip)]
    pub out: PathBuf,
    /// True if the files of an earlier run in `out` may be replaced.
    #[serde(skip)]
    pub force: bool,
    /// The scenario to train on; the default one is `ndt-16x1g`.
    #[serde(deserialize_with = "scenario", skip_serializing)]
    pub scenario: Scenario,
    /// Several scenarios instead of `scenario`, at most one per worker: worker i plays number i modulo their number. In
    /// a file `"mixed"` or a list. With a mixture `scenario` is its first.
    #[serde(deserialize_with = "mixture::deserialize", skip_serializing)]
    pub mixture: Vec<Scenario>,
    /// The objective that rewards follow.
    pub objective: Objective,
    /// The heuristic whose α the agent sets, and its early drop if it ends in `+early`. The default is Dynamic
    /// Threshold, as in the paper, and Reverie where packets are lossless.
    pub low_level: LowLevelPolicy,
    /// Seed of everything random: traces, weights, exploration, batches. Below 2^63.
    pub seed: u64,
    /// Limits that end the training.
    pub budget: Budget,
    /// The rollout workers.
    pub rollout: RolloutConfig,
    /// The pairs of forks that the critics learn from.
    pub forks: ForkConfig,
    /// The learner's share of a round, and its replay memory.
    pub learner: LearnerConfig,
    /// The rule that the training starts from.
    pub start: StartConfig,
    /// The learning algorithm.
    pub algorithm: Algorithm,
    /// Settings for the ports of a switch.
    pub ports: PortsConfig,
    /// Settings of soft actor-critic.
    pub sac: SacConfig,
    /// Settings of proximal policy optimisation.
    pub ppo: PpoConfig,
    /// The traces that choose the best weights.
    pub validation: ValidationConfig,
    /// Stored states.
    pub checkpoint: CheckpointConfig,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            out: PathBuf::new(),
            force: false,
            scenario: Scenario::default(),
            mixture: Vec::new(),
            objective: Objective::default(),
            low_level: usual_low_level(&Scenario::default()),
            seed: 1,
            budget: Budget::default(),
            rollout: RolloutConfig::default(),
            forks: ForkConfig::default(),
            learner: LearnerConfig::default(),
            start: StartConfig::default(),
            algorithm: Algorithm::default(),
            ports: PortsConfig::default(),
            sac: SacConfig::default(),
            ppo: PpoConfig::default(),
            validation: ValidationConfig::default(),
            checkpoint: CheckpointConfig::default(),
        }
    }
}

impl TrainConfig {
    /// Replaces defaults that depend on other settings by their values. So a resume with another budget, or with other
    /// defaults, continues the same search.
    pub(crate) fn settle(&mut self) {
        let start::SearchSettings {
            share,
            step,
            traces,
            ..
        } = self.search();
        let generations = self.start_generations();
        let starts = generations > 0 || !self.start.rule.is_empty();
        self.sac.settle(starts && self.may_start_from_rule());
        self.start = StartConfig {
            generations: Some(generations),
            share: Some(share),
            step: Some(step),
            traces: Some(traces),
            ..std::mem::take(&mut self.start)
        };
    }

    /// Returns the outputs that the agent sets.
    pub(crate) fn actions(&self) -> ActionSet {
        ActionSet::of(&self.low_level)
    }

    /// The scenarios that are played, at least one.
    #[must_use]
    pub fn scenarios(&self) -> &[Scenario] {
        match self.mixture.is_empty() {
            true => std::slice::from_ref(&self.scenario),
            false => &self.mixture,
        }
    }

    /// Returns the settings that all simulations of whole traces share.
    pub(crate) fn setting(&self) -> Setting {
        Setting {
            scenarios: self.scenarios().to_vec(),
            metric: Metric::of(&self.objective),
            low_level: self.low_level.clone(),
        }
    }

    /// Returns the scenario that a worker plays.
    pub(crate) fn scenario_of(&self, worker: usize) -> &Scenario {
        let scenarios = self.scenarios();
        &scenarios[worker % scenarios.len()]
    }

    /// Sets a mixture instead of a scenario.
    ///
    /// # Panics
    /// When it is empty.
    pub fn mix(&mut self, mixture: Vec<Scenario>) {
        self.scenario = mixture[0].clone();
        self.mixture = mixture;
    }

    /// Returns the name of the scenario or the mixture in results.
    #[must_use]
    pub fn scenario_name(&self) -> &str {
        match self.mixture.is_empty() {
            true => &self.scenario.name,
            false if mixture::mixed().is_ok_and(|mixed| mixed == self.mixture) => MIXED,
            false => "mixture",
        }
    }
}

/// The algorithm that learns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// [Soft actor-critic](bufgym_agents::sac), which learns from a replay of earlier decisions.
    #[default]
    Sac,
    /// [Proximal policy optimisation](bufgym_agents::ppo), which learns from the decisions of its last round.
    Ppo,
    /// [CMA-ES](bufgym_agents::evolution), which searches a linear rule by whole traces; a network then imitates it.
    Cma,
}

/// Initial weights of a training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// Random weights.
    #[default]
    Random,
    /// The imitation of a linear rule that is searched first.
    Rule,
}

/// The error for a text that is not the name of a [`Start`] or an [`Algorithm`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{}`; must be {names}", excerpt(.text))]
pub struct UnknownName {
    what: &'static str,
    text: String,
    names: &'static str,
}

/// Reads a name as settings have it. `what` and `names` are for the error.
fn named<'a, T: Deserialize<'a>>(
    text: &'a str,
    what: &'static str,
    names: &'static str,
) -> Result<T, UnknownName> {
    T::deserialize(StrDeserializer::<serde::de::value::Error>::new(text)).map_err(|_| UnknownName {
        what,
        text: text.to_owned(),
        names,
    })
}

impl FromStr for Start {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        named(text, "start", "random or rule")
    }
}

impl FromStr for Algorithm {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        named(text, "algorithm", "sac, ppo or cma")
    }
}

/// The default heuristic where decisions set α alone. Flow Aware Buffer (Apostolaki et al. 2019) admits the first `short_bytes`
/// of a flow, and of every burst after a pause of `idle_us`, wherever there is room, because their
/// loss ends in timeouts. Both values were chosen on training traces.
const ALPHA_LOW_LEVEL: &str = "fab:alpha_short=2048,short_bytes=10000,idle_us=100";

/// The default heuristic where decisions set early drop too. A flow counts as short until it has sent `short_bytes`,
/// and again after a pause of `idle_us`. That is longer than a full queue takes to drain, so a flow does not become
/// short while it waits in a queue. Early drop spares short flows. It drops the first queued packet of a flow, because
/// the loss of one of a flow's last packets ends in a timeout.
const EARLY_LOW_LEVEL: &str =
    "fab:alpha_short=2048,short_bytes=10000,idle_us=10000+early:from=front";

/// Same as [`EARLY_LOW_LEVEL`], for switches on which several packets at the head of a queue are not counted, so that a
/// drop there makes no room.
const EARLY_FROM_BACK: &str = "fab:alpha_short=2048,short_bytes=10000,idle_us=10000+early";

/// Same as [`ALPHA_LOW_LEVEL`], for a network of several switches. Its flows are shorter and more numerous, and an
/// answer to a query has to get through as a whole.
const ALPHA_IN_NETWORK: &str = "fab:alpha_short=2048,short_bytes=100000,idle_us=10000";

/// Same as [`EARLY_LOW_LEVEL`], for a network of several switches. Packets of hosts that use ECN are marked, because
/// these hosts need no loss: from a queue of some packets on, and again after a few round trips. The switch also keeps
/// its own marks, except for short flows. With decisions instead of these marks, queues would grow that a low threshold
/// keeps short.
const EARLY_IN_NETWORK: &str = "fab:alpha_short=2048,short_bytes=100000,idle_us=10000\
    +early:min_bytes=5000,grace_us=400,action=mark,keep=long";

/// The default heuristic where packets are lossless.
const INGRESS_LOW_LEVEL: &str = "reverie";

/// The heuristic below a training whose decisions set `actions`, where none is given.
pub fn default_low_level(actions: ActionSet, scenario: &Scenario) -> LowLevelPolicy {
    let text = match (actions, scenario.is_fabric()) {
        (ActionSet::AlphaIngress, _) => INGRESS_LOW_LEVEL,
        (ActionSet::Alpha, false) => ALPHA_LOW_LEVEL,
        (ActionSet::Alpha, true) => ALPHA_IN_NETWORK,
        (ActionSet::AlphaEarly, false) if scenario.uncounted_packets() > 1 => EARLY_FROM_BACK,
        (ActionSet::AlphaEarly, false) => EARLY_LOW_LEVEL,
        (ActionSet::AlphaEarly, true) => EARLY_IN_NETWORK,
    };
    built_in(text)
}

/// Parses a built-in heuristic. A mistake in it must not lead to silent training over another heuristic.
///
/// # Panics
/// When it has a mistake, which a test would find.
pub(crate) fn built_in(text: &str) -> LowLevelPolicy {
    text.parse().expect("a test reads every built-in heuristic")
}

/// The heuristic below a training where neither it nor the actions are given: Dynamic Threshold, as in the paper.
pub fn usual_low_level(scenario: &Scenario) -> LowLevelPolicy {
    match scenario.has_lossless() {
        true => default_low_level(ActionSet::AlphaIngress, scenario),
        false => LowLevelPolicy::dt(),
    }
}

/// Rounds of decisions that are kept where an algorithm learns from the last one.
const ROUNDS_KEPT: u64 = 4;

/// Mean number of decisions of a trace of `leafspine-4x4`, those of all its switches together.
const DECISIONS_IN_NETWORK: u64 = 100;

/// Returns the mean number of decisions of a trace of `ndt-16x1g`. With early drop there are fewer, because less is
/// retransmitted, and fewest with drops from the front.
fn decisions_per_trace(low_level: &LowLevelPolicy) -> u64 {
    let aqm = low_level.policy().aqm();
    match ActionSet::of(low_level) {
        ActionSet::Alpha => 370,
        ActionSet::AlphaEarly if aqm.is_some_and(|aqm| aqm.text("from") == Some("front")) => 130,
        ActionSet::AlphaEarly | ActionSet::AlphaIngress => 212,
    }
}

/// Limits that end a training: whichever is reached first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Decisions over all workers and forks, 1 to 10^15. The training ends with the first round that reaches them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Wall-clock minutes of training, 10^-6 to 10^7, including the time before a resume. Only this limit makes a
    /// run depend on the machine's speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minutes: Option<f64>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            steps: Some(200_000),
            minutes: None,
        }
    }
}

/// The rollout workers: environments on different training traces.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RolloutConfig {
    /// Number of environments, 1 to 4,096.
    pub workers: usize,
    /// Threads for rollouts, validation and learner together, at most 4,096; 0 is one per core.
    /// Results do not depend on it.
    pub threads: usize,
    /// Decisions of one worker in a round, 1 to 10^6. In a round the policy that collects stays the same, the
    /// learner makes its updates, and `metrics.csv` gets a row.
    pub decisions_per_round: u64,
    /// Decisions over all workers that are made uniformly at random, before the actor is used and
    /// the first update; 1 to 10^15.
    pub learning_starts: u64,
    /// Number of different training traces, after which they repeat; at most 10^15. 0: they never
    /// repeat.
    pub traces: u64,
    /// Time constant τ of the discount `e^{-Δt/τ}`, 10^-6 to 10^6 seconds.
    pub tau_s: f64,
    /// The baseline that rewards are measured from. It does not change the optimal policy.
    pub baseline: RewardBaseline,
    /// Time constant, 10^-6 to 10^6 seconds, of the horizon when delays are charged as soon as they are
    /// certain. 0: delays are charged as they pass, and τ is the horizon.
    pub horizon_s: f64,
    /// Time constant of the exploration noise, 10^-6 to 10^6 seconds: its correlation falls to 1/e in
    /// this time. 0: new noise at every decision.
    pub noise_s: f64,
}

impl Default for RolloutConfig {
    fn default() -> Self {
        Self {
            workers: 32,
            threads: 0,
            decisions_per_round: 16,
            learning_starts: 2_048,
            traces: 0,
            tau_s: 1.0,
            baseline: RewardBaseline::UnlimitedBuffer,
            horizon_s: 0.1,
            noise_s: 0.0,
        }
    }
}

/// The learner's share of a round, and its replay memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LearnerConfig {
    /// Gradient updates in a round. Divided by `workers · decisions_per_round` this is the number
    /// of updates per decision. At most 10^6.
    pub updates_per_round: u64,
    /// Transitions kept for learning, all workers together; at most 10^10, and what fits into
    /// memory.
    pub replay_capacity: usize,
    /// n of the n-step returns, 1 to 10,000.
    pub n_step: usize,
}

impl Default for LearnerConfig {
    fn default() -> Self {
        Self {
            updates_per_round: 32,
            replay_capacity: 60_000,
            n_step: 8,
        }
    }
}

/// The traces that choose the best weights. They are validation traces, which neither the rollouts
/// nor an evaluation use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValidationConfig {
    /// Decisions over all workers and forks between two validations, rounded up to whole rounds; 1 to 10^15.
    pub every_decisions: u64,
    /// Traces of each validation, 1 to 10^6.
    pub traces: u64,
    /// Traces of the table at the end, at most 10^6; 0 for none. They are other traces than those that chose the
    /// weights, so the choice does not bias the table.
    pub final_traces: u64,
    /// Seed of the validation traces, below 2^63. It is separate so that runs with different seeds compare.
    pub seed: u64,
}

impl Default for ValidationConfig {
    fn default() -> Self {
        Self {
            every_decisions: 12_500,
            traces: 32,
            final_traces: 64,
            seed: 0,
        }
    }
}

/// Stored states to resume from. These settings do not influence the results.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckpointConfig {
    /// Seconds between two states, 10^-3 to 10^9, which are stored at the end of a round. There is always one at
    /// the start and one at the end.
    pub every_seconds: f64,
    /// Rounds between two states, at most 10^15; 0 leaves it to the time alone.
    pub every_rounds: u64,
    /// Number of states kept, 1 to 10^6.
    pub keep: usize,
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        Self {
            every_seconds: 90.0,
            every_rounds: 0,
            keep: 2,
        }
    }
}

impl TrainConfig {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// Same as [`ConfigFile::load`] and [`ConfigFile::over_its_own`].
    pub fn load(path: &Path) -> Result<Self, TrainError> {
        ConfigFile::load(path)?.over_its_own()
    }

    /// Reads a configuration. `origin` is named in errors; a scenario file is looked for relative
    /// to the working directory.
    ///
    /// # Errors
    /// Same as [`ConfigFile::parse`] and [`ConfigFile::over_its_own`].
    pub fn from_toml_str(text: &str, origin: &Path) -> Result<Self, TrainError> {
        ConfigFile::parse(text, origin)?.over_its_own()
    }

    /// All settings as TOML, readable by [`from_toml_str`](TrainConfig::from_toml_str).
    #[must_use]
    pub fn to_toml(&self) -> String {
        let written = toml::to_string(self);
        let mut text = written.expect("numbers, texts and tables of them have a TOML form");
        if self.mixture.is_empty() {
            let _ = write!(text, "\n[scenario]\n{}", self.scenario.to_toml());
        }
        for scenario in &self.mixture {
            let _ = write!(text, "\n[[mixture]]\n{}", scenario.to_toml());
        }
        text
    }

    /// Decisions of a worker in a round.
    pub(crate) fn worker_decisions(&self) -> u64 {
        match self.algorithm {
            Algorithm::Sac | Algorithm::Cma => self.rollout.decisions_per_round,
            Algorithm::Ppo => self.ppo.decisions_per_round,
        }
    }

    /// Decisions kept for learning, all workers together.
    pub(crate) fn replay_capacity(&self) -> usize {
        match self.algorithm {
            Algorithm::Sac | Algorithm::Cma => self.learner.replay_capacity,
            // One round, and some more where the switches of a worker do not decide equally often.
            Algorithm::Ppo => index(self.decisions_per_round().saturating_mul(ROUNDS_KEPT)),
        }
    }

    /// Pairs of forks kept for learning, all workers together.
    pub(crate) fn pairs_kept(&self) -> usize {
        match self.algorithm {
            Algorithm::Sac if self.forks.rate > 0.0 => self.forks.kept,
            _ => 0,
        }
    }

    /// Decisions over all workers in one round, except those of forks.
    #[must_use]
    pub fn decisions_per_round(&self) -> u64 {
        self.rollout.workers as u64 * self.worker_decisions()
    }

    /// Returns about how many simulations a training of so many decisions runs. Counted are the search that it starts
    /// with, the imitation rounds, the episodes, and the validations with DT. Where rewards are measured from the
    /// unlimited buffer, every episode counts twice. The table at the end is not counted. Decisions of forks
    /// count as if they were of episodes. `None` if only the time ends the training.
    #[must_use]
    pub fn simulations(&self) -> Option<u64> {
        let steps = self.budget.steps?;
        let start = self.start_simulations(self.start_generations());
        Some(start + self.simulations_of(steps / self.decisions_per_trace(), steps))
    }

    fn decisions_per_trace(&self) -> u64 {
        match self.scenario.is_fabric() {
            true => DECISIONS_IN_NETWORK,
            false => decisions_per_trace(&self.low_level),
        }
    }

    /// Returns the algorithm and what it begins from, as manifests tell it.
    pub(crate) fn learner_in_words(&self) -> &'static str {
        match self.algorithm {
            Algorithm::Sac if self.starts_from_rule() => "sac from a rule",
            Algorithm::Sac => "sac from random weights",
            Algorithm::Ppo => "ppo from random weights",
            Algorithm::Cma => "cma",
        }
    }

    /// The simulations of so many episodes with so many decisions, as in
    /// [`simulations`](TrainConfig::simulations).
    #[must_use]
    pub fn simulations_of(&self, episodes: u64, decisions: u64) -> u64 {
        let beside = self.rollout.baseline == RewardBaseline::UnlimitedBuffer
            && self.objective.measures_time();
        let each = if beside { 2 } else { 1 };
        let validations = decisions / self.validation.every_decisions.max(1) + 1;
        episodes * each + (validations + 1) * self.validation.traces
    }

    /// Returns the settings that determine the results, as TOML. Budget, checkpoint times and threads are left out:
    /// they may change at a resume.
    pub(crate) fn identity(&self) -> toml::Table {
        let mut config = self.clone();
        config.budget = Budget::default();
        config.checkpoint = CheckpointConfig::default();
        config.rollout.threads = 0;
        let read = config.to_toml().parse();
        read.expect("what is written as TOML can be read")
    }

    /// Checks that two configurations are of one training.
    ///
    /// # Errors
    /// [`TrainError::Mismatch`] names the first setting in which they differ.
    pub(crate) fn require_same(&self, stored: &Self) -> Result<(), TrainError> {
        if self.scenario_name() != stored.scenario_name() {
            return Err(TrainError::Mismatch {
                setting: "scenario".into(),
                stored: stored.scenario_name().to_owned(),
                given: self.scenario_name().to_owned(),
            });
        }
        match first_difference("", &stored.identity(), &self.identity()) {
            None => Ok(()),
            Some((setting, stored, given)) => Err(TrainError::Mismatch {
                setting,
                stored,
                given,
            }),
        }
    }
}

fn first_difference(
    prefix: &str,
    stored: &toml::Table,
    given: &toml::Table,
) -> Option<(String, String, String)> {
    let show = |value: Option<&toml::Value>| value.map_or("unset".into(), ToString::to_string);
    let added = given.keys().filter(|key| !stored.contains_key(*key));
    for key in stored.keys().chain(added) {
        let name = format!("{prefix}{key}");
        match (stored.get(key), given.get(key)) {
            (Some(toml::Value::Table(a)), Some(toml::Value::Table(b))) => {
                if let Some(found) = first_difference(&format!("{name}."), a, b) {
                    return Some(found);
                }
            }
            (a, b) if a != b => return Some((name, show(a), show(b))),
            _ => {}
        }
    }
    None
}

/// The scenario by name, file or table of settings.
fn scenario<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Scenario, D::Error> {
    mixture::read(toml::Value::deserialize(deserializer)?)
}

#[cfg(test)]
mod tests;
