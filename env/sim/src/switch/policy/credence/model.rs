//! A trained forest and its file.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use bufgym_util::input::{self, condensed, excerpt};

use super::features::FEATURES;
use super::forest::{Forest, ForestError, MAX_DEPTH, Tree};

/// Name of the model in its folder.
pub const MODEL_FILE: &str = "forest.json";

/// Kind of the file, as stated in the file.
const FORMAT: &str = "bufgym-credence-forest";
const VERSION: u32 = 1;

/// The forest that comes with the program.
const BUILT_IN: &str = include_str!("../../../../data/credence-forest.json");

/// A model that cannot be used.
#[derive(Debug, Error)]
pub enum ModelError {
    /// The file cannot be read.
    #[error("cannot read model {}: {source}; `bufgym credence train` writes one", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Reason of the failure.
        source: io::Error,
    },
    /// The file holds something else or is damaged.
    #[error("model {origin}: {problem}")]
    Content {
        /// The file.
        origin: String,
        /// The problem, and a valid alternative.
        problem: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    version: u32,
    features: Vec<String>,
    scenario: String,
    seed: u64,
    traces: u64,
    depth: usize,
    threshold: f32,
    trees: Vec<Tree>,
}

/// The fields that show whether the rest of the file can be read.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
    features: Vec<String>,
}

/// A trained forest and its origin.
#[derive(Clone, Debug)]
pub struct ForestModel {
    /// Name of the scenario that it was trained on.
    pub scenario: String,
    /// Seed of the experiment.
    pub seed: u64,
    /// Traces that it was trained and tested on.
    pub traces: u64,
    /// A loss is predicted if the mean of the votes is at least this.
    pub threshold: f32,
    /// The trees as in the file.
    pub trees: Vec<Tree>,
    /// The trees in the form for evaluation.
    pub forest: Forest,
}

impl ForestModel {
    /// Creates a model of these trees.
    ///
    /// # Errors
    /// When the trees cannot be used.
    pub fn new(
        scenario: &str,
        seed: u64,
        traces: u64,
        threshold: f32,
        trees: Vec<Tree>,
    ) -> Result<ForestModel, ForestError> {
        Ok(ForestModel {
            scenario: scenario.to_owned(),
            seed,
            traces,
            threshold,
            forest: Forest::new(&trees, threshold)?,
            trees,
        })
    }

    /// Returns the forest that comes with the program.
    ///
    /// # Errors
    /// When the compiled-in file is damaged.
    pub fn built_in() -> Result<ForestModel, ModelError> {
        ForestModel::decode(BUILT_IN, "compiled into this program")
    }

    /// Reads a folder that holds [`MODEL_FILE`], or such a file itself.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be used.
    pub fn load(path: &Path) -> Result<ForestModel, ModelError> {
        let path = match path.is_file() {
            true => path.to_path_buf(),
            false => path.join(MODEL_FILE),
        };
        let text = input::read_text(&path, input::MAX_JSON).map_err(|source| ModelError::Read {
            path: path.clone(),
            source,
        })?;
        ForestModel::decode(&text, &path.display().to_string())
    }

    /// Reads the text of a model; `origin` is for messages.
    ///
    /// # Errors
    /// If it is not a model, or is of another version, trained on other features, or damaged.
    pub fn decode(text: &str, origin: &str) -> Result<ForestModel, ModelError> {
        let content = |problem: String| ModelError::Content {
            origin: origin.to_owned(),
            problem,
        };
        let no_model = |error: serde_json::Error| {
            content(format!(
                "is no forest of `bufgym credence train`, or damaged: {}",
                condensed(error)
            ))
        };
        let head: Head = serde_json::from_str(text).map_err(no_model)?;
        if head.format != FORMAT || head.version != VERSION {
            return Err(content(format!(
                "is of format {} {}; this program reads {FORMAT} {VERSION}",
                excerpt(&head.format),
                head.version
            )));
        }
        if head.features != FEATURES {
            return Err(content(format!(
                "was trained on the features {}; the switch has {}",
                excerpt(&head.features.join(", ")),
                FEATURES.join(", ")
            )));
        }
        let file: File = serde_json::from_str(text).map_err(no_model)?;
        if file.depth > MAX_DEPTH {
            return Err(content(format!(
                "has depth {}; trees of at most {MAX_DEPTH} splits can be asked at line rate",
                file.depth
            )));
        }
        if !(file.threshold > 0.0 && file.threshold <= 1.0) {
            let problem = format!("threshold {} is not above 0 and up to 1", file.threshold);
            return Err(content(problem));
        }
        ForestModel::new(
            &file.scenario,
            file.seed,
            file.traces,
            file.threshold,
            file.trees,
        )
        .map_err(|error| content(error.to_string()))
    }

    /// Returns the number of splits between root and leaf of the deepest tree.
    pub fn depth(&self) -> usize {
        self.trees.iter().map(Tree::depth).max().unwrap_or(0)
    }

    /// Returns the text of the file.
    pub fn encode(&self) -> String {
        let file = File {
            format: FORMAT.to_owned(),
            version: VERSION,
            features: FEATURES.map(str::to_owned).to_vec(),
            scenario: self.scenario.clone(),
            seed: self.seed,
            traces: self.traces,
            depth: self.depth(),
            threshold: self.threshold,
            trees: self.trees.clone(),
        };
        let text =
            serde_json::to_string_pretty(&file).expect("strings, numbers and lists are JSON");
        format!("{text}\n")
    }
}
