//! The manifest of a checkpoint.

use std::path::Path;

use bufgym_env::control::{ALPHAS, ActionSet, HISTORY, INITIAL_INDEX, LowLevelPolicy, cell_centre};
use bufgym_sim::switch::aqm::early::EarlyGaps;
use bufgym_util::input::condensed;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::CheckpointError;
use crate::weights::{ActorWeights, EMBEDDING, FILTERS, HIDDEN, LOG_STD_RANGE};
use crate::windows::TAPS;

/// The format that this program writes and reads.
pub const FORMAT_VERSION: u32 = 1;

/// Contents of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`FORMAT_VERSION`].
    pub format_version: u32,
    /// Version of the program that wrote it.
    pub bufgym_version: String,
    /// The network.
    pub architecture: Architecture,
    /// The features of one port and step, in order.
    pub features: Vec<Feature>,
    /// The levels that the outputs stand for.
    pub actions: Levels,
    /// The heuristic whose α the outputs set, and its early drop where it ends in `+early`; not written where it is Dynamic Threshold.
    #[serde(default, skip_serializing_if = "LowLevelPolicy::is_default")]
    pub low_level: LowLevelPolicy,
    /// Name of the scenario it was trained in.
    pub scenario: String,
    /// That scenario, every setting resolved.
    pub scenario_toml: String,
    /// The objective of the training.
    pub objective: String,
    /// Algorithm of the training and what it began from, in a few words; absent from older manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learner: Option<String>,
    /// Seed of the training.
    pub seed: u64,
    /// Decisions taken in training before these weights.
    pub decisions: u64,
    /// Updates before these weights.
    pub updates: u64,
    /// Result on the validation traces.
    pub validation: Option<Validation>,
    /// All trainings that these weights were chosen from, in the order of their seeds; not written where there
    /// was no choice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<SeedResult>,
    /// Comparisons with rules whose constants were tuned; not written where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compared: Vec<Compared>,
    /// SHA-256 of the weights file.
    pub weights_sha256: String,
}

/// The network's shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    /// `ndt-actor`.
    pub name: String,
    /// Trainable parameters.
    pub parameters: usize,
    /// Steps of history, newest last.
    pub history: usize,
    /// Convolution filters per feature.
    pub filters: usize,
    /// Taps of the convolution.
    pub taps: usize,
    /// Width of a port's embedding.
    pub embedding: usize,
    /// Width of the layers after it.
    pub hidden: usize,
    /// Range to which the logarithm of the standard deviation is clamped.
    pub log_std_range: [f32; 2],
}

/// One input of a port and step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feature {
    /// Name.
    pub name: String,
    /// Formula that computes it from the measured quantity.
    pub scale: String,
    /// Range to which it is clipped.
    pub clip: [f32; 2],
    /// Subtracted from the scaled value before it enters the network.
    pub mean: f32,
    /// Divisor of the value after the mean is subtracted.
    pub deviation: f32,
}

/// The levels that the network's outputs stand for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Levels {
    /// Rule that turns an output into an index into `alphas` or `early_gaps`. If there are two outputs and no gaps,
    /// both are indices into `alphas`, for egress and for ingress queues.
    pub rule: String,
    /// The levels of α.
    pub alphas: Vec<f64>,
    /// The value of each level in the observation.
    pub centres: Vec<f32>,
    /// The level before the first decision.
    pub initial_index: usize,
    /// The levels of the second output where that is early drop: the longest gap between drops, packets, 0
    /// for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_gaps: Option<Vec<u32>>,
    /// If present, the gaps are multiples of the shortest gap of the switch: one packet per this many bytes of its
    /// buffer, rounded down to a power of two, at least 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_gap_bytes: Option<u64>,
}

/// The result of weights on the traces that chose them: validation traces for a network, training
/// traces for a linear rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validation {
    /// Traces.
    pub traces: u64,
    /// The metric, such as `mean FCT / DT (alpha = 1)`.
    pub metric: String,
    /// Mean of the metric.
    pub value: f64,
    /// Lower end of the metric's 95 % interval.
    pub low: f64,
    /// Upper end of the metric's 95 % interval.
    pub high: f64,
    /// Share of the traces won.
    pub won: f64,
}

/// The result of one of several trainings that differ in their seed only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedResult {
    /// Seed of the training.
    pub seed: u64,
    /// Decisions before its best weights.
    pub decisions: u64,
    /// [`Validation::value`] of these.
    pub value: f64,
}

/// A comparison of these weights with a rule, on test traces that chose neither of them. Below 1 the weights are
/// better.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compared {
    /// The rule with its constants.
    pub policy: String,
    /// The preset and the settings that differ from it, as on a command line.
    pub scenario: String,
    /// The compared metric, such as `mean FCT`.
    pub metric: String,
    /// Test traces.
    pub traces: u64,
    /// Seed of the traces.
    pub seed: u64,
    /// Mean over the traces of the ratio of the weights' value to the rule's.
    pub ratio: f64,
    /// Lower end of its 95 % bootstrap interval.
    pub low: f64,
    /// Upper end of its 95 % bootstrap interval.
    pub high: f64,
}

impl Manifest {
    /// The manifest of an untrained actor over Dynamic Threshold. The caller sets
    /// [another](Manifest::over) low level, decisions, updates and the validation result; the hash is set when it is saved.
    pub fn new(scenario: &str, scenario_toml: &str, objective: &str, seed: u64) -> Manifest {
        Manifest {
            format_version: FORMAT_VERSION,
            bufgym_version: env!("CARGO_PKG_VERSION").to_owned(),
            architecture: Architecture::of(ActionSet::Alpha),
            features: current_features(ActionSet::Alpha),
            actions: Levels::of(&LowLevelPolicy::default()),
            low_level: LowLevelPolicy::default(),
            scenario: scenario.to_owned(),
            scenario_toml: scenario_toml.to_owned(),
            objective: objective.to_owned(),
            learner: None,
            seed,
            decisions: 0,
            updates: 0,
            validation: None,
            seeds: Vec::new(),
            compared: Vec::new(),
            weights_sha256: String::new(),
        }
    }

    /// Returns the manifest for another heuristic.
    #[must_use]
    pub fn over(self, low_level: LowLevelPolicy) -> Manifest {
        let actions = ActionSet::of(&low_level);
        Manifest {
            architecture: Architecture::of(actions),
            features: current_features(actions),
            actions: Levels::of(&low_level),
            low_level,
            ..self
        }
    }

    /// Returns the result of this training, if it was validated.
    pub fn seed_result(&self) -> Option<SeedResult> {
        self.validation.as_ref().map(|validation| SeedResult {
            seed: self.seed,
            decisions: self.decisions,
            value: validation.value,
        })
    }

    /// Returns the outputs that decisions set.
    pub fn action_set(&self) -> ActionSet {
        ActionSet::of(&self.low_level)
    }

    /// Reads a manifest and checks that this program can run the actor. The version is checked
    /// first, because another version may have other fields.
    pub(super) fn parse(text: &[u8], path: &Path) -> Result<Manifest, CheckpointError> {
        let unreadable = |reason: String| CheckpointError::Manifest {
            path: path.to_owned(),
            reason,
        };
        let value: Value = serde_json::from_slice(text)
            .map_err(|error| unreadable(format!("not valid JSON: {}", condensed(error))))?;
        let version = value
            .get("format_version")
            .ok_or_else(|| unreadable("missing field `format_version`".to_owned()))?;
        if version.as_u64() != Some(FORMAT_VERSION.into()) {
            let found = version.to_string();
            return Err(CheckpointError::Version {
                path: path.to_owned(),
                found,
            });
        }
        let manifest: Manifest =
            serde_json::from_value(value).map_err(|error| unreadable(condensed(error)))?;
        manifest.check(path)?;
        Ok(manifest)
    }

    fn check(&self, path: &Path) -> Result<(), CheckpointError> {
        let actions = self.action_set();
        let architecture = Architecture::of(actions);
        compare(path, "architecture", &self.architecture, &architecture)?;
        compare(path, "features", &self.features, &current_features(actions))?;
        compare(path, "actions", &self.actions, &Levels::of(&self.low_level))
    }
}

impl Architecture {
    fn of(actions: ActionSet) -> Architecture {
        Architecture {
            name: "ndt-actor".to_owned(),
            parameters: ActorWeights::parameters(actions.outputs()),
            history: HISTORY,
            filters: FILTERS,
            taps: TAPS,
            embedding: EMBEDDING,
            hidden: HIDDEN,
            log_std_range: LOG_STD_RANGE,
        }
    }
}

impl Levels {
    fn of(low_level: &LowLevelPolicy) -> Levels {
        let early_gaps = low_level.early_gaps();
        Levels {
            rule: "index = min(7, floor((tanh(mean) + 1) / 2 * 8))".to_owned(),
            alphas: ALPHAS.to_vec(),
            centres: (0..ALPHAS.len()).map(cell_centre).collect(),
            initial_index: INITIAL_INDEX,
            early_gaps: early_gaps.map(|gaps| gaps.by_level().to_vec()),
            early_gap_bytes: early_gaps.and_then(EarlyGaps::bytes_per_packet),
        }
    }
}

fn current_features(actions: ActionSet) -> Vec<Feature> {
    let feature = |text: &&str| {
        let (name, scale) = text.split_once(": ").unwrap_or((text, ""));
        let (name, scale) = (name.to_owned(), scale.to_owned());
        Feature {
            name,
            scale,
            clip: [-1.0, 1.0],
            mean: 0.0,
            deviation: 1.0,
        }
    };
    actions.feature_names().iter().map(feature).collect()
}

/// Fails with the first field, at any depth, in which two values differ.
fn compare<T: Serialize>(
    path: &Path,
    field: &str,
    found: &T,
    expected: &T,
) -> Result<(), CheckpointError> {
    let to_value = |value: &T| {
        serde_json::to_value(value).map_err(|error| CheckpointError::Manifest {
            path: path.to_owned(),
            reason: error.to_string(),
        })
    };
    match difference(field, &to_value(found)?, &to_value(expected)?) {
        None => Ok(()),
        Some((field, found, expected)) => Err(CheckpointError::Field {
            path: path.to_owned(),
            field,
            found,
            expected,
        }),
    }
}

fn difference(field: &str, found: &Value, expected: &Value) -> Option<(String, String, String)> {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            let unexpected = found.keys().filter(|key| !expected.contains_key(*key));
            expected.keys().chain(unexpected).find_map(|key| {
                let value = |of: &Map<String, Value>| of.get(key).cloned().unwrap_or_default();
                difference(&format!("{field}.{key}"), &value(found), &value(expected))
            })
        }
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => found
            .iter()
            .zip(expected)
            .enumerate()
            .find_map(|(index, (a, b))| difference(&format!("{field}[{index}]"), a, b)),
        _ if found == expected => None,
        _ => Some((field.to_owned(), found.to_string(), expected.to_string())),
    }
}
