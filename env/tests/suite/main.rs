//! The gym and the control loop, seen from outside.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests convert the small numbers that they make"
)]

mod allocation;
mod dataplane;
#[path = "../../../tests/fuzz/mutate.rs"]
mod mutate;
