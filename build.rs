//! Compiles the shipped weights and tuned parameters into the binary where the repository has them,
//! so that the binary alone is enough to use them.

use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

const FOLDER: &str = "checkpoints/ndt-fct";
const ALPHA_FOLDER: &str = "checkpoints/ndt-fct-alpha";
const LINEAR: &str = "checkpoints/linear.json";
const TUNED: &str = "checkpoints/tuned";
const HEAD_LOG: &str = ".git/logs/HEAD";
/// Written by `cargo package`.
const PACKAGED_FROM: &str = ".cargo_vcs_info.json";
const FILES: [&str; 2] = ["manifest.json", "actor.safetensors"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=checkpoints");
    // A path that does not exist would make every build run this again.
    if Path::new(HEAD_LOG).exists() {
        println!("cargo::rerun-if-changed={HEAD_LOG}");
    }
    println!("cargo::rustc-env=BUFGYM_REVISION={}", revision());
    let [files, alpha_files] = [FOLDER, ALPHA_FOLDER].map(|folder| included(Path::new(folder)));
    let linear = Path::new(LINEAR);
    let linear = match linear.is_file() {
        true => format!("Some({})", bytes(linear)),
        false => "None".to_owned(),
    };
    let code = format!(
        "/// Manifest and weights.\nconst FILES: Option<[&[u8]; 2]> = {files};\n\
         /// Those for α alone.\nconst ALPHA_FILES: Option<[&[u8]; 2]> = {alpha_files};\n\
         /// The linear rule.\nconst LINEAR_FILE: Option<&[u8]> = {linear};\n"
    );
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("shipped.rs"), code)?;
    let tuned = tuned(Path::new(TUNED))?;
    fs::write(Path::new(&out).join("tuned.rs"), tuned)
}

/// The place of a file of this package, as an expression. Copies of the package may share a target folder, and so this
/// program's output: the place is that of the copy which is compiled.
fn place(file: &Path) -> String {
    format!("concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/\", {file:?})")
}

/// The content of a file, as an expression.
fn bytes(file: &Path) -> String {
    format!("include_bytes!({}).as_slice()", place(file))
}

/// A checkpoint's files, as an expression.
fn included(folder: &Path) -> String {
    let paths = FILES.map(|file| folder.join(file));
    match paths.iter().all(|path| path.is_file()) {
        true => {
            let entries = paths.map(|path| bytes(&path));
            format!("Some([{}])", entries.join(", "))
        }
        false => "None".to_owned(),
    }
}

/// The commit that is built, as far as it is known. A package names the one that it was made from; it
/// may lie in a repository of something else.
fn revision() -> String {
    if let Ok(text) = fs::read_to_string(PACKAGED_FROM) {
        return match packaged_from(&text) {
            Some(name) => format!("revision {name}"),
            None => "revision unknown".to_owned(),
        };
    }
    let git = Command::new("git")
        .args(["rev-parse", "--short=10", "HEAD"])
        .output();
    match git {
        Ok(output) if output.status.success() => {
            let name = String::from_utf8_lossy(&output.stdout);
            format!("revision {}", name.trim())
        }
        _ => "revision unknown".to_owned(),
    }
}

/// The first ten digits of `"sha1": "..."`.
fn packaged_from(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("\"sha1\"")?;
    let name = rest.split('"').nth(1)?.get(..10)?;
    name.bytes().all(|b| b.is_ascii_hexdigit()).then_some(name)
}

/// Every file of tuned parameters with its name.
fn tuned(folder: &Path) -> io::Result<String> {
    let mut paths = Vec::new();
    if folder.is_dir() {
        for entry in fs::read_dir(folder)? {
            paths.push(entry?.path());
        }
    }
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    paths.sort();
    let entry = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default();
        format!("({name:?}, include_str!({}))", place(path))
    };
    let entries: Vec<String> = paths.iter().map(entry).collect();
    Ok(format!(
        "/// Tuned parameters, a file per scenario: name and text.\nconst BUILT_IN: &[(&str, &str)] = &[{}];\n",
        entries.join(", ")
    ))
}
