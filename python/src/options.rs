//! Options of environments.

use bufgym::env::control::{ControlOptions, RewardBaseline, TriggerMode};
use bufgym::env::gym::{MakeOptions, ResetOptions, TraceSequence};
use pyo3::prelude::*;

use crate::failure::invalid;

/// Keyword arguments of environments, each with its name and default in Rust.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct EnvArguments {
    settings: Vec<String>,
    #[pyo3(default)]
    split: Option<String>,
    #[pyo3(default)]
    seed: Option<u64>,
    #[pyo3(default)]
    start: Option<u64>,
    #[pyo3(default)]
    stride: Option<u64>,
    #[pyo3(default)]
    traces: Option<u64>,
    #[pyo3(default)]
    objective: Option<String>,
    #[pyo3(default)]
    low_level: Option<String>,
    #[pyo3(default)]
    trigger: Option<String>,
    #[pyo3(default)]
    unlimited_baseline: bool,
    #[pyo3(default)]
    tau_s: Option<f64>,
    #[pyo3(default)]
    horizon_s: Option<f64>,
}

impl EnvArguments {
    /// Converts the arguments into the options of the registry.
    ///
    /// # Errors
    /// Returns a `ValueError` for a text that is none of the possible ones.
    pub fn resolve(self) -> PyResult<MakeOptions> {
        let standard = TraceSequence::default();
        let traces = TraceSequence {
            split: parsed(self.split.as_deref(), standard.split)?,
            seed: self.seed.unwrap_or(standard.seed),
            start: self.start.unwrap_or(standard.start),
            stride: self.stride.unwrap_or(standard.stride),
            traces: self.traces,
        };
        let standard = ControlOptions::default();
        let control = ControlOptions {
            objective: parsed(self.objective.as_deref(), standard.objective)?,
            low_level: parsed(self.low_level.as_deref(), standard.low_level)?,
            trigger: match self.trigger {
                Some(text) => trigger(&text)?,
                None => standard.trigger,
            },
            baseline: match self.unlimited_baseline {
                true => RewardBaseline::UnlimitedBuffer,
                false => RewardBaseline::Zero,
            },
            tau_s: positive("tau_s", self.tau_s)?.unwrap_or(standard.tau_s),
            horizon_s: positive("horizon_s", self.horizon_s)?,
            reference_interval_s: standard.reference_interval_s,
        };
        Ok(MakeOptions {
            traces,
            control,
            settings: self.settings,
        })
    }
}

fn parsed<T>(text: Option<&str>, standard: T) -> PyResult<T>
where
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    text.map_or(Ok(standard), |text| text.parse().map_err(invalid))
}

fn positive(name: &str, value: Option<f64>) -> PyResult<Option<f64>> {
    match value {
        Some(value) if !(value.is_finite() && value > 0.0) => Err(invalid(format!(
            "{name} = {value}: a time constant in seconds is above 0"
        ))),
        other => Ok(other),
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
        let text = value
            .repr()
            .map_or_else(|_| "?".to_owned(), |text| text.to_string());
        let text = bufgym::util::input::excerpt(&text);
        invalid(format!(
            "seed {text}: a seed is a whole number from 0 to 18446744073709551615, or None"
        ))
    })
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
