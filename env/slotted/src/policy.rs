//! Buffer-sharing policies of the slotted model.

mod drop_tail;
mod push_out;

pub(crate) use drop_tail::unit_only;
pub use drop_tail::{
    CompleteSharing, Credence, DynamicThreshold, FollowLqd, Harmonic, Scripted, StaticThreshold,
};
pub use push_out::{
    BiggestAverageDrop, BiggestPacketDrop, Iterations, LargestWorkDrop, LongestQueueDrop,
    MaximalRatioDrop, MinimalTotalValueDrop, Ratio,
};

use super::queues::{Arrival, Queues, Victim};
use super::{Packet, SlottedError};

/// A policy's answer to an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Store the arrival if the buffer has space, else drop it.
    Accept,
    /// Drop the arrival.
    Drop,
    /// Push this packet out of the queue of this port, which is not empty, and store the arrival.
    PushOut(usize, Victim),
}

impl Verdict {
    #[inline]
    fn accept_if(condition: bool) -> Verdict {
        if condition {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }
}

/// Change of the buffer after the transmission phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Afterwards {
    /// The buffer stays as it is.
    Keep,
    /// All packets are pushed out.
    Flush,
}

/// Decides which packets the buffer holds.
pub trait Policy {
    /// Checks that the policy is defined for these packets.
    ///
    /// # Errors
    /// [`SlottedError::UnitOnly`] if it is not.
    fn check(&self, _packets: &[Packet]) -> Result<(), SlottedError> {
        Ok(())
    }

    /// Decides about an arriving packet. `queues` is the state before the arrival.
    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict;

    /// Called after the transmission phase of a slot, in which `transmitted` packets left.
    fn after_transmission<Q: Queues>(&mut self, _queues: &Q, _transmitted: u64) -> Afterwards {
        Afterwards::Keep
    }

    /// Called after `slots` slots without arrivals in which all queues were empty.
    fn idle(&mut self, _slots: u64) {}
}
