use super::virtual_lqd::VirtualLqd;
use super::{Afterwards, Policy, Verdict, unit_only};
use crate::queues::{Arrival, Queues};
use crate::{Packet, SlottedError, Switch};

/// FollowLQD (Credence, Algorithm 2): drop-tail with LQD's queue lengths on the same arrivals as
/// thresholds. Accepts iff `q_i < T_i` and `Q < B`.
#[derive(Clone, Debug)]
pub struct FollowLqd {
    thresholds: VirtualLqd,
}

impl FollowLqd {
    /// With thresholds of 0.
    pub fn new(switch: &Switch) -> FollowLqd {
        FollowLqd {
            thresholds: VirtualLqd::new(switch),
        }
    }

    /// The threshold of a port (`T_i`), packets.
    pub fn threshold(&self, port: usize) -> u64 {
        self.thresholds.len(port)
    }
}

impl Policy for FollowLqd {
    fn check(&self, packets: &[Packet]) -> Result<(), SlottedError> {
        unit_only("followlqd", "lqd, bpd, bad, lwd, mtvd and mrd", packets)
    }

    #[inline]
    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        let port = arrival.port();
        self.thresholds.arrival(port);
        if queues.len(port) < self.thresholds.len(port) {
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
