//! Checks of a training's settings, and of its memory against that of the machine.

use std::ops::RangeInclusive;

use bufgym_agents::{Batch, Transition, UpdateMetrics};
use bufgym_env::control::RewardBaseline;
use bufgym_models::linear::LINEAR;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::{network, traffic};
use bufgym_util::memory::Estimate;

use crate::config::MAX_GENERATIONS;
use crate::experience::Experience;
use crate::{Algorithm, TrainConfig, TrainError};

/// Largest number of workers and of threads.
const MAX_PARALLEL: u64 = 4_096;
/// Largest numbers of decisions, updates and traces that a training counts to: at a million decisions
/// a second it would take 31 years.
const MAX_COUNT: u64 = 1_000_000_000_000_000;
/// Largest seed: TOML knows no larger whole number, and the settings of a run are stored as TOML.
const MAX_SEED: u64 = i64::MAX.unsigned_abs();
/// Shortest and longest time constants, seconds.
const TIME_CONSTANTS: (f64, f64) = (1e-6, 1e6);
/// Bytes that an update holds per transition and port, in addition to the batch: 20 kB are measured.
const ACTIVATIONS: u64 = 10_000;
/// Longest budget, minutes: 19 years.
pub const MAX_MINUTES: f64 = 1e7;

impl TrainConfig {
    /// Checks every setting.
    ///
    /// # Errors
    /// Names the first setting that is out of range, and the range.
    pub fn validate(&self) -> Result<(), TrainError> {
        self.scenarios().iter().try_for_each(Scenario::validate)?;
        let mut scenarios = self.scenarios().iter();
        scenarios.try_for_each(Scenario::require_decidable)?;
        let lossless = self.scenarios().iter().any(Scenario::has_lossless);
        require(
            !lossless || self.low_level.is_lossless(),
            "low_level",
            &format!(
                "{} has no thresholds at the ingress, where those of lossless packets are; must be reverie, \
                 sonic or sonic-abm",
                self.low_level
            ),
        )?;
        let single = |scenario: &&Scenario| !scenario.is_fabric();
        for scenario in self.scenarios().iter().filter(single) {
            let built = self.low_level.policy().check(scenario);
            built.map_err(|error| TrainError::Setting {
                setting: "low_level",
                problem: error.to_string(),
            })?;
        }
        self.ports.validate()?;
        self.sac.validate()?;
        self.ppo.validate()?;
        self.check_counts()?;
        self.check_times()?;
        let rollout = &self.rollout;
        require(
            self.budget.steps.is_some() || self.budget.minutes.is_some(),
            "budget",
            "give steps or minutes, else the training never ends",
        )?;
        require(
            rollout.traces == 0 || rollout.traces >= rollout.workers as u64,
            "rollout.traces",
            "must be 0 or at least the number of workers, so that they play different traces",
        )?;
        require(
            self.mixture.len() <= rollout.workers,
            "rollout.workers",
            &format!(
                "must be at least {}, so that every scenario of the mixture is played",
                self.mixture.len()
            ),
        )?;
        require(
            self.algorithm != Algorithm::Ppo || self.mixture.is_empty(),
            "algorithm",
            "must be sac or cma for a mixture of scenarios: ppo does not bring their rewards to one size",
        )?;
        let in_flight = rollout.workers * self.learner.n_step;
        let room = self.sac.batch_size.max(in_flight);
        let problem = format!("must be at least {room} to hold a batch");
        require(
            self.learner.replay_capacity >= room,
            "learner.replay_capacity",
            &problem,
        )
    }

    fn check_counts(&self) -> Result<(), TrainError> {
        let (rollout, forks, learner) = (&self.rollout, &self.forks, &self.learner);
        let (validation, checkpoint) = (&self.validation, &self.checkpoint);
        let (start, search) = (&self.start, self.search());
        let steps = self.budget.steps.unwrap_or(1);
        let weights = self.actions().outputs() * LINEAR;
        let rule = &start.rule;
        require(
            rule.is_empty()
                || rule.len() == weights && rule.iter().all(|weight| weight.is_finite()),
            "start.rule",
            &format!("must be empty or {weights} finite numbers"),
        )?;
        let count = |setting, value: u64, range: RangeInclusive<u64>| {
            let (least, most) = (range.start(), range.end());
            let problem = format!("must be from {least} to {most}, not {value}");
            require(range.contains(&value), setting, &problem)
        };
        /// Checks a setting of that table and name.
        macro_rules! count {
            ($table:ident.$name:ident, $range:expr) => {
                count(
                    concat!(stringify!($table), ".", stringify!($name)),
                    $table.$name as u64,
                    $range,
                )?
            };
        }
        count("seed", self.seed, 0..=MAX_SEED)?;
        count("budget.steps", steps, 1..=MAX_COUNT)?;
        count!(rollout.workers, 1..=MAX_PARALLEL);
        count!(rollout.threads, 0..=MAX_PARALLEL);
        count!(rollout.decisions_per_round, 1..=1_000_000);
        count!(rollout.learning_starts, 1..=MAX_COUNT);
        count!(rollout.traces, 0..=MAX_COUNT);
        count!(learner.updates_per_round, 0..=1_000_000);
        count!(learner.replay_capacity, 1..=10_000_000_000);
        count!(forks.kept, 1..=100_000_000);
        count!(learner.n_step, 1..=10_000);
        count!(validation.every_decisions, 1..=MAX_COUNT);
        count!(validation.traces, 1..=1_000_000);
        count!(validation.final_traces, 0..=1_000_000);
        count!(validation.seed, 0..=MAX_SEED);
        count!(checkpoint.every_rounds, 0..=MAX_COUNT);
        count!(checkpoint.keep, 1..=1_000_000);
        count("start.generations", search.generations, 0..=MAX_GENERATIONS)?;
        count!(start.candidates, 2..=10_000);
        count("start.traces", search.traces, 1..=1_000_000)?;
        count!(start.choosing_traces, 1..=1_000_000);
        count!(start.lessons, 1..=10_000);
        count!(start.lesson_traces, 1..=1_000_000);
        count!(start.lesson_steps, 1..=1_000_000);
        Ok(())
    }

    fn check_times(&self) -> Result<(), TrainError> {
        let rollout = &self.rollout;
        let minutes = self.budget.minutes.unwrap_or(1.0);
        let (short, long) = TIME_CONSTANTS;
        let search = self.search();
        let log_std = f64::from(self.start.log_std);
        let every = self.checkpoint.every_seconds;
        for (setting, value, least, most) in [
            ("forks.rate", self.forks.rate, 0.0, 1.0),
            ("start.share", search.share, 0.0, 1.0),
            ("start.step", search.step, 1e-6, 1e3),
            ("start.log_std", log_std, -5.0, 2.0),
            ("rollout.tau_s", rollout.tau_s, short, long),
            ("budget.minutes", minutes, 1e-6, MAX_MINUTES),
            ("checkpoint.every_seconds", every, 1e-3, 1e9),
        ] {
            let problem = format!("must be a number from {least} to {most}, not {value:e}");
            require((least..=most).contains(&value), setting, &problem)?;
        }
        for (setting, value) in [
            ("rollout.horizon_s", rollout.horizon_s),
            ("rollout.noise_s", rollout.noise_s),
        ] {
            let problem =
                format!("must be a number from {short} to {long}, or 0 for none, not {value:e}");
            require(
                value == 0.0 || (short..=long).contains(&value),
                setting,
                &problem,
            )?;
        }
        require(
            rollout.horizon_s == 0.0 || rollout.baseline == RewardBaseline::UnlimitedBuffer,
            "rollout.horizon_s",
            "must be 0 where rollout.baseline is not \"unlimited-buffer\"",
        )
    }

    /// Returns the memory that the training needs, as far as it follows from the settings.
    #[must_use]
    pub fn memory(&self) -> Estimate {
        let (rollout, learner) = (&self.rollout, &self.learner);
        let scenarios = self.scenarios().iter();
        let ports = scenarios
            .clone()
            .flat_map(Scenario::ports_by_switch)
            .max()
            .unwrap_or(0);
        let product = |factors: &[u64]| {
            factors
                .iter()
                .fold(1, |product: u64, factor| product.saturating_mul(*factor))
        };
        let workers = rollout.workers as u64;
        // With a baseline every environment runs its trace a second time.
        let played = |scenario: &Scenario| {
            let run = network::memory(scenario).saturating_mul(2);
            traffic::memory(scenario).saturating_add(run)
        };
        let environment = scenarios.clone().map(played).max().unwrap_or(0);
        let generated = scenarios.map(traffic::memory).max().unwrap_or(0);
        let traces = self.validation.traces.max(self.validation.final_traces);
        let decision = Transition::memory(ports, self.actions().outputs());
        let (critics, width) = (self.sac.critics as u64, self.ports.critic_width as u64);
        let update = size_of::<UpdateMetrics>() as u64;
        Estimate::default()
            .with(
                "the replay memory",
                "learner.replay_capacity",
                Experience::memory(self),
            )
            .with(
                "the flows of the workers' environments",
                "rollout.workers, or flows of the scenario",
                product(&[workers, environment]),
            )
            .with(
                "the decisions of a round",
                "rollout.decisions_per_round",
                product(&[workers, self.worker_decisions(), decision]),
            )
            .with(
                "the learner's batches",
                "sac.batch_size",
                product(&[
                    self.sac.batch_size as u64,
                    ports as u64,
                    2 * Batch::BYTES_PER_PORT + ACTIVATIONS,
                ]),
            )
            .with(
                "what the updates of a round measure",
                "learner.updates_per_round",
                product(&[learner.updates_per_round, update]),
            )
            .with(
                "the networks and their optimisers",
                "ports.critic_width or sac.critics",
                // A layer of every critic with gradient and two moments, and of its target.
                product(&[5, critics, 4, width, width]),
            )
            .with(
                "the validation traces",
                "validation.traces, validation.final_traces, or flows of the scenario",
                product(&[traces, generated]),
            )
    }

    /// Checks that the training fits into the memory that the machine has left.
    ///
    /// # Errors
    /// [`TrainError::Memory`] with the estimate, its largest part and the setting to lower.
    pub fn check_memory(&self) -> Result<(), TrainError> {
        Ok(self.memory().check()?)
    }
}

/// Refuses the first setting that is too low. Each is a name with its value and the least valid one.
pub(crate) fn require_least(settings: &[(&'static str, u64, u64)]) -> Result<(), TrainError> {
    let mut settings = settings.iter();
    settings.try_for_each(|&(setting, value, least)| {
        let problem = format!("{value} is too few; at least {least} are needed");
        require(value >= least, setting, &problem)
    })
}

fn require(holds: bool, setting: &'static str, problem: &str) -> Result<(), TrainError> {
    if holds {
        return Ok(());
    }
    Err(TrainError::Setting {
        setting,
        problem: problem.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use bufgym_env::control::RewardBaseline;

    use super::*;

    fn refused(change: impl FnOnce(&mut TrainConfig)) -> String {
        let mut config = TrainConfig::default();
        change(&mut config);
        config.validate().unwrap_err().to_string()
    }

    #[test]
    fn values_without_sense_are_refused() {
        assert!(refused(|c| c.rollout.workers = 0).contains("rollout.workers"));
        assert!(refused(|c| c.budget.steps = Some(0)).contains("budget.steps"));
        assert!(refused(|c| c.budget.minutes = Some(f64::NAN)).contains("budget.minutes"));
        assert!(refused(|c| c.budget.steps = None).contains("never ends"));
        assert!(refused(|c| c.rollout.horizon_s = -1.0).contains("rollout.horizon_s"));
        assert!(refused(|c| c.rollout.baseline = RewardBaseline::Zero).contains("horizon_s"));
        assert!(refused(|c| c.learner.replay_capacity = 1).contains("replay_capacity"));
        assert!(TrainConfig::default().validate().is_ok());
    }

    #[test]
    fn no_count_is_unbounded() {
        let usual = TrainConfig::default().identity();
        let tables = usual
            .iter()
            .filter_map(|(key, value)| Some((key, value.as_table()?)));
        let names = tables.flat_map(|(table, settings)| {
            let counts = settings.iter().filter(|(_, value)| value.is_integer());
            counts.map(move |(key, _)| format!("{table}.{key}"))
        });
        // The largest valid seed is the largest whole number in TOML.
        let names = names.filter(|name| !name.starts_with("scenario.") && !name.ends_with(".seed"));
        let names: Vec<String> = names.collect();
        assert!(names.len() > 15, "{names:?}");
        for name in names {
            let text = format!("{name} = {}", i64::MAX);
            let read = TrainConfig::from_toml_str(&text, "a.toml".as_ref());
            let message = read
                .and_then(|config| config.validate())
                .unwrap_err()
                .to_string();
            let key = name.split('.').next_back().unwrap();
            assert!(message.contains(key), "{name}: {message}");
        }
        for change in [
            |c: &mut TrainConfig| c.seed = u64::MAX,
            |c: &mut TrainConfig| c.validation.seed = u64::MAX,
        ] {
            assert!(refused(change).contains("seed"));
        }
    }

    #[test]
    fn no_time_is_unbounded() {
        for value in [f64::NAN, f64::INFINITY, -0.0, -1.0, 1e308, 5e-324] {
            let tau = refused(|c| c.rollout.tau_s = value);
            assert!(tau.contains("rollout.tau_s"), "{tau}");
            let seconds = refused(|c| c.checkpoint.every_seconds = value);
            assert!(seconds.contains("checkpoint.every_seconds"), "{seconds}");
            let minutes = refused(|c| c.budget.minutes = Some(value));
            assert!(minutes.contains("budget.minutes"), "{minutes}");
            if value != 0.0 {
                let noise = refused(|c| c.rollout.noise_s = value);
                assert!(noise.contains("rollout.noise_s"), "{noise}");
                let horizon = refused(|c| c.rollout.horizon_s = value);
                assert!(horizon.contains("rollout.horizon_s"), "{horizon}");
            }
        }
    }

    #[test]
    fn the_memory_of_a_training_grows_with_each_of_its_settings() {
        type Change = fn(&mut TrainConfig);
        let usual = TrainConfig::default().memory().total();
        // 60,000 frames of 16 ports are the largest part of it.
        assert!((100_000_000..300_000_000).contains(&usual), "{usual}");
        let changes: [Change; 9] = [
            |c| c.learner.replay_capacity *= 1_000,
            |c| c.rollout.workers = 4_096,
            |c| c.rollout.decisions_per_round = 1_000_000,
            |c| c.sac.batch_size = 65_536,
            |c| c.learner.updates_per_round = 1_000_000,
            |c| c.ports.critic_width = 4_096,
            |c| (c.ports.critic_width, c.sac.critics) = (512, 64),
            |c| c.validation.traces = 1_000_000,
            |c| c.scenario.traffic.flows.max = 10_000_000,
        ];
        for (index, change) in changes.into_iter().enumerate() {
            let mut config = TrainConfig::default();
            change(&mut config);
            let grown = config.memory().total();
            assert!(
                grown > usual + usual / 100,
                "{index}: {grown} after {usual}"
            );
        }
    }
}
