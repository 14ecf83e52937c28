//! `bufgym export`: a checkpoint in forms that a switch, or a program next to one, can run.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use bufgym::eval::entrant::observations::{self, ObservationsError};
use bufgym::eval::evaluate::is_unfit;
use bufgym::eval::{Entrant, EvalError};
use bufgym::export::{self, File, Format, Source, UnknownFormat, golden};
use bufgym::models::checkpoint::{MANIFEST_FILE, Manifest};
use bufgym::models::files::sha256;
use bufgym::sim::scenario::Scenario;
use clap::Args;
use serde_json::json;

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};
use super::output::{Output, shown};
use super::policy;

/// Folder of inputs and expected outputs.
const GOLDEN: &str = "golden";

/// Write a checkpoint as safetensors, ONNX, C or eBPF for a dataplane
#[derive(Args)]
#[command(
    after_help = "Every export has a folder golden/ besides: observations that the policy met on training \
    traces of its scenario, for 1, 4, 16 and 96 ports, with the means, actions and levels that must come \
    out.\n\nFormats:\n  \
    safetensors  tensors as PyTorch names them, manifest.json, and a program that loads them in PyTorch\n  \
    onnx         actor.onnx, opset 18, any batch size and number of ports\n  \
    c            ndt_f32.h and ndt_f32.c: C99 without allocation and libraries\n  \
    c-int8       ndt_int8.h and ndt_int8.c: C99 in integers, 8-bit weights; the control loop in C, and a \
    replay of records\n  \
    ebpf         ndt.bpf.c: the integers as a BPF program for Linux 5.17 and later\n  \
    all          each of these in a folder of its own\n\nExamples:\n  \
    bufgym export --checkpoint checkpoints/ndt-fct --format all --out exported\n  \
    bufgym export --checkpoint runs/mine/checkpoints/best --format c --out switch/policy\n  \
    bufgym export --checkpoint checkpoints/ndt-fct --format onnx --out exported --force --json"
)]
pub struct ExportArgs {
    /// Checkpoint folder with actor.safetensors and manifest.json
    #[arg(long, value_name = "DIR")]
    checkpoint: PathBuf,
    /// safetensors, onnx, c, c-int8, ebpf, or all of them
    #[arg(long, value_name = "F")]
    format: Choice,
    /// Folder to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write into a folder that is not empty
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy)]
enum Choice {
    All,
    One(Format),
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Choice, String> {
        if text == "all" {
            return Ok(Choice::All);
        }
        let format: Result<Format, UnknownFormat> = text.parse();
        format
            .map(Choice::One)
            .map_err(|error| format!("{error}, all"))
    }
}

/// Runs the command.
pub fn run(args: ExportArgs, common: &Common) -> CliResult {
    let (weights, manifest) = policy::load_checkpoint(&args.checkpoint)?;
    let output = Output::folder(&args.out, args.force, &[])?;
    let scenario = scenario(&args.checkpoint, &manifest)?;
    let name = format!("{}:{}", policy::SHIPPED, args.checkpoint.display());
    let entrant = Entrant::from_checkpoint(&name, &weights, &manifest);
    let recording = observations::for_export(&scenario, &entrant).map_err(classify)?;
    let source = Source::new(weights, manifest, recording).or_failure()?;
    let mut files = targets(&source, args.format)?;
    files.extend(golden_files(&source));

    output.write_folder(|folder| {
        files
            .iter()
            .try_for_each(|file| write(folder, file))
            .or_failure()
    })?;
    report(&source, &files, output.path(), common)
}

/// Returns the scenario of the training, in which observations are recorded.
fn scenario(checkpoint: &Path, manifest: &Manifest) -> CliResult<Scenario> {
    let origin = format!(
        "{}: scenario_toml",
        checkpoint.join(MANIFEST_FILE).display()
    );
    Scenario::from_toml_str(&manifest.scenario_toml, &origin).or_bad_input()
}

fn targets(source: &Source, choice: Choice) -> CliResult<Vec<File>> {
    match choice {
        Choice::One(format) => export::export(source, format).or_failure(),
        Choice::All => {
            let mut all = Vec::new();
            for format in Format::ALL {
                let files = export::export(source, format).or_failure()?;
                all.extend(files.into_iter().map(|file| below(format.name(), file)));
            }
            Ok(all)
        }
    }
}

fn golden_files(source: &Source) -> impl Iterator<Item = File> {
    golden::cases(&source.recording)
        .into_iter()
        .flat_map(|case| {
            let integer = case.integer_files(&source.integer.network);
            case.files(&source.weights).into_iter().chain(integer)
        })
        .map(|file| below(GOLDEN, file))
}

fn below(folder: &str, file: File) -> File {
    File {
        path: format!("{folder}/{}", file.path),
        ..file
    }
}

fn write(folder: &Path, file: &File) -> std::io::Result<()> {
    let path = folder.join(&file.path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, &file.bytes)
}

fn report(source: &Source, files: &[File], out: &Path, common: &Common) -> CliResult {
    if common.quiet && !common.json {
        return Ok(());
    }
    let entry = |file: &File| {
        json!({
            "path": file.path,
            "bytes": file.bytes.len(),
            "sha256": sha256(&file.bytes),
        })
    };
    let mut value = json!({
        "out": out.to_string_lossy(),
        "recorded_decisions": source.recording.count(),
        "integer_levels": source.integer.agreement,
        "files": files.iter().map(entry).collect::<Vec<_>>(),
    });
    if let Some(agreement) = source.integer.early_agreement {
        value["integer_early_levels"] = json!(agreement);
    }
    let line = |file: &File| format!("{:>9}  {}", file.bytes.len(), shown(&out.join(&file.path)));
    let lines: Vec<String> = files.iter().map(line).collect();
    common.print(&value, &lines.join("\n"))
}

fn classify(error: ObservationsError) -> CliError {
    match &error {
        ObservationsError::NotLearned(_) | ObservationsError::NoDecisions(_) => {
            CliError::input(error)
        }
        ObservationsError::Eval(EvalError::Simulation { source, .. }) if !is_unfit(source) => {
            CliError::failure(error)
        }
        ObservationsError::Eval(_) => CliError::input(error),
    }
}
