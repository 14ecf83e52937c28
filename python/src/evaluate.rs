//! Policies on the same unseen traces.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bufgym::cli::embed;
use bufgym::eval::evaluate::evaluate_until;
use bufgym::eval::output::{self, OutputError};
use bufgym::eval::{self, EvalConfig, EvalError};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;

use crate::background::interruptible;
use crate::column::Columns;
use crate::failure::{invalid, released};
use crate::policy::{Failures, PolicyArgument};
use crate::pool::Pool;

/// Least number of bytes that the result of a policy on a trace needs.
const RESULT_BYTES: u64 = 512;

/// Arguments of an evaluation.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct EvaluateArguments {
    scenario: String,
    settings: Vec<String>,
    traces: u64,
    seed: u64,
    threads: usize,
}

/// A finished evaluation; `bufgym.Evaluation` gives its parts.
#[pyclass(frozen, module = "bufgym._native")]
pub struct Evaluation(eval::Evaluation);

/// Runs every policy on every trace.
#[pyfunction]
pub fn evaluate(
    py: Python<'_>,
    policies: Vec<PolicyArgument>,
    arguments: EvaluateArguments,
) -> PyResult<Evaluation> {
    let scenario = embed::scenario(&arguments.scenario, &arguments.settings).map_err(invalid)?;
    let (stop, failures) = (Arc::new(AtomicBool::new(false)), Failures::default());
    let mut entrants = Vec::new();
    for policy in policies {
        entrants.extend(policy.resolve(&scenario, &stop, &failures)?);
    }
    let each = (entrants.len() as u64 + 2) * RESULT_BYTES;
    embed::check_memory(&scenario, arguments.traces, each).map_err(invalid)?;
    let config = EvalConfig {
        traces: arguments.traces,
        ..EvalConfig::new(scenario, entrants, arguments.seed)
    };
    let mut pool = Pool::of(py, arguments.threads)?;
    let pool = pool.here(py)?;
    let flag = Arc::clone(&stop);
    let run = move || pool.install(|| evaluate_until(&config, &|_| {}, &flag));
    let result = interruptible(py, &stop, run)?;
    if let Some(failure) = failures.take() {
        return Err(failure);
    }
    result
        .map(Evaluation)
        .map_err(|error: EvalError| invalid(error))
}

#[pymethods]
impl Evaluation {
    /// Returns one row per policy and trace.
    fn per_trace<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        table(py, &self.0.results)
    }

    /// Returns one row per policy.
    fn policies<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        table(py, &self.0.policies)
    }

    /// Returns everything, in the format of `report.json`.
    fn report(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(invalid)
    }

    /// Returns the table that the command line prints.
    fn text(&self) -> String {
        eval::table::render_evaluation(&self.0)
    }

    /// Returns the findings in sentences.
    fn findings(&self) -> Vec<String> {
        let findings = eval::findings::findings(&self.0);
        findings.into_iter().map(|finding| finding.text).collect()
    }

    /// Writes `report.html`, `report.json`, `per_trace.csv` and the figures.
    fn write(&self, py: Python<'_>, folder: PathBuf, force: bool) -> PyResult<()> {
        let written = released(py, || output::write(&self.0, &folder, force))?;
        written.map_err(|error| match error {
            OutputError::Io { .. } => PyOSError::new_err(error.to_string()),
            other => invalid(other),
        })
    }
}

fn table<'py>(py: Python<'py>, rows: &[impl Serialize]) -> PyResult<Bound<'py, PyDict>> {
    let columns = Columns::new(py);
    let rows = rows.iter().map(serde_json::to_value);
    columns.rows(&rows.collect::<Result<Vec<_>, _>>().map_err(invalid)?)?;
    Ok(columns.0)
}
