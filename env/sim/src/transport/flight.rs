//! The outstanding segments of a flow, each with the time of its last transmission (RFC 8985 §5.2).
//!
//! RFC 6675 keeps two bounds; here every segment has a state, because any segment may be lost, sent again
//! and lost again. Segments believed to be in the network are linked in the order in which they left. So
//! loss detection stops at the first segment that left after the one that was delivered last.

use std::collections::VecDeque;

use super::ranges::RangeSet;
use crate::transport::sack::SackBlocks;
use crate::units::Instant;

/// Number that stands for no segment.
const NONE: u32 = u32::MAX;

/// One outstanding segment.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// Time of the last transmission (Segment.xmit_ts).
    sent_at: Instant,
    /// Number of the last transmission among all transmissions of the flow, from 1. It replaces the pair
    /// of time and sequence number by which RFC 8985 §6.2 orders transmissions.
    order: u64,
    /// Neighbours in the order of transmission.
    before: u32,
    after: u32,
    retransmitted: bool,
    lost: bool,
    sacked: bool,
}

/// State of a segment when it was delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Delivered {
    pub(super) index: u32,
    pub(super) sent_at: Instant,
    pub(super) order: u64,
    pub(super) retransmitted: bool,
}

/// All outstanding segments of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    /// The oldest outstanding segment.
    una: u32,
    records: VecDeque<Record>,
    /// The segments in the network that left first and last.
    oldest: u32,
    newest: u32,
    transmissions: u64,
    sacked: RangeSet,
    sacked_count: u32,
    lost_count: u32,
    /// No segment below this one is lost.
    lost_from: u32,
}

impl Default for Flight {
    fn default() -> Flight {
        Flight {
            una: 0,
            records: VecDeque::new(),
            oldest: NONE,
            newest: NONE,
            transmissions: 0,
            sacked: RangeSet::default(),
            sacked_count: 0,
            lost_count: 0,
            lost_from: 0,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "segments are counted in 32 bits, so fewer are outstanding"
)]
impl Flight {
    /// Resets the value, but keeps the allocated memory.
    pub(super) fn clear(&mut self) {
        let mut records = std::mem::take(&mut self.records);
        let mut sacked = std::mem::take(&mut self.sacked);
        records.clear();
        sacked.clear();
        *self = Flight {
            records,
            sacked,
            ..Flight::default()
        };
    }

    /// Returns the first segment not yet sent.
    fn next(&self) -> u32 {
        self.una + self.records.len() as u32
    }

    fn record(&mut self, index: u32) -> &mut Record {
        &mut self.records[(index - self.una) as usize]
    }

    /// Returns the number of segments believed to be in the network (RFC 6675 §4, pipe).
    pub(super) fn pipe(&self) -> u32 {
        self.records.len() as u32 - self.sacked_count - self.lost_count
    }

    /// Returns the number of segments that count as lost and wait to be sent again.
    pub(super) fn lost(&self) -> u32 {
        self.lost_count
    }

    /// Returns the number of outstanding segments that the receiver has reported.
    pub(super) fn sacked(&self) -> u32 {
        self.sacked_count
    }

    /// Returns the first segment that counts as lost. Complexity: O(1), amortised over an episode.
    pub(super) fn next_lost(&mut self) -> Option<u32> {
        if self.lost_count == 0 {
            return None;
        }
        let from = self.lost_from.max(self.una);
        let lost = (from..self.next()).find(|&index| self.record(index).lost);
        self.lost_from = lost.unwrap_or(from);
        lost
    }

    /// Returns when the first outstanding segment left.
    pub(super) fn first_sent_at(&self) -> Option<Instant> {
        self.records.front().map(|record| record.sent_at)
    }

    /// Records that a segment leaves: the next new one, or an outstanding one.
    pub(super) fn send(&mut self, index: u32, now: Instant) {
        let retransmitted = index < self.next();
        if retransmitted {
            let record = self.record(index);
            debug_assert!(!record.sacked);
            if std::mem::take(&mut record.lost) {
                self.lost_count -= 1;
            } else {
                self.unlink(index);
            }
        }
        self.transmissions += 1;
        let record = Record {
            sent_at: now,
            order: self.transmissions,
            before: NONE,
            after: NONE,
            retransmitted,
            lost: false,
            sacked: false,
        };
        match retransmitted {
            true => *self.record(index) = record,
            false => self.records.push_back(record),
        }
        self.link(index);
    }

    /// Takes a cumulative acknowledgement and SACK blocks. Calls `delivered` for every segment that they
    /// newly deliver, in no particular order. Returns the number of these segments.
    pub(super) fn acknowledge(
        &mut self,
        una: u32,
        blocks: Option<&SackBlocks>,
        mut delivered: impl FnMut(Delivered),
    ) -> u32 {
        let mut count = 0;
        while self.una < una {
            let index = self.una;
            if !self.record(index).sacked {
                delivered(self.take(index));
                count += 1;
            } else {
                self.sacked_count -= 1;
            }
            self.records.pop_front();
            self.una += 1;
        }
        self.sacked.remove_below(una, |_, _| {});
        for &(start, end) in blocks.into_iter().flatten() {
            let (start, end) = (start.max(una), end.min(self.next()));
            let mut sacked = std::mem::take(&mut self.sacked);
            sacked.insert(start, end, |start, end| {
                for index in start..end {
                    delivered(self.take(index));
                    self.record(index).sacked = true;
                    count += 1;
                    self.sacked_count += 1;
                }
            });
            self.sacked = sacked;
        }
        count
    }

    /// Removes a segment from those in the network, or from the lost ones.
    fn take(&mut self, index: u32) -> Delivered {
        let record = self.record(index);
        let delivered = Delivered {
            index,
            sent_at: record.sent_at,
            order: record.order,
            retransmitted: record.retransmitted,
        };
        if std::mem::take(&mut record.lost) {
            self.lost_count -= 1;
        } else {
            self.unlink(index);
        }
        delivered
    }

    /// Visits the segments in the network in the order of transmission, up to but without transmission
    /// number `order`. Counts segments as lost that were sent at `lost_before` or earlier. Returns when the
    /// last of the others was sent.
    pub(super) fn lose_overtaken(
        &mut self,
        order: u64,
        lost_before: Option<Instant>,
    ) -> Option<Instant> {
        let mut last = None;
        let mut index = self.oldest;
        while index != NONE {
            let record = *self.record(index);
            if record.order >= order {
                break;
            }
            match lost_before {
                Some(bound) if record.sent_at <= bound => self.lose(index),
                _ => last = Some(record.sent_at),
            }
            index = record.after;
        }
        last
    }

    /// Counts segments as lost after a timeout: the first outstanding one, and those that were sent at
    /// `lost_before` or earlier (RFC 8985 §6.3).
    pub(super) fn lose_after_timeout(&mut self, lost_before: Option<Instant>) {
        self.lose_overtaken(u64::MAX, lost_before);
        if !self.records.is_empty() {
            let first = self.record(self.una);
            if !first.lost && !first.sacked {
                self.lose(self.una);
            }
        }
    }

    fn lose(&mut self, index: u32) {
        self.unlink(index);
        self.record(index).lost = true;
        self.lost_count += 1;
        self.lost_from = self.lost_from.min(index);
    }

    /// Counts no segment as lost any more.
    pub(super) fn find_all(&mut self) {
        if self.lost_count == 0 {
            return;
        }
        (self.oldest, self.newest, self.lost_count) = (NONE, NONE, 0);
        let mut found: Vec<(u64, u32)> = Vec::new();
        for (record, index) in self.records.iter_mut().zip(self.una..) {
            record.lost = false;
            if !record.sacked {
                found.push((record.order, index));
            }
        }
        found.sort_unstable();
        for (_, index) in found {
            let record = self.record(index);
            (record.before, record.after) = (NONE, NONE);
            self.link(index);
        }
    }

    fn link(&mut self, index: u32) {
        let newest = std::mem::replace(&mut self.newest, index);
        self.record(index).before = newest;
        match newest {
            NONE => self.oldest = index,
            newest => self.record(newest).after = index,
        }
    }

    fn unlink(&mut self, index: u32) {
        let record = self.record(index);
        let (before, after) = (record.before, record.after);
        match before {
            NONE => self.oldest = after,
            before => self.record(before).after = after,
        }
        match after {
            NONE => self.newest = before,
            after => self.record(after).before = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_us(us)
    }

    fn sent(count: u32) -> Flight {
        let mut flight = Flight::default();
        for index in 0..count {
            flight.send(index, at(u64::from(index)));
        }
        flight
    }

    fn sack(flight: &mut Flight, start: u32, end: u32) -> u32 {
        let una = flight.una;
        flight.acknowledge(una, Some(&[(start, end), (0, 0), (0, 0)]), |_| {})
    }

    #[test]
    fn a_segment_can_be_lost_sent_again_and_lost_again() {
        let mut flight = sent(6);
        assert_eq!(sack(&mut flight, 2, 4), 2);
        assert_eq!(sack(&mut flight, 2, 5), 1);
        // Segments 0 and 1 left before 4, which is transmission 5.
        assert_eq!(flight.lose_overtaken(5, Some(at(0))), Some(at(1)));
        assert_eq!(
            (flight.next_lost(), flight.lost(), flight.pipe()),
            (Some(0), 1, 2)
        );
        flight.send(0, at(10));
        assert_eq!((flight.lost(), flight.pipe()), (0, 3));
        // It is the last one in the order of transmission.
        assert_eq!(flight.lose_overtaken(7, Some(at(9))), None);
        assert_eq!((flight.next_lost(), flight.lost()), (Some(1), 2));
        flight.lose_overtaken(8, Some(at(10)));
        assert_eq!(
            (flight.next_lost(), flight.lost(), flight.pipe()),
            (Some(0), 3, 0)
        );
        flight.find_all();
        assert_eq!(
            (flight.next_lost(), flight.lost(), flight.pipe()),
            (None, 0, 3)
        );
        assert_eq!(flight.acknowledge(6, None, |_| {}), 3);
        assert_eq!((flight.pipe(), flight.sacked()), (0, 0));
    }

    #[test]
    fn a_timeout_loses_the_first_segment_and_what_is_old() {
        let mut flight = sent(5);
        flight.send(0, at(9));
        flight.lose_after_timeout(Some(at(2)));
        assert_eq!((flight.lost(), flight.pipe()), (3, 2));
        assert_eq!(flight.next_lost(), Some(0));
    }

    /// Compares the links and counts with a recount.
    fn check(flight: &Flight) -> Result<(), TestCaseError> {
        let in_network = |record: &&Record| !record.lost && !record.sacked;
        let mut orders: Vec<u64> = flight
            .records
            .iter()
            .filter(in_network)
            .map(|record| record.order)
            .collect();
        orders.sort_unstable();
        prop_assert_eq!(flight.pipe() as usize, orders.len());
        let mut linked = Vec::new();
        let mut index = flight.oldest;
        while index != NONE {
            let record = flight.records[(index - flight.una) as usize];
            linked.push(record.order);
            index = record.after;
        }
        prop_assert_eq!(linked, orders);
        let lost = flight.records.iter().filter(|record| record.lost).count();
        prop_assert_eq!(flight.lost() as usize, lost);
        let sacked = flight.records.iter().filter(|record| record.sacked).count();
        prop_assert_eq!(flight.sacked() as usize, sacked);
        Ok(())
    }

    proptest! {
        #[test]
        fn counts_and_links_agree_with_a_recount(
            steps in prop::collection::vec((0_u8..7, 0_u32..40, 1_u32..6), 1..120),
        ) {
            let mut flight = sent(10);
            for ((what, place, length), now) in steps.into_iter().zip(100..) {
                match what {
                    0 => { flight.send(flight.next(), at(now)); }
                    1 => {
                        let una = place.clamp(flight.una, flight.next());
                        flight.acknowledge(una, None, |_| {});
                    }
                    2 | 3 => {
                        let start = flight.una + 1 + place % 10;
                        sack(&mut flight, start, start + length);
                    }
                    4 => {
                        flight.lose_overtaken(u64::from(place), Some(at(now - u64::from(length))));
                    }
                    5 => if let Some(index) = flight.next_lost() { flight.send(index, at(now)) },
                    _ if place < 5 => flight.find_all(),
                    _ if place < 10 => flight.lose_after_timeout(Some(at(now - 5))),
                    _ => {}
                }
                check(&flight)?;
            }
        }
    }
}
