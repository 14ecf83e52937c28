//! `bufgym credence sweep`.

use std::path::PathBuf;

use bufgym::credence::sweep::{FLIPS, SweepError, TREES, over_flips, over_trees};
use bufgym::reproduce::credence::sweeps::{self, SweepFigure};
use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::PolicySpec;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{LearningArgs, classify};
use crate::cli::Common;
use crate::cli::error::{CliError, CliResult, ResultExt as _};
use crate::cli::output::Output;

/// Scores over the number of trees, or completion times over the share of flipped predictions
#[derive(Args)]
#[command(
    after_help = "Writes DIR/trees.csv, .json and .svg, or DIR/flips.csv, .json and .svg. With --over \
    flips, --traces are validation traces.\n\n\
    Examples:\n  \
    bufgym credence sweep --over trees --out figure\n  \
    bufgym credence sweep --over flips --model forest --out figure"
)]
pub struct SweepArgs {
    /// Number of trees (Fig. 15), or share of flipped predictions (Fig. 10)
    #[arg(long, value_name = "WHAT")]
    over: Over,
    #[command(flatten)]
    learning: LearningArgs,
    /// Model for --over flips [default: the one compiled in]
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Folder for the CSV, JSON and SVG
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write into a folder that is not empty
    #[arg(long, requires = "out")]
    force: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Over {
    Trees,
    Flips,
}

/// Runs the command.
pub(super) fn run(args: &SweepArgs, common: &Common) -> CliResult {
    let scenario = args.learning.scenario.resolve()?;
    let output = Output::folder_if(args.out.as_deref(), args.force, &[])?;
    let (points, figure) = match args.over {
        Over::Trees => trees(args, &scenario, common)?,
        Over::Flips => flips(args, &scenario, common)?,
    };
    let value = json!({
        "sweep": figure.name(),
        "scenario": scenario.name,
        "settings": scenario.to_toml(),
        "seed": common.seed(),
        "traces": args.learning.traces,
        "points": points,
    });
    write_sweep(output.as_ref(), &figure, format!("{value:#}\n"), common)?;
    common.print(&value, figure.text().trim_end())
}

/// Writes the files of a sweep, if there is a folder for them.
pub(in crate::cli) fn write_sweep(
    output: Option<&Output>,
    figure: &SweepFigure,
    json: String,
    common: &Common,
) -> CliResult {
    let Some(output) = output else {
        return Ok(());
    };
    output.write_folder(|folder| figure.write_into(folder, json).or_failure())?;
    common.note_written(output);
    Ok(())
}

fn trees(
    args: &SweepArgs,
    scenario: &Scenario,
    common: &Common,
) -> CliResult<(Value, SweepFigure)> {
    if args.model.is_some() {
        return Err(CliError::bad(
            "--over trees grows its own forests: leave out --model",
        ));
    }
    let learning = &args.learning;
    let settings = learning.settings(1, common)?;
    let data = learning.record(scenario, common)?;
    let points = over_trees(&data, scenario, settings, learning.threshold, &TREES);
    let points = points.map_err(sort_out)?;
    let figure = sweeps::trees(&points).or_failure()?;
    Ok((json!(points), figure))
}

fn flips(
    args: &SweepArgs,
    scenario: &Scenario,
    common: &Common,
) -> CliResult<(Value, SweepFigure)> {
    if args.learning.threshold.is_some() {
        return Err(CliError::bad(
            "--over flips uses a forest that is there: leave out --threshold, or train with it",
        ));
    }
    let mut policy = PolicySpec::named("credence");
    if let Some(model) = &args.model {
        let with = policy.with("model", &model.display().to_string());
        policy = with.or_bad_input()?;
    }
    let traces = args.learning.traces;
    let points = over_flips(scenario, &policy, &FLIPS, common.seed(), traces);
    let points = points.map_err(sort_out)?;
    let figure = sweeps::flips(&points).or_failure()?;
    Ok((json!(points), figure))
}

fn sort_out(error: SweepError) -> CliError {
    match error {
        SweepError::Train(error) => classify(error),
        SweepError::Forest(_) => CliError::failure(error),
        SweepError::Simulation(_) => CliError::input(error),
    }
}
