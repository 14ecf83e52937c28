//! Trained weights in forms that a switch, or a program beside one, can run.
//!
//! Every target is made from one description, [`Network`]: a list of layers with their weights,
//! the features with their normalisation, and the table of actions. An exporter knows the few
//! kinds of [`Layer`], not the network, so that another architecture needs no other exporter.

pub mod c_int8;
pub mod ebpf;
pub mod int8;
pub mod network;
#[cfg(test)]
mod samples;

pub use int8::{IntegerActor, IntegerNetwork};
pub use network::{Actions, Convolution, Dense, Layer, Network, NetworkError};
