use super::*;
use crate::switch::policy::AnyPolicy;
use crate::switch::{PolicySpec, SharedBuffer};
use crate::units::{Duration, Instant, Rate};

/// Returns a scenario with two ports, two queues each, and 1 Gbit/s: a full packet takes 12.144 µs.
fn scenario() -> Scenario {
    let mut scenario = Scenario::default();
    for setting in ["ports=2", "queues_per_port=2", "buffer_bytes=1000000"] {
        scenario.set(setting).unwrap();
    }
    scenario
}

fn policy(parameters: &str) -> Result<AnyPolicy, String> {
    let spec: PolicySpec = format!("abm:{parameters}").parse().unwrap();
    spec.build(&scenario()).map_err(|error| error.to_string())
}

fn abm(parameters: &str) -> ActiveBufferManagement {
    match policy(parameters) {
        Ok(AnyPolicy::ActiveBufferManagement(abm)) => abm,
        other => panic!("{other:?}"),
    }
}

/// A manually driven switch.
struct Switch {
    buffer: SharedBuffer,
    abm: ActiveBufferManagement,
    now: Instant,
}

impl Switch {
    fn new(parameters: &str) -> Switch {
        Switch {
            buffer: SharedBuffer::new(1_000_000, 1_000_000, 2, 2),
            abm: abm(parameters),
            now: Instant::ZERO,
        }
    }

    fn packet(queue: usize, unscheduled: bool) -> PacketView {
        PacketView {
            port: queue / 2,
            queue,
            bytes: 1_000,
            flow: 0,
            unscheduled,
        }
    }

    fn view(&self) -> View<'_> {
        View {
            buffer: &self.buffer,
            now: self.now,
            rate: Rate(1_000_000_000),
        }
    }

    /// Returns true if a packet of 1000 bytes is accepted.
    fn arrive(&mut self, queue: usize, unscheduled: bool) -> bool {
        let packet = Switch::packet(queue, unscheduled);
        let view = View {
            buffer: &self.buffer,
            now: self.now,
            rate: Rate(1_000_000_000),
        };
        if !self.buffer.fits(packet.bytes) || self.abm.on_arrival(view, packet) == Verdict::Drop {
            return false;
        }
        self.buffer.store(queue, packet.bytes, self.now);
        let mut abm = self.abm.clone();
        abm.on_enqueue(self.view(), packet);
        self.abm = abm;
        true
    }

    fn fill(&mut self, queue: usize, packets: usize) {
        for _ in 0..packets {
            assert!(self.arrive(queue, false));
        }
    }

    /// Handles the departure of a packet of 1000 bytes, 8 µs at line rate.
    fn depart(&mut self, queue: usize) {
        self.buffer.release(queue, 1_000, self.now);
        let mut abm = self.abm.clone();
        abm.on_departure(self.view(), Switch::packet(queue, false));
        self.abm = abm;
    }

    fn alpha(&self, queue: usize) -> f64 {
        self.abm.alpha(queue).unwrap()
    }
}

#[test]
fn the_update_interval_is_the_base_round_trip() {
    // Data of 1518 bytes and acknowledgements of 64, two lines each, and four times 10 µs.
    let rtt = Duration::from_ns(40_000 + 2 * 8 * (1_518 + 64));
    let next_update = |parameters| abm(parameters).shares.next_update() - Instant::ZERO;
    assert_eq!(scenario().base_rtt(), rtt);
    assert_eq!(next_update("alpha=1"), rtt);
    assert_eq!(next_update("update_us=250"), Duration::from_us(250));
    assert_eq!(next_update("periodic_rtts=10"), rtt * 10);
}

/// Packets that take 8 µs depart every 16 µs: half of the line, wherever the intervals of 100 µs begin
/// and end.
#[test]
fn the_drain_rate_is_measured_from_departure_to_departure() {
    let mut switch = Switch::new("alpha=1,update_us=100");
    switch.fill(0, 50);
    for turn in 1..=14 {
        switch.now = Instant::from_us(16 * turn);
        switch.depart(0);
        switch.arrive(0, false);
    }
    // The first interval began with an empty queue; the second one is over.
    assert_eq!(switch.alpha(0), 0.5);
    assert_eq!(switch.alpha(1), 1.0, "an empty queue may have the line");
}

#[test]
fn a_queue_that_is_not_served_loses_its_share_by_and_by() {
    let mut switch = Switch::new("alpha=1,update_us=100");
    switch.fill(0, 50);
    switch.fill(1, 50);
    let mut last = f64::INFINITY;
    for interval in 1..=5 {
        switch.now = Instant::from_us(101 * interval);
        switch.arrive(0, false);
        // No more than a packet of 1518 bytes can have been served.
        let most = (12.144 / (101.0 * interval as f64)).min(1.0);
        let expected = if interval == 1 { 1.0 } else { most };
        assert!(
            (switch.alpha(1) - expected).abs() < 1e-9,
            "{}",
            switch.alpha(1)
        );
        assert!(switch.alpha(1) <= last);
        last = switch.alpha(1);
    }
    while switch.buffer.queue(1) > 0 {
        switch.depart(1);
    }
    switch.now = Instant::from_us(1_000);
    switch.arrive(0, false);
    assert_eq!(switch.alpha(1), 1.0, "it was empty");
}

/// n_p counts the queues of a priority with at least 0.9 of their threshold: `q >= 0.45 (B - Q)`.
#[test]
fn congested_queues_of_a_priority_share_its_alpha() {
    let alphas = |first: usize, third: usize| {
        let mut switch = Switch::new("alpha=0.5,update_us=100");
        switch.fill(0, first);
        switch.fill(2, third);
        switch.now = Instant::from_us(100);
        switch.arrive(1, false);
        [0, 1, 2, 3].map(|queue| switch.alpha(queue))
    };
    assert_eq!(alphas(236, 236), [0.5; 4], "both a little too short");
    assert_eq!(alphas(237, 237), [0.25, 0.5, 0.25, 0.5]);
    assert_eq!(alphas(311, 0), [0.5; 4], "one alone");
    assert_eq!(alphas(311, 100), [0.5; 4], "the other is short");
}

#[test]
fn unscheduled_packets_have_an_alpha_of_their_own() {
    let mut switch = Switch::new("alpha=0.5,alpha_unscheduled=8,update_us=1000000");
    while switch.arrive(0, false) {}
    // q = T = 0.5 (B - q).
    assert_eq!(switch.buffer.queue(0), 334_000);
    while switch.arrive(0, true) {}
    assert_eq!(switch.buffer.queue(0), 889_000);
}

#[test]
fn headroom_is_for_unscheduled_packets_that_the_pool_refuses() {
    let parameters = "alpha=1,alpha_unscheduled=1,headroom_bytes=100000,update_us=1000000";
    let mut switch = Switch::new(parameters);
    while switch.arrive(0, false) {}
    assert_eq!(switch.buffer.queue(0), 450_000, "half of the pool");
    let before = switch.abm.threshold(switch.view(), 0);
    while switch.arrive(0, true) {}
    assert_eq!(switch.buffer.queue(0), 550_000, "and the headroom");
    assert_eq!(switch.abm.threshold(switch.view(), 0), before);
    // A departure makes room in the headroom first.
    switch.depart(0);
    assert_eq!(switch.abm.threshold(switch.view(), 0), before);
    assert!(!switch.arrive(0, false));
    assert!(switch.arrive(0, true));
    assert!(!switch.arrive(0, true));
    // The pool does not grow into the headroom, whatever α.
    let mut switch = Switch::new("alpha=1000,alpha_unscheduled=1000,headroom_bytes=100000");
    while switch.arrive(0, false) {}
    assert!(switch.buffer.occupancy() <= 900_000);
    while switch.arrive(1, true) {}
    assert!(switch.buffer.occupancy() > 990_000);
}

/// A packet that is dropped at the head of its queue leaves the headroom like one that is sent.
#[test]
fn what_is_dropped_at_the_head_makes_room_in_the_headroom() {
    let mut switch = Switch::new("alpha=1,alpha_unscheduled=1,headroom_bytes=100000");
    while switch.arrive(0, false) {}
    while switch.arrive(0, true) {}
    let before = switch.abm.threshold(switch.view(), 0);
    let packet = Switch::packet(0, false);
    switch.buffer.release(0, packet.bytes, switch.now);
    let view = View {
        buffer: &switch.buffer,
        now: switch.now,
        rate: Rate(1_000_000_000),
    };
    switch.abm.on_drop(view, packet, Loss::Head);
    assert_eq!(switch.abm.threshold(switch.view(), 0), before);
    assert!(switch.arrive(0, true));
    assert!(!switch.arrive(0, true));
}

/// The unscheduled α does not apply if α is only updated periodically, with either estimate.
#[test]
fn periodic_updates_tell_no_packet_apart() {
    for (parameters, estimated) in [("", false), (",estimate=artefact", true)] {
        let built = policy(&format!("alpha=1,periodic_rtts=2{parameters}")).unwrap();
        let is_estimated = matches!(built, AnyPolicy::AbmNs3(_));
        assert_eq!(is_estimated, estimated);
        let mut policy = built;
        let mut buffer = SharedBuffer::new(1_000_000, 1_000_000, 2, 2);
        buffer.store(0, 600_000, Instant::ZERO);
        let view = View {
            buffer: &buffer,
            now: Instant::ZERO,
            rate: Rate(1_000_000_000),
        };
        let verdict = policy.on_arrival(view, Switch::packet(0, true));
        assert_eq!(verdict, Verdict::Drop, "{parameters}");
    }
}

#[test]
fn contradictions_are_one_clear_line() {
    let message = |parameters: &str| policy(parameters).unwrap_err();
    assert!(message("alphas=1/2/3").contains("queues_per_port = 2"));
    assert!(message("alphas=1/2,alpha=2").contains("leave one out"));
    assert!(message("periodic_rtts=10,update_us=3").contains("update_us has no meaning"));
    let headroom = message("estimate=artefact,headroom_bytes=5000");
    assert!(headroom.contains("headroom_bytes has no meaning with estimate=artefact"));
    assert!(message("headroom_bytes=999999").contains("at most 998482"));
    let unknown = "abm:estimate=ns3".parse::<PolicySpec>().unwrap_err();
    assert!(unknown.to_string().contains("one of paper, artefact"));
    let unreadable = "abm:alphas=1/0".parse::<PolicySpec>().unwrap_err();
    assert!(
        unreadable
            .to_string()
            .contains("numbers above 0, separated by /")
    );
    let spec: PolicySpec = "abm:alphas=8.0/0.50".parse().unwrap();
    assert_eq!(spec.to_string(), "abm:alphas=8/0.5");
}
