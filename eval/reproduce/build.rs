//! Lists the figures that files describe, so that a new file needs no line of code.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=figures");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("figures");
    let files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut files = files.collect::<io::Result<Vec<_>>>()?;
    files.sort();
    let mut list = String::from("&[\n");
    for file in files
        .iter()
        .filter(|file| file.extension().is_some_and(|of| of == "toml"))
    {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let (paper, number) = name.split_once('-').expect("the name is PAPER-NUMBER.toml");
        list += &format!("({paper:?}, {number:?}, include_str!({file:?})),\n");
    }
    let out = env::var_os("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("figures.rs"), list + "]")
}
