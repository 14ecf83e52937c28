//! Integer time, sizes and rates.
//!
//! Time is counted in picoseconds, because at 100 Gbit/s a 64-byte packet lasts 5.12 ns, which is
//! not a whole number of nanoseconds. A `u64` of picoseconds spans 213 days.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

use bufgym_util::convert::floor_u64;

/// An instant since the start of the simulation, or a duration, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub u64);

impl Time {
    /// The start of the simulation; also the empty duration.
    pub const ZERO: Time = Time(0);
    /// The largest time, later than any event.
    pub const MAX: Time = Time(u64::MAX);

    /// Creates a time from picoseconds.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// Creates a time from nanoseconds.
    ///
    /// # Panics
    /// When the value exceeds 213 days.
    pub const fn from_ns(ns: u64) -> Time {
        Time::times(ns, 1_000)
    }

    /// Creates a time from microseconds.
    ///
    /// # Panics
    /// When the value exceeds 213 days.
    pub const fn from_us(us: u64) -> Time {
        Time::times(us, 1_000_000)
    }

    /// Creates a time from milliseconds.
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

    /// Creates a time from seconds, rounded down to a picosecond. Larger values give [`Time::MAX`];
    /// negative numbers and NaN give zero.
    pub fn from_secs_f64(seconds: f64) -> Time {
        Time(floor_u64(seconds * 1e12))
    }

    /// Returns the time in picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Returns the time in whole nanoseconds, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns the time in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-12
    }

    /// Returns the time in milliseconds.
    pub fn as_ms_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Returns the duration since `earlier`, or zero when `earlier` is later.
    pub const fn saturating_since(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }

    /// Returns the instant `duration` later, or [`Time::MAX`] if that is beyond the range.
    pub const fn saturating_add(self, duration: Time) -> Time {
        Time(self.0.saturating_add(duration.0))
    }
}

/// Panics beyond 213 days, also in release builds; [`saturating_add`](Time::saturating_add) does not.
impl Add for Time {
    type Output = Time;
    #[inline]
    #[track_caller]
    fn add(self, rhs: Time) -> Time {
        match self.0.checked_add(rhs.0) {
            Some(ps) => Time(ps),
            None => beyond_the_end(),
        }
    }
}

impl AddAssign for Time {
    #[inline]
    #[track_caller]
    fn add_assign(&mut self, rhs: Time) {
        *self = *self + rhs;
    }
}

/// Panics if the result would be negative, also in release builds;
/// [`saturating_since`](Time::saturating_since) does not.
impl Sub for Time {
    type Output = Time;
    #[inline]
    #[track_caller]
    fn sub(self, rhs: Time) -> Time {
        match self.0.checked_sub(rhs.0) {
            Some(ps) => Time(ps),
            None => before_the_start(),
        }
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn beyond_the_end() -> ! {
    panic!("a time of more than 213 days")
}

#[cold]
#[inline(never)]
#[track_caller]
fn before_the_start() -> ! {
    panic!("a later time is subtracted from an earlier one")
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

/// Transmission time of a byte on a line of 1 bit/s, picoseconds.
const PS_PER_BYTE: u64 = 8_000_000_000_000;

/// A line rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(pub u64);

impl Rate {
    /// Returns how long `bytes` occupy the line, rounded up to a picosecond; [`Time::MAX`] if that is
    /// longer.
    ///
    /// # Panics
    /// When the rate is zero.
    #[inline]
    pub const fn transmission_time(self, bytes: u64) -> Time {
        match bytes.checked_mul(PS_PER_BYTE) {
            Some(bit_ps) => Time(bit_ps.div_ceil(self.0)),
            None => self.long_transmission_time(bytes),
        }
    }

    /// Returns the transmission time of more than 2.3 MB.
    #[cold]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what does not fit is Time::MAX"
    )]
    const fn long_transmission_time(self, bytes: u64) -> Time {
        let ps = (bytes as u128 * PS_PER_BYTE as u128).div_ceil(self.0 as u128);
        match ps > u64::MAX as u128 {
            true => Time::MAX,
            false => Time(ps as u64),
        }
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
    fn arithmetic_that_cannot_be_is_never_silent() {
        let (early, late) = (Time(1), Time(3));
        assert_eq!((late - early, late + early), (Time(2), Time(4)));
        assert!(std::panic::catch_unwind(|| early - late).is_err());
        assert!(std::panic::catch_unwind(|| Time::MAX + early).is_err());
        assert!(
            std::panic::catch_unwind(|| {
                let mut time = Time::MAX;
                time += early;
                time
            })
            .is_err()
        );
    }

    /// A terabyte, the largest flow, takes 800 s at 10 Gbit/s; no intermediate result is truncated to
    /// 64 bits.
    #[test]
    fn long_transmissions_are_exact_or_last_for_ever() {
        assert_eq!(
            Rate(10_000_000_000).transmission_time(1 << 40),
            Time((1 << 40) * 800)
        );
        let most = u64::MAX / PS_PER_BYTE;
        for bytes in [most, most + 1] {
            assert_eq!(
                Rate(8).transmission_time(bytes),
                Time(bytes * 1_000_000_000_000)
            );
        }
        assert_eq!(Rate(1_000_000).transmission_time(u64::MAX), Time::MAX);
        assert_eq!(Rate(1).transmission_time(3_000_000), Time::MAX);
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
