//! Harmonic's bound under traffic of packets and acknowledgements.

use bufgym_sim::network::OneSwitch;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::generate;
use bufgym_util::rng::{Split, trace_seed};

#[test]
fn the_kth_longest_queue_keeps_its_bound_at_every_event() {
    let mut scenario = Scenario::default();
    for setting in [
        "flows=100",
        "active_ports=6",
        "incast_degree=8",
        "load=0.9",
        "buffer_bytes=100000",
    ] {
        scenario.set(setting).unwrap();
    }
    let trace = generate(&scenario, trace_seed(Split::Test, 1, 0));
    let policy: PolicySpec = "harmonic".parse().unwrap();
    let mut simulator = policy.simulator::<OneSwitch>(&scenario, &trace).unwrap();
    let harmonic_number: f64 = (1..=16).map(|k| 1.0 / f64::from(k)).sum();
    let longest = 100_000.0 / harmonic_number;
    let mut close = [false; 2];
    for _ in 0..100_000 {
        if !simulator.step() {
            break;
        }
        let mut lengths = simulator.buffer().queues().to_vec();
        lengths.sort_unstable_by_key(|&length| std::cmp::Reverse(length));
        for (k, &length) in (1_u32..).zip(&lengths) {
            let bound = longest / f64::from(k);
            assert!(length as f64 <= bound, "number {k} of {lengths:?}");
            if let Some(close) = close.get_mut(k as usize - 1) {
                *close |= length as f64 > bound - 1_518.0;
            }
        }
    }
    assert_eq!(close, [true; 2], "the bounds were reached");
    assert!(simulator.outcome().summary.drops > 100);
}
