//! The C of many random networks, compiled into one program.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bufgym_export::network::edges;
use bufgym_export::{Network, c};
use bufgym_models::checkpoint::Manifest;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::random;

const NETWORKS: usize = 32;
/// Number of networks with a second output, from the second network on.
const WITH_EARLY: usize = 12;
/// Numbers of ports below, at and above multiples of the four ports that are computed together, and the maximum.
const PORTS: [usize; 7] = [1, 3, 4, 5, 8, 30, 64];
/// Compile-time maximum of the program.
const MAX_PORTS: usize = 64;

const MAIN: &str = r#"
#include <stdio.h>
#include <string.h>
static float observation[MAX_PORTS * MAX_INPUTS], mean[MAX_PORTS * 2];
static uint8_t levels[MAX_PORTS * 2];
int main(int argc, char **argv)
{
    uint32_t head[2]; /* number of the network, ports */
    FILE *in = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (in == NULL)
        return 1;
    while (fread(head, sizeof *head, 2, in) == 2) {
        size_t values = (size_t)head[1] * programs[head[0]].inputs;
        int status;
        memset(levels, 99, sizeof levels);
        mean[0] = 77.0f;
        if (head[1] <= MAX_PORTS && fread(observation, sizeof *observation, values, in) != values)
            return 1;
        status = programs[head[0]].run(observation, head[1], mean, levels);
        if (head[1] == 0 || head[1] > MAX_PORTS) {
            if (status != -1 || mean[0] != 77.0f || levels[0] != 99)
                return 2;
            continue;
        }
        if (status != 0)
            return 3;
        fwrite(mean, sizeof *mean, head[1] * programs[head[0]].outputs, stdout);
        fwrite(levels, 1, head[1] * programs[head[0]].outputs, stdout);
    }
    fclose(in);
    return 0;
}
"#;

/// Writes the sources of one network and returns those to be compiled.
fn write(folder: &Path, number: usize, network: &Network) -> [PathBuf; 2] {
    let prefix = format!("net_{number}");
    let manifest = Manifest::new("random", "", "none", number as u64);
    for file in c::render(network, &manifest, &prefix).unwrap() {
        fs::write(folder.join(&file.path), &file.bytes).unwrap();
    }
    let early = match network.outputs() {
        1 => "",
        _ => ", levels + ports",
    };
    let driver = format!(
        "#include \"{prefix}.h\"\n\
         int run_{number}(const float *observation, uint32_t ports, float *mean, uint8_t *levels);\n\
         int run_{number}(const float *observation, uint32_t ports, float *mean, uint8_t *levels)\n\
         {{\n    static struct {prefix}_workspace workspace;\n    \
         int status = {prefix}_forward(&workspace, observation, ports, mean);\n    \
         return {prefix}_decide(&workspace, observation, ports, levels{early}) | status;\n}}\n"
    );
    let run = folder.join(format!("run_{number}.c"));
    fs::write(&run, driver).unwrap();
    [folder.join(format!("{prefix}.c")), run]
}

fn main_file(networks: &[Network]) -> String {
    let mut text = String::from("#include <stdint.h>\n");
    let mut table = String::new();
    let inputs = |network: &Network| network.history * network.features.len();
    for (number, network) in networks.iter().enumerate() {
        writeln!(
            text,
            "int run_{number}(const float *, uint32_t, float *, uint8_t *);"
        )
        .unwrap();
        let (inputs, outputs) = (inputs(network), network.outputs());
        writeln!(table, "    {{ run_{number}, {inputs}, {outputs} }},").unwrap();
    }
    let most = networks.iter().map(inputs).max().unwrap();
    format!(
        "{text}enum {{ MAX_PORTS = {MAX_PORTS}, MAX_INPUTS = {most} }};\n\
         static const struct {{ int (*run)(const float *, uint32_t, float *, uint8_t *); size_t_ inputs, outputs; }} \
         programs[] = {{\n{table}}};\n{MAIN}"
    )
    .replace("size_t_", "uint32_t")
}

fn compile(folder: &Path, networks: &[Network]) -> PathBuf {
    let mut sources: Vec<PathBuf> = networks
        .iter()
        .enumerate()
        .flat_map(|(number, network)| write(folder, number, network))
        .collect();
    let main = folder.join("main.c");
    fs::write(&main, main_file(networks)).unwrap();
    sources.push(main);
    let program = folder.join("program");
    let flags = "-std=c99 -O1 -Wall -Wextra -Werror -pedantic";
    let output = Command::new("cc")
        .args(flags.split_whitespace())
        .arg(format!("-DNDT_MAX_PORTS={MAX_PORTS}"))
        .arg("-o")
        .arg(&program)
        .args(&sources)
        .output()
        .expect("a C compiler, which Rust needs too");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    program
}

#[test]
fn the_code_computes_what_the_description_computes() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    let mut network = |number: usize| {
        let network = random::network(number, &mut rng);
        match (1..=WITH_EARLY).contains(&number) {
            true => random::with_early(network, &mut rng),
            false => network,
        }
    };
    let networks: Vec<Network> = (0..NETWORKS).map(&mut network).collect();
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), &networks);

    let mut input = Vec::new();
    let mut expected = Vec::new();
    for (number, network) in networks.iter().enumerate() {
        let mut head = |ports: usize| {
            input.extend((number as u32).to_le_bytes());
            input.extend((ports as u32).to_le_bytes());
        };
        head(0);
        head(MAX_PORTS + 1);
        for ports in PORTS {
            let observation = random::observation(network, ports, &mut rng);
            input.extend((number as u32).to_le_bytes());
            input.extend((ports as u32).to_le_bytes());
            input.extend(observation.iter().flat_map(|value| value.to_le_bytes()));
            expected.push((number, network.forward(&observation, ports)));
        }
    }
    let cases = folder.path().join("cases");
    fs::write(&cases, input).unwrap();
    let run = Command::new(program).arg(&cases).output().unwrap();
    assert!(run.status.success(), "{:?}", run.status);

    let mut rest = &run.stdout[..];
    for (number, means) in expected {
        let (floats, behind) = rest.split_at(4 * means.len());
        let (levels, behind) = behind.split_at(means.len());
        rest = behind;
        let network = &networks[number];
        let (outputs, ports) = (network.outputs(), means.len() / network.outputs());
        for (place, (bytes, &mean)) in floats.as_chunks::<4>().0.iter().zip(&means).enumerate() {
            // Means are ordered port by port, levels output by output.
            let (port, output) = (place / outputs, place % outputs);
            let level = levels[output * ports + port];
            let edges = edges(network.levels()[output]);
            let found = f64::from(f32::from_le_bytes(*bytes));
            let tolerance = 1e-4 * mean.abs().max(0.1);
            assert!(
                (found - mean).abs() < tolerance,
                "network {number}: {found}, not {mean}"
            );
            let near = edges.iter().any(|edge| (edge - mean).abs() < tolerance);
            let right = edges.iter().filter(|&&edge| mean >= edge).count();
            assert!(
                near || usize::from(level) == right,
                "network {number}: level {level}, not {right}"
            );
        }
    }
    assert!(rest.is_empty());
}
