//! Dynamic Threshold with n saturated queues: each has `αB/(1 + nα)`, and `B/(1 + nα)` is free
//! (Choudhury and Hahne 1998, §III).

use bufgym_sim::network::OneSwitch;
use bufgym_sim::scenario::{RangeU32, Scenario};
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::{FlowSpec, Trace};
use bufgym_sim::units::{Duration, Instant};

const BUFFER: u64 = 400_000;

/// Returns traffic from two hosts to each of `saturated` ports at line rate, without waiting for
/// acknowledgements, for 9.7 ms.
fn overload(saturated: u32) -> (Scenario, Trace) {
    let scenario = Scenario::default().with(|scenario| {
        scenario.network.ports = 3 * saturated;
        scenario.traffic.active_ports = RangeU32::new(1, 1);
        scenario.traffic.incast_degree = RangeU32::new(1, 1);
        scenario.network.buffer_bytes = BUFFER;
        scenario.tcp.init_cwnd = 800;
    });
    let flows = (0..2 * saturated).map(|sender| FlowSpec {
        id: u64::from(sender),
        src: saturated + sender,
        dst: sender / 2,
        // Starts are not synchronous, or the port that is always first would have more.
        start: Instant::from_ns(1_357 * u64::from(sender)),
        size: 10_000_000,
        kind: 0,
        query: -1,
        priority: 0,
    });
    let trace = Trace {
        flows: flows.collect(),
        kinds: vec![Trace::DEFAULT_KIND.to_owned()],
        seed: 0,
    };
    (scenario, trace)
}

/// Returns the bytes of each saturated queue and the free bytes, on average from 5 to 9 ms.
fn measured(alpha: f64, saturated: u32) -> (Vec<f64>, f64) {
    let (scenario, trace) = overload(saturated);
    let policy: PolicySpec = format!("dt:alpha={alpha}").parse().unwrap();
    let mut simulator = policy.simulator::<OneSwitch>(&scenario, &trace).unwrap();
    let mut queues = vec![0.0; saturated as usize];
    let (mut free, mut samples) = (0.0, 0.0);
    let mut next = Instant::from_ms(5);
    while simulator.now() < Instant::from_ms(9) {
        assert!(simulator.step());
        if simulator.now() >= next {
            next += Duration::from_us(10);
            samples += 1.0;
            free += simulator.buffer().free() as f64;
            for (port, queue) in queues.iter_mut().enumerate() {
                *queue += simulator.buffer().queue(port) as f64;
            }
        }
    }
    assert!(samples > 300.0);
    queues.iter_mut().for_each(|queue| *queue /= samples);
    (queues, free / samples)
}

#[test]
fn saturated_queues_share_the_buffer_as_the_formula_says() {
    // The tolerance is a packet more or less in each queue: the shortest has 44.
    const PACKET: f64 = 1_518.0;
    for alpha in [0.5, 1.0, 2.0, 8.0] {
        for saturated in [1, 2, 4] {
            let (queues, free) = measured(alpha, saturated);
            let share = BUFFER as f64 / (1.0 + f64::from(saturated) * alpha);
            for queue in &queues {
                let expected = alpha * share;
                assert!(
                    (queue - expected).abs() < PACKET,
                    "alpha {alpha}, {saturated} queues: {queue} instead of {expected}"
                );
            }
            assert!(
                (free - share).abs() < f64::from(saturated) * PACKET,
                "alpha {alpha}, {saturated} queues: {free} free instead of {share}"
            );
        }
    }
}
