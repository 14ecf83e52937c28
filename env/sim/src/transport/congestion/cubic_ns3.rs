//! CUBIC as in TcpCubic of ns-3 3.37, for comparison of the simulators: Linux's integer counting,
//! HyStart by packet trains and by delay, no Reno-friendly region.

use bufgym_util::convert::floor_u32;

use crate::transport::{Acked, CongestionControl, Settings, Window};
use crate::units::{Duration, Instant};

const C: f64 = 0.4;
const BETA: f64 = 0.7;
/// Maximum number of acknowledgements per segment of growth before the first loss.
const COUNT_CLAMP: u32 = 20;
/// Time after the beginning of an epoch in which delays are ignored.
const QUIET: Duration = Duration::from_ms(10);
/// Smallest window at which HyStart may end slow start, segments.
const LOW_WINDOW: u32 = 16;
/// Longest gap between two acknowledgements of one packet train.
const TRAIN_GAP: Duration = Duration::from_ms(2);
/// Bounds of the delay increase that ends slow start.
const MIN_GROWTH: Duration = Duration::from_ms(4);
const MAX_GROWTH: Duration = Duration::from_ms(1_000);
const DELAY_SAMPLES: u32 = 8;

/// CUBIC of ns-3. Windows are in segments. Fields are named as in ns-3: `last_max` is RFC 9438's `W_max`.
#[derive(Clone, Default, Debug)]
pub struct CubicNs3 {
    count: u32,
    last_max: u32,
    origin: u32,
    /// Seconds from the epoch until the window reaches `origin`.
    k: f64,
    delay_min: Option<Duration>,
    epoch: Option<Instant>,
    train: Train,
}

/// HyStart's state in the current round of slow start.
#[derive(Clone, Default, Debug)]
struct Train {
    found: bool,
    started: Instant,
    last_ack: Instant,
    /// Segment whose acknowledgement ends the round.
    end: Option<u32>,
    delay: Option<Duration>,
    samples: u32,
}

impl Train {
    fn restart(&mut self, now: Instant, next: u32) {
        *self = Train {
            found: self.found,
            started: now,
            last_ack: now,
            end: Some(next),
            ..Train::default()
        };
    }

    /// Returns true if slow start is to end.
    fn observe(&mut self, now: Instant, delay: Duration, delay_min: Duration) -> bool {
        if now.saturating_since(self.last_ack) <= TRAIN_GAP {
            self.last_ack = now;
            self.found |= now.saturating_since(self.started) > delay_min;
        }
        if self.samples < DELAY_SAMPLES {
            self.delay = Some(self.delay.map_or(delay, |least| least.min(delay)));
            self.samples += 1;
        } else if let Some(least) = self.delay {
            let growth = delay_min.clamp(MIN_GROWTH, MAX_GROWTH);
            self.found |= least > delay_min + growth;
        }
        self.found
    }
}

fn segments(window: &Window, settings: &Settings) -> u32 {
    window.cwnd / settings.mss
}

impl CubicNs3 {
    pub(super) fn new(_settings: &Settings) -> CubicNs3 {
        CubicNs3::default()
    }

    /// Returns the number of acknowledgements that grow the window by one segment. Unsigned arithmetic wraps as
    /// in ns-3.
    fn acknowledgements_per_step(&mut self, cwnd: u32, now: Instant) -> u32 {
        let epoch = *self.epoch.get_or_insert_with(|| {
            if self.last_max <= cwnd {
                self.k = 0.0;
                self.origin = cwnd;
            } else {
                self.k = libm::pow(f64::from(self.last_max - cwnd) / C, 1.0 / 3.0);
                self.origin = self.last_max;
            }
            now
        });
        let t = now + self.delay_min.unwrap_or(Duration::ZERO) - epoch;
        // ns-3 counts time in nanoseconds.
        let offset = t.as_ns() as f64 * 1e-9 - self.k;
        let delta = floor_u32(C * libm::pow(offset.abs(), 3.0));
        let target = if offset < 0.0 {
            self.origin.wrapping_sub(delta)
        } else {
            self.origin.wrapping_add(delta)
        };
        let count = if target > cwnd {
            cwnd / (target - cwnd)
        } else {
            cwnd.wrapping_mul(100)
        };
        let clamped = if self.last_max == 0 {
            count.min(COUNT_CLAMP)
        } else {
            count
        };
        clamped.max(2)
    }
}

impl CongestionControl for CubicNs3 {
    /// Implements `PktsAcked`, with the smoothed round-trip time as the delay.
    fn observe(&mut self, window: &mut Window, acked: &Acked, settings: &Settings) {
        let (now, delay) = (acked.now, acked.smoothed_rtt);
        if self
            .epoch
            .is_some_and(|epoch| now.saturating_since(epoch) < QUIET)
        {
            return;
        }
        let delay_min = self.delay_min.map_or(delay, |least| least.min(delay));
        self.delay_min = Some(delay_min);
        let watched = window.cwnd <= window.ssthresh && window.cwnd >= LOW_WINDOW * settings.mss;
        if watched && !self.train.found && self.train.observe(now, delay, delay_min) {
            window.ssthresh = window.cwnd;
        }
    }

    fn on_ack(&mut self, window: &mut Window, acked: &Acked, settings: &Settings) {
        if window.in_slow_start() {
            if self.train.end.is_none_or(|end| acked.una > end) {
                self.train.restart(acked.now, acked.next);
            }
            return window.grow(acked.segments * settings.mss, settings);
        }
        if acked.segments == 0 {
            return;
        }
        self.count += acked.segments;
        let needed = self.acknowledgements_per_step(segments(window, settings), acked.now);
        if self.count >= needed {
            window.grow(settings.mss, settings);
            self.count -= needed;
        }
    }

    fn ssthresh(&mut self, window: &Window, _flight: u32, settings: &Settings) -> u32 {
        let cwnd = segments(window, settings);
        self.last_max = if cwnd < self.last_max {
            floor_u32(f64::from(cwnd) * (1.0 + BETA) / 2.0)
        } else {
            cwnd
        };
        self.epoch = None;
        floor_u32(f64::from(cwnd) * BETA).max(2) * settings.mss
    }

    fn on_timeout(&mut self, now: Instant, next: u32) {
        *self = CubicNs3 {
            count: self.count,
            epoch: self.epoch,
            ..CubicNs3::default()
        };
        self.train.restart(now, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::transport::testing::acked;

    #[test]
    fn the_window_grows_by_a_segment_for_two_acknowledgements_at_most() {
        let settings = Settings::from_scenario(&Scenario::default());
        let mut cubic = CubicNs3 {
            last_max: 50,
            ..CubicNs3::default()
        };
        let mut window = Window {
            cwnd: 60 * settings.mss,
            ssthresh: 1,
        };
        let later = |ms| Acked {
            now: Instant::from_ms(ms),
            ..acked(1)
        };
        // The first acknowledgement begins an epoch; 10 s later the curve is far above the window.
        cubic.on_ack(&mut window, &later(0), &settings);
        assert_eq!(window.cwnd, 60 * settings.mss);
        for _ in 0..10 {
            cubic.on_ack(&mut window, &later(10_000), &settings);
        }
        assert_eq!(window.cwnd, 65 * settings.mss);
    }

    #[test]
    fn a_train_longer_than_the_least_delay_ends_slow_start() {
        let settings = Settings::from_scenario(&Scenario::default());
        let mut cubic = CubicNs3::default();
        let mut window = Window {
            cwnd: 16 * settings.mss,
            ssthresh: u32::MAX,
        };
        for us in [0, 12, 24, 36, 48] {
            let ack = Acked {
                una: us as u32,
                now: Instant::from_us(us),
                smoothed_rtt: Duration::from_us(30),
                ..acked(1)
            };
            cubic.observe(&mut window, &ack, &settings);
            if window.in_slow_start() {
                cubic.on_ack(&mut window, &ack, &settings);
            }
        }
        assert_eq!(window.ssthresh, 19 * settings.mss);
    }
}
