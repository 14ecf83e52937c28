//! What a policy sees on training traces, with what it makes of it, as NumPy arrays:
//! `cargo run --release --example record_observations -- FOLDER [TRACES [CHECKPOINT]]`, of the shipped weights
//! where there is no checkpoint folder.
//!
//! Writes `observations-16.npy` `[decisions, 16, 8, 5]`, and `means-16.npy`, `actions-16.npy` and
//! `levels-16.npy` `[decisions, 16]`, with `early-` before the name for a second output.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use bufgym::eval::Entrant;
use bufgym::eval::entrant::observations;
use bufgym::models::checkpoint::load_actor;
use bufgym::sim::scenario::Scenario;

const CHECKPOINT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/checkpoints/ndt-fct");
const SEED: u64 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("give a folder")?);
    let traces: u64 = arguments.next().unwrap_or("8".to_owned()).parse()?;
    let checkpoint = arguments.next().unwrap_or(CHECKPOINT.to_owned());
    let (weights, manifest) = load_actor(Path::new(&checkpoint))?;
    let scenario = Scenario::from_toml_str(&manifest.scenario_toml, &checkpoint)?;
    let policy = Entrant::from_checkpoint("ndt", &weights, &manifest);
    let recording = observations::collect(&scenario, &policy, SEED, traces)?;
    println!(
        "{} decisions of {} ports",
        recording.count(),
        recording.ports
    );

    fs::create_dir_all(&folder)?;
    for file in recording.files(&weights) {
        fs::write(folder.join(file.path), file.bytes)?;
    }
    Ok(())
}
