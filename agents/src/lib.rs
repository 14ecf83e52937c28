//! Learning agents for the buffer-management environment.
//!
//! - [`sac`]: soft actor-critic, one file read from top to bottom.
//! - [`evolution`]: CMA-ES, which refines a policy by whole episodes.
//! - [`replay`]: the transitions it learns from, stored compactly.
//! - [`simple`]: a fixed and a random agent, for comparison and for tests.

pub mod evolution;
pub mod replay;
pub mod sac;
pub mod simple;

pub use evolution::Evolution;
pub use replay::{Batch, Replay, ReplayError, Transition};
pub use sac::{ActorValue, Sac, SacConfig, SacError, TwinMinimum, UpdateMetrics};
pub use simple::{FixedAgent, RandomAgent};
