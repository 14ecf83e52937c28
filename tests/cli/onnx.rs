//! `onnx:FILE` is a policy in every option for policies.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::harness::Sandbox;

const SMALL: &str = "--set ports=4 --set active_ports=2..4 --set flows=10..15 --set buffer_bytes=200000 --set incast_degree=2..3";

/// Exports the shipped weights into `exported/actor.onnx`.
fn exported() -> Sandbox {
    let sandbox = Sandbox::new();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("checkpoints/ndt-fct");
    let mut export = sandbox.command("export --format onnx --out exported --quiet --checkpoint");
    assert!(export.arg(shipped).status().unwrap().success());
    sandbox
}

fn without_names(text: &str) -> Value {
    let mut value: Value = serde_json::from_str(text).unwrap();
    for field in ["policy", "wall_s", "packets_per_s"] {
        value.as_object_mut().map(|map| map.remove(field));
    }
    value
}

#[test]
fn exported_weights_run_as_they_are() {
    let sandbox = exported();
    let simulate = |policy: &str| {
        let run = sandbox.ok(&format!("sim --policy {policy} {SMALL} --json"));
        without_names(&run.stdout)
    };
    let native = simulate("ndt");
    assert!(native["decisions"].as_u64().unwrap() > 0);
    assert_eq!(simulate("onnx:exported/actor.onnx"), native);
    let over = "onnx:exported/actor.onnx,low_level=abm,actions=alpha";
    assert_ne!(simulate(over), native);
    let report = sandbox
        .ok(&format!(
            "eval --policy onnx:exported/actor.onnx --policy {over} {SMALL} --traces 2 --json"
        ))
        .json();
    assert_eq!(report["policies"][0]["policy"], "onnx:exported/actor.onnx");
    assert_eq!(report["policies"][0]["role"], "learned");
    let origin = |index: usize| {
        report["policies"][index]["origin"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(
        origin(0).contains("trained on ndt-16x1g for fct"),
        "{}",
        origin(0)
    );
    assert!(origin(1).contains("over abm"), "{}", origin(1));
}

#[test]
fn the_control_loop_of_a_network_is_recorded() {
    let sandbox = exported();
    sandbox.ok(&format!(
        "sim --policy onnx:exported/actor.onnx {SMALL} --record-control record.txt --quiet"
    ));
    assert!(
        sandbox
            .read("record.txt")
            .contains("onnx:exported/actor.onnx")
    );
}

#[test]
fn files_that_are_no_networks_are_refused() {
    let sandbox = exported();
    sandbox.write("text.onnx", "no network");
    let cases: [(&str, &[&str]); 6] = [
        ("onnx", &["bufgym export --format onnx"]),
        ("onnx:", &["bufgym export --format onnx"]),
        ("onnx:none.onnx", &["none.onnx", "No such file"]),
        ("onnx:text.onnx", &["text.onnx", "not an ONNX file"]),
        (
            "onnx:exported/actor.onnx,actions=beta",
            &["beta", "alpha,early"],
        ),
        ("onnx:exported/actor.onnx,low_level=cs", &["cs", "edt"]),
    ];
    for (policy, words) in cases {
        for command in ["sim", "eval --traces 1"] {
            sandbox.refused(&format!("{command} --policy {policy}"), words);
        }
    }
    sandbox.refused("sim --policy onxx:a.onnx", &["onxx", "`onnx`"]);
}

/// Returns the path of a network of another trainer.
fn of_trainer(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cli/onnx")
        .join(name)
}

/// The networks have a flat observation, operators of version 21, and a state that persists between
/// decisions.
#[test]
fn networks_of_other_trainers_run() {
    let sandbox = Sandbox::new();
    for name in ["sb3_flat.onnx", "opset21.onnx", "gru_state.onnx"] {
        let policy = format!("onnx:{}", of_trainer(name).display());
        let run = sandbox.ok(&format!("sim --policy {policy} --set flows=20..20 --json"));
        let decisions = without_names(&run.stdout)["decisions"].as_u64();
        assert!(decisions.unwrap() > 0, "{name}");
    }
    for (name, words) in [
        ("batch8.onnx", ["[8, 16, 8, 5]", "a batch of 1"]),
        ("tree.onnx", ["TreeEnsembleRegressor", "does not have"]),
        ("unclipped.onnx", ["[-1, 1]", "Clip to [-1, 1]"]),
    ] {
        let policy = format!("onnx:{}", of_trainer(name).display());
        sandbox.refused(&format!("sim --policy {policy} --set flows=20..20"), &words);
    }
}

/// The runtime panics on these files, or would take terabytes.
#[test]
fn files_at_which_the_runtime_fails_are_refused_in_bounded_memory() {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/found");
    let mut count = 0;
    for entry in fs::read_dir(found).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "onnx") {
            continue;
        }
        let run = Command::new("sh")
            .args(["-c", "ulimit -v 4000000; exec \"$@\"", "sh"])
            .args([env!("CARGO_BIN_EXE_bufgym"), "sim", "--policy"])
            .arg(format!("onnx:{}", path.display()))
            .args(["--seed", "3", "--set", "flows=30..30"])
            .output()
            .unwrap();
        let said = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(2), "{}: {said}", path.display());
        assert_eq!(said.lines().count(), 1, "{}: {said}", path.display());
        count += 1;
    }
    assert!(count >= 9, "{count}");
}
