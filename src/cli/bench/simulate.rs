//! Speed of the simulator and of the environments.

use std::time::Duration;

use bufgym::agents::RandomAgent;
use bufgym::env::control::{Controller as _, FEATURES, HISTORY, RunOptions, run_controlled};
use bufgym::env::gym::{
    AutoresetMode, BufferEnv, BufferEnvOptions, ResetOptions, TraceSequence, VectorEnv, VectorSeed,
};
use bufgym::sim::rng::{Split, trace_seed};
use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::PolicySpec;
use bufgym::sim::traffic::{self, Trace};

use super::repeat;
use crate::cli::error::{CliResult, ResultExt as _};

/// What is measured; `ndt` decides at random, so that its control loop is included but no network.
pub const POLICIES: [&str; 5] = ["st", "cs", "dt", "edt", "ndt"];

/// Traces of one pass: enough that a long one does not decide the figure.
const TRACES: u64 = 8;

/// Flows for which ns-3's results are known: web search at half load and in-cast queries.
const MIXED_LIST: &str = include_str!("../../../env/sim/tests/suite/fidelity/data/flows_mixed.csv");

/// What the simulator is measured on.
pub struct Load {
    /// In the output.
    pub name: &'static str,
    scenario: Scenario,
    traces: Vec<Trace>,
}

impl Load {
    /// The mixed list with ns-3's settings, on which ns-3 itself was timed.
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

    /// Generated traces of a scenario.
    pub fn generated(name: &'static str, scenario: &Scenario, seed: u64) -> Load {
        Load {
            name,
            scenario: scenario.clone(),
            traces: (0..TRACES)
                .map(|index| traffic::generate(scenario, trace_seed(Split::Train, seed, index)))
                .collect(),
        }
    }

    /// Packets that left the switch, data and acknowledgements, per second of wall time on one
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
                Some(spec) => spec.simulator(&self.scenario, trace)?.run(),
                None => run_controlled(&self.scenario, trace, &mut agent, &RunOptions::default())?,
            };
            Ok::<_, bufgym::sim::network::SimError>(outcome.summary.packets_forwarded)
        })
        .or_failure()?;
        Ok(packets as f64 / seconds)
    }
}

/// `envs` environments on different training traces, reset.
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

/// Steps per second of all environments together, under random actions.
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
