//! The file of a linear rule: one JSON object.

use std::io;
use std::path::{Path, PathBuf};

use bufgym_env::control::{ActionSet, LowLevelPolicy};
use bufgym_util::input::{self, condensed, excerpt};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::{LINEAR, LINEAR_FEATURES, LinearRule, LinearWeights};
use crate::checkpoint::Validation;

const FORMAT: &str = "bufgym-linear";
const VERSION: u32 = 1;

/// Features that files of earlier programs do not name. Their weight is zero there.
const ADDED: [&str; 4] = [
    "queue_log",
    "drops_recent",
    "arrivals_before",
    "actions_mean",
];

/// A linear rule with its heuristic and its origin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinearFile {
    /// Version of the program that wrote it.
    pub bufgym_version: String,
    /// The heuristic whose α the rule sets.
    pub low_level: LowLevelPolicy,
    /// The weights by feature. In the file `weights` are those for α, `early` those for early drop and
    /// `ingress` those for the α of ingress queues; it has the second where the heuristic ends in `+early`,
    /// and the third where it manages the memory of lossless packets.
    #[serde(flatten)]
    pub rule: LinearRule,
    /// Name of the scenario it was tuned in.
    pub scenario: String,
    /// That scenario, every setting resolved.
    pub scenario_toml: String,
    /// The objective that it was tuned for.
    pub objective: String,
    /// Seed of the search.
    pub seed: u64,
    /// Generations of the search before these weights.
    pub generations: u64,
    /// Result on the training traces that chose them, where it is known.
    pub training: Option<Validation>,
}

/// A file with its format.
#[derive(Serialize)]
struct Written<'a> {
    format: &'static str,
    version: u32,
    #[serde(flatten)]
    file: &'a LinearFile,
}

/// The reason why a linear rule could not be read. Every message is one line that names the file.
#[derive(Debug, thiserror::Error)]
pub enum LinearFileError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The file has another content.
    #[error("{}: {problem}; `bufgym tune linear` writes such files", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The field, and the expected value.
        problem: String,
    },
}

impl LinearFile {
    /// Reads a file.
    ///
    /// # Errors
    /// See [`LinearFileError`].
    pub fn load(path: &Path) -> Result<LinearFile, LinearFileError> {
        let text = input::read(path, input::MAX_JSON).map_err(|error| LinearFileError::Io {
            path: path.to_owned(),
            error,
        })?;
        LinearFile::parse(&text, path)
    }

    /// Same as [`LinearFile::load`], from memory. `origin` is the name in error messages.
    ///
    /// # Errors
    /// When it is not such a file, or of another version.
    pub fn parse(text: &[u8], origin: &Path) -> Result<LinearFile, LinearFileError> {
        read(text).map_err(|problem| LinearFileError::Content {
            path: origin.to_owned(),
            problem,
        })
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        let written = Written {
            format: FORMAT,
            version: VERSION,
            file: self,
        };
        serde_json::to_string_pretty(&written)
            .expect("strings, numbers and maps by string are JSON")
            + "\n"
    }
}

fn read(text: &[u8]) -> Result<LinearFile, String> {
    let value: Value = serde_json::from_slice(text)
        .map_err(|error| format!("not valid JSON: {}", condensed(error)))?;
    let Value::Object(values) = value else {
        return Err(format!(
            "holds {}, not an object",
            excerpt(&value.to_string())
        ));
    };
    let mut fields = Fields(values);
    // These are checked first, because another format or version may have other fields.
    fields.expect("format", &FORMAT.into())?;
    fields.expect("version", &VERSION.into())?;
    let low_level: LowLevelPolicy = fields.take("low_level")?;
    let alpha = LinearRule::new(weights(&mut fields, ALPHA)?);
    let file = LinearFile {
        bufgym_version: fields.take("bufgym_version")?,
        rule: match ActionSet::of(&low_level) {
            ActionSet::Alpha => alpha,
            ActionSet::AlphaEarly => alpha.with_early(weights(&mut fields, EARLY)?),
            ActionSet::AlphaIngress => alpha.with_ingress(weights(&mut fields, INGRESS)?),
        },
        low_level,
        scenario: fields.take("scenario")?,
        scenario_toml: fields.take("scenario_toml")?,
        objective: fields.take("objective")?,
        seed: fields.take("seed")?,
        generations: fields.take("generations")?,
        training: fields.take("training")?,
    };
    fields.finish()?;
    Ok(file)
}

/// The fields that have not been read yet. They are read one by one, so that every error can name its field.
struct Fields(Map<String, Value>);

impl Fields {
    fn value(&mut self, name: &str) -> Result<Value, String> {
        let value = self.0.remove(name);
        value.ok_or_else(|| format!("field `{name}` is missing"))
    }

    fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, String> {
        let value = self.value(name)?;
        serde_json::from_value(value)
            .map_err(|error| format!("field `{name}`: {}", condensed(error)))
    }

    fn expect(&mut self, name: &str, expected: &Value) -> Result<(), String> {
        match self.value(name)? {
            found if found == *expected => Ok(()),
            found => Err(format!(
                "field `{name}` is {}; this program reads {expected}",
                excerpt(&found.to_string())
            )),
        }
    }

    fn finish(self) -> Result<(), String> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(format!(
                "field `{}` is not known; leave it out",
                excerpt(name)
            )),
        }
    }
}

/// Names of the fields that hold weights.
const ALPHA: &str = "weights";
const EARLY: &str = "early";
const INGRESS: &str = "ingress";

impl Serialize for LinearRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = match self.actions() {
            ActionSet::AlphaIngress => INGRESS,
            ActionSet::Alpha | ActionSet::AlphaEarly => EARLY,
        };
        let second = self.second().map(|weights| (name, weights));
        serializer.collect_map([(ALPHA, self.alpha())].into_iter().chain(second))
    }
}

/// The weights in the field `field`: one finite number for every feature, and nothing else.
fn weights(fields: &mut Fields, field: &str) -> Result<LinearWeights, String> {
    let mut values: Map<String, Value> = fields.take(field)?;
    let mut weights = [0.0; LINEAR];
    for (name, weight) in LINEAR_FEATURES.iter().zip(&mut weights) {
        let value = match values.remove(*name) {
            Some(value) => value,
            None if ADDED.contains(name) => continue,
            None => {
                return Err(format!(
                    "field `{field}.{name}` is missing; a number is needed"
                ));
            }
        };
        *weight = value
            .as_f64()
            .filter(|weight| weight.is_finite())
            .ok_or_else(|| {
                format!(
                    "field `{field}.{name}` is {}; a finite number is needed",
                    excerpt(&value.to_string())
                )
            })?;
    }
    match values.keys().next() {
        None => Ok(LinearWeights::new(weights)),
        Some(name) => Err(format!(
            "field `{field}.{}` is not a feature; the features are {}",
            excerpt(name),
            LINEAR_FEATURES.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> LinearFile {
        LinearFile {
            bufgym_version: "0.1.0".to_owned(),
            low_level: "fab:short_bytes=62500".parse().unwrap(),
            rule: LinearRule::new(LinearWeights::new(std::array::from_fn(|i| {
                i as f64 / 8.0 - 0.5
            }))),
            scenario: "ndt-16x1g".to_owned(),
            scenario_toml: "ports = 16\n".to_owned(),
            objective: "fct".to_owned(),
            seed: u64::MAX,
            generations: 25,
            training: Some(Validation {
                traces: 64,
                metric: "mean FCT / DT (alpha = 1)".to_owned(),
                value: 0.75,
                low: 0.5,
                high: 0.875,
                won: 1.0,
            }),
        }
    }

    fn problem(text: &str) -> String {
        let error = LinearFile::parse(text.as_bytes(), Path::new("rule.json")).unwrap_err();
        let message = error.to_string();
        assert!(
            message.starts_with("rule.json: ") && !message.contains('\n'),
            "{message}"
        );
        message
    }

    #[test]
    fn a_file_is_read_back_and_the_order_of_its_fields_does_not_matter() {
        let file = example();
        let text = file.to_json();
        let parse = |text: &str| LinearFile::parse(text.as_bytes(), Path::new("f")).unwrap();
        assert_eq!(parse(&text), file);
        let value: Value = serde_json::from_str(&text).unwrap();
        // The map behind a value is sorted by name.
        let sorted = value.to_string();
        assert!(sorted.find("all_drops") < sorted.find("constant"));
        assert!(text.find("all_drops") > text.find("constant"));
        assert_eq!(parse(&sorted), file);
        let unmeasured = LinearFile {
            training: None,
            ..file
        };
        assert_eq!(parse(&unmeasured.to_json()), unmeasured);
    }

    #[test]
    fn a_feature_that_an_earlier_program_did_not_have_counts_nothing() {
        let first = LINEAR - ADDED.len();
        assert_eq!(LINEAR_FEATURES[first..], ADDED);
        let weights = std::array::from_fn(|i| if i < first { i as f64 / 8.0 } else { 0.0 });
        let file = LinearFile {
            rule: LinearRule::new(LinearWeights::new(weights)),
            ..example()
        };
        let text = file.to_json();
        let start = text.find("\"queue_log\"").unwrap();
        let before = text[..start].rfind(',').unwrap();
        let end = start + text[start..].find('}').unwrap();
        let earlier = text[..before].to_owned() + &text[end..];
        assert!(ADDED.iter().all(|name| !earlier.contains(name)));
        let read = LinearFile::parse(earlier.as_bytes(), Path::new("f")).unwrap();
        assert_eq!(read, file);
    }

    #[test]
    fn a_rule_with_early_drop_needs_weights_for_it() {
        let weights = LinearWeights::new(std::array::from_fn(|i| i as f64 / 4.0));
        let example = example();
        let file = LinearFile {
            low_level: "dt+early".parse().unwrap(),
            rule: example.rule.clone().with_early(weights),
            ..example
        };
        let text = file.to_json();
        let parse = |text: &str| LinearFile::parse(text.as_bytes(), Path::new("f"));
        assert_eq!(parse(&text).unwrap(), file);
        let without = text.replacen("dt+early", "dt", 1);
        assert!(problem(&without).contains("`early` is not known"));
        let missing = text.replacen("\"early\"", "\"erly\"", 1);
        assert!(problem(&missing).contains("`early` is missing"));
    }

    #[test]
    fn mistakes_are_one_line_with_the_field_and_what_would_be_right() {
        let good = example().to_json();
        let cases: [(&str, &str, &[&str]); 14] = [
            (
                "bufgym-linear",
                "bufgym-tuned",
                &["`format`", "bufgym-linear"],
            ),
            (
                "\"version\": 1",
                "\"version\": 2",
                &["`version` is 2", "reads 1"],
            ),
            ("\"version\": 1,", "", &["`version` is missing"]),
            (
                "\"seed\": 18446744073709551615",
                "\"seed\": -1",
                &["`seed`", "u64"],
            ),
            ("\"seed\"", "\"sed\"", &["`seed` is missing"]),
            (
                "\"seed\"",
                "\"author\": 1, \"seed\"",
                &["`author` is not known"],
            ),
            ("fab:", "lqd:", &["`low_level`", "alpha", "occamy"]),
            ("\"queue\": -0.375,", "", &["`weights.queue` is missing"]),
            (
                "\"queue\": -0.375",
                "\"queue\": null",
                &["`weights.queue` is null", "number"],
            ),
            (
                "\"queue\": -0.375",
                "\"queue\": \"NaN\"",
                &["`weights.queue`", "number"],
            ),
            (
                "\"queue\": -0.375",
                "\"queue\": NaN",
                &["not valid JSON", "line"],
            ),
            (
                "\"queue\": -0.375",
                "\"queue\": 1e999",
                &["not valid JSON", "line"],
            ),
            (
                "\"queue\": -0.375",
                "\"queue\": 1, \"queues\": 1",
                &["`weights.queues`", "queue_share"],
            ),
            ("\"won\"", "\"lost\"", &["`training`", "`lost`", "`won`"]),
        ];
        for (from, to, words) in cases {
            assert!(good.contains(from), "{from}");
            let message = problem(&good.replacen(from, to, 1));
            for word in words {
                assert!(message.contains(word), "no {word} in {message}");
            }
        }
        for text in ["", "[]", "7", &good[..good.len() / 2]] {
            assert!(problem(text).contains("bufgym tune linear"));
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = LinearFile::load(Path::new("no/such.json")).unwrap_err();
        assert!(error.to_string().starts_with("no/such.json: "), "{error}");
    }
}
