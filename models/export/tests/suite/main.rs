//! Exports of random networks against the description's own arithmetic.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests convert the small numbers that they make"
)]

mod generated_c;
mod integer_c;
mod onnx_bytes;
mod random;
