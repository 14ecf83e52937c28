//! `export`: files of every format, golden vectors, refusals.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::harness::Sandbox;

const EXPORT: &str = "export --checkpoint c --out out --format";

/// Files that come with every format, for every number of ports.
const GOLDEN: [&str; 7] = [
    "observations",
    "means",
    "actions",
    "levels",
    "codes",
    "outputs-int8",
    "levels-int8",
];

fn golden() -> impl Iterator<Item = String> {
    let of = |ports: u32| move |name| format!("golden/{name}-{ports}.npy");
    [1, 4, 16, 96]
        .into_iter()
        .flat_map(move |ports| GOLDEN.iter().map(of(ports)))
}

const C_INT8: [&str; 8] = [
    "ndt_codes.h",
    "ndt_control.h",
    "ndt_flows.h",
    "ndt_int8.c",
    "ndt_int8.h",
    "ndt_int8.json",
    "replay.c",
    "replay_record.h",
];

/// Writes a checkpoint `c` of a scenario with short traces.
fn checkpoint(sandbox: &Sandbox) {
    sandbox.random_checkpoint("c");
    edit(sandbox, "\\\"100..1000\\\"", "\\\"60..80\\\"  ");
}

fn edit(sandbox: &Sandbox, from: &str, to: &str) {
    let manifest = sandbox.read("c/manifest.json");
    assert!(manifest.contains(from), "{from} is not in {manifest}");
    sandbox.write("c/manifest.json", &manifest.replacen(from, to, 1));
}

/// Returns the files below `out`, without folders.
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

fn with_golden(files: &[String]) -> Vec<String> {
    let mut names: Vec<String> = files.iter().cloned().chain(golden()).collect();
    names.sort();
    names
}

#[test]
fn a_format_fills_the_folder_and_all_fill_one_each() {
    let formats: [(&str, &[&str]); 5] = [
        (
            "safetensors",
            &["actor.safetensors", "manifest.json", "load_in_pytorch.py"],
        ),
        ("onnx", &["actor.onnx"]),
        ("c", &["ndt_f32.c", "ndt_f32.h"]),
        ("c-int8", &C_INT8),
        ("ebpf", &["ndt.bpf.c", "ndt_int8.json"]),
    ];
    let plain = |files: &[&str]| files.iter().map(ToString::to_string).collect();
    let mut cases: Vec<(&str, Vec<String>)> = formats
        .iter()
        .map(|(format, files)| (*format, plain(files)))
        .collect();
    let all = formats
        .iter()
        .flat_map(|(format, files)| files.iter().map(move |file| format!("{format}/{file}")));
    cases.push(("all", all.collect()));
    for (format, files) in cases {
        let sandbox = Sandbox::new();
        checkpoint(&sandbox);
        let run = sandbox.ok(&format!("{EXPORT} {format} --json"));
        let expected = with_golden(&files);
        assert_eq!(written(&sandbox), expected, "{format}");
        let listed = run.json()["files"].as_array().unwrap().clone();
        assert_eq!(listed.len(), expected.len());
        for entry in listed {
            let path = sandbox.path("out").join(entry["path"].as_str().unwrap());
            let bytes = fs::read(path).unwrap();
            assert_eq!(entry["bytes"], bytes.len());
            assert_eq!(entry["sha256"], bufgym::models::files::sha256(&bytes));
        }
    }
}

#[test]
fn a_checkpoint_and_its_export_are_the_same_policy() {
    let sandbox = Sandbox::new();
    checkpoint(&sandbox);
    sandbox.ok(&format!("{EXPORT} c-int8"));
    let sim = |folder: &str| {
        let run = sandbox.ok(&format!(
            "sim --policy ndt-int8:{folder} --scenario ndt-16x1g --set flows=60 --json"
        ));
        let json = run.json();
        (
            json["mean_fct_ms"].clone(),
            json["decisions"].clone(),
            json["drops"].clone(),
        )
    };
    assert_eq!(sim("c"), sim("out"));
}

/// A network that sets early drop has more files and twice as many levels, and gives the same policy again.
#[test]
fn early_drop_is_exported_too() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint_over("c", "dt+early");
    edit(&sandbox, "\\\"100..1000\\\"", "\\\"60..80\\\"  ");
    let run = sandbox.ok(&format!("{EXPORT} all --json")).json();
    let both = ["integer_levels", "integer_early_levels"].map(|name| run[name]["levels"].clone());
    assert_eq!(both[0], both[1]);
    assert!(both[0].as_u64().unwrap() > 1_000);
    let names = written(&sandbox);
    for (format, files) in [
        ("safetensors", &["load_in_pytorch.py"][..]),
        ("onnx", &["actor.onnx"]),
        ("c", &["ndt_f32.h"]),
        ("c-int8", &C_INT8),
        ("c-int8", &["ndt_early.h"]),
        ("ebpf", &["ndt.bpf.c"]),
    ] {
        for file in files {
            assert!(names.contains(&format!("{format}/{file}")), "{file}");
        }
    }
    let early = ["means", "actions", "levels", "outputs-int8", "levels-int8"];
    for name in early
        .iter()
        .map(|name| format!("golden/early-{name}-16.npy"))
    {
        assert!(names.contains(&name), "{name}");
    }
    let sim = |policy: &str| {
        let run = sandbox.ok(&format!(
            "sim --policy {policy} --scenario ndt-16x1g --set flows=60 --json"
        ));
        let json = run.json();
        (
            json["mean_fct_ms"].clone(),
            json["decisions"].clone(),
            json["drops"].clone(),
        )
    };
    assert_eq!(sim("ndt-int8:c"), sim("ndt-int8:out/c-int8"));
    let refused = |from: &str, to: &str, says: &[&str]| {
        let whole = sandbox.read("out/c-int8/ndt_int8.json");
        assert!(whole.contains(from), "{from}");
        sandbox.write("out/c-int8/ndt_int8.json", &whole.replacen(from, to, 1));
        sandbox.refused(
            "sim --policy ndt-int8:out/c-int8 --scenario ndt-16x1g",
            says,
        );
        sandbox.write("out/c-int8/ndt_int8.json", &whole);
    };
    refused("[0,1024,512", "[0,1024,500", &["ndt_int8.json", "gaps"]);
    refused(
        "\"dt+early\"",
        "\"dt\"",
        &["2 outputs", "over dt set alpha"],
    );
    refused("\"gaps\":[", "\"gap\":[", &["ndt_int8.json", "gap"]);
}

#[test]
fn an_integer_network_that_was_changed_is_refused() {
    let sandbox = Sandbox::new();
    checkpoint(&sandbox);
    sandbox.ok(&format!("{EXPORT} c-int8"));
    let refused = |from: &str, to: &str, says: &[&str]| {
        let whole = sandbox.read("out/ndt_int8.json");
        assert!(whole.contains(from), "{from}");
        sandbox.write("out/ndt_int8.json", &whole.replacen(from, to, 1));
        sandbox.refused("sim --policy ndt-int8:out --scenario ndt-16x1g", says);
        sandbox.write("out/ndt_int8.json", &whole);
    };
    refused(
        "\"version\":1",
        "\"version\":9",
        &["ndt_int8.json", "version 9"],
    );
    refused("\"taps\":3", "\"taps\":4", &["layer conv", "sizes"]);
    refused(
        "\"name\":\"queue\"",
        "\"name\":\"tail\"",
        &["inputs", "queue"],
    );
    refused("\"unit\":2", "\"unit\":3", &["ndt_int8.json", "levels"]);
    refused(
        "\"edges\":[",
        "\"edges\":[-9,",
        &["ndt_int8.json", "levels"],
    );
    refused(
        "\"zero\":128",
        "\"zero\":0",
        &["input last_action", "must be 128"],
    );
    refused(
        "\"scale\":0.0078125",
        "\"scale\":-1e300",
        &["input last_action", "0.0078125"],
    );
    refused(
        "\"output_scale\":",
        "\"output_scale\":-",
        &["output_scale", "above 0"],
    );
    refused("{", "", &["ndt_int8.json", "bufgym export"]);
    sandbox.refused("sim --policy ndt-int8 --scenario nowhere", &["nowhere"]);
    sandbox.refused(
        "sim --policy ndt-int8: --scenario ndt-16x1g",
        &["ndt-int8:"],
    );
    sandbox.refused("sim --policy ndt-int8:none --scenario ndt-16x1g", &["none"]);
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
fn an_export_is_the_same_every_time() {
    let sandbox = Sandbox::new();
    checkpoint(&sandbox);
    let export = |arguments: &str| {
        sandbox.ok(&format!("{EXPORT} all --force {arguments}"));
        let read = |name: &String| fs::read(sandbox.path("out").join(name)).unwrap();
        written(&sandbox).iter().map(read).collect::<Vec<_>>()
    };
    assert_eq!(export(""), export("--seed 2"));
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

/// The command that makes the checked-in golden vectors.
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
    let names = |folder: &Path| -> BTreeSet<OsString> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    };
    let [made, kept] = [sandbox.path("out"), root.join("dataplane")].map(|at| at.join("golden"));
    assert_eq!(names(&made), names(&kept), "{REGENERATE}");
    let mut size = 0;
    for name in names(&made) {
        let content = fs::read(kept.join(&name)).unwrap();
        assert!(
            fs::read(made.join(&name)).unwrap() == content,
            "dataplane/golden/{} is out of date: {REGENERATE}",
            name.display()
        );
        size += content.len();
    }
    assert!(size < 60_000, "{size} bytes");
}
