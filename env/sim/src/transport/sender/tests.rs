use super::*;
use crate::scenario::Scenario;

pub(super) fn settings() -> Settings {
    Settings::from_scenario(&Scenario::default())
}

fn flow(segments: u32) -> (Sender, Settings) {
    let settings = settings();
    (
        Sender::new(u64::from(segments * settings.mss), &settings),
        settings,
    )
}

pub(super) fn send_all(sender: &mut Sender, now: Instant, settings: &Settings) -> Vec<u32> {
    std::iter::from_fn(|| sender.emit(now, settings))
        .map(|segment| segment.index)
        .collect()
}

/// Passes the sender an acknowledgement of a segment sent `rtt` before; without `rtt`, of a retransmitted
/// one.
fn acknowledge(
    sender: &mut Sender,
    next_expected: u32,
    blocks: Option<&SackBlocks>,
    rtt: Option<Duration>,
    now: Instant,
    settings: &Settings,
) {
    let ack = Ack {
        next_expected,
        blocks,
        stamp: now.saturating_sub(rtt.unwrap_or_default()),
        retransmission: rtt.is_none(),
        marked: false,
        congested: false,
        now,
        path: None,
    };
    sender.on_ack(&ack, settings, &mut Pool::default());
}

fn time_out(sender: &mut Sender, now: Instant, settings: &Settings) {
    sender.on_timeout(now, settings, &mut Pool::default());
}

fn block(start: u32, end: u32) -> SackBlocks {
    [(start, end), (0, 0), (0, 0)]
}

#[test]
fn the_initial_window_then_two_segments_for_every_acknowledgement() {
    let (mut sender, settings) = flow(100);
    assert_eq!(
        send_all(&mut sender, Instant::ZERO, &settings),
        (0..10).collect::<Vec<_>>()
    );
    acknowledge(
        &mut sender,
        1,
        None,
        Some(Duration::from_us(60)),
        Instant::from_us(60),
        &settings,
    );
    assert_eq!(
        send_all(&mut sender, Instant::from_us(60), &settings),
        [10, 11]
    );
    assert!(sender.in_slow_start());
}

#[test]
fn the_last_segment_is_short_and_all_acknowledged_stops_the_timer() {
    let settings = settings();
    let mut sender = Sender::new(u64::from(settings.mss) + 1, &settings);
    sender.emit(Instant::ZERO, &settings);
    let last = sender.emit(Instant::ZERO, &settings).unwrap();
    assert_eq!((last.index, last.payload), (1, 1));
    assert_eq!(sender.deadline(), Instant::from_ms(200));
    acknowledge(&mut sender, 2, None, None, Instant::from_us(50), &settings);
    assert_eq!(sender.deadline(), Instant::MAX);
    assert!(sender.is_done());
}

#[test]
fn duplicate_acknowledgements_send_new_data_then_the_hole() {
    let (mut sender, settings) = flow(100);
    send_all(&mut sender, Instant::ZERO, &settings);
    // Segment 0 is lost. The first two SACKs allow new segments (limited transmit, RFC 3042).
    for sacked in 1..3 {
        acknowledge(
            &mut sender,
            0,
            Some(&block(1, sacked + 1)),
            None,
            Instant::ZERO,
            &settings,
        );
        assert_eq!(
            send_all(&mut sender, Instant::ZERO, &settings),
            [9 + sacked]
        );
    }
    acknowledge(
        &mut sender,
        0,
        Some(&block(1, 4)),
        None,
        Instant::ZERO,
        &settings,
    );
    assert!(sender.is_recovering());
    assert_eq!(send_all(&mut sender, Instant::ZERO, &settings)[0], 0);
    // Half of the 12 segments outstanding.
    assert_eq!(sender.window.ssthresh, 6 * settings.mss);
    acknowledge(&mut sender, 12, None, None, Instant::ZERO, &settings);
    assert!(!sender.is_recovering());
    assert_eq!(sender.cwnd(), 6 * settings.mss);
}

#[test]
fn a_timeout_goes_back_to_one_segment_and_skips_what_was_sacked() {
    let (mut sender, settings) = flow(10);
    send_all(&mut sender, Instant::ZERO, &settings);
    acknowledge(
        &mut sender,
        0,
        Some(&block(2, 4)),
        None,
        Instant::ZERO,
        &settings,
    );
    let expiry = sender.deadline();
    time_out(&mut sender, expiry, &settings);
    assert_eq!(sender.window.ssthresh, 5 * settings.mss);
    assert_eq!(sender.deadline(), expiry + Duration::from_ms(400));
    assert_eq!(send_all(&mut sender, expiry, &settings), [0]);
    acknowledge(&mut sender, 1, None, None, expiry, &settings);
    assert_eq!(send_all(&mut sender, expiry, &settings), [1, 4]);
}

#[test]
fn a_second_timeout_leaves_the_threshold() {
    let (mut sender, settings) = flow(40);
    send_all(&mut sender, Instant::ZERO, &settings);
    time_out(&mut sender, Instant::from_ms(200), &settings);
    let threshold = sender.window.ssthresh;
    send_all(&mut sender, Instant::from_ms(200), &settings);
    time_out(&mut sender, Instant::from_ms(600), &settings);
    assert_eq!(sender.window.ssthresh, threshold);
}

#[test]
fn a_lost_tail_is_retransmitted_once_when_nothing_else_can_be_sent() {
    let (mut sender, settings) = flow(10);
    send_all(&mut sender, Instant::ZERO, &settings);
    // Segments 0 and 9 are lost; 1 to 8 arrive.
    acknowledge(
        &mut sender,
        0,
        Some(&block(1, 9)),
        None,
        Instant::ZERO,
        &settings,
    );
    assert_eq!(send_all(&mut sender, Instant::ZERO, &settings), [0, 9]);
}

fn flow_without_sack(segments: u32) -> (Sender, Settings) {
    let settings = Settings {
        sack: false,
        ..settings()
    };
    let bytes = u64::from(segments * settings.mss);
    (Sender::new(bytes, &settings), settings)
}

/// RFC 6582 §3.2: the third duplicate retransmits the hole with half the window plus three segments.
/// Further ones inflate the window. A partial acknowledgement retransmits the next hole. A full one
/// sets the window to ssthresh, or to the outstanding data plus one segment if that is less.
#[test]
fn without_sack_fast_recovery_goes_from_hole_to_hole() {
    let (mut sender, settings) = flow_without_sack(100);
    let now = Instant::ZERO;
    let duplicate = |sender: &mut Sender| {
        acknowledge(sender, 0, None, None, now, &settings);
        send_all(sender, now, &settings)
    };
    assert_eq!(send_all(&mut sender, now, &settings).len(), 10);
    assert_eq!(duplicate(&mut sender), [10]);
    assert_eq!(duplicate(&mut sender), [11]);
    assert_eq!(duplicate(&mut sender), [0]);
    assert!(sender.is_recovering());
    assert_eq!(sender.window.ssthresh, 6 * settings.mss);
    assert_eq!(sender.cwnd(), 9 * settings.mss);
    for _ in 0..3 {
        assert!(duplicate(&mut sender).is_empty());
    }
    assert_eq!(duplicate(&mut sender), [12]);
    // Segment 4 was lost too.
    acknowledge(&mut sender, 4, None, None, now, &settings);
    assert!(sender.is_recovering());
    assert_eq!(sender.cwnd(), 10 * settings.mss);
    assert_eq!(send_all(&mut sender, now, &settings), [4, 13]);
    acknowledge(&mut sender, 12, None, None, now, &settings);
    assert!(!sender.is_recovering());
    assert_eq!(sender.cwnd(), 3 * settings.mss);
}

/// RFC 6582 §3.2, step 1: duplicates for segments sent before the last loss indicate no new loss.
#[test]
fn without_sack_a_timeout_sends_everything_again_in_order() {
    let (mut sender, settings) = flow_without_sack(100);
    send_all(&mut sender, Instant::ZERO, &settings);
    let later = sender.deadline();
    time_out(&mut sender, later, &settings);
    assert_eq!(send_all(&mut sender, later, &settings), [0]);
    for _ in 0..5 {
        acknowledge(&mut sender, 0, None, None, later, &settings);
        assert!(send_all(&mut sender, later, &settings).is_empty());
    }
    acknowledge(&mut sender, 1, None, None, later, &settings);
    assert_eq!(send_all(&mut sender, later, &settings), [1, 2]);
    acknowledge(&mut sender, 10, None, None, later, &settings);
    assert!(!sender.is_recovering());
}

/// A loss takes recovery state from the pool; the acknowledgement that ends recovery gives it back.
#[test]
fn recovery_state_is_given_back() {
    let (mut sender, settings) = flow(100);
    let mut pool = Pool::default();
    let ack = |next_expected, blocks| Ack {
        next_expected,
        blocks,
        stamp: Instant::ZERO,
        retransmission: false,
        marked: false,
        congested: false,
        now: Instant::ZERO,
        path: None,
    };
    send_all(&mut sender, Instant::ZERO, &settings);
    sender.on_ack(&ack(1, None), &settings, &mut pool);
    assert!(sender.recovery.is_none());
    let blocks = block(2, 6);
    sender.on_ack(&ack(1, Some(&blocks)), &settings, &mut pool);
    send_all(&mut sender, Instant::ZERO, &settings);
    assert!(sender.is_recovering() && sender.recovery.is_some());
    assert_eq!(pool.count(), 0);
    sender.on_ack(&ack(sender.sent.next, None), &settings, &mut pool);
    assert!(!sender.is_recovering() && sender.recovery.is_none());
    assert_eq!(pool.count(), 1);
}
