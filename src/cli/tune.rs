//! `bufgym tune`: the best parameters of a policy and its queue management.

mod all;
mod linear;
mod tuned;

use std::path::Path;

use bufgym::env::control::Objective;
use bufgym::eval::metric::Metric;
use bufgym::eval::tune::TRACES;
use bufgym::sim::switch::PolicySpec;
use bufgym::train::TrainError;
use bufgym::train::remote::RemoteError;
use bufgym::train::tune::{self, Kept, Progress, TuneConfig, Tuning};
use clap::{Args, Subcommand};
use serde_json::json;

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};
use super::output::Output;
use super::scenario::{ScenarioArgs, check_memory};

pub use tuned::{all_tuned, if_tuned, tuned};

use tuned::results;

/// Search a policy's parameters on training traces
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "All parameters of the policy and of its queue management are searched at once, on training \
    traces; validation traces choose among the best. The defaults are always among them.\n\n\
    The result is kept in checkpoints/tuned, and `P:tuned` or `P+A:tuned` is then a policy wherever that \
    scenario is used, if it was found for mean FCT; also with other warmup_ms, measure_ms and drain_ms if it was not \
    tuned for these. Every scenario has a file of its own: NAME.json for a preset, NAME-HASH.json for other settings. A result that is there is replaced with --force only.\n\n\
    Examples:\n  \
    bufgym tune --policy dt\n  \
    bufgym tune --policy edt+red --scenario ndt-96x10g-incast --simulations 2000\n  \
    bufgym tune --policy dt --objective loss\n  \
    bufgym tune all --best 10 --scenario linux-16x1g\n  \
    bufgym tune linear --out rule.json\n  \
    bufgym eval --policy dt:tuned --policy edt+red:tuned --policy linear:rule.json"
)]
pub struct TuneArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// Policy to tune, with queue management or without; the search starts from its parameters and from the defaults
    #[arg(long, value_name = "P", required = true)]
    policy: Option<String>,
    #[command(flatten)]
    search: SearchArgs,
}

#[derive(Subcommand)]
enum Action {
    All(all::AllArgs),
    Linear(linear::LinearArgs),
}

/// Settings of a search for one policy or for all.
#[derive(Args)]
struct SearchArgs {
    /// Objective, as in training: fct, slowdown, loss, throughput, delay, fairness, pfc or tails
    #[arg(long, value_name = "OBJECTIVE", default_value = "fct")]
    objective: Objective,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Simulations to spend on a policy [default: those of a default training of the network]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(tune::MIN_SIMULATIONS..=1_000_000_000))]
    simulations: Option<u64>,
    /// Validation traces that choose the result, fewer if they took more than a third of the simulations
    #[arg(long, value_name = "N", default_value_t = TRACES, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    traces: u64,
    /// Replace the result that is there
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub fn run(args: TuneArgs, common: &Common) -> CliResult {
    match args.action {
        Some(Action::All(args)) => return all::run(&args, common),
        Some(Action::Linear(args)) => return linear::run(&args, common),
        None => {}
    }
    let policy = args.policy.unwrap_or_default();
    linear::refuse(&policy)?;
    let args = args.search;
    let scenario = args.scenario.resolve_any()?;
    let policy: PolicySpec = policy.parse().or_bad_input()?;
    check_memory(&scenario, args.traces, 0)?;
    let metric = Metric::of(&args.objective);
    let config = TuneConfig {
        starts: results().starts(metric, &policy, &scenario)?,
        metric,
        simulations: args.simulations(),
        traces: args.traces,
        ..TuneConfig::new(scenario, policy, common.seed())
    };
    let kept = Kept {
        results: results(),
        scenario: &config.scenario,
        metric: config.metric,
        names: config.policy.names(),
        force: args.force,
    };
    Output::file(&kept.file()?, true)?;
    let mut on_progress = |progress: Progress<'_>| {
        common.note(format!(
            "{:>6} of {} simulations; best of its traces {}  {:.4} × DT",
            progress.done, progress.budget, progress.best, progress.ratio_to_dt
        ));
    };
    let tuning = tune::tune(&config, &common.backend(), &mut on_progress).map_err(classify)?;
    let (file, problem) = match kept.keep(tuning.kept(&config)) {
        Ok(file) => (Some(file), None),
        Err(problem) => (None, Some(problem.into())),
    };
    let value = json!({
        "scenario": config.scenario.name,
        "objective": args.objective,
        "metric": config.metric.comparison(),
        "seed": config.seed,
        "stored": file,
        "learner_simulations": tune::default_simulations(),
        "tuning": tuning,
    });
    // The result is shown even if it cannot be stored.
    common.print(&value, &describe(config.metric, &tuning, file.as_deref()))?;
    problem.map_or(Ok(()), Err)
}

impl SearchArgs {
    fn simulations(&self) -> u64 {
        self.simulations.unwrap_or_else(tune::default_simulations)
    }
}

fn learner_note() -> String {
    let simulations = tune::default_simulations();
    format!("the training of the shipped policy ran about {simulations}")
}

fn describe(metric: Metric, tuning: &Tuning, file: Option<&Path>) -> String {
    let mut text = format!(
        "÷ DT: {}, on {} validation traces\n   ÷ DT   FCT ÷ DT   policy\n",
        metric.comparison(),
        tuning.best.traces
    );
    for candidate in &tuning.tried {
        text.push_str(&format!(
            "{:>7.4}   {:>8.4}   {}\n",
            candidate.ratio_to_dt, candidate.fct_ratio_to_dt, candidate.policy
        ));
    }
    if !tuning.not_tuned.is_empty() {
        text.push_str(&format!("not searched: {}\n", tuning.not_tuned.join(", ")));
    }
    for edge in &tuning.edges {
        text.push_str(&format!("at an edge of its range: {}\n", edge.note()));
    }
    let place = file.map_or_else(
        || "not kept".to_owned(),
        |file| format!("kept in {}", file.display()),
    );
    text + &format!(
        "best {}: {:.4} [{:.3}–{:.3}] (default {}: {:.4}); {} simulations in {:.0} s ({}); {place}",
        tuning.best.policy,
        tuning.best.ratio_to_dt,
        tuning.best.low,
        tuning.best.high,
        tuning.start.policy,
        tuning.start.ratio_to_dt,
        tuning.simulations,
        tuning.wall_s,
        learner_note(),
    )
}

/// Converts the error of a search, whose scenario and policy nobody has checked before.
fn classify(error: TrainError) -> CliError {
    match error {
        TrainError::Simulation(_) | TrainError::Remote(RemoteError::Unfit(_)) => {
            CliError::input(error)
        }
        error => error.into(),
    }
}
