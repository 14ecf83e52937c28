//! The optimum of unit packets.
//!
//! The rule: accept every packet. When the buffer overflows, give up a packet of the queue that
//! would be empty last if all its later packets were accepted.
//!
//! Proof. It is enough to look at schedules that accept everything and give packets up only when
//! the buffer overflows, because that never makes a queue shorter. Let a best schedule give up a
//! packet of queue `a` where the rule gives up one of queue `b`, which would be empty no earlier.
//! Change the best schedule: it now holds one packet more in `a` and one less in `b`. When the best
//! schedule later gives up a packet of `b`, the changed one gives up a packet of `a`, and from then
//! on both are equal. Until then `b` of the best schedule loses packets by transmission only, so
//! its `a` is empty no later than its `b`. When `a` of the best schedule is empty, the changed one
//! transmits one packet more. When later `b` of the changed one is empty first, it transmits one
//! packet less, and both are equal. The changed schedule never stores more packets, and at no time
//! has it transmitted fewer. So the rule is optimal for every end of the run. (It is the LateQD of
//! "Clairvoyant" buffer sharing in Credence, Table 1.)

use bufgym_util::convert::signed;

use crate::{Outcome, Packet, Switch};

pub(super) fn optimum(switch: &Switch, packets: &[Packet], end: Option<u64>) -> Outcome {
    let mut queues = Queues::new(switch, packets);
    let mut outcome = Outcome::default();
    let mut next = 0;
    let mut slot = 0;
    loop {
        if queues.stored == 0 {
            let until = match packets.get(next) {
                Some(packet) => packet.slot,
                None => end.unwrap_or(slot),
            };
            slot = slot.max(end.map_or(until, |end| until.min(end)));
            if next == packets.len() {
                break;
            }
        }
        if end.is_some_and(|end| slot >= end) {
            break;
        }
        while let Some(packet) = packets.get(next)
            && packet.slot == slot
        {
            queues.accept(packet.port as usize, slot);
            if queues.stored > switch.buffer {
                queues.give_up(slot);
                outcome.dropped += 1;
            }
            next += 1;
        }
        outcome.transmitted += queues.transmit();
        slot += 1;
    }
    outcome.arrived = next as u64;
    outcome.transmitted_value = outcome.transmitted;
    outcome.slots = slot;
    outcome
}

struct Queues {
    lengths: Vec<u64>,
    /// Packets of each port that have arrived.
    arrived: Vec<usize>,
    /// For each queue that is not empty, the slot after whose transmission it would be empty.
    empty_after: Vec<u64>,
    future: Vec<Future>,
    stored: u64,
}

impl Queues {
    fn new(switch: &Switch, packets: &[Packet]) -> Queues {
        let ports = switch.ports as usize;
        let mut slots = vec![Vec::new(); ports];
        for packet in packets {
            slots[packet.port as usize].push(packet.slot);
        }
        Queues {
            lengths: vec![0; ports],
            arrived: vec![0; ports],
            empty_after: vec![0; ports],
            future: slots.iter().map(|slots| Future::new(slots)).collect(),
            stored: 0,
        }
    }

    fn accept(&mut self, port: usize, slot: u64) {
        self.lengths[port] += 1;
        self.arrived[port] += 1;
        self.stored += 1;
        if self.lengths[port] == 1 {
            self.look_ahead(port, slot);
        }
    }

    fn give_up(&mut self, slot: u64) {
        let last = (0..self.lengths.len())
            .filter(|port| self.lengths[*port] > 0)
            .max_by_key(|port| (self.empty_after[*port], std::cmp::Reverse(*port)));
        if let Some(port) = last {
            self.lengths[port] -= 1;
            self.stored -= 1;
            if self.lengths[port] > 0 {
                self.look_ahead(port, slot);
            }
        }
    }

    /// Computes when a queue would be empty. Slots are at most 2^50 plus the work of all packets, and
    /// lengths at most the number of packets, so that all of them have room for a sign.
    fn look_ahead(&mut self, port: usize, slot: u64) {
        let (length, arrived) = (self.lengths[port], self.arrived[port]);
        let level = signed(arrived) - length.cast_signed() - slot.cast_signed();
        let until = self.future[port].first_at_most(arrived, level);
        self.empty_after[port] = slot + length + (until - arrived) as u64 - 1;
    }

    fn transmit(&mut self) -> u64 {
        let mut transmitted = 0;
        for length in &mut self.lengths {
            transmitted += u64::from(*length > 0);
            *length = length.saturating_sub(1);
        }
        self.stored -= transmitted;
        transmitted
    }
}

/// The arrivals of one port. A queue with `q` packets in slot `t`, after `c` arrivals, is empty
/// before arrival `m >= c` comes iff `m - slot_m <= c - q - t`: a tree of minima over `m - slot_m`
/// finds the first such `m`.
struct Future {
    arrivals: usize,
    leaves: usize,
    least: Vec<i64>,
}

impl Future {
    fn new(slots: &[u64]) -> Future {
        let leaves = slots.len().next_power_of_two();
        let mut least = vec![i64::MAX; 2 * leaves];
        for (index, slot) in slots.iter().enumerate() {
            least[leaves + index] = signed(index) - slot.cast_signed();
        }
        for node in (1..leaves).rev() {
            least[node] = least[2 * node].min(least[2 * node + 1]);
        }
        Future {
            arrivals: slots.len(),
            leaves,
            least,
        }
    }

    /// Returns the first arrival from `from` on whose key is at most `level`, or the number of arrivals
    /// if there is none.
    fn first_at_most(&self, from: usize, level: i64) -> usize {
        if from >= self.arrivals {
            return self.arrivals;
        }
        let mut node = self.leaves + from;
        while self.least[node] > level {
            // Goes up while this is the right child, then to the next subtree.
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return self.arrivals;
            }
            node += 1;
        }
        while node < self.leaves {
            node *= 2;
            if self.least[node] > level {
                node += 1;
            }
        }
        node - self.leaves
    }
}
