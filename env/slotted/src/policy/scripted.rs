use super::{Policy, Verdict};
use crate::queues::{Arrival, Queues};

/// Accepts the packets that a list marks: the schedule of a proof.
#[derive(Clone, Debug)]
pub struct Scripted<'a> {
    /// Whether each arrival is accepted; those beyond the list are dropped.
    pub accepted: &'a [bool],
}

impl Policy for Scripted<'_> {
    #[inline]
    fn admit<Q: Queues>(&mut self, _queues: &Q, arrival: &Arrival) -> Verdict {
        if self.accepted.get(arrival.index) == Some(&true) {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }
}
