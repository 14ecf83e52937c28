//! `headroom` estimates the possible gain: files as documented, the same on any number of threads, and no
//! test traces.

use crate::harness::Sandbox;

const SMALL: &str = "--traces 2 --planned 1 --jittered 2 --set flows=40..60 --set active_ports=4 \
    --set buffer_bytes=150000";

#[test]
fn what_could_be_won_is_told_and_written() {
    let sandbox = Sandbox::new();
    let run = sandbox.ok(&format!("headroom {SMALL} --out found --json"));
    let found = run.json();
    assert_eq!(found["format"], "bufgym-headroom");
    assert_eq!(found["split"], "validation");
    assert_eq!(found["traces"], 2);
    let rows: Vec<&str> = found["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["row"].as_str().unwrap())
        .collect();
    let expected = [
        "unlimited",
        "fair-senders",
        "shortest-first",
        "best-rule",
        "best-rule-of-trace",
        "search",
    ];
    assert_eq!(rows, expected);
    for file in ["headroom.md", "headroom.json", "per_trace.csv"] {
        assert!(sandbox.path(&format!("found/{file}")).exists(), "{file}");
    }
    let csv = sandbox.read("found/per_trace.csv");
    assert!(csv.starts_with("row,trace,seed,flows,policy,dt_mean_fct_ms,mean_fct_ms,ratio_to_dt,"));
    assert_eq!(csv.lines().count(), 1 + 2 * 6);
    let page = sandbox.read("found/headroom.md");
    assert!(page.contains(found["verdict"]["text"].as_str().unwrap()));

    // A simulation of the same trace alone gives the same numbers.
    let first = &found["per_trace"][0];
    assert_eq!(first["policy"], "unlimited");
    let alone = sandbox
        .ok("sim --policy unlimited --split validation --index 0 --set flows=40..60 --set active_ports=4 --set buffer_bytes=150000 --json")
        .json();
    assert_eq!(alone["trace_seed"], first["seed"]);
    assert_eq!(alone["mean_fct_ms"], first["mean_fct_ms"]);
}

#[test]
fn without_an_output_folder_a_table_and_a_verdict_are_printed() {
    let sandbox = Sandbox::new();
    let run = sandbox.ok(&format!("headroom {SMALL} --quiet"));
    for words in [
        "searched decisions",
        "picks chance",
        "The best single rule is",
    ] {
        assert!(run.stdout.contains(words), "{words}: {}", run.stdout);
    }
    assert_eq!(run.stderr, "");
    assert!(sandbox.files().is_empty());
}

#[test]
fn the_numbers_do_not_depend_on_the_number_of_threads() {
    let sandbox = Sandbox::new();
    let run = |threads: &str| {
        sandbox.ok(&format!(
            "headroom {SMALL} --set flows=20..30 --seed 5 --threads {threads} --out found-{threads}"
        ));
        sandbox.read(&format!("found-{threads}/headroom.json"))
    };
    assert_eq!(run("1"), run("3"));
}

#[test]
fn a_rule_of_ones_own_is_among_those_to_choose_from() {
    let sandbox = Sandbox::new();
    let own = "dt:alpha=5+random:p=0.01";
    let found = sandbox
        .ok(&format!("headroom {SMALL} --policy {own} --json"))
        .json();
    let rules = found["rules"].as_array().unwrap();
    assert!(rules.iter().any(|rule| rule["policy"] == own), "{rules:?}");
    let pushes = |rule: &serde_json::Value| rule["policy"].as_str().unwrap().starts_with("occamy");
    assert!(rules.len() > 20 && !rules.iter().any(pushes));
}

#[test]
fn bad_input_is_one_line() {
    let sandbox = Sandbox::new();
    sandbox.refused("headroom --scenario ndt-16x1", &["`ndt-16x1g`"]);
    sandbox.refused("headroom --set bufer_bytes=1", &["`buffer_bytes`"]);
    sandbox.refused("headroom --policy dtt", &["dtt", "`dt`"]);
    sandbox.refused("headroom --policy ndt", &["a rule is needed"]);
    sandbox.refused("headroom --step-ms 0", &["--step-ms", "0.001"]);
    sandbox.refused("headroom --horizon-ms nan", &["--horizon-ms"]);
    sandbox.refused(
        "headroom --step-ms 20 --horizon-ms 10",
        &["--horizon-ms", "20 ms"],
    );
    for option in ["--traces", "--planned", "--jittered", "--jitter-us"] {
        sandbox.refused(&format!("headroom {option} 0"), &[option, "0"]);
    }
    sandbox.refused(
        &format!("headroom {SMALL} --set max_simulated_ms=1"),
        &["max_simulated_ms"],
    );
    std::fs::create_dir(sandbox.path("kept")).unwrap();
    sandbox.write("kept/mine.txt", "");
    sandbox.refused("headroom --out kept", &["kept", "--force"]);
}
