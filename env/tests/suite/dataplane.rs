//! The dataplane's code in C does what the simulator does.

mod codes;
mod compiler;
mod headers;
mod records;
