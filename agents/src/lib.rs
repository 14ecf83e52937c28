//! Learning agents for the buffer-management environment.
//!
//! - [`sac`]: soft actor-critic, one file to be read from top to bottom, for any pair of networks.
//! - [`ports`]: soft actor-critic for the ports of a switch.
//! - [`plain`]: soft actor-critic for any task whose observation is a list of numbers.
//! - [`ppo`]: proximal policy optimisation for the ports of a switch.
//! - [`replay`]: stores the transitions that the learners use, compactly.
//! - [`imitation`]: trains an actor on examples of a teacher's decisions, as a start for further learning.
//! - [`evolution`]: CMA-ES, which searches a policy's parameters by the results of whole episodes.
//! - [`random`]: an agent that acts at random, for comparison and for tests.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "tests convert the small numbers that they make"
    )
)]

pub mod evolution;
pub mod imitation;
mod optimizer;
pub mod plain;
pub mod ports;
pub mod ppo;
pub mod random;
pub mod replay;
pub mod sac;
mod scales;
mod stored;

pub use evolution::Evolution;
pub use imitation::Examples;
pub use plain::{PlainSac, PlainShape};
pub use ports::{PortSac, PortStates, PortsConfig};
pub use ppo::{Ppo, PpoConfig, RoundMetrics};
pub use random::RandomAgent;
pub use replay::{Batch, Frame, Pair, Replay, ReplayError, ReplayShape, Rollout, Transition};
pub use sac::{Sac, SacConfig, UpdateMetrics};
pub use stored::LearnerError;

/// The README's examples, which are tested with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
