//! The gym: a simulated shared-memory switch under NDT's two-level control, exposed as a vectorised,
//! Gymnasium-style environment.
//!
//! - [`control`]: the control loop: when a decision is due, what the policy sees, what it sets, what
//!   it earns.
//! - [`gym`]: environments, wrappers, the registry and the checker.
//!
//! The simulator itself is the crate [`bufgym_sim`].

pub mod control;
pub mod gym;
