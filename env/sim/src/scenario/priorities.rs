//! Sets of priorities, the values of the setting `lossless_priorities`.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use bufgym_util::input::excerpt;

/// A subset of the priorities 0 to 7, each the number of a queue of every port.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(into = "String")]
pub struct Priorities(u8);

/// A text that is not a set of priorities.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected priorities from 0 to 7 separated by commas, such as 3, or none, found `{}`", excerpt(.0))]
pub struct NoPriorities(String);

impl Priorities {
    /// No priority.
    pub const NONE: Priorities = Priorities(0);

    /// Text form of [`NONE`](Priorities::NONE).
    const NONE_TEXT: &'static str = "none";

    /// The set of one priority.
    ///
    /// # Panics
    /// When `priority` is above 7.
    pub fn one(priority: u32) -> Priorities {
        assert!(priority < 8, "priorities are 0 to 7");
        Priorities(1 << priority)
    }

    /// Returns true if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the number of priorities in the set.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns true if the set contains `priority`.
    #[inline]
    pub fn contains(self, priority: usize) -> bool {
        priority < 8 && self.0 >> priority & 1 != 0
    }

    /// Returns the priorities in ascending order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..8).filter(move |priority| self.contains(*priority))
    }
}

impl fmt::Display for Priorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str(Priorities::NONE_TEXT);
        }
        for (place, priority) in self.iter().enumerate() {
            let before = if place == 0 { "" } else { "," };
            write!(f, "{before}{priority}")?;
        }
        Ok(())
    }
}

impl FromStr for Priorities {
    type Err = NoPriorities;

    fn from_str(text: &str) -> Result<Priorities, NoPriorities> {
        let text = text.trim();
        if text.is_empty() || text == Priorities::NONE_TEXT {
            return Ok(Priorities::NONE);
        }
        let number = |part: &str| part.trim().parse::<u32>().ok().filter(|number| *number < 8);
        let mut set = 0;
        for part in text.split(',') {
            set |= 1 << number(part).ok_or_else(|| NoPriorities(text.to_owned()))?;
        }
        Ok(Priorities(set))
    }
}

impl From<Priorities> for String {
    fn from(priorities: Priorities) -> String {
        priorities.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_as_they_are_written() {
        for (text, written) in [
            ("none", "none"),
            ("", "none"),
            ("3", "3"),
            (" 4, 0,4", "0,4"),
        ] {
            let set: Priorities = text.parse().unwrap();
            assert_eq!(set.to_string(), written);
            assert_eq!(set.to_string().parse(), Ok(set));
        }
        let set: Priorities = "1,3".parse().unwrap();
        assert_eq!(
            (set.count(), set.iter().collect::<Vec<_>>()),
            (2, vec![1, 3])
        );
        assert!(set.contains(3) && !set.contains(2) && !set.contains(64));
        assert_eq!(Priorities::one(3), "3".parse().unwrap());
    }

    #[test]
    fn what_is_no_priority_is_said() {
        for text in ["8", "a", "1,", "-1"] {
            let error = text.parse::<Priorities>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("0 to 7"), "{error}");
        }
    }
}
