//! What a decision costs in every exported form.

mod elf;
mod targets;

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use bufgym::env::scenario::Scenario;
use bufgym::eval::{Contestant, record};
use bufgym::models::export::{OBSERVATION, Recording, Source};
use serde_json::{Value, json};

use super::PORTS;
use crate::cli::Common;
use crate::cli::error::{CliResult, ResultExt as _};
use crate::cli::policy;
use targets::Target;

/// Observations that a measurement goes through.
const OBSERVATIONS: usize = 256;

/// What is measured: recorded observations, in floating point and in codes, for one number of ports.
struct Load {
    ports: usize,
    observations: Vec<f32>,
    codes: Vec<u8>,
}

impl Load {
    /// Observations of several decisions joined where the switch has more ports than recorded.
    fn new(source: &Source, ports: usize) -> Load {
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
        Load {
            ports,
            codes: source.integer.network.encode(&observations),
            observations,
        }
    }
}

/// Measures every target that this machine can run. `checkpoint` is a folder, or none for the
/// shipped weights.
pub fn run(checkpoint: Option<&Path>, budget: Duration, common: &Common) -> CliResult {
    let source = source(checkpoint)?;
    let loads = PORTS.map(|ports| Load::new(&source, ports));
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
            "ports": PORTS,
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
    let contestant = Contestant::from_checkpoint(policy::SHIPPED, &weights, &manifest);
    let recording = record::for_export(&scenario, &contestant).or_bad_input()?;
    Source::new(weights, manifest, recording).or_failure()
}

/// A line of the table.
struct Row {
    name: &'static str,
    /// Nanoseconds for each of [`PORTS`], or why there are none.
    figures: Result<[f64; 2], String>,
    /// Bytes of instructions and of constants.
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
    loads: &[Load; 2],
    folder: &Path,
    budget: Duration,
) -> Row {
    let mut bytes = None;
    let figures = (target.prepare)(source, folder).and_then(|mut prepared| {
        bytes = prepared.bytes;
        Ok([
            (prepared.nanoseconds)(&loads[0], budget)?,
            (prepared.nanoseconds)(&loads[1], budget)?,
        ])
    });
    Row {
        name: target.name,
        figures,
        bytes,
    }
}

fn table(cpu: &str, rows: &[Row]) -> String {
    let mut text = format!(
        "{cpu}, one core; median time of a decision on recorded observations\n\n{:<28}{:>12}{:>12}{:>12}{:>12}",
        "target", "16 ports", "96 ports", "code", "constants"
    );
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

/// What the processor calls itself.
fn cpu() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find(|line| line.starts_with("model name"));
    let name = name
        .and_then(|line| line.split_once(": "))
        .map(|(_, name)| name.trim());
    let features = targets::vector_extensions().join(", ");
    format!("{} ({features})", name.unwrap_or(std::env::consts::ARCH))
}
