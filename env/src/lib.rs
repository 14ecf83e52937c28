//! The gym: a simulated shared-memory switch under NDT's two-level control, exposed as a vectorised,
//! Gymnasium-style environment.
//!
//! - [`control`]: the control loop: trigger, observation, actions and reward.
//! - [`gym`]: environments, wrappers, the registry and the checker.
//!
//! The simulator itself is the crate [`bufgym_sim`].

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "tests convert the small numbers that they make"
    )
)]

pub mod control;
pub mod gym;

/// The README's examples, which are tested with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
