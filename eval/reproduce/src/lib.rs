//! Reproduces the figures of published papers, and compares every claim of the papers with a measured value.
//!
//! [`claim`] contains a paper's value and the measured one, [`verdict`] the rules by which they agree, and
//! [`report`](mod@report) the output: a CSV table and a drawing per figure, `verdicts.csv` and one page.
//! These are the same for all papers. The figures of [`ndt`] are about one switch. Those of other papers are about
//! networks of several switches: files describe them, with the claims. [`Paper`] makes them, from simulations that
//! figures share ([`grid`]) and settings that are swept ([`sweep`]). Another machine runs the simulations if it
//! knows the [`measurements`].

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "tests convert the small numbers that they make"
    )
)]

mod abm;
pub mod claim;
pub mod credence;
pub mod fabric;
mod figure;
pub mod grid;
pub mod incast;
pub mod ndt;
mod page;
pub mod paper;
pub mod report;
mod reverie;
mod rules;
pub(crate) mod runs;
pub mod sweep;
mod variants;
pub mod verdict;

pub use claim::{Claim, Kind, Ours, Target};
pub use page::write_into;
pub use paper::Paper;
pub use report::{Panel, Report, Table};
pub use runs::{PapersError, Work};
pub use verdict::{Grade, Verdict};

use std::fmt;
use std::str::FromStr;

use bufgym_eval::batch::Measurements;

/// The example of the README, which is tested together with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;

/// Returns name and title of the papers that can be reproduced, those about a single switch first.
pub fn papers() -> impl Iterator<Item = (&'static str, &'static str)> {
    let networks = Paper::all().map(|paper| (paper.name, paper.title()));
    [(ndt::NAME, ndt::TITLE)].into_iter().chain(networks)
}

/// Returns what a program must know in order to run the simulations of all figures, and those of evaluations, for
/// another machine.
pub fn measurements() -> Measurements {
    bufgym_eval::evaluate::measurements()
        .with::<runs::MeanFct>()
        .with::<grid::Measured>()
        .with::<ndt::IncastRun>()
        .with::<ndt::QueuesRun>()
        .with::<ndt::DropsRun>()
        .with::<ndt::PredictedRun>()
        .with::<ndt::PacketIntervals>()
}

/// Amount of simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Minutes for a whole paper.
    Quick,
    /// The numbers of the paper, as far as they are known.
    Paper,
}

impl Scale {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Quick => "quick",
            Scale::Paper => "paper",
        }
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no scale.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a scale: quick or paper", bufgym_util::input::excerpt(.0))]
pub struct UnknownScale(String);

impl FromStr for Scale {
    type Err = UnknownScale;

    fn from_str(text: &str) -> Result<Scale, UnknownScale> {
        [Scale::Quick, Scale::Paper]
            .into_iter()
            .find(|scale| scale.name() == text)
            .ok_or_else(|| UnknownScale(text.to_owned()))
    }
}
