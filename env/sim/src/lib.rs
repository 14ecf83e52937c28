//! Packet-level simulator of shared-memory switches.
//!
//! Modules import each other in one direction only: [`units`] and [`rng`], then [`scenario`],
//! [`traffic`], [`switch`] and [`transport`], then [`network`], which holds the event loop.

pub mod network;
pub mod rng;
pub mod scenario;
pub mod switch;
pub mod traffic;
pub mod transport;
pub mod units;
