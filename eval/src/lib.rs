//! Paired evaluation of buffer policies: every policy on the same unseen traces, ratios with
//! bootstrap intervals, and a report that says plainly who loses.
//!
//! The modules follow the way of the numbers: a trace is run and becomes a
//! [`TraceResult`], [`summary`] turns results into one line per policy with the
//! help of [`stats`] and [`metric`], [`verdict`] into sentences, and [`table`], [`figures`] and [`html`] show
//! them. [`output`] writes the files. [`explain`] looks into one learned policy, and
//! [`record`] keeps what it saw.

pub mod contestant;
pub mod data;
pub mod evaluate;
pub mod explain;
pub mod figures;
pub mod format;
pub mod html;
pub mod metric;
pub mod output;
pub mod record;
pub mod stats;
pub mod suite;
pub mod summary;
#[cfg(test)]
mod synthetic;
pub mod table;
pub mod tune;
pub mod verdict;
mod window;

pub use contestant::{Contestant, ContestantError};
pub use data::{Evaluation, PolicySummary, TraceResult};
pub use evaluate::{EvalConfig, EvalError, Progress, TRACES, evaluate, evaluate_traces};
pub use output::OutputError;
