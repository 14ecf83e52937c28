//! Former ways to say a command. They keep working, with a note that names the present one.

use std::ffi::{OsStr, OsString};

/// A command with an option that has become a command below it: command, option, its value or nothing, command below.
const OPTIONS: [(&str, &str, &str, &str); 5] = [
    ("tune", "--all", "", "all"),
    ("tune", "--policy", "linear", "linear"),
    ("bench", "--policies", "", "policies"),
    ("bench", "--export", "", "export"),
    ("bench", "--fabric", "", "fabric"),
];

/// Commands that have moved below another one.
const MOVED: [(&str, &str); 4] = [
    ("policies", "list"),
    ("scenarios", "list"),
    ("curves", "runs"),
    ("choose", "runs"),
];

/// Options of every command that have a value.
const VALUED: [&str; 2] = ["--seed", "--threads"];

/// Returns arguments of a former version in their present form, and a note. The first argument is the program's name.
/// Other arguments are returned as they are.
pub fn present(mut arguments: Vec<OsString>) -> (Vec<OsString>, Option<String>) {
    let Some(place) = command(&arguments) else {
        return (arguments, None);
    };
    let name = arguments[place].to_string_lossy().into_owned();
    let note =
        |former: &str, present: &str| Some(format!("`bufgym {former}` is now `bufgym {present}`"));
    if let Some((_, above)) = MOVED.iter().find(|(moved, _)| *moved == name) {
        arguments.insert(place, above.into());
        return (arguments, note(&name, &format!("{above} {name}")));
    }
    let behind = arguments.get(place + 1).map(OsString::as_os_str);
    let help = ["-h", "--help"].map(OsStr::new);
    if !behind.is_some_and(|behind| starts_option(behind) && !help.contains(&behind)) {
        return (arguments, None);
    }
    if name == "testbed" {
        arguments.insert(place + 1, "run".into());
        return (arguments, note("testbed", "testbed run"));
    }
    for (of, option, value, below) in OPTIONS.iter().filter(|(of, ..)| *of == name) {
        let joined = format!("{option}={value}");
        let found = (place + 1..arguments.len()).find_map(|at| {
            let next = arguments.get(at + 1).is_some_and(|next| next == value);
            match &arguments[at] {
                argument if argument == option && value.is_empty() => Some(at..at + 1),
                argument if argument == option && next => Some(at..at + 2),
                argument if !value.is_empty() && *argument == *joined => Some(at..at + 1),
                _ => None,
            }
        });
        if let Some(found) = found {
            arguments.drain(found);
            arguments.insert(place + 1, below.into());
            let former = format!("{of} {option} {value}");
            return (arguments, note(former.trim(), &format!("{of} {below}")));
        }
    }
    (arguments, None)
}

/// Returns the place of the command: the first argument that is neither an option nor the value of one.
fn command(arguments: &[OsString]) -> Option<usize> {
    (1..arguments.len()).find(|&at| {
        !starts_option(&arguments[at])
            && (at == 1 || !VALUED.iter().any(|option| arguments[at - 1] == *option))
    })
}

fn starts_option(argument: &OsStr) -> bool {
    argument.as_encoded_bytes().starts_with(b"-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn former_commands_become_the_present_ones() {
        for (former, expected) in [
            ("policies red", "list policies red"),
            (
                "--seed 3 -q --threads 2 scenarios ndt-16x1g",
                "--seed 3 -q --threads 2 list scenarios ndt-16x1g",
            ),
            ("curves a b --out c.svg", "runs curves a b --out c.svg"),
            ("choose a b --out c", "runs choose a b --out c"),
            ("tune --best 3 --all --json", "tune all --best 3 --json"),
            ("tune --force --policy linear", "tune linear --force"),
            ("tune --policy=linear --seed 2", "tune linear --seed 2"),
            ("bench --seconds 1 --fabric", "bench fabric --seconds 1"),
            ("bench --export", "bench export"),
            ("bench --policies", "bench policies"),
            ("testbed --policy dt", "testbed run --policy dt"),
        ] {
            let split = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
            let (arguments, note) = present(split(&format!("bufgym {former}")));
            assert_eq!(arguments[1..], split(expected), "{former}");
            assert!(note.is_some(), "{former}");
        }
    }

    #[test]
    fn present_commands_stay_as_they_are() {
        for now in [
            "",
            "list policies",
            "runs curves a",
            "tune --policy dt",
            "tune --policy linear:rule.json",
            "tune --low-level linear",
            "bench",
            "bench fabric --policies",
            "testbed --help",
            "testbed compare --policy dt",
            "sim --policy policies",
            "--help",
        ] {
            let arguments: Vec<OsString> = format!("bufgym {now}")
                .split_whitespace()
                .map(OsString::from)
                .collect();
            assert_eq!(present(arguments.clone()), (arguments, None), "{now}");
        }
    }
}
