use super::{Afterwards, Policy, Verdict, argmax_by};
use crate::queues::{Arrival, Queues, Victim};

/// Largest Work Drop, as the proof of its 2-competitiveness uses it.
///
/// On a full buffer, with the arrival counted in its own queue, the queue with the most remaining
/// work loses its largest packet, which may be the arrival itself; of several queues the one with
/// the largest packet.
#[derive(Clone, Debug, Default)]
pub struct LargestWorkDrop {
    iterations: Option<Iterations>,
}

/// The iterations of the analysis of Theorem 5: one begins when the buffer is full and ends when
/// `B` packets or more were transmitted since; what is then in the buffer is flushed.
#[derive(Clone, Debug, Default)]
pub struct Iterations {
    /// Transmitted since the iteration began; `None` between two.
    within: Option<u64>,
    between: u64,
    /// Iterations that ended.
    pub completed: u64,
    /// Least number of packets transmitted before an iteration and since the one before it (`T`);
    /// `None` before the first.
    pub least_between: Option<u64>,
}

impl LargestWorkDrop {
    /// With the flush of the analysis at the end of every iteration.
    pub fn flushing() -> LargestWorkDrop {
        LargestWorkDrop {
            iterations: Some(Iterations::default()),
        }
    }

    /// The iterations so far, with the flush.
    pub fn iterations(&self) -> Option<&Iterations> {
        self.iterations.as_ref()
    }
}

impl Iterations {
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
        let total = |port: usize| queues.work(port) + if port == own { work } else { 0 };
        let largest = |port: usize| {
            let counted = if port == own { work } else { 0 };
            queues.largest_work(port).max(counted)
        };
        let port = argmax_by(queues.ports(), own, |a, b| {
            total(a)
                .cmp(&total(b))
                .then_with(|| largest(a).cmp(&largest(b)))
        });
        if port == own && queues.largest_work(own) <= work {
            Verdict::Drop
        } else {
            Verdict::PushOut {
                port,
                victim: Victim::LargestWork,
            }
        }
    }

    fn after_transmission<Q: Queues>(&mut self, queues: &Q, transmitted: u64) -> Afterwards {
        match &mut self.iterations {
            Some(iterations) => iterations.transmitted(transmitted, queues.capacity()),
            None => Afterwards::Keep,
        }
    }
}
