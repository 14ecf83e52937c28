use super::{Policy, Verdict};
use crate::queues::{Arrival, Queues};

/// Complete sharing: accepts whatever fits.
#[derive(Clone, Copy, Default, Debug)]
pub struct CompleteSharing;

impl Policy for CompleteSharing {
    #[inline]
    fn admit<Q: Queues>(&mut self, _queues: &Q, _arrival: &Arrival) -> Verdict {
        Verdict::Accept
    }
}
