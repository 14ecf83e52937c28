//! The heuristics whose parameter the decisions set: the paper's two-level mechanism takes "a
//! specified heuristic".

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The policy that decides about packets, with the α that the decisions choose for every port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LowLevel {
    /// Dynamic Threshold: `T = α_i (B - Q)` (paper, §IV-B).
    #[default]
    Dt,
    /// Active Buffer Management with α_i for all queues of the port, and for the rest as in its
    /// paper: `T = α_i · (1/n_p) · (B - Q) · μ/b`, unscheduled packets with their own α (Addanki et
    /// al., SIGCOMM 2022).
    Abm,
}

/// A text that names no low-level heuristic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("low level '{0}' is not known; there are dt and abm")]
pub struct UnknownLowLevel(String);

impl LowLevel {
    /// Every one of them.
    pub const ALL: [LowLevel; 2] = [LowLevel::Dt, LowLevel::Abm];

    /// The name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            LowLevel::Dt => "dt",
            LowLevel::Abm => "abm",
        }
    }

    /// Whether it is the paper's own, [`LowLevel::Dt`].
    pub fn is_default(&self) -> bool {
        *self == LowLevel::default()
    }
}

impl fmt::Display for LowLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for LowLevel {
    type Err = UnknownLowLevel;

    fn from_str(text: &str) -> Result<LowLevel, UnknownLowLevel> {
        let mut all = LowLevel::ALL.into_iter();
        all.find(|low_level| low_level.name() == text)
            .ok_or_else(|| UnknownLowLevel(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for low_level in LowLevel::ALL {
            assert_eq!(low_level.to_string().parse(), Ok(low_level));
            let json = serde_json::to_string(&low_level).unwrap();
            assert_eq!(json, format!("\"{low_level}\""));
        }
        let message = "edt".parse::<LowLevel>().unwrap_err().to_string();
        assert_eq!(
            message,
            "low level 'edt' is not known; there are dt and abm"
        );
    }
}
