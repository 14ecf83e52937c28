//! `tune` searches parameters, keeps them, and `P:tuned` uses them.

use crate::harness::Sandbox;

const SMALL: &str = "--set flows=40..60 --set buffer_bytes=200000";

#[test]
fn a_tuned_policy_is_found_again_for_its_scenario_only() {
    let sandbox = Sandbox::new();
    let found = sandbox
        .ok(&format!("tune --policy dt --traces 3 {SMALL} --json"))
        .json();
    let best = found["tuning"]["best"]["policy"].as_str().unwrap();
    assert_eq!(found["stored"], "checkpoints/tuned/ndt-16x1g.json");

    let run = |policy: &str, settings: &str| {
        sandbox.run(&format!("sim --policy {policy} {settings} --json"))
    };
    let strip = |text: String| {
        let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
        for field in ["wall_s", "packets_per_s"] {
            value["summary"]
                .as_object_mut()
                .map(|map| map.remove(field));
            value.as_object_mut().map(|map| map.remove(field));
        }
        value
    };
    let (tuned, spelled) = (run("dt:tuned", SMALL), run(best, SMALL));
    assert_eq!(strip(tuned.stdout), strip(spelled.stdout));

    let elsewhere = run("dt:tuned", "--set buffer_bytes=200000");
    assert_eq!(elsewhere.code, Some(2));
    assert!(
        elsewhere.stderr.contains("bufgym tune --policy dt"),
        "{}",
        elsewhere.stderr
    );
    let untuned = run("edt:tuned", SMALL);
    assert_eq!(untuned.code, Some(2));
}

#[test]
fn another_search_keeps_what_is_there() {
    let sandbox = Sandbox::new();
    for policy in ["dt", "st"] {
        sandbox.ok(&format!("tune --policy {policy} --traces 2 {SMALL}"));
    }
    let kept = sandbox.read("checkpoints/tuned/ndt-16x1g.json");
    assert!(kept.contains("\"dt\"") && kept.contains("\"st\""), "{kept}");
}

#[test]
fn results_for_other_objectives_are_not_kept() {
    let sandbox = Sandbox::new();
    for (objective, metric) in [
        ("loss", "lost per delivered"),
        ("throughput", "goodput"),
        ("delay", "queueing delay"),
        ("fairness", "port slowdowns"),
    ] {
        let found = sandbox
            .ok(&format!(
                "tune --policy dt --objective {objective} --traces 1 {SMALL} --json"
            ))
            .json();
        assert!(found["metric"].as_str().unwrap().contains(metric));
        assert!(found["stored"].is_null());
    }
    assert!(sandbox.files().is_empty());
    let wrong = sandbox.run("tune --policy dt --objective los");
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("loss"), "{}", wrong.stderr);
}

#[test]
fn a_file_that_is_not_ours_is_refused_and_left_alone() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path("checkpoints/tuned")).unwrap();
    sandbox.write("checkpoints/tuned/ndt-16x1g.json", "{}");
    for command in ["tune --policy dt --traces 1", "sim --policy dt:tuned"] {
        let run = sandbox.run(command);
        assert_eq!(run.code, Some(2), "{command}");
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        assert!(run.stderr.contains("ndt-16x1g.json"), "{}", run.stderr);
    }
    assert_eq!(sandbox.read("checkpoints/tuned/ndt-16x1g.json"), "{}");
}
