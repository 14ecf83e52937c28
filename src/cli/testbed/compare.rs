//! `bufgym testbed compare`: policies on the same traces, in the testbed and in the simulator.

use std::path::PathBuf;

use bufgym::eval::Entrant;
use bufgym::eval::testbed::{self, ComparisonConfig, ComparisonError, FILES, TestbedRun, Times};
use bufgym::sim::scenario::Scenario;
use bufgym::sim::traffic::Trace;
use clap::Args;

use super::super::error::{CliError, CliResult, ResultExt as _};
use super::super::interrupt::stop_at_signal;
use super::super::output::{Output, discard};
use super::super::progress::progress_bar;
use super::super::scenario::check_memory;
use super::super::{Common, policy};
use super::{Chosen, Order, Playing, machine, truth};

/// Play the same traces under several policies, and compare them with what the simulator predicts
#[derive(Args)]
#[command(
    after_help = "DT with alpha = 1 (`dt`) always takes part. The simulator runs the same flows with the same \
    rate, buffer and round trip. A run that lost packets outside the switch is repeated. With --out, runs that \
    are finished are kept in DIR.parts, and the same command resumes there.\n\nExamples:\n  \
    sudo bufgym testbed compare --policies dt,edt,st,cs,dt+red,ndt --traces 8 --out report\n  \
    sudo bufgym testbed compare --policy dt:alpha=8 --traces 4 --repeats 3 --json"
)]
pub struct CompareArgs {
    /// Policy to compare; may be repeated [default: edt, st, cs, dt+red, ndt]
    #[arg(long, value_name = "P")]
    policy: Vec<String>,
    /// Policies without parameters, separated by commas
    #[arg(long, value_name = "P,P", value_delimiter = ',')]
    policies: Vec<String>,
    #[command(flatten)]
    chosen: Chosen,
    /// Unseen traces
    #[arg(long, value_name = "N", default_value_t = 4, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=1_000))]
    traces: u64,
    /// Repetitions of every trace by every policy
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=100))]
    repeats: u64,
    #[command(flatten)]
    playing: Playing,
    /// Folder for runs.csv, comparison.json and comparison.md
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write into a folder that is not empty
    #[arg(long)]
    force: bool,
}

/// The default policies.
const DEFAULT: [&str; 5] = ["edt", "st", "cs", "dt+red", "ndt"];
/// Least number of bytes that the result of a run needs.
const RESULT_BYTES: u64 = 1_024;

/// Runs the command.
pub fn run(args: &CompareArgs, common: &Common) -> CliResult {
    let scenario = args.chosen.args.resolve()?;
    let entrants = entrants(args, &scenario)?;
    let plays = entrants.len() as u64 * args.repeats;
    check_memory(&scenario, args.traces, plays * RESULT_BYTES)?;
    let output = Output::folder_if(args.out.as_deref(), args.force, &FILES)?;
    let parts = output.as_ref().map(Output::parts).transpose()?;
    let stop = stop_at_signal(match parts {
        Some(_) => {
            "stopping: hosts are ended; finished runs are kept, and the same command resumes"
        }
        None => "stopping: hosts are ended and nothing is written",
    })?;
    let Playing {
        congestion,
        limit_s,
    } = &args.playing;
    let config = ComparisonConfig {
        scenario,
        entrants,
        traces: args.traces,
        repeats: args.repeats,
        seed: common.seed(),
        setting: format!("{congestion:?} {limit_s:?}\n{}", machine()),
        revision: env!("BUFGYM_REVISION").to_owned(),
    };
    let play = |policy: &Entrant, trace: &Trace| {
        let order = Order {
            scenario: &config.scenario,
            trace,
            policy,
            playing: &args.playing,
            timeline: None,
            capture: None,
        };
        let (run, void_runs) = order.play_until_valid(&stop, common)?;
        Ok::<_, CliError>(TestbedRun {
            times: Times::from(&run.outcome.summary),
            truth: truth(&run, void_runs),
        })
    };
    let bar = progress_bar(common);
    bar.set_length(args.traces * plays);
    let comparison = testbed::compare(&config, parts.as_ref(), play, &|| bar.inc(1))?;
    bar.finish_and_clear();
    if let Some(output) = &output {
        output.write_folder(|folder| comparison.write_into(folder).or_failure())?;
        common.note_written(output);
    }
    parts.as_ref().map_or(Ok(()), discard)?;
    common.print(&comparison.json, comparison.text.trim_end())
}

impl From<ComparisonError> for CliError {
    fn from(error: ComparisonError) -> CliError {
        match error {
            ComparisonError::Simulation(_) => CliError::input(error),
            error => CliError::failure(error),
        }
    }
}

/// Returns the policies, the baseline first.
fn entrants(args: &CompareArgs, scenario: &Scenario) -> CliResult<Vec<Entrant>> {
    let mut texts = args.policies.clone();
    texts.extend(args.policy.iter().cloned());
    if texts.is_empty() {
        texts = DEFAULT.map(str::to_owned).to_vec();
    }
    let mut entrants = vec![Entrant::baseline()];
    for entrant in policy::parse_all(&texts, scenario)? {
        if !entrants.iter().any(|known| known.name() == entrant.name()) {
            entrants.push(entrant);
        }
    }
    Ok(entrants)
}
