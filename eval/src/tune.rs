//! Files of tuned parameters, so that comparisons can use tuned baselines. The search itself is in
//! `bufgym_train::tune`.

mod store;

pub use store::{Fit, StoreError, Stored, Tuned};

/// Default number of traces for the choice among the best candidates of a search.
pub const TRACES: u64 = 64;
