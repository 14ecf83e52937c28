//! Which port and which priority a queue has.

/// Queues of a switch are numbered port by port: queue `port · queues_per_port + priority`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    queues_per_port: usize,
    /// `⌊2^32 / queues_per_port⌋ + 1`. A product takes a fifth of the time of a division, and a
    /// packet's port is asked for several times at every switch.
    reciprocal: u64,
}

impl Numbering {
    /// So many queues a port.
    pub(super) fn new(queues_per_port: usize) -> Numbering {
        Numbering {
            queues_per_port,
            reciprocal: (1 << 32) / queues_per_port as u64 + 1,
        }
    }

    /// Queues of a port.
    #[inline(always)]
    pub(super) fn queues_per_port(self) -> usize {
        self.queues_per_port
    }

    /// The port of a queue.
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

    /// The priority of a queue.
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
