//! The options that choose a scenario, shared by several subcommands.

use std::path::PathBuf;

use bufgym::sim::network;
use bufgym::sim::scenario::{DEFAULT_PRESET, Scenario};
use bufgym::sim::traffic::{self, ListOptions, Trace};
use bufgym::util::memory::Estimate;
use bufgym::util::rng::{Split, trace_seed};
use clap::Args;

use super::error::{CliError, CliResult, ResultExt as _};

/// Which scenario, and what is changed in it.
#[derive(Args, Clone)]
pub struct ScenarioArgs {
    /// Preset or TOML file
    #[arg(long, value_name = "NAME|FILE.toml", default_value = DEFAULT_PRESET)]
    pub scenario: String,
    /// Change one setting of the scenario, for example `min_rto_us=10000`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl ScenarioArgs {
    /// Returns the validated scenario with its changes; it must have one switch.
    ///
    /// # Errors
    /// Bad input: an unknown name or setting, a value that makes no sense, a file that cannot be
    /// read, a network of several switches.
    pub fn resolve(&self) -> CliResult<Scenario> {
        let scenario = self.resolve_any()?;
        scenario.require_single().or_bad_input()?;
        Ok(scenario)
    }

    /// Does the same as [`resolve`](ScenarioArgs::resolve), but for any number of switches.
    ///
    /// # Errors
    /// Returns the errors of [`resolve`](ScenarioArgs::resolve), except that for a network.
    pub fn resolve_any(&self) -> CliResult<Scenario> {
        load(&self.scenario, &self.set)
    }
}

/// Returns the validated scenario `name` with changed settings.
///
/// # Errors
/// Returns the errors of [`ScenarioArgs::resolve`], except that for a network.
pub fn load(name: &str, changes: &[String]) -> CliResult<Scenario> {
    let mut scenario = Scenario::load(name).or_bad_input()?;
    change(&mut scenario, changes)?;
    Ok(scenario)
}

/// Changes settings, `key=value` each, and validates.
///
/// # Errors
/// Bad input: an unknown setting, or a value that makes no sense.
pub fn change(scenario: &mut Scenario, changes: &[String]) -> CliResult {
    scenario.set_all(changes).or_bad_input()?;
    scenario.validate().or_bad_input()
}

/// Checks that `traces` generated traces of the scenario fit into memory together, with `results` stored
/// bytes of each, and with the simulations that run at the same time.
///
/// # Errors
/// Bad input: the message has the estimate, its largest part, and a setting to lower.
pub fn check_memory(scenario: &Scenario, traces: u64, results: u64) -> CliResult {
    let parallel = traces.min(rayon::current_num_threads() as u64);
    let simulations = network::memory(scenario).saturating_mul(parallel);
    let estimate = Estimate::default()
        .with(
            "the flows of the traces",
            "the number of traces, or flows of the scenario",
            traffic::memory(scenario).saturating_mul(traces),
        )
        .with(
            "the simulations that run at a time",
            "flows of the scenario",
            simulations,
        )
        .with(
            "the results of the traces",
            "the number of traces",
            results.saturating_mul(traces),
        );
    estimate.check().or_bad_input()
}

/// A file of flows in the place of a generated trace.
#[derive(Args, Clone)]
pub struct FlowFile {
    /// Flows: id,src,dst,start_ns,size_bytes[,kind,query,priority], or a list of HPCC or htsim
    #[arg(long, value_name = "FLOWS.csv", conflicts_with_all = ["index", "split"])]
    trace: Option<PathBuf>,
    /// Number of the first host in the file, which becomes host 0
    #[arg(long, value_name = "N", default_value_t = 0, requires = "trace")]
    host_offset: u32,
}

/// Which generated trace of the scenario.
#[derive(Args, Clone)]
pub struct TraceChoice {
    /// Number of the trace within its split
    #[arg(
        long,
        value_name = "I",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    pub index: u64,
    /// Which traces: train, validation or test (`eval` uses test, and nothing else does)
    #[arg(long, default_value = "train")]
    pub split: String,
}

impl TraceChoice {
    /// Reads the flows of a file, or generates them if there is none.
    ///
    /// # Errors
    /// Bad input: a file that cannot be read or does not fit the scenario. Also returns the errors of
    /// [`generate`](TraceChoice::generate).
    pub fn read_or_generate(
        &self,
        file: &FlowFile,
        scenario: &Scenario,
        seed: u64,
    ) -> CliResult<Trace> {
        let Some(path) = &file.trace else {
            return self.generate(scenario, seed);
        };
        let options = ListOptions {
            format: None,
            ports: scenario.network.ports,
            host_offset: file.host_offset,
        };
        Trace::read_list(path, &options).or_bad_input()
    }

    /// Generates the trace of experiment `seed`.
    ///
    /// # Errors
    /// Bad input: an unknown split, or a trace that does not fit into memory.
    pub fn generate(&self, scenario: &Scenario, seed: u64) -> CliResult<Trace> {
        let split: Split = self.split.parse().map_err(CliError::input)?;
        check_memory(scenario, 1, 0)?;
        Ok(traffic::generate(
            scenario,
            trace_seed(split, seed, self.index),
        ))
    }
}
