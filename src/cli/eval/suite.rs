//! `bufgym eval --suite paper`: the comparisons behind the page of results. Finished comparisons are stored
//! next to the output folder (`DIR.parts`), so that an interrupted run can resume.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use bufgym::eval::suite::{
    self, CELL_TRACES, MAIN, PRESETS, Spent, Suite, SuiteConfig, SuiteError,
};
use bufgym::eval::{Entrant, EvalConfig};
use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::policy::catalogue;
use bufgym::train::tune::default_simulations;
use serde_json::json;

use super::{EvalArgs, classify, progress_bar};
use crate::cli::Common;
use crate::cli::error::{CliError, CliResult, ResultExt as _};
use crate::cli::output::{Output, shown};
use crate::cli::{policy, tune};

/// The commit from which this program is built.
const REVISION: &str = env!("BUFGYM_REVISION");

/// Number of tuned rules, the best of the first comparison, that take part in the cells too.
const TRANSFERRED_RULES: usize = 3;

/// Number of the best tuned policies in a main comparison, with or without queue management.
const BEST_TUNED: usize = 10;

/// Names of the files besides the figures.
const FILES: [&str; 6] = [
    "report.html",
    "report.json",
    "per_trace.csv",
    "results.md",
    "table.md",
    "suite.json",
];

/// Runs the command.
pub fn run(args: &EvalArgs, common: &Common) -> CliResult {
    let output = match &args.out {
        Some(path) => Output::folder(path, args.force, &FILES)?,
        None => return Err(CliError::bad("--suite writes a folder: give --out DIR")),
    };
    let main = Scenario::load(MAIN).or_failure()?;
    let learned = learned(args, &main)?;
    let mains: CliResult<Vec<_>> = PRESETS
        .iter()
        .map(|preset| comparison(args, common, preset, &learned))
        .collect();
    let mut transferred = learned.clone();
    transferred.extend(best_deployable(&main, TRANSFERRED_RULES)?);
    let mut cells = suite::cells().or_failure()?;
    for cell in &mut cells {
        cell.tuned = best_deployable(&cell.scenario, 1)?.pop();
    }
    let config = SuiteConfig {
        mains: mains?,
        learner_simulations: Some(default_simulations()),
        transferred,
        cells,
        cell_traces: args.traces.min(CELL_TRACES),
        revision: REVISION.to_owned(),
    };

    let parts = output.parts()?;
    let bar = progress_bar(common);
    let start = Instant::now();
    let part = |title: &str, simulations: usize| {
        let minutes = start.elapsed().as_secs() / 60;
        bar.suspend(|| match simulations {
            0 => common.note(format_args!("{title}: kept from a run that was stopped")),
            _ => common.note(format_args!(
                "{title}: {simulations} simulations ({minutes} min so far)"
            )),
        });
        bar.reset();
        bar.set_length(simulations as u64);
    };
    let suite = suite::run(&config, Some(&parts), &part, &|_| bar.inc(1)).map_err(refuse)?;
    bar.finish_and_clear();

    let page = suite::render(&suite, &command(args, common));
    output.write_folder(|folder| write(&suite, &page, folder))?;
    parts
        .remove()
        .with_context(|| parts.folder().display().to_string())
        .or_failure()?;
    let text = format!("{page}\nreport: {}", shown(output.path()));
    common.print(&json!(suite), text.trim_end())
}

fn refuse(error: SuiteError) -> CliError {
    match error {
        SuiteError::Evaluation(error) => classify(error),
        SuiteError::Keep { .. } => CliError::failure(error),
    }
}

/// Returns the requested policies, or the shipped weights.
fn learned(args: &EvalArgs, scenario: &Scenario) -> CliResult<Vec<Entrant>> {
    if args.policy.is_empty() {
        let shipped = [policy::shipped()?, policy::shipped_linear()?];
        return Ok(shipped.into_iter().flatten().collect());
    }
    policy::parse_labelled(&args.policy, scenario)
}

/// Returns every rule of the catalogue with its defaults, every rule tuned without queue management, and the
/// best of those tuned with it, in a preset.
fn comparison(
    args: &EvalArgs,
    common: &Common,
    preset: &str,
    learned: &[Entrant],
) -> CliResult<(EvalConfig, Vec<Spent>)> {
    let scenario = Scenario::load(preset).or_failure()?;
    let mut entrants = learned.to_vec();
    for definition in catalogue() {
        entrants.push(policy::parse(definition.info.name, &scenario)?);
    }
    let tuned = tune::all_tuned(&scenario)?;
    let mut spent = Vec::new();
    for (place, (policy, tuned)) in tuned.into_iter().enumerate() {
        if place < BEST_TUNED || policy.aqm().is_none() {
            spent.push(Spent {
                policy: policy.to_string(),
                simulations: tuned.simulations,
                edges: tuned.edges,
            });
            entrants.push(Entrant::tuned(policy));
        }
    }
    let config = EvalConfig {
        traces: args.traces,
        ..EvalConfig::new(scenario, entrants, common.seed())
    };
    Ok((config, spent))
}

/// Returns the best tuned rules that a switch of today could run.
fn best_deployable(scenario: &Scenario, count: usize) -> CliResult<Vec<Entrant>> {
    let tuned = tune::all_tuned(scenario)?.into_iter();
    let entrants = tuned.map(|(policy, _)| Entrant::tuned(policy));
    let deployable = entrants.filter(|entrant| !entrant.pushes_out(scenario));
    Ok(deployable.take(count).collect())
}

fn write(suite: &Suite, page: &str, folder: &Path) -> CliResult {
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text)
            .with_context(|| path.display().to_string())
            .or_failure()
    };
    if let Some(first) = suite.mains.first() {
        bufgym::eval::output::write_into(&first.evaluation, folder).or_failure()?;
    }
    file("results.md", page)?;
    file("table.md", &suite::front_table(suite))?;
    let numbers = serde_json::to_string_pretty(&json!(suite)).or_failure()?;
    file("suite.json", &(numbers + "\n"))
}

/// Returns the command that writes the same page again.
fn command(args: &EvalArgs, common: &Common) -> String {
    let mut command = "bufgym eval --suite paper".to_owned();
    for policy in &args.policy {
        match policy.contains(char::is_whitespace) {
            true => command.push_str(&format!(" --policy '{policy}'")),
            false => command.push_str(&format!(" --policy {policy}")),
        }
    }
    if args.traces != bufgym::eval::TRACES {
        command.push_str(&format!(" --traces {}", args.traces));
    }
    if common.seed() != 1 {
        command.push_str(&format!(" --seed {}", common.seed()));
    }
    command + " --out DIR"
}
