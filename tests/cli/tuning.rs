//! `tune` searches parameters, keeps them, and `P:tuned` uses them.

use crate::harness::{Run, Sandbox};

const SMALL: &str = "--set flows=40..60 --set buffer_bytes=200000";

/// The files of results.
fn results(sandbox: &Sandbox) -> Vec<String> {
    let mut files = sandbox.files();
    files.retain(|file| file.starts_with("checkpoints/tuned/") && file.ends_with(".json"));
    files
}

fn only_file(sandbox: &Sandbox) -> String {
    let mut files = results(sandbox);
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn a_tuned_policy_is_found_again_for_its_scenario_only() {
    let sandbox = Sandbox::new();
    let found = sandbox
        .ok(&format!("tune --policy dt --traces 3 {SMALL} --json"))
        .json();
    let best = found["tuning"]["best"]["policy"].as_str().unwrap();
    assert_eq!(found["stored"].as_str().unwrap(), only_file(&sandbox));

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
    let kept = sandbox.read(&only_file(&sandbox));
    assert!(kept.contains("\"dt\"") && kept.contains("\"st\""), "{kept}");
}

#[test]
fn other_settings_have_a_file_of_their_own() {
    let sandbox = Sandbox::new();
    let other = "--set flows=40..60 --set buffer_bytes=300000";
    for settings in [SMALL, other] {
        sandbox.ok(&format!("tune --policy dt --traces 1 {settings}"));
    }
    sandbox.ok("tune --policy st --traces 1");
    let files = results(&sandbox);
    assert_eq!(files.len(), 3, "{files:?}");
    assert!(files.contains(&"checkpoints/tuned/ndt-16x1g.json".to_owned()));
    for settings in [SMALL, other] {
        sandbox.ok(&format!("sim --policy dt:tuned {settings}"));
    }
}

#[test]
fn a_result_is_replaced_with_force_only() {
    let sandbox = Sandbox::new();
    let search = format!("tune --policy dt --traces 2 {SMALL}");
    sandbox.ok(&search);
    let file = only_file(&sandbox);
    let kept = sandbox.read(&file);
    let again = format!("{search} --seed 2");
    // In the lines on standard error a search would show: it is refused before.
    sandbox.refused(&again, &[&file, "dt:tuned", "--force"]);
    sandbox.refused(&search.replace("dt", "dt:alpha=2"), &[&file, "--force"]);
    assert_eq!(sandbox.read(&file), kept);
    sandbox.ok(&format!("{again} --force"));
    let replaced = sandbox.read(&file);
    assert!(replaced.contains("\"seed\": 2"), "{replaced}");
    assert_eq!(results(&sandbox), [file]);
}

#[test]
fn searches_at_the_same_time_are_all_kept() {
    let sandbox = Sandbox::new();
    let policies = ["dt", "st", "cs", "edt"];
    let search = |policy| sandbox.spawn(&format!("tune --policy {policy} --traces 2 {SMALL}"));
    let children: Vec<_> = policies.into_iter().map(search).collect();
    for child in children {
        let run = Run::from(child.wait_with_output().unwrap());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
    }
    let kept = sandbox.read(&only_file(&sandbox));
    for policy in policies {
        assert!(kept.contains(&format!("\"{policy}\"")), "{kept}");
    }
}

/// So were files named before the name had a hash.
#[test]
fn a_file_named_by_its_scenario_alone_is_read_and_added_to() {
    let sandbox = Sandbox::new();
    sandbox.ok(&format!("tune --policy dt --traces 1 {SMALL}"));
    let old = "checkpoints/tuned/ndt-16x1g.json";
    std::fs::rename(sandbox.path(&only_file(&sandbox)), sandbox.path(old)).unwrap();
    sandbox.ok(&format!("sim --policy dt:tuned {SMALL}"));
    sandbox.refused(&format!("tune --policy dt {SMALL}"), &[old, "--force"]);
    sandbox.ok(&format!("tune --policy st --traces 1 {SMALL}"));
    assert_eq!(results(&sandbox), [old]);
    // A scenario that has the name and not the settings goes elsewhere.
    sandbox.ok("tune --policy st --traces 1");
    assert_eq!(results(&sandbox).len(), 2);
    sandbox.ok(&format!("sim --policy dt:tuned {SMALL}"));
    sandbox.ok("sim --policy st:tuned");
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

#[test]
fn tuned_stands_for_all_parameters() {
    let sandbox = Sandbox::new();
    sandbox.refused(
        "sim --policy dt:alpha=2:tuned",
        &["dt:tuned", "all parameters"],
    );
}
