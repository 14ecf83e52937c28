//! The checkpoint of a trained actor: a folder with `actor.safetensors` and `manifest.json`.
//!
//! The weights have the names and shapes that PyTorch gives them (see [`crate::weights`]). The
//! manifest describes the network's inputs, origin and validation result. It also holds the
//! weights' SHA-256, so that a damaged or mixed-up folder is noticed.

mod manifest;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bufgym_util::files::write_new;
use bufgym_util::input::{self, condensed, excerpt};
use safetensors::SafeTensorError;

pub use manifest::{
    Architecture, Compared, FORMAT_VERSION, Feature, Levels, Manifest, SeedResult, Validation,
};

use crate::files::{current_folder, decode_tensors, encode_tensors, replace_folder, sha256};
use crate::parameters::NamedTensor;
use crate::weights::{ActorWeights, TENSORS, shape};

/// Name of the file with the weights.
pub const WEIGHTS_FILE: &str = "actor.safetensors";
/// Name of the file that describes them.
pub const MANIFEST_FILE: &str = "manifest.json";

/// The reason why a checkpoint could not be saved or loaded. Every message is one line.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A file or folder cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The folder holds no manifest: it is not a checkpoint.
    #[error("{} is not a checkpoint: it has no {MANIFEST_FILE}", .0.display())]
    NoManifest(PathBuf),
    /// The manifest is not valid JSON, or a field is missing or of the wrong kind.
    #[error("{}: {reason}", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// The field, or the place of the mistake in the text.
        reason: String,
    },
    /// The checkpoint was written by a program with another format.
    #[error(
        "{}: format_version is {}; this program reads version {FORMAT_VERSION}",
        path.display(),
        excerpt(.found)
    )]
    Version {
        /// The manifest.
        path: PathBuf,
        /// Version in the manifest.
        found: String,
    },
    /// The network described is not the one this program runs.
    #[error("{}: {field} is {}; this program needs {expected}", path.display(), excerpt(.found))]
    Field {
        /// The manifest.
        path: PathBuf,
        /// The field.
        field: String,
        /// Value in the manifest.
        found: String,
        /// Expected value.
        expected: String,
    },
    /// The weights are not those that the manifest describes.
    #[error(
        "{}: its sha256 is {found}, but {MANIFEST_FILE} says {}: the file is damaged or belongs to \
         another checkpoint",
        path.display(),
        excerpt(.expected)
    )]
    Sha256 {
        /// The weights.
        path: PathBuf,
        /// Hash of the file.
        found: String,
        /// Hash in the manifest.
        expected: String,
    },
    /// The weights do not form the network.
    #[error("{}: {reason}", path.display())]
    Weights {
        /// The weights.
        path: PathBuf,
        /// The tensor, and the expected shape or values.
        reason: String,
    },
}

/// Writes a checkpoint, which replaces an existing one. Sets the manifest's hash.
///
/// At any moment the folder holds the complete old or the complete new checkpoint.
///
/// # Errors
/// Returns errors of the file system, and refuses weights that are not finite numbers.
pub fn save_actor(
    dir: &Path,
    weights: &ActorWeights,
    manifest: &Manifest,
) -> Result<(), CheckpointError> {
    let file = dir.join(WEIGHTS_FILE);
    let wrong = |reason: String| CheckpointError::Weights {
        path: file.clone(),
        reason,
    };
    if !weights.is_finite() {
        return Err(wrong("a weight is not a finite number".to_owned()));
    }
    let bytes = encode_weights(weights).map_err(|error| wrong(error.to_string()))?;
    let manifest = Manifest {
        weights_sha256: sha256(&bytes),
        ..manifest.clone()
    };
    let mut json =
        serde_json::to_string_pretty(&manifest).map_err(|error| CheckpointError::Manifest {
            path: dir.join(MANIFEST_FILE),
            reason: error.to_string(),
        })?;
    json.push('\n');
    let written = replace_folder(dir, |new| {
        write_new(&new.join(WEIGHTS_FILE), &bytes)?;
        write_new(&new.join(MANIFEST_FILE), json.as_bytes())
    });
    written.map_err(|error| CheckpointError::Io {
        path: dir.to_owned(),
        error,
    })
}

/// Reads a checkpoint and checks that this program can run it.
///
/// # Errors
/// See [`CheckpointError`].
pub fn load_actor(dir: &Path) -> Result<(ActorWeights, Manifest), CheckpointError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |error| CheckpointError::Io { path, error }
    };
    let dir = &current_folder(dir);
    // A missing folder is reported by its own name.
    fs::metadata(dir).map_err(io(dir))?;
    let path = dir.join(MANIFEST_FILE);
    let text = match input::read(&path, input::MAX_JSON) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(CheckpointError::NoManifest(dir.to_owned()));
        }
        other => other.map_err(io(&path))?,
    };
    let weights = dir.join(WEIGHTS_FILE);
    let bytes = input::read(&weights, input::MAX_WEIGHTS).map_err(io(&weights))?;
    decode_actor(&text, &bytes, dir)
}

/// Same as [`load_actor`], for files that are already in memory, such as a checkpoint compiled into a program. `origin`
/// is the name of the folder in messages.
///
/// # Errors
/// See [`CheckpointError`].
pub fn decode_actor(
    manifest: &[u8],
    weights: &[u8],
    origin: &Path,
) -> Result<(ActorWeights, Manifest), CheckpointError> {
    let manifest = Manifest::parse(manifest, &origin.join(MANIFEST_FILE))?;
    let path = origin.join(WEIGHTS_FILE);
    let found = sha256(weights);
    if found != manifest.weights_sha256 {
        let expected = manifest.weights_sha256;
        return Err(CheckpointError::Sha256 {
            path,
            found,
            expected,
        });
    }
    let outputs = manifest.action_set().outputs();
    let weights =
        decode(weights, outputs).map_err(|reason| CheckpointError::Weights { path, reason })?;
    Ok((weights, manifest))
}

/// The weights file of a checkpoint: safetensors with the names and shapes of
/// [`TENSORS`], little-endian `f32`.
///
/// # Errors
/// None that is known: names and shapes are fixed, so only the encoder itself could fail.
pub fn encode_weights(weights: &ActorWeights) -> Result<Vec<u8>, SafeTensorError> {
    encode_tensors(&named(weights))
}

fn named(weights: &ActorWeights) -> Vec<NamedTensor> {
    let tensors = TENSORS.iter().zip(weights.tensors()).enumerate();
    tensors
        .map(|(index, ((name, _), values))| NamedTensor {
            name: (*name).to_owned(),
            shape: shape(index, weights.outputs()),
            values: values.clone(),
        })
        .collect()
}

fn decode(bytes: &[u8], outputs: usize) -> Result<ActorWeights, String> {
    let mut tensors = decode_tensors(bytes).map_err(condensed)?;
    let mut values = std::array::from_fn(|_| Vec::new());
    for (index, ((name, _), values)) in TENSORS.iter().zip(&mut values).enumerate() {
        let shape = shape(index, outputs);
        let found = tensors
            .iter_mut()
            .find(|tensor| tensor.name == *name)
            .ok_or_else(|| format!("the tensor `{name}` is missing"))?;
        if found.shape != shape {
            return Err(format!(
                "the tensor `{name}` has shape {:?}; this network needs {shape:?}",
                found.shape
            ));
        }
        *values = std::mem::take(&mut found.values);
    }
    let weights = ActorWeights::from_tensors(values, outputs)
        .map_err(|index| format!("the tensor `{}` has the wrong length", TENSORS[index].0))?;
    let finite = weights.is_finite();
    finite
        .then_some(weights)
        .ok_or_else(|| "a weight is not a finite number".to_owned())
}

#[cfg(test)]
mod tests;
