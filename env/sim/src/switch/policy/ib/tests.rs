//! Dropping of elephants: which packets are dropped, and when.

use super::*;
use crate::switch::policy::workbench::Workbench;

/// Returns parameters for 10 Gbit/s: intervals of 50 us, elephants from 1 MB on, a short target queue.
fn config() -> IntelligentBufferConfig {
    let scenario = Scenario::default().with(|scenario| {
        scenario.network.rate_bps = 10_000_000_000;
    });
    IntelligentBufferConfig {
        initial_share: 0,
        ..IntelligentBufferConfig::suggested(&scenario)
    }
}

/// Returns a switch whose port 0 has 151 kB. That is more than the 150 kB from which on elephants are
/// dropped, and there is room for Dynamic Threshold.
fn congested(config: IntelligentBufferConfig) -> Workbench<IntelligentBuffer> {
    let mut bench = Workbench::new(IntelligentBuffer::new(config, 2), 100_000_000, 2);
    bench.buffer.store(0, 151_000, Instant::ZERO);
    bench
}

/// Sends `bytes` of a flow in each of `intervals` intervals into a queue that keeps its length. Returns
/// the total number of lost packets.
fn send(bench: &mut Workbench<IntelligentBuffer>, flow: u32, bytes: u64, intervals: u64) -> u64 {
    let mut lost = 0;
    for _ in 0..intervals {
        let packets = bytes / 1_000;
        for _ in 0..packets {
            bench.now += config().interval / packets;
            let packet = PacketView {
                flow,
                ..PacketView::of_port(0, 1_000)
            };
            match bench.arrive(packet) {
                Ok(()) => assert!(bench.depart(0)),
                Err(loss) => {
                    assert_eq!(loss, Loss::Refused);
                    lost += 1;
                }
            }
        }
    }
    lost
}

#[test]
fn a_flow_is_dropped_from_its_second_megabyte_on() {
    let mut bench = congested(config());
    // 50 kB per interval: 20 intervals to the megabyte.
    assert_eq!(send(&mut bench, 7, 50_000, 20), 0);
    assert_eq!(bench.policy.queues[0].share.bytes(), 0.0);
    assert_eq!(
        send(&mut bench, 7, 50_000, 20),
        1_000,
        "nothing is fair: all are lost"
    );
    assert_eq!(
        send(&mut bench, 8, 50_000, 20),
        0,
        "another flow through the same queue"
    );
}

#[test]
fn mice_are_never_dropped() {
    let mut bench = congested(config());
    for mouse in 0..2_000 {
        let flow = 100 + mouse;
        assert_eq!(send(&mut bench, flow, 20_000, 1), 0);
        assert_eq!(
            send(&mut bench, 7, 50_000, 1),
            if mouse < 20 { 0 } else { 50 }
        );
    }
}

#[test]
fn an_elephant_loses_what_exceeds_the_fair_share() {
    // The queue has the target length, so the share stays.
    for (share, expected) in [(25_000, 0.5), (40_000, 0.2), (50_000, 0.0), (60_000, 0.0)] {
        let config = IntelligentBufferConfig {
            initial_share: share,
            reference_bytes: 151_000,
            ..config()
        };
        let mut bench = congested(config);
        let note = |bench: &mut Workbench<IntelligentBuffer>| {
            // The queue had 151 kB from the beginning.
            bench.policy.queues[0].share = FairShare::steady(&config, 151_000);
        };
        note(&mut bench);
        send(&mut bench, 7, 50_000, 21);
        let lost = send(&mut bench, 7, 50_000, 400) as f64 / 20_000.0;
        // Six standard deviations are 0.021 at one half.
        assert!((lost - expected).abs() < 0.022, "{share}: {lost}");
        assert!((bench.policy.queues[0].share.bytes() - share as f64).abs() < 1.0);
    }
}

#[test]
fn rates_are_those_of_flows_not_of_queues() {
    // Two elephants in one queue, 40 kB and 10 kB per interval, and a fair share of 20 kB.
    let config = IntelligentBufferConfig {
        initial_share: 20_000,
        reference_bytes: 151_000,
        ..config()
    };
    let mut bench = congested(config);
    bench.policy.queues[0].share = FairShare::steady(&config, 151_000);
    let [mut fast, mut slow] = [0, 0];
    for packet in 0..40_000_u32 {
        bench.now += Duration::from_us(1);
        let flow = if packet % 5 == 0 { 1 } else { 2 };
        let packet = PacketView {
            flow,
            ..PacketView::of_port(0, 1_000)
        };
        let lost = bench.arrive(packet).is_err();
        if !lost {
            bench.depart(0);
        }
        let count = if flow == 1 { &mut slow } else { &mut fast };
        *count += u32::from(lost);
    }
    assert_eq!(slow, 0);
    // The first thousand of 32,000 packets belong to no elephant; P = 1 - 20/40.
    let share = f64::from(fast) / 31_000.0;
    assert!((share - 0.5).abs() < 0.02, "{share}");
}

#[test]
fn an_elephant_is_safe_in_a_short_queue() {
    let mut bench = congested(config());
    send(&mut bench, 7, 50_000, 20);
    bench.buffer.release(0, 1_001, bench.now);
    assert_eq!(send(&mut bench, 7, 50_000, 1), 0, "149,999 bytes");
    bench.buffer.store(0, 2, bench.now);
    assert_eq!(send(&mut bench, 7, 50_000, 1), 50, "150,001 bytes");
}

#[test]
fn an_idle_elephant_is_a_mouse_again() {
    let mut bench = congested(config());
    send(&mut bench, 7, 50_000, 20);
    // The next packet comes a microsecond later, at the beginning of an interval.
    bench.now += Duration::from_ms(5) - Duration::from_us(1);
    assert_eq!(
        send(&mut bench, 7, 50_000, 1),
        0,
        "nothing was sent in the interval before"
    );
    assert_eq!(
        send(&mut bench, 7, 50_000, 1),
        50,
        "idle for 5 ms, not for longer"
    );
    bench.now += Duration::from_ms(5);
    assert_eq!(send(&mut bench, 7, 50_000, 19), 0);
}

#[test]
fn the_same_seed_drops_the_same_packets() {
    let run = |seed| {
        let config = IntelligentBufferConfig {
            initial_share: 25_000,
            reference_bytes: 151_000,
            seed,
            ..config()
        };
        let mut bench = congested(config);
        bench.policy.queues[0].share = FairShare::steady(&config, 151_000);
        (0..60)
            .map(|_| send(&mut bench, 7, 50_000, 1))
            .collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn parameters_follow_the_rate() {
    let at_1g = IntelligentBufferConfig::suggested(&Scenario::default());
    assert_eq!(at_1g.interval, Duration::from_us(500));
    assert_eq!(at_1g.queue_bytes, 15_000);
    assert_eq!(at_1g.age, Duration::from_ms(50));
    // 4 * 10 us at 1 Gbit/s are 5,000 bytes; two lines for 1,518 and for 64 bytes.
    assert_eq!(at_1g.reference_bytes, 5_000 + 2 * 1_518 + 2 * 64);
    assert_eq!(
        (config().interval, config().queue_bytes),
        (Duration::from_us(50), 150_000)
    );
}

#[test]
fn an_interval_takes_time() {
    let spec: crate::switch::PolicySpec = "ib:t_afd_us=0.0001".parse().unwrap();
    let error = spec.build(&Scenario::default()).unwrap_err().to_string();
    assert!(error.contains("0.001"), "{error}");
}

/// The fair share follows the length that a drop at the head leaves, not the one before it.
#[test]
fn a_drop_at_the_head_makes_the_queue_shorter() {
    let share = |drops: bool| {
        let config = IntelligentBufferConfig {
            initial_share: 100_000,
            ..config()
        };
        let mut bench = Workbench::new(IntelligentBuffer::new(config, 2), 100_000_000, 2);
        for _ in 0..100 {
            assert!(bench.accepts(0, 1_000));
        }
        for _ in 0..99 {
            assert!(if drops {
                bench.drop_first(0)
            } else {
                bench.depart(0)
            });
        }
        bench.now = Instant::ZERO + config.interval;
        assert!(bench.accepts(0, 1_000));
        bench.policy.queues[0].share.bytes()
    };
    assert_eq!(share(true), share(false));
}
