use super::{Policy, Verdict, argmax_by};
use crate::queues::{Arrival, Queues, Victim};

/// Biggest Average Drop: on a full buffer the queue with the largest average remaining work loses
/// its largest packet if the arrival's work is below that average, else the arrival is dropped.
#[derive(Clone, Copy, Default, Debug)]
pub struct BiggestAverageDrop;

impl Policy for BiggestAverageDrop {
    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        if !queues.is_full() {
            return Verdict::Accept;
        }
        // W_a/|a| against W_b/|b|, without division; an empty queue is below every other.
        let work = |port: usize| u128::from(queues.work(port));
        let len = |port: usize| u128::from(queues.len(port).max(1));
        let port = argmax_by(queues.ports(), arrival.port(), |a, b| {
            (work(a) * len(b)).cmp(&(work(b) * len(a)))
        });
        if u128::from(arrival.packet.work) * len(port) < work(port) {
            Verdict::PushOut {
                port,
                victim: Victim::LargestWork,
            }
        } else {
            Verdict::Drop
        }
    }
}
