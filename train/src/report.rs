//! The measurements of each round, as rows of the tables and as training curves.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use bufgym_agents::{RoundMetrics, UpdateMetrics};
use bufgym_env::control::{ALPHAS, LEVELS, MAX_OUTPUTS, cell_centre};
use bufgym_env::gym::EpisodeStats;

use crate::console::{Console, Step};
use crate::events::{EventFile, Events, Histogram, HyperParameter};
use crate::folder::{METRICS as METRICS_FILE, PERF as PERF_FILE, Table};
use crate::learner::Learned;
use crate::rollout::Spread;
use crate::state::Counters;
use crate::validation::ValidationResult;
use crate::{TrainConfig, TrainError};

/// First columns of `metrics.csv`, whole numbers.
const COUNTS: &str = "round,decisions,updates,replay";

/// Further columns of `metrics.csv`, each with the tags of its training curve by soft actor-critic and by proximal
/// policy optimisation; without a tag there is no curve. The same settings reproduce all of them bit for bit.
const COLUMNS: [(&str, &str, &str); 26] = [
    ("critic_loss", "loss/critic", "loss/critic"),
    ("actor_loss", "loss/actor", "loss/actor"),
    ("temperature", "sac/temperature", ""),
    ("entropy", "sac/entropy", "ppo/entropy"),
    ("q_mean", "sac/q_mean", "ppo/value_mean"),
    ("target_mean", "sac/target_mean", "ppo/return_mean"),
    ("td_error", "sac/td_error", "ppo/advantage"),
    column("alpha_mean_log2", "rollout/alpha_mean_log2"),
    column("episodes", ""),
    column("episode_return", "rollout/episode_return"),
    column("episode_decisions", "rollout/episode_decisions"),
    column("episode_mean_fct_ms", "rollout/mean_fct_ms"),
    column("episode_drops", "rollout/drops"),
    column("episode_timeouts", "rollout/timeouts"),
    column("validation", "validation/ratio_to_dt"),
    column("validation_low", ""),
    column("validation_high", ""),
    column("validation_won", "validation/won"),
    column("validation_fct_ratio", "validation/mean_fct_ratio_to_dt"),
    column("best", ""),
    column("alpha_spread_log2", "rollout/alpha_spread_log2"),
    ("kl", "sac/kl", "ppo/kl"),
    ("explained", "", "ppo/explained_variance"),
    ("actor_lr", "sac/actor_lr", "ppo/actor_lr"),
    column("forked", ""),
    column("simulations", ""),
];

const fn column(
    name: &'static str,
    tag: &'static str,
) -> (&'static str, &'static str, &'static str) {
    (name, tag, tag)
}

fn metrics_header() -> String {
    let names = COLUMNS.map(|(name, ..)| name);
    format!("{COUNTS},{}", names.join(","))
}

/// Columns of `perf.csv`. They depend on the wall clock.
const PERF: &str = "round,decisions,elapsed_s,round_s,env_steps_per_s,packets_per_s,\
    updates_per_s,learner_share,rollout_share,validation_share,idle_share";

/// Means over the updates of a round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Learning {
    pub(crate) updates: u64,
    pub(crate) critic_loss: Option<f64>,
    pub(crate) actor_loss: Option<f64>,
    pub(crate) temperature: Option<f64>,
    pub(crate) entropy: Option<f64>,
    pub(crate) q_mean: Option<f64>,
    pub(crate) target_mean: Option<f64>,
    pub(crate) td_error: Option<f64>,
    pub(crate) kl: Option<f64>,
    pub(crate) explained: Option<f64>,
    pub(crate) actor_lr: Option<f64>,
}

impl Learning {
    pub(crate) fn of(learned: &Learned) -> Self {
        match &learned.round {
            Some(round) => Self::of_round(round, learned.steps),
            None => Self::of_updates(&learned.updates),
        }
    }

    fn of_round(round: &RoundMetrics, steps: u64) -> Self {
        Self {
            updates: steps,
            critic_loss: Some(round.critic_loss.into()),
            actor_loss: round.actor_loss.map(f64::from),
            entropy: Some(round.entropy.into()),
            q_mean: Some(round.value.into()),
            target_mean: Some(round.target.into()),
            td_error: Some(round.error.into()),
            kl: round.kl.map(f64::from),
            explained: Some(round.explained.into()),
            actor_lr: Some(round.actor_lr),
            ..Self::default()
        }
    }

    fn of_updates(updates: &[UpdateMetrics]) -> Self {
        let mean = |field: fn(&UpdateMetrics) -> Option<f32>| {
            mean(updates.iter().filter_map(field).map(f64::from))
        };
        Self {
            updates: updates.len() as u64,
            critic_loss: mean(|u| Some(u.critic_loss)),
            actor_loss: mean(|u| u.actor.map(|[loss, _]| loss)),
            temperature: updates.last().map(|u| f64::from(u.temperature)),
            entropy: mean(|u| u.actor.map(|[_, entropy]| entropy)),
            q_mean: mean(|u| Some(u.q_mean)),
            target_mean: mean(|u| Some(u.target_mean)),
            td_error: mean(|u| Some(u.td_error)),
            kl: mean(|u| u.kl),
            actor_lr: updates.last().map(|u| u.actor_lr),
            ..Self::default()
        }
    }
}

/// Means over the episodes that ended in a round, and the actions of the round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rollouts {
    pub(crate) episodes: u64,
    pub(crate) decisions_of_episodes: u64,
    pub(crate) packets: u64,
    return_: Option<f64>,
    decisions: Option<f64>,
    mean_fct_ms: Option<f64>,
    drops: Option<f64>,
    timeouts: Option<f64>,
    /// Standard deviation of log2 α over the ports with traffic, as a mean over decisions.
    spread: Option<f64>,
    /// Counts by level, of α, and of early drop if decisions set it.
    actions: [u64; LEVELS],
    early: [u64; LEVELS],
}

impl Rollouts {
    pub(crate) fn of<'a>(
        episodes: impl Iterator<Item = &'a EpisodeStats>,
        levels: impl Iterator<Item = &'a u8>,
        outputs: usize,
        spreads: impl Iterator<Item = Spread>,
    ) -> Self {
        let spread = spreads.fold(Spread::default(), |all, one| Spread {
            sum: all.sum + one.sum,
            decisions: all.decisions + one.decisions,
        });
        let episodes: Vec<&EpisodeStats> = episodes.collect();
        let mean_of = |field: fn(&EpisodeStats) -> f64| {
            mean(episodes.iter().map(|e| field(e)).filter(|v| v.is_finite()))
        };
        let mut counts = [[0; LEVELS]; MAX_OUTPUTS];
        for (place, &level) in levels.enumerate() {
            counts[place % outputs][usize::from(level)] += 1;
        }
        let [actions, early] = counts;
        Self {
            episodes: episodes.len() as u64,
            decisions_of_episodes: episodes.iter().map(|e| e.decisions).sum(),
            packets: episodes.iter().map(|e| e.packets_forwarded).sum(),
            return_: mean_of(|e| e.return_),
            decisions: mean_of(|e| e.decisions as f64),
            mean_fct_ms: mean_of(|e| e.mean_fct_ms),
            drops: mean_of(|e| e.drops as f64),
            timeouts: mean_of(|e| e.timeouts as f64),
            spread: (spread.decisions > 0).then(|| spread.sum / spread.decisions as f64),
            actions,
            early,
        }
    }

    /// Mean of log2 α over ports and decisions: the first level is 2^-2.
    fn alpha_mean_log2(&self) -> Option<f64> {
        let total: u64 = self.actions.iter().sum();
        let weighted: u64 = self.actions.iter().zip(0..).map(|(n, i)| n * i).sum();
        (total > 0).then(|| weighted as f64 / total as f64 - 2.0)
    }
}

/// Time spent in a round, in seconds. Those of the three kinds of work are sums over the threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    pub(crate) wall_s: f64,
    pub(crate) learner_s: f64,
    pub(crate) rollout_s: f64,
    pub(crate) validation_s: f64,
    pub(crate) threads: usize,
}

/// One round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundReport {
    /// Counters after the round.
    pub(crate) counters: Counters,
    /// Simulations so far, as in [`TrainConfig::simulations`].
    pub(crate) simulations: u64,
    /// Decisions of this round.
    pub(crate) decisions: u64,
    /// Transitions in the replay.
    pub(crate) replay: u64,
    pub(crate) learning: Learning,
    pub(crate) rollouts: Rollouts,
    /// Validation of the actor that the round began with.
    pub(crate) validation: Option<ValidationResult>,
    /// The best validation value so far.
    pub(crate) best: Option<f64>,
    pub(crate) clock: Clock,
}

impl RoundReport {
    /// Returns the values of [`COLUMNS`].
    fn values(&self) -> [Option<f64>; COLUMNS.len()] {
        let (counters, learning, rollouts) = (&self.counters, &self.learning, &self.rollouts);
        let validation = |field: fn(&ValidationResult) -> f64| self.validation.as_ref().map(field);
        [
            learning.critic_loss,
            learning.actor_loss,
            learning.temperature,
            learning.entropy,
            learning.q_mean,
            learning.target_mean,
            learning.td_error,
            rollouts.alpha_mean_log2(),
            Some(rollouts.episodes as f64),
            rollouts.return_,
            rollouts.decisions,
            rollouts.mean_fct_ms,
            rollouts.drops,
            rollouts.timeouts,
            validation(|v| v.value),
            validation(|v| v.low),
            validation(|v| v.high),
            validation(|v| v.won),
            validation(|v| v.fct_ratio),
            self.best,
            rollouts.spread,
            learning.kl,
            learning.explained,
            learning.actor_lr,
            Some(counters.forked as f64),
            Some(self.simulations as f64),
        ]
    }

    pub(crate) fn metrics_row(&self) -> String {
        let counters = &self.counters;
        let mut row = format!(
            "{},{},{},{}",
            counters.rounds, counters.decisions, counters.updates, self.replay
        );
        for value in self.values() {
            row.push(',');
            if let Some(value) = value {
                let _ = write!(row, "{value}");
            }
        }
        row
    }

    pub(crate) fn perf_row(&self) -> String {
        let mut row = format!("{},{}", self.counters.rounds, self.counters.decisions);
        for value in [self.counters.elapsed_s, self.clock.wall_s] {
            let _ = write!(row, ",{value:.3}");
        }
        for (_, value) in self.speeds() {
            let _ = write!(row, ",{value:.4}");
        }
        row
    }

    /// Decisions, packets and updates per second, and the shares of the threads' time.
    fn speeds(&self) -> [(&'static str, f64); 7] {
        let clock = &self.clock;
        let steps = quotient(self.decisions as f64, clock.wall_s);
        // A simulator reports its packets at the end of an episode. So the packets of a round are
        // estimated from the mean of all finished episodes.
        let counters = &self.counters;
        let packets = quotient(counters.packets as f64, counters.episode_decisions as f64);
        let share = |seconds: f64| quotient(seconds, clock.wall_s * clock.threads as f64);
        let (learner, rollout) = (share(clock.learner_s), share(clock.rollout_s));
        let validation = share(clock.validation_s);
        [
            ("perf/env_steps_per_s", steps),
            ("perf/packets_per_s", steps * packets),
            (
                "perf/updates_per_s",
                quotient(self.learning.updates as f64, clock.wall_s),
            ),
            ("perf/learner_share", learner),
            ("perf/rollout_share", rollout),
            ("perf/validation_share", validation),
            (
                "perf/idle_share",
                (1.0 - learner - rollout - validation).max(0.0),
            ),
        ]
    }

    /// Returns the part of the report that is shown while the training runs.
    pub(crate) fn step(&self) -> Step {
        let [(_, decisions_per_s), _, (_, updates_per_s), ..] = self.speeds();
        Step::Round {
            decisions_per_s,
            updates_per_s,
            best: self.best,
        }
    }

    /// Adds the round to the training curves.
    pub(crate) fn write_events(&self, file: &mut EventFile) -> io::Result<()> {
        let (step, rollouts) = (self.counters.decisions, &self.rollouts);
        let by_ppo = self.learning.explained.is_some();
        for ((_, sac, ppo), value) in COLUMNS.into_iter().zip(self.values()) {
            let tag = if by_ppo { ppo } else { sac };
            if let (Some(value), false) = (value, tag.is_empty()) {
                file.scalar(tag, step, value)?;
            }
        }
        for (tag, value) in self.speeds() {
            file.scalar(tag, step, value)?;
        }
        let centres: [f64; ALPHAS.len()] = std::array::from_fn(|i| f64::from(cell_centre(i)));
        let actions = Histogram::of_cells(&centres, &rollouts.actions);
        file.histogram("rollout/actions", step, &actions)?;
        if rollouts.early != [0; LEVELS] {
            let early = Histogram::of_cells(&centres, &rollouts.early);
            file.histogram("rollout/early_drop", step, &early)?;
        }
        file.flush()
    }
}

/// `metrics.csv`, `perf.csv` and the event file.
pub(crate) struct Curves {
    metrics: Table,
    perf: Table,
    events: Events,
}

impl Curves {
    /// Opens all three in `folder`. `bytes` are the lengths to which `metrics.csv` and `perf.csv` are cut back. A table
    /// with length 0 begins anew, and one that is too short keeps its rows. `restart_at` is the first step of a resumed
    /// run.
    pub(crate) fn open(
        folder: &Path,
        bytes: (u64, u64),
        restart_at: Option<u64>,
    ) -> Result<Self, TrainError> {
        Ok(Self {
            metrics: Table::reopen(folder.join(METRICS_FILE), bytes.0, &metrics_header())?,
            perf: Table::reopen(folder.join(PERF_FILE), bytes.1, PERF)?,
            events: Events::new(EventFile::create(folder, restart_at)),
        })
    }

    /// Returns the reasons why `metrics.csv` and `perf.csv` cannot be cut back to these lengths.
    pub(crate) fn problems(folder: &Path, bytes: (u64, u64)) -> (Option<String>, Option<String>) {
        let metrics = Table::problem(&folder.join(METRICS_FILE), bytes.0, &metrics_header());
        let perf = Table::problem(&folder.join(PERF_FILE), bytes.1, PERF);
        (metrics, perf)
    }

    /// Returns the tables that are missing or replaced.
    pub(crate) fn lost(&self) -> Vec<&'static str> {
        let tables = [(METRICS_FILE, &self.metrics), (PERF_FILE, &self.perf)];
        let lost = tables.into_iter().filter(|(_, table)| !table.is_there());
        lost.map(|(name, _)| name).collect()
    }

    /// Describes the run to TensorBoard.
    pub(crate) fn describe(&mut self, config: &TrainConfig) {
        let hparams = hyper_parameters(config);
        let text = format!("```toml\n{}\n```", config.to_toml());
        self.events.write(|file| {
            file.hparams(&hparams)?;
            file.text("config", 0, &text)?;
            file.flush()
        });
    }

    /// Adds the rule that the search has found after so many generations and simulations.
    pub(crate) fn start(&mut self, generation: u64, simulations: u64, value: f64) {
        self.events.write(|file| {
            file.scalar("start/ratio_to_dt", generation, value)?;
            file.scalar("start/simulations", generation, simulations as f64)?;
            file.flush()
        });
    }

    /// Adds a round.
    pub(crate) fn round(
        &mut self,
        report: &RoundReport,
        console: &Console<'_>,
    ) -> Result<(), TrainError> {
        self.metrics.row(&report.metrics_row())?;
        self.perf.row(&report.perf_row())?;
        self.events.write(|file| report.write_events(file));
        self.report_failure(console);
        Ok(())
    }

    /// Adds a validation that belongs to no round.
    pub(crate) fn validation(
        &mut self,
        report: &RoundReport,
        console: &Console<'_>,
    ) -> Result<(), TrainError> {
        self.metrics.row(&report.metrics_row())?;
        let step = report.counters.decisions;
        if let Some(result) = &report.validation {
            self.events.write(|file| {
                file.scalar("validation/ratio_to_dt", step, result.value)?;
                file.scalar("validation/mean_fct_ratio_to_dt", step, result.fct_ratio)?;
                file.flush()
            });
        }
        self.report_failure(console);
        Ok(())
    }

    fn report_failure(&mut self, console: &Console<'_>) {
        if let Some(error) = self.events.take_failure() {
            console.warn(&format!(
                "the TensorBoard event file cannot be written ({error}); the training continues \
                 without it"
            ));
        }
    }

    /// Waits until the tables are on the disk. Returns their lengths in bytes.
    pub(crate) fn sync(&self) -> Result<(u64, u64), TrainError> {
        Ok((self.metrics.sync()?, self.perf.sync()?))
    }
}

/// Returns every setting except those of the scenario, by its name in the configuration.
fn hyper_parameters(config: &TrainConfig) -> Vec<(String, HyperParameter)> {
    fn flatten(prefix: &str, table: &toml::Table, out: &mut Vec<(String, HyperParameter)>) {
        for (key, value) in table {
            let name = format!("{prefix}{key}");
            let value = match value {
                toml::Value::Table(table) => {
                    flatten(&format!("{name}."), table, out);
                    continue;
                }
                toml::Value::Integer(number) => HyperParameter::Number(*number as f64),
                toml::Value::Float(number) => HyperParameter::Number(*number),
                toml::Value::Boolean(flag) => HyperParameter::Flag(*flag),
                toml::Value::String(text) => HyperParameter::Text(text.clone()),
                other => HyperParameter::Text(other.to_string()),
            };
            out.push((name, value));
        }
    }
    let mut table = config.identity();
    table.remove("scenario");
    table.remove("mixture");
    let name = HyperParameter::Text(config.scenario_name().to_owned());
    let mut out = vec![("scenario".to_owned(), name)];
    flatten("", &table, &mut out);
    out
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_u64);
    for value in values {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / count as f64)
}

/// The quotient, or zero where the divisor is zero.
fn quotient(value: f64, by: f64) -> f64 {
    if by > 0.0 { value / by } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_a_value_or_nothing_for_every_column() {
        let columns = |text: &str| text.split(',').count();
        let report = RoundReport::default();
        assert_eq!(columns(&report.metrics_row()), columns(&metrics_header()));
        assert_eq!(columns(&report.perf_row()), columns(PERF));
        assert!(!report.perf_row().contains("NaN"));
    }

    #[test]
    fn episodes_and_actions_are_averaged() {
        let episode = |fct: f64| EpisodeStats {
            mean_fct_ms: fct,
            decisions: 3,
            ..EpisodeStats::default()
        };
        let episodes = [episode(1.0), episode(3.0), episode(f64::NAN)];
        let rollouts = Rollouts::of(episodes.iter(), [2_u8, 3].iter(), 1, std::iter::empty());
        assert_eq!(rollouts.mean_fct_ms, Some(2.0));
        assert_eq!(rollouts.decisions_of_episodes, 9);
        assert_eq!(rollouts.alpha_mean_log2(), Some(0.5));
    }
}
