//! The dataplane's code in C behaves as the simulator does.

mod codes;
mod compiler;
mod headers;
mod records;
