use super::{Policy, Verdict};
use crate::queues::{Arrival, Queues, Victim};

/// Longest Queue Drop.
///
/// On a full buffer the queue that is longest with the arrival counted in its own loses its last
/// packet; where that is the arrival's own queue, the arrival is dropped. Of several queues the
/// one with the largest remaining work of a packet, the arrival included.
#[derive(Clone, Copy, Default, Debug)]
pub struct LongestQueueDrop;

impl Policy for LongestQueueDrop {
    #[inline]
    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        if !queues.is_full() {
            return Verdict::Accept;
        }
        let longest = queues.longest_with(arrival);
        if longest == arrival.port() {
            Verdict::Drop
        } else {
            Verdict::PushOut {
                port: longest,
                victim: Victim::Last,
            }
        }
    }
}
