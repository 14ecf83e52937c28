//! Fixed limits and reserved bytes at their extremes are complete sharing and complete partitioning,
//! packet for packet.

use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::generate;
use bufgym_sim::units::Instant;
use bufgym_util::rng::{Split, trace_seed};

/// Returns the time when every flow finishes, and the number of drops.
fn run(policy: &str, queues_per_port: u32) -> (Vec<Option<Instant>>, u64) {
    let mut scenario = Scenario::default();
    for setting in [
        "workload=fb_hadoop",
        "flows=200",
        "active_ports=4",
        "incast_degree=8",
        "load=0.9",
        "buffer_bytes=96000",
        "min_rto_us=10000",
    ] {
        scenario.set(setting).unwrap();
    }
    scenario.queues.queues_per_port = queues_per_port;
    let trace = generate(&scenario, trace_seed(Split::Test, 1, 0));
    let policy: PolicySpec = policy.parse().unwrap();
    let outcome = policy.run(&scenario, &trace).unwrap();
    let finishes = outcome.records.iter().map(|record| record.finish);
    (finishes.collect(), outcome.summary.drops)
}

#[test]
fn extremes_of_smxq_and_sma() {
    for queues_per_port in [1, 2] {
        let share = 96_000 / (16 * queues_per_port);
        let shared = run("cs", queues_per_port);
        let divided = run("st", queues_per_port);
        assert!(
            shared.1 > 20 && divided.1 > 20,
            "{} {}",
            shared.1,
            divided.1
        );
        assert_eq!(run("smxq:k=96000", queues_per_port), shared);
        assert_eq!(run("sma:m=0", queues_per_port), shared);
        assert_eq!(run(&format!("smxq:k={share}"), queues_per_port), divided);
        assert_eq!(run(&format!("sma:m={share}"), queues_per_port), divided);
        let between = [run("smxq", queues_per_port), run("sma", queues_per_port)];
        assert!(
            between
                .iter()
                .all(|result| *result != shared && *result != divided)
        );
    }
}
