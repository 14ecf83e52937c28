//! Writes the files of an evaluation: all of them or none.

use std::io;
use std::path::{Path, PathBuf};

use bufgym_util::files::{Staging, entries, write_new};
use serde_json::Value;

use crate::data::Evaluation;
use crate::figures::{self, Figure, FigureError};
use crate::html;

/// An error that prevents the report. No file is left behind.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The folder contains files and may not be replaced.
    #[error("output folder {} is not empty (--force replaces files in it)", .0.display())]
    NotEmpty(PathBuf),
    /// The path is a file.
    #[error("output {} exists and is not a folder", .0.display())]
    NotAFolder(PathBuf),
    /// An operation of the file system failed.
    #[error("cannot write {}: {source}", .path.display())]
    Io {
        /// The path that was being written.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A figure could not be drawn.
    #[error(transparent)]
    Figure(#[from] FigureError),
    /// The numbers could not be turned into a file.
    #[error("cannot write {name}: {reason}")]
    Encode {
        /// The file.
        name: &'static str,
        /// The cause.
        reason: String,
    },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> OutputError {
    let path = path.to_path_buf();
    move |source| OutputError::Io { path, source }
}

/// Checks before an evaluation that its report can be written into `folder`.
///
/// # Errors
/// Fails if it is a file, if it is not empty and `force` is not set, or if it cannot be created or written.
pub fn check_folder(folder: &Path, force: bool) -> Result<(), OutputError> {
    match entries(folder) {
        Ok(entries) => {
            if !force && !entries.is_empty() {
                return Err(OutputError::NotEmpty(folder.to_path_buf()));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return Err(OutputError::NotAFolder(folder.to_path_buf()));
        }
        Err(error) => return Err(io_error(folder)(error)),
    }
    staging(folder).map(drop)
}

fn staging(folder: &Path) -> Result<Staging, OutputError> {
    Staging::folder(folder).map_err(io_error(folder))
}

/// Writes `report.html`, `report.json`, `per_trace.csv` and the figures into `folder`.
///
/// All files are written into a new folder next to it, which is then renamed. So a reader sees all of them or
/// none. With `force`, files of the same names in a folder that is not empty are replaced, one after the
/// other; others stay.
///
/// # Errors
/// Returns the errors of [`check_folder`], and fails if a file cannot be written. Nothing is left behind.
pub fn write(evaluation: &Evaluation, folder: &Path, force: bool) -> Result<(), OutputError> {
    check_folder(folder, force)?;
    write_files(&contents(evaluation)?, folder)
}

/// Does the same as [`write()`], but into an empty folder, which the caller then moves to its final place.
///
/// # Errors
/// Fails if a file cannot be written.
pub fn write_into(evaluation: &Evaluation, folder: &Path) -> Result<(), OutputError> {
    fill(folder, &contents(evaluation)?)
}

/// Writes files, each a name and its content, into a new folder, and then moves that to its final place.
fn write_files(files: &[(String, Vec<u8>)], folder: &Path) -> Result<(), OutputError> {
    let staging = staging(folder)?;
    fill(staging.path(), files)?;
    staging.install_folder(folder).map_err(io_error(folder))
}

fn contents(evaluation: &Evaluation) -> Result<Vec<(String, Vec<u8>)>, OutputError> {
    let figures = figures::figures(evaluation)?;
    let mut files = vec![
        (
            "report.html".to_string(),
            html::render(evaluation, &figures).into_bytes(),
        ),
        ("report.json".to_string(), json(evaluation)?),
        ("per_trace.csv".to_string(), csv(evaluation)?),
    ];
    files.extend(drawings(&figures));
    Ok(files)
}

/// Returns name and content of the files of figures.
fn drawings(figures: &[Figure]) -> impl Iterator<Item = (String, Vec<u8>)> {
    let drawing = |f: &Figure| (format!("{}.svg", f.name), f.standalone().into_bytes());
    figures.iter().map(drawing)
}

/// Writes `explain.html`, `explain.json` and figures into an empty folder.
///
/// # Errors
/// Fails if a file cannot be written.
pub(crate) fn fill_explanation(
    folder: &Path,
    page: String,
    numbers: &impl serde::Serialize,
    figures: &[Figure],
) -> Result<(), OutputError> {
    let mut files = vec![
        ("explain.html".to_owned(), page.into_bytes()),
        (
            "explain.json".to_owned(),
            pretty_json("explain.json", numbers)?,
        ),
    ];
    files.extend(drawings(figures));
    fill(folder, &files)
}

/// Writes files into an empty folder, each under its name.
///
/// # Errors
/// Fails if a file exists or cannot be written.
pub fn fill(folder: &Path, files: &[(String, Vec<u8>)]) -> Result<(), OutputError> {
    files.iter().try_for_each(|(name, bytes)| {
        let path = folder.join(name);
        write_new(&path, bytes).map_err(io_error(&path))
    })
}

/// Quotes a text for CSV (RFC 4180 §2): the name of a kind is free text from a file.
pub fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Returns the contents of the JSON file `name`.
pub(crate) fn pretty_json(
    name: &'static str,
    value: &impl serde::Serialize,
) -> Result<Vec<u8>, OutputError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|e| OutputError::Encode {
        name,
        reason: e.to_string(),
    })?;
    text.push(b'\n');
    Ok(text)
}

/// Returns `report.json`: the whole evaluation.
fn json(evaluation: &Evaluation) -> Result<Vec<u8>, OutputError> {
    pretty_json("report.json", evaluation)
}

/// The columns of `per_trace.csv`, in order: fields of a result in `report.json`.
const PER_TRACE_COLUMNS: [&str; 31] = [
    "policy",
    "trace",
    "seed",
    "flows",
    "mean_fct_ms",
    "p50_fct_ms",
    "p95_fct_ms",
    "p99_fct_ms",
    "mean_slowdown",
    "short_mean_fct_ms",
    "short_p99_fct_ms",
    "long_mean_fct_ms",
    "drops",
    "timeouts",
    "p99_occupancy",
    "decisions",
    "ratio_to_dt",
    "incast_mean_fct_ms",
    "incast_p99_fct_ms",
    "loss_per_delivered",
    "goodput_bps",
    "p99_queueing_delay_us",
    "port_slowdown_variance",
    "arrivals",
    "timeout_wait_ms",
    "short_mean_slowdown",
    "short_p99_slowdown",
    "long_mean_slowdown",
    "long_p99_slowdown",
    "incast_mean_slowdown",
    "incast_p99_slowdown",
];

/// The columns that follow if some packets are lossless.
const LOSSLESS_COLUMNS: [&str; 5] = [
    "pauses",
    "paused_ms",
    "drops_lossless",
    "p99_lossless_occupancy",
    "p99_lossy_occupancy",
];

/// Returns `per_trace.csv`: one row per policy and trace.
fn csv(evaluation: &Evaluation) -> Result<Vec<u8>, OutputError> {
    let mut columns = PER_TRACE_COLUMNS.to_vec();
    if evaluation.has_lossless() {
        columns.extend(LOSSLESS_COLUMNS);
    }
    rows_csv("per_trace.csv", &columns, &evaluation.results)
}

/// Returns the CSV file `name`: one line per row with the fields of these names; a field without a number is
/// empty.
pub(crate) fn rows_csv(
    name: &'static str,
    columns: &[&str],
    rows: &[impl serde::Serialize],
) -> Result<Vec<u8>, OutputError> {
    let encode = |reason: String| OutputError::Encode { name, reason };
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_record(columns)
        .map_err(|e| encode(e.to_string()))?;
    for row in rows {
        let fields = serde_json::to_value(row).map_err(|e| encode(e.to_string()))?;
        writer
            .write_record(columns.iter().map(|column| cell(&fields[*column])))
            .map_err(|e| encode(e.to_string()))?;
    }
    writer.into_inner().map_err(|e| encode(e.to_string()))
}

/// Returns a value as text, without quotes; empty for no value.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        // JSON writes 5 as 5.0 if it is a floating-point number.
        _ if value.is_f64() => value.as_f64().unwrap_or_default().to_string(),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::synthetic;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn all_files_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("a/report");
        write(&synthetic::typical(0.8), &folder, false).unwrap();
        let expected = [
            "cdf-mean-fct.svg",
            "per_trace.csv",
            "ratio-mean-fct.svg",
            "ratio-p99-fct.svg",
            "ratio-to-dt.svg",
            "report.html",
            "report.json",
            "timeline-port-3.svg",
            "timeline-port-7.svg",
            "trigger-intervals.svg",
        ];
        assert_eq!(names(&folder), expected);
        assert_eq!(
            names(&parent.path().join("a")),
            ["report"],
            "no temporary folder is left"
        );
    }

    #[test]
    fn the_json_is_read_back_as_it_was() {
        let evaluation = synthetic::typical(0.8);
        let read: Evaluation = serde_json::from_slice(&json(&evaluation).unwrap()).unwrap();
        assert_eq!(read.results.len(), evaluation.results.len());
        let tallies = |e: &Evaluation| e.policies.iter().map(|p| p.tally).collect::<Vec<_>>();
        assert_eq!(tallies(&read), tallies(&evaluation));
        assert_eq!(read.policies[0].entry, evaluation.policies[0].entry);
        assert!(
            read.results[0].flow_classes.long_mean_fct_ms.is_none(),
            "no number is null"
        );
    }

    #[test]
    fn the_rows_of_the_csv() {
        let evaluation = synthetic::evaluation(&[("cs", &[5.0]), ("dt", &[10.0])]);
        let text = String::from_utf8(csv(&evaluation).unwrap()).unwrap();
        let mut lines = text.lines();
        assert_eq!(
            lines.next(),
            Some(
                "policy,trace,seed,flows,mean_fct_ms,p50_fct_ms,p95_fct_ms,p99_fct_ms,mean_slowdown,\
                 short_mean_fct_ms,short_p99_fct_ms,long_mean_fct_ms,drops,timeouts,p99_occupancy,\
                 decisions,ratio_to_dt,incast_mean_fct_ms,incast_p99_fct_ms,\
                 loss_per_delivered,goodput_bps,p99_queueing_delay_us,port_slowdown_variance,\
                 arrivals,timeout_wait_ms,short_mean_slowdown,short_p99_slowdown,long_mean_slowdown,\
                 long_p99_slowdown,incast_mean_slowdown,incast_p99_slowdown"
            )
        );
        assert_eq!(
            lines.next(),
            Some(
                "cs,0,2654435769,300,5,1,20,45,1,1.5,15,,50,5,0.8,0,0.5,2,,0.0005,995000000,100,0.05,spread,1.25,1.25,5,,,,"
            )
        );
        assert_eq!(lines.count(), 1);
    }

    /// Columns are added after the others, and only if a scenario is lossless.
    #[test]
    fn pauses_have_columns_of_their_own() {
        let plain = synthetic::evaluation(&[("cs", &[5.0]), ("dt", &[10.0])]);
        let paused = synthetic::with_pauses(plain.clone());
        let [plain, paused] = [plain, paused].map(|e| String::from_utf8(csv(&e).unwrap()).unwrap());
        let added = [
            ",pauses,paused_ms,drops_lossless,p99_lossless_occupancy,p99_lossy_occupancy",
            ",5,10,0,0.25,0.5",
            ",10,20,0,0.25,0.5",
        ];
        for ((plain, paused), added) in plain.lines().zip(paused.lines()).zip(added) {
            assert_eq!(format!("{plain}{added}"), paused);
        }
    }

    #[test]
    fn a_folder_with_files_is_kept_unless_forced() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("notes.txt");
        fs::write(&kept, "mine").unwrap();
        let evaluation = synthetic::evaluation(&[("cs", &[5.0]), ("dt", &[10.0])]);
        let refused = write(&evaluation, folder.path(), false).unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("is not empty (--force replaces files in it)")
        );
        assert_eq!(names(folder.path()), ["notes.txt"]);
        write(&evaluation, folder.path(), true).unwrap();
        assert!(kept.exists());
        assert!(folder.path().join("report.html").exists());
    }

    #[test]
    fn an_empty_folder_is_filled() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("out");
        fs::create_dir(&folder).unwrap();
        let evaluation = synthetic::evaluation(&[("cs", &[5.0]), ("dt", &[10.0])]);
        write(&evaluation, &folder, false).unwrap();
        assert!(folder.join("report.json").exists());
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("out");
        fs::write(&file, "x").unwrap();
        let error = check_folder(&file, true).unwrap_err();
        assert!(matches!(error, OutputError::NotAFolder(_)), "{error}");
        let below = check_folder(&file.join("deeper"), false).unwrap_err();
        assert!(below.to_string().contains("out"), "{below}");
    }
}
