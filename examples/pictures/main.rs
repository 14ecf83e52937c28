//! Draws the pictures of the documentation that are made from numbers:
//! `cargo run --release --example pictures [-- FOLDER]`, in `docs` where there is no folder.
//!
//! - `hero.svg`: simulations of one burst under three policies. The flows are written to
//!   `figures/burst.csv`, so that `bufgym sim --trace docs/figures/burst.csv --policy dt` repeats one of them.
//! - `gain.svg`: the bars of `figures/gain.csv`. Its numbers are those of docs/results.md; the row without front
//!   drop is that of README.md, with the interval of
//!   `bufgym eval --seed 9753 --policy ndt:checkpoints/ndt-fct-back`.

mod burst;
mod canvas;
mod gain;
mod hero;

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let docs = repository.join("docs");
    let folder = env::args().nth(1).map_or(docs.clone(), PathBuf::from);
    fs::create_dir_all(folder.join("figures"))?;

    let bars = gain::read(&docs.join("figures/gain.csv"))?;
    fs::write(folder.join("gain.svg"), gain::draw(&bars)?)?;

    let burst = burst::Burst::new()?;
    burst.trace.write_csv(folder.join("figures/burst.csv"))?;
    let learned = format!("ndt:{}", repository.join("checkpoints/ndt-fct").display());
    let runs = ["cs", "dt", &learned].map(|policy| burst.run(policy));
    let runs = runs.into_iter().collect::<Result<Vec<_>, _>>()?;
    for run in &runs {
        println!("{run}");
    }
    fs::write(folder.join("hero.svg"), hero::draw(&burst, &runs)?)?;
    Ok(())
}
