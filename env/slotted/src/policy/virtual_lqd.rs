use crate::Switch;
use crate::queues::Ranking;

/// The queue lengths that LQD would have: Credence, Algorithm 2, `updateThreshold`.
#[derive(Clone, Debug)]
pub(super) struct VirtualLqd {
    lengths: Ranking,
    total: u64,
    capacity: u64,
}

impl VirtualLqd {
    pub(super) fn new(switch: &Switch) -> VirtualLqd {
        VirtualLqd {
            lengths: Ranking::new(switch.ports as usize),
            total: 0,
            capacity: switch.buffer,
        }
    }

    #[inline]
    pub(super) fn len(&self, port: usize) -> u64 {
        self.lengths.len(port)
    }

    #[inline]
    pub(super) fn arrival(&mut self, port: usize) {
        if self.total < self.capacity {
            self.total += 1;
            self.lengths.increase(port);
            return;
        }
        let longest = self.lengths.longest_with(port);
        if longest != port {
            self.lengths.decrease(longest);
            self.lengths.increase(port);
        }
    }

    /// The transmission phase: every queue that is not empty loses a packet.
    #[inline]
    pub(super) fn departures(&mut self) {
        self.total -= self.lengths.decrease_all();
    }

    pub(super) fn idle(&mut self, slots: u64) {
        let mut left = slots;
        while left > 0 && self.total > 0 {
            self.departures();
            left -= 1;
        }
        self.lengths.skip(left);
    }
}
