//! A host's network interface: which packet goes onto the wire next.

use super::packet::PacketQueue;
use super::ring::Ring;

/// Send side of a host.
///
/// Packets wait here from the moment the transport sends them. A FIFO host keeps all of them in
/// one queue. A fair host has a queue per flow and gives each flow with data to send one
/// round-robin turn; its acknowledgements go first: as Linux `fq` serves a flow that was idle
/// before the backlogged ones, a pure ACK does not wait for a round of full packets.
#[derive(Clone, Default, Debug)]
pub(crate) struct Host {
    /// All packets of a FIFO host; of a fair host those that carry no data.
    pub(crate) packets: PacketQueue,
    /// Flows with data to send, in the order of their turns.
    pub(crate) ready: Ring<u32>,
    /// A packet is being serialised.
    pub(crate) sending: bool,
}
