//! The receiver: reassembly, SACK blocks and delayed acknowledgements.

mod go_back_n;
mod ns3;

use super::Settings;
use super::pool::{Pool, Reset};
use super::ranges::RangeSet;
use super::sack::{MAX_SACK_BLOCKS, SackBlocks};
use crate::engine::telemetry::RecordsHandle;
use crate::units::Instant;

pub(crate) use go_back_n::Reply;
use ns3::Reports;

/// Properties of a segment that its acknowledgement echoes.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Answer {
    /// Time at which the segment was sent.
    pub(crate) stamp: Instant,
    /// True if the segment was a retransmission.
    pub(crate) retransmission: bool,
    /// True if a switch marked the segment.
    pub(crate) marked: bool,
    /// The segment, if it arrived a second time and a report of that is wanted.
    pub(crate) duplicate: Option<u32>,
    /// Telemetry records that switches have written into the segment, if any.
    pub(crate) records: RecordsHandle,
}

/// Effect of a segment that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reception {
    /// Number of segments that it makes deliverable in order.
    pub(crate) delivered: u32,
    /// True if the segment had arrived before.
    pub(crate) duplicate: bool,
}

/// Receive state of one flow. Most receivers have all segments in order and take 24 bytes; the others
/// also have a [`Reassembly`].
#[derive(Clone, Default, Debug)]
pub(crate) struct Receiver {
    /// The next segment expected.
    next: u32,
    /// True if the handshake is complete.
    pub(crate) accepted: bool,
    /// Number of SYN-ACKs sent.
    syn_acks: u8,
    /// Number of segments acknowledged at once since the start, or since one arrived out of order.
    quick: u8,
    /// True if the flow uses RDMA.
    rdma: bool,
    /// Timestamp to echo: of the SYN, of the first pending segment, or by ns-3's rule. RDMA: time at which
    /// the last negative acknowledgement left; zero if none has asked for the next segment.
    stamp: Instant,
    reassembly: Option<Box<Reassembly>>,
}

/// State of a receiver with out-of-order segments or delayed acknowledgements.
#[derive(Clone, Default, Debug)]
pub(crate) struct Reassembly {
    /// The reassembly queue.
    held: RangeSet,
    /// One segment of each recently changed SACK block, the latest first (RFC 2018 §4).
    recent: [u32; MAX_SACK_BLOCKS],
    /// Used if the receiver behaves like that of ns-3.
    ns3: Reports,
    delay: Delay,
}

/// A delayed acknowledgement.
#[derive(Clone, Copy, Default, Debug)]
struct Delay {
    /// Number of in-order segments that it will cover.
    pending: u32,
    /// Values echoed from the first of these segments, in addition to its timestamp.
    retransmission: bool,
    marked: bool,
    /// Latest time at which it is sent; zero if no timer is set.
    due: Instant,
}

impl Reset for Reassembly {
    fn reset(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        held.clear();
        *self = Reassembly {
            held,
            ..Reassembly::default()
        };
    }
}

impl Reassembly {
    /// Returns true if a new value would behave the same from now on.
    fn is_as_new(&self) -> bool {
        let waits = self.delay.pending > 0 || self.delay.due > Instant::ZERO;
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

/// Arriving segments.
impl Receiver {
    /// Takes segment `index`.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        index: u32,
        settings: &Settings,
        pool: &mut Pool<Reassembly>,
    ) -> Reception {
        if index == self.next && self.is_in_order() {
            self.next += 1;
            return Reception {
                delivered: 1,
                duplicate: false,
            };
        }
        self.receive_out_of_order(index, settings, pool)
    }

    fn receive_out_of_order(
        &mut self,
        index: u32,
        settings: &Settings,
        pool: &mut Pool<Reassembly>,
    ) -> Reception {
        if index < self.next {
            return Reception {
                delivered: 0,
                duplicate: true,
            };
        }
        let mut is_new = true;
        let mut reassembly = self.take_reassembly(pool);
        let before = self.next;
        if index > self.next {
            is_new = false;
            reassembly
                .held
                .insert(index, index + 1, |_, _| is_new = true);
            if !settings.is_ns3() {
                reassembly.note_recent(index);
            } else if is_new {
                reassembly.ns3.push(index);
            }
        } else {
            self.next = reassembly.held.next_hole(index + 1);
            reassembly.held.remove_below(self.next, |_, _| {});
            reassembly.ns3.clear_below(self.next);
        }
        self.keep_or_give_back(reassembly, pool);
        Reception {
            delivered: self.next - before,
            duplicate: !is_new,
        }
    }

    fn take_reassembly(&mut self, pool: &mut Pool<Reassembly>) -> Box<Reassembly> {
        self.reassembly.take().unwrap_or_else(|| pool.take())
    }

    fn keep_or_give_back(&mut self, reassembly: Box<Reassembly>, pool: &mut Pool<Reassembly>) {
        if reassembly.is_as_new() {
            pool.give_back(reassembly);
        } else {
            self.reassembly = Some(reassembly);
        }
    }

    /// Returns true if the reassembly queue is empty.
    #[inline]
    pub(crate) fn is_in_order(&self) -> bool {
        let reassembly = self.reassembly.as_deref();
        reassembly.is_none_or(|reassembly| reassembly.held.is_empty())
    }

    /// Returns true if the handshake is complete or data has arrived.
    pub(crate) fn has_accepted(&self) -> bool {
        self.accepted || self.next > 0 || !self.is_in_order()
    }

    /// Returns true if a SYN was answered and nothing else has arrived from the sender (SYN-RECEIVED, RFC
    /// 9293 §3.3.2).
    pub(crate) fn awaits_handshake(&self) -> bool {
        self.syn_acks > 0 && !self.has_accepted()
    }

    /// Counts a SYN-ACK. Returns the number of those sent before.
    pub(crate) fn count_syn_ack(&mut self) -> u8 {
        let before = self.syn_acks;
        self.syn_acks = before.saturating_add(1);
        before
    }

    /// Returns true if the mark of segment `index` is to be echoed; ns-3 does not echo every mark.
    pub(crate) fn takes_mark(
        &mut self,
        index: u32,
        settings: &Settings,
        pool: &mut Pool<Reassembly>,
    ) -> bool {
        if !settings.is_ns3() {
            return true;
        }
        let mut reassembly = self.take_reassembly(pool);
        let takes = reassembly.ns3.takes_mark(index);
        self.keep_or_give_back(reassembly, pool);
        takes
    }

    /// Returns the timestamp that ns-3 echoes: that of the last in-order segment, or of the SYN.
    pub(crate) fn echo(&mut self, stamp: Instant, in_order: bool) -> Instant {
        if in_order {
            self.stamp = stamp;
        }
        self.stamp
    }

    /// Returns the next segment expected: the cumulative acknowledgement.
    #[inline]
    pub(crate) fn next_expected(&self) -> u32 {
        self.next
    }

    /// Returns the SACK blocks to report, if any; the one that changed last comes first (RFC 2018 §4).
    #[inline]
    pub(crate) fn sack_blocks(&self, settings: &Settings) -> Option<SackBlocks> {
        let reassembly = self.reassembly.as_deref()?;
        if reassembly.held.is_empty() {
            None
        } else if settings.is_ns3() {
            reassembly.ns3.report()
        } else {
            Some(reassembly.collect_blocks())
        }
    }
}

/// Delayed acknowledgements (RFC 5681 §4.2).
impl Receiver {
    fn delay(&self) -> Delay {
        let reassembly = self.reassembly.as_deref();
        reassembly
            .map(|reassembly| reassembly.delay)
            .unwrap_or_default()
    }

    /// Returns the number of in-order segments that the delayed acknowledgement will cover.
    pub(crate) fn pending(&self) -> u32 {
        self.delay().pending
    }

    /// Returns the latest time at which the delayed acknowledgement is sent; zero if no timer is set.
    pub(crate) fn due(&self) -> Instant {
        self.delay().due
    }

    /// Sets [`due`](Receiver::due).
    pub(crate) fn set_due(&mut self, due: Instant, pool: &mut Pool<Reassembly>) {
        let mut reassembly = self.take_reassembly(pool);
        reassembly.delay.due = due;
        self.keep_or_give_back(reassembly, pool);
    }

    /// Delays the acknowledgement of a segment; the first timestamp is echoed (RFC 7323 §4.3).
    pub(crate) fn postpone(&mut self, answer: Answer, pool: &mut Pool<Reassembly>) {
        let reassembly = self.reassembly.get_or_insert_with(|| pool.take());
        if reassembly.delay.pending == 0 {
            self.stamp = answer.stamp;
            reassembly.delay.retransmission = answer.retransmission;
            reassembly.delay.marked = answer.marked;
        }
        reassembly.delay.pending += 1;
    }

    /// Ends the delay and returns the values that the acknowledgement echoes.
    pub(crate) fn take_postponed(&mut self, pool: &mut Pool<Reassembly>) -> Answer {
        let mut reassembly = self.take_reassembly(pool);
        reassembly.delay.pending = 0;
        let answer = Answer {
            stamp: self.stamp,
            retransmission: reassembly.delay.retransmission,
            marked: reassembly.delay.marked,
            ..Answer::default()
        };
        self.keep_or_give_back(reassembly, pool);
        answer
    }

    /// Returns true if the rule of quick acknowledgements lets the acknowledgement of an in-order segment
    /// wait.
    pub(crate) fn may_delay(&self, settings: &Settings) -> bool {
        u32::from(self.quick) >= settings.quick_acks
    }

    /// Counts a segment that is acknowledged at once because [`may_delay`](Receiver::may_delay) is false. If
    /// it arrived out of order, the count restarts, so that further segments are acknowledged at once, too.
    pub(crate) fn note_quick(&mut self, in_order: bool) {
        self.quick = match in_order {
            true => self.quick.saturating_add(1),
            false => 0,
        };
    }

    /// Returns true if a segment's mark differs from that of the pending segments (RFC 8257 §3.2).
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
        let pool = &mut Pool::default();
        receiver.receive(index, &settings(), pool).delivered
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
    fn the_latest_block_comes_first_and_a_filled_hole_delivers_the_segments_above() {
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
    fn what_arrives_again_is_told_from_what_is_new() {
        let mut receiver = Receiver::default();
        let pool = &mut Pool::default();
        let mut is_duplicate = |index| receiver.receive(index, &settings(), pool).duplicate;
        let found = [0, 0, 2, 2, 3, 1, 2].map(&mut is_duplicate);
        assert_eq!(found, [false, true, false, true, false, false, true]);
    }

    #[test]
    fn reassembly_state_is_given_back_when_the_gap_is_filled() {
        let mut receiver = Receiver::default();
        let mut pool = Pool::default();
        receiver.receive(1, &settings(), &mut pool);
        assert_eq!(pool.count(), 0);
        assert_eq!(receiver.receive(0, &settings(), &mut pool).delivered, 2);
        assert_eq!(pool.count(), 1);
        assert!(receiver.reassembly.is_none() && receiver.is_in_order());
    }
}
