//! The control loop of learned policies.

use super::ScenarioError;
use super::settings::settings;
use super::validate::{Checks, MAX_US};

settings! {
    /// When a controller decides, and where an episode ends.
    pub struct ControlSettings {
        decision_latency_us: u64 = 0, "from a trigger to its decision taking effect, us";
        max_interval_us: u64 = 0, "longest time between decisions, us; 0: off";
        /// A trigger that fires earlier is kept until then, as by a controller that polls.
        min_interval_us: u64 = 0, "shortest time between decisions, us; 0: off";
        max_decisions: u64 = 0, "an episode is truncated after so many decisions; 0: off";
        max_simulated_ms: u64 = 0, "an episode is truncated after so much time, ms; 0: off";
    }
}

impl ControlSettings {
    pub(super) fn validate(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        check.within("decision_latency_us", self.decision_latency_us, 0, MAX_US)?;
        check.within("max_interval_us", self.max_interval_us, 0, MAX_US)?;
        let longest = match self.max_interval_us {
            0 => MAX_US,
            longest => longest,
        };
        check.within("min_interval_us", self.min_interval_us, 0, longest)?;
        // 10^9 ms, eleven days: the largest start time of a flow.
        check.within("max_simulated_ms", self.max_simulated_ms, 0, 1_000_000_000)
    }
}
