//! The fair share of AFD, which follows the length of a queue.

use super::IntelligentBufferConfig;
use crate::units::Instant;

/// Weight of the current queue length.
const A1: f64 = 1.8;
/// Weight of the queue length at the end of the previous interval.
const A2: f64 = 1.7;

/// Fair share Mfair of a queue. At the end of every interval
/// `Mfair = max(0, Mfair - 1.8 (q - qref) + 1.7 (q_old - qref))`.
///
/// Intervals without an event of the queue are computed at its next event.
#[derive(Clone, Copy, Debug)]
pub(super) struct FairShare {
    share: f64,
    /// Length of the queue since the last event, bytes.
    length: u64,
    /// Length of the queue at the end of the last interval, bytes.
    old: u64,
    /// End of the current interval.
    ends: Instant,
}

impl FairShare {
    pub(super) fn new(config: &IntelligentBufferConfig) -> FairShare {
        FairShare {
            share: config.initial_share as f64,
            length: 0,
            old: 0,
            ends: Instant::ZERO + config.interval,
        }
    }

    /// Returns the share of a queue that has always had this length.
    #[cfg(test)]
    pub(super) fn steady(config: &IntelligentBufferConfig, length: u64) -> FairShare {
        FairShare {
            length,
            old: length,
            ..FairShare::new(config)
        }
    }

    /// Returns the fair share, bytes per interval.
    #[inline]
    pub(super) fn bytes(self) -> f64 {
        self.share
    }

    /// Notes that the queue has this length from `now` on.
    #[inline]
    pub(super) fn change(&mut self, length: u64, now: Instant, config: &IntelligentBufferConfig) {
        if now >= self.ends {
            self.end_intervals(now, config);
        }
        self.length = length;
    }

    #[cold]
    fn end_intervals(&mut self, now: Instant, config: &IntelligentBufferConfig) {
        let ended = 1 + (now - self.ends).0 / config.interval.0;
        self.add(self.gain(config), config);
        self.old = self.length;
        // In all other intervals the length is constant. So the share changes in one direction
        // only, and one step to the limit gives the same result.
        self.add(self.gain(config) * (ended - 1) as f64, config);
        let span = config.interval.saturating_mul(ended);
        self.ends = self.ends.saturating_add(span);
    }

    fn gain(&self, config: &IntelligentBufferConfig) -> f64 {
        let reference = config.reference_bytes as f64;
        A2 * (self.old as f64 - reference) - A1 * (self.length as f64 - reference)
    }

    fn add(&mut self, gain: f64, config: &IntelligentBufferConfig) {
        let most = config
            .largest_share
            .map_or(f64::INFINITY, |most| most as f64);
        self.share = (self.share + gain).max(0.0).min(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::units::Duration;

    fn config() -> IntelligentBufferConfig {
        IntelligentBufferConfig {
            interval: Duration::from_us(50),
            reference_bytes: 10_000,
            initial_share: 100_000,
            ..IntelligentBufferConfig::suggested(&Scenario::default())
        }
    }

    #[test]
    fn the_share_follows_the_recurrence() {
        let config = config();
        let mut share = FairShare::new(&config);
        let (mut expected, mut old) = (100_000.0_f64, 0.0);
        // Lengths that change in the middle of intervals, some of which see no event.
        let lengths = [
            30_000, 80_000, 80_000, 80_000, 5_000, 5_000, 200_000, 0, 0, 0,
        ];
        for (interval, length) in (0_u64..).zip(lengths) {
            let before = interval.checked_sub(1).map(|at| lengths[at as usize]);
            if before != Some(length) {
                share.change(length, Instant::from_us(50 * interval + 25), &config);
                assert!(
                    (share.bytes() - expected).abs() < 1e-6,
                    "{interval}: {expected}"
                );
            }
            let now = length as f64;
            expected = (expected - 1.8 * (now - 10_000.0) + 1.7 * (old - 10_000.0)).max(0.0);
            old = now;
        }
        share.change(0, Instant::from_us(500), &config);
        assert!((share.bytes() - expected).abs() < 1e-6);
        assert!(expected > 100_000.0, "{expected}");
    }

    #[test]
    fn the_share_stays_within_zero_and_its_limit() {
        let config = IntelligentBufferConfig {
            largest_share: Some(120_000),
            ..config()
        };
        let mut share = FairShare::new(&config);
        share.change(500_000, Instant::from_ms(10), &config);
        assert_eq!(share.bytes(), 120_000.0, "1,000 bytes more every interval");
        share.change(0, Instant::from_ms(20), &config);
        assert_eq!(share.bytes(), 0.0);
    }
}
