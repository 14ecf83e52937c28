//! SACK blocks and marks as the receiver of ns-3 3.37 reports them, for comparison of the simulators. It
//! keeps four blocks and forgets older ones; a segment that arrives next to a forgotten block is
//! reported alone (TcpRxBuffer). A mark counts only beyond the last marked segment (TcpSocketBase).

use crate::transport::sack::{MAX_SACK_BLOCKS, SackBlock, SackBlocks};

const KEPT: usize = 4;

/// SACK blocks, the most recent first, and marks.
#[derive(Clone, Default, Debug)]
pub(super) struct Reports {
    blocks: [SackBlock; KEPT + 1],
    length: usize,
    /// One past the last segment whose mark counted.
    mark_end: u32,
}

impl Reports {
    /// Returns true if a mark has counted, so that `mark_end` must be kept until the flow ends.
    pub(super) fn has_marks(&self) -> bool {
        self.mark_end > 0
    }

    /// Adds segment `index`, which has arrived out of order.
    pub(super) fn push(&mut self, index: u32) {
        let mut newest = (index, index + 1);
        let mut kept = 0;
        for at in 0..self.length {
            let block = self.blocks[at];
            if newest.0 == block.1 {
                newest.0 = block.0;
            } else if newest.1 == block.0 {
                newest.1 = block.1;
            } else {
                self.blocks[kept] = block;
                kept += 1;
            }
        }
        self.length = (kept + 1).min(KEPT);
        self.blocks.copy_within(0..KEPT, 1);
        self.blocks[0] = newest;
    }

    /// Forgets blocks below `next`, which are delivered.
    pub(super) fn clear_below(&mut self, next: u32) {
        let mut kept = 0;
        for at in 0..self.length {
            if self.blocks[at].1 > next {
                self.blocks[kept] = self.blocks[at];
                kept += 1;
            }
        }
        self.length = kept;
    }

    /// Returns true if the mark of segment `index` is to be echoed.
    pub(super) fn takes_mark(&mut self, index: u32) -> bool {
        let takes = index >= self.mark_end;
        if takes {
            self.mark_end = index + 1;
        }
        takes
    }

    /// Returns the blocks to report in an acknowledgement, if any.
    pub(super) fn report(&self) -> Option<SackBlocks> {
        let filled = self.length.min(MAX_SACK_BLOCKS);
        let mut blocks = SackBlocks::default();
        blocks[..filled].copy_from_slice(&self.blocks[..filled]);
        (filled > 0).then_some(blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_join_at_the_front() {
        let mut reports = Reports::default();
        for index in [3, 7, 5, 4] {
            reports.push(index);
        }
        assert_eq!(reports.report(), Some([(3, 6), (7, 8), (0, 0)]));
        reports.push(6);
        assert_eq!(reports.report(), Some([(3, 8), (0, 0), (0, 0)]));
        reports.clear_below(8);
        assert_eq!(reports.report(), None);
    }

    #[test]
    fn the_fifth_block_is_forgotten() {
        let mut reports = Reports::default();
        for index in [10, 20, 30, 40, 50] {
            reports.push(index);
        }
        // 10 is forgotten, so its neighbour is reported alone.
        reports.push(11);
        assert_eq!(reports.report(), Some([(11, 12), (50, 51), (40, 41)]));
    }
}
