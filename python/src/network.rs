//! Checkpoints of the permutation-equivariant network.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use bufgym::cli::embed;
use bufgym::env::control::{FEATURES, HISTORY, LowLevelPolicy};
use bufgym::models::checkpoint::{self, CheckpointError, Manifest};
use bufgym::models::weights::{TENSORS, shape};
use bufgym::models::{ActorWeights, FastActor};
use numpy::{PyArrayDyn, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::{Reals, copied};
use crate::failure::{invalid, locked, released};

/// A network from a checkpoint, run by Rust.
#[pyclass(frozen, module = "bufgym._native")]
pub struct Network {
    actor: Mutex<FastActor>,
    weights: ActorWeights,
    manifest: Manifest,
}

fn failed(error: CheckpointError) -> PyErr {
    match error {
        CheckpointError::Io { .. } => PyOSError::new_err(error.to_string()),
        other => invalid(other),
    }
}

#[pymethods]
impl Network {
    /// Reads a checkpoint, a folder with `actor.safetensors` and `manifest.json`.
    #[new]
    fn load(py: Python<'_>, folder: PathBuf) -> PyResult<Network> {
        let loaded = released(py, || checkpoint::load_actor(&folder))?;
        let (weights, manifest) = loaded.map_err(failed)?;
        Ok(Network {
            actor: Mutex::new(FastActor::new(&weights)),
            weights,
            manifest,
        })
    }

    /// Returns the manifest as JSON: `manifest.json`.
    fn manifest(&self) -> PyResult<String> {
        serde_json::to_string(&self.manifest).map_err(invalid)
    }

    /// Returns the number of values per port in an action.
    fn outputs(&self) -> usize {
        self.weights.outputs()
    }

    /// Returns all weights, by their names in PyTorch.
    fn tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let tensors = TENSORS.iter().zip(self.weights.tensors()).enumerate();
        for (number, ((name, _), values)) in tensors {
            let shape = shape(number, self.weights.outputs());
            dict.set_item(*name, copied(py, &shape, values)?)?;
        }
        Ok(dict)
    }

    /// Returns the mean before tanh and the logarithm of the standard deviation, each
    /// `[batch, ports, outputs]`, for observations `[batch, ports, 8, 5]`.
    #[expect(clippy::type_complexity, reason = "two arrays")]
    fn forward<'py>(
        &self,
        py: Python<'py>,
        observations: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyArrayDyn<f32>>, Bound<'py, PyArrayDyn<f32>>)> {
        let given: Option<PyReadonlyArrayDyn<'_, f32>> = observations.extract().ok();
        let (batch, ports) = match given.as_ref().map(|array| array.shape()) {
            Some(&[batch, ports, ..]) => (batch, ports.max(1)),
            _ => (1, 1),
        };
        let whole = [batch, ports, HISTORY, FEATURES];
        let observations = Reals::take(observations, "observations", &whole)?;
        let values = observations.values();
        let mut actor = locked(&self.actor, "network")?;
        let actor = &mut *actor;
        let (mut means, mut deviations) = (Vec::new(), Vec::new());
        released(py, || {
            for observation in values.chunks_exact(ports * HISTORY * FEATURES) {
                let (mean, log_std) = actor.forward(observation, ports);
                means.extend_from_slice(mean);
                deviations.extend_from_slice(log_std);
            }
        })?;
        let shape = [batch, ports, self.weights.outputs()];
        Ok((
            copied(py, &shape, &means)?,
            copied(py, &shape, &deviations)?,
        ))
    }
}

/// Origin of weights.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Origin {
    scenario: String,
    settings: Vec<String>,
    objective: String,
    low_level: String,
    seed: u64,
    decisions: u64,
    updates: u64,
}

/// Writes a checkpoint, which replaces an existing one. `tensors` are float32 arrays by name.
#[pyfunction]
pub fn save_network(
    py: Python<'_>,
    folder: PathBuf,
    tensors: &Bound<'_, PyDict>,
    origin: Origin,
) -> PyResult<()> {
    let scenario = embed::scenario(&origin.scenario, &origin.settings).map_err(invalid)?;
    let low_level: LowLevelPolicy = origin.low_level.parse().map_err(invalid)?;
    let objective: bufgym::env::control::Objective = origin.objective.parse().map_err(invalid)?;
    let manifest = Manifest {
        decisions: origin.decisions,
        updates: origin.updates,
        ..Manifest::new(
            &scenario.name,
            &scenario.to_toml(),
            &objective.to_string(),
            origin.seed,
        )
        .over(low_level)
    };
    let outputs = manifest.action_set().outputs();
    let mut values: [Vec<f32>; TENSORS.len()] = Default::default();
    for (number, ((name, _), values)) in TENSORS.iter().zip(&mut values).enumerate() {
        let given = tensors.get_item(name)?;
        let given = given.ok_or_else(|| invalid(format!("the tensor {name} is missing")))?;
        let given = Reals::take(&given, &format!("tensor {name}"), &shape(number, outputs))?;
        *values = given.values().to_vec();
    }
    let weights = ActorWeights::from_tensors(values, outputs)
        .map_err(|number| invalid(format!("the tensor {} does not fit", TENSORS[number].0)))?;
    released(py, || -> PyResult<()> {
        if let Some(above) = folder.parent() {
            fs::create_dir_all(above)?;
        }
        checkpoint::save_actor(&folder, &weights, &manifest).map_err(failed)
    })?
}
