//! Packets, and the store of SACK blocks that acknowledgements refer to.

use crate::units::Time;

/// What a packet is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketKind {
    /// A data segment.
    Data,
    /// An acknowledgement of data.
    Ack,
    /// The first packet of the handshake (RFC 9293 §3.5).
    Syn,
    /// Its answer.
    SynAck,
    /// The third packet of the handshake.
    HandshakeAck,
}

/// A packet in flight: 32 bytes, copied from queue to queue.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// When the segment left the sender; an acknowledgement echoes it.
    pub stamp: Time,
    /// Index of the flow in start order.
    pub flow: u32,
    /// Data: index of the segment. Acknowledgement: the next segment expected.
    pub sequence: u32,
    /// SACK blocks of an acknowledgement, in the [`SackStore`].
    pub(crate) sack: SackHandle,
    /// Bytes that count in the switch buffer.
    pub wire_bytes: u16,
    /// The switch port that leads to its destination.
    pub port: u16,
    /// What it is for.
    pub kind: PacketKind,
    /// Sent before (an echo of its stamp is no valid RTT sample: Karn's rule, RFC 6298 §3).
    pub retransmission: bool,
    /// Data: marked by the switch, Congestion Experienced. Acknowledgement: echoes such a mark
    /// (RFC 3168 §5, §6.1).
    pub marked: bool,
    /// A packet without data that the switch has marked, which only ns-3 allows.
    pub congested: bool,
}

impl Packet {
    /// Whether it carries SACK blocks.
    pub fn has_sack(&self) -> bool {
        self.sack != SackHandle::NONE
    }
}

/// Segments `[start, end)`.
pub(crate) type SackBlock = (u32, u32);

/// Blocks an acknowledgement can carry: three fit beside the timestamp option (RFC 2018 §3).
pub(crate) const MAX_SACK_BLOCKS: usize = 3;

/// Up to three blocks, the most recent first; empty ones are `(0, 0)`.
pub(crate) type SackBlocks = [SackBlock; MAX_SACK_BLOCKS];

/// Refers to an entry of the [`SackStore`], or to none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SackHandle(u32);

impl SackHandle {
    pub(crate) const NONE: SackHandle = SackHandle(u32::MAX);
}

/// SACK blocks of the acknowledgements in flight.
///
/// Few acknowledgements carry blocks, so packets hold a handle instead. Whoever consumes or drops
/// a packet releases its handle.
#[derive(Clone, Default, Debug)]
pub(crate) struct SackStore {
    blocks: Vec<SackBlocks>,
    free: Vec<u32>,
}

impl SackStore {
    pub(crate) fn insert(&mut self, blocks: SackBlocks) -> SackHandle {
        match self.free.pop() {
            Some(index) => {
                self.blocks[index as usize] = blocks;
                SackHandle(index)
            }
            None => {
                self.blocks.push(blocks);
                SackHandle((self.blocks.len() - 1) as u32)
            }
        }
    }

    /// The blocks behind a handle, which is released.
    #[inline]
    pub(crate) fn take(&mut self, handle: SackHandle) -> Option<SackBlocks> {
        if handle == SackHandle::NONE {
            return None;
        }
        self.free.push(handle.0);
        Some(self.blocks[handle.0 as usize])
    }

    /// Entries in use.
    pub(crate) fn live(&self) -> usize {
        self.blocks.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_stay_small() {
        assert!(std::mem::size_of::<Packet>() <= 32);
    }

    #[test]
    fn released_entries_are_used_again() {
        let mut store = SackStore::default();
        let first = store.insert([(1, 2), (0, 0), (0, 0)]);
        assert_eq!(store.take(first), Some([(1, 2), (0, 0), (0, 0)]));
        assert_eq!(store.live(), 0);
        store.insert([(3, 4), (0, 0), (0, 0)]);
        assert_eq!(store.blocks.len(), 1);
        assert_eq!(store.take(SackHandle::NONE), None);
    }
}
