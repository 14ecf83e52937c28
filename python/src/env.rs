//! One environment.

use std::sync::Mutex;

use bufgym::env::gym::{self, BufferEnv, Env as _, EnvSnapshot, Registry, Reset, Resumable as _};
use numpy::PyArrayDyn;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::array::{Reals, bounds, copied};
use crate::failure::{invalid, locked, released};
use crate::info::{InfoShape, dictionary};
use crate::options::{self, EnvArguments};
use crate::render;

const WHAT: &str = "environment";

/// Returns the name, the summary and whether it is a network, for every registered environment.
#[pyfunction]
pub fn environments() -> Vec<(String, String, bool)> {
    let registry = Registry::standard();
    let specs = registry.specs().iter();
    specs
        .map(|spec| {
            let network = spec.scenario.is_fabric();
            (spec.id.clone(), spec.summary.clone(), network)
        })
        .collect()
}

/// A single switch under control; `bufgym.BufferEnv` makes it an environment of Gymnasium.
#[pyclass(frozen, module = "bufgym._native")]
pub struct Env {
    env: Mutex<BufferEnv>,
    observation: Vec<usize>,
    action: Vec<usize>,
    info: InfoShape,
}

#[pymethods]
impl Env {
    #[new]
    fn new(py: Python<'_>, id: &str, arguments: EnvArguments<'_>) -> PyResult<Env> {
        let options = arguments.resolve()?;
        let env = released(py, || gym::make(id, &options))?.map_err(invalid)?;
        let privileged = env.privileged_space();
        Ok(Env {
            observation: env.observation_space().shape().to_vec(),
            action: env.action_space().shape().to_vec(),
            info: InfoShape {
                privileged: privileged.map_or(vec![0], |space| space.shape().to_vec()),
                components: env.reward_components(),
            },
            env: Mutex::new(env),
        })
    }

    /// Returns the shape, least and largest value of an observation.
    fn observation_space<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        bounds(py, locked(&self.env, WHAT)?.observation_space())
    }

    /// Returns the shape, least and largest value of an action.
    fn action_space<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        bounds(py, locked(&self.env, WHAT)?.action_space())
    }

    /// Begins an episode; returns observation and info.
    #[pyo3(signature = (seed=None, trace=None))]
    fn reset<'py>(
        &self,
        py: Python<'py>,
        seed: Option<&Bound<'py, PyAny>>,
        trace: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyArrayDyn<f32>>, Bound<'py, PyDict>)> {
        let seed = seed.map_or(Ok(None), options::seed)?;
        let options = options::reset(trace)?;
        let mut env = locked(&self.env, WHAT)?;
        let env = &mut *env;
        let reset = released(py, || env.reset(seed, &options))?.map_err(invalid)?;
        self.beginning(py, &reset)
    }

    /// Makes a decision; returns observation, reward, terminated, truncated and info.
    #[expect(clippy::type_complexity, reason = "the five values of Gymnasium")]
    fn step<'py>(
        &self,
        py: Python<'py>,
        action: &Bound<'py, PyAny>,
    ) -> PyResult<(
        Bound<'py, PyArrayDyn<f32>>,
        f64,
        bool,
        bool,
        Bound<'py, PyDict>,
    )> {
        let action = Reals::take(action, "action", &self.action)?;
        let mut env = locked(&self.env, WHAT)?;
        let env = &mut *env;
        let action = action.values();
        let step = released(py, || env.step(action))?.map_err(invalid)?;
        let observation = copied(py, &self.observation, step.observation)?;
        let info = dictionary(py, &self.info, step.info)?;
        Ok((
            observation,
            step.reward,
            step.terminated,
            step.truncated,
            info,
        ))
    }

    /// Returns the exact state, as JSON.
    fn snapshot(&self) -> PyResult<String> {
        let snapshot = locked(&self.env, WHAT)?.snapshot();
        serde_json::to_string(&snapshot).map_err(invalid)
    }

    /// Restores the state of a snapshot; returns its observation and info, if an episode had begun.
    #[expect(
        clippy::type_complexity,
        reason = "the two values of Gymnasium, or none"
    )]
    fn restore<'py>(
        &self,
        py: Python<'py>,
        snapshot: &str,
    ) -> PyResult<Option<(Bound<'py, PyArrayDyn<f32>>, Bound<'py, PyDict>)>> {
        let snapshot: EnvSnapshot = serde_json::from_str(snapshot)
            .map_err(|error| invalid(format!("not a snapshot: {error}")))?;
        let mut env = locked(&self.env, WHAT)?;
        let env = &mut *env;
        let state = released(py, || env.restore(&snapshot))?.map_err(invalid)?;
        state.map(|state| self.beginning(py, &state)).transpose()
    }

    /// Returns a picture of the switch, `[height, width, 3]`.
    fn render<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<u8>>> {
        picture(py, &*locked(&self.env, WHAT)?)
    }

    /// Returns the index, within its split, of the current trace.
    fn trace_index(&self) -> PyResult<Option<u64>> {
        Ok(locked(&self.env, WHAT)?.trace_index())
    }

    /// Returns the scenario, as the text of a scenario file.
    fn scenario(&self) -> PyResult<String> {
        Ok(locked(&self.env, WHAT)?.options().scenario.to_toml())
    }
}

/// Returns a picture as an array.
pub fn picture<'py>(py: Python<'py>, env: &BufferEnv) -> PyResult<Bound<'py, PyArrayDyn<u8>>> {
    let image = render::draw(env);
    copied(py, &[image.height, image.width, 3], &image.pixels)
}

impl Env {
    fn beginning<'py>(
        &self,
        py: Python<'py>,
        reset: &Reset<'_>,
    ) -> PyResult<(Bound<'py, PyArrayDyn<f32>>, Bound<'py, PyDict>)> {
        let observation = copied(py, &self.observation, reset.observation)?;
        Ok((observation, dictionary(py, &self.info, reset.info)?))
    }
}
