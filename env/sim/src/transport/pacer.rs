//! Pacing: spaces a flow's segments in time according to a rate.

use crate::units::{Rate, Time};

/// Paces the segments of a flow. A congestion control that sets a rate has one.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    /// Payload bits per second that the congestion control has set.
    pub rate: Rate,
    not_before: Time,
    /// When the pending timer expires; in the past if none is pending.
    timer_at: Time,
}

impl Pacer {
    /// A pacer whose first segment may leave at once.
    pub fn new(rate: Rate) -> Pacer {
        Pacer {
            rate,
            not_before: Time::ZERO,
            timer_at: Time::ZERO,
        }
    }

    /// Whether a segment may leave now.
    pub(super) fn may_send(&self, now: Time) -> bool {
        self.not_before <= now
    }

    /// Notes that a segment of `bytes` payload bytes leaves now.
    pub(super) fn on_send(&mut self, now: Time, bytes: u32) {
        self.not_before = now + self.rate.transmission_time(u64::from(bytes));
    }

    /// Delay of the timer to set now; `None` if the sender may send or a timer is pending.
    pub(super) fn take_timer(&mut self, now: Time) -> Option<Time> {
        if self.may_send(now) || self.timer_at > now {
            return None;
        }
        self.timer_at = self.not_before;
        Some(self.not_before - now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_a_transmission_time_apart_and_one_timer_is_asked_for() {
        let mut pacer = Pacer::new(Rate(8_000_000));
        let at = Time::from_us;
        assert!(pacer.may_send(at(5)) && pacer.take_timer(at(5)).is_none());
        pacer.on_send(at(5), 1_000);
        assert!(!pacer.may_send(at(1_004)));
        assert_eq!(pacer.take_timer(at(5)), Some(at(1_000)));
        assert_eq!(pacer.take_timer(at(700)), None);
        assert!(pacer.may_send(at(1_005)));
        pacer.on_send(at(1_005), 500);
        assert_eq!(pacer.take_timer(at(1_005)), Some(at(500)));
    }
}
