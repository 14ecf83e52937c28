//! An agent for switches with [SONiC](https://sonicfoundation.dev): it reads counters from the Redis
//! database of the switch, decides on an α per port as in the simulator, and sets it as the
//! `dynamic_th` of a buffer profile, which is log2 α.
//!
//! - [`Databases`]: the connection, with the few operations that the agent needs.
//! - [`Layout`]: ports, egress queues, buffer profiles and pool of a switch, as configured.
//! - [`counters`]: one reading of all counters.
//! - [`Monitor`]: turns readings into the observation `[ports, 8, 5]` and triggers decisions.
//! - [`journal`]: the changes that the agent has made, in the database of the switch.
//! - [`profiles`]: writes profiles, and restores the old values.
//! - [`Agent`]: combines all of this, poll by poll.
//! - [`simulated`]: the simulator instead of a switch, for tests and trials.
//!
//! `docs/sonic.md` describes SONiC's side, with sources.

pub mod address;
pub mod agent;
pub mod counters;
pub mod databases;
mod error;
pub mod journal;
pub mod layout;
pub mod monitor;
pub mod profiles;
pub mod schema;
pub mod simulated;

pub use address::Address;
pub use agent::{Agent, Change, Event, Settings};
pub use databases::{Database, Databases, Login};
pub use error::Error;
pub use layout::Layout;
pub use monitor::Monitor;

use bufgym_env::control::LowLevelPolicy;

/// Checks that a switch with SONiC can apply the decisions of a network: the α of Dynamic Threshold and
/// nothing else.
///
/// # Errors
/// Returns [`Error::LowLevel`] for another heuristic, queue management, early drop or ingress queues.
pub fn fits(low_level: &LowLevelPolicy) -> Result<(), Error> {
    match low_level.is_default() {
        true => Ok(()),
        false => Err(Error::LowLevel(low_level.to_string())),
    }
}
