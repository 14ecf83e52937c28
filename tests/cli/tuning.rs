//! `tune` searches parameters and stores them, and `P:tuned` uses them.

use crate::harness::{Run, Sandbox};

const SMALL: &str = "--set flows=40..60 --set buffer_bytes=200000";

/// Option with the least number of simulations.
const LEAST: &str = "--simulations 100";

/// Returns the files of results.
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
        .ok(&format!("tune --policy dt {LEAST} {SMALL} --json"))
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
        sandbox.ok(&format!("tune --policy {policy} {LEAST} {SMALL}"));
    }
    let kept = sandbox.read(&only_file(&sandbox));
    assert!(kept.contains("\"dt\"") && kept.contains("\"st\""), "{kept}");
}

#[test]
fn other_settings_have_a_file_of_their_own() {
    let sandbox = Sandbox::new();
    let other = "--set flows=40..60 --set buffer_bytes=300000";
    for settings in [SMALL, other] {
        sandbox.ok(&format!("tune --policy dt {LEAST} {settings}"));
    }
    sandbox.ok("tune --policy st --simulations 100");
    let files = results(&sandbox);
    assert_eq!(files.len(), 3, "{files:?}");
    assert!(files.contains(&"checkpoints/tuned/ndt-16x1g.json".to_owned()));
    for settings in [SMALL, other] {
        sandbox.ok(&format!("sim --policy dt:tuned {settings}"));
    }
}

/// Searches in large networks use short runs.
#[test]
fn a_result_serves_runs_of_another_duration() {
    let sandbox = Sandbox::new();
    let network = "--scenario leafspine-4x4 --set buffer_bytes_per_port_gbps=2";
    sandbox.ok(&format!(
        "tune --policy dt+step {LEAST} {network} --set measure_ms=5"
    ));
    sandbox.ok(&format!(
        "sim --policy dt+step:tuned {network} --set measure_ms=6"
    ));
    let other = format!("sim --policy dt+step:tuned {network} --set measure_ms=6 --set load=0.5");
    sandbox.refused(&other, &["dt+step", "not tuned", "bufgym tune"]);
    // A search for this duration has its own place, and its result comes first.
    sandbox.ok(&format!(
        "tune --policy dt+step {LEAST} {network} --set measure_ms=6 --seed 9"
    ));
    assert_eq!(results(&sandbox).len(), 2);
}

#[test]
fn a_result_is_replaced_with_force_only() {
    let sandbox = Sandbox::new();
    let search = format!("tune --policy dt {LEAST} {SMALL}");
    sandbox.ok(&search);
    let file = only_file(&sandbox);
    let kept = sandbox.read(&file);
    let again = format!("{search} --seed 2");
    // A search would print lines on standard error; there are none, because it is refused before it starts.
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
    let search = |policy| sandbox.spawn(&format!("tune --policy {policy} {LEAST} {SMALL}"));
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

/// Earlier versions named files this way, without a hash.
#[test]
fn a_file_named_by_its_scenario_alone_is_read_and_added_to() {
    let sandbox = Sandbox::new();
    sandbox.ok(&format!("tune --policy dt {LEAST} {SMALL}"));
    let old = "checkpoints/tuned/ndt-16x1g.json";
    std::fs::rename(sandbox.path(&only_file(&sandbox)), sandbox.path(old)).unwrap();
    sandbox.ok(&format!("sim --policy dt:tuned {SMALL}"));
    sandbox.refused(&format!("tune --policy dt {SMALL}"), &[old, "--force"]);
    sandbox.ok(&format!("tune --policy st {LEAST} {SMALL}"));
    assert_eq!(results(&sandbox), [old]);
    // A scenario with the same name and other settings gets another file.
    sandbox.ok("tune --policy st --simulations 100");
    assert_eq!(results(&sandbox).len(), 2);
    sandbox.ok(&format!("sim --policy dt:tuned {SMALL}"));
    sandbox.ok("sim --policy st:tuned");
}

#[test]
fn results_for_other_objectives_are_kept_apart() {
    let sandbox = Sandbox::new();
    for (objective, metric) in [
        ("loss", "lost per delivered"),
        ("throughput", "goodput"),
        ("delay", "queueing delay"),
        ("fairness", "port slowdowns"),
    ] {
        let search = format!("tune --policy dt --objective {objective} {LEAST} {SMALL} --json");
        let found = sandbox.ok(&search).json();
        assert!(found["metric"].as_str().unwrap().contains(metric));
        let file = only_file(&sandbox);
        assert_eq!(found["stored"].as_str(), Some(file.as_str()));
        let kept: serde_json::Value = serde_json::from_str(&sandbox.read(&file)).unwrap();
        let policy = &kept["objectives"][objective]["dt"]["policy"];
        assert_eq!(policy, &found["tuning"]["best"]["policy"]);
        sandbox.refused(&search, &["dt", "--force"]);
    }
    // `dt:tuned` means the result for mean FCT.
    sandbox.refused(&format!("sim --policy dt:tuned {SMALL}"), &["not tuned"]);
    let wrong = sandbox.run("tune --policy dt --objective los");
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("loss"), "{}", wrong.stderr);
}

#[test]
fn queue_management_is_tuned_with_its_policy_and_found_again() {
    let sandbox = Sandbox::new();
    let search = format!("tune --policy dt+red {LEAST} {SMALL} --json");
    let found = sandbox.ok(&search).json();
    let tuning = &found["tuning"];
    let best = tuning["best"]["policy"].as_str().unwrap();
    assert!(best.starts_with("dt") && best.contains("+red"), "{best}");
    assert_eq!(tuning["start"]["policy"], "dt+red");
    assert!(tuning["simulations"].as_u64().unwrap() <= 100);
    assert!(found["learner_simulations"].as_u64().unwrap() > 1_000);
    let kept: serde_json::Value =
        serde_json::from_str(&sandbox.read(&only_file(&sandbox))).unwrap();
    let entry = &kept["policies"]["dt+red"];
    assert_eq!(entry["policy"], best);
    assert_eq!(entry["simulations"], tuning["simulations"]);
    assert_eq!(
        entry["edges"].as_array().map_or(0, Vec::len),
        tuning["edges"].as_array().unwrap().len()
    );
    let fct = |policy: &str| {
        let run = sandbox
            .ok(&format!("sim --policy {policy} {SMALL} --json"))
            .json();
        run["mean_fct_ms"]
            .as_f64()
            .or(run["summary"]["mean_fct_ms"].as_f64())
            .unwrap()
    };
    assert_eq!(fct("dt+red:tuned"), fct(best));
    sandbox.refused(
        &format!("sim --policy dt:tuned {SMALL}"),
        &["tune --policy dt"],
    );
    sandbox.refused(
        &format!("sim --policy dt+pie:tuned {SMALL}"),
        &["tune --policy dt+pie"],
    );
    sandbox.refused(
        &format!("sim --policy dt+red:max_p=0.1:tuned {SMALL}"),
        &["max_p"],
    );
}

/// Settings with four flows, so that every rule is searched in a moment.
const TINY: &str = "--set flows=4..4 --set ports=4 --set active_ports=1..2 --set incast_degree=1..2 --set workload=fb_hadoop --set buffer_bytes=20000";

#[test]
fn every_rule_is_tuned_and_an_interrupted_search_goes_on() {
    let sandbox = Sandbox::new();
    let all = format!("tune all {LEAST} {TINY} --json");
    let first = sandbox.ok(&all).json();
    let rows = first["policies"].as_array().unwrap();
    let names: Vec<&str> = rows
        .iter()
        .map(|row| row["names"].as_str().unwrap())
        .collect();
    for name in ["dt", "edt+random", "fab+red", "ib+codel", "occamy+pie"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(!names.contains(&"unlimited"), "{names:?}");
    // The discipline only marks, and these hosts do not use ECN.
    assert!(!names.contains(&"dt+step"), "{names:?}");
    let ratios = rows
        .iter()
        .filter_map(|row| row["tuned"]["ratio_to_dt"].as_f64());
    assert!(
        ratios.clone().is_sorted() && ratios.count() > 50,
        "{rows:?}"
    );
    for tuned in rows
        .iter()
        .map(|row| &row["tuned"])
        .filter(|tuned| tuned.is_object())
    {
        assert!(tuned["ratio_to_dt"].as_f64() <= tuned["start_ratio_to_dt"].as_f64());
        assert!(tuned["simulations"].as_u64().unwrap() <= 100);
    }

    // The file looks as if the search had ended before the last rules.
    let file = only_file(&sandbox);
    let whole = sandbox.read(&file);
    let mut cut: serde_json::Value = serde_json::from_str(&whole).unwrap();
    let policies = cut["policies"].as_object_mut().unwrap();
    for name in ["occamy", "occamy+red", "tdt+pie"] {
        assert!(policies.remove(name).is_some(), "{name}");
    }
    sandbox.write(&file, &cut.to_string());
    let again = sandbox.ok(&all).json();
    assert_eq!(sandbox.read(&file), whole);
    assert!(again["simulations"].as_u64().unwrap() <= 300);
    let rows = again["policies"].as_array().unwrap();
    assert_eq!(rows.iter().filter(|row| row["before"] == false).count(), 3);
    let table = sandbox.ok(&format!("tune all {LEAST} {TINY}")).stdout;
    assert!(
        table.contains("fab") && table.contains(" 0 simulations"),
        "{table}"
    );

    let other = format!("tune all --simulations 101 {TINY}");
    sandbox.refused(&other, &[&file, "dt", "--force"]);
    assert_eq!(sandbox.read(&file), whole);
}

#[test]
fn only_the_best_rules_get_all_simulations() {
    let sandbox = Sandbox::new();
    let ecn = "--set transport=dctcp --set ecn_threshold_bytes=9000";
    let all = format!("tune all --best 3 --simulations 800 {TINY} {ecn} --json");
    let first = sandbox.ok(&all).json();
    let policy = |names: &str| {
        let mut rows = first["policies"].as_array().unwrap().iter();
        let row = rows.find(|row| row["names"] == names).unwrap();
        row["tuned"]["policy"].as_str().unwrap().to_owned()
    };
    // Thresholds of marks are searched together with the parameters of every rule.
    for rule in ["dt", "fab", "abm"] {
        let marked = policy(&format!("{rule}+step"));
        assert!(marked.starts_with(rule), "{marked}");
    }
    let budgets = |value: &serde_json::Value| -> Vec<(u64, u64)> {
        let rows = value["policies"].as_array().unwrap().iter();
        let tuned = rows.filter(|row| row["tuned"].is_object());
        tuned
            .map(|row| {
                let number = |key: &str| row["tuned"][key].as_u64().unwrap();
                (number("budget"), number("simulations"))
            })
            .collect()
    };
    let found = budgets(&first);
    assert!(
        found[..3].iter().all(|(budget, _)| *budget == 800),
        "{found:?}"
    );
    assert!(found.iter().any(|(budget, _)| *budget == 100), "{found:?}");
    for (budget, spent) in found {
        assert!(spent <= budget && (budget == 100 || budget == 800 && spent > 400));
    }

    let file = only_file(&sandbox);
    let kept = sandbox.read(&file);
    let again = sandbox.ok(&all).json();
    assert_eq!(
        (again["simulations"].as_u64(), sandbox.read(&file)),
        (Some(0), kept)
    );
    sandbox.refused("tune --policy dt --best 3", &["--best"]);
}

#[test]
fn mistakes_in_a_search_are_named() {
    let sandbox = Sandbox::new();
    for (command, words) in [
        ("tune all --policy dt", ["unexpected", "--policy"]),
        ("tune", ["--policy", "required"]),
        (
            "tune --policy dt --simulations 99",
            ["--simulations", "100"],
        ),
        ("tune --policy dt --simulations -1", ["--simulations", "-1"]),
    ] {
        let run = sandbox.run(command);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{command}");
        for word in words {
            assert!(run.stderr.contains(word), "{command}: {}", run.stderr);
        }
    }
    sandbox.refused("tune --policy dt+rde", &["rde", "red"]);
    sandbox.refused("tune all --generations 3", &["--generations"]);
    sandbox.refused("tune linear --simulations 100", &["--simulations"]);
    sandbox.refused(
        "tune --policy dt+red:min_bytes=9,max_bytes=9",
        &["max_bytes=9", "above"],
    );
    assert!(sandbox.files().is_empty());
}

#[test]
fn a_file_that_is_not_ours_is_refused_and_left_alone() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path("checkpoints/tuned")).unwrap();
    sandbox.write("checkpoints/tuned/ndt-16x1g.json", "{}");
    for command in [
        "tune --policy dt --simulations 100",
        "sim --policy dt:tuned",
    ] {
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

#[test]
fn a_rule_is_tuned_for_a_network() {
    let sandbox = Sandbox::new();
    let network = "--scenario leafspine-4x4 --set warmup_ms=0 --set measure_ms=2 --set load=0.9 --set query_rate=300";
    let tune = format!("tune --policy dt+early --objective slowdown --simulations 100 {network}");
    let found = sandbox.ok(&format!("{tune} --json")).json();
    assert!(
        found["tuning"]["simulations"].as_u64().unwrap() <= 100,
        "{found}"
    );
    let best = found["tuning"]["best"]["policy"].as_str().unwrap();
    sandbox.ok(&format!("eval {network} --traces 1 --policy {best}"));
}
