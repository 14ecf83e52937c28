//! Exports of trained weights in forms that a switch, or a program next to one, can run.
//!
//! Every target is generated from one description, [`Network`]: a list of layers with their
//! weights, the features with their normalisation, and the table of actions. An exporter depends on
//! the few kinds of [`Layer`] only, so that another architecture needs no new exporter.
//!
//! - [`export`] turns a [`Source`] into the files of a [`Format`].
//! - [`onnx`] and [`mod@c`] work for any [`Network`].
//! - [`golden`] makes inputs with known outputs, which come with every export.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "tests convert the small numbers that they make"
    )
)]

pub mod c;
pub mod c_int8;
pub mod ebpf;
pub mod golden;
pub mod int8;
pub mod network;
pub mod onnx;
mod pytorch;
mod stages;

pub use bufgym_models::windows::OBSERVATION;
pub use golden::Recording;
pub use int8::{IntegerActor, IntegerNetwork};
pub use network::{Actions, Convolution, Dense, Layer, Network, NetworkError};

use std::fmt;
use std::str::FromStr;

use bufgym_env::control::{Controller as _, action_index};
use int8::{Agreement, Calibration, IntegerFile, QuantiseError, quantise};
use safetensors::SafeTensorError;

use bufgym_models::FastActor;
use bufgym_models::checkpoint::Manifest;
use bufgym_models::weights::ActorWeights;
use bufgym_util::input::{excerpt, suggestion};

/// The README's examples, which are tested with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;

/// A target of [`export`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// PyTorch's tensors, with a manifest and a program that loads them.
    Safetensors,
    /// An ONNX graph.
    Onnx,
    /// C99 in 32-bit floating point.
    C,
    /// C99 in integers.
    CInt8,
    /// A BPF program for the Linux kernel.
    Ebpf,
}

/// The error for a text that is not the name of a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format `{given}`{near}; there are {listed}", given = excerpt(_0), near = suggestion(_0, &Format::ALL.map(Format::name)), listed = Format::listed())]
pub struct UnknownFormat(pub String);

impl Format {
    /// Every format.
    pub const ALL: [Format; 5] = [
        Format::Safetensors,
        Format::Onnx,
        Format::C,
        Format::CInt8,
        Format::Ebpf,
    ];

    /// Returns its name in commands, which is also the name of its folder.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Safetensors => "safetensors",
            Format::Onnx => "onnx",
            Format::C => "c",
            Format::CInt8 => "c-int8",
            Format::Ebpf => "ebpf",
        }
    }

    /// The names of all formats, separated by commas.
    pub fn listed() -> String {
        Format::ALL.map(Format::name).join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Format, UnknownFormat> {
        let found = Format::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// A trained actor, with everything that a target may need.
#[derive(Clone, Debug)]
pub struct Source {
    /// The weights of the whole actor.
    pub weights: ActorWeights,
    /// The manifest of its checkpoint.
    pub manifest: Manifest,
    /// The actor's mean as layers.
    pub network: Network,
    /// Observations on training traces, for targets that need the range of values.
    pub recording: Recording,
    /// The actor's mean in integers.
    pub integer: IntegerFile,
}

/// One file of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Path relative to the output folder, with `/` between folders.
    pub path: String,
    /// Content.
    pub bytes: Vec<u8>,
}

/// The reason why a network cannot be exported. Every message is one line.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The layers do not form a network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Decisions set an output that no export supports.
    #[error(
        "weights over {low_level} set alpha of ingress queues too, and no export has these yet; `bufgym eval` \
         runs the checkpoint as it is"
    )]
    Ingress {
        /// The heuristic below the decisions.
        low_level: String,
    },
    /// A number of the network is out of range.
    #[error("{0}")]
    Value(String),
    /// The network cannot be rounded to integers.
    #[error(transparent)]
    Quantise(#[from] QuantiseError),
    /// The weights could not be encoded.
    #[error("the weights cannot be encoded: {0}")]
    Weights(#[from] SafeTensorError),
    /// The manifest could not be encoded.
    #[error("the manifest cannot be encoded: {0}")]
    Manifest(#[from] serde_json::Error),
}

impl Source {
    /// A trained actor with its recorded observations.
    ///
    /// # Errors
    /// When decisions set the α of ingress queues, and when the network cannot be rounded to integers.
    pub fn new(
        weights: ActorWeights,
        manifest: Manifest,
        recording: Recording,
    ) -> Result<Source, ExportError> {
        if manifest.action_set().sets_ingress() {
            return Err(ExportError::Ingress {
                low_level: manifest.low_level.to_string(),
            });
        }
        let network = Network::from_actor(&weights, &manifest);
        let integer = integer(&network, &recording)?;
        let agreement = agreement(&weights, &integer, &recording);
        let integer = IntegerFile::new(
            integer,
            manifest.low_level.clone(),
            format!(
                "trained on {} for {}, seed {}, {} decisions",
                manifest.scenario, manifest.objective, manifest.seed, manifest.decisions
            ),
            manifest.weights_sha256.clone(),
            &agreement,
        );
        Ok(Source {
            weights,
            manifest,
            network,
            recording,
            integer,
        })
    }
}

/// One in this many recorded decisions is used to measure the range of activations.
const CALIBRATION_STRIDE: usize = 4;

/// Rounds a network to integers, with ranges from the recorded observations.
fn integer(network: &Network, recording: &Recording) -> Result<IntegerNetwork, ExportError> {
    network.widths()?;
    let decisions = (0..recording.count()).step_by(CALIBRATION_STRIDE);
    let observations = decisions.map(|decision| recording.observation(decision));
    Ok(quantise(
        network,
        &Calibration::measure(network, observations),
    )?)
}

/// Compares the levels in integers with those in floating point on all recorded decisions, output by
/// output.
fn agreement(
    weights: &ActorWeights,
    integer: &IntegerNetwork,
    recording: &Recording,
) -> Vec<Agreement> {
    let mut float = FastActor::new(weights);
    let mut rounded = IntegerActor::new(integer.clone());
    let (ports, outputs) = (recording.ports, integer.outputs());
    let mut action = vec![0.0; ports * outputs];
    let mut pairs = Vec::new();
    for decision in 0..recording.count() {
        let observation = recording.observation(decision);
        float.act(observation, ports, &mut action);
        let codes = integer.encode(observation);
        let exact = action.iter().map(|&action| action_index(action));
        pairs.extend(exact.zip(rounded.levels(&codes, ports)));
    }
    let of = |output| Agreement::of(pairs.iter().skip(output).step_by(outputs).copied());
    (0..outputs).map(of).collect()
}

fn integer_c(source: &Source) -> Vec<File> {
    let about = c::text::about(&source.manifest);
    let [header, program] = c_int8::render(&source.integer.network, &about);
    let early = source.network.gaps.as_ref();
    let early = early.map(|_| File::new("ndt_early.h", include_str!("dataplane/ndt_early.h")));
    let mut files = vec![
        File::new(c_int8::HEADER, header),
        File::new(c_int8::SOURCE, program),
        File::new(int8::FILE, source.integer.to_json()),
        File::new("ndt_control.h", include_str!("dataplane/ndt_control.h")),
        File::new("ndt_codes.h", include_str!("dataplane/ndt_codes.h")),
        File::new("ndt_flows.h", include_str!("dataplane/ndt_flows.h")),
        File::new("replay.c", include_str!("dataplane/replay.c")),
        File::new("replay_record.h", include_str!("dataplane/replay_record.h")),
    ];
    files.extend(early);
    files
}

fn integer_bpf(source: &Source) -> Vec<File> {
    let about = c::text::about(&source.manifest);
    vec![
        File::new(ebpf::SOURCE, ebpf::render(&source.integer.network, &about)),
        File::new(int8::FILE, source.integer.to_json()),
    ]
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
/// When the target cannot express a size or a number of the network.
pub fn export(source: &Source, format: Format) -> Result<Vec<File>, ExportError> {
    let (network, manifest) = (&source.network, &source.manifest);
    match format {
        Format::Safetensors => pytorch::files(&source.weights, manifest),
        Format::Onnx => Ok(vec![File::new(
            onnx::FILE,
            onnx::encode(network, manifest)?,
        )]),
        Format::C => c::render(network, manifest, c::PREFIX),
        Format::CInt8 => Ok(integer_c(source)),
        Format::Ebpf => Ok(integer_bpf(source)),
    }
}

#[cfg(test)]
pub(crate) mod tests;
