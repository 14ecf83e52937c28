use super::{Policy, Verdict};
use crate::queues::{Arrival, Queues};

/// Static threshold (complete partitioning): accepts iff `q_i + 1 <= B/N`.
#[derive(Clone, Copy, Default, Debug)]
pub struct StaticThreshold;

impl Policy for StaticThreshold {
    #[inline]
    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        if (queues.len(arrival.port()) + 1) * queues.ports() as u64 <= queues.capacity() {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }
}
