//! `infer`: arrays in, arrays out, the same numbers as in evaluation.

use std::fs;

use bufgym::env::control::Controller as _;
use bufgym::models::FastActor;

use crate::harness::Sandbox;

/// Builds a version 1 file with this header, like those that NumPy writes.
fn npy(header: &str, data: &[f32]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    let padding = 63 - (bytes.len() + 2 + header.len()) % 64;
    let header = format!("{header}{}\n", " ".repeat(padding));
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

fn observations(batch: usize, ports: usize) -> Vec<f32> {
    (0..batch * ports * 40)
        .map(|i| (i as f32 * 0.37).sin())
        .collect()
}

fn header(batch: usize, ports: usize) -> String {
    format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({batch}, {ports}, 8, 5), }}")
}

const INFER: &str = "infer --checkpoint c --observations obs.npy --out actions.npy";

#[test]
fn actions_are_those_of_the_network() {
    let sandbox = Sandbox::new();
    let weights = sandbox.random_checkpoint("c");
    for (batch, ports) in [(3, 16), (1, 96), (2, 1), (0, 16)] {
        let input = observations(batch, ports);
        fs::write(sandbox.path("obs.npy"), npy(&header(batch, ports), &input)).unwrap();
        let run = sandbox.ok(&format!("{INFER} --json --force"));
        assert_eq!(
            (&run.json()["batch"], &run.json()["ports"]),
            (&batch.into(), &ports.into())
        );

        let mut actor = FastActor::new(&weights);
        let mut expected = vec![0.0; batch * ports];
        for (row, action) in input
            .chunks_exact(ports * 40)
            .zip(expected.chunks_exact_mut(ports))
        {
            actor.act(row, ports, action);
        }
        let written = fs::read(sandbox.path("actions.npy")).unwrap();
        let text =
            format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({batch}, {ports}), }}");
        assert_eq!(written, npy(&text, &expected));
        assert!(expected.iter().all(|action| action.abs() < 1.0));
    }
}

#[test]
fn arrays_of_another_kind_are_refused_by_field() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("c");
    sandbox.refused(INFER, &["obs.npy"]);
    let good = observations(1, 2);
    let cases = [
        (npy(&header(1, 2).replace("<f4", "<f8"), &good), "descr"),
        (
            npy(&header(1, 2).replace("False", "True"), &good),
            "fortran_order",
        ),
        (npy(&header(1, 2).replace("8, 5", "5, 8"), &good), "shape"),
        (npy(&header(1, 0), &[]), "from 1 to 4096 ports"),
        (npy(&header(1, 2), &good[1..]), "bytes of data"),
        (
            npy(&header(1, 2), &[&[f32::NAN], &good[1..]].concat()),
            "not finite",
        ),
        (b"PK\x03\x04 something else".to_vec(), "not a .npy file"),
        (Vec::new(), "not a .npy file"),
    ];
    for (bytes, word) in cases {
        fs::write(sandbox.path("obs.npy"), bytes).unwrap();
        sandbox.refused(INFER, &["obs.npy", word]);
    }
}

#[test]
fn an_existing_file_is_kept() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("c");
    fs::write(
        sandbox.path("obs.npy"),
        npy(&header(1, 2), &observations(1, 2)),
    )
    .unwrap();
    sandbox.write("actions.npy", "mine");
    sandbox.refused(INFER, &["actions.npy", "exists", "--force"]);
    assert_eq!(sandbox.read("actions.npy"), "mine");
}
