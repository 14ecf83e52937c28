//! Stored results of searches, and the policies that they represent.

use std::path::Path;

use bufgym::eval::Entrant;
use bufgym::eval::entrant::LINEAR;
use bufgym::eval::metric::Metric;
use bufgym::eval::tune::Tuned;
use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::PolicySpec;
use bufgym::train::tune::Results;
use bufgym::util::input::excerpt;

use super::linear;
use crate::cli::error::{CliError, CliResult, ResultExt as _};

include!(concat!(env!("OUT_DIR"), "/tuned.rs"));

/// Suffix of a policy string that means the tuned parameters.
const TUNED: &str = ":tuned";

/// Returns the stored results: a folder with one file per scenario with all its settings, and those that were shipped
/// with the program.
pub fn results() -> Results<'static> {
    Results {
        folder: Path::new("checkpoints/tuned"),
        built_in: BUILT_IN,
    }
}

/// Returns the policy of a policy string `P:tuned` or `P+A:tuned`; `None` for other strings.
///
/// # Errors
/// Bad input: no such policy, or it was not tuned for this scenario.
pub fn tuned(text: &str, scenario: &Scenario) -> CliResult<Option<Entrant>> {
    let Some(name) = text.strip_suffix(TUNED) else {
        return Ok(None);
    };
    if name == LINEAR {
        return linear::tuned(scenario).map(Some);
    }
    let policy: PolicySpec = name.parse().or_bad_input()?;
    let names = policy.names();
    if name != names {
        return Err(CliError::bad(format!(
            "policy {}: tuned stands for all parameters; write {names}{TUNED}, or the parameters alone",
            excerpt(text),
        )));
    }
    let found = if_tuned(&names, scenario)?;
    found.map(Some).ok_or_else(|| {
        CliError::bad(format!(
            "policy {text} was not tuned for scenario {} with these settings; run `bufgym tune --policy {name}` with the same --scenario and --set first",
            scenario.name
        ))
    })
}

/// Returns the policy of these names with the parameters tuned for mean FCT in the scenario.
///
/// # Errors
/// Bad input: the file of tuned parameters is broken.
pub fn if_tuned(names: &str, scenario: &Scenario) -> CliResult<Option<Entrant>> {
    let spec = results().policy(Metric::MeanFct, names, scenario)?;
    Ok(spec.map(Entrant::tuned))
}

/// Returns everything that was tuned for mean FCT in the scenario, the best on validation traces first.
///
/// # Errors
/// Bad input: a file of tuned parameters is broken.
pub fn all_tuned(scenario: &Scenario) -> CliResult<Vec<(PolicySpec, Tuned)>> {
    Ok(results().all(scenario)?)
}
