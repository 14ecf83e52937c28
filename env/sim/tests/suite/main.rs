//! Behaviour of the simulator through its public interface, one module for each kind of behaviour.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests convert the small numbers that they make"
)]

mod behaviour;
mod fidelity;
mod policies;
mod presets;
