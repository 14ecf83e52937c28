//! The program's texts about itself are complete: help, listings, and the table in docs/policies.md.

use bufgym::sim::switch::policy::catalogue;

use crate::harness::Sandbox;

const COMMANDS: [&str; 14] = [
    "train",
    "eval",
    "headroom",
    "explain",
    "export",
    "figures",
    "runs",
    "sim",
    "trace",
    "infer",
    "credence",
    "list",
    "sonic-agent",
    "bench",
];

#[test]
fn every_command_explains_itself_with_examples() {
    let sandbox = Sandbox::new();
    for command in COMMANDS {
        let help = sandbox.ok(&format!("{command} --help"));
        assert!(help.stdout.contains("Examples:"), "{command}");
        for option in ["--seed", "--threads", "--quiet", "--json"] {
            assert!(help.stdout.contains(option), "{command} {option}");
        }
    }
    let help = sandbox.ok("--help").stdout;
    for command in COMMANDS {
        assert!(
            help.contains(&format!("\n  {command} ")),
            "{command} is not listed:\n{help}"
        );
    }
}

#[test]
fn former_commands_keep_working_with_a_note() {
    let sandbox = Sandbox::new();
    let now = sandbox.ok("list policies dt");
    assert_eq!(now.stderr, "");
    let former = sandbox.ok("policies dt");
    assert_eq!(former.stdout, now.stdout);
    let note = "`bufgym policies` is now `bufgym list policies`\n";
    assert_eq!(former.stderr, note);
    assert_eq!(sandbox.ok("policies dt --quiet").stderr, "");
    sandbox.refused("scenarios ndt", &["ndt"]);
}

#[test]
fn the_version_is_the_packages() {
    let version = Sandbox::new().ok("--version").stdout;
    assert_eq!(
        version.trim(),
        concat!("bufgym ", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn every_listed_policy_is_described_and_accepted() {
    let sandbox = Sandbox::new();
    let listing = sandbox.ok("list policies --json").json();
    let names: Vec<&str> = listing["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|policy| policy["name"].as_str().unwrap())
        .collect();
    for expected in [
        "cs",
        "st",
        "dt",
        "edt",
        "unlimited",
        "ndt",
        "linear",
        "onnx",
    ] {
        assert!(names.contains(&expected), "{names:?}");
    }
    for name in names {
        assert!(
            sandbox
                .ok(&format!("list policies {name}"))
                .stdout
                .starts_with(name)
        );
        let one = sandbox.ok(&format!("list policies {name} --json")).json();
        assert_eq!(one["policies"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn a_printed_scenario_is_read_back_as_the_same() {
    let sandbox = Sandbox::new();
    let listing = sandbox.ok("list scenarios --json").json();
    for preset in listing["scenarios"].as_array().unwrap() {
        let name = preset["name"].as_str().unwrap();
        let toml = sandbox.ok(&format!("list scenarios {name}")).stdout;
        sandbox.write("mine.toml", &toml);
        assert_eq!(sandbox.ok("list scenarios mine.toml").stdout, toml);
        assert_eq!(
            sandbox.ok("list scenarios mine.toml --json").json(),
            sandbox.ok(&format!("list scenarios {name} --json")).json()
        );
    }
}

#[test]
fn every_policy_and_parameter_is_in_the_table_of_policies() {
    let text = include_str!("../../docs/policies.md");
    for definition in catalogue() {
        let info = &definition.info;
        assert!(text.contains(&format!("`{}`", info.name)), "{}", info.name);
        for parameter in info.parameters {
            let row = format!("`{}`", parameter.name);
            assert!(text.contains(&row), "{}: {}", info.name, parameter.name);
        }
    }
}
