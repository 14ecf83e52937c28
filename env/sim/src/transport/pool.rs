//! States that few flows have at a time, passed on from one flow to the next.

/// What can be given to another flow.
pub(crate) trait Reset: Default {
    /// Makes it as good as new; its memory is kept.
    fn reset(&mut self);
}

/// States that flows have given back. Together with those in use there are as many as were ever in
/// use at a time, so that a run in a steady state allocates none.
#[derive(Clone, Default, Debug)]
pub(crate) struct Pool<T> {
    spare: Vec<Box<T>>,
}

impl<T: Reset> Pool<T> {
    /// A state as good as new.
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
