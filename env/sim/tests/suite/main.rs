//! What the simulator does, seen from outside, one module for each kind of behaviour.

mod behaviour;
mod fidelity;
mod policies;
mod presets;
mod structure;
