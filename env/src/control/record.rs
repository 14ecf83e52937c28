//! A run as a dataplane would live it: every packet event and every decision, one line each, for a
//! replay that checks an implementation of the control. `docs/control-loop.md` has the format.

use std::fmt::Write as _;
use std::io;

use super::{CodeUnits, ControlOptions};
use bufgym_sim::network::SimError;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::policy::{AnyPolicy, FlowAwareConfig};
use bufgym_sim::units::Time;

/// First line of a record: the format and its version.
pub const RECORD_FORMAT: &str = "bufgym-control-record,1";

/// Why a run was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The run cannot be simulated.
    #[error(transparent)]
    Simulation(#[from] SimError),
    /// The record cannot be written.
    #[error("cannot write the record: {0}")]
    Write(#[from] io::Error),
}

/// What a dataplane needs to know, a `key,value` line each; `policy` is the policy string.
///
/// # Errors
/// When the heuristic does not fit the scenario.
pub(super) fn header(
    scenario: &Scenario,
    options: &ControlOptions,
    policy: &str,
) -> Result<String, SimError> {
    let units = CodeUnits::new(scenario);
    let mut text = format!("{RECORD_FORMAT}\n");
    let mut line = |key: &str, value: &str| {
        writeln!(text, "{key},{value}").expect("a String takes all text");
    };
    line("policy", &policy.replace(char::is_control, "?"));
    line("low_level", &options.low_level.to_string());
    if let AnyPolicy::FlowAwareBuffer(fab) = options.low_level.policy().build(scenario)? {
        let FlowAwareConfig {
            alpha_short,
            short_bytes,
            idle,
            ..
        } = fab.config();
        line("fab_alpha_short", &alpha_short.to_string());
        line("fab_short_bytes", &short_bytes.to_string());
        line("fab_idle_ps", &idle.as_ps().to_string());
    }
    line("trigger", options.trigger.name());
    let latency = Time::from_us(scenario.decision_latency_us);
    let max_interval = Time::from_us(scenario.max_interval_us);
    for (key, value) in [
        ("ports", u64::from(scenario.ports)),
        ("queues_per_port", u64::from(scenario.queues_per_port)),
        ("buffer_bytes", scenario.buffer_bytes),
        ("rate_bps", scenario.rate_bps),
        ("beta_bytes", units.beta),
        ("gamma_bytes", units.beta),
        ("count_in_service", u64::from(scenario.count_in_service)),
        ("decision_latency_ps", latency.as_ps()),
        ("max_interval_ps", max_interval.as_ps()),
    ] {
        line(key, &value.to_string());
    }
    text.push_str("begin\n");
    Ok(text)
}

#[cfg(test)]
mod tests;
