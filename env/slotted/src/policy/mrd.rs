use super::{Policy, Verdict, argmax_by};
use crate::queues::{Arrival, Queues, Victim};

/// What the length of a queue is divided by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ratio {
    /// The average value of its packets, as the proof of Theorem 7 does.
    #[default]
    Mean,
    /// Their total value, as the paper's text does.
    Total,
}

/// Maximal Ratio Drop: on a full buffer the queue with the largest ratio of length to value loses
/// its smallest value if the arrival's is larger, else the arrival is dropped.
#[derive(Clone, Copy, Default, Debug)]
pub struct MaximalRatioDrop {
    /// Which ratio.
    pub ratio: Ratio,
}

impl Policy for MaximalRatioDrop {
    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        if !queues.is_full() {
            return Verdict::Accept;
        }
        // |a|²/V_a or |a|/V_a against that of b, without division; an empty queue is below all.
        let numerator = |port: usize| {
            let len = u128::from(queues.len(port));
            match self.ratio {
                Ratio::Mean => len * len,
                Ratio::Total => len,
            }
        };
        let value = |port: usize| u128::from(queues.value(port).max(1));
        let port = argmax_by(queues.ports(), arrival.port(), |a, b| {
            (numerator(a) * value(b)).cmp(&(numerator(b) * value(a)))
        });
        let exceeds = queues
            .smallest_value(port)
            .is_some_and(|smallest| u64::from(arrival.packet.value) > smallest);
        if exceeds {
            Verdict::PushOut {
                port,
                victim: Victim::SmallestValue,
            }
        } else {
            Verdict::Drop
        }
    }
}
