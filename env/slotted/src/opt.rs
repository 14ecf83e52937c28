//! The offline optimum, exact.

mod search;
mod unit;

pub use search::MAX_STATES;

use super::{Arrivals, Kind, Outcome, SlottedError, Switch};

/// What the best schedule transmits that knows all arrivals, until every queue is empty or for
/// `end` slots.
///
/// Unit packets of any number are solved by a greedy rule (with its proof in the source), packets
/// with work or values by a search over all schedules.
///
/// # Errors
/// [`SlottedError::OptimumTooLarge`] when the search has more than [`MAX_STATES`] states.
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

/// The optimum by the search alone, whatever the packets, to check the greedy rule against.
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
