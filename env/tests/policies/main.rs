//! What the papers prove of their policies, on the simulated switch.

mod abm;
mod burst;
mod overload;
