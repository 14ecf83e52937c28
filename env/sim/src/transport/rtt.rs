//! Round-trip estimation and the retransmission timeout (RFC 6298).

use super::Settings;
use crate::units::{Duration, Instant};

/// Smoothed round-trip time, its variation and the back-off, in picoseconds. Packed, so that it
/// adds no padding to the sender.
#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed(2))]
pub(crate) struct RttEstimator {
    smoothed: u64,
    variation: u64,
    sampled: bool,
    backoff: u8,
}

/// RFC 6298 §2: the clock granularity G bounds the variation term from below.
pub(super) const GRANULARITY: Duration = Duration::from_us(1);

/// Maximum number of doublings; RFC 6298 §5.5 allows a bound. 2^10 times 200 ms is longer than any run.
const MAX_BACKOFF: u8 = 10;

impl RttEstimator {
    /// Maximum timeout: 53 days, four times as long as a simulation, so that any instant of it plus this
    /// timeout fits into an `Instant`.
    const LONGEST: Duration = Duration(u64::MAX >> 2);

    pub(crate) fn new(settings: &Settings) -> RttEstimator {
        RttEstimator {
            smoothed: settings.initial_rtt.0,
            variation: 0,
            sampled: false,
            backoff: 0,
        }
    }

    /// Takes a measurement (RFC 6298 §2.2 and §2.3); not one of a retransmitted segment (§3).
    #[inline]
    pub(crate) fn sample(&mut self, rtt: Duration) {
        if self.sampled {
            let deviation = self.smoothed.abs_diff(rtt.0);
            self.variation = self.variation - self.variation / 4 + deviation / 4;
            self.smoothed = self.smoothed - self.smoothed / 8 + rtt.0 / 8;
        } else {
            self.smoothed = rtt.0;
            self.variation = rtt.0 / 2;
            self.sampled = true;
        }
    }

    /// Sets the timeout to the fallback of [`Settings`] until something is measured, because a SYN is sent
    /// again (RFC 6298 §5.7).
    pub(crate) fn fall_back(&mut self, settings: &Settings) {
        let above = settings.fallback_rto.0.saturating_sub(self.smoothed);
        self.variation = (above / 4).max(1);
    }

    /// Returns true if nothing is measured and a SYN was sent again.
    pub(crate) fn has_fallen_back(&self) -> bool {
        !self.sampled && self.variation > 0
    }

    /// Takes a measurement like ns-3: timestamps are whole milliseconds, a difference of zero counts as a
    /// microsecond, and the gains are shifts of whole nanoseconds.
    pub(crate) fn sample_in_ms(&mut self, sent: Instant, now: Instant) {
        let ms = |time: Instant| time.as_ns() / 1_000_000;
        let rtt = (ms(now).saturating_sub(ms(sent)) * 1_000_000).max(1_000);
        if self.sampled {
            // The division by 1,000 leaves room for the shifts and for a sign.
            let signed = |ps: u64| (ps / 1_000).cast_signed();
            let (smoothed, variation) = (signed(self.smoothed), signed(self.variation));
            let error = rtt.cast_signed() - smoothed;
            // Neither gets negative: an error subtracts at most an eighth, a change at most a quarter.
            self.smoothed = (((smoothed << 3) + error) >> 3).cast_unsigned() * 1_000;
            let change = error.abs() - variation;
            self.variation = (((variation << 2) + change) >> 2).cast_unsigned() * 1_000;
        } else {
            self.smoothed = rtt * 1_000;
            self.variation = rtt / 2 * 1_000;
            self.sampled = true;
        }
        self.reset_backoff();
    }

    /// Returns the smoothed round-trip time; the initial one before the first measurement.
    #[inline]
    pub(crate) fn smoothed(&self) -> Duration {
        Duration(self.smoothed)
    }

    /// Returns the smoothed round-trip time, if any was measured.
    pub(crate) fn measured(&self) -> Option<Duration> {
        self.sampled.then_some(self.smoothed())
    }

    /// Returns the retransmission timeout, including back-off (RFC 6298 §2).
    #[inline]
    pub(crate) fn timeout(&self, settings: &Settings) -> Duration {
        let estimate = self.smoothed + (4 * self.variation).max(settings.least_variation.0);
        let longest = RttEstimator::LONGEST.0 >> self.backoff;
        Duration(estimate.max(settings.min_rto.0).min(longest) << self.backoff)
    }

    /// Doubles the timeout after an expiry (RFC 6298 §5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }

    /// Ends the back-off, because new data was acknowledged.
    #[inline]
    pub(crate) fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    pub(crate) fn is_backed_off(&self) -> bool {
        self.backoff > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn settings(min_rto_us: u64) -> Settings {
        Settings::from_scenario(&Scenario::default().with(|scenario| {
            scenario.tcp.min_rto_us = min_rto_us;
        }))
    }

    #[test]
    fn gains_of_an_eighth_and_a_quarter() {
        let settings = settings(1);
        let mut rtt = RttEstimator::new(&settings);
        rtt.sample(Duration::from_us(800));
        assert_eq!(rtt.timeout(&settings), Duration::from_us(800 + 4 * 400));
        rtt.sample(Duration::from_us(1600));
        // SRTT = 900, RTTVAR = 3/4·400 + 1/4·800 = 500.
        assert_eq!(rtt.timeout(&settings), Duration::from_us(900 + 4 * 500));
    }

    #[test]
    fn the_timeout_doubles_until_new_data_is_acknowledged() {
        let settings = settings(200_000);
        let mut rtt = RttEstimator::new(&settings);
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.timeout(&settings), Duration::from_ms(800));
        rtt.reset_backoff();
        assert_eq!(rtt.timeout(&settings), Duration::from_ms(200));
    }
}
