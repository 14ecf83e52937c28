use super::{Policy, Verdict};
use crate::Switch;
use crate::queues::{Arrival, Queues};

/// Harmonic (Kesselman and Mansour 2004): the k-th longest queue stays at `B/(k H_N)` or below,
/// `H_N` the N-th harmonic number.
///
/// With `q' = q_i + 1` and `k = 1 + #{j ≠ i : q_j >= q'}` accepts iff `k q' <= B/H_N`.
#[derive(Clone, Copy, Debug)]
pub struct Harmonic {
    share: f64,
}

impl Harmonic {
    /// For a switch, on whose ports `H_N` depends.
    pub fn new(switch: &Switch) -> Harmonic {
        // From the smallest term up, which loses least.
        let harmonic: f64 = (1..=switch.ports).rev().map(|k| 1.0 / f64::from(k)).sum();
        Harmonic {
            share: switch.buffer as f64 / harmonic,
        }
    }
}

impl Policy for Harmonic {
    #[inline]
    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        let own = arrival.port();
        let length = queues.len(own) + 1;
        let as_long = (0..queues.ports())
            .filter(|port| *port != own && queues.len(*port) >= length)
            .count() as u64;
        if ((1 + as_long) * length) as f64 <= self.share {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }
}
