//! Modules use each other in one direction only, in every crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::dependencies::members;

/// Every module of the simulator may use itself and those before it.
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

/// Returns the paths within the crate that a module names in `use` declarations or behind `crate::` or `super::`,
/// from the root on.
fn uses(module: &str, text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    let code = lines
        .filter(|line| !line.starts_with("//"))
        .collect::<Vec<_>>()
        .join(" ");
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    let named = words.filter(|word| word.starts_with("crate::") || word.starts_with("super::"));
    let resolved = |path: String| {
        let mut base: Vec<&str> = module.split("::").collect();
        let mut parts = path.split("::").peekable();
        if parts.next_if_eq(&"crate").is_some() {
            base.clear();
        }
        while parts.next_if_eq(&"super").is_some() {
            base.pop();
        }
        let parts = parts.filter(|part| *part != "self");
        base.into_iter().chain(parts).collect::<Vec<_>>().join("::")
    };
    named
        .map(str::to_owned)
        .chain(declared(&code))
        .map(resolved)
        .collect()
}

/// Returns the `use` declarations in code, expanded.
fn declared(code: &str) -> impl Iterator<Item = String> {
    let declarations = code.split("use ").skip(1);
    let declarations = declarations.map(|rest| rest.split(';').next().unwrap_or_default());
    declarations.flat_map(|text| expanded(&text.split_whitespace().collect::<String>()))
}

/// Returns the modules of a crate without their tests, and the paths that each names. A name that the root of the
/// crate takes from a module stands for the path in that module.
fn modules(package: &Path) -> BTreeMap<String, Vec<String>> {
    let root = package.join("src");
    let mut modules = BTreeMap::new();
    let mut names = BTreeMap::new();
    for path in sources(&root) {
        let relative = path.strip_prefix(&root).expect("below the root");
        let name = relative.with_extension("");
        let name = name.to_str().expect("UTF-8").replace('/', "::");
        let text = fs::read_to_string(&path).expect("UTF-8");
        if name == "lib" {
            let paths = declared(&text);
            names.extend(
                paths.filter_map(|path| Some((path.rsplit_once("::")?.1.to_owned(), path))),
            );
        }
        let is_root = name == "lib" || name == "main";
        if is_root || name.ends_with("tests") || name.contains("tests::") {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests {").next();
        let used = uses(&name, code.unwrap_or_default());
        modules.insert(name, used);
    }
    for used in modules.values_mut().flatten() {
        let first = used.split("::").next().unwrap_or_default();
        if let Some(path) = names.get(first) {
            *used = format!("{path}{}", &used[first.len()..]);
        }
    }
    modules
}

/// Returns the modules of one folder that use each other in a circle, each with those that it uses.
fn circle(
    modules: &BTreeMap<String, Vec<String>>,
    folder: &str,
) -> BTreeMap<String, BTreeSet<String>> {
    // The module of the folder to which a path belongs.
    let child = |path: &str| {
        let below = path.strip_prefix(folder)?;
        let child = below.split("::").next()?;
        let child = format!("{folder}{child}");
        modules.contains_key(&child).then_some(child)
    };
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, used) in modules {
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
    arrows
}

#[test]
fn no_module_of_the_simulator_uses_one_above_it() {
    let place = |path: &str| {
        let first = path.split("::").next().unwrap_or_default();
        ORDER.iter().position(|module| *module == first)
    };
    let mut checked = [0; ORDER.len()];
    for (module, used) in modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("env/sim")) {
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
    let mut checked = 0;
    for package in members() {
        let modules = modules(&package);
        let below = modules.keys().filter_map(|module| module.rsplit_once("::"));
        let mut folders: BTreeSet<String> =
            below.map(|(folder, _)| format!("{folder}::")).collect();
        folders.insert(String::new());
        checked += folders.len();
        for folder in folders {
            let circle = circle(&modules, &folder);
            assert!(
                circle.is_empty(),
                "{}, folder {folder:?}: {circle:#?}",
                package.display()
            );
        }
    }
    assert!(checked > 60, "{checked} folders");
}

#[test]
fn a_circle_is_found() {
    let module = |name: &str, used: &[&str]| {
        let used = used.iter().map(|path| (*path).to_owned());
        (name.to_owned(), used.collect::<Vec<String>>())
    };
    let modules = BTreeMap::from([
        module("a", &["b::One"]),
        module("b", &["c"]),
        module("b::inner", &["a::Two"]),
        module("c", &[]),
    ]);
    let found: Vec<String> = circle(&modules, "").into_keys().collect();
    assert_eq!(found, ["a", "b"]);
    assert!(circle(&modules, "b::").is_empty());
}

#[test]
fn uses_are_found_and_expanded() {
    let text = "fn now() -> crate::units::Instant {}\nuse crate::switch::{\n    Policy,\n    policy::{self, dt},\n};\n// use crate::no;\nuse super::event;\nlet x = super::super::host::new();\n";
    let found: BTreeSet<String> = uses("engine::fifo", text).into_iter().collect();
    let expected = [
        "engine::event",
        "host::new",
        "switch::",
        "switch::Policy",
        "switch::policy",
        "switch::policy::dt",
        "units::Instant",
    ];
    assert_eq!(found, expected.map(str::to_owned).into());
}
