//! `export`: files of every format, golden vectors, refusals.

use std::fs;
use std::path::Path;

use crate::harness::Sandbox;

const EXPORT: &str = "export --checkpoint c --out out --format";

/// What comes with every format.
const GOLDEN: [&str; 16] = [
    "golden/actions-1.npy",
    "golden/actions-16.npy",
    "golden/actions-4.npy",
    "golden/actions-96.npy",
    "golden/levels-1.npy",
    "golden/levels-16.npy",
    "golden/levels-4.npy",
    "golden/levels-96.npy",
    "golden/means-1.npy",
    "golden/means-16.npy",
    "golden/means-4.npy",
    "golden/means-96.npy",
    "golden/observations-1.npy",
    "golden/observations-16.npy",
    "golden/observations-4.npy",
    "golden/observations-96.npy",
];

/// A checkpoint `c` of a scenario with short traces.
fn checkpoint(sandbox: &Sandbox) {
    sandbox.random_checkpoint("c");
    edit(sandbox, "\\\"100..1000\\\"", "\\\"60..80\\\"  ");
}

fn edit(sandbox: &Sandbox, from: &str, to: &str) {
    let manifest = sandbox.read("c/manifest.json");
    assert!(manifest.contains(from), "{from} is not in {manifest}");
    sandbox.write("c/manifest.json", &manifest.replacen(from, to, 1));
}

/// The files below `out`, without folders.
fn written(sandbox: &Sandbox) -> Vec<String> {
    let below = |name: String| name.strip_prefix("out/").map(str::to_owned);
    let is_file = |name: &String| sandbox.path("out").join(name).is_file();
    sandbox
        .files()
        .into_iter()
        .filter_map(below)
        .filter(is_file)
        .collect()
}

fn with_golden(files: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = files
        .iter()
        .chain(&GOLDEN)
        .map(ToString::to_string)
        .collect();
    names.sort();
    names
}

#[test]
fn a_format_fills_the_folder_and_all_fill_one_each() {
    let cases: [(&str, &[&str]); 4] = [
        (
            "safetensors",
            &["actor.safetensors", "manifest.json", "load_in_pytorch.py"],
        ),
        ("onnx", &["actor.onnx"]),
        ("c", &["ndt_f32.c", "ndt_f32.h"]),
        (
            "all",
            &[
                "safetensors/actor.safetensors",
                "safetensors/manifest.json",
                "safetensors/load_in_pytorch.py",
                "onnx/actor.onnx",
                "c/ndt_f32.c",
                "c/ndt_f32.h",
            ],
        ),
    ];
    for (format, files) in cases {
        let sandbox = Sandbox::new();
        checkpoint(&sandbox);
        let run = sandbox.ok(&format!("{EXPORT} {format} --json"));
        assert_eq!(written(&sandbox), with_golden(files), "{format}");
        let listed = run.json()["files"].as_array().unwrap().clone();
        assert_eq!(listed.len(), files.len() + GOLDEN.len());
        for entry in listed {
            let path = sandbox.path("out").join(entry["path"].as_str().unwrap());
            let bytes = fs::read(path).unwrap();
            assert_eq!(entry["bytes"], bytes.len());
            assert_eq!(entry["sha256"], bufgym::models::files::sha256(&bytes));
        }
    }
}

#[test]
fn exported_safetensors_are_a_checkpoint() {
    let sandbox = Sandbox::new();
    checkpoint(&sandbox);
    sandbox.ok(&format!("{EXPORT} safetensors"));
    sandbox.ok(
        "infer --checkpoint out --observations out/golden/observations-4.npy --out actions.npy",
    );
    let actions = fs::read(sandbox.path("actions.npy")).unwrap();
    assert_eq!(
        actions,
        fs::read(sandbox.path("out/golden/actions-4.npy")).unwrap()
    );
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_other_observations() {
    let sandbox = Sandbox::new();
    checkpoint(&sandbox);
    let export = |arguments: &str| {
        sandbox.ok(&format!("{EXPORT} c --force {arguments}"));
        let read = |name: &String| fs::read(sandbox.path("out").join(name)).unwrap();
        written(&sandbox).iter().map(read).collect::<Vec<_>>()
    };
    let first = export("");
    assert_eq!(first, export("--seed 1"));
    assert_ne!(first, export("--seed 2"));
}

#[test]
fn what_cannot_be_exported_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.refused(&format!("{EXPORT} onnx"), &["c"]);
    checkpoint(&sandbox);
    sandbox.refused(
        &format!("{EXPORT} tflite"),
        &["tflite", "safetensors", "onnx", "c", "all"],
    );
    for format in ["c-int8", "ebpf"] {
        sandbox.refused(&format!("{EXPORT} {format}"), &[format, "safetensors"]);
    }
    fs::create_dir(sandbox.path("out")).unwrap();
    sandbox.write("out/mine", "precious");
    sandbox.refused(&format!("{EXPORT} c"), &["out", "not empty", "--force"]);
    sandbox.ok(&format!("{EXPORT} c --force --quiet"));
    assert_eq!(sandbox.read("out/mine"), "precious");

    let sandbox = Sandbox::new();
    checkpoint(&sandbox);
    edit(&sandbox, "ports = 16", "porst = 16");
    sandbox.refused(
        &format!("{EXPORT} c"),
        &["manifest.json", "scenario_toml", "porst"],
    );
}

/// How the checked-in golden vectors are made.
const REGENERATE: &str = "cargo run --release -- export --checkpoint checkpoints/ndt-fct \
    --format safetensors --out out && cp out/golden/* dataplane/golden/";

#[test]
fn the_checked_in_golden_vectors_are_those_of_the_shipped_weights() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sandbox = Sandbox::new();
    let shipped = root.join("checkpoints/ndt-fct");
    sandbox.ok(&format!(
        "export --checkpoint {} --format safetensors --out out",
        shipped.display()
    ));
    let mut size = 0;
    for name in GOLDEN {
        let made = fs::read(sandbox.path("out").join(name)).unwrap();
        let kept = fs::read(root.join("dataplane").join(name)).unwrap_or_default();
        assert!(
            made == kept,
            "dataplane/{name} is out of date: {REGENERATE}"
        );
        size += kept.len();
    }
    assert!(size < 60_000, "{size} bytes");
}
