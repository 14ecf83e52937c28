//! Files of tuned parameters, so that comparisons can be made with tuned baselines. The search itself is
//! in `bufgym_train::tune`.

mod store;

pub use store::{Fit, StoreError, Stored, Tuned};

/// Default number of the traces that choose among the best candidates of a search.
pub const TRACES: u64 = 64;
