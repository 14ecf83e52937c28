use super::*;
use crate::switch::SharedBuffer;
use crate::units::{Rate, Time};

const BETA: u64 = 10_000;

fn policy(mode: TriggerMode) -> NeuralDynamicThreshold {
    NeuralDynamicThreshold::new(2, BETA, BETA, mode)
}

fn packet(port: usize, bytes: u64) -> PacketView {
    PacketView::of_port(port, bytes)
}

fn view(buffer: &SharedBuffer) -> View<'_> {
    View {
        buffer,
        now: Time::ZERO,
        rate: Rate(1_000_000_000),
    }
}

#[test]
fn excess_is_arrivals_minus_departures_and_triggers_at_beta() {
    let buffer = SharedBuffer::new(100_000, 100_000, 2, 1);
    let mut ndt = policy(TriggerMode::CumulativeEvent);
    ndt.on_enqueue(view(&buffer), packet(0, 6_000));
    ndt.on_departure(view(&buffer), packet(0, 1_500));
    ndt.on_drop(view(&buffer), packet(0, 4_000), Loss::Refused);
    assert_eq!(ndt.volumes(0).excess, 8_500);
    assert_eq!(ndt.fired(), None);
    ndt.on_enqueue(view(&buffer), packet(0, 1_500));
    assert_eq!(ndt.fired(), Some(TriggerCause::Excess));
    assert_eq!(ndt.volumes(0).enqueued, 7_500);
    assert_eq!(ndt.volumes(0).dropped, 4_000);
}

#[test]
fn draining_an_old_queue_earns_no_credit() {
    let buffer = SharedBuffer::new(100_000, 100_000, 2, 1);
    let mut ndt = policy(TriggerMode::CumulativeEvent);
    for _ in 0..20 {
        ndt.on_departure(view(&buffer), packet(0, 1_500));
    }
    assert_eq!(ndt.volumes(0).excess, 0);
    ndt.on_enqueue(view(&buffer), packet(0, 10_000));
    assert_eq!(ndt.fired(), Some(TriggerCause::Excess));
}

#[test]
fn a_decision_zeroes_the_counters_of_all_ports() {
    let buffer = SharedBuffer::new(100_000, 100_000, 2, 1);
    let mut ndt = policy(TriggerMode::CumulativeEvent);
    ndt.on_enqueue(view(&buffer), packet(1, 9_000));
    ndt.on_enqueue(view(&buffer), packet(0, 10_000));
    ndt.acknowledge();
    ndt.apply(&[7, 0]);
    assert_eq!(ndt.fired(), None);
    assert!((0..2).all(|port| ndt.volumes(port) == PortVolumes::default()));
    assert_eq!((ndt.alpha(0), ndt.alpha(1)), (Some(32.0), Some(0.25)));
}

/// Arrivals at about the line rate with drops: the excess stays below β, the safeguard fires once
/// and is armed again by a normal trigger.
#[test]
fn the_safeguard_fires_once_until_a_normal_trigger() {
    let buffer = SharedBuffer::new(100_000, 100_000, 2, 1);
    let mut ndt = policy(TriggerMode::CumulativeEvent);
    let lossy_line_rate = |ndt: &mut NeuralDynamicThreshold| {
        ndt.on_drop(view(&buffer), packet(0, 1_000), Loss::Refused);
        ndt.on_departure(view(&buffer), packet(0, 1_000));
    };
    for _ in 0..9 {
        lossy_line_rate(&mut ndt);
        assert_eq!(ndt.fired(), None);
    }
    lossy_line_rate(&mut ndt);
    assert_eq!(ndt.fired(), Some(TriggerCause::Safeguard));
    ndt.acknowledge();
    for _ in 0..50 {
        lossy_line_rate(&mut ndt);
    }
    assert_eq!(ndt.fired(), None, "disarmed");
    ndt.on_enqueue(view(&buffer), packet(1, BETA));
    assert_eq!(ndt.fired(), Some(TriggerCause::Excess));
    ndt.acknowledge();
    for _ in 0..10 {
        lossy_line_rate(&mut ndt);
    }
    assert_eq!(ndt.fired(), Some(TriggerCause::Safeguard), "armed again");
}

#[test]
fn both_triggers_at_once_count_as_normal() {
    let buffer = SharedBuffer::new(100_000, 100_000, 2, 1);
    let mut ndt = policy(TriggerMode::CumulativeEvent);
    ndt.on_drop(view(&buffer), packet(0, BETA), Loss::Refused);
    assert_eq!(ndt.fired(), Some(TriggerCause::Excess));
    ndt.acknowledge();
    assert!(ndt.guard_armed);
}

#[test]
fn nothing_fires_while_a_decision_is_under_way() {
    let buffer = SharedBuffer::new(100_000, 100_000, 2, 1);
    let mut ndt = policy(TriggerMode::CumulativeEvent);
    ndt.on_enqueue(view(&buffer), packet(0, BETA));
    ndt.acknowledge();
    ndt.suspend();
    ndt.on_enqueue(view(&buffer), packet(0, 2 * BETA));
    assert_eq!(ndt.fired(), None);
    ndt.apply(&[3, 3]);
    ndt.on_enqueue(view(&buffer), packet(0, 1));
    assert_eq!(ndt.fired(), Some(TriggerCause::Excess));
}

#[test]
fn the_threshold_is_a_shift_of_the_free_buffer() {
    let mut buffer = SharedBuffer::new(100_000, 100_000, 2, 1);
    let mut ndt = policy(TriggerMode::PerPacket);
    buffer.store(0, 20_000, Time::ZERO);
    for (index, accepts) in [(0, false), (1, true), (2, true), (7, true)] {
        ndt.apply(&[index, index]);
        let verdict = ndt.on_arrival(view(&buffer), packet(0, 1_500));
        // 20 kB against α·80 kB; equality is a drop.
        assert_eq!(verdict == Verdict::Accept, accepts, "index {index}");
    }
}
