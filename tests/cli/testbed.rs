//! `testbed`: refusals. If the machine allows namespaces and packet sockets, also flows over real TCP, and
//! the state after a part of the testbed is killed. `.ci/check_testbed.sh` runs the latter.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::harness::{Run, Sandbox};

const FLOWS: &str = "id,src,dst,start_ns,size_bytes\n\
                     7,0,1,0,1\n\
                     3,2,1,1000000,200000\n\
                     4,3,1,1000000,200000\n\
                     5,1,0,2000000,500000\n\
                     9,0,2,400000000,20000\n";

#[test]
fn what_cannot_be_played_is_refused_before_anything_is_set_up() {
    let sandbox = Sandbox::new();
    sandbox.write("flows.csv", FLOWS);
    sandbox.write("loop.csv", "id,src,dst,start_ns,size_bytes\n1,2,2,0,1000\n");
    sandbox.write("empty.csv", "id,src,dst,start_ns,size_bytes\n");
    let cases: [(&str, &[&str]); 17] = [
        ("--trace flows.csv", &["--policy"]),
        (
            "--policy nobody --trace flows.csv",
            &["policy 'nobody' is not known"],
        ),
        ("--policy dt --trace missing.csv", &["missing.csv"]),
        ("--policy dt --trace empty.csv --out out", &["flows"]),
        ("--policy dt --trace loop.csv", &["2"]),
        (
            "--policy dt --trace flows.csv --scenario linux-16x25g",
            &["rate_bps = 25000000000"],
        ),
        (
            "--policy dt --trace flows.csv --set min_rto_us=1000",
            &["min_rto_us = 1000"],
        ),
        (
            "--policy dt --trace flows.csv --set mss=9000",
            &["mss = 9000"],
        ),
        (
            "--policy dt --trace flows.csv --congestion vegan",
            &["vegan", "this kernel has"],
        ),
        (
            "--policy dt --trace flows.csv --set transport=timely",
            &["transport"],
        ),
        ("--policy dt --trace flows.csv --limit-s 0", &["--limit-s"]),
        ("--policy dt --trace flows.csv --pcap", &["--pcap", "--out"]),
        (
            "--policy dt --policy cs --trace flows.csv --pcap f.pcap",
            &["--pcap FILE", "one policy"],
        ),
        (
            "--policy dt --set decision_latency_us=5",
            &["decision_latency_us = 5"],
        ),
        (
            "compare --policies dt,nobody",
            &["policy 'nobody' is not known"],
        ),
        ("compare --traces 0", &["--traces"]),
        (
            "--policy dt --trace flows.csv --scenario leafspine-4x4",
            &["leafspine"],
        ),
    ];
    for (arguments, words) in cases {
        sandbox.refused(&format!("testbed {arguments}"), words);
    }
}

#[test]
fn a_figure_that_cannot_be_played_is_refused_before_anything_is_set_up() {
    let sandbox = Sandbox::new();
    let cases: [(&str, &[&str]); 9] = [
        ("ndt --testbed --out f", &["--fig 9, 9a or 9b"]),
        ("ndt --testbed --fig 8 --out f", &["--fig 9, 9a or 9b"]),
        (
            "ndt --testbed --fig 9 --fig 8a --out f",
            &["--fig 9, 9a or 9b"],
        ),
        ("abm --testbed --out f", &["--testbed", "abm"]),
        ("ndt --testbed --fig 9 --model m --out f", &["--model"]),
        (
            "ndt --testbed --fig 9 --set load=0.5 --out f",
            &["load=0.5", "all loads"],
        ),
        (
            "ndt --testbed --fig 9 --set nonsense=1 --out f",
            &["nonsense"],
        ),
        ("ndt --testbed --fig 9 --set ports=0 --out f", &["ports"]),
        (
            "ndt --testbed --fig 9a --traces 1 --set flows=2 --set rate_bps=2000000000 --out f",
            &["rate_bps = 2000000000"],
        ),
    ];
    for (arguments, words) in cases {
        sandbox.refused(&format!("figures {arguments}"), words);
    }
    assert!(!sandbox.path("f.parts").exists());
}

/// Lock for runs of the testbed, which disturb each other, and each checks what is left behind.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the interfaces and processes that a run may leave.
fn left_behind() -> BTreeSet<String> {
    let links = Command::new("ip")
        .args(["-oneline", "link"])
        .output()
        .unwrap();
    let links = String::from_utf8(links.stdout).unwrap();
    let names = links.lines().filter_map(|line| line.split(": ").nth(1));
    names.map(str::to_owned).chain(hosts_of(None)).collect()
}

/// Returns the processes of hosts, of one switch or of all.
fn hosts_of(switch: Option<u32>) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let path = entry.path();
        let command = fs::read(path.join("cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
        if !words
            .windows(2)
            .any(|two| two == [b"testbed".as_slice(), b"host"])
        {
            continue;
        }
        let status = fs::read_to_string(path.join("status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        let parent = parent.and_then(|text| text.trim().parse().ok());
        if switch.is_none() || parent == switch {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

/// Waits for at most a minute until `there` returns true.
fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let began = Instant::now();
    while !there() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        sleep(Duration::from_millis(20));
    }
}

fn signal(name: &str, process: &str) {
    let sent = Command::new("kill")
        .args(["-s", name, process])
        .status()
        .unwrap();
    assert!(sent.success(), "kill -s {name} {process}");
}

/// Starts a run of 60 s and waits until its hosts exist.
fn long_run(sandbox: &Sandbox, options: &str) -> (Child, Vec<String>) {
    sandbox.write(
        "long.csv",
        "id,src,dst,start_ns,size_bytes\n0,0,1,0,1000000\n1,1,2,60000000000,1000\n",
    );
    let run = sandbox.spawn(&format!(
        "testbed run --policy dt --trace long.csv --out out --quiet {options}"
    ));
    let mut hosts = Vec::new();
    wait_for("four hosts", || {
        hosts = hosts_of(Some(run.id()));
        hosts.len() == 4
    });
    sleep(Duration::from_secs(3));
    (run, hosts)
}

fn ended(run: Child) -> Run {
    Run::from(run.wait_with_output().unwrap())
}

/// File names have `_` for unusual characters, which may make the names of two policies equal.
#[test]
#[ignore = "needs namespaces and packet sockets: .ci/check_testbed.sh"]
fn every_policy_has_a_folder_of_its_own() {
    let _guard = alone();
    let sandbox = Sandbox::new();
    sandbox.write("flows.csv", FLOWS);
    let rule = concat!(env!("CARGO_MANIFEST_DIR"), "/checkpoints/linear.json");
    for name in ["a:b.json", "a_b.json"] {
        std::fs::copy(rule, sandbox.path(name)).unwrap();
    }
    let policies = "--policy linear:a:b.json --policy linear:a_b.json --policy dt --policy dt";
    sandbox.ok(&format!(
        "testbed {policies} --trace flows.csv --out out --quiet"
    ));
    for (folder, policy) in [
        ("linear_a_b.json", "linear:a:b.json"),
        ("linear_a_b.json-2", "linear:a_b.json"),
        ("dt", "dt"),
        ("dt-2", "dt"),
    ] {
        let summary = sandbox.read(&format!("out/{folder}/summary.json"));
        let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
        assert_eq!(summary["policy"], policy, "{folder}");
    }
}

#[test]
#[ignore = "needs namespaces and packet sockets: .ci/check_testbed.sh"]
fn flows_are_played_under_rules_and_a_network_and_nothing_is_left() {
    let _guard = alone();
    let before = left_behind();
    let sandbox = Sandbox::new();
    sandbox.write("flows.csv", FLOWS);
    sandbox.random_checkpoint("weights");
    let policies = ["dt", "lqd+red", "ndt:weights"];
    let listed: String = policies
        .map(|policy| format!(" --policy {policy}"))
        .concat();
    let options = "--trace flows.csv --set buffer_bytes=30000 --out out --timeline --pcap --json";
    let runs = sandbox.ok(&format!("testbed{listed} {options}")).json();
    for (place, policy) in policies.iter().enumerate() {
        let result = &runs["runs"][place];
        assert_eq!(result["policy"], *policy);
        assert_eq!(
            (&result["flows"], &result["completed"]),
            (&5.into(), &5.into())
        );
        let truth = &result["testbed"];
        assert!(truth["void"].is_null(), "{truth}");
        let bytes = |key: &str| truth[key].as_u64().unwrap();
        assert_eq!(
            bytes("came_bytes"),
            bytes("sent_bytes") + bytes("dropped_bytes")
        );
        // This is at least the whole payload, with headers of 66 B for every 1,448 B.
        assert!(
            bytes("sent_bytes") > 920_001 + 920_001 * 66 / 1_448,
            "{truth}"
        );
        assert!(
            result["drops"].as_u64().unwrap() > 0,
            "two senders overrun 30 kB: {result}"
        );
        let folder = format!("out/{}", policy.replace([':', '+'], "_"));
        let fct = sandbox.read(&format!("{folder}/fct.csv"));
        let ids: Vec<&str> = fct
            .lines()
            .skip(1)
            .map(|line| line.split(',').next().unwrap())
            .collect();
        assert_eq!(ids, ["7", "3", "4", "5", "9"], "in the order of the trace");
        for line in fct.lines().skip(1) {
            let field = |place: usize| line.split(',').nth(place).unwrap().parse::<u64>().unwrap();
            assert_eq!(field(7) - field(3), field(8), "{line}");
            // No flow can be faster than its line: at 100 Mbit/s a bit takes 10 ns and a byte 80 ns.
            assert!(field(8) > 80 * field(4), "{line}");
        }
        assert!(
            sandbox
                .read(&format!("{folder}/timeline.csv"))
                .lines()
                .count()
                > 100
        );
        let capture = format!("trace --from-pcap {folder}/switch.pcap --out captured-{place}.csv");
        sandbox.ok(&capture);
        let captured = sandbox.read(&format!("captured-{place}.csv"));
        let sizes: BTreeSet<&str> = captured
            .lines()
            .skip(1)
            .map(|line| line.split(',').nth(4).unwrap())
            .collect();
        assert!(
            sizes.contains("200000") && sizes.contains("500000"),
            "{captured}"
        );
    }
    assert!(runs["runs"][2]["decisions"].as_u64().unwrap() > 0);
    sandbox.ok("testbed run --policy dt --trace flows.csv --pcap own.pcap");
    sandbox.ok("trace --from-pcap own.pcap --out own.csv");
    assert_eq!(left_behind(), before);
}

#[test]
#[ignore = "needs namespaces and packet sockets: .ci/check_testbed.sh"]
fn a_comparison_has_both_sides() {
    let _guard = alone();
    let sandbox = Sandbox::new();
    let options = "--policies cs,st --traces 1 --set flows=8 --set load=0.8 --out out --json";
    let result = sandbox.ok(&format!("testbed compare {options}")).json();
    let policies = result["policies"].as_array().unwrap();
    let names: Vec<&str> = policies
        .iter()
        .map(|row| row["policy"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["dt", "cs", "st"]);
    for row in policies {
        let [measured, predicted] =
            ["measured_ms", "predicted_ms"].map(|key| row[key].as_f64().unwrap());
        let ratio = predicted / measured;
        assert!((0.2..5.0).contains(&ratio), "{row}");
    }
    let runs = sandbox.read("out/runs.csv");
    assert_eq!(
        runs.lines()
            .filter(|line| line.starts_with("testbed,"))
            .count(),
        3
    );
    assert_eq!(
        runs.lines()
            .filter(|line| line.starts_with("simulator,"))
            .count(),
        3
    );
}

/// Starts a command that writes to a folder, stops it once two of its runs are stored, and checks that
/// nothing is written and nothing is left behind.
fn stop_after_two_runs(sandbox: &Sandbox, command: &str, folder: &str) {
    let before = left_behind();
    let run = sandbox.spawn(command);
    let parts = sandbox.path(&format!("{folder}.parts"));
    let kept = || fs::read_dir(&parts).map_or(0, Iterator::count);
    wait_for("two finished runs", || kept() >= 2);
    signal("INT", &run.id().to_string());
    let run = ended(run);
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    assert!(!sandbox.path(folder).exists());
    assert_eq!(left_behind(), before);
    assert!(kept() >= 2);
}

#[test]
#[ignore = "needs namespaces and packet sockets: .ci/check_testbed.sh"]
fn a_comparison_that_was_stopped_goes_on() {
    let _guard = alone();
    let sandbox = Sandbox::new();
    let command =
        "testbed compare --policies cs,st --traces 2 --set flows=4 --set load=0.8 --out c";
    stop_after_two_runs(&sandbox, command, "c");
    // Stored runs are used unchanged: an impossible mean marks them.
    let parts = fs::read_dir(sandbox.path("c.parts")).unwrap().flatten();
    for part in parts {
        let mut kept: serde_json::Value =
            serde_json::from_slice(&fs::read(part.path()).unwrap()).unwrap();
        kept["result"]["times"]["mean_fct_ms"] = 1234.5.into();
        fs::write(part.path(), kept.to_string()).unwrap();
    }
    sandbox.ok(command);
    let runs = sandbox.read("c/runs.csv");
    let of = |place: &str| runs.lines().filter(|line| line.starts_with(place)).count();
    assert_eq!((of("testbed,"), of("simulator,")), (6, 6));
    let taken = runs
        .lines()
        .filter(|line| line.contains(",1234.5,"))
        .count();
    assert!((2..6).contains(&taken), "{runs}");
    assert!(!sandbox.path("c.parts").exists());
}

/// Fig. 9(a) of NDT with one flow list of four flows for each load.
const FIGURE: &str = "figures ndt --fig 9a --testbed --traces 1 --set flows=4 --out f";

#[test]
#[ignore = "needs namespaces and packet sockets: .ci/check_testbed.sh"]
fn a_figure_that_was_stopped_goes_on_and_leaves_nothing() {
    let _guard = alone();
    let before = left_behind();
    let sandbox = Sandbox::new();
    stop_after_two_runs(&sandbox, FIGURE, "f");

    let made = sandbox.ok(&format!("{FIGURE} --json")).json();
    assert_eq!(made["testbed"]["runs"], 27);
    assert_eq!(made["rows"].as_array().unwrap().len(), 3);
    assert!(!sandbox.path("f.parts").exists());
    let runs = sandbox.read("f/fig9a-runs.csv");
    assert_eq!(runs.lines().count(), 1 + 27);
    let table = sandbox.read("f/fig9a.csv");
    let heading: Vec<&str> = table.lines().next().unwrap().split(',').collect();
    let place = |name: &str| heading.iter().position(|column| *column == name).unwrap();
    for line in table.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let value = |name: &str| cells[place(name)].parse::<f64>().unwrap();
        assert!(value("mean_fct_ms") > 0.0, "{line}");
        assert!(
            (0.2..5.0).contains(&value("simulated_over_measured")),
            "{line}"
        );
    }
    let page = sandbox.read("f/index.html");
    assert!(page.contains("Worst of 27 runs") && page.contains("stretched by the factor"));
    assert_eq!(left_behind(), before);
}

#[test]
#[ignore = "needs namespaces and packet sockets: .ci/check_testbed.sh"]
fn a_host_that_dies_ends_the_run_with_an_error() {
    let _guard = alone();
    let before = left_behind();
    let sandbox = Sandbox::new();
    let (run, hosts) = long_run(&sandbox, "");
    signal("KILL", &hosts[1]);
    let run = ended(run);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(
        run.stderr.contains("its process has ended"),
        "{}",
        run.stderr
    );
    assert!(!sandbox.path("out").exists());
    assert_eq!(left_behind(), before);
}

#[test]
#[ignore = "needs namespaces and packet sockets: .ci/check_testbed.sh"]
fn a_host_that_stalls_ends_the_run_at_its_limit() {
    let _guard = alone();
    let before = left_behind();
    let sandbox = Sandbox::new();
    let (run, hosts) = long_run(&sandbox, "--limit-s 8");
    for host in hosts {
        signal("STOP", &host);
    }
    let run = ended(run);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(
        run.stderr.contains("not complete after 8 s"),
        "{}",
        run.stderr
    );
    assert_eq!(left_behind(), before);
}

#[test]
#[ignore = "needs namespaces and packet sockets: .ci/check_testbed.sh"]
fn an_interrupt_ends_everything_and_writes_nothing() {
    let _guard = alone();
    let before = left_behind();
    let sandbox = Sandbox::new();
    let (run, _) = long_run(&sandbox, "");
    signal("INT", &run.id().to_string());
    let run = ended(run);
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    assert!(!sandbox.path("out").exists());
    assert_eq!(left_behind(), before);
}

#[test]
#[ignore = "needs namespaces and packet sockets: .ci/check_testbed.sh"]
fn a_switch_that_is_killed_takes_its_hosts_along_and_the_next_run_succeeds() {
    let _guard = alone();
    let before = left_behind();
    let sandbox = Sandbox::new();
    let (run, _) = long_run(&sandbox, "");
    signal("KILL", &run.id().to_string());
    assert_eq!(ended(run).code, None);
    wait_for("the hosts end with their switch", || {
        left_behind() == before
    });
    sandbox.write("flows.csv", FLOWS);
    let next = sandbox
        .ok("testbed run --policy dt --trace flows.csv --json")
        .json();
    assert_eq!(next["completed"], 5);
    assert_eq!(left_behind(), before);
}
