//! The receiving end: what has arrived, and what the acknowledgement says about it.

mod ns3;

use super::Settings;
use super::ranges::RangeSet;
use super::recycler::{Recycle, Recycler};
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

/// Receive state of one flow. Most receivers have everything in order and take 24 bytes; the rest is
/// an [`Aside`].
#[derive(Clone, Default, Debug)]
pub(crate) struct Receiver {
    next: u32,
    /// The handshake is over.
    pub(crate) accepted: bool,
    /// SYN-ACKs sent.
    syn_acks: u8,
    /// The time stamp to echo: of the SYN, of the segment whose acknowledgement waits, or for ns-3.
    stamp: Time,
    aside: Option<Box<Aside>>,
}

/// What a receiver sets aside: segments out of order and acknowledgements that wait.
#[derive(Clone, Default, Debug)]
pub(crate) struct Aside {
    held: RangeSet,
    /// A segment of each recently changed block, the latest first (RFC 2018 §4).
    recent: [u32; MAX_SACK_BLOCKS],
    /// In use where the receiver is ns-3's.
    ns3: Reports,
    delay: Delay,
}

/// In-order segments that wait for their acknowledgement.
#[derive(Clone, Copy, Default, Debug)]
struct Delay {
    /// How many.
    pending: u32,
    /// What the answer to the first of them says besides its time stamp.
    retransmission: bool,
    marked: bool,
    /// When they are acknowledged at the latest; zero while no timer event waits.
    due: Time,
}

impl Recycle for Aside {
    fn recycle(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        held.clear();
        *self = Aside {
            held,
            ..Aside::default()
        };
    }
}

impl Aside {
    /// Whether nothing in it makes a difference any more.
    fn is_over(&self) -> bool {
        let waits = self.delay.pending > 0 || self.delay.due > Time::ZERO;
        self.held.is_empty() && !waits && !self.ns3.has_marks()
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

/// What has arrived.
impl Receiver {
    /// Takes segment `index` and returns how many segments became deliverable in order.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        index: u32,
        settings: &Settings,
        spares: &mut Recycler<Aside>,
    ) -> u32 {
        if index == self.next && self.is_in_order() {
            self.next += 1;
            return 1;
        }
        self.receive_out_of_order(index, settings, spares)
    }

    fn receive_out_of_order(
        &mut self,
        index: u32,
        settings: &Settings,
        spares: &mut Recycler<Aside>,
    ) -> u32 {
        if index < self.next {
            return 0;
        }
        let mut aside = self.take_aside(spares);
        let before = self.next;
        if index > self.next {
            let mut is_new = false;
            aside.held.insert(index, index + 1, |_, _| is_new = true);
            if !settings.is_ns3() {
                aside.note_recent(index);
            } else if is_new {
                aside.ns3.push(index);
            }
        } else {
            self.next = aside.held.next_hole(index + 1);
            aside.held.remove_below(self.next, |_, _| {});
            aside.ns3.clear_below(self.next);
        }
        self.settle(aside, spares);
        self.next - before
    }

    fn take_aside(&mut self, spares: &mut Recycler<Aside>) -> Box<Aside> {
        self.aside.take().unwrap_or_else(|| spares.take())
    }

    fn settle(&mut self, aside: Box<Aside>, spares: &mut Recycler<Aside>) {
        if aside.is_over() {
            spares.give_back(aside);
        } else {
            self.aside = Some(aside);
        }
    }

    /// Whether every segment received so far has been delivered in order.
    #[inline]
    pub(crate) fn is_in_order(&self) -> bool {
        let aside = self.aside.as_deref();
        aside.is_none_or(|aside| aside.held.is_empty())
    }

    /// Whether anything but SYNs has come.
    pub(crate) fn has_accepted(&self) -> bool {
        self.accepted || self.next > 0 || !self.is_in_order()
    }

    /// Counts a SYN-ACK; returns how many were sent before.
    pub(crate) fn count_syn_ack(&mut self) -> u8 {
        let before = self.syn_acks;
        self.syn_acks = before.saturating_add(1);
        before
    }

    /// Whether ns-3 echoes the mark of segment `index`.
    pub(crate) fn takes_mark(
        &mut self,
        index: u32,
        settings: &Settings,
        spares: &mut Recycler<Aside>,
    ) -> bool {
        if !settings.is_ns3() {
            return true;
        }
        let mut aside = self.take_aside(spares);
        let takes = aside.ns3.takes_mark(index);
        self.settle(aside, spares);
        takes
    }

    /// The time stamp that ns-3 echoes: that of the last segment that was next in order, or of the
    /// SYN.
    pub(crate) fn echo(&mut self, stamp: Time, in_order: bool) -> Time {
        if in_order {
            self.stamp = stamp;
        }
        self.stamp
    }

    /// The next segment expected: the cumulative acknowledgement.
    #[inline]
    pub(crate) fn next_expected(&self) -> u32 {
        self.next
    }

    /// Blocks to report, the one that changed last first (RFC 2018 §4), if any.
    #[inline]
    pub(crate) fn sack_blocks(&self, settings: &Settings) -> Option<SackBlocks> {
        let aside = self.aside.as_deref()?;
        if aside.held.is_empty() {
            None
        } else if settings.is_ns3() {
            aside.ns3.report()
        } else {
            Some(aside.collect_blocks())
        }
    }
}

/// Acknowledgements that wait (RFC 5681 §4.2).
impl Receiver {
    fn delay(&self) -> Delay {
        let aside = self.aside.as_deref();
        aside.map(|aside| aside.delay).unwrap_or_default()
    }

    /// Segments that wait for their acknowledgement.
    pub(crate) fn pending(&self) -> u32 {
        self.delay().pending
    }

    /// When they are acknowledged at the latest; zero while no timer event waits.
    pub(crate) fn due(&self) -> Time {
        self.delay().due
    }

    /// Sets when they are acknowledged at the latest; zero when no timer event waits any more.
    pub(crate) fn set_due(&mut self, due: Time, spares: &mut Recycler<Aside>) {
        let mut aside = self.take_aside(spares);
        aside.delay.due = due;
        self.settle(aside, spares);
    }

    /// One more segment waits; the first one's time stamp is echoed (RFC 7323 §4.3).
    pub(crate) fn postpone(&mut self, answer: Answer, spares: &mut Recycler<Aside>) {
        let aside = self.aside.get_or_insert_with(|| spares.take());
        if aside.delay.pending == 0 {
            self.stamp = answer.stamp;
            aside.delay.retransmission = answer.retransmission;
            aside.delay.marked = answer.marked;
        }
        aside.delay.pending += 1;
    }

    /// What waited is acknowledged now.
    pub(crate) fn take_postponed(&mut self, spares: &mut Recycler<Aside>) -> Answer {
        let mut aside = self.take_aside(spares);
        aside.delay.pending = 0;
        let answer = Answer {
            stamp: self.stamp,
            retransmission: aside.delay.retransmission,
            marked: aside.delay.marked,
        };
        self.settle(aside, spares);
        answer
    }

    /// Whether a segment that is marked or not differs from those that wait (RFC 8257 §3.2).
    pub(crate) fn differs_from_pending(&self, marked: bool) -> bool {
        let delay = self.delay();
        delay.pending > 0 && delay.marked != marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn settings() -> Settings {
        Settings::from_scenario(&Scenario::default())
    }

    fn receive(receiver: &mut Receiver, index: u32) -> u32 {
        receiver.receive(index, &settings(), &mut Recycler::default())
    }

    #[test]
    fn in_order_segments_need_no_blocks() {
        let mut receiver = Receiver::default();
        assert_eq!(receive(&mut receiver, 0), 1);
        assert_eq!(receive(&mut receiver, 1), 1);
        assert_eq!(receiver.next_expected(), 2);
        assert_eq!(receiver.sack_blocks(&settings()), None);
    }

    #[test]
    fn the_latest_block_comes_first_and_a_filled_hole_delivers_all_behind_it() {
        let mut receiver = Receiver::default();
        receive(&mut receiver, 0);
        receive(&mut receiver, 3);
        receive(&mut receiver, 5);
        receive(&mut receiver, 7);
        assert_eq!(
            receiver.sack_blocks(&settings()),
            Some([(7, 8), (5, 6), (3, 4)])
        );
        receive(&mut receiver, 4);
        assert_eq!(
            receiver.sack_blocks(&settings()),
            Some([(3, 6), (7, 8), (0, 0)])
        );
        assert_eq!(receive(&mut receiver, 2), 0);
        assert_eq!(receive(&mut receiver, 1), 5);
        assert_eq!(receiver.next_expected(), 6);
        assert_eq!(receive(&mut receiver, 1), 0);
    }

    #[test]
    fn what_a_gap_needs_is_given_back_when_it_is_filled() {
        let mut receiver = Receiver::default();
        let mut spares = Recycler::default();
        receiver.receive(1, &settings(), &mut spares);
        assert_eq!(spares.count(), 0);
        assert_eq!(receiver.receive(0, &settings(), &mut spares), 2);
        assert_eq!(spares.count(), 1);
        assert!(receiver.aside.is_none() && receiver.is_in_order());
    }
}
