//! Lossless packets: files, failures and refusals.

use bufgym::sim::scenario::Scenario;

use crate::harness::Sandbox;

const NETWORK: &str = "--scenario reverie-4x4 --set measure_ms=6 --seed 3";

#[test]
fn pauses_are_counted_and_listed() {
    let sandbox = Sandbox::new();
    let run = sandbox.ok(&format!(
        "sim {NETWORK} --policy sonic-abm --out out --json"
    ));
    let summary = run.json();
    let pauses = summary["pauses"].as_u64().unwrap();
    assert!(pauses > 0 && summary["paused_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(summary["drops_lossless"], 0);
    assert!(summary["p99_lossless_occupancy"].as_f64().unwrap() > 0.0);
    let rows = sandbox.read("out/pfc.csv");
    let mut rows = rows.lines();
    assert_eq!(rows.next(), Some("switch,port,priority,from_ns,to_ns"));
    let rows: Vec<Vec<u64>> = rows
        .map(|row| row.split(',').map(|field| field.parse().unwrap()).collect())
        .collect();
    assert_eq!(rows.len() as u64, pauses);
    assert!(rows.iter().all(|row| row[2] == 3 && row[3] <= row[4]));
    assert!(rows.is_sorted_by_key(|row| row[3]));
    sandbox.ok("sim --policy dt --seed 3 --set flows=100..100 --out lossy");
    assert!(!sandbox.path("lossy/pfc.csv").exists());
}

#[test]
fn a_lossless_packet_that_is_lost_can_fail_the_run() {
    let sandbox = Sandbox::new();
    let short =
        format!("sim {NETWORK} --set query_rate=400 --policy reverie --set headroom_bytes=1100");
    let run = sandbox.run(&short);
    assert_eq!(run.code, Some(0));
    assert!(
        run.stderr.contains("lossless packets may be lost"),
        "{}",
        run.stderr
    );
    let run = sandbox.run(&format!("{short} --set strict_lossless=true"));
    assert_eq!(run.code, Some(1));
    for words in [
        "lossless packets were lost",
        "switch",
        "raise headroom_bytes",
    ] {
        assert!(run.stderr.contains(words), "{}", run.stderr);
    }
}

/// Returns the headroom of a port in bytes that the warning of a scenario asks for.
fn needed_headroom(settings: &str) -> String {
    let mut scenario = Scenario::preset("reverie-4x4").unwrap();
    for setting in settings.split("--set ").skip(1) {
        scenario.set(setting.trim()).unwrap();
    }
    scenario.set("headroom_bytes=12000").unwrap();
    let warning = scenario.lossless_warning().unwrap();
    let needed = warning.split_once("and up to ").map(|(_, rest)| rest);
    let needed = needed.and_then(|rest| rest.split_once(' ')).unwrap().0;
    needed.to_owned()
}

/// With the computed headroom, and with the least headroom without a warning, nothing is lost and no warning
/// appears.
fn headroom_suffices(policy: &str, seed: u64, settings: &str) {
    let sandbox = Sandbox::new();
    let settings =
        format!("{settings} --set query_rate=3000 --set measure_ms=1 --set headroom_priorities=0");
    let needed = needed_headroom(&settings);
    for headroom in ["0", &needed] {
        let run = sandbox.ok(&format!(
            "sim --json --scenario reverie-4x4 --policy {policy} --seed {seed} {settings} \
             --set headroom_bytes={headroom}"
        ));
        let summary = run.json();
        assert!(summary["pauses"].as_u64().unwrap() > 0, "{settings}");
        assert_eq!(summary["drops_lossless"], 0, "{settings} {headroom}");
        assert_eq!(run.stderr, "", "{settings} {headroom}");
    }
}

#[test]
fn headroom_that_is_not_warned_of_suffices_for_segments_of_the_control_class() {
    headroom_suffices("reverie", 6, "--set mss=70");
}

#[test]
fn headroom_that_is_not_warned_of_suffices_for_pause_frames_larger_than_data() {
    headroom_suffices(
        "reverie:gamma=1",
        3_449_864_948,
        "--set mss=256 --set pfc_bytes=1000",
    );
}

#[test]
fn headroom_that_is_not_warned_of_suffices_for_acknowledgements_larger_than_data() {
    headroom_suffices("sonic", 6, "--set mss=100 --set rdma_ack_bytes=642");
}

/// Pools that admit no packet would make flows wait for ever.
#[test]
fn a_pool_in_which_no_packet_fits_is_refused() {
    let sandbox = Sandbox::new();
    let run = |policy: &str, settings: &str| {
        format!("sim {NETWORK} --policy {policy} {settings} --out out")
    };
    for policy in ["dt", "sonic", "sonic-abm"] {
        sandbox.refused(
            &run(policy, "--set lossy_pool_share=0.001"),
            &[
                "lossy packets",
                "1066",
                "raise lossy_pool_share from 0.001 to at least",
            ],
        );
        sandbox.refused(
            &run(policy, "--set lossless_pool_share=0.001"),
            &[
                "lossless packets",
                "1066",
                "raise lossless_pool_share from 0.001 to at least 0.001389",
            ],
        );
    }
    for policy in ["sonic:alpha_e=0.001", "reverie:alpha_e=0.001"] {
        sandbox.refused(
            &run(policy, "--set rules=ns3"),
            &[
                "rules ns3",
                "1066",
                "raise alpha_e from 0.001 to at least",
                "rules to paper",
            ],
        );
    }
    assert!(!sandbox.path("out").exists());
    // Reverie has one pool for both classes, and the rules of the paper let a packet into any empty queue.
    sandbox.ok("sim --scenario reverie-4x4 --set measure_ms=1 --seed 3 --policy reverie:alpha_e=0.001 --set lossy_pool_share=0.001");
}

#[test]
fn a_pause_that_lasts_too_long_fails_the_run() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(&format!(
        "sim {NETWORK} --policy sonic-abm --set pfc_watchdog_us=2"
    ));
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("paused by switch"), "{}", run.stderr);
}

#[test]
fn what_cannot_be_lossless_is_refused_in_one_line() {
    let sandbox = Sandbox::new();
    sandbox.refused(
        &format!("sim {NETWORK} --policy lqd"),
        &["policy lqd", "ingress", "reverie"],
    );
    sandbox.refused(
        &format!("sim {NETWORK} --policy sonic --set buffer_bytes=200000"),
        &["buffer_bytes", "headroom"],
    );
    sandbox.refused(
        &format!("sim {NETWORK} --policy sonic --set xon_bytes=0"),
        &["xon_bytes", "must be from 1"],
    );
    sandbox.refused(
        "train --scenario reverie-4x4 --low-level fab --steps 100 --out run",
        &["low_level", "must be reverie, sonic or sonic-abm"],
    );
    sandbox.refused(
        "train --scenario reverie-4x4 --actions alpha --low-level reverie --steps 100 --out run",
        &["reverie", "alpha,ingress, not alpha"],
    );
    assert!(!sandbox.path("run").exists());
}
