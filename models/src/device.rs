//! Devices on which a network is trained.
//!
//! The processor is always available. The other devices are built into a program by the cargo features of the same
//! names, because their libraries are larger than the rest of it. Networks and stored states do not depend on the
//! device: a network trained on one device is read on every other. Only the processor guarantees that the same seed
//! gives the same weights, bit for bit.

#[cfg(any(feature = "wgpu", feature = "cuda"))]
mod accelerator;

use std::fmt;
use std::str::FromStr;

use bufgym_util::input::{excerpt, suggestion};
use burn::tensor::Device;

use crate::cpu;

/// Device on which a network is trained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DeviceChoice {
    /// The processor. The same seed gives the same weights, bit for bit.
    #[default]
    Cpu,
    /// A graphics processor of any make through [wgpu](https://wgpu.rs) (Vulkan, Metal, DirectX 12);
    /// cargo feature `wgpu`. The environment variable `CUBECL_WGPU_DEFAULT_DEVICE` chooses among
    /// several.
    Wgpu,
    /// The first graphics processor of NVIDIA through CUDA; cargo feature `cuda`.
    Cuda,
}

/// A device that is ready.
#[derive(Clone, Debug)]
pub struct OpenDevice {
    /// For tensors, without automatic differentiation.
    pub device: Device,
    /// Name for users: `cpu`, or the name of a graphics processor as its driver reports it.
    pub name: String,
}

/// The reason why a device cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// There is no device of that name.
    #[error("`{}` is not a device{}; the devices are cpu, wgpu and cuda", excerpt(.0), suggestion(.0, &NAMES))]
    Unknown(String),
    /// The program was built without it.
    #[error(
        "the device {0} is not built into this program: build it with `cargo build --release --features {0}`, \
         or use cpu (--device cpu)"
    )]
    NotBuiltIn(DeviceChoice),
    /// There is no such device in this machine, or its driver does not work.
    #[error(
        "the device {choice} cannot be opened: {reason}; use another, such as cpu (--device cpu)"
    )]
    Unavailable {
        /// The device.
        choice: DeviceChoice,
        /// Error of the driver, on one line.
        reason: String,
    },
}

const NAMES: [&str; 3] = ["cpu", "wgpu", "cuda"];

impl DeviceChoice {
    /// Every choice, whether it is built in or not.
    pub const ALL: [DeviceChoice; 3] = [DeviceChoice::Cpu, DeviceChoice::Wgpu, DeviceChoice::Cuda];

    /// Returns the name of the device, which is that of its cargo feature.
    pub fn name(self) -> &'static str {
        match self {
            DeviceChoice::Cpu => "cpu",
            DeviceChoice::Wgpu => "wgpu",
            DeviceChoice::Cuda => "cuda",
        }
    }

    /// Returns true if this program can use the device, provided that the machine has one.
    pub fn is_built_in(self) -> bool {
        match self {
            DeviceChoice::Cpu => true,
            DeviceChoice::Wgpu => cfg!(feature = "wgpu"),
            DeviceChoice::Cuda => cfg!(feature = "cuda"),
        }
    }

    /// Makes the device ready, and computes something small on it. Later calls return the same one.
    ///
    /// If a driver library panics instead of returning an error, the panic becomes the error's reason. Meanwhile
    /// nothing is written to standard error, not even by panics of other threads.
    ///
    /// # Errors
    /// When the device is not built in, when the machine has none, and when it does not compute.
    pub fn open(self) -> Result<OpenDevice, DeviceError> {
        match self {
            DeviceChoice::Cpu => Ok(OpenDevice {
                device: cpu(),
                name: self.name().to_owned(),
            }),
            #[cfg(feature = "wgpu")]
            DeviceChoice::Wgpu => accelerator::open(self, accelerator::wgpu),
            #[cfg(feature = "cuda")]
            DeviceChoice::Cuda => accelerator::open(self, accelerator::cuda),
            #[cfg(not(all(feature = "wgpu", feature = "cuda")))]
            other => Err(DeviceError::NotBuiltIn(other)),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DeviceChoice {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<DeviceChoice, DeviceError> {
        DeviceChoice::ALL
            .into_iter()
            .find(|choice| choice.name() == text)
            .ok_or_else(|| DeviceError::Unknown(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_others_are_told_what_there_is() {
        for (choice, name) in DeviceChoice::ALL.into_iter().zip(NAMES) {
            assert_eq!(choice.to_string(), name);
            assert_eq!(name.parse(), Ok(choice));
        }
        assert_eq!(
            "cudo".parse::<DeviceChoice>().unwrap_err().to_string(),
            "`cudo` is not a device; did you mean `cuda`?; the devices are cpu, wgpu and cuda"
        );
    }

    #[test]
    fn a_device_that_is_not_built_in_names_its_feature() {
        for choice in DeviceChoice::ALL {
            if choice.is_built_in() {
                continue;
            }
            let error = choice.open().unwrap_err();
            assert_eq!(error, DeviceError::NotBuiltIn(choice));
            let message = error.to_string();
            assert!(
                message.contains(&format!("--features {choice}")),
                "{message}"
            );
            assert!(message.contains("--device cpu"), "{message}");
        }
    }

    #[test]
    fn the_processor_is_always_there() {
        let opened = DeviceChoice::default().open().unwrap();
        assert_eq!((opened.device, opened.name.as_str()), (cpu(), "cpu"));
    }
}
