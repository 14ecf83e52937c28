//! Compiles the shipped weights into the binary where the repository has them, so that the binary
//! alone is enough to use them.

use std::path::Path;
use std::{env, fs, io};

const FOLDER: &str = "checkpoints/ndt-fct";
const FILES: [&str; 2] = ["manifest.json", "actor.safetensors"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=checkpoints");
    let variable = |name: &str| env::var(name).map_err(io::Error::other);
    let folder = Path::new(&variable("CARGO_MANIFEST_DIR")?).join(FOLDER);
    let paths = FILES.map(|file| folder.join(file));
    let files = if paths.iter().all(|path| path.is_file()) {
        let entries = paths.map(|path| format!("include_bytes!({path:?}).as_slice()"));
        format!("Some([{}])", entries.join(", "))
    } else {
        "None".to_owned()
    };
    let code = format!("/// Manifest and weights.\nconst FILES: Option<[&[u8]; 2]> = {files};\n");
    fs::write(Path::new(&variable("OUT_DIR")?).join("shipped.rs"), code)
}
