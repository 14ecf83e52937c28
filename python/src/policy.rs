//! Policies from Python: policy strings of the command line, and functions of the observation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bufgym::cli::embed;
use bufgym::env::control::{Controller, FEATURES, HISTORY, LowLevelPolicy};
use bufgym::eval::Entrant;
use bufgym::sim::scenario::Scenario;
use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::array::copied;
use crate::failure::invalid;

/// A policy argument of the package: a name, or a name, a function and the heuristic whose α it sets.
#[derive(FromPyObject)]
pub enum PolicyArgument {
    /// A policy string such as `dt:alpha=8`.
    Named(String),
    /// Name, function and heuristic of a policy from Python.
    Own(String, Py<PyAny>, String),
}

impl PolicyArgument {
    /// Returns the entrants of the argument. `stop` is set if a function fails.
    ///
    /// # Errors
    /// Returns a `ValueError` for an unknown name.
    pub fn resolve(
        self,
        scenario: &Scenario,
        stop: &Arc<AtomicBool>,
        failures: &Failures,
    ) -> PyResult<Vec<Entrant>> {
        let (name, function, low_level) = match self {
            PolicyArgument::Named(name) => {
                return embed::policies(&[name], scenario).map_err(invalid);
            }
            PolicyArgument::Own(name, function, low_level) => (name, function, low_level),
        };
        let low_level: LowLevelPolicy = low_level.parse().map_err(invalid)?;
        let function = Arc::new(Function {
            name: name.clone(),
            function,
            stop: Arc::clone(stop),
            failures: failures.clone(),
        });
        let make = move || Box::new(Caller(Arc::clone(&function))) as Box<dyn Controller>;
        let entrant = Entrant::own(&name, "a function in Python", make);
        Ok(vec![entrant.over(low_level)])
    }
}

/// The first exception that a policy has raised.
#[derive(Clone, Default)]
pub struct Failures(Arc<Mutex<Option<PyErr>>>);

impl Failures {
    /// Takes the exception and leaves none.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn keep(&self, error: PyErr) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert(error);
    }
}

/// A function that every simulation calls.
struct Function {
    name: String,
    function: Py<PyAny>,
    stop: Arc<AtomicBool>,
    failures: Failures,
}

impl Function {
    fn decide(&self, observation: &[f32], ports: usize, action: &mut [f32]) -> PyResult<()> {
        Python::attach(|py| {
            let observation = copied(py, &[ports, HISTORY, FEATURES], observation)?;
            let result = self.function.bind(py).call1((observation,))?;
            let numbers = py.import("numpy")?.getattr("asarray")?;
            let result = numbers.call1((result, numpy::dtype::<f32>(py)))?;
            let result: Bound<'_, PyArrayDyn<f32>> = result.cast_into()?;
            let outputs = action.len() / ports;
            let fits = match result.shape() {
                [given] => *given == ports && outputs == 1,
                [given, each] => *given == ports && *each == outputs,
                _ => false,
            };
            if !fits {
                let expected = match outputs {
                    1 => format!("[{ports}]"),
                    more => format!("[{ports}, {more}]"),
                };
                return Err(invalid(format!(
                    "policy {}: an action of shape {:?} returned where float32{expected} is expected",
                    self.name,
                    result.shape()
                )));
            }
            let result = result.readonly();
            for (value, &given) in action.iter_mut().zip(result.as_array().iter()) {
                if !(-1.0..=1.0).contains(&given) {
                    return Err(invalid(format!(
                        "policy {}: an action of {given} returned where -1 to 1 is expected",
                        self.name
                    )));
                }
                *value = given;
            }
            Ok(())
        })
    }
}

/// Calls the function for one simulation.
struct Caller(Arc<Function>);

impl Controller for Caller {
    fn act(&mut self, observation: &[f32], ports: usize, action: &mut [f32]) {
        let function = &self.0;
        action.fill(0.0);
        // The result of the simulation is no longer wanted.
        if function.stop.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = function.decide(observation, ports, action) {
            function.failures.keep(error);
            function.stop.store(true, Ordering::SeqCst);
            action.fill(0.0);
        }
    }
}
