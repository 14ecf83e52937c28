//! Copies of a trace that differ by chance alone.

use std::collections::{BTreeMap, BTreeSet};

use bufgym_sim::traffic::Trace;
use bufgym_sim::units::{Duration, Instant};
use bufgym_util::rng;

/// Returns the trace with the start of every flow delayed by a random time of at most `jitter`, a whole
/// number of nanoseconds, each with the same probability. Flows that start together get the same delay, and
/// groups that start one after the other keep their order. Everything else stays unchanged.
///
/// TCP in a shared buffer is chaotic: delays much shorter than a packet's way through the network
/// decide which packets meet a full queue. So a copy has the same traffic and differs by chance. `seed`,
pub fn jittered(trace: &Trace, jitter: Duration, seed: u64, label: &str, copy: u64) -> Trace {
    let mut rng = rng::stream(seed, label, copy);
    let groups: BTreeSet<u64> = trace.flows.iter().map(|flow| flow.start.as_ns()).collect();
    let mut least = 0;
    let delayed: BTreeMap<u64, u64> = groups
        .into_iter()
        .map(|start| {
            let delay = rng::below(&mut rng, jitter.as_ns() + 1);
            // A group that would overtake the previous one starts just after it.
            let moved = (start + delay).max(least);
            least = moved + 1;
            (start, moved)
        })
        .collect();
    let mut copy = trace.clone();
    for flow in &mut copy.flows {
        flow.start = Instant::from_ns(delayed[&flow.start.as_ns()]);
    }
    copy
}

#[cfg(test)]
mod tests {
    use bufgym_sim::scenario::Scenario;
    use bufgym_sim::traffic::{FlowSpec, generate};
    use bufgym_util::rng::{Split, trace_seed};
    use proptest::prelude::*;

    use super::*;

    /// Returns everything except the start, which must not change.
    fn rest(flow: &FlowSpec) -> FlowSpec {
        FlowSpec {
            start: Instant::ZERO,
            ..*flow
        }
    }

    fn keeps_the_structure(trace: &Trace, copy: &Trace, jitter: Duration) {
        assert_eq!(trace.flows.len(), copy.flows.len());
        assert_eq!((trace.seed, &trace.kinds), (copy.seed, &copy.kinds));
        for (before, after) in trace.flows.iter().zip(&copy.flows) {
            assert_eq!(rest(before), rest(after));
            assert!(before.start <= after.start);
            assert!(after.start - before.start <= jitter);
        }
        for (a, b) in trace.flows.iter().zip(&copy.flows) {
            for (c, d) in trace.flows.iter().zip(&copy.flows) {
                assert_eq!(a.start.cmp(&c.start), b.start.cmp(&d.start));
            }
        }
    }

    #[test]
    fn sizes_order_and_groups_of_a_generated_trace_stay() {
        let mut scenario = Scenario::default();
        scenario.set("flows=150").unwrap();
        let trace = generate(&scenario, trace_seed(Split::Validation, 1, 0));
        let together = |pair: &[FlowSpec]| pair[0].start == pair[1].start;
        assert!(trace.flows.windows(2).any(together), "no group to keep");
        let jitter = Duration::from_us(10);
        let copies: Vec<Trace> = (0..3)
            .map(|copy| jittered(&trace, jitter, 7, "test", copy))
            .collect();
        for copy in &copies {
            keeps_the_structure(&trace, copy, jitter);
            assert_ne!(copy, &trace);
        }
        assert_ne!(copies[0], copies[1]);
        assert_eq!(copies[2], jittered(&trace, jitter, 7, "test", 2));
        assert_ne!(copies[0], jittered(&trace, jitter, 8, "test", 0));
        assert_ne!(copies[0], jittered(&trace, jitter, 7, "other", 0));
        assert_eq!(trace, jittered(&trace, Duration::ZERO, 7, "test", 0));
    }

    proptest! {
        /// The order also holds if starts are closer together than the delays, and in any order.
        #[test]
        fn nobody_overtakes(starts in prop::collection::vec(0u64..60, 1..30), seed in any::<u64>()) {
            let flow = |(id, &start): (usize, &u64)| FlowSpec {
                id: id as u64,
                src: 0,
                dst: 1,
                start: Instant::from_ns(start),
                size: 1 + id as u64,
                kind: 0,
                query: -1,
                priority: 0,
            };
            let trace = Trace {
                flows: starts.iter().enumerate().map(flow).collect(),
                ..Trace::default()
            };
            let jitter = Duration::from_ns(40);
            keeps_the_structure(&trace, &jittered(&trace, jitter, seed, "test", 0), jitter);
        }
    }
}
