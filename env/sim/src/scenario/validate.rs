//! Checks that the settings of a scenario make sense together.

use std::fmt::Display;

use bufgym_util::input::excerpt;

use super::{RangeU32, Scenario, ScenarioError};

/// Most records of switches that a packet can carry.
pub(crate) const MAX_RECORDS: usize = 8;

/// Largest value of a setting in microseconds: 100 s. Sums of a few such delays are far below the
/// 213 days that an `Instant` can hold.
pub(super) const MAX_US: u64 = 100_000_000;

/// Bytes of the largest packet on the wire: packets count them in 16 bits.
pub(super) const MAX_WIRE_BYTES: u64 = 65_535;

/// Checks of single values, with error messages that name the scenario.
pub(super) struct Checks<'a>(&'a Scenario);

impl Checks<'_> {
    pub(super) fn invalid<T>(
        &self,
        field: &'static str,
        value: impl Display,
        problem: impl Into<String>,
    ) -> Result<T, ScenarioError> {
        Err(ScenarioError::Invalid {
            scenario: self.0.name.clone(),
            field,
            value: value.to_string(),
            problem: problem.into(),
        })
    }

    pub(super) fn within(
        &self,
        field: &'static str,
        value: u64,
        min: u64,
        max: u64,
    ) -> Result<(), ScenarioError> {
        if (min..=max).contains(&value) {
            Ok(())
        } else {
            self.invalid(field, value, format!("must be from {min} to {max}"))
        }
    }

    pub(super) fn range_within(
        &self,
        field: &'static str,
        range: RangeU32,
        max: u32,
        max_is: &str,
    ) -> Result<(), ScenarioError> {
        if range.is_empty() {
            return self.invalid(
                field,
                range,
                format!(
                    "the range is empty; the smaller number comes first, as in {}..{}",
                    range.max, range.min
                ),
            );
        }
        if range.min == 0 || range.max > max {
            return self.invalid(field, range, format!("must lie within 1..{max}{max_is}"));
        }
        Ok(())
    }
}

impl Scenario {
    /// Checks that the settings make a scenario that can be simulated.
    ///
    /// # Errors
    /// [`ScenarioError::Invalid`] for the first invalid setting, with the reason and a valid
    /// alternative.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        let check = Checks(self);
        if self.name.trim().is_empty() || self.name.chars().any(char::is_control) {
            return check.invalid(
                "name",
                format!("\"{}\"", excerpt(&self.name)),
                "must be a non-empty text of one line",
            );
        }
        self.validate_network(&check)?;
        self.validate_packets(&check)?;
        self.queues.validate(&check)?;
        self.marking.validate(&check)?;
        self.rdma.validate(&check)?;
        self.validate_lossless(&check)?;
        self.host.validate(&check)?;
        self.validate_transport(&check)?;
        self.validate_rdma(&check)?;
        self.validate_traffic(&check)?;
        self.control.validate(&check)
    }
}
