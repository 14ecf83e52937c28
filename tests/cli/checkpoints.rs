//! A damaged checkpoint is refused with the name of the file and the problem in it.

use std::fs;

use bufgym::models::checkpoint;

use crate::harness::Sandbox;

/// Commands that read the checkpoint folder `c`.
const READERS: [&str; 5] = [
    "sim --policy ndt:c",
    "eval --policy ndt:c --traces 1",
    "explain --checkpoint c --traces 1 --out e",
    "export --checkpoint c --format onnx --out e",
    "infer --checkpoint c --observations obs.npy --out actions.npy",
];

fn refused_everywhere(sandbox: &Sandbox, words: &[&str]) {
    for reader in READERS {
        sandbox.refused(reader, words);
    }
}

/// Replaces one piece of the manifest.
fn edit(sandbox: &Sandbox, from: &str, to: &str) {
    let manifest = sandbox.read("c/manifest.json");
    assert!(manifest.contains(from), "{manifest}");
    sandbox.write("c/manifest.json", &manifest.replacen(from, to, 1));
}

#[test]
fn a_missing_folder_or_file_is_named() {
    let sandbox = Sandbox::new();
    refused_everywhere(&sandbox, &["c"]);
    sandbox.random_checkpoint("c");
    fs::remove_file(sandbox.path("c/manifest.json")).unwrap();
    refused_everywhere(&sandbox, &["manifest.json"]);
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("c");
    fs::remove_file(sandbox.path("c/actor.safetensors")).unwrap();
    refused_everywhere(&sandbox, &["actor.safetensors"]);
}

#[test]
fn changed_or_truncated_weights_do_not_match_their_hash() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("c");
    let weights = sandbox.path("c/actor.safetensors");
    let good = fs::read(&weights).unwrap();
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    for bad in [&flipped[..], &good[..good.len() - 1], &[]] {
        fs::write(&weights, bad).unwrap();
        refused_everywhere(&sandbox, &["actor.safetensors", "sha256"]);
    }
}

#[test]
fn another_version_is_named() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("c");
    edit(&sandbox, "\"format_version\": 1", "\"format_version\": 99");
    refused_everywhere(&sandbox, &["format_version", "99"]);
}

#[test]
fn a_damaged_manifest_is_named_with_its_field() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("c");
    edit(&sandbox, "\"weights_sha256\"", "\"weights_sha265\"");
    refused_everywhere(&sandbox, &["manifest.json", "weights_sha256"]);
    sandbox.write("c/manifest.json", "{");
    refused_everywhere(&sandbox, &["manifest.json"]);
}

#[test]
fn the_best_of_several_seeds_is_chosen_and_names_all() {
    let sandbox = Sandbox::new();
    sandbox.validated_checkpoint("b", 2, 0.7);
    let best = sandbox.validated_checkpoint("run/checkpoints/best", 3, 0.6);
    sandbox.validated_checkpoint("a", 1, 0.65);
    let run = sandbox.ok("runs choose b run a --out chosen --json").json();
    assert_eq!(run["seed"], 3);
    assert_eq!(run["chosen"], "run");
    let (weights, manifest) = checkpoint::load_actor(&sandbox.path("chosen")).unwrap();
    assert_eq!(weights, best);
    let seeds: Vec<(u64, f64)> = manifest.seeds.iter().map(|s| (s.seed, s.value)).collect();
    assert_eq!(seeds, [(1, 0.65), (2, 0.7), (3, 0.6)]);
    let report = sandbox.ok("eval --policy ndt:chosen --traces 1 --json");
    assert!(
        report
            .stdout
            .contains("the best of 3 by validation, 0.600 to 0.700"),
        "{}",
        report.stdout
    );
    sandbox.refused("runs choose a b --out chosen", &["chosen", "--force"]);
    sandbox.ok("runs choose a b --out chosen --force");
    let (_, manifest) = checkpoint::load_actor(&sandbox.path("chosen")).unwrap();
    assert_eq!(manifest.seed, 1);
}

#[test]
fn only_trainings_that_differ_in_their_seed_are_compared() {
    let sandbox = Sandbox::new();
    sandbox.validated_checkpoint("c", 1, 0.7);
    sandbox.validated_checkpoint("d", 1, 0.6);
    sandbox.refused("runs choose c d --out e", &["c", "d", "seed 1"]);
    sandbox.refused("runs choose c --out e", &["2"]);
    sandbox.random_checkpoint("d");
    sandbox.refused("runs choose c d --out e", &["d", "no validation result"]);
    for (from, to, field) in [
        (
            "\"objective\": \"fct\"",
            "\"objective\": \"loss\"",
            "objective",
        ),
        (
            "\"objective\": \"fct\",",
            "\"objective\": \"fct\", \"learner\": \"cma\",",
            "learner",
        ),
        ("\"traces\": 32", "\"traces\": 16", "validation"),
        ("ports = 16", "ports = 15", "scenario_toml"),
    ] {
        sandbox.validated_checkpoint("c", 1, 0.7);
        edit(&sandbox, from, to);
        sandbox.validated_checkpoint("d", 2, 0.6);
        sandbox.refused("runs choose d c --out e", &["c", "d", field]);
    }
}
