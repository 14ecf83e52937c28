//! The offline optimum, exact.

mod search;
mod unit;

pub use search::MAX_STATES;

use super::{Arrivals, Kind, Outcome, SlottedError, Switch};

/// Returns the outcome of the best schedule that knows all arrivals, until every queue is empty or for
/// `end` slots.
///
/// For unit packets a greedy rule finds it, for any number of packets; the proof is in the source. For
/// packets with work or values it is found by a search over all schedules.
///
/// # Errors
/// [`SlottedError::OptimumTooLarge`] when the search has more than [`MAX_STATES`] states, and
/// [`SlottedError::OptimumTooCostly`] when they take too much memory or time.
pub fn optimum(
    switch: &Switch,
    arrivals: &Arrivals,
    end: Option<u64>,
) -> Result<Outcome, SlottedError> {
    match arrivals.kind() {
        Kind::Unit => Ok(unit::optimum(switch, arrivals.packets(), end)),
        kind => search::optimum(switch, arrivals.packets(), kind, end),
    }
}

/// Returns the optimum by the search for any kind of packets, to check the greedy rule.
///
/// # Errors
/// As for [`optimum`].
pub fn optimum_by_search(
    switch: &Switch,
    arrivals: &Arrivals,
    end: Option<u64>,
) -> Result<Outcome, SlottedError> {
    search::optimum(switch, arrivals.packets(), arrivals.kind(), end)
}
