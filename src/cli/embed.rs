//! Parts of the command line for programs that embed it, such as the Python package: the whole command line,
//! and the names of policies and scenarios in its options.

use std::ffi::OsString;

use bufgym::eval::Entrant;
use bufgym::sim::scenario::Scenario;
use bufgym::train::remote::Cluster;

use super::error::CliResult;
use super::{policy, scenario};

/// Runs the command line with these arguments, the first of which is the program's name, and returns the
/// exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    super::run_with(arguments.into_iter().collect(), None)
}

/// Does the same as [`run`], but the hosts of a cluster run the simulations of `train`, `eval`, `tune` and
/// `figures`.
pub fn run_on(cluster: &Cluster, arguments: impl IntoIterator<Item = OsString>) -> u8 {
    super::run_with(arguments.into_iter().collect(), Some(cluster.clone()))
}

/// Returns the policies that `texts` name, each in the form of `--policy`.
///
/// # Errors
/// Returns the line that the command line prints.
pub fn policies(texts: &[String], scenario: &Scenario) -> Result<Vec<Entrant>, String> {
    line(policy::parse_all(texts, scenario))
}

/// Returns the scenario that `--scenario` and `--set` name.
///
/// # Errors
/// Returns the line that the command line prints.
pub fn scenario(name: &str, settings: &[String]) -> Result<Scenario, String> {
    line(scenario::load(name, settings))
}

/// Checks that `traces` traces of the scenario fit into memory, with `results` bytes of each.
///
/// # Errors
/// Returns the line that the command line prints.
pub fn check_memory(scenario: &Scenario, traces: u64, results: u64) -> Result<(), String> {
    line(scenario::check_memory(scenario, traces, results))
}

fn line<T>(result: CliResult<T>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}
