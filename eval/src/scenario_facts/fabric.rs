//! The facts about a network that a reader of results needs.

use bufgym_sim::scenario::{Scenario, Tier};

use super::ScenarioFacts;
use crate::format;

/// Returns the facts of a network.
pub fn facts(scenario: &Scenario) -> ScenarioFacts {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    ScenarioFacts {
        name: scenario.name.clone(),
        switches: scenario.network.leaves + scenario.network.spines,
        facts: vec![
            fact("Network", network(scenario)),
            fact("Buffer", buffers(scenario)),
            fact("Transport", scenario.transport.kind.to_string()),
            fact("Traffic", traffic(scenario)),
            fact("Measured", measured(scenario)),
        ],
        toml: scenario.to_toml(),
    }
}

fn network(scenario: &Scenario) -> String {
    format!(
        "{} leaves of {} hosts, {} spines with {} links to each leaf, hosts at {}, {} µs propagation \
         per link",
        scenario.network.leaves,
        scenario.network.hosts_per_leaf,
        scenario.network.spines,
        scenario.network.links_per_pair,
        format::rate(scenario.network.rate_bps),
        scenario.network.propagation_ns as f64 / 1e3,
    )
}

fn buffers(scenario: &Scenario) -> String {
    let [leaf, spine] = [Tier::Leaf, Tier::Spine]
        .map(|tier| format::bytes(scenario.at_switch(tier).network.buffer_bytes));
    format!("{leaf} at a leaf, {spine} at a spine")
}

fn traffic(scenario: &Scenario) -> String {
    format!(
        "web search at {} of the uplinks; {} queries per second and host, {} of a leaf’s buffer each",
        format::percent(Some(scenario.traffic.load.mean())),
        scenario.demand.query_rate,
        format::percent(Some(scenario.demand.query_share)),
    )
}

fn measured(scenario: &Scenario) -> String {
    format!(
        "{} ms, then at most {} ms to finish",
        scenario.demand.measure_ms, scenario.demand.drain_ms
    )
}
