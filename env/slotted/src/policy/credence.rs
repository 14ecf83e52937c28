use std::collections::VecDeque;

use rand_xoshiro::Xoshiro256PlusPlus;

use super::virtual_lqd::VirtualLqd;
use super::{Afterwards, LongestQueueDrop, Policy, Verdict, unit_only};
use crate::queues::{Arrival, Counts, Queues};
use crate::{NoObserver, Packet, SlottedError, Switch, run};
use bufgym_sim::rng;

/// Credence (Algorithm 1): FollowLQD that also asks an oracle whether LQD would lose the packet,
/// and a safeguard that accepts while the longest queue is below `B/N`.
#[derive(Clone, Debug)]
pub struct Credence {
    thresholds: VirtualLqd,
    drops: Vec<bool>,
}

impl Credence {
    /// With predictions: `drops[i]` says that LQD would drop or push out arrival `i`. An arrival
    /// without a prediction counts as kept.
    pub fn new(switch: &Switch, drops: Vec<bool>) -> Credence {
        Credence {
            thresholds: VirtualLqd::new(switch),
            drops,
        }
    }
}

impl Policy for Credence {
    fn check(&self, packets: &[Packet]) -> Result<(), SlottedError> {
        unit_only("credence", "lqd, bpd, bad, lwd, mtvd and mrd", packets)
    }

    #[inline]
    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        let port = arrival.port();
        self.thresholds.arrival(port);
        if queues.longest() * (queues.ports() as u64) < queues.capacity() {
            return Verdict::Accept;
        }
        let predicted_drop = self.drops.get(arrival.index).copied().unwrap_or(false);
        if queues.len(port) < self.thresholds.len(port) && !queues.is_full() && !predicted_drop {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }

    #[inline]
    fn after_transmission<Q: Queues>(&mut self, _queues: &Q, _transmitted: u64) -> Afterwards {
        self.thresholds.departures();
        Afterwards::Keep
    }

    fn idle(&mut self, slots: u64) {
        self.thresholds.idle(slots);
    }
}

/// Which of the arrivals LQD drops or pushes out: the perfect oracle.
///
/// # Errors
/// Packets that are not unit packets.
pub fn drops_of_lqd(switch: &Switch, packets: &[Packet]) -> Result<Vec<bool>, SlottedError> {
    let mut recording = Recording {
        stored: vec![VecDeque::new(); switch.ports as usize],
        lost: vec![false; packets.len()],
    };
    let mut queues = Counts::new(switch);
    run(&mut queues, &mut recording, packets, None, &mut NoObserver)?;
    Ok(recording.lost)
}

/// LQD on unit packets, which counts lengths only, with the packets of every queue beside it.
struct Recording {
    stored: Vec<VecDeque<usize>>,
    lost: Vec<bool>,
}

impl Policy for Recording {
    fn check(&self, packets: &[Packet]) -> Result<(), SlottedError> {
        unit_only("credence", "lqd, bpd, bad, lwd, mtvd and mrd", packets)
    }

    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        let verdict = LongestQueueDrop.admit(queues, arrival);
        match verdict {
            Verdict::Drop => self.lost[arrival.index] = true,
            Verdict::PushOut { port, .. } => {
                if let Some(last) = self.stored[port].pop_back() {
                    self.lost[last] = true;
                }
                self.stored[arrival.port()].push_back(arrival.index);
            }
            Verdict::Accept => self.stored[arrival.port()].push_back(arrival.index),
        }
        verdict
    }

    fn after_transmission<Q: Queues>(&mut self, _queues: &Q, _transmitted: u64) -> Afterwards {
        for queue in &mut self.stored {
            queue.pop_front();
        }
        Afterwards::Keep
    }
}

/// The predictions, each inverted with probability `flip`.
///
/// One number is drawn per prediction, so that with the same stream those inverted at a lower
/// probability are inverted at a higher one too.
pub fn flipped(drops: &[bool], flip: f64, mut random: Xoshiro256PlusPlus) -> Vec<bool> {
    drops
        .iter()
        .map(|drop| drop ^ (rng::uniform(&mut random) < flip))
        .collect()
}
