//! `bufgym credence sweep`.

use std::fs;
use std::path::{Path, PathBuf};

use bufgym::credence::sweep::{SweepError, TreesPoint, over_flips, over_trees};
use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::PolicySpec;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{LearningArgs, classify, figure};
use crate::cli::Common;
use crate::cli::error::{CliError, CliResult, ResultExt as _};
use crate::cli::output::Output;

/// Numbers of trees.
const TREES: [u16; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// Flip probabilities: those of the paper's Fig. 10, and larger ones.
const FLIPS: [f64; 9] = [0.0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0];

/// Scores over the number of trees, or completion times over the share of flipped predictions
#[derive(Args)]
#[command(
    after_help = "Writes DIR/trees.csv, .json and .svg, or DIR/flips.csv, .json and .svg\n\n\
    Examples:\n  \
    bufgym credence sweep --over trees --out figure\n  \
    bufgym credence sweep --over flips --model forest --out figure"
)]
pub struct SweepArgs {
    /// Quantity that varies
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
    /// The number of trees, from 1 to 128 (Fig. 15)
    Trees,
    /// The probability of a flipped prediction; --traces are then validation traces (Fig. 10)
    Flips,
}

/// Results of a sweep.
struct Sweep {
    name: &'static str,
    points: Value,
    csv: String,
    svg: String,
    text: String,
}

/// Runs the command.
pub(super) fn run(args: &SweepArgs, common: &Common) -> CliResult {
    let scenario = args.learning.scenario.resolve()?;
    let output = args.out.as_deref();
    let output = output.map(|path| Output::folder(path, args.force, &[]));
    let output = output.transpose()?;
    let sweep = match args.over {
        Over::Trees => trees(args, &scenario, common)?,
        Over::Flips => flips(args, &scenario, common)?,
    };
    let value = json!({
        "sweep": sweep.name,
        "scenario": scenario.name,
        "settings": scenario.to_toml(),
        "seed": common.seed(),
        "traces": args.learning.traces,
        "points": sweep.points,
    });
    if let Some(output) = &output {
        output.write_folder(|folder| write(folder, &sweep, &value))?;
        if !common.json {
            common.note(format!("written to {}", output.path().display()));
        }
    }
    common.print(&value, &sweep.text)
}

fn write(folder: &Path, sweep: &Sweep, value: &Value) -> CliResult {
    let save = |extension: &str, text: &str| {
        let path = folder.join(format!("{}.{extension}", sweep.name));
        fs::write(path, text).or_failure()
    };
    save("csv", &sweep.csv)?;
    save("json", &format!("{value:#}\n"))?;
    save("svg", &sweep.svg)
}

fn trees(args: &SweepArgs, scenario: &Scenario, common: &Common) -> CliResult<Sweep> {
    if args.model.is_some() {
        return Err(CliError::bad(
            "--over trees grows its own forests: leave out --model",
        ));
    }
    let learning = &args.learning;
    let settings = learning.settings(1, common)?;
    let data = learning.record(scenario, common)?;
    let points =
        over_trees(&data, scenario, settings, learning.threshold, &TREES).map_err(sort_out)?;
    let mut csv = String::from(
        "trees,threshold,accuracy,precision,recall,f1,error_score,true_positives,false_positives,true_negatives,false_negatives\n",
    );
    let mut text = String::from("trees  accuracy  precision  recall      F1   1/eta");
    for TreesPoint {
        trees,
        threshold,
        scores,
    } in &points
    {
        let error_score = scores.error_score.unwrap_or(f64::NAN);
        csv.push_str(&format!(
            "{trees},{threshold},{},{},{},{},{error_score},{},{},{},{}\n",
            scores.accuracy,
            scores.precision,
            scores.recall,
            scores.f1,
            scores.true_positives,
            scores.false_positives,
            scores.true_negatives,
            scores.false_negatives
        ));
        text.push_str(&format!(
            "\n{trees:>5}  {:>8.4}  {:>9.4}  {:>6.4}  {:>6.4}  {error_score:>6.4}",
            scores.accuracy, scores.precision, scores.recall, scores.f1
        ));
    }
    Ok(Sweep {
        name: "trees",
        svg: drawn(figure::trees(&points))?,
        points: serde_json::to_value(&points).or_failure()?,
        csv,
        text,
    })
}

fn flips(args: &SweepArgs, scenario: &Scenario, common: &Common) -> CliResult<Sweep> {
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
    let points = over_flips(
        scenario,
        &policy,
        &FLIPS,
        common.seed(),
        args.learning.traces,
    )
    .map_err(sort_out)?;
    let mut csv = String::from(
        "policy,flip,mean_fct_ms,p99_fct_ms,short_p99_fct_ms,incast_p99_fct_ms,long_mean_fct_ms,p99_occupancy,drops\n",
    );
    let mut text = String::from(
        "policy     flip   mean FCT  short p99  incast p99  long mean  occupancy    drops",
    );
    for point in &points {
        let flip = point.flip.map(|flip| flip.to_string()).unwrap_or_default();
        csv.push_str(&format!(
            "{},{flip},{},{},{},{},{},{},{}\n",
            point.policy,
            point.mean_fct_ms,
            point.p99_fct_ms,
            point.short_p99_fct_ms,
            point.incast_p99_fct_ms,
            point.long_mean_fct_ms,
            point.p99_occupancy,
            point.drops
        ));
        text.push_str(&format!(
            "\n{:<8} {flip:>6} {:>10.3} {:>10.2} {:>11.2} {:>10.2} {:>10.3} {:>8.0}",
            point.policy,
            point.mean_fct_ms,
            point.short_p99_fct_ms,
            point.incast_p99_fct_ms,
            point.long_mean_fct_ms,
            point.p99_occupancy,
            point.drops
        ));
    }
    Ok(Sweep {
        name: "flips",
        svg: drawn(figure::flips(&points))?,
        points: serde_json::to_value(&points).or_failure()?,
        csv,
        text,
    })
}

fn drawn(svg: Result<String, String>) -> CliResult<String> {
    svg.map_err(|error| CliError::failure(anyhow::anyhow!(error)))
}

fn sort_out(error: SweepError) -> CliError {
    match error {
        SweepError::Train(error) => classify(error),
        SweepError::Forest(_) => CliError::failure(error),
        SweepError::Simulation(_) => CliError::input(error),
    }
}
