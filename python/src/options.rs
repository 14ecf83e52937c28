//! Options of environments.

use std::sync::LazyLock;

use bufgym::env::control::{ControlOptions, FlowTimes, RewardBaseline, TriggerMode};
use bufgym::env::gym::{MakeOptions, ResetOptions, TraceSequence};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::failure::invalid;

/// Mean durations of flows, which all environments of the interpreter share: Gymnasium makes them one by one.
static FLOW_TIMES: LazyLock<FlowTimes> = LazyLock::new(FlowTimes::default);

/// Keyword arguments of an environment: a dictionary, in which a missing one or `None` means the default.
#[derive(FromPyObject)]
pub struct EnvArguments<'py>(Bound<'py, PyDict>);

impl<'py> EnvArguments<'py> {
    /// Converts the arguments into the options of the registry.
    ///
    /// # Errors
    /// Returns a `TypeError` for a value of another type, and a `ValueError` for one that is not possible.
    pub fn resolve(&self) -> PyResult<MakeOptions> {
        let standard = TraceSequence::default();
        let traces = TraceSequence {
            split: self.parsed("split", standard.split)?,
            seed: self.whole("seed")?.unwrap_or(standard.seed),
            start: self.whole("start")?.unwrap_or(standard.start),
            stride: self.whole("stride")?.unwrap_or(standard.stride),
            traces: self.whole("traces")?,
        };
        let standard = ControlOptions::default();
        let control = ControlOptions {
            objective: self.parsed("objective", standard.objective)?,
            low_level: self.parsed("low_level", standard.low_level)?,
            trigger: match self.text("trigger")? {
                Some(text) => trigger(&text)?,
                None => standard.trigger,
            },
            baseline: match self.get("unlimited_baseline", "True or False")? {
                Some(true) => RewardBaseline::UnlimitedBuffer,
                _ => RewardBaseline::Zero,
            },
            tau_s: self.seconds("tau_s")?.unwrap_or(standard.tau_s),
            horizon_s: self.seconds("horizon_s")?,
            flow_times: FLOW_TIMES.clone(),
            ..standard
        };
        Ok(MakeOptions {
            traces,
            control,
            settings: self.get("settings", "a list of texts")?.unwrap_or_default(),
        })
    }

    fn get<T: FromPyObjectOwned<'py>>(&self, name: &str, expected: &str) -> PyResult<Option<T>> {
        let given = self.0.get_item(name)?.filter(|value| !value.is_none());
        let given = given.map(|value| {
            value.extract().map_err(|error: T::Error| {
                let line = format!("{name} = {}: {expected} is expected", shown(&value));
                let error: PyErr = error.into();
                match error.is_instance_of::<PyTypeError>(value.py()) {
                    true => PyTypeError::new_err(line),
                    false => invalid(line),
                }
            })
        });
        given.transpose()
    }

    fn text(&self, name: &str) -> PyResult<Option<String>> {
        self.get(name, "a text")
    }

    fn whole(&self, name: &str) -> PyResult<Option<u64>> {
        self.get(name, "a whole number from 0 to 18446744073709551615")
    }

    fn seconds(&self, name: &str) -> PyResult<Option<f64>> {
        match self.get(name, "a number")? {
            Some(value) if !(f64::is_finite(value) && value > 0.0) => Err(invalid(format!(
                "{name} = {value}: a time constant in seconds is above 0"
            ))),
            other => Ok(other),
        }
    }

    fn parsed<T>(&self, name: &str, standard: T) -> PyResult<T>
    where
        T: std::str::FromStr<Err: std::fmt::Display>,
    {
        let text = self.text(name)?;
        text.map_or(Ok(standard), |text| text.parse().map_err(invalid))
    }
}

fn trigger(text: &str) -> PyResult<TriggerMode> {
    let all = [
        TriggerMode::CumulativeEvent,
        TriggerMode::PerPacket,
        TriggerMode::FixedInterval,
    ];
    all.into_iter()
        .find(|mode| mode.name() == text)
        .ok_or_else(|| {
            let names = all.map(TriggerMode::name).join(", ");
            let text = bufgym::util::input::excerpt(text);
            invalid(format!(
                "trigger '{text}' is not known; the triggers are {names}"
            ))
        })
}

/// Converts a seed of a reset.
///
/// # Errors
/// Returns a `ValueError` for anything except a whole number of at most 64 bits.
pub fn seed(value: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    value.extract().map_err(|_| {
        invalid(format!(
            "seed {}: a seed is a whole number from 0 to 18446744073709551615, or None",
            shown(value)
        ))
    })
}

/// Returns the beginning of a value as Python shows it.
fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr();
    let text = text.map_or_else(|_| "?".to_owned(), |text| text.to_string());
    bufgym::util::input::excerpt(&text)
}

/// Converts the options of a reset: `{"trace": index}` or nothing.
///
/// # Errors
/// Returns a `ValueError` for another key, or an index that is no whole number.
pub fn reset(trace: Option<&Bound<'_, PyAny>>) -> PyResult<ResetOptions> {
    let trace = trace.map(|value| {
        value.extract::<u64>().map_err(|_| {
            invalid("options['trace'] is the index of a trace in its split, a whole number from 0")
        })
    });
    Ok(ResetOptions {
        trace: trace.transpose()?,
    })
}
