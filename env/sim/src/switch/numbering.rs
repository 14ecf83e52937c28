//! Port and priority of a queue.

/// Queues of a switch are numbered port by port: queue `port · queues_per_port + priority`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    queues_per_port: usize,
    /// `⌊2^32 / queues_per_port⌋ + 1`. A product takes a fifth of the time of a division, and every
    /// switch computes a packet's port several times.
    reciprocal: u64,
}

impl Numbering {
    /// Creates the numbering for `queues_per_port` queues a port.
    pub(super) fn new(queues_per_port: usize) -> Numbering {
        Numbering {
            queues_per_port,
            reciprocal: (1 << 32) / queues_per_port as u64 + 1,
        }
    }

    /// Returns the number of queues of a port.
    #[inline(always)]
    pub(super) fn queues_per_port(self) -> usize {
        self.queues_per_port
    }

    /// Returns the port of a queue.
    ///
    /// The product exceeds `queue / queues_per_port · 2^32` by at most `queue`, which is less than
    /// `2^32 / queues_per_port` for the 2^16 queues that a switch can have.
    #[inline(always)]
    pub(super) fn port(self, queue: usize) -> usize {
        match self.queues_per_port {
            1 => queue,
            _ => ((queue as u64 * self.reciprocal) >> 32) as usize,
        }
    }

    /// Returns the priority of a queue.
    #[inline(always)]
    pub(super) fn priority(self, queue: usize) -> usize {
        queue - self.port(queue) * self.queues_per_port
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::topology::MAX_QUEUES;

    #[test]
    fn products_divide_exactly() {
        for queues in (1..=64).chain([1_000, 65_535, 65_536]) {
            let numbering = Numbering::new(queues);
            for queue in 0..MAX_QUEUES {
                let expected = (queue / queues, queue % queues);
                let found = (numbering.port(queue), numbering.priority(queue));
                assert_eq!(found, expected, "{queue} of {queues}");
            }
        }
    }
}
