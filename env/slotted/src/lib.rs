//! The slotted model of the theory of buffer sharing. It measures competitive ratios.
//!
//! A switch has `N` ports with one queue each and a buffer of `B` packets that they share. A slot
//! has two phases. In the arrival phase any number of packets arrive one by one. A
//! [`Policy`](policy::Policy) accepts or drops each, or pushes another packet out for it. In the
//! transmission phase every queue that is not empty works one cycle on its head packet, and a
//! packet with no work left leaves. Packets have a required work and value 1, or a value and work
//! 1. The run ends when the arrivals are over and every queue is empty.
//!
//! Sources: Eugster, Kesselman, Kogan, Nikolenko and Sirotkin, "Essential Traffic Parameters for
//! Shared Memory Switch Performance" (SIROCCO 2015), §3; Addanki, Pacut and Schmid, "Credence:
//! Augmenting Datacenter Switch Buffer Sharing with ML Predictions" (NSDI 2024), Appendix A.
//!
//! If several queues are equal, a policy chooses the arrival's own queue, else the lowest port. If
//! several packets of a queue are equal, it chooses the one that arrived last.
//!
//! The model does not use the packet-level simulator. That crate provides the random streams and the
//! parsing of policy texts.
//!
//! ```
//! use bufgym_slotted::{Generator, Order, PolicySpec, Switch};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let switch = Switch::new(4, 16, Order::Pq)?;
//! let arrivals = Generator::FollowLqdLowerBound.arrivals(&switch, 100, &Default::default())?;
//! let follower: PolicySpec = "followlqd".parse()?;
//! let optimum: PolicySpec = "opt".parse()?;
//! let ratio = optimum.run(&switch, &arrivals, 1, true)?.transmitted as f64
//!     / follower.run(&switch, &arrivals, 1, true)?.transmitted as f64;
//! assert!((ratio - 2.5).abs() < 0.02); // (N + 1) / 2
//! # Ok(())
//! # }
//! ```

mod arrivals;
mod csv;
mod error;
mod generate;
pub mod opt;
pub mod oracle;
pub mod policy;
mod queues;
mod run;
mod spec;
pub mod sweep;
mod switch;

pub use arrivals::{Arrivals, Kind, Packet, Prediction};
pub use error::SlottedError;
pub use generate::{Generator, GeneratorOptions};
pub use queues::{Arrival, Counts, Packets, Queues, Storage, Victim};
pub use run::{Fate, NoObserver, Observer, Outcome, run};
pub use spec::PolicySpec;
pub use switch::{Order, Switch};

/// The README's examples, which are tested with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
