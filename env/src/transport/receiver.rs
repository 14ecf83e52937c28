//! The receiving end: what has arrived, and what the acknowledgement says about it.

use super::ranges::RangeSet;
use crate::network::{MAX_SACK_BLOCKS, SackBlocks};

/// Receive state of one flow.
#[derive(Clone, Default, Debug)]
pub(crate) struct Receiver {
    next: u32,
    held: RangeSet,
    /// A segment of each recently changed block, the latest first (RFC 2018 §4).
    recent: [u32; MAX_SACK_BLOCKS],
}

impl Receiver {
    /// Takes segment `index` and returns how many segments became deliverable in order.
    #[inline]
    pub(crate) fn receive(&mut self, index: u32) -> u32 {
        if index == self.next && self.held.is_empty() {
            self.next += 1;
            return 1;
        }
        self.receive_out_of_order(index)
    }

    fn receive_out_of_order(&mut self, index: u32) -> u32 {
        if index < self.next {
            return 0;
        }
        if index > self.next {
            self.held.insert(index, index + 1, |_, _| {});
            self.note_recent(index);
            return 0;
        }
        let before = self.next;
        self.next = self.held.next_hole(index + 1);
        self.held.remove_below(self.next, |_, _| {});
        self.next - before
    }

    fn note_recent(&mut self, index: u32) {
        let block = self.held.containing(index).unwrap_or((index, index + 1));
        let known = self
            .recent
            .iter()
            .position(|&i| i >= block.0 && i < block.1);
        let last = known.unwrap_or(MAX_SACK_BLOCKS - 1);
        self.recent.copy_within(0..last, 1);
        self.recent[0] = index;
    }

    /// The next segment expected: the cumulative acknowledgement.
    #[inline]
    pub(crate) fn next_expected(&self) -> u32 {
        self.next
    }

    /// Blocks to report, the one that changed last first (RFC 2018 §4), if any.
    #[inline]
    pub(crate) fn sack_blocks(&self) -> Option<SackBlocks> {
        if self.held.is_empty() {
            None
        } else {
            Some(self.collect_blocks())
        }
    }

    fn collect_blocks(&self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let mut filled = 0;
        for &index in &self.recent {
            if let Some(block) = self.held.containing(index)
                && !blocks[..filled].contains(&block)
            {
                blocks[filled] = block;
                filled += 1;
            }
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_order_segments_need_no_blocks() {
        let mut receiver = Receiver::default();
        assert_eq!(receiver.receive(0), 1);
        assert_eq!(receiver.receive(1), 1);
        assert_eq!(receiver.next_expected(), 2);
        assert_eq!(receiver.sack_blocks(), None);
    }

    #[test]
    fn the_latest_block_comes_first_and_a_filled_hole_delivers_all_behind_it() {
        let mut receiver = Receiver::default();
        receiver.receive(0);
        receiver.receive(3);
        receiver.receive(5);
        receiver.receive(7);
        assert_eq!(receiver.sack_blocks(), Some([(7, 8), (5, 6), (3, 4)]));
        receiver.receive(4);
        assert_eq!(receiver.sack_blocks(), Some([(3, 6), (7, 8), (0, 0)]));
        assert_eq!(receiver.receive(2), 0);
        assert_eq!(receiver.receive(1), 5);
        assert_eq!(receiver.next_expected(), 6);
        assert_eq!(receiver.receive(1), 0);
    }
}
