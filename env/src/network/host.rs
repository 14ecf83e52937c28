//! A host's network interface: which packet goes onto the wire next.

use std::collections::VecDeque;

use super::packet::Packet;

/// Send side of a host.
///
/// With fair queueing only acknowledgements and handshake packets wait as packets; data segments
/// are made when their flow's turn comes, so a retransmission never waits behind new data of its
/// own flow. Acknowledgements go first: as Linux `fq` serves a flow that was idle before the
/// others, a pure ACK does not wait for a round of full packets. With one FIFO all packets wait in
/// the order in which they were made.
#[derive(Clone, Default, Debug)]
pub(crate) struct Host {
    pub(crate) packets: VecDeque<Packet>,
    /// Flows with a turn to come, each once.
    pub(crate) ready: VecDeque<u32>,
    pub(crate) sending: bool,
}
