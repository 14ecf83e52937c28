//! `bufgym eval --suite paper`: the comparisons behind the page of results. Finished comparisons are stored
//! next to the output folder (`DIR.parts`), so that an interrupted run can resume.

use std::time::Instant;

use bufgym::eval::Entrant;
use bufgym::eval::suite::{self, FILES, MAIN, SuiteConfig, SuiteError};
use bufgym::sim::scenario::Scenario;
use bufgym::train::tune::default_simulations;
use serde_json::json;

use super::EvalArgs;
use crate::cli::Common;
use crate::cli::error::{CliError, CliResult, ResultExt as _};
use crate::cli::output::{Output, discard, shown};
use crate::cli::progress::progress_bar;
use crate::cli::{policy, tune};

/// The commit from which this program is built.
const REVISION: &str = env!("BUFGYM_REVISION");

/// Runs the command.
pub fn run(args: &EvalArgs, common: &Common) -> CliResult {
    let output = match &args.out {
        Some(path) => Output::folder(path, args.force, &FILES)?,
        None => return Err(CliError::bad("--suite writes a folder: give --out DIR")),
    };
    let main = Scenario::load(MAIN).or_failure()?;
    let learned = learned(args, &main)?;
    let config = SuiteConfig {
        learner_simulations: Some(default_simulations()),
        revision: REVISION.to_owned(),
        ..SuiteConfig::paper(&learned, args.traces, common.seed(), &tune::all_tuned)?
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
    let suite = suite::run(&config, Some(&parts), &part, &|_| bar.inc(1))?;
    bar.finish_and_clear();

    let page = suite::render(&suite, &command(args, common));
    output.write_folder(|folder| suite::write_into(&suite, &page, folder).or_failure())?;
    discard(&parts)?;
    let text = format!("{page}\nreport: {}", shown(output.path()));
    common.print(&json!(suite), text.trim_end())
}

impl From<SuiteError> for CliError {
    fn from(error: SuiteError) -> CliError {
        match error {
            SuiteError::Evaluation(error) => error.into(),
            error => CliError::failure(error),
        }
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
