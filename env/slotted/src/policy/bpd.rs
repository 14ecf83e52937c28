use super::{Policy, Verdict, argmax_by};
use crate::queues::{Arrival, Queues, Victim};

/// Biggest Packet Drop: on a full buffer pushes out the packet with the largest remaining work if
/// the arrival has less, else drops the arrival.
#[derive(Clone, Copy, Default, Debug)]
pub struct BiggestPacketDrop;

impl Policy for BiggestPacketDrop {
    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        if !queues.is_full() {
            return Verdict::Accept;
        }
        let port = argmax_by(queues.ports(), arrival.port(), |a, b| {
            queues.largest_work(a).cmp(&queues.largest_work(b))
        });
        if u64::from(arrival.packet.work) < queues.largest_work(port) {
            Verdict::PushOut {
                port,
                victim: Victim::LargestWork,
            }
        } else {
            Verdict::Drop
        }
    }
}
