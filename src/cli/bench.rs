//! `bufgym bench`: the speeds that matter, measured separately.

mod export;
mod fabric;
mod learn;
mod simulate;

use std::convert::Infallible;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::Common;
use super::error::{CliResult, LINE, ResultExt as _};
use super::scenario::{ScenarioArgs, check_memory};
use bufgym::models::DeviceChoice;
use bufgym::sim::scenario::Scenario;
use bufgym::util::input;
use simulate::Load;

/// Measure simulator, environments, learner and inference
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Figures depend on the machine and on what else runs on it.\n\nExamples:\n  \
    bufgym bench\n  \
    bufgym bench policies --seconds 10\n  \
    bufgym bench fabric --json\n  \
    bufgym bench export --checkpoint runs/mine/checkpoints/best\n  \
    bufgym bench --seconds 10 --json > bench.json"
)]
pub struct BenchArgs {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    time: TimeArgs,
    /// Where the learner computes, as in `bufgym train`; everything else is measured on the processor
    #[arg(long, value_name = "DEVICE", default_value_t)]
    device: DeviceChoice,
}

#[derive(Subcommand)]
enum Action {
    /// Measure what every policy costs per packet
    Policies {
        #[command(flatten)]
        scenario: ScenarioArgs,
        #[command(flatten)]
        time: TimeArgs,
    },
    /// Measure a decision in every exported form that this machine can build and run
    Export {
        /// Checkpoint whose export is measured [default: the shipped weights]
        #[arg(long, value_name = "DIR")]
        checkpoint: Option<PathBuf>,
        #[command(flatten)]
        time: TimeArgs,
    },
    /// Measure networks of several switches relative to a single one
    Fabric {
        #[command(flatten)]
        time: TimeArgs,
    },
}

#[derive(Args)]
struct TimeArgs {
    /// Time given to each measurement
    #[arg(long, value_name = "S", default_value_t = 3.0, allow_negative_numbers = true, value_parser = seconds)]
    seconds: f64,
}

impl TimeArgs {
    fn budget(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.01..=3600.0).contains(&value) {
        Ok(value)
    } else {
        Err("from 0.01 to 3600".to_owned())
    }
}

/// A second scenario for the simulator.
const LARGE: &str = "ndt-96x10g-incast";
/// Numbers of environments of the step measurement.
const ENVIRONMENTS: [usize; 2] = [1, 32];
/// Batch sizes of the update measurement.
const BATCHES: [usize; 2] = [64, 256];
/// Ports of the inference measurement: the default switch and the paper's largest.
const PORTS: [usize; 2] = [16, 96];

/// Runs the command.
pub fn run(args: BenchArgs, common: &Common) -> CliResult {
    let seed = common.seed();
    match args.action {
        Some(Action::Policies { scenario, time }) => {
            let scenario = resolve(&scenario)?;
            return simulate::policies(&scenario, seed, time.budget(), common);
        }
        Some(Action::Export { checkpoint, time }) => {
            return export::run(checkpoint.as_deref(), time.budget(), common);
        }
        Some(Action::Fabric { time }) => return fabric::run(seed, time.budget(), common),
        None => {}
    }
    let scenario = resolve(&args.scenario)?;
    let budget = args.time.budget();
    let device = args.device.open().or_bad_input()?;
    let threads = rayon::current_num_threads();
    let line = |label: String, figure: String| {
        let line = format!("{label:<44}{figure}");
        if common.json {
            common.note(line)
        } else {
            // The reader may close the pipe (`bufgym bench | head -3`); the measurement continues.
            let _ = writeln!(std::io::stdout(), "{}", input::line(&line, LINE));
        }
    };
    line(
        format!("scenario {}", scenario.name),
        format!("{threads} threads, {} s each", args.time.seconds),
    );
    if args.device != DeviceChoice::Cpu {
        line(format!("learner on {}", args.device), device.name.clone());
    }

    let measure = |load: Load| -> CliResult<Value> {
        let mut rates = Map::new();
        for policy in simulate::POLICIES {
            let rate = load.packets_per_second(policy, seed, budget)?;
            line(
                format!("simulator, {}, {policy}", load.name),
                format!("{:.2} M packets/s", rate / 1e6),
            );
            rates.insert(policy.to_owned(), json!(rate));
        }
        Ok(Value::Object(rates))
    };
    let large = Scenario::preset(LARGE).or_failure()?;
    let packets = measure(Load::generated("scenario", &scenario, seed))?;
    let mixed = measure(Load::mixed()?)?;
    let large = measure(Load::generated("96 ports", &large, seed))?;
    let mut steps = Map::new();
    for envs in ENVIRONMENTS {
        let rate = simulate::steps_per_second(&scenario, envs, seed, budget)?;
        line(
            format!("environment, {envs} in parallel, random actions"),
            format!("{rate:.0} steps/s"),
        );
        steps.insert(envs.to_string(), json!(rate));
    }
    let mut updates = Map::new();
    for batch in BATCHES {
        let rate = learn::updates_per_second(&scenario, batch, seed, budget, &device.device)?;
        line(
            format!(
                "SAC, batch {batch}, {} ports, {}",
                scenario.network.ports, args.device
            ),
            format!("{rate:.1} updates/s"),
        );
        updates.insert(batch.to_string(), json!(rate));
    }
    let mut inference = Map::new();
    for ports in PORTS {
        let us = learn::inference_us(ports, seed, budget);
        line(
            format!("inference, 1 observation of {ports} ports"),
            format!("{us:.2} us (median)"),
        );
        inference.insert(ports.to_string(), json!(us));
    }

    let value = json!({
        "scenario": scenario.name,
        "threads": threads,
        "device": device.name,
        "packets_per_s": packets,
        "packets_per_s_mixed_list": mixed,
        "packets_per_s_96_ports": large,
        "env_steps_per_s": Value::Object(steps),
        "sac_updates_per_s": Value::Object(updates),
        "inference_us": Value::Object(inference),
    });
    if common.json {
        common.print(&value, "")?;
    }
    Ok(())
}

fn resolve(scenario: &ScenarioArgs) -> CliResult<Scenario> {
    let scenario = scenario.resolve()?;
    check_memory(&scenario, ENVIRONMENTS[1] as u64, 0)?;
    Ok(scenario)
}

/// Repeats `work` until the time is over, at least once. Returns the sum of its counts and the
/// seconds taken.
fn repeat<E>(budget: Duration, mut work: impl FnMut() -> Result<u64, E>) -> Result<(u64, f64), E> {
    let started = Instant::now();
    let mut count = 0;
    loop {
        count += work()?;
        let elapsed = started.elapsed();
        if elapsed >= budget {
            return Ok((count, elapsed.as_secs_f64()));
        }
    }
}

/// Repeats `round`, which makes so many decisions, until the time is over. Returns the median of the nanoseconds per
/// decision.
fn rounds(budget: Duration, decisions: usize, mut round: impl FnMut()) -> f64 {
    let mut times = Vec::new();
    let Ok(_) = repeat(budget, || {
        let started = Instant::now();
        round();
        times.push(started.elapsed().as_secs_f64() * 1e9 / decisions as f64);
        Ok::<u64, Infallible>(1)
    });
    median(times)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
