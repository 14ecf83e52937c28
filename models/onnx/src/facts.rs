//! Facts about a network in the metadata of its file. `bufgym export` writes them; all are optional.

use std::fmt::Display;
use std::str::FromStr;

use bufgym_env::control::{ALPHAS, ActionSet, LowLevelPolicy};
use bufgym_util::input::{condensed, excerpt};
use serde::Deserialize;
use tract_onnx::pb::ModelProto;

/// The origin of a network and the outputs that it sets, as far as its file names them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Heuristic whose α the network sets.
    pub low_level: Option<LowLevelPolicy>,
    /// Outputs that the network sets.
    pub actions: Option<ActionSet>,
    /// The scenario it was trained in.
    pub scenario: Option<String>,
    /// The objective of the training.
    pub objective: Option<String>,
    /// Seed of the training.
    pub seed: Option<u64>,
    /// Program that made the file, with its version; may be empty.
    pub producer: String,
}

/// A feature of the observation in the metadata.
#[derive(Deserialize)]
struct Feature {
    name: String,
    scale: String,
}

impl Facts {
    /// Reads the metadata of a file.
    ///
    /// # Errors
    /// When a field has no usable value.
    pub(crate) fn of(model: &ModelProto) -> Result<Facts, String> {
        let producer = format!("{} {}", model.producer_name, model.producer_version);
        Ok(Facts {
            low_level: parsed(model, "low_level")?,
            actions: parsed(model, "actions")?,
            scenario: field(model, "scenario").map(str::to_owned),
            objective: field(model, "objective").map(str::to_owned),
            seed: parsed(model, "seed")?,
            producer: producer.trim().to_owned(),
        })
    }
}

/// Checks that the metadata do not contradict the observation that this program provides and the outputs that it lets
/// the network set.
///
/// # Errors
/// When a field contradicts them.
pub(crate) fn check(model: &ModelProto, low_level: &LowLevelPolicy) -> Result<(), String> {
    let actions = ActionSet::of(low_level);
    let other = |key: &str, found: &str, expected: String| {
        Err(format!(
            "`{key}` in the metadata is {}; must be {expected} for a network that sets {actions}",
            excerpt(found)
        ))
    };
    if let Some(text) = field(model, "features") {
        let features: Vec<Feature> = serde_json::from_str(text)
            .map_err(|error| format!("`features` in the metadata: {}", condensed(error)))?;
        let found = features.iter().map(|f| format!("{}: {}", f.name, f.scale));
        let found: Vec<String> = found.collect();
        let expected = actions.feature_names();
        if let Some((found, expected)) = found.iter().zip(expected).find(|(a, b)| a != b) {
            return other("features", found, (*expected).to_owned());
        }
        if found.len() != expected.len() {
            let count = format!("{} features", found.len());
            return other("features", &count, expected.len().to_string());
        }
    }
    if let Some(text) = field(model, "alphas").filter(|text| *text != joined(&ALPHAS)) {
        return other("alphas", text, joined(&ALPHAS));
    }
    let Some(gaps) = low_level.early_gaps() else {
        return Ok(());
    };
    let numbers = joined(&gaps.by_level());
    match field(model, "early_gaps") {
        Some(text) if text != numbers => return other("early_gaps", text, numbers),
        None => return Ok(()),
        Some(_) => {}
    }
    let bytes = gaps.bytes_per_packet().map(|bytes| bytes.to_string());
    match (field(model, "early_gap_bytes"), bytes) {
        (Some(text), Some(bytes)) if text != bytes => other("early_gap_bytes", text, bytes),
        (Some(text), None) => other("early_gap_bytes", text, "absent".to_owned()),
        (None, Some(bytes)) => other("early_gap_bytes", "absent", bytes),
        _ => Ok(()),
    }
}

fn joined<T: Display>(values: &[T]) -> String {
    let values: Vec<String> = values.iter().map(T::to_string).collect();
    values.join(", ")
}

fn field<'a>(model: &'a ModelProto, key: &str) -> Option<&'a str> {
    let entries = &model.metadata_props;
    let entry = entries.iter().find(|entry| entry.key == key);
    entry.map(|entry| entry.value.as_str())
}

fn parsed<T: FromStr<Err: Display>>(model: &ModelProto, key: &str) -> Result<Option<T>, String> {
    let value = field(model, key).map(|text| {
        text.parse().map_err(|error| {
            let error = condensed(error);
            format!("`{key}` in the metadata is '{}': {error}", excerpt(text))
        })
    });
    value.transpose()
}
