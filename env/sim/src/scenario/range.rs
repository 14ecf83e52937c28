//! Inclusive ranges of numbers, written `lo..hi` or as one number.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// The whole numbers from `min` to `max`, both included.
///
/// Written `"1..16"` in files and on the command line (both ends belong to it), or as a single
/// number where both ends are equal. A range with `min > max` can be written down but is refused
/// by [`Scenario::validate`](super::Scenario::validate).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RangeU32 {
    /// The smallest value.
    pub min: u32,
    /// The largest value.
    pub max: u32,
}

impl RangeU32 {
    /// The range from `min` to `max`, both included.
    pub const fn new(min: u32, max: u32) -> RangeU32 {
        RangeU32 { min, max }
    }

    /// The arithmetic mean of the values.
    pub fn mean(self) -> f64 {
        (f64::from(self.min) + f64::from(self.max)) / 2.0
    }

    /// Returns true if the range contains no value.
    pub const fn is_empty(self) -> bool {
        self.min > self.max
    }
}

impl fmt::Display for RangeU32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            write!(f, "{}", self.min)
        } else {
            write!(f, "{}..{}", self.min, self.max)
        }
    }
}

/// A text that is not a range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is neither a number nor a range such as 1..16", bufgym_util::input::excerpt(.0))]
pub struct RangeParseError(pub String);

impl FromStr for RangeU32 {
    type Err = RangeParseError;

    fn from_str(text: &str) -> Result<RangeU32, RangeParseError> {
        let error = || RangeParseError(text.to_owned());
        let number = |part: &str| part.trim().parse::<u32>().map_err(|_| error());
        match text.split_once("..") {
            Some((min, max)) => Ok(RangeU32::new(number(min)?, number(max)?)),
            None => number(text).map(|value| RangeU32::new(value, value)),
        }
    }
}

impl Serialize for RangeU32 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.min == self.max {
            serializer.serialize_u32(self.min)
        } else {
            serializer.collect_str(self)
        }
    }
}

/// The numbers from `min` to `max`.
///
/// Written `"0.1..0.9"` in files and on the command line, or as a single number where both ends
/// are equal. A range with `min > max` can be written down but is refused by
/// [`Scenario::validate`](super::Scenario::validate).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangeF64 {
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
}

impl RangeF64 {
    /// The range from `min` to `max`.
    pub const fn new(min: f64, max: f64) -> RangeF64 {
        RangeF64 { min, max }
    }

    /// The middle of the range.
    pub fn mean(self) -> f64 {
        (self.min + self.max) / 2.0
    }

    /// Returns true if both ends are equal.
    pub fn is_single(self) -> bool {
        self.min.total_cmp(&self.max).is_eq()
    }
}

impl From<f64> for RangeF64 {
    fn from(value: f64) -> RangeF64 {
        RangeF64::new(value, value)
    }
}

impl fmt::Display for RangeF64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_single() {
            write!(f, "{}", self.min)
        } else {
            write!(f, "{}..{}", self.min, self.max)
        }
    }
}

impl FromStr for RangeF64 {
    type Err = RangeParseError;

    fn from_str(text: &str) -> Result<RangeF64, RangeParseError> {
        let error = || RangeParseError(text.to_owned());
        let number = |part: &str| part.trim().parse::<f64>().map_err(|_| error());
        match text.split_once("..") {
            Some((min, max)) => Ok(RangeF64::new(number(min)?, number(max)?)),
            None => number(text).map(RangeF64::from),
        }
    }
}

impl Serialize for RangeF64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_single() {
            serializer.serialize_f64(self.min)
        } else {
            serializer.collect_str(self)
        }
    }
}
