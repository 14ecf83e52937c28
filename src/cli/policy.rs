//! Policy strings, and the weights that come with the program.

use std::path::{Path, PathBuf};

#[cfg(feature = "onnx")]
use bufgym::eval::entrant::ONNX;
use bufgym::eval::entrant::{INTEGER, LINEAR};
use bufgym::eval::{Entrant, EntrantError, label};
use bufgym::models::checkpoint::{self, Manifest};
use bufgym::models::{ActorWeights, LinearFile};
use bufgym::sim::scenario::Scenario;

use super::error::{CliError, CliResult, ResultExt as _};
use super::tune;

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// The name of the compiled-in files in messages.
const ORIGIN: &str = "compiled into this program";

/// The file that makes a folder a checkpoint.
const MANIFEST: &str = "manifest.json";

/// The problem of a program without shipped weights.
const NO_WEIGHTS: &str = "this program was built without weights; give a checkpoint folder";

/// The policy string of the shipped weights.
pub const SHIPPED: &str = "ndt";

/// Returns the policy that `text` names: a rule, a rule `:tuned` for the scenario, `ndt:DIR`, `ndt-int8:DIR`,
/// `linear:FILE`, `onnx:FILE`, or `ndt`, `ndt-int8` and `linear` for the shipped weights.
///
/// # Errors
/// Bad input: no such policy, or a checkpoint or file that cannot be used, such as a network for another
/// number of ports.
pub fn parse(text: &str, scenario: &Scenario) -> CliResult<Entrant> {
    if let Some(tuned) = tune::tuned(text, scenario)? {
        return Ok(tuned);
    }
    let shipped = match text {
        SHIPPED => shipped()?,
        INTEGER => shipped_integer()?,
        LINEAR => shipped_linear()?,
        _ => {
            let entrant = read(text).or_bad_input()?;
            entrant.check(scenario).or_bad_input()?;
            return Ok(entrant);
        }
    };
    shipped.ok_or_else(|| match text {
        LINEAR => CliError::bad("policy linear: this program was built without a linear rule; run `bufgym tune linear` and give its file, as in linear:FILE"),
        _ => CliError::bad(format!("policy {text}: {NO_WEIGHTS}, as in {text}:DIR")),
    })
}

/// Returns the policy that `text` names by itself: a rule, or the files of a learned policy.
///
/// # Errors
/// Fails if there is no such policy, and if its files cannot be used.
pub fn read(text: &str) -> Result<Entrant, EntrantError> {
    #[cfg(feature = "onnx")]
    if text.split(':').next() == Some(ONNX) {
        return bufgym::onnx::entrant(text);
    }
    text.parse()
}

/// Returns the policies that `texts` name. `ndt:DIR` means all checkpoints in a folder that has no weights
/// itself, such as those of several seeds, in the order of their names.
///
/// # Errors
/// Returns the errors of [`parse`].
pub fn parse_all(texts: &[String], scenario: &Scenario) -> CliResult<Vec<Entrant>> {
    let mut entrants = Vec::new();
    for text in texts {
        let folders = text.strip_prefix("ndt:").map(Path::new);
        match folders.map(checkpoints_in).unwrap_or_default() {
            none if none.is_empty() => entrants.push(parse(text, scenario)?),
            several => {
                for folder in several {
                    entrants.push(parse(&format!("ndt:{}", folder.display()), scenario)?);
                }
            }
        }
    }
    Ok(entrants)
}

/// Does the same as [`parse_all`]; `NAME=POLICY` gives a policy a label. If a folder has several checkpoints,
/// the label of all but the first has a number.
///
/// # Errors
/// Returns the errors of [`parse`], and fails if a label cannot be used.
pub fn parse_labelled(texts: &[String], scenario: &Scenario) -> CliResult<Vec<Entrant>> {
    let mut entrants = Vec::new();
    for text in texts {
        let (label, policy) = label::split(text).or_bad_input()?;
        let found = parse_all(&[policy.to_owned()], scenario)?.into_iter();
        entrants.extend(found.zip(1..).map(|(entrant, number)| match label {
            Some(label) => entrant.labelled(&label::numbered(label, number)),
            None => entrant,
        }));
    }
    label::check(&entrants).or_bad_input()?;
    Ok(entrants)
}

/// Returns the folders in `folder` that contain a manifest, by name; none if it contains one itself.
fn checkpoints_in(folder: &Path) -> Vec<PathBuf> {
    let has_manifest = |folder: &Path| folder.join(MANIFEST).is_file();
    if has_manifest(folder) {
        return Vec::new();
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| has_manifest(path))
        .collect();
    found.sort();
    found
}

/// Returns the policy with the shipped weights, if the program has them.
///
/// # Errors
/// Failure: the compiled-in files are damaged.
pub fn shipped() -> CliResult<Option<Entrant>> {
    let actor = decoded(FILES)?;
    Ok(actor.map(|(weights, manifest)| Entrant::from_checkpoint(SHIPPED, &weights, &manifest)))
}

/// Returns the shipped weights rounded to integers, if the program has them.
fn shipped_integer() -> CliResult<Option<Entrant>> {
    let actor = decoded(FILES)?;
    actor
        .map(|(weights, manifest)| Entrant::rounded(INTEGER, weights, manifest).or_failure())
        .transpose()
}

/// Returns the shipped weights.
///
/// # Errors
/// Bad input: the program has none. Failure: the compiled-in ones are damaged.
pub fn shipped_weights() -> CliResult<(ActorWeights, Manifest)> {
    decoded(FILES)?.ok_or_else(|| CliError::bad(NO_WEIGHTS))
}

/// Returns the shipped weights that set α only, like the network of the NDT paper.
///
/// # Errors
/// Returns the errors of [`shipped_weights`].
pub fn shipped_alpha_weights() -> CliResult<(ActorWeights, Manifest)> {
    decoded(ALPHA_FILES)?.ok_or_else(|| CliError::bad(NO_WEIGHTS))
}

fn decoded(files: Option<[&[u8]; 2]>) -> CliResult<Option<(ActorWeights, Manifest)>> {
    let decode = |[manifest, weights]: [&[u8]; 2]| {
        checkpoint::decode_actor(manifest, weights, Path::new(ORIGIN)).or_failure()
    };
    files.map(decode).transpose()
}

/// Returns the shipped linear rule, if the program has one.
///
/// # Errors
/// Failure: the compiled-in file is damaged.
pub fn shipped_linear() -> CliResult<Option<Entrant>> {
    let Some(text) = LINEAR_FILE else {
        return Ok(None);
    };
    let file = LinearFile::parse(text, Path::new(ORIGIN)).or_failure()?;
    Ok(Some(Entrant::linear(LINEAR, &file)))
}

/// Reads a checkpoint folder.
///
/// # Errors
/// Bad input: missing, damaged, or of another version.
pub fn load_checkpoint(folder: &Path) -> CliResult<(ActorWeights, Manifest)> {
    checkpoint::load_actor(folder).or_bad_input()
}
