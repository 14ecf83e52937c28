//! A set of workloads, of which a trace draws one.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use bufgym_util::input::{self, excerpt};
use serde::Serialize;

use super::named::named;
use super::{SizeDistribution, SizeError, UnknownName};

named! {
    /// A published flow-size distribution, compiled in.
    Workload {
        /// Web search (DCTCP, SIGCOMM 2010); mean 1,711,250 B.
        WebSearch = "web_search",
        /// Data mining (VL2, SIGCOMM 2009); mean 12,658,199 B.
        DataMining = "data_mining",
        /// Facebook Hadoop, as HPCC (SIGCOMM 2019) uses it; mean 120,421 B.
        FbHadoop = "fb_hadoop",
        /// Alibaba storage 2019, as HPCC uses it.
        AliStorage = "ali_storage",
        /// Web search with the sizes below 10,000 B used in the published runs of ABM (SIGCOMM 2022)
        /// and Credence (NSDI 2024); mean 1,711,222 B.
        WebSearchAbm = "web_search_abm",
    }
}

/// The workloads that a trace draws from, each equally likely; at least one.
///
/// The text form is the names with commas between them, such as `web_search,data_mining`. A distribution
/// that has no name is written as its points, such as `0:0 1000:0.5 9000:1`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "String")]
pub struct Workloads {
    /// Bit `i` stands for `Workload::ALL[i]`.
    members: u8,
    /// The distribution without a name. The scenario holds its points, not the file that they came
    /// from.
    own: Option<Arc<SizeDistribution>>,
}

const _: () = assert!(Workload::ALL.len() <= 8);

/// Source of the sizes of a trace's flows.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// A published distribution.
    Published(Workload),
    /// The points of a distribution without a name.
    Own(Arc<SizeDistribution>),
}

impl Sizes {
    /// Kind of the flows of a distribution without a name.
    pub(crate) const OWN_KIND: &str = "sizes";

    /// The distribution of the flow sizes.
    pub fn distribution(&self) -> &SizeDistribution {
        match self {
            Sizes::Published(workload) => workload.distribution(),
            Sizes::Own(sizes) => sizes,
        }
    }

    /// Returns the kind of the flows in a trace: that of [`Workload::short_name`], or `sizes`.
    pub const fn short_name(&self) -> &'static str {
        match self {
            Sizes::Published(workload) => workload.short_name(),
            Sizes::Own(_) => Sizes::OWN_KIND,
        }
    }
}

/// The error for a text that is not a set of workloads.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A name that no workload has.
    #[error(
        "{0}; or bytes:cdf points such as 0:0 1000:0.5 9000:1; --set workload=FILE reads them from a \
         file with a dot in its name"
    )]
    Name(#[from] UnknownName),
    /// Points that are not a distribution.
    #[error(transparent)]
    Points(#[from] SizeError),
    /// A file that cannot be read.
    #[error("{}: cannot read the size distribution: {source}", excerpt(.path))]
    File {
        /// The file.
        path: String,
        /// Reason of the failure.
        source: std::io::Error,
    },
    /// A file name where only points are allowed.
    #[error(
        "`{}`: a file is read with --set workload=FILE; here its points stand, such as \
         0:0 1000:0.5 9000:1",
        excerpt(.0)
    )]
    FileInScenario(String),
    /// Two distributions without a name.
    #[error("two distributions without a name; a scenario has at most one besides the named")]
    TwoOwn,
}

impl Workloads {
    /// Returns the members: the named ones in the order of [`Workload::ALL`], then the one without a
    /// name.
    pub fn iter(&self) -> impl Iterator<Item = Sizes> + '_ {
        let all = Workload::ALL.iter().copied().enumerate();
        let named = all.filter(|(index, _)| self.members >> index & 1 == 1);
        let named = named.map(|(_, workload)| Sizes::Published(workload));
        named.chain(self.own.iter().cloned().map(Sizes::Own))
    }

    /// Returns the number of members.
    pub fn count(&self) -> u32 {
        self.members.count_ones() + u32::from(self.own.is_some())
    }

    /// As [`from_str`](Workloads::from_str), except that a member may be the name of a file with
    /// points, if it contains a `.` or a `/`. The points are read once, now.
    ///
    /// # Errors
    /// As for `from_str`, and files that cannot be read or have no distribution.
    pub fn read(text: &str) -> Result<Workloads, WorkloadError> {
        Workloads::parse(text, |path| {
            if !Path::new(path).is_file() && Path::new(path).exists() {
                let source = std::io::Error::other("not a regular file");
                let path = path.to_owned();
                return Err(WorkloadError::File { path, source });
            }
            let text = input::read_text(Path::new(path), SizeDistribution::MAX_FILE);
            let text = text.map_err(|source| WorkloadError::File {
                path: path.to_owned(),
                source,
            })?;
            Ok(SizeDistribution::from_text(&text, &excerpt(path))?)
        })
    }

    fn parse(
        text: &str,
        read: impl Fn(&str) -> Result<SizeDistribution, WorkloadError>,
    ) -> Result<Workloads, WorkloadError> {
        let mut result = Workloads {
            members: 0,
            own: None,
        };
        for member in text.split(',').map(str::trim) {
            let own = if member.contains(':') {
                member.parse::<SizeDistribution>()?
            } else if member.contains(['.', '/']) {
                read(member)?
            } else {
                result.members |= Workloads::from(member.parse::<Workload>()?).members;
                continue;
            };
            if result.own.replace(Arc::new(own)).is_some() {
                return Err(WorkloadError::TwoOwn);
            }
        }
        Ok(result)
    }
}

impl From<Workload> for Workloads {
    fn from(workload: Workload) -> Workloads {
        Workloads {
            members: 1 << workload as u8,
            own: None,
        }
    }
}

impl<const N: usize> From<[Workload; N]> for Workloads {
    /// # Panics
    /// When the array is empty.
    fn from(workloads: [Workload; N]) -> Workloads {
        assert!(N > 0, "a trace needs a workload");
        let members = workloads
            .iter()
            .fold(0, |members, workload| members | 1 << *workload as u8);
        Workloads { members, own: None }
    }
}

impl fmt::Display for Workloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.iter().map(|sizes| match sizes {
            Sizes::Published(workload) => workload.name().to_owned(),
            Sizes::Own(sizes) => sizes.to_string(),
        });
        f.pad(&names.collect::<Vec<_>>().join(","))
    }
}

impl FromStr for Workloads {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Workloads, WorkloadError> {
        Workloads::parse(text, |path| {
            Err(WorkloadError::FileInScenario(path.to_owned()))
        })
    }
}

impl From<Workloads> for String {
    fn from(workloads: Workloads) -> String {
        workloads.to_string()
    }
}
