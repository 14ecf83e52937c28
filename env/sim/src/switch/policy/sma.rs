//! Sharing with minimum allocation.

use super::{
    Bound, Definition, Deployment, Kind, PacketView, ParameterInfo, Policy, PolicyInfo, Search,
    Verdict, View,
};

pub(super) static DEFINITION: Definition = Definition {
    info: PolicyInfo {
        name: "sma",
        summary: "sharing with minimum allocation",
        rule: "accept iff what q_j + [j=i] L exceed m by, over all queues j, is at most B - N m",
        source: "Kamoun and Kleinrock 1980",
        deployment: Deployment::Today,
        parameters: &[ParameterInfo {
            name: "m",
            default: "B/4N",
            kind: Kind::Bytes,
            search: Search::log_to(1.0, Bound::Queue(1.0)).from(Bound::Queue(0.25)),
            meaning: "reserved for each queue, bytes; at most B/N",
        }],
    },
    build: |arguments, scenario| {
        let queues = scenario.queue_count() as u64;
        let share = scenario.network.buffer_bytes / queues;
        match arguments.optional("m") {
            Some(m) if m > share => Err(format!(
                "m={m} reserves more for {queues} queues than the buffer has: {share} bytes are \
                 the most"
            )),
            m => Ok(MinimumAllocation {
                reserved: m.unwrap_or(scenario.network.buffer_bytes / (4 * queues)),
            }
            .into()),
        }
    },
};

/// Every queue has `m` reserved bytes. The rest of the buffer, `B - N·m`, is a pool for the bytes
/// that exceed the reservations.
///
/// With `m = 0` it is complete sharing, with `m = B/N` complete partitioning. An arrival takes O(1)
/// time if it fits into the reservation of its queue or if the whole occupancy would fit into the
/// pool, else O(queues).
#[derive(Clone, Copy, Debug)]
pub struct MinimumAllocation {
    /// Bytes reserved for each queue; at most `B/N`.
    pub reserved: u64,
}

impl MinimumAllocation {
    fn pool(&self, view: View<'_>) -> u64 {
        let reserved = self.reserved * view.buffer.queues().len() as u64;
        view.buffer.capacity().saturating_sub(reserved)
    }

    /// Returns the used bytes of the pool.
    fn pooled(&self, view: View<'_>) -> u64 {
        let beyond = |length: &u64| length.saturating_sub(self.reserved);
        view.buffer.queues().iter().map(beyond).sum()
    }
}

impl Policy for MinimumAllocation {
    fn listens(&self) -> bool {
        false
    }

    #[inline]
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        let length = view.buffer.queue(packet.queue);
        let longer = length + packet.bytes;
        if longer <= self.reserved {
            return Verdict::Accept;
        }
        let pool = self.pool(view);
        if view.buffer.occupancy() + packet.bytes <= pool {
            return Verdict::Accept;
        }
        let more = longer - length.max(self.reserved);
        if self.pooled(view) + more <= pool {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }

    fn threshold(&self, view: View<'_>, queue: usize) -> Option<u64> {
        let length = view.buffer.queue(queue).max(self.reserved);
        Some(length + self.pool(view).saturating_sub(self.pooled(view)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::switch::PolicySpec;
    use crate::switch::policy::workbench::Workbench;

    #[test]
    fn reserved_bytes_are_there_however_full_the_pool() {
        // 4 x 1,000 bytes reserved, 6,000 shared.
        let mut bench = Workbench::new(MinimumAllocation { reserved: 1_000 }, 10_000, 4);
        assert_eq!(bench.policy.threshold(bench.view(), 0), Some(7_000));
        assert!(!bench.accepts(0, 7_001));
        assert!(bench.accepts(0, 7_000), "its own bytes and the whole pool");
        assert!(!bench.accepts(0, 1));
        for queue in 1..4 {
            assert!(!bench.accepts(queue, 1_001), "the pool is empty");
            assert!(bench.accepts(queue, 600) && bench.accepts(queue, 400));
            assert!(!bench.accepts(queue, 1));
        }
        assert_eq!(bench.buffer.free(), 0);
    }

    #[test]
    fn a_packet_may_lie_half_in_the_pool() {
        let mut bench = Workbench::new(MinimumAllocation { reserved: 1_000 }, 10_000, 4);
        assert!(bench.accepts(0, 6_500), "5,500 of the pool");
        assert!(bench.accepts(1, 800));
        assert!(!bench.accepts(1, 701), "501 of the pool");
        assert!(bench.accepts(1, 700), "500 of the pool");
        assert_eq!(bench.policy.threshold(bench.view(), 2), Some(1_000));
        bench.depart(0);
        assert_eq!(bench.policy.threshold(bench.view(), 2), Some(6_500));
    }

    #[test]
    fn by_default_a_quarter_is_reserved() {
        let built = |text: &str| {
            text.parse::<PolicySpec>()
                .unwrap()
                .build(&Scenario::default())
        };
        let limit = |text: &str| {
            let bench = Workbench::new(built(text).unwrap(), 1_000_000, 16);
            bench.policy.threshold(bench.view(), 3)
        };
        // 1,000,000 / (4 * 16) = 15,625, and a pool of three quarters.
        assert_eq!(limit("sma"), Some(765_625));
        assert_eq!(limit("sma:m=0"), Some(1_000_000));
        assert_eq!(limit("sma:m=62500"), Some(62_500));
        let error = built("sma:m=62501").unwrap_err().to_string();
        assert!(error.contains("62500 bytes"), "{error}");
    }
}
