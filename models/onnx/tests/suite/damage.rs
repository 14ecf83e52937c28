//! Damaged files end in an error, or in a network that runs or fails with an error.

use std::path::Path;

use bufgym_onnx::{OnnxNetwork, Settings};

use crate::build::{Builder, OPEN, decided};

/// A network with the usual operators.
fn file() -> Vec<u8> {
    Builder::new(&[OPEN, 8, 5])
        .integers("sizes", &[0, -1])
        .node("Reshape", &["observation", "sizes"], "flat")
        .floats("w", &[40, 2], &[0.01; 80])
        .node("MatMul", &["flat", "w"], "product")
        .node("Relu", &["product"], "hidden")
        .floats("v", &[2, 1], &[0.5, -0.5])
        .node("MatMul", &["hidden", "v"], "action_mean")
        .output("action_mean")
        .bytes()
}

/// Reads the bytes and, where they are a network, decides. Only errors matter here, not results.
fn read(bytes: &[u8]) -> bool {
    let network = OnnxNetwork::parse(bytes, Path::new("net.onnx"), &Settings::default());
    match network.and_then(|network| decided(&network, 2)) {
        Ok(_) => true,
        Err(error) => {
            let text = error.to_string();
            assert!(
                !text.contains('\n') && text.starts_with("net.onnx"),
                "{text}"
            );
            false
        }
    }
}

#[test]
fn a_file_that_ends_early() {
    let whole = file();
    assert!(read(&whole));
    for end in 0..whole.len() {
        read(&whole[..end]);
    }
}

#[test]
fn single_bytes_that_are_others() {
    let whole = file();
    for place in 0..whole.len() {
        for change in [1, 2, 8, 128, 255] {
            let mut damaged = whole.clone();
            damaged[place] ^= change;
            read(&damaged);
        }
    }
}
