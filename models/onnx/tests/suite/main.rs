//! Networks from ONNX files: their decisions, and refused files.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "tests convert the small numbers that they make"
)]

mod build;
mod damage;
mod decisions;
mod limits;
mod refusals;
mod states;
