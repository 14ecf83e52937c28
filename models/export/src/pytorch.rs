//! The weights for PyTorch.

use serde_json::Value;

use super::{ExportError, File};
use bufgym_models::checkpoint::{MANIFEST_FILE, Manifest, WEIGHTS_FILE, encode_weights};
use bufgym_models::files::sha256;
use bufgym_models::weights::ActorWeights;

/// A Python program that loads the folder.
const LOADER: &str = include_str!("pytorch/load_in_pytorch.py");

/// The files of a checkpoint, with the low-level policy also where a checkpoint leaves it out, and
/// a program that loads them.
pub(super) fn files(weights: &ActorWeights, manifest: &Manifest) -> Result<Vec<File>, ExportError> {
    let bytes = encode_weights(weights)?;
    let mut described = serde_json::to_value(Manifest {
        weights_sha256: sha256(&bytes),
        ..manifest.clone()
    })?;
    described["low_level"] = Value::String(manifest.low_level.to_string());
    let json = format!("{}\n", serde_json::to_string_pretty(&described)?);
    Ok(vec![
        File::new(WEIGHTS_FILE, bytes),
        File::new(MANIFEST_FILE, json),
        File::new("load_in_pytorch.py", LOADER),
    ])
}
