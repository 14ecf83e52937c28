//! The gym and the control loop, seen from outside.

mod allocation;
mod dataplane;
#[path = "../../../tests/fuzz/mutate.rs"]
mod mutate;
