use super::{Policy, Verdict};
use crate::queues::{Arrival, Queues};

/// Dynamic Threshold (Choudhury and Hahne 1998): accepts iff `q_i < α(B - Q)`.
#[derive(Clone, Copy, Debug)]
pub struct DynamicThreshold {
    /// Control factor α, above 0.
    pub alpha: f64,
}

impl Policy for DynamicThreshold {
    #[inline]
    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        let free = queues.capacity() - queues.stored();
        if (queues.len(arrival.port()) as f64) < self.alpha * free as f64 {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }
}
