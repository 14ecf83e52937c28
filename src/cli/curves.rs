//! `bufgym runs curves`: learning curves of trainings in one figure.

use std::path::{Path, PathBuf};

use bufgym::eval::figures::{self, LearningCurve};
use bufgym::util::input;
use clap::{Args, ValueEnum};
use serde_json::json;

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};
use super::output::{Output, shown};

/// Column of `metrics.csv` on the vertical axis.
const RESULT: &str = "validation";
/// Largest number on the horizontal axis.
const MAX_EFFORT: f64 = 1e15;

/// What the horizontal axis counts.
#[derive(Clone, Copy, ValueEnum)]
enum Effort {
    Decisions,
    Simulations,
}

impl Effort {
    /// Column of `metrics.csv`.
    fn column(self) -> &'static str {
        match self {
            Effort::Decisions => "decisions",
            Effort::Simulations => "simulations",
        }
    }
}

/// Draw the learning curves of trainings as SVG
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    bufgym runs curves runs/fct-ndt-16x1g-1 runs/fct-ndt-16x1g-2 --out learning.svg")]
pub struct CurvesArgs {
    /// Run folders of `bufgym train`, finished or not
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// What the horizontal axis counts
    #[arg(long, value_enum, default_value_t = Effort::Decisions)]
    by: Effort,
    /// The figure
    #[arg(long, value_name = "FILE.svg")]
    out: PathBuf,
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub fn run(args: CurvesArgs, common: &Common) -> CliResult {
    let output = Output::file(&args.out, args.force)?;
    let curves = args
        .runs
        .iter()
        .map(|run| curve(run, args.by))
        .collect::<CliResult<Vec<LearningCurve>>>()?;
    let figure = figures::learning(&curves, args.by.column()).or_failure()?;
    let figure = figure.ok_or_else(|| CliError::bad("these trainings have no validation yet"))?;
    output.write_file(|file| file.write_all(figure.standalone().as_bytes()).or_failure())?;
    let best = |curve: &LearningCurve| {
        let results = curve.points.iter().map(|point| point.1);
        results.fold(f64::NAN, f64::min)
    };
    let trainings: Vec<_> = curves
        .iter()
        .map(|curve| {
            let last = curve.points.last();
            json!({"run": curve.name, "validations": curve.points.len(), "best": best(curve),
                (args.by.column()): last.map(|point| point.0), "last": last.map(|point| point.1)})
        })
        .collect();
    let lines: Vec<String> = curves
        .iter()
        .map(|curve| {
            format!(
                "{}: best {}",
                shown(Path::new(&curve.name)),
                result(best(curve))
            )
        })
        .collect();
    let text = format!("{}\nwritten to {}", lines.join("\n"), shown(&args.out));
    common.print(
        &json!({"out": args.out.to_string_lossy(), "trainings": trainings}),
        &text,
    )
}

/// Formats a result with three decimals, or as a power of ten if it is absurdly large.
fn result(value: f64) -> String {
    match value.abs() >= 1e9 {
        true => format!("{value:.3e}"),
        false => format!("{value:.3}"),
    }
}

/// Returns the validations of a run as a curve with the name of the folder.
fn curve(run: &Path, by: Effort) -> CliResult<LearningCurve> {
    let path = run.join("metrics.csv");
    let text = input::read_text(&path, input::MAX_TABLE)
        .map_err(|error| CliError::bad(format!("{}: {error}", path.display())))?;
    let name = run.file_name().unwrap_or(run.as_os_str());
    Ok(LearningCurve {
        name: name.to_string_lossy().into_owned(),
        points: points(&text, by.column())
            .map_err(|problem| CliError::bad(format!("{}: {problem}", path.display())))?,
    })
}

/// Returns the points of the rows with a result. Ignores a last row without a line end: the run is still
/// writing it.
fn points(table: &str, effort: &str) -> Result<Vec<(f64, f64)>, String> {
    let mut lines = table
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'));
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| {
        let found = header.iter().position(|column| *column == name);
        found.ok_or_else(|| format!("line 1: no column `{name}`; it is no table of a training, or one of an earlier version"))
    };
    let columns = [column(effort)?, column(RESULT)?];
    let mut points = Vec::new();
    for (index, line) in lines.enumerate() {
        let fields: Vec<&str> = line.split(',').collect();
        let [place, result] = columns.map(|column| fields.get(column).copied());
        if result == Some("") {
            continue;
        }
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<f64>().ok());
        match (number(place), number(result)) {
            (Some(place), Some(result)) if (0.0..=MAX_EFFORT).contains(&place) => {
                // A validation in which flows did not finish may have no finite result.
                if result.is_finite() {
                    points.push((place, result));
                }
            }
            (Some(place), Some(_)) => {
                return Err(format!(
                    "line {}: {effort} is {place:e}; expected a number from 0 to {MAX_EFFORT:e}",
                    index + 2
                ));
            }
            _ => return Err(format!("line {}: not a number", index + 2)),
        }
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_result_and_torn_rows_are_passed_over() {
        let table = "round,decisions,validation\n1,10,\n2,20,0.9\n3,30,0.8\n4,40,0.";
        assert_eq!(
            points(table, "decisions"),
            Ok(vec![(20.0, 0.9), (30.0, 0.8)])
        );
    }

    #[test]
    fn other_tables_are_told() {
        let error = points("a,b\n1,2\n", "decisions").unwrap_err();
        assert!(error.contains("no column `decisions`"), "{error}");
        let error = points("decisions,validation\n1,0.5\n2,x\n", "decisions").unwrap_err();
        assert!(error.contains("line 3"), "{error}");
        for decisions in ["-1", "1e308", "inf", "nan"] {
            let error = points(
                &format!("simulations,validation\n{decisions},0.5\n"),
                "simulations",
            )
            .unwrap_err();
            assert!(error.contains("line 2: simulations is"), "{error}");
        }
    }

    #[test]
    fn results_that_are_not_finite_are_left_out() {
        let table = "decisions,validation\n1,NaN\n2,inf\n3,1e308\n4,0.5\n";
        assert_eq!(
            points(table, "decisions"),
            Ok(vec![(3.0, 1e308), (4.0, 0.5)])
        );
    }
}
