//! A first-in-first-out queue for the packet path.

/// A queue in a buffer whose length is a power of two, so that a mask finds the slot.
///
/// Grows by doubling and never shrinks: a queue that has reached its largest length allocates no
/// more.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    slots: Vec<T>,
    /// Items ever taken.
    head: usize,
    /// Items ever added.
    tail: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Ring {
            slots: Vec::new(),
            head: 0,
            tail: 0,
        }
    }
}

impl<T: Copy> Ring<T> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.tail - self.head
    }

    /// Complexity: O(1), amortised.
    #[inline]
    pub(crate) fn push_back(&mut self, item: T) {
        if self.len() == self.slots.len() {
            self.grow(item);
        }
        let slot = self.tail & (self.slots.len() - 1);
        self.slots[slot] = item;
        self.tail += 1;
    }

    /// Complexity: O(1).
    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let first = self.front()?;
        self.head += 1;
        Some(first)
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<T> {
        if self.head == self.tail {
            return None;
        }
        Some(self.slots[self.head & (self.slots.len() - 1)])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let mask = self.slots.len().wrapping_sub(1);
        (self.head..self.tail).map(move |index| &self.slots[index & mask])
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, filler: T) {
        let mut slots: Vec<T> = Vec::with_capacity((2 * self.slots.len()).max(4));
        slots.extend(self.iter());
        (self.head, self.tail) = (0, slots.len());
        slots.resize(slots.capacity().next_power_of_two(), filler);
        self.slots = slots;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_as_a_queue(steps in prop::collection::vec(any::<bool>(), 0..400)) {
            let (mut ring, mut model) = (Ring::default(), VecDeque::new());
            for (number, push) in steps.into_iter().enumerate() {
                if push {
                    ring.push_back(number);
                    model.push_back(number);
                } else {
                    prop_assert_eq!(ring.pop_front(), model.pop_front());
                }
                prop_assert_eq!(ring.len(), model.len());
                prop_assert_eq!(ring.front(), model.front().copied());
                prop_assert!(ring.iter().eq(model.iter()));
            }
        }
    }
}
