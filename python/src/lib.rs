//! The gym as a Python module, `bufgym._native`. The package around it, in Python, gives it the
//! interfaces of Gymnasium and others.
//!
//! Environments write directly into NumPy arrays, so that nothing is copied on the way to Python. While
//! environments step or simulations run, other threads of Python may run too.

mod array;
mod background;
mod cluster;
mod column;
mod env;
mod evaluate;
mod failure;
mod info;
mod network;
mod network_env;
mod options;
mod policy;
mod pool;
mod render;
mod sac;
mod simulate;
mod vector;

use pyo3::prelude::*;

/// The Rust part of the package `bufgym`.
#[pymodule]
mod _native {
    use bufgym::env::control::{ALPHAS, FEATURE_NAMES, HISTORY, PRIVILEGED_NAMES};
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::cluster::{Cluster, Host};
    #[pymodule_export]
    use crate::env::{Env, environments};
    #[pymodule_export]
    use crate::evaluate::{Evaluation, evaluate};
    #[pymodule_export]
    use crate::network::{Network, save_network};
    #[pymodule_export]
    use crate::network_env::NetworkEnv;
    #[pymodule_export]
    use crate::sac::Sac;
    #[pymodule_export]
    use crate::simulate::simulate;
    #[pymodule_export]
    use crate::vector::VectorEnv;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("ALPHAS", ALPHAS.to_vec())?;
        module.add("FEATURE_NAMES", FEATURE_NAMES.to_vec())?;
        module.add("PRIVILEGED_NAMES", PRIVILEGED_NAMES.to_vec())?;
        module.add("HISTORY", HISTORY)
    }

    /// Runs the command line with these arguments, the first of which is the program's name, and returns
    /// the exit code.
    #[pyfunction]
    fn command_line(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> PyResult<u8> {
        crate::failure::released(py, || bufgym::cli::embed::run(arguments))
    }
}
