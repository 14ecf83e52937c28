//! The bytes of a TCP stream that were captured.

use bufgym_util::convert::lower_u32;

/// Largest number of ranges per stream. It bounds the memory if a capture misses many packets.
const MAX_RANGES: usize = 64;

/// The captured bytes of one direction of a connection, by their position in the stream.
#[derive(Default)]
pub(super) struct Coverage {
    /// End of the highest byte seen; its lower 32 bits are a sequence number.
    highest: Option<u64>,
    /// Sorted, disjoint, non-adjacent half-open ranges.
    ranges: Vec<(u64, u64)>,
}

impl Coverage {
    /// Adds `length` bytes from sequence number `seq` on. Returns how many of them are new.
    pub(super) fn add(&mut self, seq: u32, length: u64) -> u64 {
        if length == 0 {
            return 0;
        }
        let start = self.place(seq);
        let end = start + length;
        self.highest = Some(self.highest.map_or(end, |highest| highest.max(end)));
        let new = self.insert(start, end);
        if self.ranges.len() > MAX_RANGES {
            // Late bytes of the oldest gap will not count as new.
            self.ranges[1].0 = self.ranges[0].0;
            self.ranges.remove(0);
        }
        new
    }

    /// Returns the position of `seq` in the stream: the one nearest to the highest byte so far. A
    /// stream begins at 2^32 or above, so that earlier bytes that arrive late have positions too.
    fn place(&self, seq: u32) -> u64 {
        match self.highest {
            None => (1 << 32) + u64::from(seq),
            Some(highest) => {
                let lower = lower_u32(highest);
                // Sequence numbers wrap, so the difference has a sign.
                let distance = seq.wrapping_sub(lower).cast_signed();
                highest.saturating_add_signed(i64::from(distance))
            }
        }
    }

    fn insert(&mut self, start: u64, end: u64) -> u64 {
        let first = self.ranges.partition_point(|range| range.1 < start);
        let last = first + self.ranges[first..].partition_point(|range| range.0 <= end);
        let touched = &self.ranges[first..last];
        let known: u64 = touched
            .iter()
            .map(|range| range.1.min(end).saturating_sub(range.0.max(start)))
            .sum();
        let merged = touched.iter().fold((start, end), |merged, range| {
            (merged.0.min(range.0), merged.1.max(range.1))
        });
        self.ranges.splice(first..last, [merged]);
        end - start - known
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn retransmitted_and_overlapping_bytes_count_once() {
        let mut coverage = Coverage::default();
        assert_eq!(coverage.add(1_000, 100), 100);
        assert_eq!(coverage.add(1_000, 100), 0);
        assert_eq!(coverage.add(1_200, 100), 100);
        assert_eq!(coverage.add(1_050, 200), 100);
        assert_eq!(coverage.add(900, 500), 200);
        assert_eq!(coverage.ranges.len(), 1);
    }

    #[test]
    fn sequence_numbers_wrap() {
        let mut coverage = Coverage::default();
        assert_eq!(coverage.add(u32::MAX - 99, 150), 150);
        assert_eq!(coverage.add(0, 50), 0);
        assert_eq!(coverage.add(50, 10), 10);
        assert_eq!(coverage.add(u32::MAX - 199, 150), 100);
    }

    #[test]
    fn a_stream_of_ten_wraps_is_counted_in_full() {
        let mut coverage = Coverage::default();
        let (mut seq, mut total) = (7_u32, 0);
        for _ in 0..700_000 {
            total += coverage.add(seq, 65_000);
            seq = seq.wrapping_add(65_000);
        }
        assert_eq!(total, 700_000 * 65_000);
    }

    #[test]
    fn gaps_without_end_take_bounded_memory() {
        let mut coverage = Coverage::default();
        for packet in 0..10_000 {
            assert_eq!(coverage.add(packet * 20, 10), 10);
        }
        assert_eq!(coverage.ranges.len(), MAX_RANGES);
    }

    proptest! {
        #[test]
        fn new_bytes_are_those_of_a_set(base in any::<u32>(), packets in prop::collection::vec((0_u32..300, 0_u64..60), 0..60)) {
            let mut coverage = Coverage::default();
            let mut seen = BTreeSet::new();
            for (offset, length) in packets {
                let before = seen.len();
                seen.extend(u64::from(offset)..u64::from(offset) + length);
                let new = coverage.add(base.wrapping_add(offset), length);
                prop_assert_eq!(new, (seen.len() - before) as u64);
            }
        }
    }
}
