//! Trained weights in forms that a switch, or a program beside one, can run.
//!
//! Every target is made from one description, [`Network`]: a list of layers with their weights,
//! the features with their normalisation, and the table of actions. An exporter knows the few
//! kinds of [`Layer`], not the network, so that another architecture needs no other exporter.
//!
//! - [`export`] turns a [`Source`] into the files of a [`Format`].
//! - [`onnx`] and [`mod@c`] work for any [`Network`].
//! - [`golden`] makes inputs with known outputs, which come with every export.

pub mod c;
pub mod c_int8;
pub mod ebpf;
mod format;
pub mod golden;
pub mod int8;
pub mod network;
pub mod onnx;
mod pytorch;
#[cfg(test)]
mod samples;
mod stages;

pub use crate::windows::OBSERVATION;
pub use format::{Format, UnknownFormat};
pub use golden::Recording;
pub use int8::{IntegerActor, IntegerNetwork};
pub use network::{Actions, Convolution, Dense, Layer, Network, NetworkError};

use safetensors::SafeTensorError;

use crate::checkpoint::Manifest;
use crate::weights::ActorWeights;

/// What is exported, with all that a target may need.
#[derive(Clone, Debug)]
pub struct Source {
    /// The weights of the whole actor.
    pub weights: ActorWeights,
    /// What its checkpoint says about it.
    pub manifest: Manifest,
    /// The actor's mean as layers.
    pub network: Network,
    /// What the policy saw on training traces, for targets that must know the range of values.
    pub recording: Recording,
}

/// One file of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where it belongs, relative to the output folder, with `/` between folders.
    pub path: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// Why a network cannot be exported. Every message is one line.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The layers do not form a network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A number of the network has no meaning.
    #[error("{0}")]
    Value(String),
    /// This version does not write the format.
    #[error("format {_0} is not written by this version; there are {listed}", listed = Format::listed())]
    Unsupported(Format),
    /// The weights could not be encoded.
    #[error("the weights cannot be encoded: {0}")]
    Weights(#[from] SafeTensorError),
    /// The manifest could not be encoded.
    #[error("the manifest cannot be encoded: {0}")]
    Manifest(#[from] serde_json::Error),
}

impl Source {
    /// A trained actor; `recording` is what it saw.
    pub fn new(weights: ActorWeights, manifest: Manifest, recording: Recording) -> Source {
        Source {
            network: Network::from_actor(&weights, &manifest),
            weights,
            manifest,
            recording,
        }
    }
}

impl File {
    fn new(path: impl Into<String>, content: impl Into<Vec<u8>>) -> File {
        File {
            path: path.into(),
            bytes: content.into(),
        }
    }
}

/// The files of one target.
///
/// # Errors
/// When the network has sizes or numbers that the target cannot express, or the target is not
/// written by this version.
pub fn export(source: &Source, format: Format) -> Result<Vec<File>, ExportError> {
    let (network, manifest) = (&source.network, &source.manifest);
    match format {
        Format::Safetensors => pytorch::files(&source.weights, manifest),
        Format::Onnx => Ok(vec![File::new(
            onnx::FILE,
            onnx::encode(network, manifest)?,
        )]),
        Format::C => c::render(network, manifest, c::PREFIX),
        Format::CInt8 | Format::Ebpf => Err(ExportError::Unsupported(format)),
    }
}

#[cfg(test)]
pub(crate) mod tests;
