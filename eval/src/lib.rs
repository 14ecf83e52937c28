//! Paired evaluation of buffer policies: every policy runs the same unseen traces, and the report
//! gives ratios to DT with bootstrap intervals and says which policies lose.
//!
//! [`evaluate`](mod@evaluate) runs every [`Entrant`] on every trace and makes a [`TraceResult`] of each
//! run. The results become one [`PolicySummary`] per policy, with [`stats`] and [`metric`].
//! [`findings`](mod@findings) states them in sentences, [`table`] and [`figures`] show them, and
//! [`output`] writes the files. [`explain`](mod@explain) studies a single learned policy, [`headroom`]
//! estimates the possible gain in a scenario, [`tune`](mod@tune) stores the tuned parameters of rules, and
//! [`entrant::observations`] collects the observations of a learned policy. [`batch`] describes simulations for other
//! machines. [`testbed`] compares runs of a testbed with the simulator's.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "tests convert the small numbers that they make"
    )
)]

pub mod agreement;
pub mod batch;
pub mod data;
pub mod entrant;
pub mod evaluate;
pub mod explain;
pub mod figures;
pub mod findings;
pub mod forests;
pub mod format;
pub mod headroom;
pub mod html;
pub mod label;
pub mod metric;
pub mod output;
pub mod portable;
pub mod result_cache;
mod scenario_facts;
mod seeds;
pub mod stats;
pub mod suite;
mod summary;
#[cfg(test)]
mod synthetic;
pub mod table;
pub mod testbed;
mod timeline;
mod traces;
pub mod tune;

pub use data::{Evaluation, PolicySummary, TraceResult};
pub use entrant::{Entrant, EntrantError};
pub use evaluate::{EvalConfig, EvalError, Progress, TRACES, evaluate, evaluate_traces};
pub use output::OutputError;

/// The examples of the README, which are tested together with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
