//! What the crates share below the simulator.
//!
//! - [`input`]: input that may be anything, and messages about it.
//! - [`files`]: results that are complete or absent.
//! - [`memory`]: what a computation needs, and what there is.
//! - [`convert`]: numbers to other types, each with a rule for those that do not fit.
//! - [`parameters`]: the text form `name:key=value,key=value`.
//! - [`rng`]: random streams with names, so that the same seed gives the same bits.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "tests convert the small numbers that they make"
    )
)]

pub mod convert;
pub mod files;
pub mod input;
pub mod memory;
pub mod parameters;
pub mod rng;
