//! `bufgym headroom`: the possible gain in a scenario.

use std::path::PathBuf;

use bufgym::eval::headroom::{self, HeadroomConfig, HeadroomError, Part, Progress};
use bufgym::sim::network;
use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::PolicySpec;
use bufgym::sim::switch::policy::Deployment;
use bufgym::sim::traffic;
use bufgym::util::convert::floor_u64;
use bufgym::util::memory::Estimate;
use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};
use super::output::Output;
use super::progress::styled;
use super::scenario::ScenarioArgs;
use super::tune;

/// Estimate the possible gain in a scenario, before anything is trained
#[derive(Args)]
#[command(
    after_help = "Compares DT (alpha = 1) and the best single rule with an unlimited buffer, the best rule of each \
    trace, and the best sequence of decisions that a search with forked simulators found. The last two are \
    chosen for the trace, so chance helps them. Their choices are repeated on copies of the trace whose \
    flows start some microseconds later: the gain that remains there is possible.\n\n\
    The traces are those of the validation split, never test traces.\n\nExamples:\n  \
    bufgym headroom\n  \
    bufgym headroom --scenario dctcp-16x10g --out headroom\n  \
    bufgym headroom --set buffer_bytes=4000000 --traces 8\n  \
    bufgym headroom --policy dt:alpha=6+red --step-ms 10 --json"
)]
pub struct HeadroomArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Validation traces
    #[arg(long, value_name = "N", default_value_t = headroom::TRACES, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    traces: u64,
    /// One more rule to choose from, next to the standard ones and those tuned for the scenario; may be
    /// repeated
    #[arg(long, value_name = "P")]
    policy: Vec<String>,
    /// Time between decisions of the search, ms [default: 2.5 times as long as a port needs to send the
    /// buffer]
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    step_ms: Option<f64>,
    /// Horizon of a candidate, ms; what comes later is estimated [default: 3 steps]
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    horizon_ms: Option<f64>,
    /// Copies of each trace that choices are made on, the trace itself included; with more, chance counts less
    #[arg(long, value_name = "M", default_value_t = headroom::PLANNED, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    planned: u64,
    /// Other copies of each trace that what was chosen is repeated on
    #[arg(long, value_name = "K", default_value_t = headroom::JITTERED, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    jittered: u64,
    /// Longest delay of a flow in a copy, microseconds
    #[arg(long, value_name = "US", default_value_t = headroom::JITTER_US, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    jitter_us: u64,
    /// Folder for headroom.md, headroom.json and per_trace.csv
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write into a folder that is not empty
    #[arg(long)]
    force: bool,
}

/// Least number of bytes that the results of a trace need.
const RESULT_BYTES: u64 = 4_096;

/// Names of the output files.
const FILES: [&str; 3] = ["headroom.md", "headroom.json", "per_trace.csv"];

/// Runs the command.
pub fn run(args: HeadroomArgs, common: &Common) -> CliResult {
    let config = config(&args, common)?;
    check_memory(&config)?;
    let output = Output::folder_if(args.out.as_deref(), args.force, &FILES)?;
    let bar = styled(common, "{msg} {bar:40} {pos}/{len}, {eta} left");
    let measured = headroom::measure(&config, &|progress| show(&bar, progress));
    bar.finish_and_clear();
    let measured = measured.map_err(classify)?;
    if let Some(output) = &output {
        output.write_folder(|folder| headroom::write_into(&measured, folder).or_failure())?;
    }
    let mut text = headroom::render(&measured);
    text.push_str(&common.place(
        output.as_ref(),
        "page",
        FILES[0],
        "the numbers of every trace",
    ));
    common.print(&json!(measured), text.trim_end())
}

fn config(args: &HeadroomArgs, common: &Common) -> CliResult<HeadroomConfig> {
    let scenario = args.scenario.resolve()?;
    let rules = rules(&args.policy, &scenario)?;
    let default = HeadroomConfig::new(scenario, rules, common.seed());
    let step_us = microseconds("--step-ms", args.step_ms)?.unwrap_or(default.step_us);
    let horizon_us = microseconds("--horizon-ms", args.horizon_ms)?;
    let horizon_us = horizon_us.unwrap_or(headroom::HORIZON_STEPS * step_us);
    if horizon_us < step_us {
        return Err(CliError::bad(format!(
            "--horizon-ms is shorter than a step, which is {} ms: give a longer horizon or a shorter --step-ms",
            step_us as f64 / 1e3
        )));
    }
    Ok(HeadroomConfig {
        traces: args.traces,
        planned: args.planned,
        jittered: args.jittered,
        jitter_us: args.jitter_us,
        step_us,
        horizon_us,
        ..default
    })
}

/// The longest step and horizon, ms.
const MAX_MS: f64 = 1e6;

/// Converts an option in milliseconds to whole microseconds.
fn microseconds(option: &str, ms: Option<f64>) -> CliResult<Option<u64>> {
    match ms {
        None => Ok(None),
        Some(ms) if (0.001..=MAX_MS).contains(&ms) => Ok(Some(floor_u64((ms * 1e3).round()))),
        Some(ms) => Err(CliError::bad(format!(
            "{option} {ms}: give a number of milliseconds from 0.001 to {MAX_MS}"
        ))),
    }
}

/// Returns the standard rules, those tuned for the scenario, and the requested ones.
fn rules(asked: &[String], scenario: &Scenario) -> CliResult<Vec<PolicySpec>> {
    let mut rules = headroom::standard_rules();
    let tuned = tune::all_tuned(scenario)?.into_iter();
    let tuned = tuned.map(|(policy, _)| policy);
    rules.extend(tuned.filter(|policy| policy.info().deployment != Deployment::NewHardware));
    rules.retain(|rule| rule.build(scenario).is_ok());
    for text in asked {
        let rule: PolicySpec = text.parse().or_bad_input()?;
        rule.build(scenario).or_bad_input()?;
        rules.push(rule);
    }
    Ok(rules)
}

fn check_memory(config: &HeadroomConfig) -> CliResult {
    let traces = config
        .traces
        .saturating_mul(config.planned + config.jittered);
    let parallel = config.traces.min(rayon::current_num_threads() as u64);
    let simulations = parallel.saturating_mul(config.planned + 1);
    let estimate = Estimate::default()
        .with(
            "the flows of the traces and their copies",
            "the number of traces or copies, or flows of the scenario",
            traffic::memory(&config.scenario).saturating_mul(traces),
        )
        .with(
            "the simulations and forks that run at a time",
            "--planned, or flows of the scenario",
            network::memory(&config.scenario).saturating_mul(simulations),
        )
        .with(
            "the results of the traces",
            "the number of traces",
            RESULT_BYTES.saturating_mul(config.traces),
        );
    estimate.check().or_bad_input()
}

fn show(bar: &ProgressBar, progress: Progress) {
    let name = match progress.part {
        Part::Rules => "rules",
        Part::Search => "search",
        Part::Copies => "new noise",
    };
    if bar.message() != name {
        bar.reset();
        bar.set_length(progress.total);
        bar.set_message(name);
    }
    // The length of a search is an estimate.
    bar.set_length(progress.total.max(bar.position() + progress.done));
    bar.inc(progress.done);
}

/// Returns bad input if the scenario, a rule or a number does not fit; otherwise a failure.
fn classify(error: HeadroomError) -> CliError {
    match error {
        HeadroomError::Evaluation(error) => error.into(),
        error => CliError::input(error),
    }
}
