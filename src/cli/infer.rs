//! `bufgym infer`: a checkpoint's actions for recorded observations.

use std::path::PathBuf;
use std::time::Instant;

use bufgym::env::control::{Controller as _, FEATURES, HISTORY};
use bufgym::models::FastActor;
use bufgym::models::npy::{self, Array};
use clap::Args;
use serde_json::json;

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};
use super::output::{Output, shown};
use super::policy;

/// Compute a checkpoint's actions for recorded observations
#[derive(Args)]
#[command(
    after_help = "Observations are float32 [batch, ports, 8, 5], already normalised; actions are \
    tanh(mean), float32 [batch, ports].\n\nExamples:\n  \
    bufgym infer --checkpoint checkpoints/ndt-fct --observations obs.npy --out actions.npy"
)]
pub struct InferArgs {
    /// Checkpoint folder with actor.safetensors and manifest.json
    #[arg(long, value_name = "DIR")]
    checkpoint: PathBuf,
    /// float32 array [batch, ports, 8, 5]
    #[arg(long, value_name = "OBS.npy")]
    observations: PathBuf,
    /// File to write: float32 array [batch, ports], or [batch, ports, 2] with early drop
    #[arg(long, value_name = "ACTIONS.npy")]
    out: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

/// Largest number of ports of an observation, the same as of a scenario.
const MAX_PORTS: usize = 4_096;

/// Runs the command.
pub fn run(args: InferArgs, common: &Common) -> CliResult {
    let (weights, _) = policy::load_checkpoint(&args.checkpoint)?;
    let observations = npy::read(&args.observations).or_bad_input()?;
    let (batch, ports) = check(&observations)
        .map_err(|problem| CliError::bad(format!("{}: {problem}", args.observations.display())))?;
    let output = Output::file(&args.out, args.force)?;

    let started = Instant::now();
    let mut actor = FastActor::new(&weights);
    let values = ports * actor.outputs();
    let mut actions = vec![0.0; batch * values];
    let rows = observations.data.chunks_exact(ports * HISTORY * FEATURES);
    for (observation, action) in rows.zip(actions.chunks_exact_mut(values)) {
        actor.act(observation, ports, action);
    }
    let wall_s = started.elapsed().as_secs_f64();

    let shape = match actor.outputs() {
        1 => vec![batch, ports],
        outputs => vec![batch, ports, outputs],
    };
    output.write_file(|file| npy::write(file, &shape, &actions).or_failure())?;
    if common.quiet && !common.json {
        return Ok(());
    }
    let value = json!({ "out": args.out.to_string_lossy(), "batch": batch, "ports": ports, "wall_s": wall_s });
    common.print(&value, &format!("{}: actions {shape:?}", shown(&args.out)))
}

/// Returns the batch size and the number of ports.
fn check(observations: &Array) -> Result<(usize, usize), String> {
    let &[batch, ports, HISTORY, FEATURES] = observations.shape.as_slice() else {
        return Err(format!(
            "shape {:?}: observations are [batch, ports, {HISTORY}, {FEATURES}]",
            observations.shape
        ));
    };
    if !(1..=MAX_PORTS).contains(&ports) {
        return Err(format!(
            "shape: there must be from 1 to {MAX_PORTS} ports, not {ports}"
        ));
    }
    if let Some(place) = observations
        .data
        .iter()
        .position(|value| !value.is_finite())
    {
        return Err(format!(
            "value {} (flat index {place}) is not finite",
            observations.data[place]
        ));
    }
    Ok((batch, ports))
}
