//! Names of files for results of searches: one for every scenario with all its settings.

use std::path::{Path, PathBuf};
use std::{fs, io};

use bufgym_models::files::sha256;
use bufgym_sim::scenario::Scenario;
use bufgym_util::files::file_name;

/// Number of hexadecimal digits of the hash in a name.
const DIGITS: usize = 12;

/// Returns `NAME` for an unchanged preset; for other settings `NAME-HASH`, with the first 12 hexadecimal
/// digits of the SHA-256 of all settings.
pub fn key(scenario: &Scenario) -> String {
    match crate::is_preset(scenario) {
        true => file_name(&scenario.name),
        false => hashed(scenario),
    }
}

/// Returns `NAME-HASH`, also for a preset.
fn hashed(scenario: &Scenario) -> String {
    let hash = sha256(scenario.to_toml().as_bytes());
    format!("{}-{}", file_name(&scenario.name), &hash[..DIGITS])
}

/// Returns the path of a new file of the scenario in a folder: `PREFIXNAME.json`, or `PREFIXNAME-HASH.json` if the
/// former exists. Then it has other settings: earlier versions named files that way.
pub fn new_file(folder: &Path, prefix: &str, scenario: &Scenario) -> PathBuf {
    let file = |name: String| folder.join(format!("{prefix}{name}.json"));
    let usual = file(key(scenario));
    match usual.exists() {
        true => file(hashed(scenario)),
        false => usual,
    }
}

/// Returns the files `PREFIX.json` and `PREFIX-HASH.json` in a folder, in this order. The hash only
/// distinguishes names: the content of a file says which scenario it is for.
///
/// # Errors
/// Fails if the folder cannot be read. A folder that is missing has no files.
pub fn candidates(folder: &Path, prefix: &str) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
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
        for name in names {
            let path = format!("{name}.json");
            assert!(is_candidate(Path::new(&path), "ndt-16x1g"), "{path}");
        }
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
