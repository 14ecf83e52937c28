//! Packet-level simulator of a shared-memory switch, exposed as a vectorised
//! reinforcement-learning environment.

pub mod control;
pub mod gym;
pub mod network;
pub mod rng;
pub mod scenario;
pub mod slotted;
pub mod switch;
pub mod traffic;
pub mod transport;
pub mod units;
