//! Scenarios as TOML and as single `key=value` settings.

use std::fmt::Write as _;
use std::path::Path;

use bufgym_util::input;
use toml::de::{DeTable, DeValue};

use super::error::{ScenarioError, SettingProblem};
use super::settings::RawValue;
use super::{DEFAULT_PRESET, Scenario, SlowdownBase, TopologyKind};

/// The key that names the preset a file starts from.
const BASE: &str = "base";

impl Scenario {
    /// A scenario from a TOML file; see [`from_toml_str`](Scenario::from_toml_str).
    ///
    /// # Errors
    /// When the file cannot be read or is not a valid scenario.
    pub fn from_toml_file(path: &Path) -> Result<Scenario, ScenarioError> {
        let text = input::read_text(path, input::MAX_TOML).map_err(|source| ScenarioError::Io {
            path: path.to_owned(),
            source,
        })?;
        Scenario::from_toml_str(&text, &path.display().to_string())
    }

    /// A scenario from TOML; validated.
    ///
    /// `base = "NAME"` starts from a preset, else the default one; every other key overrides one
    /// setting. Without `name` the scenario is named after the file. `origin` is the file's name and
    /// appears in errors.
    ///
    /// # Errors
    /// Text that is not TOML, unknown keys (with the nearest), values of the wrong type, all with
    /// their line; and whatever [`validate`](Scenario::validate) refuses.
    pub fn from_toml_str(text: &str, origin: &str) -> Result<Scenario, ScenarioError> {
        let table = DeTable::parse(text).map_err(|error| ScenarioError::Syntax {
            origin: origin.to_owned(),
            line: line_of(text, error.span().map_or(0, |span| span.start)),
            message: error.message().trim().replace('\n', "; "),
        })?;
        let in_file = |offset: usize, problem: SettingProblem| ScenarioError::InFile {
            origin: origin.to_owned(),
            line: line_of(text, offset),
            problem,
        };

        let mut scenario = match table
            .get_ref()
            .iter()
            .find(|(key, _)| key.get_ref() == BASE)
        {
            None => Scenario::preset(DEFAULT_PRESET)?,
            Some((key, value)) => base_of(value.get_ref()).map_err(|message| {
                in_file(
                    key.span().start,
                    SettingProblem::Value {
                        key: BASE.to_owned(),
                        message,
                    },
                )
            })?,
        };
        if let Some(stem) = Path::new(origin).file_stem().and_then(|stem| stem.to_str()) {
            scenario.name = stem.to_owned();
        }
        // Uses the order of the file, so that the first mistake is reported first.
        let mut entries: Vec<_> = table.get_ref().iter().collect();
        entries.retain(|(key, _)| key.get_ref() != BASE);
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in &entries {
            scenario
                .apply(key.get_ref(), &written(value.get_ref()))
                .map_err(|problem| in_file(key.span().start, problem))?;
        }
        let given: Vec<&str> = entries
            .iter()
            .map(|(key, _)| key.get_ref().as_ref())
            .collect();
        scenario.settle(&given);
        scenario.validate()?;
        Ok(scenario)
    }

    /// Returns all settings as TOML, one a line with its meaning, readable by
    /// [`from_toml_str`](Scenario::from_toml_str).
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for (setting, toml) in Scenario::settings().iter().zip(self.values()) {
            let assignment = format!("{} = {toml}", setting.key);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{assignment:<36} # {}", setting.meaning);
        }
        text
    }

    /// Changes one setting, given as `key=value`: [`set_all`](Scenario::set_all) with it alone.
    ///
    /// # Errors
    /// As [`set_all`](Scenario::set_all).
    pub fn set(&mut self, assignment: &str) -> Result<(), ScenarioError> {
        self.set_all([assignment])
    }

    /// Changes settings, given as `key=value`. Their order does not matter, unless a key is given
    /// twice: then the last value counts.
    ///
    /// Settings that override each other, such as `buffer_bytes` and `buffer_bytes_per_port_gbps`, are
    /// resolved once all are read: one that is given replaces the other, if that is not given or is 0.
    /// If both are given and contradict each other, [`validate`](Scenario::validate) refuses them. Only
    /// the values themselves are checked here; call `validate` after the last change.
    ///
    /// # Errors
    /// No `=`, an unknown key (with the nearest), or a value of the wrong type. Nothing is changed then.
    pub fn set_all<A: AsRef<str>>(
        &mut self,
        assignments: impl IntoIterator<Item = A>,
    ) -> Result<(), ScenarioError> {
        let assignments: Vec<A> = assignments.into_iter().collect();
        let mut changed = self.clone();
        let mut given = Vec::with_capacity(assignments.len());
        for assignment in assignments.iter().map(AsRef::as_ref) {
            let in_setting = |problem| ScenarioError::InSetting {
                given: assignment.to_owned(),
                problem,
            };
            let (key, value) = assignment
                .split_once('=')
                .ok_or_else(|| in_setting(SettingProblem::NotAnAssignment))?;
            changed
                .apply(key.trim(), &RawValue::Bare(value.trim().to_owned()))
                .map_err(in_setting)?;
            given.push(key.trim());
        }
        changed.settle(&given);
        *self = changed;
        Ok(())
    }

    /// Adjusts the settings that follow from others or that others override, after the keys `given`
    /// have just been set. Settings that are given stay as they are.
    pub(super) fn settle(&mut self, given: &[&str]) {
        let is_given = |key| given.contains(&key);
        let is_size = ["leaves", "hosts_per_leaf", "topology"]
            .into_iter()
            .any(is_given);
        if self.network.topology == TopologyKind::LeafSpine && is_size && !is_given("ports") {
            self.network.ports = self
                .network
                .leaves
                .saturating_mul(self.network.hosts_per_leaf);
        }
        if let TopologyKind::Links(network) = &self.network.topology
            && is_given("topology")
        {
            let (rate, delay) = network.host_kind();
            (self.network.rate_bps, self.network.propagation_ns) = (rate.0, delay.as_ns());
            self.network.ports = u32::try_from(network.hosts()).unwrap_or(u32::MAX);
            if !is_given("slowdown_base") && self.traffic.slowdown_base != SlowdownBase::Paper {
                self.traffic.slowdown_base = SlowdownBase::Pipeline;
            }
        }
        match (
            is_given("buffer_bytes"),
            is_given("buffer_bytes_per_port_gbps"),
        ) {
            (true, false) => self.network.buffer_bytes_per_port_gbps = 0.0,
            (false, _) if self.network.topology != TopologyKind::Single => {
                self.network.buffer_bytes = self.leaf_buffer();
            }
            _ => {}
        }
        let bytes = is_given("ecn_threshold_bytes") && self.marking.threshold_bytes > 0;
        let packets = is_given("ecn_k_packets") && self.marking.threshold_packets > 0;
        match (bytes, packets) {
            (true, false) => self.marking.threshold_packets = 0,
            (false, true) => self.marking.threshold_bytes = 0,
            _ => {}
        }
    }
}

fn base_of(value: &DeValue<'_>) -> Result<Scenario, String> {
    match value {
        DeValue::String(name) => Scenario::preset(name).map_err(|error| error.to_string()),
        _ => Err("expected the name of a preset as a text".to_owned()),
    }
}

fn written(value: &DeValue<'_>) -> RawValue {
    match value {
        DeValue::String(text) => RawValue::Text(text.clone().into_owned()),
        DeValue::Integer(integer) => i128::from_str_radix(integer.as_str(), integer.radix())
            .map_or(RawValue::Other("a number too large"), RawValue::Integer),
        DeValue::Float(float) => float
            .as_str()
            .parse()
            .map_or(RawValue::Other("an unreadable number"), RawValue::Float),
        DeValue::Boolean(value) => RawValue::Bool(*value),
        DeValue::Datetime(_) => RawValue::Other("a date"),
        DeValue::Array(_) => RawValue::Other("a list"),
        DeValue::Table(_) => RawValue::Other("a table"),
    }
}

/// Returns the line, from 1, of a byte offset.
fn line_of(text: &str, offset: usize) -> usize {
    1 + text
        .as_bytes()
        .iter()
        .take(offset)
        .filter(|byte| **byte == b'\n')
        .count()
}
