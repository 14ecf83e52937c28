//! `trace` and `sim`: files as documented, which are the same for the same seed.

use crate::harness::Sandbox;

const SMALL: &str = "--set flows=100..100 --set active_ports=4..4";

/// Removes the fields that depend on the machine.
fn reproducible(mut summary: serde_json::Value) -> serde_json::Value {
    let fields = summary.as_object_mut().unwrap();
    fields.remove("wall_s").unwrap();
    fields.remove("packets_per_s").unwrap();
    summary
}

#[test]
fn the_same_seed_gives_the_same_files() {
    let sandbox = Sandbox::new();
    for out in ["a", "b"] {
        sandbox.ok(&format!(
            "sim --policy dt --seed 3 {SMALL} --out {out} --timeline"
        ));
    }
    for file in ["fct.csv", "timeline.csv"] {
        assert_eq!(
            sandbox.read(&format!("a/{file}")),
            sandbox.read(&format!("b/{file}"))
        );
    }
    let summary = |out: &str| {
        reproducible(serde_json::from_str(&sandbox.read(&format!("{out}/summary.json"))).unwrap())
    };
    assert_eq!(summary("a"), summary("b"));
    sandbox.ok(&format!("sim --policy dt --seed 4 {SMALL} --out c"));
    assert_ne!(sandbox.read("a/fct.csv"), sandbox.read("c/fct.csv"));
    assert!(!sandbox.path("c/timeline.csv").exists());
}

#[test]
fn the_files_have_the_documented_fields() {
    let sandbox = Sandbox::new();
    let run = sandbox.ok(&format!(
        "sim --policy edt --seed 1 {SMALL} --out out --timeline --json"
    ));
    let header = |name: &str| sandbox.read(name).lines().next().unwrap().to_owned();
    assert_eq!(
        header("out/fct.csv"),
        "id,src,dst,start_ns,size_bytes,kind,query,finish_ns,fct_ns,slowdown,class,priority,base_ns"
    );
    assert_eq!(
        header("out/timeline.csv"),
        "t_ns,port,queue_bytes,threshold_bytes,occupancy_bytes,alpha,switch"
    );
    let summary: serde_json::Value =
        serde_json::from_str(&sandbox.read("out/summary.json")).unwrap();
    for field in [
        "flows",
        "completed",
        "mean_fct_ms",
        "p50_fct_ms",
        "p95_fct_ms",
        "p99_fct_ms",
        "mean_slowdown",
        "drops",
        "drops_data",
        "dropped_bytes",
        "marks",
        "timeouts",
        "packets_forwarded",
        "simulated_s",
        "wall_s",
        "packets_per_s",
        "max_occupancy_bytes",
        "decisions",
        "incast_mean_fct_ms",
        "incast_p99_fct_ms",
        "p99_queueing_delay_us",
        "loss_per_delivered",
        "goodput_bps",
    ] {
        assert!(summary.get(field).is_some(), "no {field}");
        assert_eq!(run.json()[field], summary[field], "{field}");
    }
    assert_eq!(summary["completed"], 100);
    assert_eq!(sandbox.read("out/fct.csv").lines().count(), 101);
    assert_eq!(
        sandbox.files(),
        [
            "out",
            "out/fct.csv",
            "out/summary.json",
            "out/switches.csv",
            "out/timeline.csv"
        ]
    );
}

#[test]
fn a_written_trace_simulates_like_the_generated_one() {
    let sandbox = Sandbox::new();
    sandbox.ok(&format!("trace --seed 5 --index 2 {SMALL} --out flows.csv"));
    sandbox.ok(&format!(
        "sim --policy st --seed 5 --index 2 {SMALL} --out generated"
    ));
    sandbox.ok("sim --policy st --trace flows.csv --out read");
    assert_eq!(
        sandbox.read("generated/fct.csv"),
        sandbox.read("read/fct.csv")
    );
}

#[test]
fn a_single_flow_has_a_slowdown_of_one() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "one.csv",
        "id,src,dst,start_ns,size_bytes\n7,0,1,0,100000\n",
    );
    let summary = sandbox
        .ok("sim --policy cs --trace one.csv --json --out out")
        .json();
    assert_eq!(summary["completed"], 1);
    assert_eq!(summary["mean_slowdown"], 1.0);
    assert_eq!(summary["drops"], 0);
    assert!(
        sandbox
            .read("out/fct.csv")
            .lines()
            .nth(1)
            .unwrap()
            .starts_with("7,0,1,0,100000,")
    );
}

#[test]
fn json_is_alone_on_stdout_and_quiet_is_quiet() {
    let sandbox = Sandbox::new();
    let run = sandbox.ok(&format!("sim --policy dt {SMALL} --json --quiet"));
    assert_eq!(run.stdout.lines().count(), 1);
    assert_eq!(run.json()["policy"], "dt");
    assert_eq!(run.stderr, "");
    let run = sandbox.ok(&format!("trace {SMALL} --out flows.csv --json --quiet"));
    assert_eq!(run.json()["flows"], 100);
    assert_eq!(run.stderr, "");
}

#[test]
fn force_replaces_own_files_and_keeps_others() {
    let sandbox = Sandbox::new();
    sandbox.ok(&format!("sim --policy dt {SMALL} --out out"));
    sandbox.write("out/notes.txt", "mine");
    let before = sandbox.read("out/fct.csv");
    sandbox.refused(
        &format!("sim --policy st {SMALL} --out out"),
        &["out", "not empty", "--force"],
    );
    sandbox.ok(&format!(
        "sim --policy dt --seed 9 {SMALL} --out out --force"
    ));
    assert_ne!(sandbox.read("out/fct.csv"), before);
    assert_eq!(sandbox.read("out/notes.txt"), "mine");
}

/// Every switch of a network appears in the timeline; the same command gives the same files.
#[test]
fn a_network_of_switches_is_a_scenario() {
    let sandbox = Sandbox::new();
    let small = "--scenario leafspine-4x4 --set links_per_pair=2 --set measure_ms=20";
    for out in ["a", "b"] {
        let run = sandbox.ok(&format!(
            "sim --policy abm --seed 3 {small} --out {out} --timeline --json"
        ));
        let summary = run.json();
        assert_eq!(summary["completed"], summary["flows"]);
        assert_eq!(summary["scenario"], "leafspine-4x4");
    }
    for file in ["fct.csv", "switches.csv", "timeline.csv"] {
        assert_eq!(
            sandbox.read(&format!("a/{file}")),
            sandbox.read(&format!("b/{file}"))
        );
    }
    let rows = sandbox.read("a/switches.csv");
    let mut rows = rows.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let header = rows.next().unwrap();
    assert_eq!(header[..3], ["switch", "kind", "buffer_bytes"]);
    for (number, row) in rows.enumerate() {
        assert_eq!(row.len(), header.len());
        let (kind, buffer) = if number < 4 {
            ("leaf", "786432")
        } else {
            ("spine", "786432")
        };
        assert_eq!(row[..3], [number.to_string().as_str(), kind, buffer]);
        assert_eq!(row[12].is_empty(), kind == "spine");
        assert!(row[7].parse::<f64>().unwrap() <= row[11].parse().unwrap());
    }
    let timeline = sandbox.read("a/timeline.csv");
    let switches: std::collections::BTreeSet<&str> = timeline
        .lines()
        .skip(1)
        .filter_map(|line| line.rsplit(',').next())
        .collect();
    assert_eq!(switches.len(), 6);
}

/// Flows that are unfinished at the end of the drain make the run fail; the results are kept.
#[test]
fn a_run_in_which_flows_do_not_finish_fails() {
    let sandbox = Sandbox::new();
    let network = "--scenario leafspine-4x4 --set measure_ms=20 --set drain_ms=0";
    let run = sandbox.run(&format!("sim --policy dt {network} --out out"));
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(
        run.stderr.contains("flows did not finish"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("drain_ms = 0"), "{}", run.stderr);
    let flows = sandbox.read("out/fct.csv");
    assert!(flows.lines().any(|row| row.contains(",,,")));
}

#[test]
fn networks_that_cannot_be_simulated_are_refused() {
    let sandbox = Sandbox::new();
    let network = "--scenario leafspine-4x4";
    sandbox.refused(
        &format!("sim --policy dt {network} --set spines=0"),
        &["spines = 0", "at least 1"],
    );
    sandbox.refused(
        &format!("sim --policy dt {network} --set ports=17"),
        &["ports = 17", "leaves x hosts_per_leaf, 16"],
    );
    sandbox.refused(
        "sim --policy dt --set topology=leafspin",
        &["leafspin", "did you mean `leafspine`?"],
    );
    sandbox.refused(
        &format!("headroom {network}"),
        &["topology = leafspine", "must be single"],
    );
    sandbox.refused(
        &format!("train --steps 1 {network} --set spine_pool=with_leaf"),
        &["spine_pool = with_leaf", "must be own"],
    );
}

/// Learned policies decide at every switch of a network and are compared with rules.
#[test]
fn learned_policies_are_compared_in_a_network() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("own");
    let network = "--scenario leafspine-4x4 --set measure_ms=5 --set query_rate=200";
    let report = sandbox
        .ok(&format!(
            "eval {network} --traces 1 --policy ndt:own --policy abm --json"
        ))
        .json();
    assert_eq!(report["scenario"]["switches"], 6);
    let policies = report["policies"].as_array().unwrap();
    let of = |name: &str| {
        let mut named = policies.iter();
        let found = named.find(|policy| policy["policy"] == name);
        found.unwrap_or_else(|| panic!("{name} is missing"))
    };
    assert!(of("ndt:own")["decisions"].as_u64().unwrap() > 0);
    assert_eq!(of("dt")["incast_p99_slowdown_ratio_to_dt"]["mean"], 1.0);
    assert!(of("abm")["short_p99_slowdown"].as_f64().unwrap() >= 1.0);
}
