//! Settings for the queues of a port: the queue of acknowledgements, and numbers for each queue.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::input::excerpt;

/// The queue of packets without data: acknowledgements, SYNs and their answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum AckQueue {
    /// The queue of their flow's data.
    #[default]
    OfFlow,
    /// The queue with this number, from 0.
    Number(u32),
}

impl AckQueue {
    /// Text form of [`OfFlow`](AckQueue::OfFlow).
    const OF_FLOW: &'static str = "flow";
}

/// A text that names no queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the number of a queue or flow, found `{}`", excerpt(.0))]
pub struct NoQueue(String);

impl fmt::Display for AckQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AckQueue::OfFlow => f.pad(AckQueue::OF_FLOW),
            AckQueue::Number(queue) => queue.fmt(f),
        }
    }
}

impl FromStr for AckQueue {
    type Err = NoQueue;

    fn from_str(text: &str) -> Result<AckQueue, NoQueue> {
        if text == AckQueue::OF_FLOW {
            return Ok(AckQueue::OfFlow);
        }
        let queue = text.parse().map_err(|_| NoQueue(text.to_owned()))?;
        Ok(AckQueue::Number(queue))
    }
}

impl From<AckQueue> for String {
    fn from(queue: AckQueue) -> String {
        queue.to_string()
    }
}

impl TryFrom<String> for AckQueue {
    type Error = NoQueue;

    fn try_from(text: String) -> Result<AckQueue, NoQueue> {
        text.parse()
    }
}

/// A number above 0 for each queue of a port, in the order of the queues; or none, which is written as
/// an empty text.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PerQueue(Vec<f64>);

/// A text that is not a list of numbers above 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected numbers above 0 separated by commas, such as 1,0.5, found `{}`", excerpt(.0))]
pub struct NotPerQueue(String);

impl PerQueue {
    /// Returns true if there are no numbers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The numbers, by queue.
    pub fn values(&self) -> &[f64] {
        &self.0
    }
}

impl fmt::Display for PerQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, value) in self.0.iter().enumerate() {
            let before = if place == 0 { "" } else { "," };
            write!(f, "{before}{value}")?;
        }
        Ok(())
    }
}

impl FromStr for PerQueue {
    type Err = NotPerQueue;

    fn from_str(text: &str) -> Result<PerQueue, NotPerQueue> {
        if text.trim().is_empty() {
            return Ok(PerQueue::default());
        }
        let number = |part: &str| {
            let value = part.trim().parse::<f64>().ok();
            value.filter(|value| value.is_finite() && *value > 0.0)
        };
        let numbers: Option<Vec<f64>> = text.split(',').map(number).collect();
        numbers
            .map(PerQueue)
            .ok_or_else(|| NotPerQueue(text.to_owned()))
    }
}

impl From<PerQueue> for String {
    fn from(numbers: PerQueue) -> String {
        numbers.to_string()
    }
}

impl TryFrom<String> for PerQueue {
    type Error = NotPerQueue;

    fn try_from(text: String) -> Result<PerQueue, NotPerQueue> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["flow", "0", "7"] {
            assert_eq!(text.parse::<AckQueue>().unwrap().to_string(), text);
        }
        for text in ["", "1", "1,0.5,0.0625"] {
            assert_eq!(text.parse::<PerQueue>().unwrap().to_string(), text);
        }
        assert_eq!("64, 1".parse::<PerQueue>().unwrap().values(), [64.0, 1.0]);
    }

    #[test]
    fn mistakes_are_refused() {
        for text in ["", "first", "-1", "1.5"] {
            assert!(text.parse::<AckQueue>().is_err(), "{text}");
        }
        for text in ["0", "1,,2", "1;2", "nan", "inf", "1,-1"] {
            assert!(text.parse::<PerQueue>().is_err(), "{text}");
        }
    }
}
