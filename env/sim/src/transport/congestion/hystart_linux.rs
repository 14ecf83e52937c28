//! HyStart of Linux: leaves slow start at once, by the length of a train of acknowledgements or by
//! growing delay (`net/ipv4/tcp_cubic.c` of Linux 6; Ha and Rhee, *Taming the elephants: New TCP
//! slow start*, 2011).

use crate::transport::{Acked, Window};
use crate::units::{Duration, Instant};

/// Smallest window at which HyStart may end slow start, segments (`hystart_low_window`).
const LOW_WINDOW: u32 = 16;
/// Longest gap between acknowledgements of one train (`hystart_ack_delta_us`).
const TRAIN_GAP: Duration = Duration::from_ms(2);
/// Number of samples of a round before its minimum delay is compared (`HYSTART_MIN_SAMPLES`).
const SAMPLES: u32 = 8;
/// Bounds of the delay increase that ends slow start (`HYSTART_DELAY_MIN`, `HYSTART_DELAY_MAX`).
const MIN_GROWTH: Duration = Duration::from_ms(4);
const MAX_GROWTH: Duration = Duration::from_ms(16);
/// Time after the beginning of a stage of congestion avoidance in which delays are ignored: a second of
/// the kernel's clock (`HZ`).
const QUIET: Duration = Duration::from_ms(1_000);
/// Size of a burst of segmentation offload, bytes, four of which a sender may put between acknowledgements
/// (`hystart_ack_delay`), and the maximum time that they may take.
const BURST: u64 = 65_536;
const MAX_BURSTS: Duration = Duration::from_ms(1);

/// One flow's search for the end of slow start. A round ends when a segment that was sent after its
/// beginning is acknowledged.
#[derive(Clone, Default, Debug)]
pub(super) struct HyStartLinux {
    /// True if slow start was ended; it is not ended again before a timeout.
    found: bool,
    /// First segment that was not yet sent when the round began.
    round_end: u32,
    round_start: Instant,
    /// Time of the last acknowledgement of the train.
    last_ack: Instant,
    /// Minimum delay of the round, over `samples` samples (at most [`SAMPLES`]).
    delay: Option<Duration>,
    samples: u32,
    /// Minimum delay of the flow since the last timeout.
    least_delay: Option<Duration>,
}

impl HyStartLinux {
    /// Takes an acknowledgement, in slow start or not. Returns true if slow start ends with it. `epoch` is
    /// the start of the current stage of congestion avoidance, if there is one.
    pub(super) fn observe(
        &mut self,
        window: &Window,
        acked: &Acked,
        epoch: Option<Instant>,
        mss: u32,
    ) -> bool {
        let Some(delay) = acked.rtt else { return false };
        if epoch.is_some_and(|epoch| acked.now.saturating_since(epoch) < QUIET) {
            return false;
        }
        let least = self.least_delay.map_or(delay, |least| least.min(delay));
        self.least_delay = Some(least);
        if self.found || !window.in_slow_start() {
            return false;
        }
        if acked.una > self.round_end {
            self.begin_round(acked.now, acked.next);
        }
        if window.cwnd < LOW_WINDOW * mss {
            return false;
        }
        let train = self.is_train_long(acked, least, window);
        self.found = train | self.has_delay_grown(delay, least);
        self.found
    }

    /// Forgets delays after a timeout, and begins slow start anew (`cubictcp_state`, `bictcp_reset`).
    pub(super) fn on_timeout(&mut self, now: Instant, next: u32) {
        *self = HyStartLinux::default();
        self.begin_round(now, next);
    }

    fn begin_round(&mut self, now: Instant, next: u32) {
        self.round_end = next;
        self.round_start = now;
        self.last_ack = now;
        self.delay = None;
        self.samples = 0;
    }

    /// Returns true if acknowledgements without a longer gap have arrived for more than half of the sum of the
    /// minimum delay and the time of bursts. Then the window fills the path.
    fn is_train_long(&mut self, acked: &Acked, least: Duration, window: &Window) -> bool {
        if acked.now.saturating_since(self.last_ack) > TRAIN_GAP {
            return false;
        }
        self.last_ack = acked.now;
        let threshold = (least + bursts(acked.smoothed_rtt, window.cwnd)) / 2;
        acked.now.saturating_since(self.round_start) > threshold
    }

    fn has_delay_grown(&mut self, delay: Duration, least: Duration) -> bool {
        let of_round = self.delay.map_or(delay, |shortest| shortest.min(delay));
        self.delay = Some(of_round);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        let growth = (least / 8).clamp(MIN_GROWTH, MAX_GROWTH);
        of_round > least + growth
    }
}

/// Returns the time of four bursts at the rate at which Linux would pace in slow start: two windows in a
/// smoothed round-trip time.
fn bursts(smoothed_rtt: Duration, cwnd: u32) -> Duration {
    if cwnd == 0 {
        return MAX_BURSTS;
    }
    (smoothed_rtt.saturating_mul(4 * BURST) / (2 * u64::from(cwnd))).min(MAX_BURSTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::testing::acked;

    const MSS: u32 = 1_000;

    fn window(segments: u32) -> Window {
        Window {
            cwnd: segments * MSS,
            ssthresh: u32::MAX,
        }
    }

    /// Returns an acknowledgement of segment `una - 1` at `us`, with a round trip of `rtt` microseconds, when
    /// `next` is the next segment to be sent.
    fn ack(us: u64, rtt: u64, una: u32, next: u32) -> Acked<'static> {
        Acked {
            una,
            next,
            now: Instant::from_us(us),
            rtt: Some(Duration::from_us(rtt)),
            smoothed_rtt: Duration::from_us(rtt),
            ..acked(1)
        }
    }

    /// Returns which acknowledgement ends slow start. They arrive `gap` microseconds apart in one round, with
    /// delays in microseconds and a window of `segments`.
    fn ends_at(segments: u32, gap: u64, delays: &[u64]) -> Option<usize> {
        let mut hystart = HyStartLinux::default();
        let mut us = 10_000;
        delays.iter().zip(1..).position(|(&delay, una)| {
            us += gap;
            // The first acknowledgement begins a round that the others are in.
            hystart.observe(&window(segments), &ack(us, delay, una, 1_000), None, MSS)
        })
    }

    #[test]
    fn a_train_of_half_the_least_delay_and_a_burst_ends_it() {
        // 4 · 65,536 B at two windows of 100 kB in 2 ms are 2.6 ms, at most 1 ms, so that the
        // threshold is 1.5 ms: the first acknowledgement later than that is 16 gaps of 0.1 ms away.
        assert_eq!(ends_at(100, 100, &[2_000; 40]), Some(16));
        // At two windows of 2 MB in 2 ms they are 131 µs; the threshold is 1,065 µs.
        assert_eq!(ends_at(2_000, 100, &[2_000; 40]), Some(11));
    }

    #[test]
    fn a_window_of_fifteen_segments_is_too_small() {
        assert_eq!(ends_at(15, 100, &[2_000; 40]), None);
        assert_eq!(ends_at(16, 100, &[2_000; 40]), Some(16));
    }

    #[test]
    fn a_gap_of_more_than_two_milliseconds_breaks_the_train() {
        assert_eq!(ends_at(100, 2_001, &[2_000; 40]), None);
    }

    #[test]
    fn a_delay_that_has_grown_by_an_eighth_ends_it() {
        // The gaps prevent trains. An eighth of 40 ms is 5 ms.
        let delays = |grown: u64| {
            let mut hystart = HyStartLinux::default();
            let mut us = 100_000;
            assert!(!hystart.observe(&window(100), &ack(us, 40_000, 1, 100), None, MSS));
            (0..20_u32).position(|index| {
                us += 3_000;
                let delay = if index == 0 { 100_000 } else { grown };
                hystart.observe(&window(100), &ack(us, delay, 101 + index, 200), None, MSS)
            })
        };
        // The first eight samples of the round are not compared.
        assert_eq!(delays(45_001), Some(8));
        assert_eq!(delays(45_000), None);
    }

    #[test]
    fn delays_right_after_congestion_avoidance_began_are_not_taken() {
        let mut hystart = HyStartLinux::default();
        let epoch = Some(Instant::from_ms(100));
        assert!(!hystart.observe(&window(100), &ack(1_099_999, 10, 1, 2), epoch, MSS));
        assert_eq!(hystart.least_delay, None);
        assert!(!hystart.observe(&window(100), &ack(1_100_000, 10, 2, 3), epoch, MSS));
        assert_eq!(hystart.least_delay, Some(Duration::from_us(10)));
    }

    #[test]
    fn it_is_found_once_until_a_timeout() {
        let mut hystart = HyStartLinux {
            found: true,
            ..HyStartLinux::default()
        };
        let late = ack(50_000, 2_000, 1, 1_000);
        assert!(!hystart.observe(&window(100), &late, None, MSS));
        hystart.on_timeout(Instant::from_us(60_000), 1_000);
        for (index, us) in (60_100..64_000).step_by(100).enumerate() {
            let una = u32::try_from(index).unwrap() + 1;
            let found = hystart.observe(&window(100), &ack(us, 2_000, una, 1_000), None, MSS);
            assert_eq!(found, us == 61_600, "at {us} µs");
        }
    }
}
