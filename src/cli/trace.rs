//! `bufgym trace`: a generated flow list as CSV.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::Common;
use super::error::{CliResult, ResultExt as _};
use super::output::Output;
use super::scenario::{ScenarioArgs, TraceChoice};

/// Generate the flows of a scenario and write them as CSV
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    bufgym trace --scenario ndt-16x1g --seed 3 --out flows.csv\n  \
    bufgym trace --set flows=200..200 --set arrivals=synchronised --out flows.csv\n  \
    bufgym sim --policy dt --trace flows.csv")]
pub struct TraceArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    choice: TraceChoice,
    /// File to write: id,src,dst,start_ns,size_bytes,kind,query,priority
    #[arg(long, value_name = "FLOWS.csv")]
    out: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub fn run(args: TraceArgs, common: &Common) -> CliResult {
    let scenario = args.scenario.resolve()?;
    let trace = args.choice.generate(&scenario, common.seed())?;
    let output = Output::file(&args.out, args.force)?;
    output.write_file(|file| trace.to_writer(file).or_failure())?;
    let bytes: u64 = trace.flows.iter().map(|flow| flow.size).sum();
    let text = format!(
        "{}: {} flows, {:.1} MB, trace seed {}",
        args.out.display(),
        trace.flows.len(),
        bytes as f64 / 1e6,
        trace.seed
    );
    let value = json!({
        "out": args.out,
        "flows": trace.flows.len(),
        "bytes": bytes,
        "trace_seed": trace.seed,
        "scenario": scenario.name,
        "split": args.choice.split,
        "index": args.choice.index,
        "seed": common.seed(),
    });
    if common.quiet && !common.json {
        return Ok(());
    }
    common.print(&value, &text)
}
