//! Tests of RACK-TLP in a sender, with values computed manually.

use super::tests::{send_all, settings};
use super::*;
use crate::scenario::Scenario;

/// Returns a sender that has measured a round-trip time of 100 µs with its first segment: segments 1 to 11
/// left at 100 µs. PTO = 2 · 100 µs + 2 ms, RTO = 100 µs + 200 ms.
fn flow_by_time(segments: u32, changes: &str) -> (Sender, Settings) {
    let mut scenario = Scenario::default();
    for change in changes.split_whitespace() {
        scenario.set(change).unwrap();
    }
    scenario.set("recovery=rack").unwrap();
    let settings = Settings::from_scenario(&scenario);
    let mut sender = Sender::new(u64::from(segments * settings.mss), &settings);
    sender.begin_by_time(&settings, &mut Pool::default());
    assert_eq!(
        send_all(&mut sender, Instant::ZERO, &settings).len(),
        10.min(segments as usize)
    );
    ack(&mut sender, 1, None, 0, 100, &settings);
    (sender, settings)
}

fn at(us: u64) -> Instant {
    Instant::from_us(us)
}

/// Passes the sender an acknowledgement that arrives at `now` of a segment that left at `stamp`,
/// microseconds.
fn ack(
    sender: &mut Sender,
    next_expected: u32,
    blocks: Option<SackBlocks>,
    stamp: u64,
    now: u64,
    settings: &Settings,
) -> Vec<u32> {
    let ack = Ack {
        next_expected,
        blocks: blocks.as_ref(),
        stamp: at(stamp),
        retransmission: false,
        marked: false,
        congested: false,
        now: at(now),
        path: None,
    };
    sender.on_ack(&ack, settings, &mut Pool::default());
    send_all(sender, at(now), settings)
}

fn expire(sender: &mut Sender, settings: &Settings) -> (Expiry, Vec<u32>) {
    let now = sender.deadline();
    let expiry = sender.on_timeout(now, settings, &mut Pool::default());
    (expiry, send_all(sender, now, settings))
}

#[test]
fn before_the_first_measurement_a_probe_stands_for_the_timeout() {
    let settings = Settings {
        recovery: crate::scenario::Recovery::Rack,
        ..settings()
    };
    let mut sender = Sender::new(u64::from(3 * settings.mss), &settings);
    sender.begin_by_time(&settings, &mut Pool::default());
    assert_eq!(send_all(&mut sender, Instant::ZERO, &settings), [0, 1, 2]);
    assert_eq!(sender.deadline(), Instant::from_ms(200));
    assert_eq!(expire(&mut sender, &settings), (Expiry::Probe, vec![2]));
    assert_eq!(sender.deadline(), Instant::from_ms(400));
    let (expiry, sent) = expire(&mut sender, &settings);
    assert_eq!((expiry, sent), (Expiry::Timeout, vec![0]));
    assert_eq!(sender.cwnd(), settings.mss);
}

/// The handshake took 100 µs; the first flight waits in a standing queue for a millisecond. Both lost
/// segments are sent again. Only the later one arrives, after 500 µs, which is faster than all data
/// before it. The round trip of the handshake shows that this answers the retransmission. So the earlier
/// segment is lost again and need not wait for the timeout.
#[test]
fn the_round_trip_of_the_handshake_tells_retransmissions_from_originals() {
    for (handshake, resent) in [(Some(Duration::from_us(100)), vec![0]), (None, vec![])] {
        let settings = Settings {
            recovery: crate::scenario::Recovery::Rack,
            ..settings()
        };
        let mut sender = Sender::new(u64::from(10 * settings.mss), &settings);
        if let Some(rtt) = handshake {
            sender.rtt.sample(rtt);
        }
        sender.begin_by_time(&settings, &mut Pool::default());
        assert_eq!(send_all(&mut sender, Instant::ZERO, &settings).len(), 10);
        let mut sent = Vec::new();
        for reported in 5..=10 {
            let blocks = Some([(2, reported), (0, 0), (0, 0)]);
            sent.extend(ack(&mut sender, 0, blocks, 0, 1_000, &settings));
        }
        assert_eq!(sent, [0, 1]);
        let blocks = Some([(1, 10), (0, 0), (0, 0)]);
        let sent = ack(&mut sender, 0, blocks, 1_000, 1_500, &settings);
        assert_eq!(sent, resent, "handshake {handshake:?}");
    }
}

#[test]
fn the_timeout_is_a_round_trip_and_at_least_min_rto_as_in_linux() {
    let (sender, settings) = flow_by_time(20, "");
    // RTTVAR is 50 µs, and four times that is less than minRTO.
    assert_eq!(sender.rtt.timeout(&settings), Duration::from_us(200_100));
    let (sender, settings) = flow_by_time(20, "min_rto_us=150");
    assert_eq!(sender.rtt.timeout(&settings), Duration::from_us(300));
}

/// The last of ten segments is lost. The probe repeats it, so that no recovery is needed.
#[test]
fn a_lost_last_segment_is_repaired_by_the_probe() {
    let (mut sender, settings) = flow_by_time(10, "");
    assert!(ack(&mut sender, 9, None, 0, 200, &settings).is_empty());
    // SRTT = 7/8 · 100 + 1/8 · 200 = 112.5 µs.
    assert_eq!(sender.deadline(), at(200 + 225 + 2_000));
    assert_eq!(expire(&mut sender, &settings), (Expiry::Probe, vec![9]));
    assert!(!sender.is_recovering());
    ack(&mut sender, 10, None, 2_425, 2_525, &settings);
    assert!(sender.is_done() && sender.deadline() == Instant::MAX);
}

/// The last three segments are lost: the report of the probe shows that the two before it are lost, too.
#[test]
fn a_lost_tail_of_three_is_repaired_within_two_round_trips_of_the_probe() {
    let (mut sender, settings) = flow_by_time(10, "");
    ack(&mut sender, 7, None, 0, 100, &settings);
    let (expiry, sent) = expire(&mut sender, &settings);
    assert_eq!((expiry, sent), (Expiry::Probe, vec![9]));
    let probed = 2_300;
    let sent = ack(
        &mut sender,
        7,
        Some([(9, 10), (0, 0), (0, 0)]),
        probed,
        probed + 100,
        &settings,
    );
    assert!(sender.is_recovering());
    // Half of the three outstanding segments is less than two segments, the minimum of the threshold.
    assert_eq!(sender.window.ssthresh, 2 * settings.mss);
    assert_eq!(sent, [7, 8]);
    ack(
        &mut sender,
        8,
        Some([(9, 10), (0, 0), (0, 0)]),
        probed + 100,
        probed + 200,
        &settings,
    );
    ack(&mut sender, 10, None, probed + 100, probed + 200, &settings);
    assert!(sender.is_done());
}

#[test]
fn a_probe_takes_new_data_where_there_is_some_and_only_one_is_under_way() {
    let (mut sender, settings) = flow_by_time(100, "");
    // The window is full.
    assert_eq!(send_all(&mut sender, at(100), &settings).len(), 0);
    assert_eq!(sender.sent.next, 12);
    assert_eq!(expire(&mut sender, &settings), (Expiry::Probe, vec![12]));
    assert_eq!(sender.deadline(), at(2_300 + 200_100));
    let (expiry, sent) = expire(&mut sender, &settings);
    assert_eq!((expiry, sent), (Expiry::Timeout, vec![1]));
}

/// The receiver's window has no room for new data.
#[test]
fn a_probe_within_the_cap_of_the_window_is_the_last_segment_again() {
    let (mut sender, settings) = flow_by_time(100, "max_cwnd_bytes=14600");
    assert_eq!(sender.sent.next, 11);
    assert_eq!(expire(&mut sender, &settings), (Expiry::Probe, vec![10]));
}

/// TLP_process_ack: later data without a report of a duplicate shows that the probe repaired a loss,
/// and the window is halved. With a report nothing happens.
#[test]
fn what_a_probe_repairs_costs_half_of_the_window() {
    for (is_duplicate, segments) in [(false, 5), (true, 10)] {
        let (mut sender, settings) = flow_by_time(12, "max_cwnd_bytes=14600");
        expire(&mut sender, &settings);
        // All segments arrive; a new segment, 11, leaves, and its acknowledgement is beyond the probe.
        let report = is_duplicate.then_some([(10, 11), (0, 0), (0, 0)]);
        assert_eq!(ack(&mut sender, 11, report, 100, 2_400, &settings), [11]);
        let mss = settings.mss;
        let outstanding = sender.sent.count() * mss;
        sender.segments = 13;
        ack(&mut sender, 12, None, 2_400, 2_500, &settings);
        assert_eq!(outstanding, mss);
        let least = if is_duplicate {
            segments * mss
        } else {
            2 * mss
        };
        assert_eq!(sender.cwnd(), least);
    }
}

/// Segment 1 is overtaken by 2 and 3 and arrives at most a quarter of a round trip later: nothing is sent
/// again. Without its arrival, the timer would have expired after that quarter and 2 ms.
#[test]
fn reordering_within_the_window_retransmits_nothing() {
    let (mut sender, settings) = flow_by_time(100, "");
    let sent = ack(
        &mut sender,
        1,
        Some([(2, 4), (0, 0), (0, 0)]),
        100,
        210,
        &settings,
    );
    assert_eq!(sent, [12, 13]);
    // Segment 1 left at 0; RACK.rtt is 210 µs, min_RTT 100 µs: 0 + 210 + 25 + 2,000 µs.
    assert_eq!(sender.deadline(), at(2_235));
    let mut late = sender.clone();
    let sent = ack(&mut sender, 4, None, 0, 220, &settings);
    assert!(sent.iter().all(|&index| index > 13));
    assert!(!sender.is_recovering());
    let (expiry, sent) = expire(&mut late, &settings);
    assert_eq!(expiry, Expiry::Reordering);
    assert!(late.is_recovering());
    assert_eq!(sent[0], 1);
}

#[test]
fn a_retransmission_that_is_lost_is_sent_again() {
    let (mut sender, settings) = flow_by_time(100, "");
    let sent = ack(
        &mut sender,
        1,
        Some([(2, 6), (0, 0), (0, 0)]),
        0,
        200,
        &settings,
    );
    assert_eq!(sent[0], 1);
    let until = sender.sent.next;
    // Segments that left after the retransmission arrive, the retransmission does not.
    let mut again = Vec::new();
    for end in 7..=until + 2 {
        let end = end.min(sender.sent.next);
        let blocks = Some([(2, end), (0, 0), (0, 0)]);
        again.extend(ack(&mut sender, 1, blocks, 200, 400, &settings));
    }
    assert!(again.contains(&1), "{again:?}");
}

/// The acknowledgement of the first transmission arrives after the timeout (Eifel).
#[test]
fn a_spurious_timeout_is_undone() {
    let (mut sender, settings) = flow_by_time(100, "");
    expire(&mut sender, &settings);
    let before = sender.window;
    let (expiry, sent) = expire(&mut sender, &settings);
    assert_eq!((expiry, sent), (Expiry::Timeout, vec![1]));
    assert_eq!(sender.cwnd(), settings.mss);
    let now = sender.deadline().as_ns() / 1_000;
    let sent = ack(&mut sender, 2, None, 100, now, &settings);
    assert!(!sender.is_recovering());
    assert!(sender.cwnd() >= before.cwnd && sender.window.ssthresh == before.ssthresh);
    assert!(sent.iter().all(|&index| index > 12), "{sent:?}");
}

/// The receiver reports that it had the only retransmission twice (DSACK): the window is as before.
#[test]
fn a_spurious_fast_retransmit_is_undone_by_its_duplicate() {
    let (mut sender, settings) = flow_by_time(100, "");
    let before = sender.window;
    let reported = Some([(2, 12), (0, 0), (0, 0)]);
    let sent = ack(&mut sender, 1, reported, 0, 200, &settings);
    assert!(sender.is_recovering());
    assert_eq!(sent[0], 1);
    // The timestamp gives no information here, and the recovery ends.
    ack(&mut sender, 12, None, 200, 300, &settings);
    assert!(!sender.is_recovering() && sender.cwnd() < before.cwnd);
    let duplicate = Some([(1, 2), (0, 0), (0, 0)]);
    let sent = ack(&mut sender, 12, duplicate, 200, 300, &settings);
    assert_eq!(sender.window, before);
    assert!(!sent.is_empty());
}

#[test]
fn all_is_given_back_at_the_end_and_late_acknowledgements_change_nothing() {
    let (mut sender, settings) = flow_by_time(10, "");
    let mut pool = Pool::default();
    let last = |blocks| Ack {
        next_expected: 10,
        blocks,
        stamp: Instant::ZERO,
        retransmission: false,
        marked: true,
        congested: false,
        now: at(300),
        path: None,
    };
    sender.on_ack(&last(None), &settings, &mut pool);
    assert!(sender.is_done() && sender.recovery.is_none());
    assert_eq!(pool.count(), 1);
    let report = [(9, 10), (0, 0), (0, 0)];
    sender.on_ack(&last(Some(&report)), &settings, &mut pool);
    assert_eq!(sender.deadline(), Instant::MAX);
    assert_eq!(sender.emit(at(300), &settings), None);
}

/// Tests of rules in which RFCs and Linux differ.
const RULES: [&str; 2] = ["tcp_rules=rfc", "tcp_rules=linux"];

/// Two new segments leave when two are reported. So 13 are outstanding with a window of 11 when the third
/// report shows the loss.
#[test]
fn a_loss_halves_what_is_outstanding_or_in_linux_the_window() {
    let thresholds = RULES.map(|rules| {
        let (mut sender, settings) = flow_by_time(100, rules);
        let blocks = Some([(2, 4), (0, 0), (0, 0)]);
        assert_eq!(ack(&mut sender, 1, blocks, 0, 200, &settings), [12, 13]);
        let blocks = Some([(2, 5), (0, 0), (0, 0)]);
        assert_eq!(ack(&mut sender, 1, blocks, 0, 210, &settings)[0], 1);
        2 * sender.window.ssthresh / settings.mss
    });
    assert_eq!(thresholds, [13, 11]);
}

/// Segments 1 to 9 are lost and nothing is in the network. The report of 10 and 11 lets two segments leave,
/// and one more if recovery need not be careful. The next acknowledgement advances, and is safe.
#[test]
fn linux_sends_more_than_was_delivered_only_where_no_further_loss_shows() {
    let sent = RULES.map(|rules| {
        let (mut sender, settings) = flow_by_time(100, rules);
        let blocks = Some([(10, 12), (0, 0), (0, 0)]);
        let first = ack(&mut sender, 1, blocks, 100, 200, &settings);
        let second = ack(&mut sender, 2, blocks, 200, 300, &settings);
        (first, second)
    });
    let [rfc, linux] = sent;
    assert_eq!(rfc, (vec![1, 2, 3], vec![4, 5]));
    assert_eq!(linux, (vec![1, 2], vec![3, 4]));
}

/// RFC 6298 §5 restarts the timer only when data is acknowledged. Linux also restarts it when the first
/// segment is sent again, and when data is reported that left before.
#[test]
fn the_timer_of_linux_counts_from_the_repair_of_the_first_segment() {
    let deadlines = RULES.map(|rules| {
        let (mut sender, settings) = flow_by_time(100, rules);
        let blocks = Some([(10, 12), (0, 0), (0, 0)]);
        ack(&mut sender, 1, blocks, 100, 200, &settings);
        let repaired = sender.deadline();
        let blocks = Some([(9, 12), (0, 0), (0, 0)]);
        ack(&mut sender, 1, blocks, 0, 250, &settings);
        let reported = sender.deadline();
        (repaired, reported)
    });
    let [rfc, linux] = deadlines;
    assert_eq!(rfc, (at(200_200), at(200_200)));
    assert_eq!(linux.0, at(200 + 200_100));
    // SRTT = 7/8 · 100 + 1/8 · 250 = 118.75 µs.
    assert_eq!(linux.1, at(250 + 200_000) + Duration::from_ns(118_750));
}
