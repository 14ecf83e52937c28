//! Sharing with maximum queue lengths.

use super::{
    Bound, Definition, Deployment, Kind, PacketView, ParameterInfo, Policy, PolicyInfo, Search,
    Verdict, View,
};

pub(super) static DEFINITION: Definition = Definition {
    info: PolicyInfo {
        name: "smxq",
        summary: "sharing with maximum queue lengths",
        rule: "accept iff q_i + L <= K",
        source: "Irland 1978; Kamoun and Kleinrock 1980",
        deployment: Deployment::Today,
        parameters: &[ParameterInfo {
            name: "k",
            default: "2B/N",
            kind: Kind::Bytes,
            search: Search::log_to(1.0, Bound::Buffer(1.0))
                .at_least(Bound::Packets(1.0))
                .from(Bound::Queue(2.0)),
            meaning: "longest queue K, bytes; at least a full packet",
        }],
    },
    build: |arguments, scenario| {
        let queues = scenario.queue_count() as u64;
        let full = scenario.full_packet_bytes();
        match arguments.optional("k") {
            Some(k) if k < full => Err(format!(
                "k={k} is less than a full packet: {full} bytes are the least"
            )),
            k => Ok(MaximumQueueLengths {
                longest: k.unwrap_or(2 * scenario.network.buffer_bytes / queues),
            }
            .into()),
        }
    },
};

/// Accepts iff `q_i + L <= K`. With `K = B/N` it is complete partitioning, with `K = B` complete
/// sharing.
#[derive(Clone, Copy, Debug)]
pub struct MaximumQueueLengths {
    /// Longest queue K, bytes.
    pub longest: u64,
}

impl Policy for MaximumQueueLengths {
    fn listens(&self) -> bool {
        false
    }

    #[inline]
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        if view.buffer.queue(packet.queue) + packet.bytes <= self.longest {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }

    fn threshold(&self, view: View<'_>, _queue: usize) -> Option<u64> {
        Some(self.longest.min(view.buffer.capacity()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::switch::PolicySpec;
    use crate::switch::policy::workbench::Workbench;

    #[test]
    fn a_queue_takes_exactly_its_limit_and_not_a_byte_more() {
        let mut bench = Workbench::new(MaximumQueueLengths { longest: 4_000 }, 10_000, 4);
        assert!(bench.accepts(0, 3_000));
        assert!(!bench.accepts(0, 1_001), "one byte too many");
        assert!(bench.accepts(0, 1_000));
        assert!(!bench.accepts(0, 1));
        assert!(
            bench.accepts(1, 4_000),
            "the other queues have their own limit"
        );
        bench.depart(0);
        assert!(bench.accepts(0, 2_000) && !bench.accepts(0, 1_001));
    }

    #[test]
    fn by_default_two_equal_shares() {
        let built = |text: &str| {
            text.parse::<PolicySpec>()
                .unwrap()
                .build(&Scenario::default())
        };
        let limit = |text: &str| {
            let bench = Workbench::new(built(text).unwrap(), 1_000_000, 16);
            bench.policy.threshold(bench.view(), 3)
        };
        assert_eq!(limit("smxq"), Some(125_000));
        assert_eq!(limit("smxq:k=1518"), Some(1_518));
        let error = built("smxq:k=1517").unwrap_err().to_string();
        assert!(error.contains("1518 bytes"), "{error}");
    }
}
