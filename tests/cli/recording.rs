//! `sim --record-control`: a record of every packet event and decision.

use crate::harness::Sandbox;

const SMALL: &str = "--set flows=30..30 --set active_ports=3..3 --set buffer_bytes=300000";

fn without_times(mut summary: serde_json::Value) -> serde_json::Value {
    for field in ["wall_s", "packets_per_s"] {
        summary.as_object_mut().unwrap().remove(field).unwrap();
    }
    summary
}

#[test]
fn a_record_is_repeated_and_changes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("weights");
    let run = format!("sim --policy ndt:weights --seed 3 {SMALL} --json");
    let plain = sandbox.ok(&run).json();
    let recorded = sandbox.ok(&format!("{run} --record-control a.txt")).json();
    assert_eq!(without_times(recorded.clone()), without_times(plain));
    sandbox.ok(&format!(
        "{run} --record-control below/b.txt --timeline --out out"
    ));
    let record = sandbox.read("a.txt");
    assert!(record == sandbox.read("below/b.txt"));

    let mut header = record.lines();
    assert_eq!(header.next(), Some("bufgym-control-record,1"));
    assert_eq!(header.next(), Some("policy,ndt:weights"));
    let decisions = record.matches("\nD,").count() as u64;
    assert!(decisions > 10);
    assert_eq!(recorded["decisions"], decisions);
    assert_eq!(
        recorded["packets_forwarded"],
        record.matches("\nd,").count()
    );
    let last = record.lines().last().unwrap();
    assert!(last.starts_with("E,") && last.ends_with(&format!(",{decisions}")));
}

/// Early drop appears in records of version 2, with its own kind.
#[test]
fn a_record_with_early_drop_holds_what_its_replay_needs() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint_over("weights", "dt+early:min_bytes=3000,grace_us=500");
    let run = format!("sim --policy ndt:weights --seed 3 {SMALL} --json");
    let plain = sandbox.ok(&run).json();
    let recorded = sandbox.ok(&format!("{run} --record-control a.txt")).json();
    assert_eq!(without_times(recorded.clone()), without_times(plain));
    let record = sandbox.read("a.txt");
    assert!(record.starts_with("bufgym-control-record,2\n"));
    for line in [
        "early_min_bytes,3000",
        "early_grace_ps,500000000",
        "early_spare,1",
        "early_gaps,0 1024 512 256 128 64 32 16",
    ] {
        assert!(record.contains(&format!("\n{line}\n")), "{line}");
    }
    assert_eq!(record.matches("\nearly_random,").count(), 16);
    let lost = |kind: &str| record.matches(&format!("\n{kind},")).count();
    assert!(lost("e") > 0);
    assert_eq!(recorded["drops"], lost("r") + lost("f") + lost("e"));
    let decision = record.lines().find(|line| line.starts_with("D,")).unwrap();
    assert_eq!(decision.split(',').count(), 3 + 2 * 16);
}

#[test]
fn a_record_takes_the_place_of_nothing_unless_forced() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("weights");
    sandbox.write("mine.txt", "precious");
    let run = format!("sim --policy ndt:weights --seed 3 {SMALL}");
    sandbox.refused(
        &format!("{run} --record-control mine.txt"),
        &["mine.txt", "--force"],
    );
    sandbox.refused(&format!("{run} --record-control ."), &["is a folder"]);
    assert_eq!(sandbox.read("mine.txt"), "precious");
    let forced = sandbox.ok(&format!("{run} --record-control mine.txt --force"));
    assert!(forced.stderr.contains("control recorded in mine.txt"));
    assert!(
        sandbox
            .read("mine.txt")
            .starts_with("bufgym-control-record,1\n")
    );
    let hidden = |name: &&String| name.contains("partial") || name.contains("probe");
    assert_eq!(sandbox.files().iter().find(hidden), None);
}

#[test]
fn a_rule_has_no_control_to_record() {
    let sandbox = Sandbox::new();
    for policy in ["dt", "edt", "unlimited"] {
        sandbox.refused(
            &format!("sim --policy {policy} --record-control a.txt"),
            &[policy, "no control loop", "ndt:DIR", "linear:FILE"],
        );
    }
}
