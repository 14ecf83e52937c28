//! Packets per second of the event loop, by policy, on one thread.
//!
//! `cargo run --release -p bufgym-env --example throughput -- [--list flows.csv] [--seconds 2]
//! [--policy dt] [preset] [setting=value ...]`

use std::time::{Duration, Instant};

use bufgym_env::control::{ControlEnv, ControlOptions, StopReason};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::{ListOptions, Trace, generate};
use bufgym_util::rng::{Split, trace_seed};

type Failure = Box<dyn std::error::Error>;

/// `ndt` decides at random: its control loop is included, but no network.
const POLICIES: [&str; 5] = ["st", "cs", "dt", "edt", "ndt"];

/// Traces of one pass where no list is given.
const TRACES: u64 = 8;

struct Options {
    scenario: Scenario,
    list: Option<String>,
    budget: Duration,
    policies: Vec<String>,
}

fn options() -> Result<Options, Failure> {
    let mut options = Options {
        scenario: Scenario::default(),
        list: None,
        budget: Duration::from_secs(2),
        policies: Vec::new(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--list" => options.list = Some(value()?),
            "--seconds" => options.budget = Duration::from_secs_f64(value()?.parse()?),
            "--policy" => options.policies.push(value()?),
            setting if setting.contains('=') => options.scenario.set(setting)?,
            preset => options.scenario = Scenario::preset(preset)?,
        }
    }
    if options.policies.is_empty() {
        options.policies = POLICIES.map(str::to_owned).to_vec();
    }
    Ok(options)
}

fn main() -> Result<(), Failure> {
    let options = options()?;
    let traces: Vec<Trace> = match &options.list {
        Some(path) => {
            let list = ListOptions {
                ports: options.scenario.network.ports,
                ..ListOptions::default()
            };
            vec![Trace::read_list(path, &list)?]
        }
        None => (0..TRACES)
            .map(|index| generate(&options.scenario, trace_seed(Split::Train, 1, index)))
            .collect(),
    };
    for policy in &options.policies {
        let (mut packets, mut wall) = (0, Duration::ZERO);
        for trace in traces.iter().cycle() {
            let (forwarded, time) = run(&options.scenario, policy, trace)?;
            packets += forwarded;
            wall += time;
            if wall >= options.budget {
                break;
            }
        }
        println!(
            "{policy} {:.3} M packets/s",
            packets as f64 / wall.as_secs_f64() * 1e-6
        );
    }
    Ok(())
}

/// Packets forwarded, and the wall time without the preparation of the run.
fn run(scenario: &Scenario, policy: &str, trace: &Trace) -> Result<(u64, Duration), Failure> {
    if policy != "ndt" {
        let spec: PolicySpec = policy.parse()?;
        let summary = spec.run(scenario, trace)?.summary;
        return Ok((
            summary.packets_forwarded,
            Duration::from_secs_f64(summary.wall_s),
        ));
    }
    let mut env = ControlEnv::new(scenario, trace, &ControlOptions::default())?;
    let mut action = vec![0.0; env.ports()];
    let mut state = 7u64;
    let started = Instant::now();
    while env.advance() == StopReason::Decision {
        for value in &mut action {
            // Knuth's MMIX generator.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *value = (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
        }
        env.act(&action);
    }
    let wall = started.elapsed();
    Ok((env.simulator().packets_forwarded(), wall))
}
