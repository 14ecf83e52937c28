//! A free list for state that few flows need at a time.

/// State that another flow can reuse.
pub(crate) trait Reset: Default {
    /// Resets the value, but keeps its allocated memory.
    fn reset(&mut self);
}

/// States that flows have given back. The pool allocates only when more states are in use than ever
/// before, so a run in a steady state allocates nothing.
#[derive(Clone, Default, Debug)]
pub(crate) struct Pool<T> {
    spare: Vec<Box<T>>,
}

impl<T: Reset> Pool<T> {
    /// Takes a spare state, or creates one.
    pub(crate) fn take(&mut self) -> Box<T> {
        self.spare.pop().unwrap_or_default()
    }

    pub(crate) fn give_back(&mut self, mut state: Box<T>) {
        state.reset();
        self.spare.push(state);
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.spare.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Reset for Vec<u8> {
        fn reset(&mut self) {
            self.clear();
        }
    }

    #[test]
    fn memory_goes_to_the_next_one() {
        let mut pool = Pool::<Vec<u8>>::default();
        let mut state = pool.take();
        state.extend([1; 100]);
        pool.give_back(state);
        let next = pool.take();
        assert!(next.is_empty() && next.capacity() >= 100);
        assert!(pool.take().capacity() == 0);
    }
}
