//! Help is complete wherever it is asked for.

use crate::harness::Sandbox;

const COMMANDS: [&str; 11] = [
    "train",
    "eval",
    "explain",
    "export",
    "sim",
    "trace",
    "infer",
    "credence",
    "policies",
    "scenarios",
    "bench",
];

#[test]
fn every_command_explains_itself_with_examples() {
    let sandbox = Sandbox::new();
    for command in COMMANDS {
        let help = sandbox.ok(&format!("{command} --help"));
        assert!(help.stdout.contains("Examples:"), "{command}");
        for option in ["--seed", "--quiet", "--json"] {
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
fn the_version_is_the_packages() {
    let version = Sandbox::new().ok("--version").stdout;
    assert_eq!(
        version.trim(),
        concat!("bufgym ", env!("CARGO_PKG_VERSION"))
    );
}
