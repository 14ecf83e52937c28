//! Buffer-sharing policies of the slotted model, one file each.

mod bad;
mod bpd;
mod credence;
mod cs;
mod dt;
mod followlqd;
mod harmonic;
mod lqd;
mod lwd;
mod mrd;
mod mtvd;
mod scripted;
mod st;
mod virtual_lqd;

pub use bad::BiggestAverageDrop;
pub use bpd::BiggestPacketDrop;
pub use credence::{Credence, drops_of_lqd, flipped};
pub use cs::CompleteSharing;
pub use dt::DynamicThreshold;
pub use followlqd::FollowLqd;
pub use harmonic::Harmonic;
pub use lqd::LongestQueueDrop;
pub use lwd::{Iterations, LargestWorkDrop};
pub use mrd::{MaximalRatioDrop, Ratio};
pub use mtvd::MinimalTotalValueDrop;
pub use scripted::Scripted;
pub use st::StaticThreshold;

use std::cmp::Ordering;

use super::queues::{Arrival, Queues, Victim};
use super::{Packet, SlottedError};

/// A policy's answer to an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Store it, provided that there is space.
    Accept,
    /// Drop it.
    Drop,
    /// Push a packet out of the queue of `port`, which is not empty, and store the arrival.
    PushOut {
        /// The queue that loses a packet.
        port: usize,
        /// Which one.
        victim: Victim,
    },
}

/// What a policy does after the transmission phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Afterwards {
    /// Nothing.
    Keep,
    /// Push out everything.
    Flush,
}

/// Decides which packets the buffer holds.
pub trait Policy {
    /// Refuses arrivals for which the policy is not defined.
    ///
    /// # Errors
    /// Says why.
    fn check(&self, _packets: &[Packet]) -> Result<(), SlottedError> {
        Ok(())
    }

    /// What to do with a packet; the queues are those before it.
    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict;

    /// The transmission phase is over, in which so many packets left.
    fn after_transmission<Q: Queues>(&mut self, _queues: &Q, _transmitted: u64) -> Afterwards {
        Afterwards::Keep
    }

    /// So many slots passed with empty queues and no arrivals.
    fn idle(&mut self, _slots: u64) {}
}

/// The greatest port; of several `own`, then the lowest.
#[inline]
pub(super) fn argmax_by(
    ports: usize,
    own: usize,
    compare: impl Fn(usize, usize) -> Ordering,
) -> usize {
    let mut best = own;
    for port in 0..ports {
        if compare(port, best) == Ordering::Greater {
            best = port;
        }
    }
    best
}

/// Refuses packets that are not all of work 1 and value 1.
fn unit_only(
    policy: &'static str,
    instead: &'static str,
    packets: &[Packet],
) -> Result<(), SlottedError> {
    match packets.iter().find(|p| p.work > 1 || p.value > 1) {
        None => Ok(()),
        Some(packet) => Err(SlottedError::UnitOnly {
            policy,
            found: if packet.work > 1 { "work" } else { "values" },
            instead,
        }),
    }
}
