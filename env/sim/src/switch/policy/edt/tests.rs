//! Every transition of EDT, driven manually. 16 ports: C1 = 3, C2 = 8, T1 = 2,098.77 us, T2 = 10 ms.

use super::*;
use crate::switch::policy::AnyPolicy;
use crate::switch::{PolicySpec, SharedBuffer};

use Event::{Dequeue, Enqueue, Lose};

const RATE: Rate = Rate(1_000_000_000);

/// An event at a port: a number of packets enter or leave, or one is lost.
#[derive(Clone, Copy, Debug)]
enum Event {
    Enqueue(usize),
    Dequeue(usize),
    Lose(Loss),
}

/// State of a port: true if it is uncontrolled, its dequeues in a row and its net enqueues.
type State = (bool, u32, u32);

/// The time in microseconds, an event at port 0 and the state of port 0 after it.
type Step = (u64, Event, State);

struct Driven {
    buffer: SharedBuffer,
    edt: EnhancedDynamicThreshold,
    us: u64,
}

impl Driven {
    fn new() -> Driven {
        let config = EnhancedDynamicThresholdConfig::suggested(1.0, 1_000_000, 16, RATE);
        Driven {
            buffer: SharedBuffer::new(1_000_000, 1_000_000, 16, 1),
            edt: EnhancedDynamicThreshold::new(config, 16),
            us: 0,
        }
    }

    fn happens(&mut self, us: u64, port: usize, event: Event) {
        self.us = us;
        let packet = PacketView::of_port(port, 1_500);
        let view = View {
            buffer: &self.buffer,
            now: Instant::from_us(us),
            rate: RATE,
        };
        match event {
            Enqueue(packets) => {
                for _ in 0..packets {
                    assert_eq!(self.edt.on_arrival(view, packet), Verdict::Accept);
                    self.edt.on_enqueue(view, packet);
                }
            }
            Dequeue(packets) => {
                for _ in 0..packets {
                    self.edt.on_departure(view, packet);
                }
            }
            Lose(loss) => self.edt.on_drop(view, packet, loss),
        }
    }

    fn state(&self, port: usize) -> State {
        let state = self.edt.ports[port];
        assert_eq!(self.edt.ports[port].uncontrolled, state.uncontrolled);
        (state.uncontrolled, state.dequeues, state.enqueues)
    }

    fn threshold(&self, port: usize) -> Option<u64> {
        let view = View {
            buffer: &self.buffer,
            now: Instant::from_us(self.us),
            rate: RATE,
        };
        self.edt.threshold(view, port)
    }

    fn play(&mut self, steps: &[Step]) {
        for &(us, event, expected) in steps {
            self.happens(us, 0, event);
            assert_eq!(self.state(0), expected, "{event:?} at {us} us of {steps:?}");
        }
    }
}

#[test]
fn suggested_parameters_for_the_default_switch() {
    let config = EnhancedDynamicThresholdConfig::suggested(1.0, 1_000_000, 16, RATE);
    assert_eq!(config.underload_dequeues, 3);
    assert_eq!(config.burst_enqueues, 8);
    assert!((config.controlled_period.as_ms_f64() - 2.1).abs() < 0.01);
    assert_eq!(config.uncontrolled_period, Duration::from_ms(10));
}

/// C2 and T1 of a queue follow from its own α.
#[test]
fn queues_with_different_factors_have_different_parameters() {
    let mut scenario = Scenario::default();
    scenario
        .set_all(["queues_per_port=2", "queue_alpha=4,0.25"])
        .unwrap();
    let spec: PolicySpec = "edt:c1=5".parse().unwrap();
    let AnyPolicy::EnhancedDynamicThreshold(edt) = spec.build(&scenario).unwrap() else {
        panic!("another policy");
    };
    for (queue, alpha) in [(0, 4.0), (1, 0.25), (30, 4.0), (31, 0.25)] {
        let expected = EnhancedDynamicThresholdConfig {
            underload_dequeues: 5,
            ..EnhancedDynamicThresholdConfig::suggested(alpha, 1_000_000, 32, RATE)
        };
        assert_eq!(edt.configs[queue], expected);
    }
    assert_ne!(edt.configs[0].burst_enqueues, edt.configs[1].burst_enqueues);
}

#[test]
fn transitions_of_one_port() {
    let refused = Lose(Loss::Refused);
    let cases: &[(&str, &[Step])] = &[
        (
            "controlled: a dequeue takes an enqueue back, but never below zero; an enqueue ends \
             the dequeues in a row; underload changes nothing; C2 net enqueues are a burst",
            &[
                (0, Enqueue(5), (false, 0, 5)),
                (0, Dequeue(2), (false, 2, 3)),
                (0, Enqueue(1), (false, 0, 4)),
                (0, Dequeue(6), (false, 6, 0)),
                (0, Enqueue(7), (false, 0, 7)),
                (0, Enqueue(1), (true, 0, 0)),
            ],
        ),
        (
            "uncontrolled: enqueues are not counted; C1 dequeues in a row end the state",
            &[
                (0, Enqueue(8), (true, 0, 0)),
                (0, Enqueue(20), (true, 0, 0)),
                (0, Dequeue(2), (true, 2, 0)),
                (0, Enqueue(1), (true, 0, 0)),
                (0, Dequeue(2), (true, 2, 0)),
                (0, Dequeue(1), (false, 3, 0)),
            ],
        ),
        (
            "T1 restarts the counters before an enqueue, and again before a dequeue",
            &[
                (2_000, Enqueue(7), (false, 0, 7)),
                (2_098, Dequeue(1), (false, 1, 6)),
                (2_099, Enqueue(1), (false, 0, 1)),
                (2_099, Enqueue(6), (false, 0, 7)),
                (4_197, Dequeue(1), (false, 1, 6)),
                (4_198, Dequeue(1), (false, 1, 0)),
            ],
        ),
        (
            "T1 starts where T2 ran out, 10,100 us, however late that is seen",
            &[
                (100, Enqueue(8), (true, 0, 0)),
                (11_500, Enqueue(7), (false, 0, 7)),
                (12_199, Enqueue(1), (false, 0, 1)),
            ],
        ),
        (
            "a threshold drop while controlled restarts the counters and T1",
            &[
                (0, Enqueue(7), (false, 0, 7)),
                (1_000, refused, (false, 0, 0)),
                (1_000, Enqueue(6), (false, 0, 6)),
                (3_098, Enqueue(1), (false, 0, 7)),
                (3_099, Enqueue(1), (false, 0, 1)),
            ],
        ),
        (
            "a threshold drop while uncontrolled ends the dequeues in a row, but T2 continues",
            &[
                (0, Enqueue(8), (true, 0, 0)),
                (0, Dequeue(2), (true, 2, 0)),
                (5_000, refused, (true, 0, 0)),
                (9_999, Enqueue(1), (true, 0, 0)),
                (10_000, Enqueue(1), (false, 0, 1)),
            ],
        ),
    ];
    for (what, steps) in cases {
        println!("{what}");
        let mut driven = Driven::new();
        driven.play(steps);
        assert_eq!(driven.state(1), (false, 0, 0));
        assert_eq!(driven.edt.uncontrolled, usize::from(driven.state(0).0));
    }
}

#[test]
fn a_burst_lifts_the_threshold() {
    let mut driven = Driven::new();
    for us in 0..8 {
        assert!(!driven.state(3).0);
        driven.happens(us, 3, Enqueue(1));
    }
    assert!(driven.state(3).0);
    assert_eq!(driven.threshold(3), Some(1_000_000));
}

#[test]
fn uncontrolled_ports_share_the_buffer_and_leave_after_t2() {
    let mut driven = Driven::new();
    driven.happens(0, 0, Enqueue(8));
    driven.happens(100, 1, Enqueue(8));
    assert_eq!(driven.threshold(0), Some(500_000));
    driven.happens(10_000, 5, Enqueue(1));
    assert!(!driven.state(0).0 && driven.state(1).0);
    driven.happens(10_100, 5, Enqueue(1));
    assert!(!driven.state(1).0);
}

#[test]
fn slow_arrivals_are_no_burst() {
    let mut driven = Driven::new();
    for packet in 0..100 {
        // Seven packets fit into T1 before the counters restart.
        driven.happens(310 * packet, 0, Enqueue(1));
    }
    assert!(!driven.state(0).0);
}

#[test]
fn t2_runs_out_whichever_event_comes_and_t1_starts_there() {
    let events = [
        (0, Enqueue(1)),
        (0, Dequeue(1)),
        (0, Lose(Loss::Refused)),
        (1, Enqueue(1)),
    ];
    for (port, event) in events {
        let mut driven = Driven::new();
        driven.happens(100, 0, Enqueue(8));
        driven.happens(10_099, 1, Dequeue(1));
        assert!(driven.state(0).0);
        driven.happens(10_100, port, event);
        assert!(!driven.state(0).0, "{event:?} at port {port}");
        driven.happens(10_100, 0, Enqueue(6));
        driven.happens(10_100 + 2_098, 0, Enqueue(2));
        assert!(
            driven.state(0).0,
            "within T1 of the end of T2: {event:?} at port {port}"
        );
    }
}

#[test]
fn a_full_buffer_controls_every_port_and_a_threshold_drop_none() {
    let mut driven = Driven::new();
    for (port, packets) in [(0, 8), (1, 8), (2, 5)] {
        driven.happens(0, port, Enqueue(packets));
    }
    driven.happens(1, 0, Lose(Loss::Refused));
    assert!(driven.state(0).0 && driven.state(1).0);
    driven.happens(1_000, 3, Lose(Loss::Full));
    assert_eq!(driven.edt.uncontrolled, 0);
    assert!(!driven.state(0).0 && !driven.state(1).0);
    assert_eq!(
        driven.state(2),
        (false, 0, 5),
        "the counters of the others stay"
    );
    driven.happens(1_000, 2, Enqueue(3));
    assert_eq!(driven.threshold(2), Some(1_000_000));
}
