//! A set of segments as sorted disjoint ranges: a receiver's reassembly queue, or the segments that
//! a sender knows to be SACKed.

/// Sorted, disjoint, non-adjacent half-open ranges of segment indices.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub(crate) struct RangeSet {
    ranges: Vec<(u32, u32)>,
}

impl RangeSet {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Removes everything but keeps the allocated memory.
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }

    pub(crate) fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// Adds `[start, end)` and calls `added` for every sub-range that was not there before.
    ///
    /// Complexity: O(1) above all ranges, otherwise O(log n) to find the place and O(n) to shift the
    /// ranges above it.
    pub(crate) fn insert(&mut self, start: u32, end: u32, mut added: impl FnMut(u32, u32)) {
        if start >= end {
            return;
        }
        // Most insertions are above all ranges.
        if self.ranges.last().is_none_or(|last| last.1 <= start) {
            added(start, end);
            match self.ranges.last_mut().filter(|last| last.1 == start) {
                Some(last) => last.1 = end,
                None => self.ranges.push((start, end)),
            }
            return;
        }
        let first = self.ranges.partition_point(|range| range.1 < start);
        let mut last = first;
        let mut cursor = start;
        let mut merged = (start, end);
        while let Some(&(s, e)) = self.ranges.get(last) {
            if s > end {
                break;
            }
            if cursor < s {
                added(cursor, s.min(end));
            }
            cursor = cursor.max(e);
            merged = (merged.0.min(s), merged.1.max(e));
            last += 1;
        }
        if cursor < end {
            added(cursor, end);
        }
        if first == last {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..last);
        }
    }

    /// Removes everything below `bound` and calls `removed` for every range removed.
    pub(crate) fn remove_below(&mut self, bound: u32, mut removed: impl FnMut(u32, u32)) {
        if self.ranges.first().is_none_or(|range| range.0 >= bound) {
            return;
        }
        let gone = self.ranges.partition_point(|range| range.1 <= bound);
        for &(s, e) in &self.ranges[..gone] {
            removed(s, e);
        }
        self.ranges.drain(..gone);
        if let Some(range) = self.ranges.first_mut()
            && range.0 < bound
        {
            removed(range.0, bound);
            range.0 = bound;
        }
    }

    /// Returns the range that contains `index`.
    pub(crate) fn containing(&self, index: u32) -> Option<(u32, u32)> {
        // Most queries are for the last range.
        let last = *self.ranges.last()?;
        if last.0 <= index {
            return (index < last.1).then_some(last);
        }
        let at = self.ranges.partition_point(|range| range.1 <= index);
        self.ranges
            .get(at)
            .copied()
            .filter(|range| range.0 <= index)
    }

    /// Returns the smallest index at or above `from` that is not in the set.
    pub(crate) fn next_hole(&self, from: u32) -> u32 {
        self.containing(from).map_or(from, |range| range.1)
    }

    /// Returns how many indices of `[start, end)` are in the set. Complexity: O(ranges above `start`).
    pub(crate) fn count_within(&self, start: u32, end: u32) -> u32 {
        let mut count = 0;
        for &(s, e) in self.ranges.iter().rev() {
            if e <= start {
                break;
            }
            count += e.min(end).saturating_sub(s.max(start));
        }
        count
    }

    /// Returns the `n`-th highest member, if there are `n`.
    pub(crate) fn nth_highest(&self, n: u32) -> Option<u32> {
        let mut missing = n;
        for &(s, e) in self.ranges.iter().rev() {
            if e - s >= missing {
                return Some(e - missing);
            }
            missing -= e - s;
        }
        None
    }

    /// Returns one past the highest member.
    pub(crate) fn end(&self) -> Option<u32> {
        self.ranges.last().map(|range| range.1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    use super::*;

    proptest! {
        #[test]
        fn behaves_as_a_set(steps in prop::collection::vec((any::<bool>(), 0u32..60, 1u32..8), 1..60)) {
            let mut set = RangeSet::default();
            let mut model = BTreeSet::new();
            for (insert, start, length) in steps {
                if insert {
                    let mut added = Vec::new();
                    set.insert(start, start + length, |s, e| added.extend(s..e));
                    let expected: Vec<u32> =
                        (start..start + length).filter(|i| model.insert(*i)).collect();
                    prop_assert_eq!(added, expected);
                } else {
                    let mut removed = Vec::new();
                    set.remove_below(start, |s, e| removed.extend(s..e));
                    let expected: Vec<u32> = model.range(..start).copied().collect();
                    model.retain(|i| *i >= start);
                    prop_assert_eq!(removed, expected);
                }
                let members: Vec<u32> = set.ranges().iter().flat_map(|r| r.0..r.1).collect();
                prop_assert_eq!(&members, &model.iter().copied().collect::<Vec<_>>());
                prop_assert!(set.ranges().windows(2).all(|w| w[0].1 < w[1].0));
                prop_assert_eq!(set.nth_highest(3), model.iter().rev().nth(2).copied());
                prop_assert_eq!(set.count_within(10, 30), model.range(10..30).count() as u32);
                prop_assert_eq!(set.next_hole(10), (10..).find(|i| !model.contains(i)).unwrap());
            }
        }
    }
}
