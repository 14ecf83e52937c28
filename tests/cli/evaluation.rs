//! `eval`: every policy on the same traces, with files as documented.

use crate::harness::Sandbox;

const SMALL: &str = "--traces 3 --set flows=100..120 --set active_ports=2..4";

#[test]
fn the_baseline_and_the_reference_always_take_part() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("c");
    let run = sandbox.ok(&format!(
        "eval --policy ndt:c --policy st {SMALL} --out report --json"
    ));
    let report = run.json();
    let names: Vec<&str> = report["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["policy"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["ndt:c", "st", "dt", "unlimited"]);
    assert_eq!(report["split"], "test");
    for file in ["report.html", "report.json", "per_trace.csv"] {
        assert!(sandbox.path(&format!("report/{file}")).exists(), "{file}");
    }
    let csv = sandbox.read("report/per_trace.csv");
    assert!(csv.starts_with(
        "policy,trace,seed,flows,mean_fct_ms,p50_fct_ms,p95_fct_ms,p99_fct_ms,mean_slowdown,\
         short_mean_fct_ms,short_p99_fct_ms,long_mean_fct_ms,drops,timeouts,p99_occupancy,decisions,ratio_to_dt,\
         incast_mean_fct_ms,incast_p99_fct_ms,\
         loss_per_delivered,goodput_bps,p99_queueing_delay_us,port_slowdown_variance,\
         arrivals,timeout_wait_ms,short_mean_slowdown,short_p99_slowdown,long_mean_slowdown,long_p99_slowdown,\
         incast_mean_slowdown,incast_p99_slowdown\n"
    ));
    assert_eq!(csv.lines().count(), 1 + 4 * 3);
    let html = sandbox.read("report/report.html");
    assert!(
        !html.contains("src=\"http") && !html.contains("href=\"http"),
        "loads something from elsewhere"
    );
}

#[test]
fn the_same_seed_gives_the_same_numbers_on_any_number_of_threads() {
    let sandbox = Sandbox::new();
    let run = |threads: &str| {
        sandbox.ok(&format!(
            "eval --policy edt {SMALL} --seed 5 --threads {threads} --out report-{threads}"
        ));
        sandbox.read(&format!("report-{threads}/per_trace.csv"))
    };
    assert_eq!(run("1"), run("3"));
}

#[test]
fn a_trace_of_the_evaluation_can_be_simulated_alone() {
    let sandbox = Sandbox::new();
    let report = sandbox
        .ok(&format!("eval --policy cs {SMALL} --seed 2 --json"))
        .json();
    let of_eval = report["results"]
        .as_array()
        .unwrap()
        .iter()
        .find(|result| result["policy"] == "cs" && result["trace"] == 1)
        .unwrap()
        .clone();
    let alone = sandbox
        .ok("sim --policy cs --split test --index 1 --seed 2 --set flows=100..120 --set active_ports=2..4 --json")
        .json();
    assert_eq!(alone["trace_seed"], of_eval["seed"]);
    assert_eq!(alone["mean_fct_ms"], of_eval["mean_fct_ms"]);
    assert_eq!(alone["drops"], of_eval["drops"]);
}

#[test]
fn a_policy_has_a_label() {
    let sandbox = Sandbox::new();
    let names = ["deep=dt:alpha=8", " two words = dt+red:max_p=0.07 ", "st"];
    let run = sandbox
        .command(&format!("eval {SMALL} --out report --quiet"))
        .args(names.iter().flat_map(|name| ["--policy", *name]))
        .output()
        .unwrap();
    let table = String::from_utf8(run.stdout).unwrap();
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    for line in ["deep = dt:alpha=8\n", "two words = dt+red:max_p=0.07\n"] {
        assert!(table.contains(line), "{table}");
    }
    let report: serde_json::Value =
        serde_json::from_str(&sandbox.read("report/report.json")).unwrap();
    let policies = report["policies"].as_array().unwrap();
    let labels: Vec<&str> = policies
        .iter()
        .map(|policy| policy["label"].as_str().unwrap())
        .collect();
    assert_eq!(labels, ["deep", "two words", "st", "dt", "unlimited"]);
    assert_eq!(policies[0]["policy"], "dt:alpha=8");
    let csv = sandbox.read("report/per_trace.csv");
    assert!(csv.contains("\ndt:alpha=8,") && !csv.contains("deep"));
    for file in ["report.html", "ratio-to-dt.svg"] {
        assert!(
            sandbox
                .read(&format!("report/{file}"))
                .contains("two words")
        );
    }
}

#[test]
fn a_label_that_cannot_be_used_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.refused("eval --policy =dt", &["'=dt'", "empty", "NAME=POLICY"]);
    let long = format!("eval --policy {}=dt", "x".repeat(41));
    sandbox.refused(&long, &["at most 40 characters"]);
    let twice = "eval --policy a=cs --policy a=st";
    sandbox.refused(twice, &["'a'", "cs", "st", "its own label"]);
    sandbox.refused("eval --policy dt=cs", &["'dt'", "its own label"]);
    sandbox.refused(
        "eval --policy a=cs --policy b=cs",
        &["'a'", "'b'", "one label"],
    );
    sandbox.refused("eval --policy a=", &["policy"]);
    sandbox.refused("sim --policy a=dt", &["a=dt"]);
}

#[test]
fn without_an_output_folder_nothing_is_written() {
    let sandbox = Sandbox::new();
    let run = sandbox.ok(&format!("eval --policy st {SMALL} --quiet"));
    assert!(run.stdout.contains("unlimited"));
    assert_eq!(run.stderr, "");
    assert!(sandbox.files().is_empty());
}
