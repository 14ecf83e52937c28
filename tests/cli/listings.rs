//! `policies` and `scenarios` print what other commands accept.

use crate::harness::Sandbox;

#[test]
fn every_listed_policy_is_described_and_accepted() {
    let sandbox = Sandbox::new();
    let listing = sandbox.ok("policies --json").json();
    let names: Vec<&str> = listing["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|policy| policy["name"].as_str().unwrap())
        .collect();
    for expected in ["cs", "st", "dt", "edt", "unlimited", "ndt", "linear"] {
        assert!(names.contains(&expected), "{names:?}");
    }
    for name in names {
        assert!(
            sandbox
                .ok(&format!("policies {name}"))
                .stdout
                .starts_with(name)
        );
        let one = sandbox.ok(&format!("policies {name} --json")).json();
        assert_eq!(one["policies"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn a_printed_scenario_is_read_back_as_the_same() {
    let sandbox = Sandbox::new();
    let listing = sandbox.ok("scenarios --json").json();
    for preset in listing["scenarios"].as_array().unwrap() {
        let name = preset["name"].as_str().unwrap();
        let toml = sandbox.ok(&format!("scenarios {name}")).stdout;
        sandbox.write("mine.toml", &toml);
        assert_eq!(sandbox.ok("scenarios mine.toml").stdout, toml);
        assert_eq!(
            sandbox.ok("scenarios mine.toml --json").json(),
            sandbox.ok(&format!("scenarios {name} --json")).json()
        );
    }
}
