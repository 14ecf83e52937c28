//! The targets by name.

use std::fmt;
use std::str::FromStr;

/// A target of [`export`](super::export).
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
    /// A program for the Linux kernel's virtual machine.
    Ebpf,
}

/// A text that names no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format `{_0}`; there are {listed}", listed = Format::listed())]
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

    /// Its name in commands and of its folder.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Safetensors => "safetensors",
            Format::Onnx => "onnx",
            Format::C => "c",
            Format::CInt8 => "c-int8",
            Format::Ebpf => "ebpf",
        }
    }

    /// Their names, with commas.
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
