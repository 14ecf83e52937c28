//! Exports of random networks against the description's own arithmetic.

mod generated_c;
mod integer_c;
mod onnx_bytes;
mod random;
