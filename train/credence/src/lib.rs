//! The oracle of the buffer policy Credence (Addanki, Pacut and Schmid, NSDI 2024, §3.4 and §4):
//! the losses of Longest Queue Drop in simulations, a random forest that predicts them, and its
//! quality.
//!
//! - [`mod@record`] simulates and labels arrivals.
//! - [`mod@train`] grows the trees.
//! - [`threshold`] chooses the share of lost arrivals from which on a loss is predicted.
//! - [`score`] evaluates the predictions on other traces.
//! - [`sweep`] varies the number of trees (Fig. 15) and the share of false predictions (Fig. 10).

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "tests convert the small numbers that they make"
    )
)]

pub mod record;
pub mod score;
pub mod sweep;
pub mod threshold;
pub mod train;

pub use record::{Arrival, Data, arrivals_memory, record, record_network};
pub use score::Scores;
pub use threshold::best_threshold;
pub use train::{Settings, TrainError, train};

/// The README's examples, which are tested with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
