use super::{Arrival, Queues, Storage, Victim};

/// The lengths of queues that all lose one packet per slot, and the longest of them.
///
/// A queue is stored as the slot in which it will be empty, so the transmission phase changes only
/// the clock. A winner tree over these slots finds the longest queue, the lowest of several. A
/// queue that grows updates the tree upwards until it loses; a queue that shrinks updates it up to
/// the root.
#[derive(Clone, Debug)]
pub(crate) struct Ranking {
    ends: Vec<u64>,
    winners: Vec<u32>,
    leaves: usize,
    now: u64,
}

impl Ranking {
    pub(crate) fn new(ports: usize) -> Ranking {
        let leaves = ports.next_power_of_two();
        let mut ranking = Ranking {
            ends: vec![0; leaves],
            winners: vec![0; 2 * leaves],
            leaves,
            now: 0,
        };
        for (winner, leaf) in ranking.winners[leaves..].iter_mut().zip(0..) {
            *winner = leaf;
        }
        for node in (1..leaves).rev() {
            ranking.winners[node] = ranking.winners[2 * node];
        }
        ranking
    }

    #[inline]
    pub(crate) fn len(&self, port: usize) -> u64 {
        self.ends[port].saturating_sub(self.now)
    }

    /// Returns the longest queue, the lowest of several.
    #[inline]
    pub(crate) fn longest(&self) -> usize {
        self.winners[1] as usize
    }

    /// Returns the longest queue, with one packet added to `port`. Of several it is `port`, then the
    /// lowest.
    #[inline]
    pub(crate) fn longest_with(&self, port: usize) -> usize {
        let longest = self.longest();
        if self.len(port) + 1 >= self.len(longest) {
            port
        } else {
            longest
        }
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a switch has at most 2^20 ports"
    )]
    pub(crate) fn increase(&mut self, port: usize) {
        self.ends[port] = self.ends[port].max(self.now) + 1;
        let mut node = (self.leaves + port) / 2;
        while node >= 1 {
            let holder = self.winners[node] as usize;
            if holder != port {
                if !self.beats(port, holder) {
                    return;
                }
                self.winners[node] = port as u32;
            }
            node /= 2;
        }
    }

    /// Removes a packet from a queue, which must not be empty.
    #[inline]
    pub(crate) fn decrease(&mut self, port: usize) {
        debug_assert!(self.len(port) > 0);
        self.ends[port] -= 1;
        let mut node = (self.leaves + port) / 2;
        while node >= 1 {
            let left = self.winners[2 * node];
            let right = self.winners[2 * node + 1];
            let winner = if self.beats(right as usize, left as usize) {
                right
            } else {
                left
            };
            self.winners[node] = winner;
            node /= 2;
        }
    }

    #[inline]
    fn beats(&self, challenger: usize, holder: usize) -> bool {
        let (a, b) = (self.ends[challenger], self.ends[holder]);
        a > b || a == b && challenger < holder
    }

    /// Removes a packet from every queue that is not empty. Returns the number of these queues.
    #[inline]
    pub(crate) fn decrease_all(&mut self) -> u64 {
        let now = self.now;
        self.now += 1;
        self.ends.iter().map(|end| u64::from(*end > now)).sum()
    }

    pub(crate) fn skip(&mut self, slots: u64) {
        self.now += slots;
    }
}

/// Queues of unit packets, stored only as lengths.
#[derive(Clone, Debug)]
pub struct Counts {
    ranking: Ranking,
    ports: usize,
    capacity: u64,
    stored: u64,
}

impl Counts {
    /// Creates empty queues.
    pub fn new(switch: &crate::Switch) -> Counts {
        Counts {
            ranking: Ranking::new(switch.ports as usize),
            ports: switch.ports as usize,
            capacity: switch.buffer,
            stored: 0,
        }
    }
}

impl Queues for Counts {
    #[inline]
    fn ports(&self) -> usize {
        self.ports
    }

    #[inline]
    fn capacity(&self) -> u64 {
        self.capacity
    }

    #[inline]
    fn stored(&self) -> u64 {
        self.stored
    }

    #[inline]
    fn len(&self, port: usize) -> u64 {
        self.ranking.len(port)
    }

    #[inline]
    fn longest(&self) -> u64 {
        self.ranking.len(self.ranking.longest())
    }

    #[inline]
    fn longest_with(&self, arrival: &Arrival) -> usize {
        self.ranking.longest_with(arrival.port())
    }

    #[inline]
    fn work(&self, port: usize) -> u64 {
        self.len(port)
    }

    #[inline]
    fn value(&self, port: usize) -> u64 {
        self.len(port)
    }

    #[inline]
    fn largest_work(&self, port: usize) -> u64 {
        u64::from(self.len(port) > 0)
    }

    #[inline]
    fn smallest_value(&self, port: usize) -> Option<u64> {
        (self.len(port) > 0).then_some(1)
    }
}

impl Storage for Counts {
    #[inline]
    fn insert(&mut self, arrival: &Arrival) {
        debug_assert!(!self.is_full());
        self.ranking.increase(arrival.port());
        self.stored += 1;
    }

    #[inline]
    fn remove(&mut self, port: usize, _victim: Victim) -> Option<usize> {
        self.ranking.decrease(port);
        self.stored -= 1;
        None
    }

    #[inline]
    fn transmit(&mut self) -> (u64, u64) {
        let packets = self.ranking.decrease_all();
        self.stored -= packets;
        (packets, packets)
    }

    fn skip(&mut self, slots: u64) {
        debug_assert_eq!(self.stored, 0);
        self.ranking.skip(slots);
    }

    fn clear(&mut self, _lost: impl FnMut(usize)) {
        let longest = self.longest();
        self.ranking.skip(longest);
        self.stored = 0;
    }
}
