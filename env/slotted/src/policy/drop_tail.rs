//! Policies that only accept or drop the arriving packet.

use super::{Afterwards, Policy, Verdict};
use crate::queues::{Arrival, Queues, Ranking};
use crate::{Packet, SlottedError, Switch};

/// Complete sharing: accepts every packet that fits.
#[derive(Clone, Copy, Default, Debug)]
pub struct CompleteSharing;

impl Policy for CompleteSharing {
    #[inline]
    fn admit<Q: Queues>(&mut self, _queues: &Q, _arrival: &Arrival) -> Verdict {
        Verdict::Accept
    }
}

/// Static threshold (complete partitioning): accepts iff `q_i + 1 <= B/N`.
#[derive(Clone, Copy, Default, Debug)]
pub struct StaticThreshold;

impl Policy for StaticThreshold {
    #[inline]
    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        let length = queues.len(arrival.port()) + 1;
        Verdict::accept_if(length * queues.ports() as u64 <= queues.capacity())
    }
}

/// Dynamic Threshold (Choudhury and Hahne 1998): accepts iff `q_i < α(B - Q)`.
#[derive(Clone, Copy, Debug)]
pub struct DynamicThreshold {
    /// Control factor α, above 0.
    pub alpha: f64,
}

impl Policy for DynamicThreshold {
    #[inline]
    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        let free = queues.capacity() - queues.stored();
        Verdict::accept_if((queues.len(arrival.port()) as f64) < self.alpha * free as f64)
    }
}

/// Harmonic (Kesselman and Mansour 2004): the k-th longest queue holds at most `B/(k H_N)` packets,
/// where `H_N` is the N-th harmonic number.
///
/// With `q' = q_i + 1` and `k = 1 + #{j ≠ i : q_j >= q'}` it accepts iff `k q' <= B/H_N`.
#[derive(Clone, Copy, Debug)]
pub struct Harmonic {
    /// `B/H_N`.
    share: f64,
}

impl Harmonic {
    /// Creates the policy for a switch.
    pub fn new(switch: &Switch) -> Harmonic {
        // The smallest terms come first, which keeps the rounding error small.
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
        Verdict::accept_if(((1 + as_long) * length) as f64 <= self.share)
    }
}

/// Accepts the packets that a list marks: the schedule of a proof.
#[derive(Clone, Debug)]
pub struct Scripted<'a> {
    /// For each arrival, true if it is accepted. Arrivals beyond the end of the list are dropped.
    pub accepted: &'a [bool],
}

impl Policy for Scripted<'_> {
    #[inline]
    fn admit<Q: Queues>(&mut self, _queues: &Q, arrival: &Arrival) -> Verdict {
        Verdict::accept_if(self.accepted.get(arrival.index) == Some(&true))
    }
}

/// FollowLQD (Credence, Algorithm 2): the threshold `T_i` is the length that the queue would have
/// under LQD on the same arrivals. Accepts iff `q_i < T_i` and `Q < B`.
#[derive(Clone, Debug)]
pub struct FollowLqd {
    /// The queue lengths of LQD (`T_i`).
    thresholds: Ranking,
    /// The sum of the thresholds.
    total: u64,
    capacity: u64,
}

impl FollowLqd {
    /// Creates the policy with thresholds of 0.
    pub fn new(switch: &Switch) -> FollowLqd {
        FollowLqd {
            thresholds: Ranking::new(switch.ports as usize),
            total: 0,
            capacity: switch.buffer,
        }
    }

    /// Returns the threshold of a port (`T_i`), packets.
    #[inline]
    pub fn threshold(&self, port: usize) -> u64 {
        self.thresholds.len(port)
    }

    /// Updates LQD's queues after an arrival.
    #[inline]
    fn update(&mut self, port: usize) {
        if self.total < self.capacity {
            self.total += 1;
            self.thresholds.increase(port);
            return;
        }
        let longest = self.thresholds.longest_with(port);
        if longest != port {
            self.thresholds.decrease(longest);
            self.thresholds.increase(port);
        }
    }
}

impl Policy for FollowLqd {
    fn check(&self, packets: &[Packet]) -> Result<(), SlottedError> {
        unit_only("followlqd", packets)
    }

    #[inline]
    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        let port = arrival.port();
        self.update(port);
        Verdict::accept_if(queues.len(port) < self.threshold(port))
    }

    #[inline]
    fn after_transmission<Q: Queues>(&mut self, _queues: &Q, _transmitted: u64) -> Afterwards {
        self.total -= self.thresholds.decrease_all();
        Afterwards::Keep
    }

    fn idle(&mut self, slots: u64) {
        let mut left = slots;
        while left > 0 && self.total > 0 {
            self.total -= self.thresholds.decrease_all();
            left -= 1;
        }
        self.thresholds.skip(left);
    }
}

/// Credence (Algorithm 1): as FollowLQD, but an oracle must also predict that LQD keeps the packet.
/// While the longest queue is below `B/N` every packet is accepted.
#[derive(Clone, Debug)]
pub struct Credence {
    follower: FollowLqd,
    drops: Vec<bool>,
}

impl Credence {
    /// Creates the policy with predictions: `drops[i]` is true if LQD would drop or push out arrival
    /// `i`. Arrivals beyond the end of the list count as kept.
    pub fn new(switch: &Switch, drops: Vec<bool>) -> Credence {
        Credence {
            follower: FollowLqd::new(switch),
            drops,
        }
    }
}

impl Policy for Credence {
    fn check(&self, packets: &[Packet]) -> Result<(), SlottedError> {
        unit_only("credence", packets)
    }

    #[inline]
    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        let verdict = self.follower.admit(queues, arrival);
        if queues.longest() * (queues.ports() as u64) < queues.capacity() {
            return Verdict::Accept;
        }
        match self.drops.get(arrival.index) {
            Some(true) => Verdict::Drop,
            _ => verdict,
        }
    }

    #[inline]
    fn after_transmission<Q: Queues>(&mut self, queues: &Q, transmitted: u64) -> Afterwards {
        self.follower.after_transmission(queues, transmitted)
    }

    fn idle(&mut self, slots: u64) {
        self.follower.idle(slots);
    }
}

/// Refuses packets that are not all of work 1 and value 1.
pub(crate) fn unit_only(policy: &'static str, packets: &[Packet]) -> Result<(), SlottedError> {
    match packets.iter().find(|p| p.work > 1 || p.value > 1) {
        None => Ok(()),
        Some(packet) => Err(SlottedError::UnitOnly {
            policy,
            found: if packet.work > 1 { "work" } else { "values" },
        }),
    }
}
