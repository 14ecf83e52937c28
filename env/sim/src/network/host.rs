//! A host's network interface: which packet goes onto the wire next.

use super::event::Cause;
use super::packet::{PacketId, PacketQueue};
use super::ring::Ring;
use crate::units::Time;

/// Send side of a host.
///
/// Packets wait here from the moment the transport sends them. A FIFO host keeps all of them in
/// one queue. A fair host has a queue per flow and gives each flow with data to send one
/// round-robin turn; its acknowledgements go first: as Linux `fq` serves a flow that was idle
/// before the backlogged ones, a pure ACK does not wait for a round of full packets.
#[derive(Clone, Default, Debug)]
pub(crate) struct Host {
    /// Packets of a fair host that carry no data.
    pub(crate) packets: PacketQueue,
    /// Flows with data to send, in the order of their turns.
    pub(crate) ready: Ring<u32>,
    /// A fair host is serialising a packet.
    pub(crate) sending: bool,
    /// The packet that a FIFO host was given last. What waits there is linked, each packet to the
    /// one that follows it without a gap.
    pub(crate) last: PacketId,
    /// When a FIFO host has sent all that it was given.
    pub(crate) free_at: Time,
    /// Ranks that among simultaneous events.
    pub(crate) free_by: Cause,
}
