//! `eval`: every policy on the same traces, files as documented.

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
        let out = sandbox
            .command(&format!(
                "eval --policy edt {SMALL} --seed 5 --out report-{threads}"
            ))
            .env("RAYON_NUM_THREADS", threads)
            .output()
            .unwrap();
        assert!(out.status.success());
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
fn without_an_output_folder_nothing_is_written() {
    let sandbox = Sandbox::new();
    let run = sandbox.ok(&format!("eval --policy st {SMALL} --quiet"));
    assert!(run.stdout.contains("unlimited"));
    assert_eq!(run.stderr, "");
    assert!(sandbox.files().is_empty());
}
