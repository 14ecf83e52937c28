//! Pacing: spaces a flow's segments in time according to a rate.

use crate::units::{Duration, Instant, Rate};

/// Paces the segments of a flow. A congestion control that sets a rate has one.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    /// Rate on the wire that the congestion control has set. A change also moves the next segment.
    pub rate: Rate,
    /// Time at which the last segment left, and its size on the wire, bytes.
    sent_at: Instant,
    bytes: u32,
    /// Expiry of the first pending timer; in the past if none is pending.
    timer_at: Instant,
}

impl Pacer {
    /// Returns a pacer whose first segment may leave at once.
    pub fn new(rate: Rate) -> Pacer {
        Pacer {
            rate,
            sent_at: Instant::ZERO,
            bytes: 0,
            timer_at: Instant::ZERO,
        }
    }

    /// Returns when the next segment may leave: one transmission time of the last segment after that one.
    fn not_before(&self) -> Instant {
        let spacing = self.rate.transmission_time(u64::from(self.bytes));
        self.sent_at.saturating_add(spacing)
    }

    /// Returns true if a segment may leave now.
    pub(in crate::transport) fn may_send(&self, now: Instant) -> bool {
        self.not_before() <= now
    }

    /// Records that a segment of `bytes` on the wire leaves now.
    pub(in crate::transport) fn on_send(&mut self, now: Instant, bytes: u32) {
        (self.sent_at, self.bytes) = (now, bytes);
    }

    /// Returns the delay of the timer to set now. `None` if the sender may send now, or if a pending timer
    /// expires no later than it may send.
    pub(in crate::transport) fn take_timer(&mut self, now: Instant) -> Option<Duration> {
        self.take_timer_until(now, Instant::MAX)
    }

    /// Like [`take_timer`](Pacer::take_timer), for a timer that expires at the latest at `change`, when the
    /// rate changes with time.
    pub(in crate::transport) fn take_timer_until(
        &mut self,
        now: Instant,
        change: Instant,
    ) -> Option<Duration> {
        let due = self.not_before().min(change);
        let is_set = self.timer_at > now && self.timer_at <= due;
        if due <= now || is_set {
            return None;
        }
        self.timer_at = due;
        Some(due - now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate(8_000_000);

    #[test]
    fn segments_are_a_transmission_time_apart_and_one_timer_is_asked_for() {
        let mut pacer = Pacer::new(RATE);
        let at = Instant::from_us;
        assert!(pacer.may_send(at(5)) && pacer.take_timer(at(5)).is_none());
        pacer.on_send(at(5), 1_000);
        assert!(!pacer.may_send(at(1_004)));
        assert_eq!(pacer.take_timer(at(5)), Some(Duration::from_us(1_000)));
        assert_eq!(pacer.take_timer(at(700)), None);
        assert!(pacer.may_send(at(1_005)));
        pacer.on_send(at(1_005), 500);
        assert_eq!(pacer.take_timer(at(1_005)), Some(Duration::from_us(500)));
    }

    #[test]
    fn another_rate_moves_the_next_segment() {
        let mut pacer = Pacer::new(RATE);
        let at = Instant::from_us;
        pacer.on_send(at(0), 1_000);
        assert_eq!(pacer.take_timer(at(0)), Some(Duration::from_us(1_000)));
        pacer.rate = Rate(2 * RATE.0);
        assert_eq!(pacer.take_timer(at(100)), Some(Duration::from_us(400)));
        // Slower again: the timer comes too early, and then another one is needed.
        pacer.rate = RATE;
        assert_eq!(pacer.take_timer(at(200)), None);
        assert!(!pacer.may_send(at(500)));
        assert_eq!(pacer.take_timer(at(500)), Some(Duration::from_us(500)));
    }
}
