//! `bufgym train`: learns a policy.

use std::path::{Path, PathBuf};

use bufgym::env::control::{ActionSet, LowLevelPolicy, Objective};
use bufgym::eval::{self, Entrant};
use bufgym::models::DeviceChoice;
use bufgym::sim::scenario::Scenario;
use bufgym::train::mixture::{MIXED, mixed};
use bufgym::train::{
    self, Algorithm, Budget, ConfigFile, Controls, Expected, MAX_MINUTES, ResumeOptions, Start,
    Status, TrainConfig, TrainSummary, default_low_level, usual_low_level,
};
use bufgym::util::files::file_name;
use clap::Args;
use serde_json::{Value, json};

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};
use super::interrupt;
use super::output::{Output, shown};
use super::progress::TrainingReporter;
use super::scenario;
use super::tune::if_tuned;

/// Learn a policy
#[derive(Args)]
#[command(
    after_help = "Ctrl-C saves and ends; a second one ends at once. The exit code is then 130, and 143 after \
    SIGTERM, 129 after SIGHUP.\n\n--resume continues from the newest checkpoint. It refuses where results are \
    missing, such as rows of metrics.csv or all checkpoints; with --force it continues without them.\n\n\
    Objectives: pfc is in-cast slowdown and paused time; tails is the p99 slowdown of in-cast and short flows, and the \
    mean.\n\nHeuristics of --low-level: dt, edt, tdt, fab, ib, abm and occamy, with +early for early drop too; \
    fab+front (FAB with early drop from the front of queues); sonic, sonic-abm and reverie for lossless packets. The \
    default is dt, as in the NDT paper; reverie where packets are lossless; with --actions FAB, with drops from the \
    front or marks where they are set too.\n\nActions: early is early drop; ingress is for lossless packets.\n\n\
    With --algorithm cma, CMA-ES searches a linear rule, and the network imitates it.\n\nDevices: wgpu and cuda need \
    a program that was built with that cargo feature. A training may be resumed on another device.\n\nExamples:\n  \
    bufgym train --workers 32 --objective fct\n  \
    bufgym train --objective fct=1,loss=0.1 --scenario mine.toml --set load=0.8 --minutes 10\n  \
    bufgym train --low-level abm --set queues_per_port=2\n  \
    bufgym train --config mine-train.toml --seed 3 --out runs/third\n  \
    bufgym train --resume runs/fct-ndt-16x1g-1 --steps 640000"
)]
pub struct TrainArgs {
    /// Environments that collect experience in parallel [default: 32]
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u16).range(1..=4096))]
    workers: Option<u16>,
    /// Objective: fct, slowdown, loss, throughput, delay, fairness, pfc, tails, or weights as in
    /// fct=1,loss=0.1 [default: fct]
    #[arg(long, value_name = "OBJECTIVE")]
    objective: Option<String>,
    /// Heuristic whose α is learned (listed below) [default: dt; reverie where packets are lossless;
    /// with --actions fab]
    #[arg(long, value_name = "POLICY")]
    low_level: Option<LowLevelPolicy>,
    /// Values to set on every port: alpha, alpha,early or alpha,ingress [default: alpha; with
    /// --low-level what that leaves open]
    #[arg(long, value_name = "ACTIONS")]
    actions: Option<ActionSet>,
    /// Learner: sac (soft actor-critic), ppo (proximal policy optimisation) or cma (CMA-ES, then
    /// imitation) [default: sac]
    #[arg(long, value_name = "ALGORITHM")]
    algorithm: Option<Algorithm>,
    /// Initial weights of sac: random, or rule (imitates a rule that is searched first) [default:
    /// random; with --scenario mixed rule]
    #[arg(long, value_name = "START")]
    start: Option<Start>,
    /// Preset or TOML file, or mixed: sixteen switches at once, of 4 to 96 ports at 1 to 100 Gbit/s [default: ndt-16x1g]
    #[arg(long, value_name = "NAME|FILE.toml")]
    scenario: Option<String>,
    /// Change one setting of the scenario; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Decisions of all workers and their forks [default: 200000]
    #[arg(long, value_name = "N", allow_negative_numbers = true, conflicts_with = "minutes",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000_000))]
    steps: Option<u64>,
    /// Wall-clock minutes instead of a number of decisions
    #[arg(long, value_name = "M", allow_negative_numbers = true, value_parser = minutes)]
    minutes: Option<f64>,
    /// Settings from a file, as a run folder's config.toml; options take precedence, the rest keeps
    /// the scenario's defaults
    #[arg(long, value_name = "FILE.toml")]
    config: Option<PathBuf>,
    /// Run folder [default: the next free one of runs/OBJECTIVE-SCENARIO-SEED]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue the training in this run folder; its budget may be changed
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "config", "set"])]
    resume: Option<PathBuf>,
    /// Where the learner computes: cpu, wgpu or cuda; on cpu only, a seed always gives the same bits
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: DeviceChoice,
    /// Replace an earlier run in the folder; with --resume: continue also where results are missing
    #[arg(long)]
    force: bool,
}

/// Folder for runs without `--out`.
const RUNS: &str = "runs";

fn minutes(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= MAX_MINUTES => Ok(value),
        _ => Err(format!(
            "a number above 0 and up to {MAX_MINUTES} is needed"
        )),
    }
}

/// Runs the command.
pub fn run(args: TrainArgs, common: &Common) -> CliResult {
    // The device opens before signals are caught: a driver may take its time, or for ever.
    args.device.open().or_bad_input()?;
    let announcement = "stopping after this round and saving the state; Ctrl-C again ends at once";
    let stop = interrupt::stop_at_signal(announcement)?;
    let controls = Controls {
        stop: stop.flag(),
        reporter: &TrainingReporter::new(common),
        device: args.device,
        backend: common.backend(),
        tuned_dt,
    };
    let summary = match &args.resume {
        Some(folder) => train::resume(folder, &args.resume_options(common)?, &controls),
        None => {
            let mut config = args.config(common)?;
            if_tuned("dt", &config.scenario)?;
            let output = Output::folder(&config.out, args.force, &[])?;
            config.out = output.path().to_owned();
            train::train(config, &controls)
        }
    }?;
    report(&summary, common)?;
    match summary.status {
        Status::Finished => Ok(()),
        Status::Interrupted => Err(CliError::Interrupted(stop.exit_code())),
    }
}

/// Dynamic Threshold as it was tuned for the scenario. A file that was broken since the training began does not end it.
fn tuned_dt(scenario: &Scenario) -> Option<Entrant> {
    if_tuned("dt", scenario).ok().flatten()
}

/// Prints the final table, and the command to resume or evaluate.
fn report(summary: &TrainSummary, common: &Common) -> CliResult {
    let mut text = match &summary.evaluation {
        Some(evaluation) => eval::table::render_evaluation(evaluation) + "\n",
        None => String::new(),
    };
    text.push_str(&format!(
        "{} decisions in {} simulations and {} updates in {:.0} s; run folder {}\n",
        summary.decisions,
        summary.simulations,
        summary.updates,
        summary.elapsed_s,
        shown(&summary.out)
    ));
    match summary.status {
        Status::Interrupted => text.push_str(&format!(
            "interrupted; resume with: cargo train --resume {}",
            shown(&summary.out)
        )),
        Status::Finished => text.push_str(&format!(
            "full report on unseen traces: {}",
            summary.eval_command
        )),
    }
    let mut value = serde_json::to_value(summary).or_failure()?;
    if let (Value::Object(fields), Some(evaluation)) = (&mut value, &summary.evaluation) {
        fields.insert("policies".to_owned(), json!(evaluation.policies));
    }
    common.print(&value, &text)
}

impl TrainArgs {
    /// Returns the settings of a new training: those of the file override the defaults, and options override
    /// both.
    fn config(&self, common: &Common) -> CliResult<TrainConfig> {
        let named = self.scenario.as_deref();
        let is_mixed = named == Some(MIXED);
        let file = self.config.as_deref().map(ConfigFile::load).transpose();
        let file = file?;
        let heuristic_given =
            self.low_level.is_some() || file.as_ref().is_some_and(|file| file.names("low_level"));
        let mut config = match (file, named) {
            (Some(file), Some(MIXED)) => file.over_mixed()?,
            (Some(file), Some(_)) => file.over_ordinary(),
            (Some(file), None) => file.over_its_own()?,
            (None, Some(MIXED)) => TrainConfig::mixed().or_bad_input()?,
            (None, _) => TrainConfig::default(),
        };
        config.seed = common.seed.unwrap_or(config.seed);
        config.algorithm = self.algorithm.unwrap_or(config.algorithm);
        config.start.from = self.start.unwrap_or(config.start.from);
        config.rollout.workers = self.workers.map_or(config.rollout.workers, usize::from);
        config.rollout.threads = common.threads.map_or(config.rollout.threads, usize::from);
        config.budget = self.budget().unwrap_or(config.budget);
        if let Some(objective) = self.objective()? {
            config.objective = objective;
        }
        match &self.scenario {
            Some(_) if is_mixed => config.mix(mixed().or_bad_input()?),
            Some(name) => {
                config.scenario = scenario::load(name, &self.set)?;
                config.mixture = Vec::new();
            }
            None if config.mixture.is_empty() => scenario::change(&mut config.scenario, &self.set)?,
            None => (),
        }
        for scenario in &mut config.mixture {
            scenario::change(scenario, &self.set)?;
        }
        if let Some(first) = config.mixture.first() {
            config.scenario = first.clone();
        }
        self.set_low_level(&mut config, heuristic_given)?;
        config.fit_rule();
        config.force = self.force;
        config.out = self
            .out
            .clone()
            .unwrap_or_else(|| free_run(Path::new(RUNS), &run_name(&config)));
        config.validate()?;
        Ok(config)
    }

    /// Sets the heuristic and the outputs of decisions. Without a heuristic from an option or a file, it
    /// depends on the scenario, or is that of the mixture if there is one.
    fn set_low_level(&self, config: &mut TrainConfig, given: bool) -> CliResult<()> {
        if let Some(low_level) = &self.low_level {
            config.low_level = low_level.clone();
        }
        let stays = given || !config.mixture.is_empty();
        match self.actions {
            None if stays => (),
            None => config.low_level = usual_low_level(&config.scenario),
            Some(actions) => {
                if !given && (!stays || actions != ActionSet::of(&config.low_level)) {
                    config.low_level = default_low_level(actions, &config.scenario);
                }
                config.low_level = actions.over(&config.low_level).or_bad_input()?;
            }
        }
        Ok(())
    }

    /// Returns the settings that may change at a resume, and the expected settings of the training from the
    /// options.
    fn resume_options(&self, common: &Common) -> CliResult<ResumeOptions> {
        let named = self.scenario.as_deref();
        let mixture = named.filter(|name| *name == MIXED);
        let mixture = mixture.map(|_| mixed()).transpose().or_bad_input()?;
        let scenario = named.filter(|name| *name != MIXED);
        let scenario = scenario.map(|name| scenario::load(name, &[])).transpose()?;
        Ok(ResumeOptions {
            budget: self.budget(),
            threads: common.threads.map(usize::from),
            expected: Expected {
                scenario,
                mixture,
                objective: self.objective()?,
                low_level: self.low_level.clone(),
                actions: self.actions,
                algorithm: self.algorithm,
                start: self.start,
                workers: self.workers.map(usize::from),
                seed: common.seed,
            },
            force: self.force,
        })
    }

    fn objective(&self) -> CliResult<Option<Objective>> {
        self.objective
            .as_deref()
            .map(str::parse)
            .transpose()
            .or_bad_input()
    }

    /// Returns the budget, if given: `--steps` and `--minutes` override each other.
    fn budget(&self) -> Option<Budget> {
        let given = self.steps.is_some() || self.minutes.is_some();
        given.then_some(Budget {
            steps: self.steps,
            minutes: self.minutes,
        })
    }
}

/// Returns a name that distinguishes runs; awkward characters in file names are replaced.
fn run_name(config: &TrainConfig) -> String {
    let of_mixture = TrainConfig::mixed()
        .ok()
        .filter(|_| config.scenario_name() == MIXED);
    let usual = match of_mixture {
        Some(mixed) => mixed.low_level,
        None => usual_low_level(&config.scenario),
    };
    let over = match &config.low_level {
        low_level if *low_level == usual => String::new(),
        other => format!("-{}", other.label()),
    };
    file_name(&format!(
        "{}{over}-{}-{}",
        config.objective,
        config.scenario_name(),
        config.seed
    ))
}

/// Returns the first of `name`, `name-2`, `name-3` ... that is absent or empty.
fn free_run(runs: &Path, name: &str) -> PathBuf {
    let free = |path: &PathBuf| match path.read_dir() {
        Ok(mut entries) => entries.next().is_none(),
        Err(_) => path.symlink_metadata().is_err(),
    };
    let numbered = (2_u64..).map(|number| runs.join(format!("{name}-{number}")));
    std::iter::once(runs.join(name))
        .chain(numbered)
        .find(free)
        .unwrap_or_else(|| runs.join(name))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::{Cli, Command};
    use super::*;

    #[test]
    fn a_second_run_gets_the_next_name() {
        let runs = tempfile::tempdir().unwrap();
        assert_eq!(free_run(runs.path(), "a"), runs.path().join("a"));
        std::fs::create_dir(runs.path().join("a")).unwrap();
        assert_eq!(free_run(runs.path(), "a"), runs.path().join("a"));
        std::fs::write(runs.path().join("a/config.toml"), "x").unwrap();
        assert_eq!(free_run(runs.path(), "a"), runs.path().join("a-2"));
    }

    /// Returns the settings of a training that starts in an empty folder with `mine.toml` in it.
    fn typed(options: &str, file: &str) -> TrainConfig {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        std::fs::write(&path, file).unwrap();
        let command = format!("bufgym train --config {} {options}", path.display());
        let cli = Cli::try_parse_from(command.split_whitespace());
        let Cli { common, command } = cli.unwrap_or_else(|error| panic!("{error}"));
        match command {
            Command::Train(args) => args.config(&common).unwrap_or_else(|_| panic!("refused")),
            _ => unreachable!("the command is train"),
        }
    }

    #[test]
    fn what_a_file_leaves_out_keeps_the_default_of_the_scenario() {
        let mixed = TrainConfig::mixed().unwrap();
        let config = typed("--scenario mixed", "[start]\ncandidates = 5\n");
        assert_eq!(config.start.candidates, 5);
        assert_eq!(config.start.rule, mixed.start.rule);
        assert_eq!(config.start.lesson_traces, mixed.start.lesson_traces);
        assert_eq!(config.low_level, mixed.low_level);
        assert_eq!(config.budget, mixed.budget);
        assert_eq!(run_name(&config), "fct-mixed-1");

        let heuristic = |options: &str, file: &str| typed(options, file).low_level.to_string();
        assert_eq!(heuristic("--scenario mixed", "low_level = 'dt'"), "dt");
        assert_eq!(heuristic("--scenario mixed --low-level abm", ""), "abm");
        let alone = typed("--scenario mixed --actions alpha", "");
        assert!(alone.start.rule.is_empty() && !alone.low_level.to_string().contains("early"));
        let lossless = heuristic("--scenario reverie-4x4", "seed = 2");
        assert_eq!(lossless, "reverie");
        let network = heuristic("--scenario leafspine-4x4", "seed = 2");
        assert_eq!(network, "dt");
        let marks = heuristic("--scenario leafspine-4x4 --actions alpha,early", "");
        assert!(marks.contains("action=mark"), "{marks}");
        let back =
            "--actions alpha,early --set count_in_service=false --set ecn_uncounted_packets=3";
        assert!(!heuristic(back, "seed = 2").contains("from=front"));
        let single = typed("--scenario ndt-16x1g", "mixture = 'mixed'");
        let usual = TrainConfig::default();
        assert_eq!(
            (single.start, single.low_level),
            (usual.start, usual.low_level)
        );
        let single = heuristic("--scenario ndt-16x1g", "scenario = 'reverie-4x4'");
        assert_eq!(single, TrainConfig::default().low_level.to_string());
    }

    #[test]
    fn the_help_tells_the_default_budget() {
        let command = TrainArgs::augment_args(clap::Command::new("train"));
        let steps = command.get_arguments().find(|arg| arg.get_id() == "steps");
        let help = steps.and_then(clap::Arg::get_help).unwrap().to_string();
        let default = TrainConfig::default().budget.steps.unwrap();
        assert!(help.contains(&format!("[default: {default}]")), "{help}");
    }

    #[test]
    fn weighted_objectives_make_plain_names() {
        let name = |objective: &str, low_level: &str| {
            run_name(&TrainConfig {
                seed: 4,
                objective: objective.parse().unwrap(),
                low_level: low_level.parse().unwrap(),
                ..TrainConfig::default()
            })
        };
        assert_eq!(name("fct", "dt"), "fct-ndt-16x1g-4");
        assert_eq!(name("fct", "abm"), "fct-abm-ndt-16x1g-4");
        assert_eq!(name("fct", "fab+front"), "fct-fab_front-ndt-16x1g-4");
        let weighted = name("fct=1,loss=0.1", "dt");
        assert_eq!(weighted, "fct=1_loss=0.1-ndt-16x1g-4");
    }
}
