//! Permutation-equivariant actor and critics for buffer management.
//!
//! - [`Actor`]: the network of the NDT paper (§IV-A, §V-A), 47,650 parameters, weights shared by
//!   all ports, any number of ports at run time.
//! - [`StateValue`] and [`PortCritic`]: values of states and of actions, one per port.
//! - [`GaussianPerceptron`] and [`ValuePerceptron`]: a plain policy and its action-value function, for any task.
//! - [`FastActor`]: the actor's forward pass in plain Rust, for rollouts and evaluation.
//! - [`LinearRule`]: a linear rule of sixteen weights instead of the network.
//! - [`DeviceChoice`]: the processor or a graphics processor, for training.
//! - [`checkpoint`]: the form in which a trained actor is shipped.
//!
//! Shapes are written `[batch, ports, ..]`; a `row` is one port of one sample.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "tests convert the small numbers that they make"
    )
)]

pub mod actor;
pub mod checkpoint;
pub mod critic;
pub mod device;
pub mod fast;
pub mod files;
pub mod layers;
pub mod linear;
pub mod noise;
pub mod npy;
pub mod parameters;
pub mod perceptron;
pub mod weights;
pub mod windows;

pub use actor::{Actor, ActorOutput};
pub use burn::tensor::Device;
pub use critic::{PortCritic, StateValue};
pub use device::{DeviceChoice, DeviceError, OpenDevice};
pub use fast::FastActor;
pub use linear::{LINEAR_FEATURES, LinearFile, LinearFileError, LinearRule, LinearWeights};
pub use noise::standard_normal;
pub use perceptron::{GaussianPerceptron, ValuePerceptron};
pub use weights::ActorWeights;

/// The README's examples, which are tested with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;

/// The processor, without automatic differentiation. Every operation runs on the calling thread.
pub fn cpu() -> Device {
    Device::flex()
}
