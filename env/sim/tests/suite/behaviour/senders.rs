//! What the senders of operating systems do in a whole simulation: RACK-TLP, delayed and quick
//! acknowledgements, late binding.

use bufgym_sim::network::{Outcome, Simulator};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::{PacketView, Policy, PolicySpec, Verdict, View};
use bufgym_sim::traffic::{FlowSpec, Trace};
use bufgym_sim::units::Time;
use proptest::prelude::*;

use crate::behaviour::setup::{any_setup, config};

fn scenario(settings: &str) -> Scenario {
    let mut scenario = Scenario::default();
    for setting in settings.split_whitespace() {
        scenario.set(setting).unwrap();
    }
    scenario
}

fn flow(src: u32, start: Time, segments: u64) -> FlowSpec {
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
    trace(vec![flow(1, Time::ZERO, segments)])
}

fn run(settings: &str, trace: &Trace) -> Outcome {
    let policy: PolicySpec = "cs".parse().unwrap();
    let scenario = scenario(settings);
    policy.simulator(&scenario, trace).unwrap().run()
}

fn finish(outcome: &Outcome) -> Time {
    let ends = outcome.records.iter().map(|record| record.finish.unwrap());
    ends.max().unwrap()
}

/// Complete sharing that loses some of the data packets, by the order of their arrival.
struct Losing {
    arrived: u64,
    lost: Vec<u64>,
}

impl Policy for Losing {
    fn on_arrival(&mut self, _view: View<'_>, packet: PacketView) -> Verdict {
        if packet.bytes < 1_000 {
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

fn run_losing(settings: &str, segments: u64, lost: &[u64]) -> Outcome {
    let policy = Losing {
        arrived: 0,
        lost: lost.to_vec(),
    };
    let mut simulator = Simulator::new(&scenario(settings), &lone(segments), policy).unwrap();
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
            let limit = Time::from_ms(if delays { 43 } else { 3 });
            assert!(finish(&outcome) < limit, "{transport} {lost:?}");
        }
    }
    let by_rfc = run_losing("recovery=rfc", 10, &[8, 9]);
    assert_eq!(
        (by_rfc.summary.timeouts, by_rfc.summary.tail_probes),
        (1, 0)
    );
    assert_eq!(by_rfc.records[0].timeouts, 1);
    assert!(finish(&by_rfc) > Time::from_ms(200));
}

/// Segment 3 and its retransmission, the eleventh packet or so, are lost: RACK sees both.
#[test]
fn a_lost_retransmission_is_sent_again_without_a_timeout() {
    let again = |outcome: &Outcome| outcome.summary.timeouts;
    let first = run_losing("recovery=rack", 200, &[3]);
    assert_eq!(again(&first), 0);
    // Wherever in the order the retransmission is, one of these is it.
    let mut by_rfc = 0;
    for second in 4..40 {
        let outcome = run_losing("recovery=rack", 200, &[3, second]);
        assert_eq!(again(&outcome), 0, "{second}");
        by_rfc += again(&run_losing("recovery=rfc", 200, &[3, second]));
    }
    assert!(by_rfc > 0);
}

/// Where all of the first flight is lost, nothing was measured: the probe stands for the timeout.
#[test]
fn a_lost_flight_costs_one_minimum_of_the_timeout() {
    for settings in ["recovery=rack", "transport=linux late_binding=true"] {
        let outcome = run_losing(settings, 3, &[0, 1, 2]);
        assert_eq!(outcome.summary.tail_probes, 1, "{settings}");
        assert_eq!(outcome.summary.timeouts, 0, "{settings}");
        let end = finish(&outcome);
        assert!(
            end > Time::from_ms(200) && end < Time::from_ms(204),
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

/// 199 flows send ten segments each at once to one port. The first segment of the last flow waits 2.4
/// ms, longer than its timer, but nothing is lost: what a sender by RFC 6675 sends again, all that was
/// outstanding, RACK-TLP takes back after the first acknowledgement.
#[test]
fn a_spurious_timeout_is_counted_and_undone() {
    // The first flow goes on for so long that what was sent again arrives.
    let segments = |src| if src == 1 { 10_000 } else { 10 };
    let trace = trace(
        (1..200)
            .map(|src| flow(src, Time::ZERO, segments(src)))
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

/// 1,000 segments: 16 are acknowledged at once, then every second one. At the end one or two
/// acknowledgements are still under way.
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

/// The most packets of a lone flow that are on their way, hosts included.
fn most_in_network(settings: &str) -> (u32, u32) {
    let policy: PolicySpec = "cs".parse().unwrap();
    let scenario = scenario(settings);
    let mut simulator = policy.simulator(&scenario, &lone(2_000)).unwrap();
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
    // Slow start ends to grow when less than half of the window is in use.
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
        // 255 stands for more, too.
        let saturated = of_flows().any(|timeouts| timeouts == 255);
        prop_assert!(sum == all || saturated && sum < all, "{} of {}", sum, all);
        let kind = setup.scenario.transport;
        if setup.scenario.recovery.name() != "rack" && !kind.is_combination() {
            prop_assert_eq!(outcome.summary.tail_probes, 0);
        }
    }

    /// No receiver has a segment twice that was sent once: without loss and without a timer that
    /// expired nothing is sent again.
    #[test]
    fn nothing_is_sent_twice_without_a_reason(setup in any_setup()) {
        let summary = setup.simulator().run().summary;
        let reasons = summary.drops + summary.timeouts + summary.tail_probes;
        prop_assert!(reasons > 0 || summary.spurious_retransmissions == 0, "{:?}", summary);
    }
}
