//! A set of workloads, of which a trace draws one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{UnknownName, Workload};

/// The workloads that a trace draws from, each equally likely; at least one.
///
/// The text form is the names with commas between them, such as `web_search,data_mining`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Workloads {
    /// Bit `i` stands for `Workload::ALL[i]`.
    members: u8,
}

const _: () = assert!(Workload::ALL.len() <= 8);

impl Workloads {
    /// The members, in the order of [`Workload::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Workload> {
        let all = Workload::ALL.iter().copied().enumerate();
        all.filter_map(move |(index, workload)| {
            (self.members >> index & 1 == 1).then_some(workload)
        })
    }

    /// How many there are.
    pub const fn count(self) -> u32 {
        self.members.count_ones()
    }
}

impl From<Workload> for Workloads {
    fn from(workload: Workload) -> Workloads {
        Workloads {
            members: 1 << workload as u8,
        }
    }
}

impl<const N: usize> From<[Workload; N]> for Workloads {
    /// # Panics
    /// When there is none.
    fn from(workloads: [Workload; N]) -> Workloads {
        assert!(N > 0, "a trace needs a workload");
        let members = workloads
            .iter()
            .fold(0, |members, workload| members | 1 << *workload as u8);
        Workloads { members }
    }
}

impl fmt::Display for Workloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(Workload::name).collect();
        f.pad(&names.join(","))
    }
}

impl FromStr for Workloads {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Workloads, UnknownName> {
        let mut members = 0;
        for name in text.split(',') {
            members |= Workloads::from(name.trim().parse::<Workload>()?).members;
        }
        Ok(Workloads { members })
    }
}

impl From<Workloads> for String {
    fn from(workloads: Workloads) -> String {
        workloads.to_string()
    }
}

impl TryFrom<String> for Workloads {
    type Error = UnknownName;

    fn try_from(text: String) -> Result<Workloads, UnknownName> {
        text.parse()
    }
}
