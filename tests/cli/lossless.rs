//! Lossless packets: files, failures and refusals.

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
    let short = format!("sim {NETWORK} --policy reverie --set headroom_bytes=1100");
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
