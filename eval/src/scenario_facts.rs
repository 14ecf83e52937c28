//! The facts about a scenario that a reader of results needs.

use bufgym_sim::scenario::{Scenario, Traffic};
use serde::{Deserialize, Serialize};

use crate::format;
use crate::papers::fabric;

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
                fact("Minimum RTO", format::microseconds(scenario.min_rto_us)),
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
        scenario.ports,
        format::rate(scenario.rate_bps),
        format::bytes(scenario.buffer_bytes),
        scenario.propagation_ns as f64 / 1e3,
    )
}

fn transport(scenario: &Scenario) -> String {
    let window = match scenario.max_cwnd_bytes {
        0 => "not capped".to_string(),
        cap => format!("capped at {}", format::bytes(cap)),
    };
    format!(
        "{}, {} SACK, {} recovery, initial window {} segments, window {window}",
        scenario.transport,
        if scenario.sack { "with" } else { "without" },
        scenario.recovery,
        scenario.init_cwnd,
    )
}

fn hosts(scenario: &Scenario) -> String {
    let handshake = if scenario.handshake {
        "handshake"
    } else {
        "no handshake"
    };
    format!("{} queues, {handshake}", scenario.host_queue)
}

fn traffic(scenario: &Scenario) -> String {
    let load = scenario.load;
    let load = if load.is_single() {
        format::percent(Some(load.min))
    } else {
        let ends = [load.min, load.max].map(|end| format::percent(Some(end)));
        ends.join(" to ")
    };
    let shape = format!(
        "{} active ports, in-cast degree {}, {} flows per trace",
        scenario.active_ports, scenario.incast_degree, scenario.flows,
    );
    let queries = format!(
        "{} bytes from each host every {} µs on average",
        scenario.response_bytes, scenario.query_gap_us
    );
    let elephants = format!(
        "elephants of {} bytes, load {load} per port with elephants",
        scenario.elephant_bytes
    );
    match scenario.traffic {
        Traffic::Poisson => format!(
            "{}, load {load} per active port, {} arrivals, {shape}",
            scenario.workload, scenario.arrivals,
        ),
        Traffic::IncastElephants => {
            format!("in-cast to one port, {queries}; {elephants}; {shape}")
        }
        Traffic::BurstsOverElephants => {
            format!("bursts to every active port, {queries}; {elephants}; {shape}")
        }
    }
}
