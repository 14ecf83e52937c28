//! The page about dependencies lists those of all `Cargo.toml` files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the folders of the crates, which the first list of the workspace's `Cargo.toml` names.
pub fn members() -> Vec<PathBuf> {
    let text = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = text
        .lines()
        .find_map(|line| line.strip_prefix("members = "));
    let members = members.expect("the workspace has members");
    let folders = members.split('"').skip(1).step_by(2);
    folders.map(|folder| root().join(folder)).collect()
}

/// Returns the names in all tables of dependencies of a `Cargo.toml`.
fn named(manifest: &str) -> BTreeSet<&str> {
    let mut inside = false;
    let mut names = BTreeSet::new();
    for line in manifest.lines() {
        if let Some(table) = line.strip_prefix('[') {
            inside = table.ends_with("dependencies]");
        } else if inside && let Some((key, _)) = line.split_once('=') {
            let name = key.trim().trim_end_matches(".workspace");
            if !line.starts_with('#') && !name.starts_with("bufgym") {
                names.insert(name);
            }
        }
    }
    names
}

/// Returns the names in code in the first column of the tables of a page.
fn listed(page: &str) -> Vec<&str> {
    let rows = page.lines().filter_map(|line| line.strip_prefix('|'));
    let names = rows.filter_map(|row| row.split('|').next());
    names
        .flat_map(|names| names.split('`').skip(1).step_by(2))
        .collect()
}

#[test]
fn the_page_lists_every_direct_dependency_once() {
    let texts: Vec<String> = members()
        .iter()
        .map(|folder| fs::read_to_string(folder.join("Cargo.toml")).unwrap())
        .collect();
    let expected: BTreeSet<&str> = texts.iter().flat_map(|text| named(text)).collect();
    assert!(expected.len() > 40, "{expected:?}");
    let page = fs::read_to_string(root().join("docs/dependencies.md")).unwrap();
    let rows = listed(&page);
    let unique: BTreeSet<&str> = rows.iter().copied().collect();
    assert_eq!(rows.len(), unique.len(), "a dependency is listed twice");
    assert_eq!(unique, expected);
}
