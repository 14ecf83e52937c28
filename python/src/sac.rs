//! Soft actor-critic for any Gymnasium environment.

use std::path::PathBuf;
use std::sync::Mutex;

use bufgym::agents::sac::{SacConfig, UpdateMetrics};
use bufgym::agents::{LearnerError, PlainSac, PlainShape};
use bufgym::models::cpu;
use numpy::PyArrayDyn;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::{Reals, copied};
use crate::failure::{invalid, locked, released};

/// The learner with plain networks and its own replay buffer. Actions are in (-1, 1).
#[pyclass(frozen, module = "bufgym._native")]
pub struct Sac {
    learner: Mutex<PlainSac>,
    shape: PlainShape,
}

fn failed(error: LearnerError) -> PyErr {
    match error {
        LearnerError::Io { .. } => PyOSError::new_err(error.to_string()),
        other => invalid(other),
    }
}

#[pymethods]
impl Sac {
    /// Builds a learner; `sizes` are those of the observation, the action, the layers and the replay buffer.
    /// `settings` is a JSON object with the fields of `SacConfig` that differ from the published ones.
    #[new]
    fn new(sizes: [usize; 4], discount: f32, seed: u64, settings: &str) -> PyResult<Sac> {
        let [observation, action, width, capacity] = sizes;
        let shape = PlainShape {
            observation,
            action,
            width,
            capacity,
        };
        let config = published(settings).map_err(invalid)?;
        let learner = PlainSac::new(config, shape, discount, seed, &cpu()).map_err(failed)?;
        Ok(Sac {
            learner: Mutex::new(learner),
            shape,
        })
    }

    /// Reads a folder that `save` wrote. The replay buffer is empty.
    #[staticmethod]
    fn load(folder: PathBuf) -> PyResult<Sac> {
        let learner = PlainSac::load(&folder, &cpu()).map_err(failed)?;
        let shape = learner.shape();
        Ok(Sac {
            learner: Mutex::new(learner),
            shape,
        })
    }

    /// Returns the sizes of an observation and of an action.
    fn sizes(&self) -> (usize, usize) {
        (self.shape.observation, self.shape.action)
    }

    /// Writes networks and optimisers into an existing folder, but not the replay buffer.
    fn save(&self, folder: PathBuf) -> PyResult<()> {
        locked(&self.learner, "learner")?
            .save(&folder)
            .map_err(failed)
    }

    /// Returns an action drawn uniformly, float32 `[action]`.
    fn random_action<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let action = locked(&self.learner, "learner")?.random_action();
        copied(py, &[action.len()], &action)
    }

    /// Returns the policy's action for an observation: drawn if it `explores`, otherwise the mean.
    fn act<'py>(
        &self,
        py: Python<'py>,
        observation: &Bound<'py, PyAny>,
        explores: bool,
    ) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let observation = self.observation(observation)?;
        let action = locked(&self.learner, "learner")?.act(observation.values(), explores);
        copied(py, &[action.len()], &action)
    }

    /// Adds a transition to the replay buffer.
    fn push<'py>(
        &self,
        observation: &Bound<'py, PyAny>,
        action: &Bound<'py, PyAny>,
        reward: f32,
        next: &Bound<'py, PyAny>,
        terminated: bool,
    ) -> PyResult<()> {
        let (observation, next) = (self.observation(observation)?, self.observation(next)?);
        let action = Reals::take(action, "action", &[self.shape.action])?;
        let mut learner = locked(&self.learner, "learner")?;
        learner.push(
            observation.values(),
            action.values(),
            reward,
            next.values(),
            terminated,
        );
        Ok(())
    }

    /// Makes `updates` updates, and returns the metrics of the last one.
    fn update<'py>(&self, py: Python<'py>, updates: u64) -> PyResult<Bound<'py, PyDict>> {
        let mut learner = locked(&self.learner, "learner")?;
        if learner.held() == 0 {
            return Err(invalid("an update needs a transition: push some first"));
        }
        let learner = &mut *learner;
        let measured = released(py, move || (0..updates).map(|_| learner.update()).last())?;
        let dict = PyDict::new(py);
        if let Some(UpdateMetrics {
            critic_loss,
            q_mean,
            temperature,
            actor,
            ..
        }) = measured
        {
            dict.set_item("critic_loss", critic_loss)?;
            dict.set_item("q_mean", q_mean)?;
            dict.set_item("temperature", temperature)?;
            dict.set_item("actor_loss", actor.map(|[loss, _]| loss))?;
            dict.set_item("entropy", actor.map(|[_, entropy]| entropy))?;
        }
        Ok(dict)
    }
}

impl Sac {
    fn observation<'py>(&self, given: &Bound<'py, PyAny>) -> PyResult<Reals<'py>> {
        Reals::take(given, "observation", &[self.shape.observation])
    }
}

/// Returns the published settings, overridden by those of a JSON object.
fn published(settings: &str) -> Result<SacConfig, serde_json::Error> {
    let mut table = serde_json::to_value(SacConfig::published())?;
    let given: serde_json::Map<String, serde_json::Value> = serde_json::from_str(settings)?;
    if let Some(table) = table.as_object_mut() {
        table.extend(given);
    }
    serde_json::from_value(table)
}
