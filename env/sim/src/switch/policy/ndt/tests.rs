use super::*;
use crate::scenario::Scenario;
use crate::switch::LowLevelPolicy;
use crate::switch::{PolicySpec, SharedBuffer};
use crate::units::{Instant, Rate};

const BETA: u64 = 10_000;

fn policy(mode: TriggerMode) -> ControlledThreshold {
    ControlledThreshold::new(2, BETA, BETA, mode)
}

fn packet(port: usize, bytes: u64) -> PacketView {
    PacketView::of_port(port, bytes)
}

fn view(buffer: &SharedBuffer) -> View<'_> {
    View {
        buffer,
        now: Instant::ZERO,
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

/// With arrivals at about the line rate and drops, the excess stays below β. The safeguard fires
/// once and is armed again by an excess trigger.
#[test]
fn the_safeguard_fires_once_until_a_normal_trigger() {
    let buffer = SharedBuffer::new(100_000, 100_000, 2, 1);
    let mut ndt = policy(TriggerMode::CumulativeEvent);
    let lossy_line_rate = |ndt: &mut ControlledThreshold| {
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
fn excess_takes_precedence_over_the_safeguard() {
    let buffer = SharedBuffer::new(100_000, 100_000, 2, 1);
    let mut ndt = policy(TriggerMode::CumulativeEvent);
    ndt.on_drop(view(&buffer), packet(0, BETA), Loss::Refused);
    assert_eq!(ndt.fired(), Some(TriggerCause::Excess));
    ndt.acknowledge();
    assert!(ndt.guard_armed);
}

#[test]
fn nothing_fires_while_a_decision_is_delayed() {
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
    buffer.store(0, 20_000, Instant::ZERO);
    for (index, accepts) in [(0, false), (1, true), (2, true), (7, true)] {
        ndt.apply(&[index, index]);
        let verdict = ndt.on_arrival(view(&buffer), packet(0, 1_500));
        // The queue of 20 kB is compared with α·80 kB; at equality the packet is dropped.
        assert_eq!(verdict == Verdict::Accept, accepts, "index {index}");
    }
}

/// Returns a switch with 4 ports of 2 queues each, and the control over a heuristic.
fn over(low_level: &LowLevelPolicy) -> (SharedBuffer, ControlledThreshold) {
    let scenario = Scenario::default().with(|scenario| {
        scenario.network.ports = 4;
        scenario.queues.queues_per_port = 2;
    });
    let heuristic = low_level.policy().build(&scenario).unwrap();
    let policy = ControlledThreshold::new(4, BETA, BETA, TriggerMode::CumulativeEvent)
        .with_queues_per_port(2);
    let policy = match low_level.is_default() {
        true => policy,
        false => policy.over(heuristic),
    };
    let bytes = scenario.network.buffer_bytes;
    (SharedBuffer::new(bytes, bytes, 4, 2), policy)
}

/// Returns the heuristics that decide on packets; the others leave that to the switch.
fn of_egress() -> impl Iterator<Item = LowLevelPolicy> {
    LowLevelPolicy::all().filter(|low_level| !low_level.is_lossless())
}

#[test]
fn the_alpha_of_a_port_applies_to_its_queues_alone() {
    for low_level in of_egress() {
        let (mut buffer, mut ndt) = over(&low_level);
        buffer.store(2, 40_000, Instant::ZERO);
        let free = buffer.free();
        let thresholds = |ndt: &ControlledThreshold| {
            let of = |queue| ndt.threshold(view(&buffer), queue).unwrap();
            (0..8).map(of).collect::<Vec<u64>>()
        };
        assert_eq!(thresholds(&ndt), [free; 8], "{low_level}: α = 1 at first");
        ndt.apply(&[2, 4, 2, 0]);
        let (more, less) = (4 * free, free / 4);
        let expected = [free, free, more, more, free, free, less, less];
        assert_eq!(thresholds(&ndt), expected, "{low_level}");
    }
}

/// A packet is admitted by the α of its own port.
#[test]
fn verdicts_follow_the_alpha_of_the_port() {
    for low_level in of_egress() {
        let (mut buffer, mut ndt) = over(&low_level);
        let part = buffer.capacity() / 8;
        for port in 0..4 {
            buffer.store(2 * port, part, Instant::ZERO);
        }
        // A queue of an eighth of the buffer is compared with α/2 of the buffer.
        ndt.apply(&[2, 0, 3, 1]);
        for (port, expected) in [
            Verdict::Accept,
            Verdict::Drop,
            Verdict::Accept,
            Verdict::Accept,
        ]
        .into_iter()
        .enumerate()
        {
            // A large packet, since FAB has another α for the first bytes of a flow.
            let packet = PacketView {
                port,
                queue: 2 * port,
                ..packet(port, 100_000)
            };
            assert_eq!(
                ndt.on_arrival(view(&buffer), packet),
                expected,
                "{low_level} {port}"
            );
        }
    }
}

#[test]
#[should_panic(expected = "no α")]
fn a_heuristic_without_alpha_panics() {
    let policy = PolicySpec::named("lqd")
        .build(&Scenario::default())
        .unwrap();
    let _ = ControlledThreshold::new(4, BETA, BETA, TriggerMode::PerPacket).over(policy);
}

/// Pushing out a packet counts as a drop, but not as another arrival.
#[test]
fn a_packet_that_is_pushed_out_counts_as_dropped() {
    let buffer = SharedBuffer::new(100_000, 100_000, 2, 1);
    let mut ndt = policy(TriggerMode::CumulativeEvent);
    ndt.on_enqueue(view(&buffer), packet(0, 6_000));
    ndt.on_drop(view(&buffer), packet(0, 5_000), Loss::PushedOut);
    let volumes = PortVolumes {
        enqueued: 6_000,
        dropped: 5_000,
        excess: 6_000,
        guarded_drops: 5_000,
    };
    assert_eq!(ndt.volumes(0), volumes);
    assert_eq!(ndt.fired(), None);
    ndt.on_drop(view(&buffer), packet(0, 5_000), Loss::PushedOut);
    assert_eq!(ndt.fired(), Some(TriggerCause::Safeguard));
}

/// An arrival that takes one port over β may push out packets of another.
#[test]
fn excess_takes_precedence_if_another_port_fires_the_safeguard() {
    let buffer = SharedBuffer::new(100_000, 100_000, 2, 1);
    let mut ndt = policy(TriggerMode::CumulativeEvent);
    ndt.on_enqueue(view(&buffer), packet(0, BETA));
    ndt.on_drop(view(&buffer), packet(1, BETA), Loss::PushedOut);
    assert_eq!(ndt.fired(), Some(TriggerCause::Excess));
    ndt.acknowledge();
    ndt.on_drop(view(&buffer), packet(1, BETA), Loss::PushedOut);
    ndt.on_enqueue(view(&buffer), packet(0, BETA));
    assert_eq!(ndt.fired(), Some(TriggerCause::Excess));
}

#[test]
fn a_decision_that_is_held_waits_with_its_trigger() {
    let buffer = SharedBuffer::new(100_000, 100_000, 2, 1);
    let mut ndt = policy(TriggerMode::CumulativeEvent);
    ndt.hold();
    assert!(!ndt.release(), "nothing has fired");
    ndt.hold();
    ndt.on_enqueue(view(&buffer), packet(0, 10_000));
    assert_eq!(ndt.fired(), Some(TriggerCause::Excess));
    assert!(!ndt.decision_due());
    // A later departure does not withdraw the trigger.
    ndt.on_departure(view(&buffer), packet(0, 10_000));
    assert_eq!(ndt.volumes(0).excess, 0);
    assert!(ndt.release() && ndt.decision_due());
    ndt.acknowledge();
    assert!(!ndt.decision_due());
}
