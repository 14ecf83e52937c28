//! `bufgym eval`: every policy on the same unseen traces.

use std::path::PathBuf;

use bufgym::eval::{self, Entrant, EvalConfig};
use bufgym::sim::scenario::Scenario;
use bufgym::util::input::visible;
use clap::Args;
use serde_json::json;

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};
use super::output::Output;
use super::policy;
use super::progress::{by_simulations, progress_bar};
use super::scenario::{ScenarioArgs, check_memory};

pub mod suite;

/// Compare policies on unseen traces
#[derive(Args)]
#[command(
    after_help = "DT with alpha = 1 (`dt`) and the unlimited buffer (`unlimited`) always take part. \
    ndt:DIR stands for all checkpoints in DIR; those that differ in their seed only are also taken together.\n\n\
    --suite paper compares every rule and the policies given with three families of senders, then these in scenarios \
    that they were not trained in. It writes results.md, table.md and suite.json too.\n\nExamples:\n  \
    bufgym eval --out reports/shipped\n  \
    bufgym eval --policy ndt:runs/mine/checkpoints/best --policy 'DT 8=dt:alpha=8' --out reports/mine\n  \
    bufgym eval --traces 20 --set min_rto_us=10000 --json\n  \
    bufgym eval --suite paper --out reports/paper"
)]
pub struct EvalArgs {
    /// Policy to compare; may be repeated; NAME=P gives it a label [default: ndt (the shipped weights),
    /// dt, edt, st, cs]
    #[arg(long, value_name = "P")]
    policy: Vec<String>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Unseen traces
    #[arg(long, value_name = "N", default_value_t = eval::TRACES, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    traces: u64,
    /// A fixed set of comparisons, each with its own scenario
    #[arg(long, value_name = "NAME", value_parser = ["paper"], conflicts_with_all = ["scenario", "set"])]
    suite: Option<String>,
    /// Folder for report.html, report.json, per_trace.csv and the figures
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write into a folder that is not empty
    #[arg(long)]
    force: bool,
}

/// Least number of bytes that the result of a policy on a trace needs.
const RESULT_BYTES: u64 = 512;

/// Rules of the default comparison.
const DEFAULT_RULES: [&str; 4] = ["dt", "edt", "st", "cs"];

/// Names of the files besides the figures.
const FILES: [&str; 3] = ["report.html", "report.json", "per_trace.csv"];

/// Runs the command.
pub fn run(args: EvalArgs, common: &Common) -> CliResult {
    if args.suite.is_some() {
        if common.cluster.is_some() {
            return Err(CliError::bad(
                "--suite runs in one process; compare scenarios one by one on hosts of a cluster",
            ));
        }
        return suite::run(&args, common);
    }
    let scenario = args.scenario.resolve_any()?;
    let (entrants, note) = entrants(&args.policy, &scenario)?;
    let policies = entrants.len() as u64 + 2;
    check_memory(&scenario, args.traces, policies * RESULT_BYTES)?;
    let output = Output::folder_if(args.out.as_deref(), args.force, &FILES)?;
    let config = EvalConfig {
        traces: args.traces,
        ..EvalConfig::new(scenario, entrants, common.seed())
    };

    if let Some(note) = note {
        common.note(note);
    }
    if let Some(warning) = config.scenario.lossless_warning() {
        common.note(format!("warning: {warning}"));
    }
    let bar = progress_bar(common);
    let progress = by_simulations(&bar);
    let evaluation = match &common.cluster {
        Some(cluster) => cluster.evaluate(&config, &progress),
        None => eval::evaluate(&config, &progress),
    }?;
    bar.finish_and_clear();

    if let Some(output) = &output {
        output.write_folder(|folder| eval::output::write_into(&evaluation, folder).or_failure())?;
    }
    let mut text = eval::table::render_evaluation(&evaluation);
    for finding in eval::findings::findings(&evaluation) {
        text.push_str(&format!("\n{}", visible(&finding.text)));
    }
    text.push_str(&common.place(output.as_ref(), "report", FILES[0], "the full report"));
    common.print(&json!(evaluation), text.trim_end())
}

/// Returns the requested policies, or the default ones, and a remark for the user if the defaults are not
/// complete.
fn entrants(
    policies: &[String],
    scenario: &Scenario,
) -> CliResult<(Vec<Entrant>, Option<&'static str>)> {
    if !policies.is_empty() {
        return Ok((policy::parse_labelled(policies, scenario)?, None));
    }
    let shipped = policy::shipped()?;
    let note = shipped
        .is_none()
        .then_some("this program was built without weights: comparing rules only");
    let rules = DEFAULT_RULES
        .iter()
        .map(|text| policy::parse(text, scenario));
    let all: CliResult<_> = shipped.into_iter().map(Ok).chain(rules).collect();
    Ok((all?, note))
}
