//! `tune linear` writes a rule, and `linear:FILE` is a policy.

use std::fs;

use serde_json::Value;

use crate::harness::Sandbox;

const SMALL: &str = "--set ports=4 --set active_ports=2..4 --set flows=10..15 --set buffer_bytes=200000 --set incast_degree=2..3";
const SEARCH: &str = "tune linear --generations 2 --traces 4";
const QUICK: &str = "tune linear --generations 1 --traces 1";

/// Commands that read the rule `rule.json`.
const READERS: [&str; 2] = [
    "sim --policy linear:rule.json",
    "eval --policy linear:rule.json --traces 1",
];

fn without_times(text: &str) -> Value {
    let mut value: Value = serde_json::from_str(text).unwrap();
    for field in ["wall_s", "packets_per_s"] {
        value.as_object_mut().map(|map| map.remove(field));
    }
    value
}

#[test]
fn a_rule_over_early_drop_has_weights_for_it() {
    let sandbox = Sandbox::new();
    let search = format!("{SEARCH} --low-level dt+early --seed 2 {SMALL}");
    let found = sandbox
        .ok(&format!("{search} --out rule.json --json"))
        .json();
    let kept: Value = serde_json::from_str(&sandbox.read("rule.json")).unwrap();
    for output in ["weights", "early"] {
        assert_eq!(kept[output].as_object().unwrap().len(), 16);
        assert_eq!(kept[output], found["tuning"]["best"][output]);
    }
    let run = sandbox.ok(&format!("sim --policy linear:rule.json {SMALL} --json"));
    assert!(run.json()["decisions"].as_u64().unwrap() > 0);
}

#[test]
fn a_tuned_rule_is_a_policy_wherever_policies_are_taken() {
    let sandbox = Sandbox::new();
    let search = format!("{SEARCH} --low-level abm --seed 2 {SMALL}");
    let run = sandbox.ok(&format!("{search} --out rule.json --json"));
    let found = run.json();
    assert_eq!(found["stored"], "rule.json");
    assert_eq!(found["tuning"]["checked"].as_array().unwrap().len(), 2);
    assert_eq!(run.stderr.lines().count(), 2, "{}", run.stderr);
    assert!(run.stderr.contains("generation 2/2") && run.stderr.contains("on 4 traces"));

    let kept: Value = serde_json::from_str(&sandbox.read("rule.json")).unwrap();
    assert_eq!(kept["low_level"], "abm");
    assert_eq!(kept["seed"], 2);
    assert_eq!(kept["training"]["traces"], 4);
    assert_eq!(kept["weights"], found["tuning"]["best"]["weights"]);

    let simulated = sandbox
        .ok(&format!("sim --policy linear:rule.json {SMALL} --json"))
        .json();
    assert_eq!(simulated["policy"], "linear:rule.json");
    assert!(simulated["decisions"].as_u64().unwrap() > 0);
    let report = sandbox
        .ok(&format!(
            "eval --policy linear:rule.json --policy cs {SMALL} --traces 2 --out report --json"
        ))
        .json();
    assert_eq!(report["policies"][0]["policy"], "linear:rule.json");
    assert_eq!(report["policies"][0]["role"], "learned");
    let origin = report["policies"][0]["origin"].as_str().unwrap();
    assert!(
        origin.contains("over abm, seed 2") && origin.contains("4 training traces"),
        "{origin}"
    );

    sandbox.refused(
        &format!("{search} --out rule.json"),
        &["rule.json", "--force"],
    );
    sandbox.ok(&format!("{search} --out rule.json --force --quiet"));
    let again: Value = serde_json::from_str(&sandbox.read("rule.json")).unwrap();
    assert_eq!(again, kept);
}

#[test]
fn the_rule_of_a_scenario_is_found_again_for_its_settings_only() {
    let sandbox = Sandbox::new();
    let found = sandbox.ok(&format!("{QUICK} {SMALL} --json")).json();
    let file = found["stored"].as_str().unwrap();
    assert!(file.starts_with("checkpoints/linear-ndt-16x1g-"), "{file}");
    sandbox.refused(&format!("{QUICK} {SMALL}"), &[file, "--force"]);
    sandbox.ok(&format!("{QUICK} {SMALL} --force"));
    let elsewhere = sandbox.ok(&format!("{QUICK} {SMALL} --set load=0.6 --json"));
    assert_ne!(elsewhere.json()["stored"].as_str().unwrap(), file);
    let simulate = |policy: &str| {
        without_times(
            &sandbox
                .ok(&format!("sim --policy {policy} {SMALL} --json"))
                .stdout,
        )
    };
    assert_eq!(
        simulate("linear:tuned"),
        simulate(&format!("linear:{file}"))
    );
    sandbox.refused("sim --policy linear:tuned", &["bufgym tune linear"]);
    let other = sandbox
        .ok(&format!("{QUICK} --objective loss {SMALL} --json"))
        .json();
    let loss = file.replace(".json", "-loss.json");
    assert_eq!(other["stored"].as_str().unwrap(), loss);
    fs::remove_file(sandbox.path(file)).unwrap();
    sandbox.refused(
        &format!("sim --policy linear:tuned {SMALL}"),
        &["bufgym tune linear", file],
    );
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_its_field() {
    let sandbox = Sandbox::new();
    let refused = |words: &[&str]| {
        for reader in READERS {
            sandbox.refused(reader, words);
        }
    };
    refused(&["rule.json", "No such file"]);
    sandbox.ok(&format!(
        "{SEARCH} --low-level dt {SMALL} --out rule.json --quiet"
    ));
    let good = sandbox.read("rule.json");
    let cases: [(&str, &str, &[&str]); 6] = [
        ("{", "", &["rule.json", "not valid JSON"]),
        (
            "\"version\": 1",
            "\"version\": 9",
            &["rule.json", "`version` is 9"],
        ),
        (
            "\"occupancy\"",
            "\"occupance\"",
            &["`weights.occupancy`", "missing"],
        ),
        (
            "\"constant\": ",
            "\"constant\": NaN",
            &["rule.json", "not valid JSON"],
        ),
        (
            "\"weights\": {",
            "\"weights\": { \"age\": 1,",
            &["`weights.age`", "queue_share"],
        ),
        (
            "\"low_level\": \"dt\"",
            "\"low_level\": \"cs\"",
            &["`low_level`", "edt"],
        ),
    ];
    for (from, to, words) in cases {
        assert!(good.contains(from), "{from}");
        sandbox.write("rule.json", &good.replacen(from, to, 1));
        refused(words);
    }
    sandbox.write(
        "rule.json",
        &good.replacen("\"low_level\": \"dt\"", "\"low_level\": \"edt:c1=1\"", 1),
    );
    sandbox.ok(&format!("sim --policy linear:rule.json {SMALL}"));
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.refused("tune linear --generations 0", &["--generations", "0"]);
    sandbox.refused("tune linear --low-level lqd", &["lqd", "occamy"]);
    sandbox.refused("tune --policy linear:rule.json", &["bufgym tune linear"]);
    fs::create_dir(sandbox.path("folder")).unwrap();
    sandbox.refused("tune linear --out folder", &["folder", "file"]);
    sandbox.refused("tune --policy dt --generations 3", &["--generations"]);
    sandbox.refused("tune --policy dt --low-level fab", &["--low-level"]);
    sandbox.refused("sim --policy linear:", &["bufgym tune linear"]);
    sandbox.refused("sim --policy linaer", &["linaer", "`linear`"]);
}
