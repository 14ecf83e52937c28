//! Several environments that step in parallel and write into the same arrays every time.

use std::sync::Mutex;

use bufgym::env::gym::{
    self, AutoresetMode, BufferEnv, EpisodeStats, Layout, StepSlices, VectorSeed,
};
use numpy::{Element, PyArrayDyn, PyArrayMethods, PyReadwriteArrayDyn};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::array::{Reals, bounds, zeros};
use crate::env::picture;
use crate::failure::{invalid, locked, released};
use crate::info::statistics;
use crate::options::{self, EnvArguments};
use crate::pool::Pool;

const WHAT: &str = "vector environment";

/// Switches under control; `bufgym.BufferVectorEnv` makes them a vector environment of Gymnasium.
#[pyclass(frozen, module = "bufgym._native")]
pub struct VectorEnv {
    inner: Mutex<Inner>,
    arrays: Arrays,
    actions: Vec<usize>,
}

struct Inner {
    envs: gym::VectorEnv<BufferEnv>,
    pool: Pool,
    infos: Vec<Option<EpisodeStats>>,
}

/// The memory that environments write to. Rust allocates it and NumPy owns it.
struct Arrays {
    observations: Py<PyArrayDyn<f32>>,
    privileged: Py<PyArrayDyn<f32>>,
    rewards: Py<PyArrayDyn<f64>>,
    port_rewards: Py<PyArrayDyn<f32>>,
    discounts: Py<PyArrayDyn<f32>>,
    entropy_weights: Py<PyArrayDyn<f32>>,
    elapsed_ps: Py<PyArrayDyn<u64>>,
    terminated: Py<PyArrayDyn<bool>>,
    truncated: Py<PyArrayDyn<bool>>,
    resets: Py<PyArrayDyn<bool>>,
    final_observations: Py<PyArrayDyn<f32>>,
    final_privileged: Py<PyArrayDyn<f32>>,
}

/// The arrays while environments write to them.
struct Borrowed<'py> {
    reals: [PyReadwriteArrayDyn<'py, f32>; 7],
    rewards: PyReadwriteArrayDyn<'py, f64>,
    elapsed_ps: PyReadwriteArrayDyn<'py, u64>,
    flags: [PyReadwriteArrayDyn<'py, bool>; 3],
}

impl Arrays {
    fn new(py: Python<'_>, layout: &Layout) -> PyResult<Arrays> {
        let envs = layout.envs;
        let of = |shape: &[usize]| [&[envs], shape].concat();
        let reals = |shape: &[usize]| Ok::<_, PyErr>(zeros::<f32>(py, &of(shape))?.unbind());
        let flags = || Ok::<_, PyErr>(zeros::<bool>(py, &[envs])?.unbind());
        Ok(Arrays {
            observations: reals(&layout.observation)?,
            privileged: reals(&layout.privileged)?,
            rewards: zeros(py, &[envs])?.unbind(),
            port_rewards: reals(&[layout.components])?,
            discounts: reals(&[])?,
            entropy_weights: reals(&[])?,
            elapsed_ps: zeros(py, &[envs])?.unbind(),
            terminated: flags()?,
            truncated: flags()?,
            resets: flags()?,
            final_observations: reals(&layout.observation)?,
            final_privileged: reals(&layout.privileged)?,
        })
    }

    /// # Errors
    /// Returns a `ValueError` for an array that a caller has made read-only.
    fn borrow<'py>(&self, py: Python<'py>) -> PyResult<Borrowed<'py>> {
        let real = |array| writable::<f32>(py, array);
        let flag = |array| writable::<bool>(py, array);
        Ok(Borrowed {
            reals: [
                real(&self.observations)?,
                real(&self.privileged)?,
                real(&self.port_rewards)?,
                real(&self.discounts)?,
                real(&self.entropy_weights)?,
                real(&self.final_observations)?,
                real(&self.final_privileged)?,
            ],
            rewards: writable(py, &self.rewards)?,
            elapsed_ps: writable(py, &self.elapsed_ps)?,
            flags: [
                flag(&self.terminated)?,
                flag(&self.truncated)?,
                flag(&self.resets)?,
            ],
        })
    }
}

fn writable<'py, T: Element>(
    py: Python<'py>,
    array: &Py<PyArrayDyn<T>>,
) -> PyResult<PyReadwriteArrayDyn<'py, T>> {
    let array = array.bind(py).try_readwrite();
    array.map_err(|error| {
        invalid(format!(
            "an array of the environment cannot be written: {error}"
        ))
    })
}

impl Borrowed<'_> {
    fn slices<'a>(&'a mut self, infos: &'a mut [Option<EpisodeStats>]) -> PyResult<StepSlices<'a>> {
        let [
            observations,
            privileged,
            port_rewards,
            discounts,
            entropy_weights,
            last,
            last_privileged,
        ] = &mut self.reals;
        let [terminated, truncated, resets] = &mut self.flags;
        Ok(StepSlices {
            observations: observations.as_slice_mut()?,
            privileged: privileged.as_slice_mut()?,
            rewards: self.rewards.as_slice_mut()?,
            port_rewards: port_rewards.as_slice_mut()?,
            discounts: discounts.as_slice_mut()?,
            entropy_weights: entropy_weights.as_slice_mut()?,
            elapsed_ps: self.elapsed_ps.as_slice_mut()?,
            terminated: terminated.as_slice_mut()?,
            truncated: truncated.as_slice_mut()?,
            resets: resets.as_slice_mut()?,
            final_observations: last.as_slice_mut()?,
            final_privileged: last_privileged.as_slice_mut()?,
            infos,
        })
    }
}

#[pymethods]
impl VectorEnv {
    #[new]
    fn new(
        py: Python<'_>,
        id: &str,
        envs: usize,
        mode: &str,
        threads: usize,
        arguments: EnvArguments<'_>,
    ) -> PyResult<VectorEnv> {
        let mode = match mode {
            "NextStep" => AutoresetMode::NextStep,
            "SameStep" => AutoresetMode::SameStep,
            "Disabled" => AutoresetMode::Disabled,
            _ => return Err(invalid("autoreset_mode is NextStep, SameStep or Disabled")),
        };
        let options = arguments.resolve()?;
        let pool = Pool::of(py, threads)?;
        let envs = released(py, || gym::make_vec(id, envs, mode, &options))?.map_err(invalid)?;
        let layout = envs.layout();
        Ok(VectorEnv {
            arrays: Arrays::new(py, layout)?,
            actions: [&[layout.envs], layout.action.as_slice()].concat(),
            inner: Mutex::new(Inner {
                infos: vec![None; layout.envs],
                pool,
                envs,
            }),
        })
    }

    /// Returns the shape, least and largest value of one observation.
    fn observation_space<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        use gym::Env as _;
        let inner = locked(&self.inner, WHAT)?;
        bounds(py, inner.envs.envs()[0].env().observation_space())
    }

    /// Returns the shape, least and largest value of one action.
    fn action_space<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        use gym::Env as _;
        let inner = locked(&self.inner, WHAT)?;
        bounds(py, inner.envs.envs()[0].env().action_space())
    }

    /// Returns a picture of every switch, `[height, width, 3]`.
    fn render<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyArrayDyn<u8>>>> {
        let inner = locked(&self.inner, WHAT)?;
        let envs = inner.envs.envs().iter();
        envs.map(|env| picture(py, env.env())).collect()
    }

    /// Returns the number of threads on which environments step.
    fn threads(&self) -> PyResult<usize> {
        Ok(locked(&self.inner, WHAT)?.pool.threads())
    }

    /// Returns the arrays that every call writes to, by name; those of infos by their names there.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let arrays = &self.arrays;
        let dict = PyDict::new(py);
        dict.set_item("observations", &arrays.observations)?;
        dict.set_item("privileged", &arrays.privileged)?;
        dict.set_item("rewards", &arrays.rewards)?;
        dict.set_item("port_rewards", &arrays.port_rewards)?;
        dict.set_item("discount", &arrays.discounts)?;
        dict.set_item("entropy_weight", &arrays.entropy_weights)?;
        dict.set_item("elapsed_ps", &arrays.elapsed_ps)?;
        dict.set_item("terminated", &arrays.terminated)?;
        dict.set_item("truncated", &arrays.truncated)?;
        dict.set_item("reset", &arrays.resets)?;
        dict.set_item("final_observations", &arrays.final_observations)?;
        dict.set_item("final_privileged", &arrays.final_privileged)?;
        Ok(dict)
    }

    /// Begins an episode in the environments of `mask`, or in all.
    #[pyo3(signature = (seeds, mask=None, trace=None))]
    fn reset(
        &self,
        py: Python<'_>,
        seeds: Vec<Bound<'_, PyAny>>,
        mask: Option<Vec<bool>>,
        trace: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let seeds = seeds
            .iter()
            .map(options::seed)
            .collect::<PyResult<Vec<_>>>()?;
        let options = options::reset(trace)?;
        let mut inner = locked(&self.inner, WHAT)?;
        let Inner { envs, pool, infos } = &mut *inner;
        let mask = mask.unwrap_or_else(|| vec![true; envs.len()]);
        let pool = pool.here(py)?;
        let mut borrowed = self.arrays.borrow(py)?;
        let slices = borrowed.slices(infos)?;
        let reset = || envs.reset_into(&mask, VectorSeed::Each(&seeds), &options, slices);
        released(py, || pool.install(reset))?.map_err(invalid)
    }

    /// Moves every environment by one step; returns the statistics of episodes that have ended, each with
    /// the number of its environment.
    fn step<'py>(
        &self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<(usize, Bound<'py, PyDict>)>> {
        let actions = Reals::take(actions, "actions", &self.actions)?;
        let mut inner = locked(&self.inner, WHAT)?;
        let Inner { envs, pool, infos } = &mut *inner;
        let pool = pool.here(py)?;
        let mut borrowed = self.arrays.borrow(py)?;
        let slices = borrowed.slices(infos)?;
        let actions = actions.values();
        let step = || envs.step_into(actions, slices);
        released(py, || pool.install(step))?.map_err(invalid)?;
        let ended = infos.iter().enumerate();
        let ended = ended.filter_map(|(env, stats)| Some((env, stats.as_ref()?)));
        ended
            .map(|(env, stats)| Ok((env, statistics(py, stats)?)))
            .collect()
    }
}
