//! Integer time, sizes and rates.
//!
//! Time is counted in picoseconds, because at 100 Gbit/s a 64-byte packet lasts 5.12 ns, which is
//! not a whole number of nanoseconds. A `u64` of picoseconds spans 213 days.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

use serde::{Deserialize, Serialize};

use bufgym_util::convert::floor_u64;

/// Defines a type that counts picoseconds: its conversions and its texts.
macro_rules! picoseconds {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// Creates the value from nanoseconds.
            ///
            /// # Panics
            /// When the value exceeds 213 days.
            #[track_caller]
            pub const fn from_ns(ns: u64) -> $name {
                $name(ps_of(ns, 1_000))
            }

            /// Creates the value from microseconds.
            ///
            /// # Panics
            /// When the value exceeds 213 days.
            #[track_caller]
            pub const fn from_us(us: u64) -> $name {
                $name(ps_of(us, 1_000_000))
            }

            /// Creates the value from milliseconds.
            ///
            /// # Panics
            /// When the value exceeds 213 days.
            #[track_caller]
            pub const fn from_ms(ms: u64) -> $name {
                $name(ps_of(ms, 1_000_000_000))
            }

            /// Creates the value from seconds, rounded down to a picosecond. Larger values give `MAX`;
            /// negative numbers and NaN give zero.
            pub fn from_secs_f64(seconds: f64) -> $name {
                $name(floor_u64(seconds * 1e12))
            }

            /// Returns the value in picoseconds.
            pub const fn as_ps(self) -> u64 {
                self.0
            }

            /// Returns the value in whole nanoseconds, rounded down.
            pub const fn as_ns(self) -> u64 {
                self.0 / 1_000
            }

            /// Returns the value in seconds.
            pub fn as_secs_f64(self) -> f64 {
                self.0 as f64 * 1e-12
            }

            /// Returns the value in milliseconds.
            pub fn as_ms_f64(self) -> f64 {
                self.0 as f64 * 1e-9
            }

            /// Returns the value `duration` later, or `MAX` if that is beyond the range.
            pub const fn saturating_add(self, duration: Duration) -> $name {
                $name(self.0.saturating_add(duration.0))
            }

            /// Returns the value `duration` earlier, or zero if that would be negative.
            pub const fn saturating_sub(self, duration: Duration) -> $name {
                $name(self.0.saturating_sub(duration.0))
            }
        }

        /// Panics beyond 213 days, also in release builds; `saturating_add` does not.
        impl Add<Duration> for $name {
            type Output = $name;
            #[inline]
            #[track_caller]
            fn add(self, rhs: Duration) -> $name {
                match self.0.checked_add(rhs.0) {
                    Some(ps) => $name(ps),
                    None => beyond_the_end(),
                }
            }
        }

        impl AddAssign<Duration> for $name {
            #[inline]
            #[track_caller]
            fn add_assign(&mut self, rhs: Duration) {
                *self = *self + rhs;
            }
        }

        /// Returns the duration between two values. Panics if it would be negative, also in release builds.
        impl Sub for $name {
            type Output = Duration;
            #[inline]
            #[track_caller]
            fn sub(self, rhs: $name) -> Duration {
                match self.0.checked_sub(rhs.0) {
                    Some(ps) => Duration(ps),
                    None => before_the_start(),
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}ps", self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:.6} ms", self.as_ms_f64())
            }
        }
    };
}

picoseconds! {
    /// A point in simulated time: picoseconds since the start of the simulation.
    Instant
}

picoseconds! {
    /// A span of simulated time, in picoseconds.
    Duration
}

impl Instant {
    /// The start of the simulation.
    pub const ZERO: Instant = Instant(0);
    /// The largest instant, later than any event.
    pub const MAX: Instant = Instant(u64::MAX);

    /// Returns the duration since `earlier`, or zero when `earlier` is later.
    pub const fn saturating_since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// The empty duration.
    pub const ZERO: Duration = Duration(0);
    /// The largest duration.
    pub const MAX: Duration = Duration(u64::MAX);

    /// Returns the product, or [`Duration::MAX`] if it is beyond the range.
    pub const fn saturating_mul(self, factor: u64) -> Duration {
        Duration(self.0.saturating_mul(factor))
    }
}

/// Panics beyond 213 days, also in release builds; [`saturating_mul`](Duration::saturating_mul) does not.
impl Mul<u64> for Duration {
    type Output = Duration;
    #[inline]
    #[track_caller]
    fn mul(self, factor: u64) -> Duration {
        match self.0.checked_mul(factor) {
            Some(ps) => Duration(ps),
            None => beyond_the_end(),
        }
    }
}

/// Rounds down to a picosecond.
impl Div<u64> for Duration {
    type Output = Duration;
    #[inline]
    fn div(self, divisor: u64) -> Duration {
        Duration(self.0 / divisor)
    }
}

#[track_caller]
const fn ps_of(count: u64, unit: u64) -> u64 {
    match count.checked_mul(unit) {
        Some(ps) => ps,
        None => panic!("a time of more than 213 days"),
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

/// Transmission time of a byte on a line of 1 bit/s, picoseconds.
const PS_PER_BYTE: u64 = 8_000_000_000_000;

/// A line rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(pub u64);

impl Rate {
    /// Returns how long `bytes` occupy the line, rounded up to a picosecond; [`Duration::MAX`] if that is
    /// longer.
    ///
    /// # Panics
    /// When the rate is zero.
    #[inline]
    pub const fn transmission_time(self, bytes: u64) -> Duration {
        match bytes.checked_mul(PS_PER_BYTE) {
            Some(bit_ps) => Duration(bit_ps.div_ceil(self.0)),
            None => self.long_transmission_time(bytes),
        }
    }

    /// Returns the transmission time of more than 2.3 MB.
    #[cold]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what does not fit is Duration::MAX"
    )]
    const fn long_transmission_time(self, bytes: u64) -> Duration {
        let ps = (bytes as u128 * PS_PER_BYTE as u128).div_ceil(self.0 as u128);
        match ps > u64::MAX as u128 {
            true => Duration::MAX,
            false => Duration(ps as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minimum_packet_at_100g_lasts_a_fraction_of_a_nanosecond_more_than_five() {
        assert_eq!(Rate(100_000_000_000).transmission_time(64), Duration(5_120));
    }

    #[test]
    fn times_beyond_213_days_are_not_taken_for_shorter_ones() {
        let most = u64::MAX / 1_000;
        assert_eq!(Duration::from_ns(most), Duration(most * 1_000));
        for too_long in [most + 1, u64::MAX] {
            assert!(std::panic::catch_unwind(|| Duration::from_ns(too_long)).is_err());
        }
        assert!(std::panic::catch_unwind(|| Duration::from_us(u64::MAX / 1_000_000 + 1)).is_err());
        assert!(
            std::panic::catch_unwind(|| Duration::from_ms(u64::MAX / 1_000_000_000 + 1)).is_err()
        );
        assert_eq!(Duration::from_secs_f64(1e300), Duration::MAX);
        assert_eq!(Duration::from_secs_f64(-1.0), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(f64::NAN), Duration::ZERO);
    }

    #[test]
    fn arithmetic_that_cannot_be_is_never_silent() {
        let (early, late, short) = (Instant(1), Instant(3), Duration(1));
        assert_eq!((late - early, late + short), (Duration(2), Instant(4)));
        assert!(std::panic::catch_unwind(|| early - late).is_err());
        assert!(std::panic::catch_unwind(|| Instant::MAX + short).is_err());
        assert!(std::panic::catch_unwind(|| short - Duration(2)).is_err());
        assert!(std::panic::catch_unwind(|| Duration::MAX * 2).is_err());
        assert!(
            std::panic::catch_unwind(|| {
                let mut time = Duration::MAX;
                time += short;
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
            Duration((1 << 40) * 800)
        );
        let most = u64::MAX / PS_PER_BYTE;
        for bytes in [most, most + 1] {
            assert_eq!(
                Rate(8).transmission_time(bytes),
                Duration(bytes * 1_000_000_000_000)
            );
        }
        assert_eq!(Rate(1_000_000).transmission_time(u64::MAX), Duration::MAX);
        assert_eq!(Rate(1).transmission_time(3_000_000), Duration::MAX);
    }

    #[test]
    fn a_full_packet_at_1g() {
        assert_eq!(
            Rate(1_000_000_000).transmission_time(1518),
            Duration::from_ns(12_144)
        );
    }

    #[test]
    fn a_rate_that_does_not_divide_rounds_up() {
        assert_eq!(Rate(3_000_000_000).transmission_time(1), Duration(2_667));
    }
}
