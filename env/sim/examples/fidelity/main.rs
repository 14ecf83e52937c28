//! Compares this simulator with ns-3 3.37 on the same flows and writes `docs/lab/fidelity.md` with its
//! figures.
//!
//! `cargo run --release -p bufgym-sim --example fidelity`

#[path = "../../tests/suite/fidelity/cases.rs"]
mod cases;
mod comparison;
mod document;
mod figure;
mod jittered_reference;
mod metrics;
#[path = "../../tests/suite/fidelity/reference.rs"]
mod reference;
mod rfc;
#[path = "../../tests/suite/fidelity/run.rs"]
mod run;
#[path = "../../tests/suite/fidelity/simulation.rs"]
mod simulation;
mod table;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use cases::{COMPETING, COMPETING_IN_FABRIC, ISOLATED, ISOLATED_IN_FABRIC};
use comparison::Comparison;
use document::{Drawing, Material, Pair};
use rfc::Deviation;

fn main() -> Result<(), Box<dyn Error>> {
    let mut isolated = Vec::new();
    for case in &ISOLATED {
        isolated.push(Pair::of(case)?);
    }
    let mut comparisons = Vec::new();
    for case in &COMPETING {
        let comparison = Comparison::of(case)?;
        println!("{case}\n{}", table::of(&comparison));
        comparisons.push(comparison);
    }
    let mut in_fabric = Vec::new();
    for case in ISOLATED_IN_FABRIC.iter().chain(&COMPETING_IN_FABRIC) {
        in_fabric.push(Pair::of(case)?);
        println!("{case}");
    }
    let deviations = Deviation::all(&comparisons)?;
    let differences = docs().join("fidelity-differences.md");
    let differences = fs::read_to_string(&differences)
        .map_err(|error| format!("{}: {error}", differences.display()))?;
    let text = document::text(&Material {
        isolated: &isolated,
        comparisons: &comparisons,
        in_fabric: &in_fabric,
        drawings: &draw(&comparisons)?,
        deviations: &deviations,
        differences: &differences,
    });
    write("fidelity.md", &text)
}

/// Draws one figure for each minimum RTO, which has the largest influence on the cost of a drop.
fn draw(comparisons: &[Comparison]) -> Result<Vec<Drawing>, Box<dyn Error>> {
    let mut drawings = Vec::new();
    for min_rto_ms in [10, 200] {
        let panels: Vec<&Comparison> = comparisons
            .iter()
            .filter(|comparison| {
                comparison.case.list == cases::List::Mixed
                    && comparison.case.min_rto_ms == min_rto_ms
            })
            .collect();
        let file = format!("fidelity-rto{min_rto_ms}.svg");
        write(&file, &figure::svg(&panels)?)?;
        drawings.push(Drawing { file, min_rto_ms });
    }
    Ok(drawings)
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab")
}

fn write(file: &str, text: &str) -> Result<(), Box<dyn Error>> {
    fs::write(docs().join(file), text).map_err(|error| format!("docs/lab/{file}: {error}"))?;
    println!("docs/lab/{file} written");
    Ok(())
}
