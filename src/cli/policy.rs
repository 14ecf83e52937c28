//! Policy strings, and the weights that come with the program.

use std::path::Path;

use bufgym::env::scenario::Scenario;
use bufgym::eval::Contestant;
use bufgym::models::ActorWeights;
use bufgym::models::checkpoint::{self, Manifest};

use super::error::{CliError, CliResult, ResultExt as _};
use super::tune;

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// The policy string of the shipped weights.
pub const SHIPPED: &str = "ndt";

/// The policy that `text` names: a rule, a rule `:tuned` for the scenario, `ndt:DIR`, or `ndt` for
/// the shipped weights.
///
/// # Errors
/// Bad input: no such policy, or a checkpoint that cannot be used.
pub fn parse(text: &str, scenario: &Scenario) -> CliResult<Contestant> {
    if let Some(tuned) = tune::tuned(text, scenario)? {
        return Ok(tuned);
    }
    if text != SHIPPED {
        return text.parse().or_bad_input();
    }
    shipped()?.ok_or_else(|| {
        CliError::bad("policy ndt: this program was built without weights; give a checkpoint folder, as in ndt:DIR")
    })
}

/// The policy with the shipped weights, where the program has them.
///
/// # Errors
/// Failure: the files compiled in are damaged.
pub fn shipped() -> CliResult<Option<Contestant>> {
    let Some([manifest, weights]) = FILES else {
        return Ok(None);
    };
    let origin = Path::new("compiled into this program");
    let (weights, manifest) = checkpoint::decode_actor(manifest, weights, origin).or_failure()?;
    Ok(Some(Contestant::from_checkpoint(
        SHIPPED, &weights, &manifest,
    )))
}

/// Reads a checkpoint folder.
///
/// # Errors
/// Bad input: missing, damaged, or of another version.
pub fn load_checkpoint(folder: &Path) -> CliResult<(ActorWeights, Manifest)> {
    checkpoint::load_actor(folder).or_bad_input()
}
