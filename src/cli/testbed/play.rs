//! `bufgym testbed run`: one trace under one or several policies.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use bufgym::eval::Entrant;
use bufgym::sim::scenario::Scenario;
use bufgym::sim::traffic::Trace;
use bufgym::sim::units::Duration;
use clap::Args;
use serde_json::{Value, json};

use super::super::error::{CliError, CliResult, ResultExt as _};
use super::super::interrupt::{Stop, stop_at_signal};
use super::super::output::{Output, file_names};
use super::super::scenario::{FlowFile, TraceChoice};
use super::super::{Common, policy, sim};
use super::{Chosen, Order, Playing};

/// Play one trace under one or several policies
#[derive(Args)]
pub struct PlayArgs {
    /// Policy, as in `bufgym sim`; may be repeated, and every policy then plays the trace in turn
    #[arg(long, value_name = "P", required = true)]
    policy: Vec<String>,
    #[command(flatten)]
    file: FlowFile,
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    choice: TraceChoice,
    #[command(flatten)]
    playing: Playing,
    /// Folder for fct.csv, switches.csv and summary.json; with several policies a folder in it for each
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also write timeline.csv: queue and threshold of every port over time
    #[arg(long, requires = "out")]
    timeline: bool,
    /// Time between rows of the timeline, microseconds
    #[arg(long, value_name = "US", default_value_t = 1_000, requires = "timeline",
        value_parser = clap::value_parser!(u64).range(10..=1_000_000_000))]
    timeline_interval_us: u64,
    /// Write the packets that come to the switch as a packet capture [default of FILE: switch.pcap in
    /// the output folder]
    #[arg(long, value_name = "FILE")]
    pcap: Option<Option<PathBuf>>,
    /// Write into a folder that is not empty, and over a capture
    #[arg(long)]
    force: bool,
}

/// File name of a capture in the output folder.
const CAPTURE: &str = "switch.pcap";

/// Runs the command.
pub fn run(args: &PlayArgs, common: &Common) -> CliResult {
    let scenario = args.chosen.args.resolve()?;
    let policies = policy::parse_all(&args.policy, &scenario)?;
    let choice = &args.choice;
    let trace = choice.read_or_generate(&args.file, &scenario, common.seed())?;
    let mut output = Output::folder_if(args.out.as_deref(), args.force, &sim::FILES)?;
    let capture = capture_file(args, policies.len())?;
    if let (Some(output), Some(capture)) = (&mut output, &capture) {
        output.admit(capture)?;
    }
    let stop = stop_at_signal("stopping: hosts are ended and nothing is written")?;
    let play = |folder: Option<&Path>| {
        let capture = capture.as_ref();
        play(args, &scenario, &trace, &policies, folder, capture, &stop)
    };
    let played = match &output {
        None => play(None)?,
        Some(output) => {
            let played = output.write_folder(|folder| play(Some(folder)))?;
            common.note_written(output);
            played
        }
    };
    let result = match played.results.as_slice() {
        [result] => result.clone(),
        results => json!({ "runs": results }),
    };
    common.print(&result, played.text.trim_end())?;
    match played.void {
        Some(reason) => Err(CliError::failure(anyhow::anyhow!(
            "the run is void: {reason}"
        ))),
        None => Ok(()),
    }
}

/// Returns the file that is given for a capture, if there is one.
///
/// # Errors
/// Bad input: the file cannot be written or is for several policies, or neither file nor folder is given.
fn capture_file(args: &PlayArgs, policies: usize) -> CliResult<Option<Output>> {
    match &args.pcap {
        Some(None) if args.out.is_none() => Err(CliError::bad(
            "--pcap alone writes into the output folder: give --out DIR, or --pcap FILE",
        )),
        Some(Some(_)) if policies > 1 => Err(CliError::bad(
            "--pcap FILE is for one policy: leave out FILE, and every policy has a capture in its folder",
        )),
        Some(Some(path)) => Output::file(path, args.force).map(Some),
        _ => Ok(None),
    }
}

/// The results of the policies.
#[derive(Default)]
struct Played {
    results: Vec<Value>,
    text: String,
    /// Reason why the first void run does not count.
    void: Option<String>,
}

fn play(
    args: &PlayArgs,
    scenario: &Scenario,
    trace: &Trace,
    policies: &[Entrant],
    folder: Option<&Path>,
    file: Option<&Output>,
    stop: &Stop,
) -> CliResult<Played> {
    let scratch = file.map(|_| tempfile::tempdir()).transpose().or_failure()?;
    let mut played = Played::default();
    let names = file_names(policies.iter().map(Entrant::name));
    for (policy, name) in policies.iter().zip(&names) {
        let own = match (folder, policies) {
            (Some(folder), [_, _, ..]) => Some(folder.join(name)),
            (folder, _) => folder.map(Path::to_path_buf),
        };
        if let Some(own) = &own {
            std::fs::create_dir_all(own).or_failure()?;
        }
        let place = scratch
            .as_ref()
            .map(tempfile::TempDir::path)
            .or(own.as_deref());
        let capture = place.map(|place| place.join(CAPTURE));
        let interval = Duration::from_us(args.timeline_interval_us);
        let order = Order {
            scenario,
            trace,
            policy,
            playing: &args.playing,
            timeline: args.timeline.then_some(interval),
            capture: capture.as_deref().filter(|_| args.pcap.is_some()),
        };
        let run = order.play(stop)?;
        if let (Some(file), Some(capture)) = (file, &capture) {
            let mut frames = File::open(capture).or_failure()?;
            file.write_file(|out| io::copy(&mut frames, out).map(drop).or_failure())?;
        }
        let mut result = sim::result_json(policy, scenario, trace, &run.outcome)?;
        result["testbed"] = json!(run.truth);
        if let Some(own) = &own {
            sim::write_results(own, trace, &run.outcome, args.timeline, &result)?;
        }
        let described = sim::describe(policy, scenario, &run.outcome.summary);
        played.text += &format!("{described}\n{}\n", run.truth);
        played.void = played.void.or_else(|| run.truth.void.clone());
        played.results.push(result);
    }
    Ok(played)
}
