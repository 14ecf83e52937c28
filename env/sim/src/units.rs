//! Integer time, sizes and rates.
//!
//! Time is counted in picoseconds, because at 100 Gbit/s a 64-byte packet lasts 5.12 ns, which is
//! not a whole number of nanoseconds. A `u64` of picoseconds spans 213 days.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

use crate::convert::floor_u64;

/// An instant since the start of the simulation, or a duration, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub u64);

impl Time {
    /// The start of the simulation; also the empty duration.
    pub const ZERO: Time = Time(0);
    /// Later than any event.
    pub const MAX: Time = Time(u64::MAX);

    /// From picoseconds.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// From nanoseconds.
    ///
    /// # Panics
    /// When the value exceeds 213 days.
    pub const fn from_ns(ns: u64) -> Time {
        Time::times(ns, 1_000)
    }

    /// From microseconds.
    ///
    /// # Panics
    /// When the value exceeds 213 days.
    pub const fn from_us(us: u64) -> Time {
        Time::times(us, 1_000_000)
    }

    /// From milliseconds.
    ///
    /// # Panics
    /// When the value exceeds 213 days.
    pub const fn from_ms(ms: u64) -> Time {
        Time::times(ms, 1_000_000_000)
    }

    #[track_caller]
    const fn times(count: u64, unit: u64) -> Time {
        match count.checked_mul(unit) {
            Some(ps) => Time(ps),
            None => panic!("a time of more than 213 days"),
        }
    }

    /// From seconds, rounded down to a picosecond; [`Time::MAX`] for more than it, and zero for
    /// negative numbers and NaN.
    pub fn from_secs_f64(seconds: f64) -> Time {
        Time(floor_u64(seconds * 1e12))
    }

    /// Picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Whole nanoseconds, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }

    /// Seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-12
    }

    /// Milliseconds.
    pub fn as_ms_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// The duration since `earlier`, or zero when `earlier` is later.
    pub const fn saturating_since(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }

    /// The instant `duration` later, or [`Time::MAX`] where there is none.
    pub const fn saturating_add(self, duration: Time) -> Time {
        Time(self.0.saturating_add(duration.0))
    }
}

impl Add for Time {
    type Output = Time;
    fn add(self, rhs: Time) -> Time {
        Time(self.0 + rhs.0)
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, rhs: Time) {
        self.0 += rhs.0;
    }
}

impl Sub for Time {
    type Output = Time;
    fn sub(self, rhs: Time) -> Time {
        Time(self.0 - rhs.0)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ps", self.0)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} ms", self.as_ms_f64())
    }
}

/// A line rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(pub u64);

impl Rate {
    /// How long `bytes` occupy the line, rounded up to a picosecond.
    ///
    /// # Panics
    /// When the rate is zero, or in debug builds when `bytes` exceeds 2.3 MB.
    pub const fn transmission_time(self, bytes: u64) -> Time {
        Time((bytes * 8_000_000_000_000).div_ceil(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minimum_packet_at_100g_lasts_a_fraction_of_a_nanosecond_more_than_five() {
        assert_eq!(Rate(100_000_000_000).transmission_time(64), Time(5_120));
    }

    #[test]
    fn times_beyond_213_days_are_not_taken_for_shorter_ones() {
        let most = u64::MAX / 1_000;
        assert_eq!(Time::from_ns(most), Time(most * 1_000));
        for too_long in [most + 1, u64::MAX] {
            assert!(std::panic::catch_unwind(|| Time::from_ns(too_long)).is_err());
        }
        assert!(std::panic::catch_unwind(|| Time::from_us(u64::MAX / 1_000_000 + 1)).is_err());
        assert!(std::panic::catch_unwind(|| Time::from_ms(u64::MAX / 1_000_000_000 + 1)).is_err());
        assert_eq!(Time::from_secs_f64(1e300), Time::MAX);
        assert_eq!(Time::from_secs_f64(-1.0), Time::ZERO);
        assert_eq!(Time::from_secs_f64(f64::NAN), Time::ZERO);
    }

    #[test]
    fn a_full_packet_at_1g() {
        assert_eq!(
            Rate(1_000_000_000).transmission_time(1518),
            Time::from_ns(12_144)
        );
    }

    #[test]
    fn a_rate_that_does_not_divide_rounds_up() {
        assert_eq!(Rate(3_000_000_000).transmission_time(1), Time(2_667));
    }
}
