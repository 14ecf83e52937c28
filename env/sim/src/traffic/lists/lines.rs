//! Lines of words that are separated by white space, and the numbers in them.

use std::io::{BufRead as _, BufReader, Read};

use bufgym_util::input::{MAX_RECORD, excerpt};

use crate::traffic::TraceError;
use crate::units::Instant;

/// Largest power of ten that fits into 128 bits.
const MAX_POWER: u32 = 38;

/// A word of a line and its column, characters from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) column: usize,
}

/// The lines of a file. Each has at most [`MAX_RECORD`] bytes.
pub(super) struct Lines<'o, R> {
    reader: BufReader<R>,
    origin: &'o str,
    bytes: Vec<u8>,
    number: u64,
}

/// A line that is not empty.
pub(super) struct Line<'a> {
    origin: &'a str,
    number: u64,
    text: &'a str,
}

impl<'o, R: Read> Lines<'o, R> {
    pub(super) fn new(reader: R, origin: &'o str) -> Lines<'o, R> {
        Lines {
            reader: BufReader::new(reader),
            origin,
            bytes: Vec::new(),
            number: 0,
        }
    }

    /// Returns the next line that has words; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, TraceError> {
        loop {
            self.bytes.clear();
            let mut part = (&mut self.reader).take(MAX_RECORD + 1);
            let read = part.read_until(b'\n', &mut self.bytes);
            let length = read.map_err(|source| TraceError::Io {
                path: self.origin.into(),
                action: "read",
                source,
            })?;
            if length == 0 {
                return Ok(None);
            }
            self.number += 1;
            if length as u64 > MAX_RECORD {
                let problem =
                    format!("a line of more than {MAX_RECORD} bytes, the most that is read");
                return Err(self.error(1, problem));
            }
            if !self.bytes.trim_ascii().is_empty() {
                break;
            }
        }
        let text = str::from_utf8(&self.bytes).map_err(|error| {
            let valid = String::from_utf8_lossy(&self.bytes[..error.valid_up_to()]);
            self.error(valid.chars().count() + 1, "not UTF-8 text".to_owned())
        })?;
        Ok(Some(Line {
            origin: self.origin,
            number: self.number,
            text,
        }))
    }

    /// Returns an error in the line that was read last.
    pub(super) fn error(&self, column: usize, problem: String) -> TraceError {
        TraceError::Place {
            origin: self.origin.to_owned(),
            line: self.number.max(1),
            column,
            problem,
        }
    }
}

impl<'a> Line<'a> {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the words with their columns.
    pub(super) fn words(&self) -> impl Iterator<Item = Word<'a>> + use<'a> {
        let mut rest = self.text;
        let mut column = 1;
        std::iter::from_fn(move || {
            let trimmed = rest.trim_ascii_start();
            // White space of ASCII has a byte a character.
            column += rest.len() - trimmed.len();
            let text = trimmed.split_ascii_whitespace().next()?;
            let word = Word { text, column };
            column += text.chars().count();
            rest = &trimmed[text.len()..];
            Some(word)
        })
    }

    /// Returns the column behind the last word.
    pub(super) fn end(&self) -> usize {
        self.text.trim_ascii_end().chars().count() + 1
    }

    pub(super) fn error(&self, column: usize, problem: impl Into<String>) -> TraceError {
        TraceError::Place {
            origin: self.origin.to_owned(),
            line: self.number,
            column,
            problem: problem.into(),
        }
    }

    /// Returns the word as a whole number of the range.
    pub(super) fn whole<T>(
        &self,
        field: &str,
        word: Word<'_>,
        min: T,
        max: T,
    ) -> Result<T, TraceError>
    where
        T: Copy + std::fmt::Display + PartialOrd + std::str::FromStr,
    {
        let value = word.text.parse().ok();
        value
            .filter(|value: &T| *value >= min && *value <= max)
            .ok_or_else(|| {
                let found = excerpt(word.text);
                self.error(
                    word.column,
                    format!(
                        "{field}: expected a whole number from {min} to {max}, found `{found}`"
                    ),
                )
            })
    }

    /// Returns the word as a time in units of 10^`exponent` ns, rounded to whole nanoseconds.
    pub(super) fn time(
        &self,
        field: &str,
        word: Word<'_>,
        exponent: i32,
    ) -> Result<Instant, TraceError> {
        let most = crate::traffic::Trace::MAX_START_NS;
        let value = decimal(word.text, exponent).filter(|value| *value <= most);
        value.map(Instant::from_ns).ok_or_else(|| {
            let found = excerpt(word.text);
            let problem = format!("{field}: expected a time from 0 to {most} ns, found `{found}`");
            self.error(word.column, problem)
        })
    }
}

/// Returns a decimal number such as `2`, `2.0005` or `5e-06`, times 10^`exponent`, rounded to the
/// nearest whole number. Exact, except for digits beyond the 38th. `None` for anything else, and beyond
/// 64 bits.
pub(in crate::traffic) fn decimal(text: &str, exponent: i32) -> Option<u64> {
    let (number, power) = match text.split_once(['e', 'E']) {
        Some((number, power)) => (number, power.parse::<i16>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut mantissa = 0_u128;
    let mut scale = exponent + i32::from(power);
    let mut digits = 0;
    for (place, digit) in whole.bytes().chain(fraction.bytes()).enumerate() {
        if !digit.is_ascii_digit() {
            return None;
        }
        let is_whole = place < whole.len();
        if digits < MAX_POWER {
            mantissa = mantissa * 10 + u128::from(digit - b'0');
            digits += u32::from(mantissa > 0);
            scale = scale.saturating_sub(i32::from(!is_whole));
        } else {
            scale = scale.saturating_add(i32::from(is_whole));
        }
    }
    if mantissa == 0 {
        return Some(0);
    }
    let factor = |power: u32| (power <= MAX_POWER).then(|| 10_u128.pow(power));
    let value = if scale >= 0 {
        mantissa.checked_mul(factor(scale.unsigned_abs())?)?
    } else {
        // A number below 1/2 is 0.
        factor(scale.unsigned_abs()).map_or(0, |divisor| {
            let (quotient, rest) = (mantissa / divisor, mantissa % divisor);
            quotient + u128::from(rest >= divisor - rest)
        })
    };
    value.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::decimal;

    #[test]
    fn decimal_numbers_are_exact_and_rounded() {
        let long = format!("1{}.5", "0".repeat(17));
        for (text, exponent, expected) in [
            ("2", 9, Some(2_000_000_000)),
            ("2.0005", 9, Some(2_000_500_000)),
            ("2.000001500", 9, Some(2_000_001_500)),
            // A float of 64 bits would give 8388608000000001 here.
            ("8388608.000000001", 9, Some(8_388_608_000_000_001)),
            ("0.0000000005", 9, Some(1)),
            ("0.00000000049", 9, Some(0)),
            (".5", 0, Some(1)),
            ("5.", 0, Some(5)),
            ("5e-06", 9, Some(5_000)),
            ("1.5E+3", 0, Some(1_500)),
            ("500000000", -3, Some(500_000)),
            ("1499", -3, Some(1)),
            ("1500", -3, Some(2)),
            ("0e999", 9, Some(0)),
            ("0.000", 9, Some(0)),
            ("1e-9999", 9, Some(0)),
            (&long, 0, Some(100_000_000_000_000_001)),
            ("18446744073709551615", 0, Some(u64::MAX)),
            ("18446744073709551616", 0, None),
            ("1e30", 9, None),
            ("1e32767", 9, None),
            ("1e40000", 0, None),
            ("-1", 0, None),
            ("+1", 0, None),
            ("", 0, None),
            (".", 0, None),
            ("e5", 0, None),
            ("1e", 0, None),
            ("1.2.3", 0, None),
            ("nan", 0, None),
            ("inf", 0, None),
            ("1_0", 0, None),
        ] {
            assert_eq!(decimal(text, exponent), expected, "{text} e{exponent}");
        }
        let digits = "9".repeat(100);
        assert_eq!(decimal(&digits, -90), Some(10_000_000_000));
        assert_eq!(decimal(&format!("0.{digits}"), 0), Some(1));
        assert_eq!(decimal(&format!("{}1", "0".repeat(100)), 0), Some(1));
    }
}
