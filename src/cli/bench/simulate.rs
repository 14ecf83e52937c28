//! Speed of the simulator, of every policy in it, and of the environments.

use std::time::Duration;

use bufgym::agents::RandomAgent;
use bufgym::env::control::{Controller as _, FEATURES, HISTORY, RunOptions, run_controlled};
use bufgym::env::gym::{
    AutoresetMode, BufferEnv, BufferEnvOptions, ResetOptions, TraceSequence, VectorEnv, VectorSeed,
};
use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::PolicySpec;
use bufgym::sim::switch::policy::catalogue;
use bufgym::sim::traffic::{self, Trace};
use bufgym::util::input::visible;
use bufgym::util::rng::{Split, trace_seed};
use serde_json::{Map, Value, json};

use super::{median, repeat};
use crate::cli::Common;
use crate::cli::error::{CliResult, ResultExt as _};

/// Policies to measure. `ndt` decides at random: its control loop is included, inference is not.
pub const POLICIES: [&str; 5] = ["st", "cs", "dt", "edt", "ndt"];

/// Number of traces of one pass, enough that the result does not depend on a single long one.
const TRACES: u64 = 8;

/// Rounds of the measurement; the result is their median. The policies take turns, so that other
/// load on the machine affects all of them.
const ROUNDS: u32 = 5;

/// The policy that the others are compared with: its decisions cost nothing.
const FREE: &str = "cs";

/// Flows for which ns-3's results are known: web search at half load and in-cast queries.
const MIXED_LIST: &str = include_str!("flows_mixed.csv");

/// The workload for measuring the simulator.
pub struct Load {
    /// Name in the output.
    pub name: &'static str,
    scenario: Scenario,
    traces: Vec<Trace>,
}

impl Load {
    /// Builds the mixed list with ns-3's settings, on which ns-3 itself was timed.
    pub fn mixed() -> CliResult<Load> {
        let mut scenario = Scenario::preset("ns3-16x1g").or_failure()?;
        scenario.set("min_rto_us=10000").or_failure()?;
        let list = Trace::from_reader(MIXED_LIST.as_bytes(), "flows_mixed.csv").or_failure()?;
        Ok(Load {
            name: "mixed list, 16 ports",
            scenario,
            traces: vec![list],
        })
    }

    /// Builds a load from generated traces of a scenario.
    pub fn generated(name: &'static str, scenario: &Scenario, seed: u64) -> Load {
        Load {
            name,
            scenario: scenario.clone(),
            traces: (0..TRACES)
                .map(|index| traffic::generate(scenario, trace_seed(Split::Train, seed, index)))
                .collect(),
        }
    }

    /// Returns the packets that left the switch, data and acknowledgements, per second of wall time on one
    /// thread.
    pub fn packets_per_second(&self, policy: &str, seed: u64, budget: Duration) -> CliResult<f64> {
        let mut next = self.traces.iter().cycle();
        let mut agent = RandomAgent::new(seed);
        let spec: Option<PolicySpec> = match policy {
            "ndt" => None,
            name => Some(name.parse().or_bad_input()?),
        };
        let (packets, seconds) = repeat(budget, || {
            let Some(trace) = next.next() else {
                return Ok(0);
            };
            let outcome = match &spec {
                Some(spec) => {
                    self.scenario.require_single()?;
                    // The loop itself is compiled with the simulator, and this crate with less optimisation.
                    spec.run(&self.scenario, trace)?
                }
                None => run_controlled(&self.scenario, trace, &mut agent, &RunOptions::default())?,
            };
            Ok::<_, bufgym::sim::network::SimError>(outcome.summary.packets_forwarded)
        })
        .or_failure()?;
        Ok(packets as f64 / seconds)
    }
}

/// Measures every policy that the scenario allows with its defaults, `budget` each.
pub fn policies(scenario: &Scenario, seed: u64, budget: Duration, common: &Common) -> CliResult {
    let load = Load::generated("policies", scenario, seed);
    let mut costs: Vec<(&str, Vec<f64>)> = Vec::new();
    for definition in catalogue() {
        let name = definition.info.name;
        // A policy that needs a model file has no default.
        match PolicySpec::named(name).build(scenario) {
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
        visible(&scenario.name)
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

/// Builds `envs` environments on different training traces, and resets them.
pub fn environments(
    scenario: &Scenario,
    envs: usize,
    seed: u64,
) -> CliResult<VectorEnv<BufferEnv>> {
    let traces = TraceSequence {
        split: Split::Train,
        seed,
        ..TraceSequence::default()
    };
    let envs: Result<Vec<BufferEnv>, _> = (0..envs as u64)
        .map(|worker| {
            BufferEnv::new(BufferEnvOptions {
                scenario: scenario.clone(),
                traces: traces.worker(worker, envs as u64),
                ..BufferEnvOptions::default()
            })
        })
        .collect();
    VectorEnv::new(envs.or_failure()?, AutoresetMode::SameStep).or_failure()
}

/// Returns the steps per second of all environments together, under random actions.
pub fn steps_per_second(
    scenario: &Scenario,
    envs: usize,
    seed: u64,
    budget: Duration,
) -> CliResult<f64> {
    let mut environments = environments(scenario, envs, seed)?;
    let mut buffers = environments.buffers();
    environments
        .reset(VectorSeed::Keep, &ResetOptions::default(), &mut buffers)
        .or_failure()?;
    let ports = scenario.port_count();
    let mut agent = RandomAgent::new(seed);
    let mut actions = vec![0.0; envs * ports];
    debug_assert_eq!(
        buffers.observations.len(),
        envs * ports * HISTORY * FEATURES
    );
    let (steps, seconds) = repeat(budget, || {
        agent.act(&[], envs * ports, &mut actions);
        environments
            .step(&actions, &mut buffers)
            .map(|()| envs as u64)
    })
    .or_failure()?;
    Ok(steps as f64 / seconds)
}
