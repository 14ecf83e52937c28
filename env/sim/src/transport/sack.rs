//! SACK blocks, and the store for those of acknowledgements in flight.

use crate::engine::packet::SackHandle;
pub(crate) use crate::scenario::MAX_SACK_BLOCKS;

/// Segments `[start, end)`.
pub(crate) type SackBlock = (u32, u32);

/// Up to three blocks, the most recent first; empty ones are `(0, 0)`.
pub(crate) type SackBlocks = [SackBlock; MAX_SACK_BLOCKS];

/// Puts a segment that arrived a second time in front (RFC 2883 §4); the last block is dropped.
pub(crate) fn with_duplicate(index: u32, blocks: Option<SackBlocks>) -> SackBlocks {
    let [first, second, _] = blocks.unwrap_or_default();
    [(index, index + 1), first, second]
}

/// Separates a segment that arrived a second time from the other blocks (RFC 2883 §4): the first block
/// reports such a segment if it is acknowledged already or lies within the second block.
pub(crate) fn split_duplicate(
    next_expected: u32,
    blocks: Option<&SackBlocks>,
) -> (Option<u32>, Option<SackBlocks>) {
    let Some(&[first, second, third]) = blocks else {
        return (None, None);
    };
    let is_empty = first.0 >= first.1;
    let within = second.0 <= first.0 && first.1 <= second.1;
    if is_empty || first.1 > next_expected && !within {
        return (None, Some([first, second, third]));
    }
    (Some(first.0), Some([second, third, (0, 0)]))
}

/// SACK blocks of the acknowledgements in flight.
///
/// Few acknowledgements carry blocks, so a packet holds only a handle. The code that consumes or drops
/// the packet must release the handle.
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
                SackHandle(u32::try_from(self.blocks.len() - 1).expect("fewer than packets"))
            }
        }
    }

    /// Releases a handle and returns its blocks.
    #[inline]
    pub(crate) fn take(&mut self, handle: SackHandle) -> Option<SackBlocks> {
        if handle == SackHandle::NONE {
            return None;
        }
        self.free.push(handle.0);
        Some(self.blocks[handle.0 as usize])
    }

    /// Returns the blocks of a handle.
    pub(crate) fn get(&self, handle: SackHandle) -> Option<SackBlocks> {
        match handle {
            SackHandle::NONE => None,
            SackHandle(index) => Some(self.blocks[index as usize]),
        }
    }

    /// Returns the number of entries in use.
    pub(crate) fn live(&self) -> usize {
        self.blocks.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_come_first_and_are_told_from_blocks() {
        let plain = [(5, 8), (3, 4), (0, 0)];
        assert_eq!(split_duplicate(2, Some(&plain)), (None, Some(plain)));
        assert_eq!(split_duplicate(2, None), (None, None));
        let below = with_duplicate(1, Some(plain));
        assert_eq!(below, [(1, 2), (5, 8), (3, 4)]);
        assert_eq!(split_duplicate(2, Some(&below)), (Some(1), Some(plain)));
        let within = with_duplicate(6, Some(plain));
        assert_eq!(split_duplicate(2, Some(&within)), (Some(6), Some(plain)));
        let alone = with_duplicate(1, None);
        assert_eq!(split_duplicate(2, Some(&alone)).0, Some(1));
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
