//! The oracle of the buffer policy Credence (Addanki, Pacut and Schmid, NSDI 2024, §3.4 and §4):
//! what Longest Queue Drop lost in simulations, a random forest that learns it, and how good that
//! is.
//!
//! [`mod@record`] simulates and labels arrivals, [`mod@train`] grows the trees, [`threshold`] says from
//! which share of lost arrivals on a loss is predicted, [`score`] judges that on traces that were not
//! seen, and [`sweep`] repeats it over the number of trees (Fig. 15) and over the share of false
//! predictions (Fig. 10).

pub mod record;
pub mod score;
pub mod sweep;
pub mod threshold;
pub mod train;

pub use record::{Arrival, Data, record};
pub use score::Scores;
pub use threshold::best_threshold;
pub use train::{Settings, TrainError, train};
