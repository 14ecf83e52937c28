//! Ports of spines that draw on the buffers of leaves.

use bufgym_sim::network::{LeafSpine, Outcome, PooledLeafSpine, SimError};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::generate;
use bufgym_sim::units::Instant;

fn scenario(changes: &[&str]) -> Scenario {
    let mut scenario = Scenario::preset("leafspine-4x4").unwrap();
    for change in changes {
        scenario.set(change).unwrap();
    }
    scenario.validate().unwrap();
    scenario
}

fn finishes(outcome: &Outcome) -> Vec<Option<Instant>> {
    outcome.records.iter().map(|record| record.finish).collect()
}

/// If nothing is lost and nothing is marked, the owner of a queue's bytes makes no difference.
#[test]
fn flows_take_as_long_where_buffers_never_fill() {
    let of = |pool: &str| {
        let scenario = scenario(&[
            pool,
            "measure_ms=20",
            "transport=newreno",
            "ecn_k_packets=0",
        ]);
        let trace = generate(&scenario, 3);
        PolicySpec::unlimited().run(&scenario, &trace).unwrap()
    };
    let (own, pooled) = (of("spine_pool=own"), of("spine_pool=with_leaf"));
    assert_eq!(own.summary.drops + pooled.summary.drops, 0);
    assert_eq!(finishes(&own), finishes(&pooled));
    let [own_counts, pooled_counts] =
        [&own, &pooled].map(|outcome| outcome.summary.packets_forwarded);
    assert_eq!(own_counts, pooled_counts);
    assert_eq!((own.switches.len(), pooled.switches.len()), (6, 4));
    for (own, pooled) in own.switches.iter().zip(&pooled.switches) {
        assert_eq!((own.kind, pooled.kind), ("leaf", "leaf"));
        assert_eq!(own.buffer_bytes, pooled.buffer_bytes);
        assert_eq!(own.uplink_throughput, pooled.uplink_throughput);
        assert!(own.max_occupancy <= pooled.max_occupancy);
    }
}

/// Bytes of every pool and packets of the network are conserved while flows compete for small buffers,
/// also with transports that read telemetry.
#[test]
fn pools_are_never_larger_than_the_buffer_of_their_leaf() {
    for (policy, more) in [
        ("dt:alpha=0.5", "transport=newreno"),
        ("abm", "queues_per_port=2"),
        ("abm:estimate=artefact", "queues_per_port=2"),
        ("lqd", "transport=cubic"),
        ("dt+codel", "ecmp=spray"),
    ] {
        let scenario = scenario(&[
            "spine_pool=with_leaf",
            "buffer_bytes_per_port_gbps=1.5",
            "measure_ms=10",
            "query_share=1",
            more,
        ]);
        let trace = generate(&scenario, 4);
        let policy: PolicySpec = policy.parse().unwrap();
        let mut simulator = policy
            .simulator::<PooledLeafSpine>(&scenario, &trace)
            .unwrap();
        let mut events = 0_u32;
        while simulator.step() {
            events += 1;
            if events.is_multiple_of(64) {
                simulator.check_invariants().unwrap();
            }
        }
        simulator.check_invariants().unwrap();
        assert!(simulator.packets_are_placed_once(), "{policy}");
        assert!(simulator.records_are_balanced(), "{policy}");
        let outcome = simulator.outcome();
        assert!(outcome.summary.drops > 0, "{policy}");
        assert_eq!(outcome.summary.completed, outcome.summary.flows, "{policy}");
        let most = outcome.switches.iter().map(|row| row.max_occupancy);
        assert!(most.fold(0.0, f64::max) <= 1.0, "{policy}");
    }
}

#[test]
fn what_needs_a_buffer_of_every_switch_says_so() {
    let scenario = scenario(&["spine_pool=with_leaf", "measure_ms=1"]);
    let error = PolicySpec::baseline().simulator::<LeafSpine>(&scenario, &generate(&scenario, 1));
    let Err(SimError::Network(problem)) = error else {
        panic!("it runs");
    };
    assert!(problem.ends_with("must be own"), "{problem}");
}
