//! A host's network interface: which packet goes onto the wire next.

use std::collections::VecDeque;

use super::packet::Packet;

/// Send side of a host.
///
/// Packets wait here from the moment the transport sends them. A FIFO host keeps all of them in
/// one queue. A fair host has a queue per flow and gives each flow with data to send one
/// round-robin turn; its acknowledgements go first: as Linux `fq` serves a flow that was idle
/// before the backlogged ones, a pure ACK does not wait for a round of full packets.
#[derive(Clone, Default, Debug)]
pub(crate) struct Host {
    /// All packets of a FIFO host; of a fair host those that carry no data.
    pub(crate) packets: VecDeque<Packet>,
    /// Flows with data to send, in the order of their turns.
    pub(crate) ready: VecDeque<u32>,
    /// A packet is being serialised.
    pub(crate) sending: bool,
}

const NONE: u32 = u32::MAX;

/// A queue in the [`Backlog`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketQueue {
    head: u32,
    tail: u32,
}

impl Default for PacketQueue {
    fn default() -> Self {
        PacketQueue {
            head: NONE,
            tail: NONE,
        }
    }
}

impl PacketQueue {
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.head == NONE
    }
}

/// Linked queues of packets in one recycled store: a flow's window can be thousands of packets,
/// and there are many flows.
#[derive(Clone, Default, Debug)]
pub(crate) struct Backlog {
    nodes: Vec<(Packet, u32)>,
    free: Vec<u32>,
}

impl Backlog {
    /// Complexity: O(1).
    #[inline]
    pub(crate) fn push_back(&mut self, queue: &mut PacketQueue, packet: Packet) {
        let node = (packet, NONE);
        let index = match self.free.pop() {
            Some(index) => {
                self.nodes[index as usize] = node;
                index
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        if queue.is_empty() {
            queue.head = index;
        } else {
            self.nodes[queue.tail as usize].1 = index;
        }
        queue.tail = index;
    }

    /// Complexity: O(1).
    #[inline]
    pub(crate) fn pop_front(&mut self, queue: &mut PacketQueue) -> Option<Packet> {
        if queue.is_empty() {
            return None;
        }
        let (packet, next) = self.nodes[queue.head as usize];
        self.free.push(queue.head);
        queue.head = next;
        Some(packet)
    }

    /// Packets in all queues.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }
}
