//! A damaged checkpoint is refused with the file and what is wrong in it.

use std::fs;

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
