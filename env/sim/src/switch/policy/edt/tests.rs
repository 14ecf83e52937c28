//! Every transition of EDT, driven by hand.

use super::*;
use crate::switch::SharedBuffer;

const RATE: Rate = Rate(1_000_000_000);

fn policy(ports: usize) -> EnhancedDynamicThreshold {
    let config = EnhancedDynamicThresholdConfig::suggested(1.0, 1_000_000, ports, RATE);
    EnhancedDynamicThreshold::new(config, ports)
}

fn view(buffer: &SharedBuffer, us: u64) -> View<'_> {
    View {
        buffer,
        now: Time::from_us(us),
        rate: RATE,
    }
}

#[test]
fn suggested_parameters_for_the_default_switch() {
    let config = EnhancedDynamicThresholdConfig::suggested(1.0, 1_000_000, 16, RATE);
    assert_eq!(config.burst_enqueues, 8);
    assert!((config.controlled_period.as_ms_f64() - 2.1).abs() < 0.01);
    assert_eq!(config.uncontrolled_period, Time::from_ms(10));
}

#[test]
fn a_burst_lifts_the_threshold_until_the_port_is_underloaded() {
    let buffer = SharedBuffer::new(1_000_000, 1_000_000, 16, 1);
    let mut edt = policy(16);
    for packet in 0..8 {
        assert!(!edt.is_uncontrolled(3));
        edt.on_enqueue(view(&buffer, packet), PacketView::of_port(3, 1_500));
    }
    assert!(edt.is_uncontrolled(3));
    assert_eq!(edt.threshold(view(&buffer, 8), 3), Some(1_000_000));
    for _ in 0..2 {
        edt.on_departure(view(&buffer, 9), PacketView::of_port(3, 1_500));
    }
    edt.on_enqueue(view(&buffer, 9), PacketView::of_port(3, 1_500));
    for _ in 0..2 {
        edt.on_departure(view(&buffer, 10), PacketView::of_port(3, 1_500));
    }
    assert!(
        edt.is_uncontrolled(3),
        "an enqueue starts the count of dequeues afresh"
    );
    edt.on_departure(view(&buffer, 10), PacketView::of_port(3, 1_500));
    assert!(!edt.is_uncontrolled(3));
}

#[test]
fn uncontrolled_ports_share_the_buffer_and_leave_after_t2() {
    let buffer = SharedBuffer::new(1_000_000, 1_000_000, 16, 1);
    let mut edt = policy(16);
    for port in [0, 1] {
        for _ in 0..8 {
            edt.on_enqueue(view(&buffer, 100 * port as u64), PacketView::of_port(port, 1_500));
        }
    }
    assert_eq!(edt.threshold(view(&buffer, 101), 0), Some(500_000));
    edt.on_arrival(view(&buffer, 10_000), PacketView::of_port(5, 1_500));
    assert!(!edt.is_uncontrolled(0) && edt.is_uncontrolled(1));
    edt.on_arrival(view(&buffer, 10_100), PacketView::of_port(5, 1_500));
    assert!(!edt.is_uncontrolled(1));
}

#[test]
fn slow_arrivals_are_no_burst() {
    let buffer = SharedBuffer::new(1_000_000, 1_000_000, 16, 1);
    let mut edt = policy(16);
    for packet in 0..100 {
        // T1 is 2.1 ms: seven packets fit before the counters start afresh.
        let now = view(&buffer, 310 * packet);
        edt.on_arrival(now, PacketView::of_port(0, 1_500));
        edt.on_enqueue(now, PacketView::of_port(0, 1_500));
    }
    assert!(!edt.is_uncontrolled(0));
}

#[test]
fn a_full_buffer_ends_every_exception_and_a_threshold_drop_keeps_the_state() {
    let buffer = SharedBuffer::new(1_000_000, 1_000_000, 16, 1);
    let mut edt = policy(16);
    for port in [0, 1] {
        for _ in 0..8 {
            edt.on_enqueue(view(&buffer, 0), PacketView::of_port(port, 1_500));
        }
    }
    edt.on_drop(view(&buffer, 1), PacketView::of_port(0, 1_500), Loss::Refused);
    assert!(edt.is_uncontrolled(0));
    edt.on_drop(view(&buffer, 2), PacketView::of_port(5, 1_500), Loss::Full);
    assert!(!edt.is_uncontrolled(0) && !edt.is_uncontrolled(1));
}

/// A port of 16: C1 = 3, C2 = 8, T1 = 2.1 ms, T2 = 10 ms.
struct Driven {
    buffer: SharedBuffer,
    edt: EnhancedDynamicThreshold,
    us: u64,
}

impl Driven {
    fn new() -> Driven {
        Driven {
            buffer: SharedBuffer::new(1_000_000, 1_000_000, 16, 1),
            edt: policy(16),
            us: 0,
        }
    }

    fn enqueue(&mut self, port: usize, packets: usize) {
        for _ in 0..packets {
            let packet = PacketView::of_port(port, 1_500);
            let accepted = self.edt.on_arrival(view(&self.buffer, self.us), packet);
            assert_eq!(accepted, Verdict::Accept);
            self.edt.on_enqueue(view(&self.buffer, self.us), packet);
        }
    }

    fn dequeue(&mut self, port: usize, packets: usize) {
        for _ in 0..packets {
            let packet = PacketView::of_port(port, 1_500);
            self.edt.on_departure(view(&self.buffer, self.us), packet);
        }
    }

    fn lose(&mut self, port: usize, loss: Loss) {
        let packet = PacketView::of_port(port, 1_500);
        self.edt.on_drop(view(&self.buffer, self.us), packet, loss);
    }

    /// Whether the port is uncontrolled, its c1 and its c2.
    fn state(&self, port: usize) -> (bool, u32, u32) {
        let state = self.edt.ports[port];
        (state.uncontrolled, state.dequeues, state.enqueues)
    }
}

#[test]
fn counters_of_the_controlled_state() {
    let mut port = Driven::new();
    port.enqueue(0, 5);
    assert_eq!(port.state(0), (false, 0, 5));
    port.dequeue(0, 2);
    assert_eq!(port.state(0), (false, 2, 3), "a dequeue takes an enqueue back");
    port.enqueue(0, 1);
    assert_eq!(port.state(0), (false, 0, 4), "an enqueue ends the dequeues in a row");
    port.dequeue(0, 6);
    assert_eq!(port.state(0), (false, 6, 0), "never below zero; underload changes nothing");
    port.enqueue(0, 7);
    assert_eq!(port.state(0), (false, 0, 7));
    port.enqueue(0, 1);
    assert_eq!(port.state(0), (true, 0, 0), "C2 net enqueues");
    assert_eq!(port.state(1), (false, 0, 0));
}

#[test]
fn counters_of_the_uncontrolled_state() {
    let mut port = Driven::new();
    port.enqueue(0, 8);
    port.enqueue(0, 20);
    assert_eq!(port.state(0), (true, 0, 0), "nothing counts enqueues");
    port.dequeue(0, 2);
    assert_eq!(port.state(0), (true, 2, 0));
    port.enqueue(0, 1);
    assert_eq!(port.state(0), (true, 0, 0));
    port.dequeue(0, 3);
    assert!(!port.state(0).0, "C1 dequeues in a row");
    assert_eq!(port.edt.uncontrolled, 0);
}

#[test]
fn t1_runs_out_again_and_again() {
    let mut port = Driven::new();
    port.us = 2_000;
    port.enqueue(0, 7);
    // T1 = 2,098.77 us.
    port.us = 2_098;
    port.dequeue(0, 1);
    assert_eq!(port.state(0), (false, 1, 6));
    port.us = 2_099;
    port.enqueue(0, 1);
    assert_eq!(port.state(0), (false, 0, 1), "afresh before the event");
    port.enqueue(0, 6);
    port.us = 4_197;
    port.dequeue(0, 1);
    assert_eq!(port.state(0), (false, 1, 6), "restarted at 2,099 us");
    port.us = 4_198;
    port.dequeue(0, 1);
    assert_eq!(port.state(0), (false, 1, 0), "afresh at a dequeue too");
}

#[test]
fn t2_runs_out_whichever_event_comes_and_t1_starts_there() {
    for event in 0..4 {
        let mut port = Driven::new();
        port.us = 100;
        port.enqueue(0, 8);
        port.us = 10_099;
        port.dequeue(1, 1);
        assert!(port.state(0).0);
        port.us = 10_100;
        match event {
            0 => port.enqueue(0, 1),
            1 => port.dequeue(0, 1),
            2 => port.lose(0, Loss::Refused),
            _ => port.enqueue(1, 1),
        }
        assert!(!port.state(0).0, "event {event}");
        port.enqueue(0, 6);
        port.us = 10_100 + 2_098;
        port.enqueue(0, 2);
        assert!(port.state(0).0, "within T1 of the end of T2, after event {event}");
    }
}

#[test]
fn t1_starts_where_t2_runs_out_however_late_that_is_seen() {
    let mut port = Driven::new();
    port.us = 100;
    port.enqueue(0, 8);
    port.us = 11_500;
    port.enqueue(0, 7);
    assert_eq!(port.state(0), (false, 0, 7));
    // From 10,100 us T1 is over at 12,198.77 us.
    port.us = 12_199;
    port.enqueue(0, 1);
    assert_eq!(port.state(0), (false, 0, 1));
}

#[test]
fn a_threshold_drop_while_controlled() {
    let mut port = Driven::new();
    port.enqueue(0, 7);
    port.us = 1_000;
    port.lose(0, Loss::Refused);
    assert_eq!(port.state(0), (false, 0, 0));
    port.enqueue(0, 6);
    // T1 from the start is over at 2,098.77 us, from the drop at 3,098.77 us.
    port.us = 3_098;
    port.enqueue(0, 1);
    assert_eq!(port.state(0), (false, 0, 7));
    port.us = 3_099;
    port.enqueue(0, 1);
    assert_eq!(port.state(0), (false, 0, 1));
}

#[test]
fn a_threshold_drop_while_uncontrolled() {
    let mut port = Driven::new();
    port.enqueue(0, 8);
    port.dequeue(0, 2);
    port.us = 5_000;
    port.lose(0, Loss::Refused);
    assert_eq!(port.state(0), (true, 0, 0), "the dequeues in a row start afresh");
    port.us = 9_999;
    port.enqueue(0, 1);
    assert!(port.state(0).0);
    port.us = 10_000;
    port.enqueue(0, 1);
    assert!(!port.state(0).0, "T2 has not started afresh");
}

#[test]
fn a_full_buffer_controls_every_port() {
    let mut port = Driven::new();
    port.enqueue(0, 8);
    port.enqueue(1, 8);
    port.enqueue(2, 5);
    port.us = 1_000;
    port.lose(3, Loss::Full);
    assert_eq!(port.edt.uncontrolled, 0);
    assert!(!port.state(0).0 && !port.state(1).0);
    assert_eq!(port.state(2), (false, 0, 5), "the counters of the others stay");
    port.enqueue(2, 3);
    assert_eq!(port.edt.threshold(view(&port.buffer, 1_000), 2), Some(1_000_000));
}
