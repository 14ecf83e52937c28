//! Lines of words that are separated by white space, and the numbers in them.

use std::io::{BufRead as _, BufReader, Read};

use bufgym_util::input::{MAX_RECORD, excerpt};

use crate::traffic::TraceError;
use crate::traffic::formats::decimal;
use crate::units::Instant;

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
