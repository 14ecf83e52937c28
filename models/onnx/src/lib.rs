//! Networks from ONNX files as policies, from any framework and with any content.
//!
//! [`OnnxNetwork::load`] reads a file, [`OnnxNetwork::actor`] is a
//! [`Controller`](bufgym_env::control::Controller) for one run. The runtime is tract, which is Rust
//! throughout and computes on one thread.
//!
//! # Inputs and outputs of a network
//!
//! | | name | type and shape |
//! |---|---|---|
//! | first input | any | `float32 [ports, 8, 5]`, `[1, ports, 8, 5]` or `[1, ports*40]` |
//! | more inputs | any | `float32`, a state each |
//! | output | `action`, or any if it is the only one | `float32`, in [-1, 1] |
//! | or | `action_mean` | `float32`, μ: the action is `tanh μ` |
//! | second output, or none | `early_action` or `early_action_mean`, `ingress_action` or `ingress_action_mean` | as the first |
//! | more outputs | any | the next value of each state, in the order of the inputs |
//!
//! The first input is the [`Observation`](bufgym_env::control::Observation). Its sizes may be left open. A
//! number of ports that is fixed has to be that of every switch the network decides about.
//!
//! An output has a value for every port, `[ports]` or `[ports, 1]`, behind a 1 where the input has
//! one. Where decisions set two things, such as α and early drop, there are two such outputs, or one
//! of shape `[ports, 2]`, or `[1, ports*2]` behind a flat input. Other outputs are not computed.
//!
//! A state is 0 at the first decision of a switch, and goes from each decision to the next. Its sizes are
//! fixed, or have the names of the ports or of the batch in the observation.
//!
//! # Hostile files
//! Every file leads to a network or to an [`OnnxError`] of one line, in bounded memory and time. The number of
//! operators, constants, values and multiplications has limits, which are checked before the runtime needs them. Panics
//! of the runtime become errors and are not printed. For that the first call installs a panic hook, which passes all
//! other panics to the previous hook.
//!
//! The heuristic below the network determines the outputs that its values set ([`ActionSet::of`]). The metadata of the
//! file name the heuristic (`low_level`, as `bufgym export` writes it), or the caller does ([`Settings`]); otherwise it
//! is Dynamic Threshold.
//!
//! [`ActionSet::of`]: bufgym_env::control::ActionSet::of

mod actor;
mod beside;
mod error;
mod facts;
mod gate;
mod graph;
mod interface;
mod limits;
mod network;
mod seam;
mod wire;

pub use actor::OnnxActor;
pub use error::OnnxError;
pub use facts::Facts;
pub use network::{OPSETS, OnnxNetwork, Settings};
