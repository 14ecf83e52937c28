//! `bufgym explain`: what a learned policy has learned, and which switch pauses which neighbour.

use std::path::PathBuf;

use bufgym::eval::Entrant;
use bufgym::eval::explain::pauses::{self, PausesConfig};
use bufgym::eval::explain::{self, ExplainConfig, ExplainError, TRACES};
use bufgym::sim::scenario::Scenario;
use bufgym::util::input::visible;
use clap::Args;
use serde_json::{Value, json};

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};
use super::output::{Output, shown};
use super::policy;
use super::progress::{by_simulations, progress_bar};
use super::scenario::{ScenarioArgs, check_memory};

/// Show what a learned policy has learned, or who pauses whom where packets are lossless
#[derive(Args)]
#[command(
    after_help = "Writes explain.html (one file that opens anywhere), explain.json and the figures: how the \
    decided alpha depends on what the switch sees, queues and thresholds in an in-cast, how full the \
    buffer is when packets are lost, and the time of a decision against the time between decisions. \
    All of it is measured on validation traces.\n\nWhere the scenario has lossless_priorities it shows \
    instead which ports pause which neighbours, when, and how long their ingress queues are, under \
    several policies.\n\nExamples:\n  \
    bufgym explain --out reports/shipped-explained\n  \
    bufgym explain --checkpoint runs/mine/checkpoints/best --out reports/mine-explained\n  \
    bufgym explain --policy onnx:mine.onnx --out reports/mine-explained\n  \
    bufgym explain --traces 4 --set min_rto_us=10000 --out out --json\n  \
    bufgym explain --scenario reverie-4x4 --policy dt --policy reverie:gamma=0.99 --out reports/pauses"
)]
pub struct ExplainArgs {
    /// Checkpoint folder with actor.safetensors and manifest.json [default: the shipped weights]
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,
    /// Network to explain, as in onnx:FILE; with lossless packets any policies [default there: dt,
    /// sonic-abm, reverie]
    #[arg(long, value_name = "P", conflicts_with = "checkpoint")]
    policy: Vec<String>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Validation traces
    #[arg(long, value_name = "N", default_value_t = TRACES, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    traces: u64,
    /// Folder for explain.html, explain.json and the figures
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write into a folder that is not empty
    #[arg(long)]
    force: bool,
}

/// Names of the files besides the figures.
const FILES: [&str; 2] = ["explain.html", "explain.json"];

/// Runs the command.
pub fn run(args: ExplainArgs, common: &Common) -> CliResult {
    let scenario = args.scenario.resolve_any()?;
    if scenario.has_lossless() {
        return explain_pauses(&args, scenario, common);
    }
    scenario.require_single().or_bad_input()?;
    let entrant = match args.policy.as_slice() {
        [] => entrant(&args)?,
        [network] => match policy::parse(network, &scenario)? {
            entrant if entrant.networks().is_some() => entrant,
            _ => {
                return Err(CliError::bad(format!(
                    "--policy {network}: rules are explained where packets are lossless; set \
                     lossless_priorities, or give a network with --checkpoint, or as onnx:FILE"
                )));
            }
        },
        [_, second, ..] => {
            return Err(CliError::bad(format!(
                "--policy {second}: one network is explained at a time; leave one out"
            )));
        }
    };
    check_memory(&scenario, args.traces, 0)?;
    let output = Output::folder(&args.out, args.force, &FILES)?;
    let config = ExplainConfig {
        scenario,
        entrant,
        traces: args.traces,
        seed: common.seed(),
    };
    let bar = progress_bar(common);
    let explained = explain::explain(&config, &by_simulations(&bar)).map_err(classify)?;
    bar.finish_and_clear();
    output.write_folder(|folder| explain::write_into(&explained, folder).or_failure())?;
    let findings = explain::findings(&explained);
    print(&findings, &json!(explained), &output, common)
}

/// Prints the findings, one per line, whatever the names of policies contain.
fn print(findings: &[String], value: &Value, output: &Output, common: &Common) -> CliResult {
    let mut lines: Vec<String> = findings.iter().map(|finding| visible(finding)).collect();
    let page = output.path().join("explain.html");
    lines.push(format!("explanation: {}", shown(&page)));
    common.print(value, &lines.join("\n"))
}

/// Explains pauses under several policies.
fn explain_pauses(args: &ExplainArgs, scenario: Scenario, common: &Common) -> CliResult {
    let entrants = match (&args.checkpoint, args.policy.as_slice()) {
        (Some(_), _) => {
            scenario.require_decidable().or_bad_input()?;
            vec![Entrant::baseline(), entrant(args)?]
        }
        (None, []) => {
            let rules = pauses::POLICIES.map(str::to_owned);
            policy::parse_all(&rules, &scenario)?
        }
        (None, texts) => policy::parse_all(texts, &scenario)?,
    };
    check_memory(&scenario, args.traces, 0)?;
    let output = Output::folder(&args.out, args.force, &FILES)?;
    let config = PausesConfig {
        scenario,
        entrants,
        traces: args.traces,
        seed: common.seed(),
    };
    let bar = progress_bar(common);
    let explained = pauses::explain(&config, &by_simulations(&bar))?;
    bar.finish_and_clear();
    output.write_folder(|folder| pauses::write_into(&explained, folder).or_failure())?;
    let findings = pauses::findings(&explained);
    print(&findings, &json!(explained), &output, common)
}

fn entrant(args: &ExplainArgs) -> CliResult<Entrant> {
    match &args.checkpoint {
        Some(folder) => {
            let (weights, manifest) = policy::load_checkpoint(folder)?;
            let name = format!("{}:{}", policy::SHIPPED, folder.display());
            Ok(Entrant::from_checkpoint(&name, &weights, &manifest))
        }
        None => policy::shipped()?.ok_or_else(|| {
            CliError::bad("this program was built without weights: give --checkpoint DIR")
        }),
    }
}

fn classify(error: ExplainError) -> CliError {
    match error {
        ExplainError::Eval(error) => error.into(),
        ExplainError::NotLearned(_) | ExplainError::NoDecisions(_) => CliError::input(error),
        ExplainError::Preset(_) => CliError::failure(error),
    }
}
