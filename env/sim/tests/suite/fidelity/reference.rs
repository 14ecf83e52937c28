//! ns-3's results, as files next to this one.

use std::error::Error;
use std::path::{Path, PathBuf};

use bufgym_sim::traffic::Trace;
use serde::Deserialize;

use super::cases::{Case, List, Network};
use super::run::{Completion, Run};

/// Returns the folder of ns-3's results in a network.
pub fn folder(network: Network) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/fidelity/data");
    data.join(network.folder())
}

/// Reads the flow list that both simulators run.
///
/// # Errors
/// When the file cannot be read.
pub fn flows(network: Network, list: List) -> Result<Trace, Box<dyn Error>> {
    let path = folder(network).join(format!("flows_{}.csv", list.name()));
    Ok(Trace::read_csv(path)?)
}

/// Reads ns-3's results for a case. Counts are zero if ns-3's are not recorded (isolated flows).
///
/// # Errors
/// When a file cannot be read, or the result does not belong to the case's flow list.
pub fn run(case: &Case) -> Result<Run, Box<dyn Error>> {
    let file = format!("fct_{}.csv", case.name());
    let path = folder(case.network).join(&file);
    if Trace::read_csv(&path)?.flows != flows(case.network, case.list)?.flows {
        return Err(format!("{file}: not the flows of flows_{}.csv", case.list.name()).into());
    }
    let mut completions = Vec::new();
    for line in csv::Reader::from_path(&path)?.deserialize() {
        completions.push(completion(line?));
    }
    let totals = totals(case, &file)?.unwrap_or_default();
    Ok(Run {
        flows: completions,
        forwarded: totals.packets_forwarded,
        drops: totals.drops,
        marks: totals.ecn_marks,
    })
}

/// Columns `id,src,dst,start_ns,size_bytes,kind,query,established_ns,finish_ns,fct_ns`.
type Line = (u64, u32, u32, u64, u64, String, i64, u64, u64, u64);

fn completion(line: Line) -> Completion {
    let (_, _, _, start_ns, size, kind, _, established_ns, finish_ns, _) = line;
    Completion {
        kind,
        size,
        start_ns,
        established_ns,
        finish_ns,
    }
}

/// A line of `totals.csv`.
#[derive(Default, Deserialize)]
struct Totals {
    file: String,
    packets_forwarded: u64,
    drops: u64,
    ecn_marks: u64,
}

fn totals(case: &Case, file: &str) -> Result<Option<Totals>, Box<dyn Error>> {
    let mut reader = csv::Reader::from_path(folder(case.network).join("totals.csv"))?;
    for line in reader.deserialize() {
        let totals: Totals = line?;
        if totals.file == file {
            return Ok(Some(totals));
        }
    }
    Ok(None)
}
