//! Exports of random networks against the description's own arithmetic.

#[path = "exports/generated_c.rs"]
mod generated_c;
#[path = "exports/integer_c.rs"]
mod integer_c;
#[path = "exports/onnx_bytes.rs"]
mod onnx_bytes;
#[path = "exports/random.rs"]
mod random;
