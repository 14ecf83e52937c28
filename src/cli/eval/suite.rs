//! `bufgym eval --suite paper`: the comparisons behind the page of results.

use std::fs;

use anyhow::Context as _;
use bufgym::eval::suite::{self, CELL_TRACES, MAIN, Suite, SuiteConfig};
use bufgym::eval::{Entrant, EvalConfig};
use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::policy::catalogue;
use serde_json::json;

use super::{EvalArgs, classify, progress_bar};
use crate::cli::Common;
use crate::cli::error::{CliError, CliResult, ResultExt as _};
use crate::cli::output::Output;
use crate::cli::{policy, tune};

/// The commit that this program is built from.
const REVISION: &str = env!("BUFGYM_REVISION");

/// The rule that is compared, in its tuned form, in the other scenarios too.
const TUNED_RULE: &str = "dt";

/// Runs the command.
pub fn run(args: &EvalArgs, common: &Common) -> CliResult {
    let scenario = Scenario::load(MAIN).or_failure()?;
    let learned = learned(args, &scenario)?;
    let output = match &args.out {
        Some(path) => Output::folder(path, args.force)?,
        None => return Err(CliError::bad("--suite writes a folder: give --out DIR")),
    };
    let mut all = learned.clone();
    all.extend(rules(&scenario)?);
    let mut transferred = learned;
    transferred.extend(tune::if_tuned(TUNED_RULE, &scenario)?);
    let config = SuiteConfig {
        main: EvalConfig {
            traces: args.traces,
            ..EvalConfig::new(scenario, all, common.seed())
        },
        transferred,
        cells: suite::cells().or_failure()?,
        cell_traces: args.traces.min(CELL_TRACES),
        revision: REVISION.to_owned(),
    };

    let bar = progress_bar(common);
    let part = |title: &str, simulations: usize| {
        bar.println(format!("{title}: {simulations} simulations"));
        bar.reset();
        bar.set_length(simulations as u64);
    };
    let suite = suite::run(&config, &part, &|_| bar.inc(1)).map_err(classify)?;
    bar.finish_and_clear();

    let page = suite::render(&suite, &command(args, common));
    output.write_folder(|folder| write(&suite, &page, folder))?;
    let text = format!("{page}\nreport: {}", output.path().display());
    common.print(&json!(suite), text.trim_end())
}

/// The policies that were asked for, or the shipped weights.
fn learned(args: &EvalArgs, scenario: &Scenario) -> CliResult<Vec<Entrant>> {
    if args.policy.is_empty() {
        let shipped = [policy::shipped()?, policy::shipped_linear()?];
        return Ok(shipped.into_iter().flatten().collect());
    }
    let named = args.policy.iter();
    named.map(|text| policy::parse(text, scenario)).collect()
}

/// Every rule of the catalogue, with its default parameters and, where there are any, with its tuned
/// ones.
fn rules(scenario: &Scenario) -> CliResult<Vec<Entrant>> {
    let mut rules = Vec::new();
    for definition in catalogue() {
        let name = definition.info.name;
        rules.push(policy::parse(name, scenario)?);
        rules.extend(tune::if_tuned(name, scenario)?);
    }
    Ok(rules)
}

fn write(suite: &Suite, page: &str, folder: &std::path::Path) -> CliResult {
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text)
            .with_context(|| path.display().to_string())
            .or_failure()
    };
    bufgym::eval::output::write_into(&suite.main, folder).or_failure()?;
    file("results.md", page)?;
    let numbers = serde_json::to_string_pretty(&json!(suite)).or_failure()?;
    file("suite.json", &(numbers + "\n"))
}

/// The command that writes the same page again.
fn command(args: &EvalArgs, common: &Common) -> String {
    let mut command = "bufgym eval --suite paper".to_owned();
    for policy in &args.policy {
        command.push_str(&format!(" --policy {policy}"));
    }
    if args.traces != bufgym::eval::TRACES {
        command.push_str(&format!(" --traces {}", args.traces));
    }
    if common.seed() != 1 {
        command.push_str(&format!(" --seed {}", common.seed()));
    }
    command + " --out DIR"
}
