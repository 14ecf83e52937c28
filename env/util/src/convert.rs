//! Conversions between number types. Each documents the result for a number that does not fit.
//!
//! The lints of the workspace refuse `as` where it may cut a number, wrap it or change its sign.
//! Such conversions are done here, or the code that does them states why every number fits.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the document of each function says what becomes of numbers that do not fit"
)]

const _: () = assert!(usize::BITS == 64, "bufgym is for machines of 64 bits");

/// Returns the number itself: both types have 64 bits.
#[inline(always)]
pub const fn index(number: u64) -> usize {
    number as usize
}

/// Returns the nearest single-precision number; infinity beyond the largest, NaN for NaN.
#[inline(always)]
pub const fn single(number: f64) -> f32 {
    number as f32
}

/// Returns the lower 32 bits.
#[inline(always)]
pub const fn lower_u32(number: u64) -> u32 {
    number as u32
}

/// Returns the lower 64 bits.
#[inline(always)]
pub const fn lower_u64(number: u128) -> u64 {
    number as u64
}

macro_rules! floors {
    ($($name:ident -> $type:ident,)+) => {$(
        #[doc = concat!("The largest [`", stringify!($type), "`] that is not above the number; ")]
        /// the smallest one for smaller numbers and for NaN.
        #[inline(always)]
        pub const fn $name(number: f64) -> $type {
            number as $type
        }
    )+};
}

floors! {
    floor_u8 -> u8,
    floor_u32 -> u32,
    floor_u64 -> u64,
    floor_usize -> usize,
}

/// Returns the integer part, clamped to the range of the type; 0 for NaN.
#[inline(always)]
pub const fn whole_i32(number: f64) -> i32 {
    number as i32
}

/// Like [`whole_i32`], with 64 bits.
#[inline(always)]
pub const fn whole_i64(number: f64) -> i64 {
    number as i64
}

/// Returns the length of something in memory as a signed number.
///
/// # Panics
/// When it is above 2^63 - 1, which no length in memory is.
pub fn signed(length: usize) -> i64 {
    i64::try_from(length).expect("a length is below 2^63")
}

/// Returns the nearest rank, counted from 1, of a quantile among `count` sorted values: the smallest integer
/// that is not below `share · count`. A product that is an integer in decimal notation stays that integer.
pub fn nearest_rank(share: f64, count: u64) -> u64 {
    let rank = floor_u64((share * count as f64 * (1.0 - 4.0 * f64::EPSILON)).ceil());
    rank.min(count).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_exact_shares() {
        // In floating point 0.07 · 100 is above 7, and 99.9 / 100 is above 0.999.
        for (share, count, rank) in [
            (0.07, 100, 7),
            (99.9 / 100.0, 1_000, 999),
            (99.9 / 100.0, 1_001, 1_000),
            (0.5, 3, 2),
            (0.0, 5, 1),
            (1.0, 5, 5),
        ] {
            assert_eq!(nearest_rank(share, count), rank, "{share} {count}");
        }
        for thousandths in 0..=1_000_u64 {
            for count in 1..300 {
                let exact = (thousandths * count).div_ceil(1_000).max(1);
                assert_eq!(nearest_rank(thousandths as f64 / 1_000.0, count), exact);
            }
        }
    }

    #[test]
    fn numbers_beyond_a_range_go_to_its_end() {
        for (number, whole) in [
            (-f64::INFINITY, 0),
            (-1.5, 0),
            (f64::NAN, 0),
            (0.999, 0),
            (254.999, 254),
            (255.0, 255),
            (256.0, 255),
            (1e300, 255),
        ] {
            assert_eq!(floor_u8(number), whole, "{number}");
        }
        assert_eq!(floor_u32(4_294_967_295.0), u32::MAX);
        assert_eq!(floor_u32(4_294_967_296.0), u32::MAX);
        assert_eq!(floor_u64(1e300), u64::MAX);
        assert_eq!(floor_usize(-1e300), 0);
        assert_eq!([whole_i32(-1.9), whole_i32(1.9)], [-1, 1]);
        assert_eq!([whole_i32(-1e10), whole_i32(1e10)], [i32::MIN, i32::MAX]);
        assert_eq!([whole_i64(-1e300), whole_i64(f64::NAN)], [i64::MIN, 0]);
    }

    #[test]
    fn every_index_is_kept() {
        assert_eq!(index(u64::MAX), usize::MAX);
        assert_eq!(signed(7), 7);
    }

    #[test]
    fn single_precision_is_the_nearest_and_knows_infinity() {
        assert_eq!(single(0.1), 0.1_f32);
        assert_eq!(single(1e300), f32::INFINITY);
        assert!(single(f64::NAN).is_nan());
    }
}
