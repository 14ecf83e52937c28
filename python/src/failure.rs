//! Converts failures of Rust into exceptions of Python.

use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, TryLockError};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Returns a `ValueError` with the same line, for an error of the user's.
pub fn invalid(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Runs `work` while other threads of Python may run. A panic there becomes a `RuntimeError`.
pub fn released<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work)))
        .map_err(|panic| broken(panic.as_ref()))
}

/// Returns the exception for a panic.
pub fn broken(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    PyRuntimeError::new_err(format!(
        "bufgym has a defect and this object cannot be used any more: {}",
        text.unwrap_or("no reason is known")
    ))
}

/// Locks the object of a call. Fails if another thread is in a call on the same object, or was when the
/// process was forked, or if a call on it has panicked.
pub fn locked<'a, T>(object: &'a Mutex<T>, what: &str) -> PyResult<MutexGuard<'a, T>> {
    object.try_lock().map_err(|error| {
        PyRuntimeError::new_err(match error {
            TryLockError::WouldBlock => {
                format!("another thread is using this {what}: give every thread its own")
            }
            TryLockError::Poisoned(_) => {
                format!("this {what} cannot be used any more since a call on it has failed")
            }
        })
    })
}
