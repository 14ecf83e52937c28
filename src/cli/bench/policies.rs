//! What every policy costs per packet.

use std::time::Duration;

use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::policy::catalogue;
use serde_json::{Map, Value, json};

use super::simulate::Load;
use crate::cli::Common;
use crate::cli::error::CliResult;

/// Rounds over which the median is taken; the policies take turns, so that what else the machine
/// does meets all of them.
const ROUNDS: u32 = 5;

/// The policy whose decision costs nothing.
const FREE: &str = "cs";

/// Measures every policy that the scenario allows with its defaults, `budget` each.
pub fn run(scenario: &Scenario, seed: u64, budget: Duration, common: &Common) -> CliResult {
    let load = Load::generated("policies", scenario, seed);
    let mut costs: Vec<(&str, Vec<f64>)> = Vec::new();
    for definition in catalogue() {
        let name = definition.info.name;
        // What needs a model has no default.
        match bufgym::sim::switch::PolicySpec::named(name).build(scenario) {
            Ok(_) => costs.push((name, Vec::new())),
            Err(problem) => common.note(format!("{name} is left out: {problem}")),
        }
    }
    for _ in 0..ROUNDS {
        for (name, rounds) in &mut costs {
            let rate = load.packets_per_second(name, seed, budget / ROUNDS)?;
            rounds.push(1e9 / rate);
        }
    }
    let medians: Vec<(&str, f64)> = costs
        .into_iter()
        .map(|(name, rounds)| (name, median(rounds)))
        .collect();
    let free = medians.iter().find(|(name, _)| *name == FREE);
    let free = free.map_or(0.0, |(_, ns)| *ns);
    let mut text = format!(
        "scenario {}: wall time per packet that the switch forwards, one thread\n\npolicy        ns/packet   more than {FREE}",
        scenario.name
    );
    let mut values = Map::new();
    for (name, ns) in medians {
        text.push_str(&format!("\n{name:<12}{ns:>11.1}{:>+15.1}", ns - free));
        values.insert(
            name.to_owned(),
            json!({ "ns_per_packet": ns, "more_than_cs": ns - free }),
        );
    }
    common.print(
        &json!({ "scenario": scenario.name, "policies": Value::Object(values) }),
        &text,
    )
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
