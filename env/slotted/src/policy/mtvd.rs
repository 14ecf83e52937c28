use std::cmp::Reverse;

use super::{Policy, Verdict, argmax_by};
use crate::queues::{Arrival, Queues, Victim};

/// Minimal Total Value Drop: on a full buffer pushes out the smallest value if the arrival's is
/// larger, else drops the arrival.
#[derive(Clone, Copy, Default, Debug)]
pub struct MinimalTotalValueDrop;

impl Policy for MinimalTotalValueDrop {
    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        if !queues.is_full() {
            return Verdict::Accept;
        }
        let smallest = |port: usize| queues.smallest_value(port).unwrap_or(u64::MAX);
        let port = argmax_by(queues.ports(), arrival.port(), |a, b| {
            Reverse(smallest(a)).cmp(&Reverse(smallest(b)))
        });
        if u64::from(arrival.packet.value) > smallest(port) {
            Verdict::PushOut {
                port,
                victim: Victim::SmallestValue,
            }
        } else {
            Verdict::Drop
        }
    }
}
