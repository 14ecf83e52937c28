use super::*;
use crate::layout::Port;
use bufgym_env::control::{FEATURES, HISTORY, INITIAL_LEVEL};
use std::collections::BTreeMap;

const MS: Duration = Duration::from_millis(1);

/// Returns a layout with B = 200 kB and two ports that share it, at 1 and 10 Gbit/s, so β = 100 kB.
fn layout() -> Layout {
    let port = |name: &str, rate_bps| Port {
        name: name.to_owned(),
        rate_bps,
        oid: String::new(),
        queues: Vec::new(),
    };
    Layout {
        pool: "egress_lossy_pool".to_owned(),
        buffer_bytes: 200_000,
        present: 2,
        idle: 0,
        ports: vec![
            port("Ethernet0", 1_000_000_000),
            port("Ethernet4", 10_000_000_000),
        ],
        profiles: BTreeMap::new(),
    }
}

fn monitor(shortest: Duration, longest: Duration) -> Monitor {
    Monitor::new(&layout(), Timing { shortest, longest })
}

fn counters(sent: u64, dropped: u64, occupancy: u64) -> PortCounters {
    PortCounters {
        sent,
        sent_packets: sent / 1_000,
        dropped: Some(dropped),
        dropped_packets: dropped / 1_000,
        occupancy: Some(occupancy),
        watermark: Some(occupancy + 1),
    }
}

/// Builds counters with a watermark instead of a length.
fn blind(sent: u64, dropped: u64, watermark: u64) -> PortCounters {
    PortCounters {
        occupancy: None,
        watermark: Some(watermark),
        ..counters(sent, dropped, 0)
    }
}

fn sample(ports: [PortCounters; 2]) -> Sample {
    Sample {
        taken: None,
        ports: ports.to_vec(),
    }
}

fn stamped(ms: u32, ports: [PortCounters; 2]) -> Sample {
    Sample {
        taken: Some(MS * ms),
        ..sample(ports)
    }
}

fn newest(observation: &[f32], port: usize) -> [f32; FEATURES] {
    let end = (port + 1) * HISTORY * FEATURES;
    observation[end - FEATURES..end].try_into().unwrap()
}

#[test]
fn features_are_those_of_the_simulator() {
    let mut monitor = monitor(Duration::ZERO, Duration::ZERO);
    let still = counters(0, 0, 0);
    assert_eq!(monitor.take(sample([still, still]), MS * 5), News::Began);
    // 300 kB sent, the queue grew by 150 kB: 450 kB enqueued.
    let busy = counters(300_000, 50_000, 150_000);
    let news = monitor.take(sample([busy, still]), MS * 9);
    assert_eq!(news, News::Due(TriggerCause::Excess));
    assert_eq!(monitor.volumes()[0].excess, 200_000);
    let observation = monitor.observe(&[5, INITIAL_LEVEL]).to_vec();
    let scale = ObservationScale::new(200_000, 100_000, 1_000_000_000);
    let expected = [
        0.75,
        scale.volume(450_000),
        scale.volume(50_000),
        0.375,
        scale.elapsed(0.004),
    ];
    assert_eq!(newest(&observation, 0), expected);
    let fast = ObservationScale::new(200_000, 100_000, 10_000_000_000);
    assert_eq!(
        newest(&observation, 1),
        [0.0, 0.0, 0.0, -0.375, fast.elapsed(0.004)]
    );
    // Earlier steps are those before the first decision.
    assert_eq!(observation[..FEATURES], [0.0, 0.0, 0.0, -0.375, 0.0]);
    assert_eq!(monitor.volumes(), [Volumes::default(); 2]);
}

/// The network sees the same step as in the simulator if the switch reports the same counts.
#[test]
fn the_history_moves_with_decisions_and_not_with_readings() {
    let mut monitor = monitor(Duration::ZERO, Duration::ZERO);
    let still = counters(0, 0, 0);
    monitor.take(sample([still, still]), Duration::ZERO);
    for (n, ms) in [(1u64, 1), (2, 2), (3, 3)] {
        // Every reading adds 30 kB, so the fourth one exceeds β.
        let news = monitor.take(sample([counters(0, 0, 30_000 * n), still]), MS * ms);
        assert_eq!(news, News::Counted);
    }
    let news = monitor.take(sample([counters(0, 0, 120_000), still]), MS * 4);
    assert_eq!(news, News::Due(TriggerCause::Excess));
    let scale = ObservationScale::new(200_000, 100_000, 1_000_000_000);
    let step = newest(monitor.observe(&[2, 2]), 0);
    assert_eq!(
        step,
        [
            0.6,
            scale.volume(120_000),
            0.0,
            -0.375,
            scale.elapsed(0.004)
        ]
    );
}

#[test]
fn draining_earns_no_credit_between_readings() {
    let mut monitor = monitor(Duration::ZERO, Duration::ZERO);
    let still = counters(0, 0, 0);
    monitor.take(sample([counters(0, 0, 500_000), still]), Duration::ZERO);
    monitor.take(sample([counters(400_000, 0, 100_000), still]), MS);
    assert_eq!(monitor.volumes()[0].excess, 0);
    assert_eq!(monitor.volumes()[0].enqueued, 0);
    let news = monitor.take(sample([counters(500_000, 0, 200_000), still]), MS * 2);
    assert_eq!(news, News::Due(TriggerCause::Excess));
    assert_eq!(monitor.volumes()[0].enqueued, 200_000);
}

#[test]
fn watermarks_bound_what_is_not_told() {
    let mut monitor = monitor(Duration::ZERO, Duration::ZERO);
    let still = blind(0, 0, 0);
    monitor.take(sample([still, still]), Duration::ZERO);
    let news = monitor.take(sample([blind(70_000, 0, 60_000), still]), MS);
    assert_eq!(news, News::Counted);
    // The watermark has been cleared, but not the largest one since the last decision.
    let news = monitor.take(sample([blind(90_000, 40_000, 10_000), still]), MS * 2);
    assert_eq!(news, News::Due(TriggerCause::Excess));
    let volumes = monitor.volumes()[0];
    assert_eq!(
        (volumes.enqueued, volumes.dropped, volumes.excess),
        (90_000, 40_000, 100_000)
    );
    // The feature is the newest watermark.
    assert_eq!(newest(monitor.observe(&[2, 2]), 0)[0], 0.05);
    let news = monitor.take(sample([blind(91_000, 40_000, 10_000), still]), MS * 3);
    assert_eq!(news, News::Counted);
}

#[test]
fn lost_packets_without_bytes_have_the_mean_size_of_those_sent() {
    let of_packets = |sent: u64, packets: u64, lost: u64| PortCounters {
        sent,
        sent_packets: packets,
        dropped: None,
        dropped_packets: lost,
        occupancy: Some(0),
        watermark: None,
    };
    let mut monitor = monitor(Duration::ZERO, Duration::ZERO);
    monitor.take(
        sample([of_packets(0, 0, 0), of_packets(0, 0, 0)]),
        Duration::ZERO,
    );
    monitor.take(sample([of_packets(8_000, 10, 3), of_packets(0, 0, 2)]), MS);
    let dropped = |port: usize| monitor.volumes()[port].dropped;
    assert_eq!((dropped(0), dropped(1)), (2_400, 3_000));
}

#[test]
fn the_safeguard_is_disarmed_by_a_decision_of_its_own() {
    let mut monitor = monitor(Duration::ZERO, Duration::ZERO);
    let still = counters(0, 0, 0);
    // The queue drains by exactly the lost volume, so only drops count.
    let at = |n: u64| sample([counters(0, 100_000 * n, 900_000 - 100_000 * n), still]);
    monitor.take(at(0), Duration::ZERO);
    assert_eq!(monitor.take(at(1), MS), News::Due(TriggerCause::Safeguard));
    monitor.observe(&[2, 2]);
    assert_eq!(monitor.take(at(2), MS * 2), News::Counted, "disarmed");
    let news = monitor.take(sample([counters(0, 200_000, 800_000), still]), MS * 3);
    assert_eq!(news, News::Due(TriggerCause::Excess));
    monitor.observe(&[2, 2]);
    let news = monitor.take(sample([counters(0, 300_000, 700_000), still]), MS * 4);
    assert_eq!(news, News::Due(TriggerCause::Safeguard), "armed again");
}

/// Like with `min_interval_us` of the simulator, a trigger that fires too early is kept.
#[test]
fn a_trigger_within_the_shortest_interval_waits() {
    let mut monitor = monitor(MS * 10, Duration::ZERO);
    let still = counters(0, 0, 0);
    monitor.take(sample([still, still]), Duration::ZERO);
    assert_eq!(
        monitor.take(sample([counters(0, 0, 200_000), still]), MS * 4),
        News::Counted
    );
    // The bytes that arrived in between have left again.
    assert_eq!(
        monitor.take(sample([counters(200_000, 0, 0), still]), MS * 9),
        News::Counted
    );
    assert_eq!(monitor.volumes()[0].excess, 0);
    let news = monitor.take(sample([counters(201_000, 0, 0), still]), MS * 10);
    assert_eq!(news, News::Due(TriggerCause::Excess));
    monitor.observe(&[2, 2]);
    assert_eq!(
        monitor.take(sample([counters(202_000, 0, 0), still]), MS * 99),
        News::Counted
    );
}

#[test]
fn the_longest_interval_makes_a_decision_due() {
    let mut monitor = monitor(MS, MS * 20);
    let still = counters(0, 0, 0);
    monitor.take(sample([still, still]), Duration::ZERO);
    let sent = |n| sample([counters(n, 0, 0), still]);
    assert_eq!(monitor.take(sent(1), MS * 19), News::Counted);
    assert_eq!(
        monitor.take(sent(2), MS * 20),
        News::Due(TriggerCause::Interval)
    );
}

#[test]
fn a_reading_that_is_not_new_changes_nothing() {
    let mut monitor = monitor(Duration::ZERO, MS);
    let busy = [counters(1_000, 0, 0), counters(2_000, 0, 0)];
    assert_eq!(monitor.take(stamped(1, busy), MS * 100), News::Began);
    for clock in 101..200 {
        assert_eq!(monitor.take(stamped(1, busy), MS * clock), News::None);
    }
    // The switch has read the same counters again, so they are new: nothing was sent.
    assert_eq!(
        monitor.take(stamped(3, busy), MS * 200),
        News::Due(TriggerCause::Interval)
    );
    // The interval is the time between the switch's readings.
    let scale = ObservationScale::new(200_000, 100_000, 1_000_000_000);
    assert_eq!(newest(monitor.observe(&[2, 2]), 0)[4], scale.elapsed(0.002));
}

#[test]
fn counters_that_begin_anew_are_no_traffic() {
    let mut monitor = monitor(Duration::ZERO, Duration::ZERO);
    let still = counters(0, 0, 0);
    monitor.take(
        stamped(10, [counters(900_000, 50_000, 0), still]),
        Duration::ZERO,
    );
    assert_eq!(
        monitor.take(stamped(11, [counters(5_000, 0, 0), still]), MS),
        News::Began
    );
    assert_eq!(monitor.volumes()[0], Volumes::default());
    monitor.take(stamped(12, [counters(7_000, 0, 0), still]), MS * 2);
    assert_eq!(monitor.volumes()[0].enqueued, 2_000);
    // A clock that has gone back has the same effect.
    assert_eq!(
        monitor.take(stamped(1, [counters(8_000, 0, 0), still]), MS * 3),
        News::Began
    );
    assert_eq!(monitor.volumes()[0], Volumes::default());
}

#[test]
fn a_restart_waits_for_news() {
    let mut monitor = monitor(Duration::ZERO, MS);
    let busy = [counters(1_000, 0, 0), counters(2_000, 0, 0)];
    monitor.take(stamped(1, busy), Duration::ZERO);
    monitor.restart();
    assert_eq!(monitor.take(stamped(1, busy), MS * 9), News::None);
    let later = [counters(5_000, 0, 0), counters(2_000, 0, 0)];
    assert_eq!(monitor.take(stamped(50, later), MS * 10), News::Began);
    assert_eq!(monitor.volumes(), [Volumes::default(); 2]);
    let due = monitor.take(stamped(51, later), MS * 11);
    assert_eq!(due, News::Due(TriggerCause::Interval));
}
