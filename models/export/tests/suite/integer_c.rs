//! The integer C of random networks, bit for bit.

use std::path::Path;
use std::process::{Command, Stdio};

use rand::{RngExt as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use bufgym_env::control::ActionSet;
use bufgym_export::int8::{Calibration, QuantiseError, quantise};
use bufgym_export::{IntegerNetwork, Layer, Network, c_int8};
use bufgym_models::ActorWeights;
use bufgym_models::checkpoint::Manifest;

use crate::random;

const HARNESS: &str = r#"
#include "ndt_int8.h"
#include <stdio.h>

/* Cases of a port count and codes from stdin; outputs, or the error code, to stdout. */
int main(void)
{
    static struct ndt_int8_workspace workspace;
    static uint8_t codes[NDT_MAX_PORTS * NDT_HISTORY * NDT_FEATURES];
    static int32_t outputs[NDT_MAX_PORTS * 2];
    uint32_t ports;
    while (fread(&ports, sizeof ports, 1, stdin) == 1) {
        const size_t size = (size_t)ports * NDT_HISTORY * NDT_FEATURES;
        if (size <= sizeof codes && fread(codes, 1, size, stdin) != size) {
            return 2;
        }
        const int32_t result = ndt_int8_forward(&workspace, codes, ports, outputs);
        fwrite(&result, sizeof result, 1, stdout);
        if (result == NDT_OK) {
#ifdef NDT_OUTPUTS
            static uint8_t levels[2][NDT_MAX_PORTS];
            fwrite(outputs, sizeof outputs[0], ports * NDT_OUTPUTS, stdout);
            if (ndt_int8_decide(&workspace, codes, ports, levels[0], levels[1]) != NDT_OK) {
                return 3;
            }
            for (uint32_t port = 0; port < ports; port++) {
                const int32_t both[2] = {levels[0][port], levels[1][port]};
                fwrite(both, sizeof both, 1, stdout);
            }
#else
            fwrite(outputs, sizeof outputs[0], ports, stdout);
#endif
        }
    }
    return 0;
}
"#;

/// Compiles the network with the strictest warnings as errors.
fn compile(network: &IntegerNetwork, dir: &Path, flags: &[&str]) -> std::path::PathBuf {
    let [header, source] = c_int8::render(network, &["a test */ of comments".to_owned()]);
    std::fs::write(dir.join(c_int8::HEADER), header).unwrap();
    std::fs::write(dir.join(c_int8::SOURCE), source).unwrap();
    std::fs::write(dir.join("main.c"), HARNESS).unwrap();
    let program = dir.join("main");
    let output = Command::new("cc")
        .args([
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pedantic",
            "-o",
            "main",
        ])
        .args(flags)
        .args(["main.c", c_int8::SOURCE])
        .current_dir(dir)
        .output()
        .expect("the C compiler that links this program runs");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{flags:?}: {messages}");
    program
}

fn run(program: &Path, cases: &[(u32, Vec<u8>)]) -> Vec<i32> {
    let dir = program.parent().unwrap();
    let input: Vec<u8> = cases
        .iter()
        .flat_map(|(ports, codes)| [&ports.to_le_bytes()[..], codes].concat())
        .collect();
    std::fs::write(dir.join("input"), input).unwrap();
    let output = Command::new(program)
        .stdin(std::fs::File::open(dir.join("input")).unwrap())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    let words = output.stdout.as_chunks::<4>().0.iter();
    words.map(|bytes| i32::from_le_bytes(*bytes)).collect()
}

/// Codes of idle ports among others.
fn cases(network: &IntegerNetwork, seed: u64) -> Vec<(u32, Vec<u8>)> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let inputs = network.inputs_per_port();
    let idle: Vec<u8> = (0..inputs).map(|_| rng.random()).collect();
    let ports = [1u32, 2, 3, 4, 5, 16, 17, 96, 256];
    ports
        .into_iter()
        .map(|ports| {
            let row = |_| match rng.random_bool(0.3) {
                true => idle.clone(),
                false => (0..inputs).map(|_| rng.random()).collect(),
            };
            (ports, (0..ports).flat_map(row).collect())
        })
        .collect()
}

fn expected(network: &IntegerNetwork, cases: &[(u32, Vec<u8>)]) -> Vec<i32> {
    cases
        .iter()
        .flat_map(|(ports, codes)| {
            let mut outputs = vec![0];
            outputs.extend(network.forward(codes, *ports as usize));
            if network.outputs() == 2 {
                let values = outputs[1..].iter().enumerate();
                let level = |(place, &value)| network.level(place % 2, value) as i32;
                let levels: Vec<i32> = values.map(level).collect();
                outputs.extend(levels);
            }
            outputs
        })
        .collect()
}

/// Flags for every form of the code that this machine runs.
fn machines() -> Vec<Vec<&'static str>> {
    let mut machines = vec![vec!["-O2"], vec!["-O1", "-fsanitize=address,undefined"]];
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx2") {
            machines.push(vec!["-O3", "-mavx2"]);
        }
        if std::arch::is_x86_feature_detected!("avx512vnni") {
            machines.push(vec!["-O3", "-mavx512vnni", "-mavx512bw", "-mavx512vl"]);
        }
    }
    machines
}

/// A network in integers, with ranges from random observations.
fn rounded(network: &Network, seed: u64) -> Result<IntegerNetwork, QuantiseError> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let recorded: Vec<Vec<f32>> = [1, 4, 7, 16]
        .map(|ports| random::observation(network, ports, &mut rng))
        .to_vec();
    let calibration = Calibration::measure(network, recorded.iter().map(Vec::as_slice));
    quantise(network, &calibration)
}

/// Networks of random shapes that integers can express: some with a convolution, some with a mean, some
/// with a second output.
fn small_networks() -> Vec<IntegerNetwork> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(31);
    let networks = (0..60).map(|number| {
        let network = random::network(number, &mut rng);
        let dense = matches!(network.layers.last(), Some(Layer::Dense(_)));
        match dense && number % 2 == 1 {
            true => random::with_early(network, &mut rng),
            false => network,
        }
    });
    let networks: Vec<(Network, IntegerNetwork)> = networks
        .filter_map(|network| Some((network.clone(), rounded(&network, 32).ok()?)))
        .take(10)
        .collect();
    let with = |kind: fn(&Layer) -> bool| networks.iter().any(|(n, _)| n.layers.iter().any(kind));
    assert_eq!(networks.len(), 10);
    let early = networks.iter().filter(|(n, _)| n.outputs() == 2).count();
    assert!((3..8).contains(&early), "{early}");
    assert!(with(|layer| matches!(layer, Layer::Convolution(_))));
    assert!(with(|layer| matches!(layer, Layer::AppendMean)));
    networks.into_iter().map(|(_, integer)| integer).collect()
}

#[test]
fn every_form_of_the_code_gives_the_same_bits() {
    for actions in ActionSet::ALL {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let weights = ActorWeights::random_for(actions, &mut rng);
        let network = Network::from_actor(&weights, &Manifest::new("ndt-16x1g", "", "fct", 1));
        let network = rounded(&network, 1).unwrap();
        assert_eq!(network.outputs(), actions.outputs());
        let cases = cases(&network, 2);
        let expected = expected(&network, &cases);
        for flags in machines() {
            let dir = tempfile::tempdir().unwrap();
            let program = compile(&network, dir.path(), &flags);
            assert_eq!(run(&program, &cases), expected, "{actions} {flags:?}");
        }
    }
}

#[test]
fn small_networks_of_all_shapes_give_the_same_bits() {
    let machines = machines();
    for (number, network) in small_networks().iter().enumerate() {
        let cases = cases(network, 100 + number as u64);
        let flags = &machines[number % machines.len()];
        let dir = tempfile::tempdir().unwrap();
        let program = compile(network, dir.path(), flags);
        assert_eq!(
            run(&program, &cases),
            expected(network, &cases),
            "network {number}, {flags:?}"
        );
    }
}

#[test]
fn too_many_ports_and_none_are_refused() {
    let networks = small_networks();
    let network = networks.iter().find(|n| n.outputs() == 1).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let flags = ["-O1", "-fsanitize=address,undefined", "-DNDT_MAX_PORTS=8"];
    let program = compile(network, dir.path(), &flags);
    let row = vec![7; network.inputs_per_port()];
    let cases = [(9, Vec::new()), (0, Vec::new()), (1, row.clone())];
    let outputs = run(&program, &cases);
    assert_eq!(outputs, [-1, -1, 0, network.forward(&row, 1)[0]]);
}
