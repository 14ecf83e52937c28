//! Policies that push packets out of a full buffer. All accept every packet while there is space.

use std::cmp::Reverse;

use super::{Afterwards, Policy, Verdict};
use crate::queues::{Arrival, Queues, Victim, argmax_by};

/// Longest Queue Drop.
///
/// The arrival is counted in its own queue. The longest queue loses its last packet; if that is the
/// arrival's own queue, the arrival is dropped. Of several longest queues the one with the packet of
/// the largest remaining work is taken.
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
            Verdict::PushOut(longest, Victim::Last)
        }
    }
}

/// Biggest Packet Drop: pushes out the packet with the largest remaining work if the arrival has
/// less, else drops the arrival.
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
            Verdict::PushOut(port, Victim::LargestWork)
        } else {
            Verdict::Drop
        }
    }
}

/// Biggest Average Drop: the queue with the largest average remaining work loses its largest packet
/// if the arrival's work is below that average, else the arrival is dropped.
#[derive(Clone, Copy, Default, Debug)]
pub struct BiggestAverageDrop;

impl Policy for BiggestAverageDrop {
    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        if !queues.is_full() {
            return Verdict::Accept;
        }
        // Compares W_a/|a| with W_b/|b| without division. An empty queue is below all others.
        let work = |port: usize| u128::from(queues.work(port));
        let len = |port: usize| u128::from(queues.len(port).max(1));
        let port = argmax_by(queues.ports(), arrival.port(), |a, b| {
            (work(a) * len(b)).cmp(&(work(b) * len(a)))
        });
        if u128::from(arrival.packet.work) * len(port) < work(port) {
            Verdict::PushOut(port, Victim::LargestWork)
        } else {
            Verdict::Drop
        }
    }
}

/// Largest Work Drop, as the proof of its 2-competitiveness uses it.
///
/// The arrival is counted in its own queue. The queue with the most remaining work loses its largest
/// packet, which may be the arrival itself. Of several such queues the one with the largest packet
/// is taken.
#[derive(Clone, Debug, Default)]
pub struct LargestWorkDrop {
    iterations: Option<Iterations>,
}

/// The iterations of the analysis of Theorem 5.
///
/// An iteration begins when the buffer is full. It ends when at least `B` packets were transmitted
/// since then; the buffer is then flushed.
#[derive(Clone, Debug, Default)]
pub struct Iterations {
    /// Packets transmitted since the iteration began; `None` outside an iteration.
    within: Option<u64>,
    /// Packets transmitted since the last iteration ended.
    between: u64,
    /// Iterations that ended.
    pub completed: u64,
    /// Least number of packets transmitted between the end of an iteration, or the start of the run,
    /// and the next iteration (`T`); `None` before the first iteration.
    pub least_between: Option<u64>,
}

impl LargestWorkDrop {
    /// Creates the policy with the flush of the analysis at the end of every iteration.
    pub fn flushing() -> LargestWorkDrop {
        LargestWorkDrop {
            iterations: Some(Iterations::default()),
        }
    }

    /// Returns the iterations so far; `None` for the policy without the flush.
    pub fn iterations(&self) -> Option<&Iterations> {
        self.iterations.as_ref()
    }
}

impl Iterations {
    /// Notes that a packet arrived at a full buffer.
    fn congested(&mut self) {
        if self.within.is_none() {
            self.within = Some(0);
            let least = self.least_between.unwrap_or(u64::MAX);
            self.least_between = Some(least.min(self.between));
        }
    }

    fn transmitted(&mut self, packets: u64, capacity: u64) -> Afterwards {
        let Some(within) = &mut self.within else {
            self.between += packets;
            return Afterwards::Keep;
        };
        *within += packets;
        if *within < capacity {
            return Afterwards::Keep;
        }
        self.within = None;
        self.between = 0;
        self.completed += 1;
        Afterwards::Flush
    }
}

impl Policy for LargestWorkDrop {
    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        if !queues.is_full() {
            return Verdict::Accept;
        }
        if let Some(iterations) = &mut self.iterations {
            iterations.congested();
        }
        let own = arrival.port();
        let work = u64::from(arrival.packet.work);
        let counted = |port: usize| if port == own { work } else { 0 };
        let rank = |port: usize| {
            let total = queues.work(port) + counted(port);
            (total, queues.largest_work(port).max(counted(port)))
        };
        let port = argmax_by(queues.ports(), own, |a, b| rank(a).cmp(&rank(b)));
        if port == own && queues.largest_work(own) <= work {
            Verdict::Drop
        } else {
            Verdict::PushOut(port, Victim::LargestWork)
        }
    }

    fn after_transmission<Q: Queues>(&mut self, queues: &Q, transmitted: u64) -> Afterwards {
        match &mut self.iterations {
            Some(iterations) => iterations.transmitted(transmitted, queues.capacity()),
            None => Afterwards::Keep,
        }
    }
}

/// Minimal Total Value Drop: pushes out the packet with the smallest value if the arrival's is
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
            Verdict::PushOut(port, Victim::SmallestValue)
        } else {
            Verdict::Drop
        }
    }
}

/// Divisor of a queue's length in [`MaximalRatioDrop`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ratio {
    /// The average value of the queue's packets, as in the proof of Theorem 7.
    #[default]
    Mean,
    /// The total value of the queue's packets, as in the text of the paper.
    Total,
}

/// Maximal Ratio Drop: the queue with the largest ratio of length to value loses its packet of the
/// smallest value if the arrival's value is larger, else the arrival is dropped.
#[derive(Clone, Copy, Default, Debug)]
pub struct MaximalRatioDrop {
    /// Ratio that the policy uses.
    pub ratio: Ratio,
}

impl Policy for MaximalRatioDrop {
    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        if !queues.is_full() {
            return Verdict::Accept;
        }
        // Compares |a|²/V_a or |a|/V_a with that of b without division. An empty queue is below all
        // others.
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
        match queues.smallest_value(port) {
            Some(smallest) if u64::from(arrival.packet.value) > smallest => {
                Verdict::PushOut(port, Victim::SmallestValue)
            }
            _ => Verdict::Drop,
        }
    }
}
