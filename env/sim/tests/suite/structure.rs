//! Modules of the simulator use each other in one direction only.

use std::collections::{BTreeMap, BTreeSet};
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

/// Returns the paths that a `use` declaration names: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn expanded(declaration: &str) -> Vec<String> {
    let Some((prefix, rest)) = declaration.split_once('{') else {
        return vec![declaration.to_owned()];
    };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (place, letter) in inner.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..place]);
                start = place + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let paths = parts.into_iter().filter(|part| !part.is_empty());
    paths
        .flat_map(|part| expanded(&format!("{prefix}{part}")))
        .collect()
}

/// Returns the paths within the crate that a module names in `use` declarations or behind `crate::`, from the root on.
fn uses(module: &str, text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    let code = lines
        .filter(|line| !line.starts_with("//"))
        .collect::<Vec<_>>()
        .join(" ");
    let declarations = code.split("use ").skip(1);
    let declarations = declarations.map(|rest| rest.split(';').next().unwrap_or_default());
    let mut found: Vec<String> = code
        .split("crate::")
        .skip(1)
        .map(|rest| {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
            rest[..end.unwrap_or(rest.len())].to_owned()
        })
        .collect();
    for path in declarations.flat_map(|text| expanded(&text.replace(' ', ""))) {
        let mut base: Vec<&str> = module.split("::").collect();
        let mut parts = path.split("::").peekable();
        match parts.peek() {
            Some(&"crate") => {
                base.clear();
                parts.next();
            }
            Some(&"super") => {
                while parts.next_if_eq(&"super").is_some() {
                    base.pop();
                }
            }
            _ => {}
        }
        found.push(base.into_iter().chain(parts).collect::<Vec<_>>().join("::"));
    }
    found
}

/// Returns the modules without their tests, and the paths that each names.
fn modules() -> BTreeMap<String, Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut modules = BTreeMap::new();
    for path in sources(&root) {
        let relative = path.strip_prefix(&root).expect("below the root");
        let name = relative.with_extension("");
        let name = name.to_str().expect("UTF-8").replace('/', "::");
        if name == "lib" || name.ends_with("tests") || name.contains("tests::") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("UTF-8");
        let code = text.split("#[cfg(test)]\nmod tests {").next();
        let used = uses(&name, code.unwrap_or_default());
        modules.insert(name, used);
    }
    modules
}

#[test]
fn no_module_uses_one_above_it() {
    let place = |path: &str| {
        let first = path.split("::").next().unwrap_or_default();
        ORDER.iter().position(|module| *module == first)
    };
    let mut checked = [0; ORDER.len()];
    for (module, used) in modules() {
        let own = place(&module);
        let own = own.unwrap_or_else(|| panic!("module {module} has no place in the order"));
        checked[own] += 1;
        let above = used.iter().find(|path| place(path) > Some(own));
        assert_eq!(above, None, "used by {module}");
    }
    assert!(checked.iter().all(|files| *files > 0), "{checked:?}");
}

#[test]
fn modules_of_a_folder_use_each_other_in_no_circle() {
    let modules = modules();
    let folders = modules.keys().filter_map(|module| module.rsplit_once("::"));
    let folders: BTreeSet<&str> = folders.map(|(folder, _)| folder).collect();
    assert!(folders.len() > 10, "{folders:?}");
    let mut found = Vec::new();
    for folder in folders {
        // The module of the folder to which a path belongs.
        let child = |path: &str| {
            let below = path.strip_prefix(folder)?.strip_prefix("::")?;
            let child = below.split("::").next()?;
            let child = format!("{folder}::{child}");
            modules.contains_key(&child).then_some(child)
        };
        let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (module, used) in &modules {
            let Some(own) = child(module) else { continue };
            let used = used.iter().filter_map(|path| child(path));
            let used = used.filter(|used| *used != own);
            arrows.entry(own.clone()).or_default().extend(used);
        }
        // Modules that use none of those that are left are taken away until there are no more.
        while let Some(lowest) = arrows
            .iter()
            .find(|(_, used)| used.iter().all(|used| !arrows.contains_key(used)))
            .map(|(module, _)| module.clone())
        {
            arrows.remove(&lowest);
        }
        if !arrows.is_empty() {
            found.push((folder, arrows));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn uses_are_found_and_expanded() {
    let text = "fn now() -> crate::units::Instant {}\nuse crate::switch::{\n    Policy,\n    policy::{View, dt},\n};\n// use crate::no;\nuse super::event;\n";
    let found = uses("engine::fifo", text);
    let expected = [
        "units::Instant",
        "switch::",
        "switch::Policy",
        "switch::policy::View",
        "switch::policy::dt",
        "engine::event",
    ];
    assert_eq!(found, expected);
}
