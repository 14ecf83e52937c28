//! `explain`: writes what a checkpoint has learned into a folder.

use std::fs;

use crate::harness::Sandbox;

const SMALL: &str =
    "--traces 2 --set ports=6 --set flows=60..80 --set active_ports=2..4 --set incast_degree=2..5";

#[test]
fn a_folder_with_page_numbers_and_figures() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("c");
    let run = sandbox.ok(&format!("explain --checkpoint c {SMALL} --out e --json"));
    let printed = run.json();
    assert_eq!(printed["policy"], "ndt:c");
    assert_eq!(printed["split"], "validation");
    assert_eq!(printed["dependences"].as_array().unwrap().len(), 5);
    let written: serde_json::Value = serde_json::from_str(&sandbox.read("e/explain.json")).unwrap();
    assert_eq!(written, printed);
    for figure in [
        "alpha-by-queue",
        "alpha-by-enqueued",
        "alpha-by-dropped",
        "alpha-by-elapsed",
        "alpha-by-other-queues",
        "alpha-histogram",
        "drops-port",
        "drops-buffer",
        "decision-cost",
    ] {
        let drawing = sandbox.read(&format!("e/{figure}.svg"));
        assert!(drawing.starts_with("<svg xmlns"), "{figure}");
    }
    let page = sandbox.read("e/explain.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("What c learned"));

    sandbox.refused(
        &format!("explain --checkpoint c {SMALL} --out e"),
        &["e is not empty", "--force"],
    );
    let again = sandbox.ok(&format!(
        "explain --checkpoint c {SMALL} --out e --force --quiet"
    ));
    assert!(again.stdout.contains("explanation: e/explain.html"));
    assert_eq!(again.stderr, "");
    let repeated: serde_json::Value =
        serde_json::from_str(&sandbox.read("e/explain.json")).unwrap();
    for part in ["dependences", "alphas", "timeline", "drops", "intervals"] {
        assert_eq!(repeated[part], written[part], "{part}");
    }
}

/// Removes the names and the origins of policies.
fn forget_names(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.retain(|name, _| !["policy", "origin", "training"].contains(&name.as_str()));
            fields.values_mut().for_each(forget_names);
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(forget_names),
        _ => {}
    }
}

#[test]
fn a_network_from_an_onnx_file_is_explained_as_its_checkpoint() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("c");
    sandbox.ok("export --checkpoint c --format onnx --out exported --quiet");
    let explained = |network: &str, out: &str| {
        let run = sandbox.ok(&format!("explain {network} {SMALL} --out {out} --json"));
        run.json()
    };
    let native = explained("--checkpoint c", "native");
    let portable = explained("--policy onnx:exported/actor.onnx", "portable");
    assert_eq!(portable["policy"], "onnx:exported/actor.onnx");
    for part in ["dependences", "alphas", "drops", "intervals"] {
        let computed = |explanation: &serde_json::Value| {
            let mut value = explanation[part].clone();
            forget_names(&mut value);
            value
        };
        assert!(computed(&portable) == computed(&native), "{part}");
    }
    sandbox.refused(
        &format!("explain --policy dt {SMALL} --out rule"),
        &["--policy dt", "onnx:FILE"],
    );
    sandbox.refused(
        &format!("explain --policy ndt --policy ndt {SMALL} --out two"),
        &["one network"],
    );
}

#[test]
fn early_drop_is_explained_where_decisions_set_it() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint_over("c", "fab+early");
    let printed = sandbox
        .ok(&format!("explain --checkpoint c {SMALL} --out e --json"))
        .json();
    let sum = |counts: &serde_json::Value| {
        let kinds = ["busy", "idle"].map(|kind| counts[kind].as_array().unwrap().clone());
        kinds
            .concat()
            .iter()
            .map(|n| n.as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!(sum(&printed["early"]), sum(&printed["alphas"]));
    assert!(sum(&printed["early"]) > 0);
    assert_eq!(printed["early_gaps"][7], 16);
    for dependence in printed["dependences"].as_array().unwrap() {
        let curve = &dependence["curves"][0];
        assert_eq!(curve["mean_early_level"].as_array().unwrap().len(), 17);
    }
    for figure in ["early-by-queue", "early-by-dropped", "early-histogram"] {
        let drawing = sandbox.read(&format!("e/{figure}.svg"));
        assert!(drawing.starts_with("<svg xmlns"), "{figure}");
    }
    let page = sandbox.read("e/explain.html");
    assert!(page.contains("What the decided early drop depends on"));

    sandbox.random_checkpoint("d");
    let plain = sandbox.ok(&format!("explain --checkpoint d {SMALL} --out f --json"));
    assert!(!plain.stdout.contains("early"), "{}", plain.stdout);
}

#[test]
fn a_checkpoint_that_cannot_be_used_is_named() {
    let sandbox = Sandbox::new();
    sandbox.refused("explain --checkpoint none --out e", &["none"]);
    sandbox.random_checkpoint("c");
    let weights = sandbox.path("c/actor.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&weights, bytes).unwrap();
    sandbox.refused(
        "explain --checkpoint c --out e",
        &["actor.safetensors", "sha256"],
    );
    sandbox.refused("explain --checkpoint c", &["--out"]);
}

#[test]
fn a_policy_that_is_never_asked_is_said_so() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("c");
    sandbox.refused(
        "explain --checkpoint c --traces 1 --quiet --set buffer_bytes=1000000000 --set flows=20 --out e",
        &["never asked", "validation"],
    );
}

#[test]
fn pauses_are_explained_where_packets_are_lossless() {
    let sandbox = Sandbox::new();
    let network = "--scenario reverie-4x4 --set measure_ms=4 --traces 1 --quiet";
    let run = sandbox.ok(&format!(
        "explain {network} --policy dt --policy reverie --out e"
    ));
    assert!(run.stdout.contains("reverie pauses "), "{}", run.stdout);
    assert!(sandbox.read("e/pauses.svg").contains("priority 3"));
    let json: serde_json::Value = serde_json::from_str(&sandbox.read("e/explain.json")).unwrap();
    assert_eq!(json["format"], "bufgym-pauses");
    assert_eq!(json["policies"][1]["policy"], "reverie");
    sandbox.refused(
        &format!("explain {network} --policy st --out f"),
        &["st", "sonic-abm or reverie"],
    );
    sandbox.refused(
        "explain --policy dt --out f",
        &["--policy dt", "set lossless_priorities", "--checkpoint"],
    );
}
