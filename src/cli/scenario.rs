//! The options that choose a scenario, shared by several subcommands.

use bufgym::sim::rng::{Split, trace_seed};
use bufgym::sim::scenario::{DEFAULT_PRESET, Scenario};
use bufgym::sim::traffic::{self, Trace};
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
    /// The scenario with its changes, validated.
    ///
    /// # Errors
    /// Bad input: an unknown name or setting, a value that makes no sense, a file that cannot be
    /// read.
    pub fn resolve(&self) -> CliResult<Scenario> {
        load(&self.scenario, &self.set)
    }
}

/// The scenario `name` with settings changed, validated.
///
/// # Errors
/// As [`ScenarioArgs::resolve`].
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
    for assignment in changes {
        scenario.set(assignment).or_bad_input()?;
    }
    scenario.validate().or_bad_input()
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
    /// Generates the trace of experiment `seed`.
    ///
    /// # Errors
    /// Bad input: an unknown split.
    pub fn generate(&self, scenario: &Scenario, seed: u64) -> CliResult<Trace> {
        let split: Split = self.split.parse().map_err(CliError::input)?;
        Ok(traffic::generate(
            scenario,
            trace_seed(split, seed, self.index),
        ))
    }
}
