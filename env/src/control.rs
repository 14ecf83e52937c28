//! NDT's two-level control: the trigger, the action set, the observation and the reward
//! (Wang et al., "Learning Buffer Management Policies for Shared Memory Switches").
//!
//! The fast level is [`NeuralDynamicThreshold`](crate::switch::policy::NeuralDynamicThreshold), a
//! policy like any other. The slow level is [`ControlEnv`]: it runs the simulator to the next
//! trigger, shows what a switch can see, and sets the control factors.

mod action;
mod codes;
mod driver;
mod ideal;
mod low_level;
mod meter;
mod objective;
mod observation;
mod privileged;
mod record;

pub use action::{ALPHAS, INITIAL_INDEX, action_index, cell_centre};
pub use codes::{CodeHistory, CodeUnits, codes_header, encode, level_code, log_code, queue_code};
pub use driver::{
    ControlEnv, ControlOptions, Controller, FixedAlpha, IntervalReward, Pause, RewardBaseline,
    RunOptions, run_controlled, run_recorded,
};
pub use low_level::{LowLevel, UnknownLowLevel};
pub(crate) use meter::{FlowMeter, PortTotals};
pub use objective::{Objective, ObjectiveError};
pub use observation::{FEATURE_NAMES, FEATURES, HISTORY, LOG_RANGE, Observation};
pub use privileged::{OCCUPANCY_FEATURE, PRIVILEGED, PRIVILEGED_NAMES, SENDER_FEATURES};
pub(crate) use record::EventLines;
pub use record::{RECORD_FORMAT, RecordError};

use serde::{Deserialize, Serialize};

/// When the control loop is asked for a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TriggerMode {
    /// When a port's arrivals exceed its departures by β, or its drops reach γ (paper, §IV-B).
    #[default]
    CumulativeEvent,
    /// At every packet event (paper, Fig. 12b).
    PerPacket,
    /// Only by `max_interval_us` of the scenario.
    FixedInterval,
}

impl TriggerMode {
    /// As files have it.
    pub fn name(self) -> &'static str {
        match self {
            TriggerMode::CumulativeEvent => "cumulative-event",
            TriggerMode::PerPacket => "per-packet",
            TriggerMode::FixedInterval => "fixed-interval",
        }
    }
}
