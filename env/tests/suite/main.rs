//! The gym and the control loop, seen from outside.

mod allocation;
mod dataplane;
