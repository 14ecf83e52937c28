//! Loss detection by time: a segment is lost if one that left sufficiently later was delivered
//! (RACK, RFC 8985 §6).

use super::flight::{Delivered, Flight};
use crate::units::Time;

/// Reported segments that show a loss while no reordering was seen (RFC 8985 §4, DupThresh).
const DUP_THRESH: u32 = 3;

/// Recoveries without a duplicate after which the window is the least one again (§6.2, step 4).
const PERSISTENCE: u8 = 16;

/// What RACK knows of a connection (RFC 8985 §5.3).
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// Of the segment that left last among those delivered: its transmission number, when it left
    /// (RACK.xmit_ts) and its round-trip time (RACK.rtt). No segment has number 0.
    order: u64,
    rtt: Time,
    /// Least round-trip time of the connection (RACK.min_RTT); a flow is shorter than the minutes
    /// over which a kernel takes it.
    min_rtt: Time,
    /// One past the highest segment delivered (RACK.fack).
    highest: u32,
    reordering_seen: bool,
    /// Quarters of the least round-trip time in the reordering window (RACK.reo_wnd_mult).
    quarters: u32,
    /// Recoveries that the window still outlasts (RACK.reo_wnd_persist).
    persists: u8,
    /// Until this segment is acknowledged further duplicates widen nothing (RACK.dsack_round).
    round: Option<u32>,
}

impl Default for Rack {
    fn default() -> Rack {
        Rack {
            order: 0,
            rtt: Time::ZERO,
            min_rtt: Time::MAX,
            highest: 0,
            reordering_seen: false,
            quarters: 1,
            persists: 0,
            round: None,
        }
    }
}

/// What the reordering window depends on besides [`Rack`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    pub(crate) now: Time,
    pub(crate) smoothed_rtt: Time,
    /// In fast recovery or after a timeout.
    pub(crate) recovering: bool,
}

impl Rack {
    /// The handshake took `rtt`. It counts for the least round-trip time, as in Linux: a first flight
    /// that waits in a standing queue measures that queue, and the answer to a retransmission that
    /// comes sooner would be taken for the original's (step 2).
    pub(crate) fn on_handshake(&mut self, rtt: Time) {
        self.min_rtt = self.min_rtt.min(rtt);
    }

    /// A segment was delivered, acknowledged or reported (§6.2, steps 1 to 3). `echo` is when the
    /// segment left that the acknowledgement answers.
    pub(crate) fn on_delivered(&mut self, segment: &Delivered, echo: Time, now: Time) {
        if segment.index >= self.highest {
            self.highest = segment.index + 1;
        } else if !segment.retransmitted {
            self.reordering_seen = true;
        }
        let rtt = now - segment.sent_at;
        // Of a segment sent twice the first one may have arrived (step 2).
        let too_soon = self.min_rtt < Time::MAX && rtt < self.min_rtt;
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

    /// A retransmission was unnecessary for a reason other than a lost acknowledgement: the window
    /// grows, once a round trip (step 4).
    pub(crate) fn on_duplicate(&mut self, next: u32) {
        if self.round.is_none() {
            self.round = Some(next);
            self.quarters = self.quarters.saturating_add(1);
            self.persists = PERSISTENCE;
        }
    }

    /// A segment that had been thought lost arrived.
    pub(crate) fn note_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// Everything below `una` is acknowledged.
    pub(crate) fn on_advance(&mut self, una: u32) {
        if self.round.is_some_and(|round| una >= round) {
            self.round = None;
        }
    }

    /// A recovery is over (step 4).
    pub(crate) fn on_recovered(&mut self) {
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            self.quarters = 1;
        }
    }

    /// The reordering window (RACK_update_reo_wnd).
    fn window(&self, sacked: u32, situation: Situation) -> Time {
        if !self.reordering_seen && (situation.recovering || sacked >= DUP_THRESH) {
            return Time::ZERO;
        }
        let quarter = match self.min_rtt {
            Time::MAX => 0,
            least => least.0 / 4,
        };
        let window = Time(quarter.saturating_mul(u64::from(self.quarters)));
        window.min(situation.smoothed_rtt)
    }

    /// When a segment left that is lost now and would not be had it left later; `None` if that was
    /// before the start.
    fn bound(&self, sacked: u32, situation: Situation) -> Option<Time> {
        let patience = self.rtt.0 + self.window(sacked, situation).0;
        situation.now.0.checked_sub(patience).map(Time)
    }

    /// Counts as lost what was overtaken long enough ago (RACK_detect_loss, step 5). Returns how
    /// long the last of the others has until it is lost too.
    pub(crate) fn detect(&self, flight: &mut Flight, situation: Situation) -> Option<Time> {
        let sacked = flight.sacked();
        let bound = self.bound(sacked, situation);
        let last = flight.lose_overtaken(self.order, bound)?;
        let patience = self.rtt.0 + self.window(sacked, situation).0;
        Some(Time((last.0 + patience).saturating_sub(situation.now.0)))
    }

    /// Counts as lost what the timeout of the first segment shows to be (RACK_mark_losses_on_RTO,
    /// §6.3).
    pub(crate) fn time_out(&self, flight: &mut Flight, situation: Situation) {
        let bound = self.bound(flight.sacked(), situation);
        flight.lose_after_timeout(bound);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::from_us(us)
    }

    fn situation(us: u64) -> Situation {
        Situation {
            now: at(us),
            smoothed_rtt: at(400),
            recovering: false,
        }
    }

    /// Segments sent 10 µs apart, from time zero; the flight and what RACK knows.
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

    /// Segment 0 left at 0, 1 at 10 µs; 1 is reported at 410 µs, a round trip of 400 µs. The window is
    /// a quarter of it: 0 is lost at 0 + 400 + 100 µs, 90 µs later.
    #[test]
    fn an_overtaken_segment_is_lost_after_a_quarter_of_a_round_trip() {
        let (mut flight, mut rack) = sent(10);
        report(&mut flight, &mut rack, 0, (1, 2), 410);
        assert_eq!(rack.detect(&mut flight, situation(410)), Some(at(90)));
        assert_eq!(rack.detect(&mut flight, situation(499)), Some(at(1)));
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
        // 1 arrives late: the window stays open from now on.
        report(&mut flight, &mut rack, 0, (1, 2), 441);
        assert!(rack.reordering_seen);
        // 0 + 400 µs, the round trip of 4, + 100 µs.
        assert_eq!(rack.detect(&mut flight, situation(441)), Some(at(59)));
    }

    #[test]
    fn the_window_grows_once_a_round_with_duplicates_up_to_a_round_trip_and_shrinks_again() {
        let mut rack = Rack {
            min_rtt: at(100),
            reordering_seen: true,
            ..Rack::default()
        };
        let window = |rack: &Rack| rack.window(0, situation(0));
        assert_eq!(window(&rack), at(25));
        rack.on_duplicate(10);
        rack.on_duplicate(12);
        assert_eq!(window(&rack), at(50));
        rack.on_advance(9);
        rack.on_duplicate(20);
        assert_eq!(window(&rack), at(50));
        for round in 1..40 {
            rack.on_advance(10 * round);
            rack.on_duplicate(10 * round + 10);
        }
        assert_eq!(window(&rack), at(400));
        for _ in 0..15 {
            rack.on_recovered();
        }
        assert_eq!(window(&rack), at(400));
        rack.on_recovered();
        assert_eq!(window(&rack), at(25));
    }

    /// 0 is lost and sent again at 500 µs; an acknowledgement that echoes the first transmission, or
    /// comes sooner than any round trip, measures nothing.
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
            assert_eq!((rack.order, rack.rtt), (5, at(400)));
        }
        flight.acknowledge(5, None, |segment| {
            rack.on_delivered(&segment, at(500), at(950));
        });
        assert_eq!((rack.order, rack.rtt), (6, at(450)));
    }

    #[test]
    fn a_timeout_spares_what_left_too_recently() {
        let (mut flight, mut rack) = sent(3);
        report(&mut flight, &mut rack, 1, (0, 0), 400);
        flight.send(3, at(10_000));
        // 2 left 20 µs after the start, 3 less than a round trip and a quarter ago.
        rack.time_out(&mut flight, situation(10_450));
        assert_eq!((flight.lost(), flight.pipe()), (2, 1));
    }
}
