//! Converts the info of a reset or a step into a dictionary.

use bufgym::env::gym::{EpisodeStats, Info};
use numpy::PyArray1;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::array::copied;

/// Shapes of the parts of an info that are arrays.
pub struct InfoShape {
    /// Shape of the privileged state, such as `[ports, 22]`.
    pub privileged: Vec<usize>,
    /// Number of reward components, the size of `[ports]`.
    pub components: usize,
}

/// Returns everything besides observation, reward and end of episode.
pub fn dictionary<'py>(
    py: Python<'py>,
    shape: &InfoShape,
    info: &Info,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let privileged = copied(py, &shape.privileged, &info.privileged)?;
    dict.set_item(intern!(py, "privileged"), privileged)?;
    let rewards = copied(py, &[shape.components], &info.port_rewards)?;
    dict.set_item(intern!(py, "port_rewards"), rewards)?;
    dict.set_item(intern!(py, "discount"), info.discount)?;
    dict.set_item(intern!(py, "entropy_weight"), info.entropy_weight)?;
    dict.set_item(intern!(py, "elapsed_ps"), info.elapsed.as_ps())?;
    if info.no_decision {
        dict.set_item(intern!(py, "skipped"), info.skipped)?;
    }
    if let Some(stats) = &info.episode {
        dict.set_item(intern!(py, "episode_stats"), statistics(py, stats)?)?;
    }
    Ok(dict)
}

/// Returns the statistics of an episode.
pub fn statistics<'py>(py: Python<'py>, stats: &EpisodeStats) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    // Gymnasium puts numbers of many environments into arrays. Integers of Python would become signed ones
    // there, too short for the seeds of two of the splits.
    let seed = PyArray1::from_slice(py, &[stats.seed]).get_item(0)?;
    dict.set_item("seed", seed)?;
    dict.set_item("index", stats.index)?;
    dict.set_item("return", stats.return_)?;
    dict.set_item("discounted_return", stats.discounted_return)?;
    dict.set_item("decisions", stats.decisions)?;
    dict.set_item("flows", stats.flows)?;
    dict.set_item("completed", stats.completed)?;
    dict.set_item("mean_fct_ms", stats.mean_fct_ms)?;
    dict.set_item("drops", stats.drops)?;
    dict.set_item("timeouts", stats.timeouts)?;
    dict.set_item("packets_forwarded", stats.packets_forwarded)?;
    dict.set_item("simulated_s", stats.simulated_s)?;
    Ok(dict)
}
