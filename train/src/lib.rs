//! Training: parallel rollout workers, learner, validation, checkpoints and event files.
//!
//! [`train`] makes a run folder and fills it:
//!
//! | file | holds |
//! |---|---|
//! | `config.toml` | all settings, resolved |
//! | `scenario.toml` | the scenario, where it is not a preset |
//! | `metrics.csv` | one row a round; the same settings give the same bytes |
//! | `perf.csv` | one row a round: speeds and the shares of the threads' time, by wall clock |
//! | `events.out.tfevents.*` | the same curves for TensorBoard |
//! | `train.log` | all messages |
//! | `checkpoints/step-N/` | the whole state after N decisions; the last two are kept |
//! | `checkpoints/best/` | the best actor on the validation traces, as shipped |
//!
//! [`resume`] continues from the newest valid state. If the learner computes on the processor, the result is the same,
//! bit for bit, as that of a training without the interruption. Results of another [device](Controls::device) depend on
//! its make and driver. A training may continue on any device.
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//!
//! use bufgym_models::DeviceChoice;
//! use bufgym_train::{Backend, Controls, TrainConfig, train};
//!
//! let mut config = TrainConfig::default();
//! config.out = "runs/first".into();
//! config.budget.steps = Some(100_000);
//! let stop = AtomicBool::new(false);
//! let device = DeviceChoice::Cpu;
//! let controls = Controls { stop: &stop, reporter: &(), device, backend: Backend::default(), tuned_dt: |_| None };
//! let summary = train(config, &controls)?;
//! println!("{}", summary.best.map_or(1.0, |best| best.result.value));
//! # Ok::<(), bufgym_train::TrainError>(())
//! ```

mod backend;
mod config;
mod console;
mod error;
mod events;
mod experience;
mod exploration;
mod folder;
mod forks;
mod learner;
mod limits;
pub mod linear;
pub mod mixture;
mod output;
pub mod remote;
mod report;
mod rollout;
mod rule_search;
mod simulations;
mod start;
mod state;
mod trainer;
pub mod tune;
mod validation;

use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use bufgym_env::control::{ActionSet, LowLevelPolicy, Objective};
use bufgym_eval::{Entrant, EvalConfig, Evaluation};
use bufgym_models::checkpoint::load_actor;
use bufgym_models::{DeviceChoice, OpenDevice};
use bufgym_sim::scenario::Scenario;
use bufgym_util::rng::Split;
use serde::Serialize;

pub use backend::Backend;
pub use config::{
    Algorithm, Budget, CheckpointConfig, ConfigFile, LearnerConfig, RolloutConfig, Start,
    StartConfig, TrainConfig, UnknownName, ValidationConfig, default_low_level, usual_low_level,
};
pub use console::{Progress, Reporter, Step};
pub use error::TrainError;
pub use forks::ForkConfig;
pub use limits::MAX_MINUTES;
pub use state::Best;
pub use validation::ValidationResult;

use console::Console;
use folder::{CONFIG, RunFolder, SCENARIO};
use output::Output;
use simulations::Decider;
use state::Stored;
use trainer::Trainer;
use validation::ValidationSet;

/// The README's examples, which are tested with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;

/// The policies that the learned one is compared with at the end. DT and the unlimited buffer are
/// in every comparison.
const BASELINES: [&str; 3] = ["edt", "st", "cs"];

/// The same where packets are lossless.
const LOSSLESS_BASELINES: [&str; 2] = ["sonic-abm", "reverie"];

fn baselines(scenario: &Scenario) -> &'static [&'static str] {
    match scenario.has_lossless() {
        true => &LOSSLESS_BASELINES,
        false => &BASELINES,
    }
}

/// The controls of a running training.
#[derive(Clone, Debug)]
pub struct Controls<'a> {
    /// Set it to end the training after the current round. The state is then stored.
    pub stop: &'a AtomicBool,
    /// Shows the training while it runs.
    pub reporter: &'a dyn Reporter,
    /// Device of the learner. Workers and validation always compute on the processor.
    pub device: DeviceChoice,
    /// Where rounds are played and simulations run; the result is the same, bit for bit. In this process a training has
    /// as many threads as its settings say.
    pub backend: Backend,
    /// Dynamic Threshold as it was tuned for a scenario, which the table at the end then has too.
    pub tuned_dt: fn(&Scenario) -> Option<Entrant>,
}

/// The end of a training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The budget is spent.
    Finished,
    /// It was stopped; the state is stored.
    Interrupted,
}

/// Serialises a path as text. File names may have bytes that are not text.
fn as_text<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// The outcome of a training.
#[derive(Clone, Debug, Serialize)]
pub struct TrainSummary {
    /// End of the training.
    pub status: Status,
    /// The run folder.
    #[serde(serialize_with = "as_text")]
    pub out: PathBuf,
    /// Rounds. All numbers here include those before a resume.
    pub rounds: u64,
    /// Decisions over all workers and their forks.
    pub decisions: u64,
    /// Gradient updates.
    pub updates: u64,
    /// Episodes finished.
    pub episodes: u64,
    /// Number of simulations: those of the search that it started with, the episodes, including unfinished ones, and
    /// the validations with DT. Where rewards are measured from the unlimited buffer, every episode counts twice. Forks
    /// count by their decisions. The table at the end is not counted.
    pub simulations: u64,
    /// Wall-clock seconds spent in rounds.
    pub elapsed_s: f64,
    /// The best actor, in `checkpoints/best`; none before the first validation.
    pub best: Option<Best>,
    /// The best actor against the baselines on further validation traces; none when interrupted.
    #[serde(skip)]
    pub evaluation: Option<Evaluation>,
    /// The command that makes the full report on test traces.
    pub eval_command: String,
}

/// Options of a resume.
#[derive(Clone, Debug, Default)]
pub struct ResumeOptions {
    /// A new limit; the old one otherwise.
    pub budget: Option<Budget>,
    /// Another number of threads.
    pub threads: Option<usize>,
    /// Settings that the training must have, else the resume is an error.
    pub expected: Expected,
    /// Continue even if results of the training are missing: rows of `metrics.csv`, the best actor, or every stored
    /// state. Without a state the training starts again.
    pub force: bool,
}

/// Settings to compare with those of the resumed training; `None` is not compared.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// The scenario.
    pub scenario: Option<Scenario>,
    /// The mixture of scenarios.
    pub mixture: Option<Vec<Scenario>>,
    /// The objective.
    pub objective: Option<Objective>,
    /// The heuristic whose α is set.
    pub low_level: Option<LowLevelPolicy>,
    /// Outputs that decisions set.
    pub actions: Option<ActionSet>,
    /// The algorithm that learns.
    pub algorithm: Option<Algorithm>,
    /// Initial weights.
    pub start: Option<Start>,
    /// The number of workers.
    pub workers: Option<usize>,
    /// The seed.
    pub seed: Option<u64>,
}

/// Trains from the beginning in `config.out`.
///
/// Settings, device and folder are checked before anything is written.
///
/// # Errors
/// See [`TrainError`]; [`is_bad_input`](TrainError::is_bad_input) identifies the caller's mistakes.
pub fn train(mut config: TrainConfig, controls: &Controls<'_>) -> Result<TrainSummary, TrainError> {
    config.validate()?;
    config.settle();
    config.check_memory()?;
    let device = controls.device.open()?;
    let folder = RunFolder::create(&config.out, config.force)?;
    let console = Console::new(controls.reporter);
    begin(config, folder, console, &device, controls)
}

/// Continues the training in the run folder `dir` from its newest valid state.
///
/// # Errors
/// Same as [`train`]. Also when there is nothing to resume, when no stored state is valid, when results of the training
/// are missing, and when settings differ from those at its start.
pub fn resume(
    dir: &Path,
    options: &ResumeOptions,
    controls: &Controls<'_>,
) -> Result<TrainSummary, TrainError> {
    let folder = RunFolder::open(dir)?;
    let console = Console::new(controls.reporter);
    let device = controls.device.open()?;
    let (checkpoints, force) = (folder.checkpoints(), options.force);
    let newest = Stored::newest(&checkpoints, &device.device, force, |line| {
        console.warn(line);
    })?;
    let mut config = match &newest {
        Some(stored) => TrainConfig::from_toml_str(&stored.state.config, dir)?,
        None => TrainConfig::load(&folder.config())?,
    };
    if newest.is_some() && folder.config().is_file() {
        // A setting that may change at a resume may also be edited in the file.
        let edited = TrainConfig::load(&folder.config())?;
        edited.require_same(&config)?;
        config = edited;
    }
    options.expected.require(&config)?;
    config.out = dir.to_owned();
    config.budget = options.budget.unwrap_or(config.budget);
    config.rollout.threads = options.threads.unwrap_or(config.rollout.threads);
    config.validate()?;
    config.check_memory()?;
    let Some(mut stored) = newest else {
        return begin_again(config, folder, console, &device, options, controls);
    };
    accept_loss(&folder, &console, &mut stored, force)?;
    write_settings(&config, &folder)?;
    let mut output = Output::open(folder, console, Some(&stored.state))?;
    tell_device(&output.console, &device, controls);
    let trainer = Trainer::new(config, Some(stored), &device.device, &controls.backend)?;
    let counters = trainer.counters;
    output.console.say(&format!(
        "resumed after {} decisions, {} updates",
        counters.decisions, counters.updates
    ));
    run_to_end(trainer, &mut output, controls)
}

/// Refuses to continue if results are missing. With `force` it reports which, and continues.
fn accept_loss(
    folder: &RunFolder,
    console: &Console<'_>,
    stored: &mut Stored,
    force: bool,
) -> Result<(), TrainError> {
    let state = &mut stored.state;
    let missing = Output::missing(folder, console, state);
    if missing.is_empty() {
        return Ok(());
    }
    let problem = missing.join("; ");
    let decisions = state.counters.decisions;
    if !force {
        return Err(TrainError::Incomplete {
            path: folder.path().to_owned(),
            problem,
            consequence: format!(
                "it continues after {decisions} decisions without the missing results, and \
                 checkpoints/best is chosen among the policies to come if it is lost"
            ),
        });
    }
    console.warn(&format!("{problem}: lost; continuing without"));
    if state.best.is_some() && !folder.best().is_dir() {
        state.best = None;
    }
    Ok(())
}

/// Begins a training anew that was killed before its first state was stored, or with `force` one whose
/// states are lost.
fn begin_again(
    config: TrainConfig,
    folder: RunFolder,
    console: Console<'_>,
    device: &OpenDevice,
    options: &ResumeOptions,
    controls: &Controls<'_>,
) -> Result<TrainSummary, TrainError> {
    match folder.earlier_results() {
        Some(results) if !options.force => {
            return Err(TrainError::Incomplete {
                path: folder.path().to_owned(),
                problem: "it has no stored state (checkpoints/step-N)".to_owned(),
                consequence: format!("it starts from the beginning and replaces {results}"),
            });
        }
        Some(results) => console.warn(&format!(
            "no state is stored: starting from the beginning, which replaces {results}"
        )),
        None => console.say("no state is stored: starting from the beginning"),
    }
    begin(config, folder, console, device, controls)
}

impl Expected {
    fn require(&self, config: &TrainConfig) -> Result<(), TrainError> {
        let mut expected = config.clone();
        if let Some(scenario) = &self.scenario {
            expected.scenario = scenario.clone();
            expected.mixture = Vec::new();
        }
        if let Some(mixture) = &self.mixture {
            expected.mix(mixture.clone());
        }
        expected.objective = self.objective.unwrap_or(config.objective);
        let low_level = self.low_level.as_ref().unwrap_or(&config.low_level);
        let actions = self.actions.unwrap_or(ActionSet::of(low_level));
        expected.low_level = actions.over(low_level).unwrap_or(low_level.clone());
        expected.rollout.workers = self.workers.unwrap_or(config.rollout.workers);
        expected.seed = self.seed.unwrap_or(config.seed);
        expected.algorithm = self.algorithm.unwrap_or(config.algorithm);
        expected.start.from = self.start.unwrap_or(config.start.from);
        expected.require_same(config)
    }
}

fn begin(
    config: TrainConfig,
    folder: RunFolder,
    console: Console<'_>,
    device: &OpenDevice,
    controls: &Controls<'_>,
) -> Result<TrainSummary, TrainError> {
    write_settings(&config, &folder)?;
    let mut output = Output::open(folder, console, None)?;
    tell_device(&output.console, device, controls);
    output.curves.describe(&config);
    let trainer = Trainer::new(config, None, &device.device, &controls.backend)?;
    // From here on there is a state to resume from, whenever the process is killed.
    trainer.store(&mut output)?;
    run_to_end(trainer, &mut output, controls)
}

/// Writes the learner's device into the run folder's log, unless it is the processor.
fn tell_device(console: &Console<'_>, device: &OpenDevice, controls: &Controls<'_>) {
    if controls.device != DeviceChoice::Cpu {
        console.say(&format!(
            "the learner computes on {}: {}",
            controls.device, device.name
        ));
    }
}

fn run_to_end(
    mut trainer: Trainer,
    output: &mut Output<'_>,
    controls: &Controls<'_>,
) -> Result<TrainSummary, TrainError> {
    let validation = validation_set(&trainer, 0..trainer.config.validation.traces)?;
    let mut status = trainer.run(output, &validation, controls.stop)?;
    let stopped = || controls.stop.load(Ordering::SeqCst);
    let mut evaluation = None;
    if status == Status::Finished && !stopped() {
        trainer.validate_last(output, &validation)?;
        evaluation = final_table(&trainer, output, controls)?;
        trainer.check(output)?;
    }
    if evaluation.is_none() && stopped() {
        status = Status::Interrupted;
    }
    let counters = trainer.counters;
    if let Some(traffic) = trainer.backend.traffic() {
        output.console.say(&format!("hosts: {traffic}"));
    }
    tracing::info!("{status:?} after {} decisions", counters.decisions);
    Ok(TrainSummary {
        status,
        out: output.folder.path().to_owned(),
        rounds: counters.rounds,
        decisions: counters.decisions,
        updates: counters.updates,
        episodes: counters.episodes,
        simulations: trainer.simulations(),
        elapsed_s: counters.elapsed_s,
        best: trainer.best,
        evaluation,
        eval_command: eval_command(&trainer.config, &output.folder, controls),
    })
}

fn validation_set(trainer: &Trainer, traces: Range<u64>) -> Result<ValidationSet, TrainError> {
    let config = &trainer.config;
    let source = (Split::Validation, config.validation.seed);
    ValidationSet::new(&trainer.backend, config.setting(), source, traces)
}

/// Compares the best actor with the baselines on validation traces that did not choose it.
fn final_table(
    trainer: &Trainer,
    output: &Output<'_>,
    controls: &Controls<'_>,
) -> Result<Option<Evaluation>, TrainError> {
    let config = &trainer.config;
    let ValidationConfig {
        traces: used,
        final_traces,
        seed,
        ..
    } = config.validation;
    if final_traces == 0 || trainer.best.is_none() {
        return Ok(None);
    }
    output.console.say(&format!(
        "comparing the best policy with the rules on {final_traces} further validation traces"
    ));
    let further = used..used + final_traces;
    if !config.mixture.is_empty() {
        tell_by_scenario(trainer, output, further)?;
        return Ok(None);
    }
    let learned = format!("ndt:{}", output.folder.best().display());
    let mut entrants = std::iter::once(learned.as_str())
        .chain(baselines(&config.scenario).iter().copied())
        .map(|policy| policy.parse::<Entrant>())
        .collect::<Result<Vec<_>, _>>()?;
    entrants.extend((controls.tuned_dt)(&config.scenario));
    let mut eval = EvalConfig::new(config.scenario.clone(), entrants, seed);
    eval.traces = final_traces;
    let (backend, split) = (&trainer.backend, Split::Validation);
    Ok(Some(backend.evaluate(&eval, split, further)?))
}

/// Reports the comparison of the best actor in each scenario of a mixture, on these validation traces.
fn tell_by_scenario(
    trainer: &Trainer,
    output: &Output<'_>,
    traces: Range<u64>,
) -> Result<(), TrainError> {
    let config = &trainer.config;
    let (weights, _) = load_actor(&output.folder.best())?;
    let further = validation_set(trainer, traces)?;
    let found = further.by_scenario(Decider::network(weights))?;
    for (name, found) in config.scenarios().iter().map(|s| &s.name).zip(found) {
        let (value, ratio) = (found.value, found.ratio);
        output.console.say(&format!(
            "{value:>9.3} × DT ({:.3} to {:.3})   {name}",
            ratio.low, ratio.high
        ));
    }
    Ok(())
}

fn eval_command(config: &TrainConfig, folder: &RunFolder, controls: &Controls<'_>) -> String {
    let mut command = format!(
        "cargo evaluate --policy ndt:{} --policy dt",
        folder.best().display()
    );
    for rule in baselines(&config.scenario) {
        write!(command, " --policy {rule}").expect("a String takes all text");
    }
    if (controls.tuned_dt)(&config.scenario).is_some() {
        command.push_str(" --policy dt:tuned");
    }
    if config.scenario != Scenario::default() {
        let scenario = if is_preset(&config.scenario) {
            config.scenario.name.clone()
        } else {
            folder.scenario().display().to_string()
        };
        command.push_str(&format!(" --scenario {scenario}"));
    }
    command.push_str(&format!(
        " --out {}",
        folder.path().join("report").display()
    ));
    command
}

pub(crate) fn is_preset(scenario: &Scenario) -> bool {
    Scenario::preset(&scenario.name).is_ok_and(|preset| preset == *scenario)
}

/// Writes the settings. A scenario that is not a preset also gets its own file, which other
/// commands can read.
fn write_settings(config: &TrainConfig, folder: &RunFolder) -> Result<(), TrainError> {
    folder.write(CONFIG, &config.to_toml())?;
    if is_preset(&config.scenario) || !config.mixture.is_empty() {
        return Ok(());
    }
    folder.write(SCENARIO, &config.scenario.to_toml())
}
