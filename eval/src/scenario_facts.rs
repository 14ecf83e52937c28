//! The facts about a scenario that a reader of results needs.

mod fabric;

use bufgym_sim::scenario::{Scenario, Traffic};
use serde::{Deserialize, Serialize};

use crate::format;

/// The scenario of an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioFacts {
    /// Name of the preset or file.
    pub name: String,
    /// Number of switches.
    #[serde(default = "one")]
    pub switches: u32,
    /// The most important settings, each a name and a value with its unit.
    pub facts: Vec<(String, String)>,
    /// All settings, resolved, as TOML.
    pub toml: String,
}

impl ScenarioFacts {
    /// Returns the facts of a scenario.
    pub fn of(scenario: &Scenario) -> ScenarioFacts {
        if scenario.is_fabric() {
            return fabric::facts(scenario);
        }
        let fact = |name: &str, value: String| (name.to_string(), value);
        ScenarioFacts {
            name: scenario.name.clone(),
            switches: 1,
            facts: vec![
                fact("Switch", switch(scenario)),
                fact("Transport", transport(scenario)),
                fact("Minimum RTO", format::microseconds(scenario.tcp.min_rto_us)),
                fact("Hosts", hosts(scenario)),
                fact("Traffic", traffic(scenario)),
            ],
            toml: scenario.to_toml(),
        }
    }
}

fn one() -> u32 {
    1
}

fn switch(scenario: &Scenario) -> String {
    format!(
        "{} ports at {}, {} of shared buffer, {} µs propagation per link",
        scenario.network.ports,
        format::rate(scenario.network.rate_bps),
        format::bytes(scenario.network.buffer_bytes),
        scenario.network.propagation_ns as f64 / 1e3,
    )
}

fn transport(scenario: &Scenario) -> String {
    let window = match scenario.tcp.max_cwnd_bytes {
        0 => "not capped".to_string(),
        cap => format!("capped at {}", format::bytes(cap)),
    };
    format!(
        "{}, {} SACK, {} recovery, initial window {} segments, window {window}",
        scenario.transport.kind,
        if scenario.tcp.sack { "with" } else { "without" },
        scenario.tcp.recovery,
        scenario.tcp.init_cwnd,
    )
}

fn hosts(scenario: &Scenario) -> String {
    let handshake = if scenario.tcp.handshake {
        "handshake"
    } else {
        "no handshake"
    };
    format!("{} queues, {handshake}", scenario.host.queue)
}

fn traffic(scenario: &Scenario) -> String {
    let load = scenario.traffic.load;
    let load = if load.is_single() {
        format::percent(Some(load.min))
    } else {
        let ends = [load.min, load.max].map(|end| format::percent(Some(end)));
        ends.join(" to ")
    };
    let shape = format!(
        "{} active ports, in-cast degree {}, {} flows per trace",
        scenario.traffic.active_ports, scenario.traffic.incast_degree, scenario.traffic.flows,
    );
    let queries = format!(
        "{} bytes from each host every {} µs on average",
        scenario.traffic.response_bytes, scenario.traffic.query_gap_us
    );
    let elephants = format!(
        "elephants of {} bytes, load {load} per port with elephants",
        scenario.traffic.elephant_bytes
    );
    match scenario.traffic.kind {
        Traffic::Poisson => format!(
            "{}, load {load} per active port, {} arrivals, {shape}",
            scenario.traffic.workload, scenario.traffic.arrivals,
        ),
        Traffic::IncastElephants => {
            format!("in-cast to one port, {queries}; {elephants}; {shape}")
        }
        Traffic::BurstsOverElephants => {
            format!("bursts to every active port, {queries}; {elephants}; {shape}")
        }
    }
}
