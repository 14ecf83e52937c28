//! Modules of the simulator use each other in one direction only.

use std::fs;
use std::path::{Path, PathBuf};

/// Every module may use itself and those before it.
const ORDER: [&str; 9] = [
    "units",
    "scenario",
    "traffic",
    "engine",
    "switch",
    "transport",
    "host",
    "network",
    "capture",
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the sources are there");
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false => vec![path],
        })
        .collect()
}

/// Returns the places in `ORDER` of the modules that a line names.
fn used(line: &str) -> impl Iterator<Item = usize> + '_ {
    line.split("crate::").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        let name = &rest[..end.unwrap_or(rest.len())];
        ORDER.iter().position(|module| *module == name)
    })
}

#[test]
fn no_module_uses_one_above_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut checked = [0; ORDER.len()];
    for path in sources(&root) {
        let relative = path.strip_prefix(&root).expect("below the root");
        let first = relative.components().next().expect("a file");
        let name = first.as_os_str().to_string_lossy();
        let name = name.trim_end_matches(".rs");
        if name == "lib" {
            continue;
        }
        let place = ORDER.iter().position(|module| *module == name);
        let place = place.unwrap_or_else(|| panic!("module {name} has no place in the order"));
        checked[place] += 1;
        let text = fs::read_to_string(&path).expect("UTF-8");
        for (number, line) in text.lines().enumerate() {
            let above = used(line).find(|used| *used > place);
            let at = format!("{}:{}", relative.display(), number + 1);
            assert_eq!(above.map(|place| ORDER[place]), None, "{at}: {line}");
        }
    }
    assert!(checked.iter().all(|files| *files > 0), "{checked:?}");
}

#[test]
fn uses_are_found_in_a_line() {
    let line = "use crate::switch::{Policy, View}; // and crate::network";
    let found: Vec<&str> = used(line).map(|place| ORDER[place]).collect();
    assert_eq!(found, ["switch", "network"]);
}
