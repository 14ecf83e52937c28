//! Every transition of TDT, driven manually.

use super::*;
use crate::switch::policy::workbench::Workbench;

use TrafficState::{Absorption, Evacuation, Normal};

/// Counters small enough to reach manually: packets of 100 bytes, 8 kB of them, four ports.
const CONFIG: TrafficAwareConfig = TrafficAwareConfig {
    alpha: 1.0,
    underload_dequeues: 3,
    burst_enqueues: 5,
    observation_dequeues: 7,
    absorption_dequeues: 4,
    overload_drops: 3,
};

const PACKET: u64 = 100;
const BUFFER: u64 = 8_000;

type Bench = Workbench<TrafficAwareThreshold>;

fn bench(config: TrafficAwareConfig) -> Bench {
    Workbench::new(TrafficAwareThreshold::new(config, 4), BUFFER, 4)
}

fn enqueue(bench: &mut Bench, port: usize, packets: usize) {
    for _ in 0..packets {
        assert!(bench.accepts(port, PACKET));
    }
}

fn dequeue(bench: &mut Bench, port: usize, packets: usize) {
    for _ in 0..packets {
        assert!(bench.depart(port));
    }
}

/// Drops at `port` without changing the buffer.
fn lose(bench: &mut Bench, port: usize, loss: Loss) {
    let view = View {
        buffer: &bench.buffer,
        now: bench.now,
        rate: bench.rate,
    };
    bench
        .policy
        .on_drop(view, PacketView::of_port(port, PACKET), loss);
}

fn threshold(bench: &Bench, port: usize) -> u64 {
    bench.policy.threshold(bench.view(), port).unwrap()
}

/// Returns a port that absorbs a burst of five packets.
fn absorbing() -> Bench {
    let mut bench = bench(CONFIG);
    enqueue(&mut bench, 0, 5);
    assert_eq!(bench.policy.state(0), Absorption);
    bench
}

/// Returns a port that has lost three packets, with 20 in its queue: as much as `B/N`.
fn evacuating() -> Bench {
    let config = TrafficAwareConfig {
        burst_enqueues: 1_000,
        ..CONFIG
    };
    let mut bench = bench(config);
    enqueue(&mut bench, 0, 20);
    for _ in 0..3 {
        lose(&mut bench, 0, Loss::Refused);
    }
    assert_eq!(bench.policy.state(0), Evacuation);
    bench
}

#[test]
fn normal_to_absorption_after_net_enqueues() {
    let mut bench = bench(CONFIG);
    enqueue(&mut bench, 0, 4);
    assert_eq!(bench.policy.state(0), Normal);
    assert_eq!(threshold(&bench, 0), BUFFER - 4 * PACKET);
    dequeue(&mut bench, 0, 1);
    enqueue(&mut bench, 0, 1);
    assert_eq!(bench.policy.state(0), Normal, "four net enqueues");
    enqueue(&mut bench, 0, 1);
    assert_eq!(bench.policy.state(0), Absorption);
    assert_eq!(bench.policy.state(1), Normal);
}

#[test]
fn absorbing_ports_share_the_whole_buffer() {
    let mut bench = absorbing();
    assert_eq!(threshold(&bench, 0), BUFFER);
    enqueue(&mut bench, 2, 5);
    assert_eq!(bench.policy.state(2), Absorption);
    assert_eq!(
        (threshold(&bench, 0), threshold(&bench, 2)),
        (BUFFER / 2, BUFFER / 2)
    );
    dequeue(&mut bench, 2, 3);
    assert_eq!(
        (threshold(&bench, 0), bench.policy.state(2)),
        (BUFFER, Normal)
    );
}

#[test]
fn absorption_ends_at_an_underloaded_port() {
    let mut bench = absorbing();
    dequeue(&mut bench, 0, 2);
    enqueue(&mut bench, 0, 1);
    dequeue(&mut bench, 0, 1);
    assert_eq!(
        bench.policy.state(0),
        Absorption,
        "an enqueue starts the count afresh"
    );
    assert_eq!(bench.policy.ports[0].absorbed, 3);
    let mut bench = absorbing();
    dequeue(&mut bench, 0, 3);
    assert_eq!(bench.policy.state(0), Normal);
    let port = bench.policy.ports[0];
    assert_eq!(
        (port.dequeues, port.enqueues, port.absorbed, port.drops),
        (0, 0, 0, 0)
    );
}

#[test]
fn absorption_ends_after_its_longest_time() {
    let mut bench = absorbing();
    for _ in 0..3 {
        enqueue(&mut bench, 0, 1);
        dequeue(&mut bench, 0, 1);
        assert_eq!(bench.policy.state(0), Absorption);
    }
    enqueue(&mut bench, 0, 1);
    dequeue(&mut bench, 0, 1);
    assert_eq!(bench.policy.state(0), Normal);
    assert_eq!(bench.policy.ports[0].absorbed, 0);
}

#[test]
fn absorption_ends_with_a_full_buffer_at_that_port_alone() {
    let mut bench = absorbing();
    enqueue(&mut bench, 1, 5);
    lose(&mut bench, 0, Loss::Refused);
    assert_eq!(
        bench.policy.state(0),
        Absorption,
        "a loss for its threshold is no full buffer"
    );
    lose(&mut bench, 0, Loss::Full);
    assert_eq!(
        (bench.policy.state(0), bench.policy.state(1)),
        (Normal, Absorption)
    );
}

#[test]
fn nothing_is_counted_towards_the_next_burst_during_an_absorption() {
    let mut bench = absorbing();
    enqueue(&mut bench, 0, 4);
    lose(&mut bench, 0, Loss::Full);
    enqueue(&mut bench, 0, 4);
    assert_eq!(bench.policy.state(0), Normal);
    enqueue(&mut bench, 0, 1);
    assert_eq!(bench.policy.state(0), Absorption);
}

#[test]
fn normal_to_evacuation_after_drops() {
    let mut bench = evacuating();
    assert_eq!(
        threshold(&bench, 0),
        BUFFER / 4,
        "B/N, below what Dynamic Threshold gives"
    );
    assert!(!bench.accepts(0, PACKET), "the queue has B/N");
    // With little free space, Dynamic Threshold is the lower one.
    bench.buffer.store(1, 5_500, bench.now);
    assert_eq!(threshold(&bench, 0), 500);
}

#[test]
fn absorption_to_evacuation_after_drops() {
    let mut bench = absorbing();
    enqueue(&mut bench, 1, 5);
    for _ in 0..3 {
        lose(&mut bench, 0, Loss::Refused);
    }
    assert_eq!(bench.policy.state(0), Evacuation);
    assert_eq!(threshold(&bench, 1), BUFFER, "port 1 absorbs alone");
}

#[test]
fn drops_into_a_full_buffer_lead_to_evacuation_too() {
    let mut bench = absorbing();
    lose(&mut bench, 0, Loss::Full);
    lose(&mut bench, 0, Loss::Full);
    assert_eq!(bench.policy.state(0), Normal);
    lose(&mut bench, 0, Loss::Full);
    assert_eq!(bench.policy.state(0), Evacuation);
}

#[test]
fn drops_are_forgotten_at_an_underloaded_port() {
    let mut bench = bench(CONFIG);
    enqueue(&mut bench, 0, 3);
    lose(&mut bench, 0, Loss::Refused);
    lose(&mut bench, 0, Loss::Refused);
    dequeue(&mut bench, 0, 3);
    lose(&mut bench, 0, Loss::Refused);
    lose(&mut bench, 0, Loss::Refused);
    assert_eq!(bench.policy.state(0), Normal);
    lose(&mut bench, 0, Loss::Refused);
    assert_eq!(bench.policy.state(0), Evacuation);
}

#[test]
fn evacuation_ends_below_half_the_threshold() {
    let mut bench = evacuating();
    // Drains from 20 packets to 11, with occasional arrivals that reset the count of dequeues in a row.
    for _ in 0..9 {
        dequeue(&mut bench, 0, 2);
        enqueue(&mut bench, 0, 1);
    }
    assert_eq!(bench.buffer.queue(0), 1_100);
    dequeue(&mut bench, 0, 1);
    assert_eq!(
        bench.policy.state(0),
        Evacuation,
        "B/N = 2,000 is not above 2 * 1,000"
    );
    dequeue(&mut bench, 0, 1);
    assert_eq!(bench.policy.state(0), Normal, "B/N = 2,000 > 2 * 900");
}

#[test]
fn an_arrival_too_finds_an_evacuation_over() {
    let mut bench = evacuating();
    bench.buffer.release(0, 1_100, bench.now);
    assert!(bench.accepts(0, PACKET));
    assert_eq!(bench.policy.state(0), Normal, "T = 2,000 > 2 * 900");
    let mut bench = evacuating();
    bench.buffer.release(0, 1_000, bench.now);
    assert!(bench.accepts(0, PACKET));
    assert_eq!(
        bench.policy.state(0),
        Evacuation,
        "T = 2,000 is not above 2 * 1,000"
    );
}

#[test]
fn evacuation_ends_at_an_underloaded_port() {
    let mut bench = evacuating();
    dequeue(&mut bench, 0, 2);
    assert_eq!(bench.policy.state(0), Evacuation);
    dequeue(&mut bench, 0, 1);
    assert_eq!(bench.policy.state(0), Normal);
}

#[test]
fn evacuation_ends_with_a_full_buffer() {
    let mut bench = evacuating();
    lose(&mut bench, 0, Loss::Refused);
    assert_eq!(bench.policy.state(0), Evacuation);
    lose(&mut bench, 0, Loss::Full);
    assert_eq!(bench.policy.state(0), Normal);
    lose(&mut bench, 0, Loss::Full);
    assert_eq!(bench.policy.state(0), Evacuation, "drops count on");
}

#[test]
fn evacuation_to_absorption_after_net_enqueues() {
    let mut bench = bench(CONFIG);
    enqueue(&mut bench, 0, 3);
    bench.buffer.store(0, 1_000, bench.now);
    for _ in 0..3 {
        lose(&mut bench, 0, Loss::Refused);
    }
    enqueue(&mut bench, 0, 4);
    assert_eq!(bench.policy.state(0), Evacuation);
    enqueue(&mut bench, 0, 1);
    assert_eq!(bench.policy.state(0), Absorption);
}

#[test]
fn a_slow_rise_is_no_burst() {
    let mut bench = bench(CONFIG);
    enqueue(&mut bench, 0, 4);
    // Six dequeues, and the seventh restarts the count of net enqueues.
    for _ in 0..7 {
        assert_eq!(bench.policy.state(0), Normal);
        dequeue(&mut bench, 0, 1);
        enqueue(&mut bench, 0, 1);
    }
    assert_eq!(bench.policy.ports[0].enqueues, 1);
    enqueue(&mut bench, 0, 3);
    assert_eq!(bench.policy.state(0), Normal);
    enqueue(&mut bench, 0, 1);
    assert_eq!(bench.policy.state(0), Absorption);
}

#[test]
fn drops_start_the_count_of_net_enqueues_afresh() {
    let mut bench = bench(CONFIG);
    enqueue(&mut bench, 0, 4);
    lose(&mut bench, 0, Loss::Refused);
    enqueue(&mut bench, 0, 4);
    assert_eq!(bench.policy.state(0), Normal);
    enqueue(&mut bench, 0, 1);
    assert_eq!(bench.policy.state(0), Absorption);
}

#[test]
fn a_drop_ends_the_dequeues_in_a_row() {
    let mut bench = absorbing();
    dequeue(&mut bench, 0, 2);
    lose(&mut bench, 0, Loss::Refused);
    dequeue(&mut bench, 0, 1);
    assert_eq!(bench.policy.state(0), Absorption);
}

#[test]
fn the_end_of_an_observation_ends_the_dequeues_in_a_row() {
    let mut bench = bench(CONFIG);
    enqueue(&mut bench, 0, 3);
    lose(&mut bench, 0, Loss::Refused);
    lose(&mut bench, 0, Loss::Refused);
    for _ in 0..5 {
        dequeue(&mut bench, 0, 1);
        enqueue(&mut bench, 0, 1);
    }
    // The second dequeue is the seventh in all; a third in a row would reset the drops.
    dequeue(&mut bench, 0, 3);
    lose(&mut bench, 0, Loss::Refused);
    assert_eq!(bench.policy.state(0), Evacuation);
}

#[test]
fn suggested_parameters_for_the_default_switch() {
    let config = TrafficAwareConfig::suggested(1.0, 1_000_000, 16, 1_518);
    assert_eq!(
        config,
        TrafficAwareConfig {
            alpha: 1.0,
            underload_dequeues: 3,
            burst_enqueues: 41,
            observation_dequeues: 41,
            absorption_dequeues: 1_317,
            overload_drops: 329,
        }
    );
}
