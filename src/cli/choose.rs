//! `bufgym runs choose`: the best of several trainings that differ in their seed.

use std::path::{Path, PathBuf};

use bufgym::models::ActorWeights;
use bufgym::models::checkpoint::{self, Manifest, SeedResult};
use clap::Args;
use serde_json::json;

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};
use super::output::{Output, shown};
use super::policy;

/// The files of a checkpoint folder.
const FILES: [&str; 2] = [checkpoint::WEIGHTS_FILE, checkpoint::MANIFEST_FILE];

/// Subfolder of a run folder with its best weights.
const BEST: &str = "checkpoints/best";

/// Choose the best of several trainings by their validation traces
#[derive(Args)]
#[command(
    after_help = "The trainings must differ in their seed only. The manifest of the chosen weights names \
    all of them with their results, so that nobody takes the best seed for the usual one.\n\nExamples:\n  \
    bufgym runs choose runs/fct-ndt-16x1g-1 runs/fct-ndt-16x1g-2 runs/fct-ndt-16x1g-3 --out checkpoints/mine"
)]
pub struct ChooseArgs {
    /// Run folders of `bufgym train`, or checkpoint folders
    #[arg(required = true, num_args = 2.., value_name = "RUN")]
    trainings: Vec<PathBuf>,
    /// Checkpoint folder to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Replace a folder that is there
    #[arg(long)]
    force: bool,
}

/// The best weights of one training.
struct Training {
    folder: PathBuf,
    weights: ActorWeights,
    manifest: Manifest,
    result: SeedResult,
}

/// Runs the command.
pub fn run(args: ChooseArgs, common: &Common) -> CliResult {
    let output = Output::folder(&args.out, args.force, &FILES)?;
    let mut trainings = args
        .trainings
        .iter()
        .map(|folder| load(folder))
        .collect::<CliResult<Vec<Training>>>()?;
    for pair in trainings.windows(2) {
        comparable(&pair[0], &pair[1])?;
    }
    trainings.sort_by_key(|training| training.result.seed);
    if let Some(pair) = trainings
        .windows(2)
        .find(|pair| pair[0].result.seed == pair[1].result.seed)
    {
        return Err(CliError::bad(format!(
            "{} and {} are both of seed {}: give one training of each seed",
            pair[0].folder.display(),
            pair[1].folder.display(),
            pair[0].result.seed
        )));
    }

    let results: Vec<SeedResult> = trainings.iter().map(|t| t.result.clone()).collect();
    let best = trainings
        .into_iter()
        .min_by(|a, b| a.result.value.total_cmp(&b.result.value))
        .ok_or_else(|| CliError::bad("no training was given"))?;
    let manifest = Manifest {
        seeds: results,
        ..best.manifest
    };
    output.write_folder(|folder| {
        checkpoint::save_actor(folder, &best.weights, &manifest).or_failure()
    })?;

    let line = |result: &SeedResult| format!("seed {}: {:.3}", result.seed, result.value);
    let lines: Vec<String> = manifest.seeds.iter().map(line).collect();
    let text = format!(
        "{}\n{} (seed {}) written to {}",
        lines.join("\n"),
        shown(&best.folder),
        best.result.seed,
        shown(&args.out)
    );
    let value = json!({"out": args.out.to_string_lossy(), "chosen": best.folder.to_string_lossy(), "seed": best.result.seed,
        "seeds": manifest.seeds});
    common.print(&value, &text)
}

/// Loads the best weights in a run folder or checkpoint folder.
fn load(folder: &Path) -> CliResult<Training> {
    let best = folder.join(BEST);
    let place = if best.exists() {
        best
    } else {
        folder.to_owned()
    };
    let (weights, manifest) = policy::load_checkpoint(&place)?;
    let result = manifest.seed_result().ok_or_else(|| {
        CliError::bad(format!(
            "{}: the manifest has no validation result, by which the best is chosen",
            place.display()
        ))
    })?;
    Ok(Training {
        folder: folder.to_owned(),
        weights,
        manifest,
        result,
    })
}

/// Refuses two trainings that differ in more than their seed.
fn comparable(a: &Training, b: &Training) -> CliResult {
    let [first, second] = [a, b].map(|training| {
        let Manifest {
            objective,
            learner,
            low_level,
            scenario_toml,
            validation,
            ..
        } = &training.manifest;
        let judged = validation.as_ref();
        [
            ("objective", objective.clone()),
            ("learner", learner.clone().unwrap_or_default()),
            ("low_level", low_level.to_string()),
            ("scenario_toml", scenario_toml.clone()),
            (
                "validation",
                judged.map_or_else(String::new, |v| {
                    format!("{}, {} traces", v.metric, v.traces)
                }),
            ),
        ]
    });
    match first.iter().zip(&second).find(|(a, b)| a != b) {
        None => Ok(()),
        Some(((field, _), _)) => Err(CliError::bad(format!(
            "{} and {} differ in `{field}`: give trainings that differ in their seed only",
            a.folder.display(),
            b.folder.display()
        ))),
    }
}
