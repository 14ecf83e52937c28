//! Packet-level simulator of shared-memory switches.
//!
//! Modules import each other in one direction only: [`convert`], [`files`], [`input`], [`memory`],
//! [`units`] and [`rng`], then [`scenario`], [`traffic`], the discrete-event `engine` (clock, events,
//! packets, links, topology), [`switch`] and [`transport`], then `host`, then [`network`] with the loop,
//! and [`capture`].

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "tests convert the small numbers that they make"
    )
)]

pub mod capture;
pub mod convert;
mod engine;
pub mod files;
mod host;
pub mod input;
pub mod memory;
pub mod network;
pub mod rng;
pub mod scenario;
pub mod switch;
pub mod traffic;
pub mod transport;
pub mod units;

/// The README's examples, which are tested with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
