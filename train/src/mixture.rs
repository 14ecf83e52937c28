//! Several switches in one training, so that one policy serves all of them.

use bufgym_sim::scenario::{Scenario, ScenarioError};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// The name of the mixture that is built in.
pub const MIXED: &str = "mixed";

/// The switches of the mixture: presets with changed settings. They differ in ports (4 to 96), line rate (1 to 100
/// Gbit/s), buffer, minimum retransmission timeout, senders and load. Switches with many ports or fast links have fewer
/// flows, so that all take about the same time to simulate.
const CELLS: [(&str, &[&str]); 16] = [
    ("ndt-16x1g", &[]),
    ("ndt-16x1g", &["load=0.2..0.8"]),
    ("ndt-16x1g", &["buffer_bytes=256000"]),
    ("ndt-16x1g", &["buffer_bytes=4000000"]),
    ("ndt-16x1g", &["transport=cubic"]),
    ("ndt-16x1g", &["min_rto_us=10000"]),
    (
        "ndt-16x1g",
        &["transport=dctcp", "ecn_threshold_bytes=30000"],
    ),
    ("ndt-16x1g", &["workload=data_mining", "flows=100..300"]),
    (
        "ndt-16x1g",
        &[
            "ports=4",
            "buffer_bytes=250000",
            "active_ports=1..4",
            "incast_degree=1..3",
            "flows=100..300",
        ],
    ),
    ("ndt-4to2-incast", &[]),
    ("linux-16x1g", &[]),
    ("linux-16x25g", &["flows=100..500"]),
    ("dctcp-16x10g", &["flows=100..500"]),
    (
        "ndt-16x1g",
        &[
            "ports=32",
            "rate_bps=10000000000",
            "buffer_bytes=8000000",
            "propagation_ns=2000",
            "active_ports=1..32",
            "incast_degree=1..31",
            "flows=100..500",
        ],
    ),
    (
        "ndt-16x1g",
        &[
            "rate_bps=100000000000",
            "buffer_bytes=16000000",
            "propagation_ns=1000",
            "min_rto_us=20000",
            "flows=100..500",
        ],
    ),
    ("ndt-96x10g-incast", &["flows=100..300"]),
];

/// The scenarios of the mixture [`MIXED`].
///
/// # Errors
/// None while the presets are valid.
pub fn mixed() -> Result<Vec<Scenario>, ScenarioError> {
    let scenario = |&(preset, changes): &(&str, &[&str])| {
        let mut scenario = Scenario::preset(preset)?;
        scenario.set_all(changes)?;
        if !changes.is_empty() {
            scenario.name = format!("{preset}, {}", changes.join(" "));
        }
        scenario.validate()?;
        Ok(scenario)
    };
    CELLS.iter().map(scenario).collect()
}

/// A mixture by its name, or a list of names, files and tables.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Scenario>, D::Error> {
    match toml::Value::deserialize(deserializer)? {
        toml::Value::String(name) if name == MIXED => mixed().map_err(D::Error::custom),
        toml::Value::Array(list) => list.into_iter().map(read).collect(),
        other => Err(D::Error::custom(format!(
            "expected \"{MIXED}\" or a list of scenarios, found {other}"
        ))),
    }
}

/// A scenario by name or file, or a table of its settings.
pub(crate) fn read<E: serde::de::Error>(value: toml::Value) -> Result<Scenario, E> {
    match value {
        toml::Value::String(name) => Scenario::load(&name),
        toml::Value::Table(table) => Scenario::from_toml_str(&table.to_string(), "scenario"),
        other => {
            let kind = other.type_str();
            return Err(E::custom(format!(
                "expected a scenario's name or a table of its settings, found {kind}"
            )));
        }
    }
    .map_err(E::custom)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_mixture_spans_what_it_says() {
        let mixed = mixed().unwrap();
        let names: HashSet<&str> = mixed.iter().map(|scenario| &*scenario.name).collect();
        assert_eq!(names.len(), mixed.len());
        let span = |of: &dyn Fn(&Scenario) -> u64| {
            let values: Vec<u64> = mixed.iter().map(of).collect();
            (*values.iter().min().unwrap(), *values.iter().max().unwrap())
        };
        assert_eq!(span(&|s| u64::from(s.network.ports)), (4, 96));
        assert_eq!(
            span(&|s| s.network.rate_bps),
            (1_000_000_000, 100_000_000_000)
        );
        for scenario in &mixed {
            let text = scenario.to_toml();
            let again = Scenario::from_toml_str(&text, "mixed").unwrap();
            assert_eq!(&again, scenario, "a run folder stores it as text");
        }
    }
}
