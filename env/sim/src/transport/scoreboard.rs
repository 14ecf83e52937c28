//! The sender's scoreboard of outstanding segments (RFC 6675).
//!
//! All counts are updated incrementally, so that `pipe` is O(1).

use super::ranges::RangeSet;
use crate::transport::sack::SackBlocks;

/// Number of SACKed segments above a segment that shows its loss (RFC 6675 §2, DupThresh).
const DUP_THRESH: u32 = 3;

/// Outstanding segments `[una, next)` of one flow.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Outstanding {
    /// Oldest unacknowledged segment (HighACK).
    pub(crate) una: u32,
    /// First segment not yet sent (HighData).
    pub(crate) next: u32,
}

impl Outstanding {
    /// Returns the number of segments sent and not cumulatively acknowledged (FlightSize, RFC 5681 §2).
    #[inline]
    pub(crate) fn count(self) -> u32 {
        self.next - self.una
    }

    /// Returns the number of segments that the cumulative acknowledgement `ack` newly covers.
    #[inline]
    pub(crate) fn advance_by(self, ack: u32) -> u32 {
        ack.min(self.next).saturating_sub(self.una)
    }
}

/// Record of the outstanding segments that are SACKed, lost or retransmitted. If it
/// [`is_undisturbed`](Scoreboard::is_undisturbed), it behaves like a new scoreboard.
#[derive(Clone, Default, Debug)]
pub(crate) struct Scoreboard {
    /// First segment not retransmitted in this recovery (HighRxt).
    next_rtx: u32,
    /// Unsacked segments below this bound count as lost.
    lost_end: u32,
    sacked: RangeSet,
    sacked_count: u32,
    lost_count: u32,
    retransmitted_count: u32,
}

fn overlap(start: u32, end: u32, bound: u32) -> u32 {
    end.min(bound).saturating_sub(start)
}

impl Scoreboard {
    /// Returns the number of segments believed to be in the network (RFC 6675 §4, SetPipe).
    #[inline]
    pub(crate) fn pipe(&self, sent: Outstanding) -> u32 {
        sent.count() - self.sacked_count - self.lost_count + self.retransmitted_count
    }

    /// Returns true if some segment counts as lost and is not yet acknowledged.
    pub(crate) fn has_loss(&self) -> bool {
        self.lost_count > 0
    }

    /// Returns the number of lost segments that are not yet retransmitted.
    pub(crate) fn lost_unsent(&self) -> u32 {
        self.lost_count.saturating_sub(self.retransmitted_count)
    }

    /// Takes an acknowledgement. Returns the number of segments that it newly acknowledges cumulatively, and
    /// the number that it delivers: the change of `una` plus that of the SACKed count (RFC 6937 §3).
    pub(crate) fn acknowledge(
        &mut self,
        sent: &mut Outstanding,
        ack: u32,
        blocks: Option<&SackBlocks>,
    ) -> (u32, u32) {
        let advanced = sent.advance_by(ack);
        let mut delivered = self.advance(sent, sent.una + advanced);
        if let Some(blocks) = blocks {
            delivered += self.mark_sacked(*sent, blocks, |_, _| {});
        }
        (advanced, delivered)
    }

    /// Returns true if no outstanding segment is SACKed, lost or retransmitted.
    #[inline]
    pub(super) fn is_undisturbed(&self, sent: Outstanding) -> bool {
        let undisturbed =
            self.sacked.is_empty() && self.lost_end <= sent.una && self.retransmitted_count == 0;
        debug_assert!(!undisturbed || self.lost_count == 0 && self.next_rtx <= sent.una);
        undisturbed
    }

    /// Resets the value, but keeps the allocated memory.
    pub(super) fn clear(&mut self) {
        let mut sacked = std::mem::take(&mut self.sacked);
        sacked.clear();
        *self = Scoreboard {
            sacked,
            ..Scoreboard::default()
        };
    }

    pub(super) fn advance(&mut self, sent: &mut Outstanding, una: u32) -> u32 {
        let old = sent.una;
        let (lost_end, next_rtx) = (self.lost_end, self.next_rtx);
        let (mut sacked, mut sacked_lost, mut sacked_rtx) = (0, 0, 0);
        self.sacked.remove_below(una, |s, e| {
            sacked += e - s;
            sacked_lost += overlap(s, e, lost_end);
            sacked_rtx += overlap(s, e, next_rtx);
        });
        self.sacked_count -= sacked;
        self.lost_count -= overlap(old, una, lost_end) - sacked_lost;
        self.retransmitted_count -= overlap(old, una, next_rtx) - sacked_rtx;
        sent.una = una;
        self.next_rtx = self.next_rtx.max(una);
        self.lost_end = self.lost_end.max(una);
        una - old - sacked
    }

    /// Takes SACK blocks. Returns the number of segments that they newly report. Calls `resent` for the
    /// newly reported ranges that had been retransmitted.
    pub(super) fn mark_sacked(
        &mut self,
        sent: Outstanding,
        blocks: &SackBlocks,
        mut resent: impl FnMut(u32, u32),
    ) -> u32 {
        let (lost_end, next_rtx) = (self.lost_end, self.next_rtx);
        let (mut added, mut added_lost, mut added_rtx) = (0, 0, 0);
        for &(start, end) in blocks {
            self.sacked
                .insert(start.max(sent.una), end.min(sent.next), |s, e| {
                    added += e - s;
                    added_lost += overlap(s, e, lost_end);
                    let again = overlap(s, e, next_rtx);
                    added_rtx += again;
                    if again > 0 {
                        resent(s, s + again);
                    }
                });
        }
        self.sacked_count += added;
        self.lost_count -= added_lost;
        self.retransmitted_count -= added_rtx;
        if added > 0 {
            self.update_loss_bound(sent);
        }
        added
    }

    /// Applies IsLost (RFC 6675 §4): an unsacked segment is lost if DupThresh segments above it are SACKed.
    fn update_loss_bound(&mut self, sent: Outstanding) {
        if let Some(bound) = self.sacked.nth_highest(DUP_THRESH)
            && bound > self.lost_end
        {
            let from = self.lost_end.max(sent.una);
            self.lost_count += bound - from - self.sacked.count_within(from, bound);
            self.lost_end = bound;
        }
    }

    /// Begins a recovery episode, in which no segment is retransmitted yet.
    pub(crate) fn begin_recovery(&mut self, sent: Outstanding) {
        self.next_rtx = sent.una;
        self.retransmitted_count = 0;
    }

    /// Counts the oldest outstanding segment as lost.
    pub(super) fn mark_head_lost(&mut self, sent: Outstanding) {
        if self.lost_end <= sent.una {
            self.lost_end = sent.una + 1;
            self.lost_count += 1;
        }
    }

    /// Returns true if segment `index` counts as lost.
    pub(super) fn is_lost(&self, index: u32) -> bool {
        index < self.lost_end && self.sacked.containing(index).is_none()
    }

    /// Returns true if segment `index` was retransmitted and is not SACKed.
    pub(super) fn is_retransmitted(&self, index: u32) -> bool {
        index < self.next_rtx && self.sacked.containing(index).is_none()
    }

    /// Returns the number of retransmitted segments that are not yet acknowledged or SACKed.
    pub(super) fn retransmitted_out(&self) -> u32 {
        self.retransmitted_count
    }

    /// Returns the first outstanding segment that is neither SACKed nor retransmitted.
    pub(super) fn next_pending(&self, sent: Outstanding) -> Option<u32> {
        self.first_hole_below(sent, sent.next)
    }

    /// Returns true if segment `index` is acknowledged or SACKed.
    pub(super) fn has_delivered(&self, sent: Outstanding, index: u32) -> bool {
        index < sent.una || self.sacked.containing(index).is_some()
    }

    /// Returns true if segment `index` is believed to be in the network.
    pub(super) fn is_in_pipe(&self, sent: Outstanding, index: u32) -> bool {
        (sent.una..sent.next).contains(&index)
            && self.sacked.containing(index).is_none()
            && (index >= self.lost_end || index < self.next_rtx)
    }

    /// Counts every unsacked segment as lost, after a timeout (RFC 6675 §5.1).
    pub(crate) fn mark_all_lost(&mut self, sent: Outstanding) {
        self.lost_end = sent.next;
        self.lost_count = sent.count() - self.sacked_count;
        self.begin_recovery(sent);
    }

    /// Returns the first lost segment not yet retransmitted (NextSeg rule 1, RFC 6675 §4).
    #[inline]
    pub(crate) fn next_lost(&self, sent: Outstanding) -> Option<u32> {
        if self.lost_count == 0 {
            return None;
        }
        self.first_hole_below(sent, self.lost_end)
    }

    /// Returns an unsacked segment below the highest SACKed one, lost or not (NextSeg rule 3).
    pub(crate) fn next_unsacked(&self, sent: Outstanding) -> Option<u32> {
        self.first_hole_below(sent, self.sacked.end()?)
    }

    /// Returns the highest outstanding unsacked segment (NextSeg rule 4).
    pub(crate) fn highest_unsacked(&self, sent: Outstanding) -> Option<u32> {
        match self.sacked.ranges().last() {
            Some(&(start, end)) if end == sent.next => start.checked_sub(1),
            _ => sent.next.checked_sub(1),
        }
        .filter(|&index| index >= sent.una)
    }

    fn first_hole_below(&self, sent: Outstanding, bound: u32) -> Option<u32> {
        let hole = self.sacked.next_hole(self.next_rtx.max(sent.una));
        (hole < bound).then_some(hole)
    }

    /// Records that segment `index`, the next hole, was retransmitted.
    pub(crate) fn retransmitted(&mut self, sent: Outstanding, index: u32) {
        let from = self.next_rtx.max(sent.una);
        debug_assert_eq!(self.sacked.next_hole(from), index);
        self.retransmitted_count += 1;
        self.next_rtx = index + 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn naive_pipe(board: &Scoreboard, sent: Outstanding) -> u32 {
        (sent.una..sent.next)
            .filter(|&i| board.sacked.containing(i).is_none())
            .map(|i| u32::from(i >= board.lost_end) + u32::from(i < board.next_rtx))
            .sum()
    }

    fn block(start: u32, end: u32) -> SackBlocks {
        [(start, end), (0, 0), (0, 0)]
    }

    #[test]
    fn three_sacked_segments_above_make_a_segment_lost() {
        let mut board = Scoreboard::default();
        let mut sent = Outstanding { una: 0, next: 10 };
        board.acknowledge(&mut sent, 1, Some(&block(3, 5)));
        assert!(!board.has_loss());
        board.acknowledge(&mut sent, 1, Some(&block(3, 6)));
        assert!(board.has_loss());
        assert_eq!(board.next_lost(sent), Some(1));
        // Ten sent, one acknowledged, three SACKed, two lost (1 and 2).
        assert_eq!(board.pipe(sent), 4);
        board.begin_recovery(sent);
        board.retransmitted(sent, 1);
        assert_eq!(board.next_lost(sent), Some(2));
        assert_eq!(board.pipe(sent), 5);
    }

    proptest! {
        #[test]
        fn counts_agree_with_a_recount(steps in prop::collection::vec((0u8..5, 0u32..40, 1u32..6), 1..80)) {
            let mut board = Scoreboard::default();
            let mut sent = Outstanding { una: 0, next: 40 };
            for (what, at, length) in steps {
                match what {
                    0 => {
                        let ack = at.max(sent.una);
                        board.acknowledge(&mut sent, ack, None);
                    }
                    1 | 2 => {
                        // A receiver never SACKs the next segment that it expects.
                        let start = at.max(sent.una + 1);
                        let una = sent.una;
                        board.acknowledge(&mut sent, una, Some(&block(start, start + length)));
                    }
                    3 => if let Some(index) = board.next_lost(sent) { board.retransmitted(sent, index) },
                    _ => if at < 3 { board.mark_all_lost(sent) },
                }
                prop_assert_eq!(board.pipe(sent), naive_pipe(&board, sent));
            }
        }
    }
}
