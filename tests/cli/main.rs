//! Tests of the binary from a user's view: arguments in, exit code, stdout, stderr and files out.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests convert the small numbers that they make"
)]

mod bad_input;
mod benches;
mod captures;
mod checkpoints;
mod credence;
mod dependencies;
mod evaluation;
mod explanation;
mod export;
#[cfg(target_os = "linux")]
mod faults;
mod figures;
mod harness;
mod help;
mod inference;
mod limits;
mod linear;
mod lists;
mod lossless;
mod onnx;
mod pages;
#[cfg(target_os = "linux")]
mod places;
mod recording;
mod simulation;
mod slotted;
#[cfg(unix)]
mod sonic;
mod structure;
#[cfg(target_os = "linux")]
mod testbed;
mod training;
mod tuning;
mod winnings;
