//! Writes random small networks with inputs and expected outputs, for checks by other programs:
//! `cargo run --release -p bufgym-export --example random_networks -- FOLDER [COUNT]`.
//!
//! Each folder `0`, `1`, … has `network.onnx`, `ndt_f32.h`, `ndt_f32.c`, and for 1, 4 and 13 ports
//! `observations-P.npy` `[batch, ports, history, features]` and `means-P.npy` `[batch, ports]`. One
//! network in four has a second output, `early-means-P.npy` `[batch, ports]`.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use bufgym_export::{c, onnx};
use bufgym_models::checkpoint::Manifest;
use bufgym_models::npy;
use bufgym_util::convert::single;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

#[path = "../tests/suite/random.rs"]
mod random;

const BATCH: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("give a folder")?);
    let count: usize = arguments.next().unwrap_or("40".to_owned()).parse()?;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(21);
    for number in 0..count {
        let network = random::network(number, &mut rng);
        let network = match number % 4 {
            1 => random::with_early(network, &mut rng),
            _ => network,
        };
        let manifest = Manifest::new("random", "", "none", number as u64);
        let folder = folder.join(number.to_string());
        fs::create_dir_all(&folder)?;
        fs::write(
            folder.join("network.onnx"),
            onnx::encode(&network, &manifest)?,
        )?;
        for file in c::render(&network, &manifest, c::PREFIX)? {
            fs::write(folder.join(file.path), file.bytes)?;
        }
        for ports in [1, 4, 13] {
            let mut inputs = Vec::new();
            let mut means: Vec<f32> = Vec::new();
            for _ in 0..BATCH {
                let observation = random::observation(&network, ports, &mut rng);
                means.extend(
                    network
                        .forward(&observation, ports)
                        .iter()
                        .map(|&x| single(x)),
                );
                inputs.extend(observation);
            }
            let shape = [BATCH, ports, network.history, network.features.len()];
            let inputs = npy::encode(&shape, &inputs);
            fs::write(folder.join(format!("observations-{ports}.npy")), inputs)?;
            let outputs = network.outputs();
            for (output, name) in ["means", "early-means"].iter().enumerate().take(outputs) {
                let own = means.iter().skip(output).step_by(outputs);
                let own: Vec<f32> = own.copied().collect();
                let bytes = npy::encode(&[BATCH, ports], &own);
                fs::write(folder.join(format!("{name}-{ports}.npy")), bytes)?;
            }
        }
    }
    Ok(())
}
