//! Files for results of searches: one for every scenario with all its settings.

use std::fs;
use std::path::{Path, PathBuf};

use bufgym::models::files::sha256;
use bufgym::sim::scenario::Scenario;

use crate::cli::error::{CliError, CliResult};
use crate::cli::output::file_name;

/// Number of hexadecimal digits of the hash in a name.
const DIGITS: usize = 12;

/// Returns `NAME` for an unchanged preset; for other settings `NAME-HASH`, with the first 12 hexadecimal
/// digits of the SHA-256 of all settings.
pub fn key(scenario: &Scenario) -> String {
    let is_preset = Scenario::preset(&scenario.name).is_ok_and(|preset| preset == *scenario);
    match is_preset {
        true => file_name(&scenario.name),
        false => hashed(scenario),
    }
}

/// Returns `NAME-HASH`, also for a preset.
pub fn hashed(scenario: &Scenario) -> String {
    let hash = sha256(scenario.to_toml().as_bytes());
    format!("{}-{}", file_name(&scenario.name), &hash[..DIGITS])
}

/// Returns the files `PREFIX.json` and `PREFIX-HASH.json` in a folder, in this order. The hash only
/// distinguishes names: the content of a file says which scenario it is for.
///
/// # Errors
/// Bad input: the folder cannot be read.
pub fn candidates(folder: &Path, prefix: &str) -> CliResult<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CliError::bad(format!("{}: {error}", folder.display()))),
    };
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| is_candidate(path, prefix))
        .collect();
    found.sort_by_key(|path| path.as_os_str().len());
    Ok(found)
}

fn is_candidate(path: &Path, prefix: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.strip_suffix(".json").unwrap_or_default();
    let is_hash = |text: &str| text.len() == DIGITS && text.bytes().all(|b| b.is_ascii_hexdigit());
    match stem.strip_prefix(prefix) {
        Some("") => true,
        Some(rest) => rest.strip_prefix('-').is_some_and(is_hash),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_its_own_name() {
        let preset = Scenario::default();
        assert_eq!(key(&preset), "ndt-16x1g");
        let mut names = vec![key(&preset)];
        for setting in ["load=0.6", "buffer_bytes=200000", "min_rto_us=10000"] {
            let mut scenario = preset.clone();
            scenario.set(setting).unwrap();
            names.push(key(&scenario));
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 4);
        let names = names
            .iter()
            .map(|name| PathBuf::from(format!("{name}.json")));
        assert!(
            names
                .into_iter()
                .all(|path| is_candidate(&path, "ndt-16x1g"))
        );
    }

    #[test]
    fn other_files_are_not_read() {
        for name in [
            "ndt-16x1g-loss.json",
            "ndt-16x1g-0123456789ab.json.old",
            "ndt-16x1g-0123456789ab-loss.json",
            "ndt-16x1.json",
            ".ndt-16x1g.json.partial-7",
        ] {
            assert!(!is_candidate(Path::new(name), "ndt-16x1g"), "{name}");
        }
    }
}
