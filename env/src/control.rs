//! NDT's two-level control: the trigger, the action set, the observation and the reward
//! (Wang et al., "Learning Buffer Management Policies for Shared Memory Switches").
//!
//! The fast level, [`ControlledThreshold`](bufgym_sim::switch::policy::ControlledThreshold), is
//! a policy like any other. The slow level is [`ControlEnv`]: it runs the simulator to the next
//! trigger, provides what a switch can measure, and sets the control factors.

mod actions;
mod codes;
mod driver;
mod ideal;
mod meter;
mod objective;
mod observation;
mod privileged;
mod record;
mod ways;

pub use actions::{ActionSet, LEVELS, MAX_OUTPUTS, Unfit, UnknownActionSet};
pub use bufgym_sim::switch::policy::ndt::{
    ALPHAS, INITIAL_INDEX, INITIAL_LEVEL, TriggerMode, action_index, action_level, cell_centre,
};
pub use bufgym_sim::switch::{LowLevelPolicy, UnknownBasePolicy};
pub use codes::{CodeHistory, CodeUnits, codes_header, encode, level_code, log_code, queue_code};
pub use driver::{
    ControlEnv, ControlOptions, Controlled, ControlledSwitch, Controller, ExternalControl,
    FixedAlpha, FlowTimes, IntervalReward, Reading, RewardBaseline, RunOptions, StopReason,
    run_controlled, run_observed, run_recorded,
};
pub use objective::{Objective, ObjectiveError};
pub use observation::{
    FEATURE_NAMES, FEATURES, HISTORY, INGRESS_FEATURE_NAMES, LOG_RANGE, Observation,
    ObservationScale,
};
pub use privileged::{PRIVILEGED, PRIVILEGED_NAMES};
pub use record::RecordError;
pub use ways::ControlTopology;
pub(crate) use ways::switch_id;

use bufgym_sim::switch::SwitchId;

/// The first switch; with a single one, the controlled switch.
const SWITCH: SwitchId = SwitchId(0);
