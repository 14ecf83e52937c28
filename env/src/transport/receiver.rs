//! The receiving end: what has arrived, and what the acknowledgement says about it.

mod ns3;

use super::Settings;
use super::ranges::RangeSet;
use crate::network::{MAX_SACK_BLOCKS, SackBlocks};
use crate::units::Time;

use ns3::Reports;

/// What an acknowledgement says besides its number.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Answer {
    /// When the segment that it answers was sent.
    pub(crate) stamp: Time,
    /// That segment had been sent before.
    pub(crate) retransmission: bool,
    /// That segment was marked by the switch.
    pub(crate) marked: bool,
}

/// Receive state of one flow.
#[derive(Clone, Default, Debug)]
pub(crate) struct Receiver {
    next: u32,
    /// In-order segments that wait for their acknowledgement.
    pending: u32,
    /// The handshake is over.
    pub(crate) accepted: bool,
    /// SYN-ACKs sent.
    syn_acks: u8,
    held: RangeSet,
    /// The answer to the first of them; for ns-3 the time stamp to echo.
    answer: Answer,
    /// When they are acknowledged at the latest.
    pub(crate) due: Time,
    /// A segment of each recently changed block, the latest first (RFC 2018 §4).
    recent: [u32; MAX_SACK_BLOCKS],
    /// In use where the receiver is ns-3's.
    ns3: Option<Box<Reports>>,
}

impl Receiver {
    /// A receiver of a flow that has not started.
    pub(crate) fn new(settings: &Settings) -> Receiver {
        Receiver {
            ns3: settings.is_ns3().then(Box::default),
            ..Receiver::default()
        }
    }

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
            let mut is_new = false;
            self.held.insert(index, index + 1, |_, _| is_new = true);
            match &mut self.ns3 {
                Some(reports) if is_new => reports.push(index),
                Some(_) => {}
                None => self.note_recent(index),
            }
            return 0;
        }
        let before = self.next;
        self.next = self.held.next_hole(index + 1);
        self.held.remove_below(self.next, |_, _| {});
        if let Some(reports) = &mut self.ns3 {
            reports.clear_below(self.next);
        }
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

    /// Whether every segment received so far has been delivered in order.
    #[inline]
    pub(crate) fn is_in_order(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether anything but SYNs has come.
    pub(crate) fn has_accepted(&self) -> bool {
        self.accepted || self.next > 0 || !self.held.is_empty()
    }

    /// Counts a SYN-ACK; returns how many were sent before.
    pub(crate) fn count_syn_ack(&mut self) -> u8 {
        let before = self.syn_acks;
        self.syn_acks = before.saturating_add(1);
        before
    }

    /// Segments that wait for their acknowledgement.
    #[inline]
    pub(crate) fn pending(&self) -> u32 {
        self.pending
    }

    /// One more segment waits; the first one's time stamp is echoed (RFC 7323 §4.3).
    pub(crate) fn postpone(&mut self, answer: Answer) {
        if self.pending == 0 {
            self.answer = answer;
        }
        self.pending += 1;
    }

    /// What waited is acknowledged now.
    pub(crate) fn take_postponed(&mut self) -> Answer {
        self.pending = 0;
        self.answer
    }

    /// Whether a segment that is marked or not differs from those that wait (RFC 8257 §3.2).
    pub(crate) fn differs_from_pending(&self, marked: bool) -> bool {
        self.pending > 0 && self.answer.marked != marked
    }

    /// Whether ns-3 echoes the mark of segment `index`.
    pub(crate) fn takes_mark(&mut self, index: u32) -> bool {
        self.ns3
            .as_mut()
            .is_none_or(|reports| reports.takes_mark(index))
    }

    /// The time stamp that ns-3 echoes: that of the last segment that was next in order, or of the
    /// SYN.
    pub(crate) fn echo(&mut self, stamp: Time, in_order: bool) -> Time {
        if in_order {
            self.answer.stamp = stamp;
        }
        self.answer.stamp
    }

    /// The next segment expected: the cumulative acknowledgement.
    #[inline]
    pub(crate) fn next_expected(&self) -> u32 {
        self.next
    }

    /// Blocks to report, the one that changed last first (RFC 2018 §4), if any.
    #[inline]
    pub(crate) fn sack_blocks(&self) -> Option<SackBlocks> {
        match &self.ns3 {
            _ if self.held.is_empty() => None,
            Some(reports) => reports.report(),
            None => Some(self.collect_blocks()),
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
