//! Measures the cost of a decision in every exported form.

mod elf;
mod targets;

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use bufgym::env::control::FEATURES;
use bufgym::eval::Entrant;
use bufgym::eval::entrant::observations;
use bufgym::export::{OBSERVATION, Recording, Source};
use bufgym::sim::scenario::Scenario;
use serde_json::{Value, json};

use super::PORTS;
use crate::cli::Common;
use crate::cli::error::{CliResult, ResultExt as _};
use crate::cli::policy;
use targets::Target;

/// Number of observations that a measurement uses in turn.
const OBSERVATIONS: usize = 256;

/// The measured load: recorded observations, in floating point and in codes, for one number of ports.
struct Load {
    name: &'static str,
    ports: usize,
    observations: Vec<f32>,
    codes: Vec<u8>,
}

/// Name and number of ports of every load, and whether all its ports differ: the integer C computes equal
/// ports only once.
const LOADS: [(&str, usize, bool); 3] = [
    ("16 ports", PORTS[0], false),
    ("all unlike", PORTS[0], true),
    ("96 ports", PORTS[1], false),
];

impl Load {
    /// Builds a load. Joins observations of several decisions if the switch has more ports than recorded.
    fn new(source: &Source, (name, ports, unlike): (&'static str, usize, bool)) -> Load {
        let Recording { ports: have, .. } = source.recording;
        let joined = ports.div_ceil(have);
        let mut observations = Vec::with_capacity(OBSERVATIONS * ports * OBSERVATION);
        for sample in 0..OBSERVATIONS {
            let mut rows = Vec::new();
            for part in 0..joined {
                let decision = (sample * joined + part) % source.recording.count();
                rows.extend_from_slice(source.recording.observation(decision));
            }
            observations.extend_from_slice(&rows[..ports * OBSERVATION]);
        }
        if unlike {
            // Changes the first feature, which is the queue, of the newest step.
            let rows = observations.chunks_exact_mut(OBSERVATION).enumerate();
            rows.for_each(|(row, values)| {
                values[OBSERVATION - FEATURES] = (row % ports) as f32 / ports as f32;
            });
        }
        Load {
            name,
            ports,
            codes: source.integer.network.encode(&observations),
            observations,
        }
    }
}

/// Measures every target that this machine can run. `checkpoint` is a folder, or `None` for the shipped
/// weights.
pub fn run(checkpoint: Option<&Path>, budget: Duration, common: &Common) -> CliResult {
    let source = source(checkpoint)?;
    let loads = LOADS.map(|load| Load::new(&source, load));
    let folder = tempfile::tempdir().or_failure()?;
    let mut rows = Vec::new();
    for target in targets::all() {
        common.note(format!("measuring {}", target.name));
        rows.push(measure(&target, &source, &loads, folder.path(), budget));
    }
    let cpu = cpu();
    common.print(
        &json!({
            "cpu": cpu,
            "loads": loads.each_ref().map(|load| load.name),
            "targets": rows.iter().map(Row::json).collect::<Vec<Value>>(),
        }),
        &table(&cpu, &rows),
    )
}

fn source(checkpoint: Option<&Path>) -> CliResult<Source> {
    let (weights, manifest) = match checkpoint {
        Some(folder) => policy::load_checkpoint(folder)?,
        None => policy::shipped_weights()?,
    };
    let scenario =
        Scenario::from_toml_str(&manifest.scenario_toml, "scenario_toml").or_bad_input()?;
    let entrant = Entrant::from_checkpoint(policy::SHIPPED, &weights, &manifest);
    let recording = observations::for_export(&scenario, &entrant).or_bad_input()?;
    Source::new(weights, manifest, recording).or_failure()
}

/// A line of the table.
struct Row {
    name: &'static str,
    /// Nanoseconds for each of [`LOADS`], or the reason why there are none.
    figures: Result<Vec<f64>, String>,
    /// Bytes of instructions, and bytes of constants.
    bytes: Option<[usize; 2]>,
}

impl Row {
    fn json(&self) -> Value {
        let mut value = json!({ "target": self.name });
        match &self.figures {
            Ok(ns) => value["ns_per_decision"] = json!(ns),
            Err(reason) => value["not_measured"] = json!(reason),
        }
        if let Some([code, constants]) = self.bytes {
            value["code_bytes"] = json!(code);
            value["constant_bytes"] = json!(constants);
        }
        value
    }
}

fn measure(
    target: &Target,
    source: &Source,
    loads: &[Load],
    folder: &Path,
    budget: Duration,
) -> Row {
    let mut bytes = None;
    let figures = (target.prepare)(source, folder).and_then(|mut prepared| {
        bytes = prepared.bytes;
        let measured = loads
            .iter()
            .map(|load| (prepared.nanoseconds)(load, budget));
        measured.collect()
    });
    Row {
        name: target.name,
        figures: figures.map_err(|reason| reason.to_string()),
        bytes,
    }
}

fn table(cpu: &str, rows: &[Row]) -> String {
    let mut text = format!(
        "{cpu}, one core; median time of a decision on recorded observations\n\n{:<28}",
        "target"
    );
    let columns = LOADS
        .map(|(name, ..)| name)
        .into_iter()
        .chain(["code", "constants"]);
    columns.for_each(|column| {
        let _ = write!(text, "{column:>12}");
    });
    for row in rows {
        let _ = write!(text, "\n{:<28}", row.name);
        match &row.figures {
            Ok(figures) => figures.iter().for_each(|ns| {
                let _ = write!(text, "{:>9.2} us", ns / 1e3);
            }),
            Err(reason) => {
                let _ = write!(text, "not measured: {reason}");
                continue;
            }
        }
        if let Some(bytes) = row.bytes {
            bytes.iter().for_each(|bytes| {
                let _ = write!(text, "{bytes:>10} B");
            });
        }
    }
    text
}

/// Returns the name of the processor.
fn cpu() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find(|line| line.starts_with("model name"));
    let name = name
        .and_then(|line| line.split_once(": "))
        .map(|(_, name)| name.trim());
    let features = targets::vector_extensions().join(", ");
    format!("{} ({features})", name.unwrap_or(std::env::consts::ARCH))
}
