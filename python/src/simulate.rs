//! One trace under one policy.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bufgym::cli::embed;
use bufgym::sim::network::{FlowClass, FlowRecord, Outcome};
use bufgym::sim::scenario::Scenario;
use bufgym::sim::traffic::{self, ListOptions, Trace};
use bufgym::sim::units::{Duration, Instant};
use bufgym::util::rng::{Split, trace_seed};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::background::interruptible;
use crate::column::Columns;
use crate::failure::invalid;
use crate::policy::{Failures, PolicyArgument};

/// Arguments of a simulation: the trace, and the recordings.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct SimulateArguments {
    scenario: String,
    settings: Vec<String>,
    seed: u64,
    index: u64,
    split: String,
    /// A file of flows, instead of a generated trace.
    trace: Option<PathBuf>,
    timeline_us: Option<u64>,
}

impl SimulateArguments {
    fn trace(&self, scenario: &Scenario) -> PyResult<Trace> {
        if let Some(path) = &self.trace {
            let options = ListOptions {
                ports: scenario.network.ports,
                ..ListOptions::default()
            };
            return Trace::read_list(path, &options).map_err(invalid);
        }
        let split: Split = self.split.parse().map_err(invalid)?;
        embed::check_memory(scenario, 1, 0).map_err(invalid)?;
        let seed = trace_seed(split, self.seed, self.index);
        Ok(traffic::generate(scenario, seed))
    }

    fn timeline(&self) -> PyResult<Option<Duration>> {
        match self.timeline_us {
            Some(0) => Err(invalid("timeline_us is at least 1")),
            interval => Ok(interval.map(Duration::from_us)),
        }
    }
}

/// Runs one trace under one policy. Returns the policy's name, the summary as JSON, and the tables of
/// flows, switches, timeline and pauses.
#[pyfunction]
pub fn simulate<'py>(
    py: Python<'py>,
    policy: PolicyArgument,
    arguments: SimulateArguments,
) -> PyResult<(String, String, [Bound<'py, PyDict>; 4])> {
    let scenario = embed::scenario(&arguments.scenario, &arguments.settings).map_err(invalid)?;
    let (stop, failures) = (Arc::new(AtomicBool::new(false)), Failures::default());
    let entrants = policy.resolve(&scenario, &stop, &failures)?;
    let [entrant] = entrants.as_slice() else {
        return Err(invalid(
            "one trace is simulated under one policy, not several",
        ));
    };
    let entrant = entrant.clone();
    let (trace, interval) = (arguments.trace(&scenario)?, arguments.timeline()?);
    let name = entrant.name().to_owned();
    let run = move || {
        let outcome = entrant.run(&scenario, &trace, interval);
        (trace, outcome)
    };
    let (trace, outcome) = interruptible(py, &stop, run)?;
    if let Some(failure) = failures.take() {
        return Err(failure);
    }
    let outcome = outcome.map_err(invalid)?;
    let summary = serde_json::to_string(&outcome.summary).map_err(invalid)?;
    let tables = [
        flows(py, &trace, &outcome.records)?,
        switches(py, &outcome)?,
        timeline(py, &outcome)?,
        pauses(py, &outcome)?,
    ];
    Ok((name, summary, tables))
}

fn flows<'py>(
    py: Python<'py>,
    trace: &Trace,
    records: &[FlowRecord],
) -> PyResult<Bound<'py, PyDict>> {
    let columns = Columns::new(py);
    let flows = || records.iter().map(|record| &record.spec);
    columns.numbers("id", flows().map(|flow| flow.id))?;
    columns.numbers("src", flows().map(|flow| flow.src))?;
    columns.numbers("dst", flows().map(|flow| flow.dst))?;
    columns.numbers("start_ns", flows().map(|flow| flow.start.as_ns()))?;
    columns.numbers("size_bytes", flows().map(|flow| flow.size))?;
    columns.texts("kind", flows().map(|flow| trace.kind_name(flow)))?;
    columns.numbers("query", flows().map(|flow| flow.query))?;
    let finish = records
        .iter()
        .map(|record| record.finish.map(Instant::as_ns));
    columns.optional("finish_ns", finish)?;
    let fct = records.iter().map(|record| record.fct.map(Duration::as_ns));
    columns.optional("fct_ns", fct)?;
    let slowdown = records.iter().map(|record| record.slowdown);
    columns.numbers(
        "slowdown",
        slowdown.map(|slowdown| slowdown.unwrap_or(f64::NAN)),
    )?;
    columns.texts("class", flows().map(|flow| FlowClass::of(flow).name()))?;
    columns.numbers("priority", flows().map(|flow| flow.priority))?;
    let base = records
        .iter()
        .map(|record| record.base.map(Duration::as_ns));
    columns.optional("base_ns", base)?;
    columns.numbers("timeouts", records.iter().map(|record| record.timeouts))?;
    Ok(columns.0)
}

fn switches<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let columns = Columns::new(py);
    let rows = outcome.switches.iter().map(serde_json::to_value);
    columns.rows(&rows.collect::<Result<Vec<_>, _>>().map_err(invalid)?)?;
    Ok(columns.0)
}

fn timeline<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let columns = Columns::new(py);
    let rows = || outcome.timeline.iter();
    columns.numbers("t_ns", rows().map(|row| row.t.as_ns()))?;
    columns.numbers("switch", rows().map(|row| row.switch.0))?;
    columns.numbers("port", rows().map(|row| row.port))?;
    columns.numbers("queue_bytes", rows().map(|row| row.queue_bytes))?;
    columns.numbers("threshold_bytes", rows().map(|row| row.threshold_bytes))?;
    columns.numbers("occupancy_bytes", rows().map(|row| row.occupancy_bytes))?;
    columns.numbers("alpha", rows().map(|row| row.alpha))?;
    Ok(columns.0)
}

fn pauses<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyDict>> {
    let columns = Columns::new(py);
    let rows = || outcome.pauses.iter();
    columns.numbers("switch", rows().map(|row| row.switch.0))?;
    columns.numbers("port", rows().map(|row| row.port as u64))?;
    columns.numbers("priority", rows().map(|row| row.priority as u64))?;
    columns.numbers("from_ns", rows().map(|row| row.from.as_ns()))?;
    columns.optional("to_ns", rows().map(|row| row.to.map(Instant::as_ns)))?;
    Ok(columns.0)
}
