//! Loss detection by time: a segment is lost if one that left sufficiently later was delivered
//! (RACK, RFC 8985 §6).

use super::flight::{Delivered, Flight};
use crate::units::{Duration, Instant};

/// Number of reported segments that shows a loss if no reordering was seen (RFC 8985 §4, DupThresh).
const DUP_THRESH: u32 = 3;

/// Number of recoveries without a duplicate after which the window is the minimum again (§6.2, step 4).
const PERSISTENCE: u8 = 16;

/// State of RACK for a connection (RFC 8985 §5.3).
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// Transmission number, which stands for the time of transmission (RACK.xmit_ts), and round-trip time
    /// (RACK.rtt) of the delivered segment that left last. No segment has number 0.
    order: u64,
    rtt: Duration,
    /// Minimum round-trip time of the connection (RACK.min_RTT). A flow is shorter than the minutes
    /// over which a kernel takes the minimum.
    min_rtt: Duration,
    /// One past the highest segment delivered (RACK.fack).
    highest: u32,
    reordering_seen: bool,
    /// Size of the reordering window, in quarters of the minimum round-trip time (RACK.reo_wnd_mult).
    quarters: u32,
    /// Number of further recoveries for which the window keeps its size (RACK.reo_wnd_persist).
    persists: u8,
    /// Segment until whose acknowledgement further duplicates do not widen the window (RACK.dsack_round).
    round: Option<u32>,
}

impl Default for Rack {
    fn default() -> Rack {
        Rack {
            order: 0,
            rtt: Duration::ZERO,
            min_rtt: Duration::MAX,
            highest: 0,
            reordering_seen: false,
            quarters: 1,
            persists: 0,
            round: None,
        }
    }
}

/// Input of the reordering window other than [`Rack`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    pub(crate) now: Instant,
    pub(crate) smoothed_rtt: Duration,
    /// True in fast recovery or after a timeout.
    pub(crate) recovering: bool,
}

impl Rack {
    /// Takes the round-trip time of the handshake. It counts for the minimum, as in Linux: a first flight that
    /// waits in a standing queue measures that queue. Then a faster answer to a retransmission would be
    /// mistaken for the answer to the original (step 2).
    pub(crate) fn on_handshake(&mut self, rtt: Duration) {
        self.min_rtt = self.min_rtt.min(rtt);
    }

    /// Handles a delivered segment, which was acknowledged or reported (§6.2, steps 1 to 3). `echo` is the
    /// time at which the segment left that the acknowledgement answers.
    pub(crate) fn on_delivered(&mut self, segment: &Delivered, echo: Instant, now: Instant) {
        if segment.index >= self.highest {
            self.highest = segment.index + 1;
        } else if !segment.retransmitted {
            self.reordering_seen = true;
        }
        let rtt = now - segment.sent_at;
        // If a segment was sent twice, its first transmission may have arrived (step 2).
        let too_soon = self.min_rtt < Duration::MAX && rtt < self.min_rtt;
        if segment.retransmitted && (echo < segment.sent_at || too_soon) {
            return;
        }
        if !segment.retransmitted {
            self.min_rtt = self.min_rtt.min(rtt);
        }
        if segment.order > self.order {
            (self.order, self.rtt) = (segment.order, rtt);
        }
    }

    /// Widens the window, once per round trip, after a retransmission that was unnecessary for a reason other
    /// than a lost acknowledgement (step 4).
    pub(crate) fn on_duplicate(&mut self, next: u32) {
        if self.round.is_none() {
            self.round = Some(next);
            self.quarters = self.quarters.saturating_add(1);
            self.persists = PERSISTENCE;
        }
    }

    /// Records that a segment that had been considered lost arrived.
    pub(crate) fn note_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// Handles an acknowledgement of everything below `una`.
    pub(crate) fn on_advance(&mut self, una: u32) {
        if self.round.is_some_and(|round| una >= round) {
            self.round = None;
        }
    }

    /// Handles the end of a recovery (step 4).
    pub(crate) fn on_recovered(&mut self) {
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            self.quarters = 1;
        }
    }

    /// Returns the reordering window (RACK_update_reo_wnd).
    fn window(&self, sacked: u32, situation: Situation) -> Duration {
        if !self.reordering_seen && (situation.recovering || sacked >= DUP_THRESH) {
            return Duration::ZERO;
        }
        let quarter = match self.min_rtt {
            Duration::MAX => Duration::ZERO,
            least => least / 4,
        };
        let window = quarter.saturating_mul(u64::from(self.quarters));
        window.min(situation.smoothed_rtt)
    }

    /// Returns the latest time of transmission of a segment that counts as lost now; `None` if that is
    /// before the start.
    fn bound(&self, sacked: u32, situation: Situation) -> Option<Instant> {
        let patience = self.rtt + self.window(sacked, situation);
        situation.now.0.checked_sub(patience.0).map(Instant)
    }

    /// Counts segments as lost that were overtaken long enough ago (RACK_detect_loss, step 5). Returns the time
    /// until the last of the other overtaken segments is lost, too.
    pub(crate) fn detect(&self, flight: &mut Flight, situation: Situation) -> Option<Duration> {
        let sacked = flight.sacked();
        let bound = self.bound(sacked, situation);
        let last = flight.lose_overtaken(self.order, bound)?;
        let patience = self.rtt + self.window(sacked, situation);
        Some((last + patience).saturating_since(situation.now))
    }

    /// Counts segments as lost after a timeout of the first segment (RACK_mark_losses_on_RTO, §6.3).
    pub(crate) fn time_out(&self, flight: &mut Flight, situation: Situation) {
        let bound = self.bound(flight.sacked(), situation);
        flight.lose_after_timeout(bound);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_us(us)
    }

    fn lasting(us: u64) -> Duration {
        Duration::from_us(us)
    }

    fn situation(us: u64) -> Situation {
        Situation {
            now: at(us),
            smoothed_rtt: lasting(400),
            recovering: false,
        }
    }

    /// Sends segments 10 µs apart, from time zero. Returns the flight and the state of RACK.
    fn sent(count: u32) -> (Flight, Rack) {
        let mut flight = Flight::default();
        for index in 0..count {
            flight.send(index, at(10 * u64::from(index)));
        }
        (flight, Rack::default())
    }

    fn report(flight: &mut Flight, rack: &mut Rack, una: u32, block: (u32, u32), us: u64) {
        let blocks = [block, (0, 0), (0, 0)];
        flight.acknowledge(una, Some(&blocks), |segment| {
            rack.on_delivered(&segment, segment.sent_at, at(us));
        });
    }

    /// Segment 0 left at 0, segment 1 at 10 µs. 1 is reported at 410 µs, after a round trip of 400 µs. The
    /// window is a quarter of it: 0 is lost at 0 + 400 + 100 µs, 90 µs later.
    #[test]
    fn an_overtaken_segment_is_lost_after_a_quarter_of_a_round_trip() {
        let (mut flight, mut rack) = sent(10);
        report(&mut flight, &mut rack, 0, (1, 2), 410);
        assert_eq!(rack.detect(&mut flight, situation(410)), Some(lasting(90)));
        assert_eq!(rack.detect(&mut flight, situation(499)), Some(lasting(1)));
        assert_eq!(flight.lost(), 0);
        assert_eq!(rack.detect(&mut flight, situation(500)), None);
        assert_eq!((flight.lost(), flight.next_lost()), (1, Some(0)));
    }

    #[test]
    fn three_reported_segments_need_no_patience_unless_reordering_was_seen() {
        let (mut flight, mut rack) = sent(10);
        report(&mut flight, &mut rack, 0, (1, 4), 430);
        assert_eq!(rack.detect(&mut flight, situation(430)), None);
        assert_eq!(flight.lost(), 1);
        let (mut flight, mut rack) = sent(10);
        report(&mut flight, &mut rack, 0, (2, 5), 440);
        // Segment 1 arrives late: the window stays open from now on.
        report(&mut flight, &mut rack, 0, (1, 2), 441);
        assert!(rack.reordering_seen);
        // 0 + 400 µs, the round trip of segment 4, + 100 µs.
        assert_eq!(rack.detect(&mut flight, situation(441)), Some(lasting(59)));
    }

    #[test]
    fn the_window_grows_once_a_round_with_duplicates_up_to_a_round_trip_and_shrinks_again() {
        let mut rack = Rack {
            min_rtt: lasting(100),
            reordering_seen: true,
            ..Rack::default()
        };
        let window = |rack: &Rack| rack.window(0, situation(0));
        assert_eq!(window(&rack), lasting(25));
        rack.on_duplicate(10);
        rack.on_duplicate(12);
        assert_eq!(window(&rack), lasting(50));
        rack.on_advance(9);
        rack.on_duplicate(20);
        assert_eq!(window(&rack), lasting(50));
        for round in 1..40 {
            rack.on_advance(10 * round);
            rack.on_duplicate(10 * round + 10);
        }
        assert_eq!(window(&rack), lasting(400));
        for _ in 0..15 {
            rack.on_recovered();
        }
        assert_eq!(window(&rack), lasting(400));
        rack.on_recovered();
        assert_eq!(window(&rack), lasting(25));
    }

    /// Segment 0 is lost and sent again at 500 µs. An acknowledgement that echoes the first transmission, or
    /// arrives faster than any round trip, measures nothing.
    #[test]
    fn an_ambiguous_retransmission_measures_nothing() {
        let (mut flight, mut rack) = sent(5);
        report(&mut flight, &mut rack, 0, (1, 5), 440);
        rack.detect(&mut flight, situation(440));
        flight.send(0, at(500));
        for (echo, now) in [(0, 950), (500, 600)] {
            let (mut flight, mut rack) = (flight.clone(), rack.clone());
            flight.acknowledge(5, None, |segment| {
                rack.on_delivered(&segment, at(echo), at(now));
            });
            assert_eq!((rack.order, rack.rtt), (5, lasting(400)));
        }
        flight.acknowledge(5, None, |segment| {
            rack.on_delivered(&segment, at(500), at(950));
        });
        assert_eq!((rack.order, rack.rtt), (6, lasting(450)));
    }

    #[test]
    fn a_timeout_spares_what_left_too_recently() {
        let (mut flight, mut rack) = sent(3);
        report(&mut flight, &mut rack, 1, (0, 0), 400);
        flight.send(3, at(10_000));
        // Segment 2 left 20 µs after the start, segment 3 less than 1.25 round trips ago.
        rack.time_out(&mut flight, situation(10_450));
        assert_eq!((flight.lost(), flight.pipe()), (2, 1));
    }
}
