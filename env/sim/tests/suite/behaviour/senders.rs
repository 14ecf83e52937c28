//! Operating systems' senders in whole simulations: RACK-TLP, delayed and quick acknowledgements, late
//! binding.

use bufgym_sim::network::{OneSwitch, Outcome, Simulator};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::{PacketView, Policy, PolicySpec, Verdict, View};
use bufgym_sim::traffic::{FlowSpec, Trace};
use bufgym_sim::units::{Duration, Instant};
use proptest::prelude::*;

use crate::behaviour::setup::{any_setup, config};

fn scenario(settings: &str) -> Scenario {
    let mut scenario = Scenario::default();
    for setting in settings.split_whitespace() {
        scenario.set(setting).unwrap();
    }
    scenario
}

fn flow(src: u32, start: Instant, segments: u64) -> FlowSpec {
    FlowSpec {
        id: u64::from(src),
        src,
        dst: 0,
        start,
        size: 1_460 * segments,
        kind: 0,
        query: -1,
        priority: 0,
    }
}

fn trace(flows: Vec<FlowSpec>) -> Trace {
    Trace {
        flows,
        ..Trace::default()
    }
}

fn lone(segments: u64) -> Trace {
    trace(vec![flow(1, Instant::ZERO, segments)])
}

fn run(settings: &str, trace: &Trace) -> Outcome {
    let policy: PolicySpec = "cs".parse().unwrap();
    let scenario = scenario(settings);
    policy.run(&scenario, trace).unwrap()
}

fn finish(outcome: &Outcome) -> Instant {
    let ends = outcome.records.iter().map(|record| record.finish.unwrap());
    ends.max().unwrap()
}

/// Complete sharing that loses some of the packets of at least `bytes` bytes, by the order of their
/// arrival.
struct Losing {
    bytes: u64,
    arrived: u64,
    lost: Vec<u64>,
}

impl Policy for Losing {
    fn on_arrival(&mut self, _view: View<'_>, packet: PacketView) -> Verdict {
        if packet.bytes < self.bytes {
            return Verdict::Accept;
        }
        self.arrived += 1;
        match self.lost.contains(&(self.arrived - 1)) {
            true => Verdict::Drop,
            false => Verdict::Accept,
        }
    }

    fn threshold(&self, _view: View<'_>, _port: usize) -> Option<u64> {
        None
    }
}

/// Returns a simulation of a flow of `segments` segments, in which the switch loses some of the packets
/// of at least `bytes` bytes.
fn losing(settings: &str, segments: u64, bytes: u64, lost: &[u64]) -> Simulator<Losing> {
    let policy = Losing {
        bytes,
        arrived: 0,
        lost: lost.to_vec(),
    };
    Simulator::new(&scenario(settings), &lone(segments), policy).unwrap()
}

fn run_losing(settings: &str, segments: u64, lost: &[u64]) -> Outcome {
    let mut simulator = losing(settings, segments, 1_000, lost);
    let outcome = simulator.run();
    assert_eq!(outcome.summary.completed, 1);
    assert_eq!(outcome.summary.drops, lost.len() as u64);
    outcome
}

/// The probe comes 2 · SRTT + 2 ms after the last acknowledgement, or 40 ms later if one segment is
/// outstanding and the receiver delays; all is repaired within 3 ms, or 43 ms.
#[test]
fn a_lost_tail_is_repaired_without_a_timeout() {
    for transport in [
        "recovery=rack",
        "transport=cubic recovery=rack",
        "transport=linux",
    ] {
        for lost in [&[9][..], &[8, 9], &[7, 8, 9]] {
            let outcome = run_losing(transport, 10, lost);
            let summary = &outcome.summary;
            assert_eq!(
                (summary.timeouts, summary.tail_probes),
                (0, 1),
                "{transport} {lost:?}"
            );
            assert_eq!(outcome.records[0].timeouts, 0);
            assert_eq!(summary.spurious_retransmissions, 0);
            let delays = transport == "transport=linux" && lost.len() == 1;
            let limit = Instant::from_ms(if delays { 43 } else { 3 });
            assert!(finish(&outcome) < limit, "{transport} {lost:?}");
        }
    }
    let by_rfc = run_losing("recovery=rfc", 10, &[8, 9]);
    assert_eq!(
        (by_rfc.summary.timeouts, by_rfc.summary.tail_probes),
        (1, 0)
    );
    assert_eq!(by_rfc.records[0].timeouts, 1);
    assert!(finish(&by_rfc) > Instant::from_ms(200));
}

/// Segment 3 and its retransmission, the eleventh packet or so, are lost: RACK sees both.
#[test]
fn a_lost_retransmission_is_sent_again_without_a_timeout() {
    let again = |outcome: &Outcome| outcome.summary.timeouts;
    let first = run_losing("recovery=rack", 200, &[3]);
    assert_eq!(again(&first), 0);
    // One of these losses hits the retransmission, wherever it is in the order.
    let mut by_rfc = 0;
    for second in 4..40 {
        let outcome = run_losing("recovery=rack", 200, &[3, second]);
        assert_eq!(again(&outcome), 0, "{second}");
        by_rfc += again(&run_losing("recovery=rfc", 200, &[3, second]));
    }
    assert!(by_rfc > 0);
}

/// If all of the first flight is lost, nothing was measured: the probe replaces the timeout.
#[test]
fn a_lost_flight_costs_one_minimum_of_the_timeout() {
    for settings in ["recovery=rack", "transport=linux late_binding=true"] {
        let outcome = run_losing(settings, 3, &[0, 1, 2]);
        assert_eq!(outcome.summary.tail_probes, 1, "{settings}");
        assert_eq!(outcome.summary.timeouts, 0, "{settings}");
        let end = finish(&outcome);
        assert!(
            end > Instant::from_ms(200) && end < Instant::from_ms(204),
            "{settings}: {end}"
        );
    }
}

#[test]
fn without_loss_rack_does_what_rfc_does() {
    for transport in ["newreno", "cubic", "dctcp", "cubic hystart=true"] {
        for segments in [1, 2, 9, 10, 11, 57, 400, 5_000] {
            let settings = |recovery| format!("transport={transport} recovery={recovery}");
            let [rfc, rack] =
                ["rfc", "rack"].map(|recovery| run(&settings(recovery), &lone(segments)));
            assert_eq!(finish(&rfc), finish(&rack), "{transport} {segments}");
            let forwarded = [&rfc, &rack].map(|outcome| outcome.summary.packets_forwarded);
            assert_eq!(forwarded[0], forwarded[1], "{transport} {segments}");
            assert_eq!(rack.summary.tail_probes, 0);
            let bound_late = run(
                &format!("{} late_binding=true", settings("rack")),
                &lone(segments),
            );
            assert_eq!(finish(&rfc), finish(&bound_late), "{transport} {segments}");
        }
    }
}

/// Returns the segments of the initial window, and the milliseconds until the first segment's timer
/// expires, if the switch loses the packets with these numbers.
fn start(settings: &str, lost: &[u64]) -> (u32, f64) {
    let settings = format!("handshake=true {settings}");
    let mut simulator = losing(&settings, 100, 0, lost);
    loop {
        assert!(simulator.step(), "{settings}: nothing is sent");
        let flow = simulator.active_flows().next().unwrap();
        if flow.timeout_in < Duration::from_ms(100_000) {
            return (flow.cwnd / 1_460, flow.timeout_in.as_ms_f64());
        }
    }
}

/// The switch loses the SYN or the SYN-ACK, once or twice. If both ends repeat theirs, three packets
/// arrive.
#[test]
fn a_lost_syn_leaves_one_segment_and_three_seconds() {
    let (syn, both_syns, answer, both_answers) = (&[0][..], &[0, 1][..], &[1][..], &[1, 3, 4][..]);
    let timeout = "syn_timeout_us=1000000";
    for (settings, lost, expected) in [
        // RFC 6928, section 2: more than one retransmission. RFC 6298, section 5.7.
        ("", &[][..], (10, 200.0)),
        ("", syn, (10, 3_000.0)),
        ("", answer, (10, 3_000.0)),
        ("", both_syns, (1, 3_000.0)),
        ("", both_answers, (1, 3_000.0)),
        // RFC 5681, section 3.1: one segment at once, instead of three.
        ("init_cwnd=3", &[], (3, 200.0)),
        ("init_cwnd=3", syn, (1, 3_000.0)),
        ("init_cwnd=3", answer, (1, 3_000.0)),
        ("init_cwnd=4", syn, (4, 3_000.0)),
        ("init_cwnd=4", both_syns, (1, 3_000.0)),
        // A time stamp still measures the round trip.
        ("timestamps=true", syn, (10, 200.0)),
        ("timestamps=true", both_syns, (1, 200.0)),
        // Shorter timeouts of a SYN also shorten the timeout of data.
        ("syn_timeout_us=min_rto", syn, (10, 600.0)),
        ("syn_timeout_us=10000 min_rto_us=10000", syn, (10, 30.0)),
        ("syn_timeout_us=10000", syn, (10, 200.0)),
        // A probe comes as late as the first timeout of a SYN (RFC 8985, section 7.2).
        ("recovery=rack", &[], (10, 2.0)),
        ("recovery=rack", syn, (10, 1_000.0)),
        ("recovery=rack init_cwnd=3", syn, (1, 1_000.0)),
        ("transport=linux timestamps=true", both_syns, (1, 40.0)),
        // As in `tcp_init_transfer` of Linux.
        (
            "recovery=rack tcp_rules=linux init_cwnd=3",
            syn,
            (3, 1_000.0),
        ),
        (
            "recovery=rack tcp_rules=linux init_cwnd=3",
            both_syns,
            (1, 1_000.0),
        ),
        // Transports that set a rate, after a timeout too.
        ("transport=theta-powertcp", both_answers, (1, 3_000.0)),
        // ns-3 has no such rules.
        ("recovery=ns3", both_syns, (10, 200.0)),
    ] {
        let (segments, ms) = start(&format!("{timeout} {settings}"), lost);
        assert_eq!(segments, expected.0, "{settings} {lost:?}");
        assert!(
            (ms - expected.1).abs() < 0.3,
            "{settings} {lost:?}: {ms} ms"
        );
    }
}

/// SYNs leave at 0, 10 and 30 µs, and the first one is answered after 41 µs. With time stamps Linux
/// detects that nothing was lost (`tcp_try_undo_spurious_syn`).
#[test]
fn linux_takes_a_needless_second_syn_back() {
    let start = |settings| start(&format!("syn_timeout_us=10 {settings}"), &[]).0;
    assert_eq!(start("recovery=rack timestamps=true"), 1);
    assert_eq!(start("recovery=rack tcp_rules=linux"), 1);
    assert_eq!(start("recovery=rack tcp_rules=linux timestamps=true"), 10);
}

/// 199 flows send ten segments each at once to one port. The first segment of the last flow waits 2.4
/// ms, longer than its timer, but nothing is lost. A sender by RFC 6675 retransmits everything
/// outstanding; RACK-TLP undoes this after the first acknowledgement.
#[test]
fn a_spurious_timeout_is_counted_and_undone() {
    // The first flow lasts long enough that retransmissions arrive.
    let segments = |src| if src == 1 { 10_000 } else { 10 };
    let trace = trace(
        (1..200)
            .map(|src| flow(src, Instant::ZERO, segments(src)))
            .collect(),
    );
    let outcome = |recovery| {
        let settings = "ports=200 buffer_bytes=10000000 min_rto_us=1000";
        run(&format!("{settings} recovery={recovery}"), &trace)
    };
    let [rfc, rack] = ["rfc", "rack"].map(outcome);
    for outcome in [&rfc, &rack] {
        assert_eq!(outcome.summary.drops, 0);
        assert!(outcome.summary.timeouts > 0);
        assert!(outcome.summary.spurious_retransmissions > 0);
    }
    let [by_rfc, by_rack] = [&rfc, &rack].map(|outcome| outcome.summary.spurious_retransmissions);
    assert!(by_rack * 3 < by_rfc, "{by_rack} of {by_rfc}");
}

/// Of 1,000 segments, 16 are acknowledged at once, then every second one. At the end one or two
/// acknowledgements are still in flight.
#[test]
fn acknowledgements_are_quick_at_the_start_and_then_delayed() {
    let outcome = run("transport=linux", &lone(1_000));
    let acknowledgements = outcome.summary.packets_forwarded - 1_000;
    let all = 16 + (1_000 - 16) / 2;
    assert!(
        (all - 2..=all).contains(&acknowledgements),
        "{acknowledgements}"
    );
    assert_eq!(
        (outcome.summary.timeouts, outcome.summary.tail_probes),
        (0, 0)
    );
}

/// Returns the most packets of a lone flow in flight, hosts included, and its largest window.
fn most_in_network(settings: &str) -> (u32, u32) {
    let policy: PolicySpec = "cs".parse().unwrap();
    let scenario = scenario(settings);
    let mut simulator = policy
        .simulator::<OneSwitch>(&scenario, &lone(2_000))
        .unwrap();
    let (mut packets, mut window) = (0, 0);
    while !simulator.finished() && simulator.step() {
        for flow in simulator.active_flows() {
            packets = packets.max(flow.in_network);
            window = window.max(flow.cwnd);
        }
    }
    (packets, window)
}

/// A round trip takes 66 µs, five and a half transmissions. With late binding two packets wait.
#[test]
fn late_binding_keeps_the_queue_of_the_host_short_and_the_window_valid() {
    let (early, wide) = most_in_network("recovery=rack");
    let (late, narrow) = most_in_network("recovery=rack late_binding=true");
    assert!(early > 900, "{early}");
    assert!(late <= 10, "{late}");
    assert!(wide > 900 * 1_460, "{wide}");
    // Slow start stops growing the window when less than half of it is in use.
    assert!(narrow <= 21 * 1_460, "{narrow}");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn timeouts_of_flows_add_up_and_probes_are_only_rack(setup in any_setup()) {
        let outcome = setup.simulator().run();
        let of_flows = || outcome.records.iter().map(|record| u64::from(record.timeouts));
        let sum: u64 = of_flows().sum();
        let all = outcome.summary.timeouts;
        // 255 also stands for more.
        let saturated = of_flows().any(|timeouts| timeouts == 255);
        prop_assert!(sum == all || saturated && sum < all, "{} of {}", sum, all);
        let kind = setup.scenario.transport.kind;
        if setup.scenario.tcp.recovery.name() != "rack" && !kind.is_combination() {
            prop_assert_eq!(outcome.summary.tail_probes, 0);
        }
    }

    /// No receiver gets a segment twice that was sent once: without losses and expired timers nothing
    /// is retransmitted.
    #[test]
    fn nothing_is_sent_twice_without_a_reason(setup in any_setup()) {
        let summary = setup.simulator().run().summary;
        let reasons = summary.drops + summary.timeouts + summary.tail_probes;
        prop_assert!(reasons > 0 || summary.spurious_retransmissions == 0, "{:?}", summary);
    }
}
