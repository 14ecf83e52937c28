//! The forms in which a decision is measured, and the functions that run them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use bufgym::env::control::Controller;
use bufgym::export::{self, Format, IntegerActor, Source};
use bufgym::models::FastActor;
#[cfg(feature = "onnx")]
use bufgym::onnx::{OnnxNetwork, Settings};

use super::{Load, elf};
use crate::cli::bench::rounds;

/// A form of the network.
pub struct Target {
    /// Name in the table.
    pub name: &'static str,
    /// Builds the form in a folder, or returns the reason why that is impossible here.
    pub prepare: Prepare,
}

type Prepare = fn(&Source, &Path) -> Result<Prepared>;

/// A form that can be run.
pub struct Prepared {
    /// Bytes of instructions, and bytes of constants.
    pub bytes: Option<[usize; 2]>,
    /// Median nanoseconds per decision.
    pub nanoseconds: Measure,
}

/// Measures within a time limit, unless the form chooses its own; or returns the reason why it cannot.
type Measure = Box<dyn FnMut(&Load, Duration) -> Result<f64>>;

/// Returns every form, the reference first.
pub fn all() -> Vec<Target> {
    const VNNI: [&str; 3] = ["-mavx512vnni", "-mavx512bw", "-mavx512vl"];
    let mut targets = vec![
        target("Rust, f32", |source, _| {
            Ok(rust_float(FastActor::new(&source.weights)))
        }),
        target("Rust, int8", |source, _| Ok(rust_integer(source))),
        target("ONNX in Rust (onnx:FILE)", |source, _| onnx_in_rust(source)),
        target("ONNX Runtime", onnx),
        target("C, f32", |source, folder| c(source, folder, Format::C, &[])),
        target("C, int8", |source, folder| {
            c(source, folder, Format::CInt8, &[])
        }),
    ];
    if vector_extensions().contains(&"AVX2") {
        targets.push(target("C, f32, AVX2", |source, folder| {
            c(source, folder, Format::C, &["-mavx2", "-mfma"])
        }));
        targets.push(target("C, int8, AVX2", |source, folder| {
            c(source, folder, Format::CInt8, &["-mavx2"])
        }));
    }
    if vector_extensions().contains(&"AVX-512 VNNI") {
        targets.push(target("C, int8, AVX-512 VNNI", |source, folder| {
            c(source, folder, Format::CInt8, &VNNI)
        }));
    }
    targets.push(target("eBPF", ebpf));
    targets
}

fn target(name: &'static str, prepare: Prepare) -> Target {
    Target { name, prepare }
}

/// Returns the processor's extensions that make a difference.
pub fn vector_extensions() -> Vec<&'static str> {
    let mut found = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx2") {
            found.push("AVX2");
        }
        if std::arch::is_x86_feature_detected!("avx512vnni") {
            found.push("AVX-512 VNNI");
        }
    }
    if found.is_empty() {
        found.push("no vector extensions that the code knows");
    }
    found
}

fn rust_float(mut actor: impl Controller + 'static) -> Prepared {
    Prepared {
        bytes: None,
        nanoseconds: Box::new(move |load, budget| {
            let rows = load.observations.len() / super::OBSERVATIONS;
            let mut action = vec![0.0; load.ports * actor.outputs()];
            Ok(rounds(budget, super::OBSERVATIONS, || {
                for observation in load.observations.chunks_exact(rows) {
                    actor.act(observation, load.ports, &mut action);
                    std::hint::black_box(&action);
                }
            }))
        }),
    }
}

/// Runs the exported graph like the policy `onnx:FILE`.
#[cfg(feature = "onnx")]
fn onnx_in_rust(source: &Source) -> Result<Prepared> {
    let files = export::export(source, Format::Onnx)?;
    let file = files.first().ok_or_else(|| anyhow!("there is no file"))?;
    let network = OnnxNetwork::parse(&file.bytes, Path::new(&file.path), &Settings::default());
    Ok(rust_float(network?.actor()))
}

#[cfg(not(feature = "onnx"))]
fn onnx_in_rust(_source: &Source) -> Result<Prepared> {
    bail!("this program was built without the ONNX runtime (--features onnx)")
}

fn rust_integer(source: &Source) -> Prepared {
    let mut actor = IntegerActor::new(source.integer.network.clone());
    Prepared {
        bytes: None,
        nanoseconds: Box::new(move |load, budget| {
            let rows = load.codes.len() / super::OBSERVATIONS;
            Ok(rounds(budget, super::OBSERVATIONS, || {
                for codes in load.codes.chunks_exact(rows) {
                    std::hint::black_box(actor.forward(codes, load.ports));
                }
            }))
        }),
    }
}

/// Writes the files of a format into a separate folder.
fn write(source: &Source, folder: &Path, name: &str, format: Format) -> Result<PathBuf> {
    let dir = folder.join(name);
    fs::create_dir_all(&dir)?;
    for file in export::export(source, format)? {
        fs::write(dir.join(file.path), file.bytes)?;
    }
    Ok(dir)
}

/// Runs a program to its end; returns its output, or the reason why there is none.
fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output();
    let output = output.map_err(|error| anyhow!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut said = text.lines().chain(errors.lines()).map(str::trim);
    let reason = said.rfind(|line| !line.is_empty());
    bail!("{program}: {}", reason.unwrap_or("failed"))
}

/// Compiles C with the system's compiler and runs it.
fn c(source: &Source, folder: &Path, format: Format, flags: &[&str]) -> Result<Prepared> {
    let name = format!("{format}{}", flags.concat());
    let dir = write(source, folder, &name, format)?;
    let bench = include_str!("../../../../dataplane/bench.c");
    fs::write(dir.join("bench.c"), bench)?;
    let (file, define) = match format {
        Format::CInt8 => ("ndt_int8", "-DNDT_BENCH_INT8"),
        _ => ("ndt_f32", "-UNDT_BENCH_INT8"),
    };
    let object = format!("{file}.o");
    let compile = |arguments: &[&str]| {
        let common = ["-std=c99", "-O3"];
        output(
            Command::new("cc")
                .args(common)
                .args(flags)
                .args(arguments)
                .current_dir(&dir),
        )
    };
    compile(&["-c", &format!("{file}.c"), "-o", &object])?;
    compile(&[define, "bench.c", &object, "-o", "bench"])?;
    let bytes = fs::read(dir.join(&object)).ok();
    Ok(Prepared {
        bytes: bytes.and_then(|file| elf::sizes(&file)),
        nanoseconds: Box::new(move |load, _| {
            let mut input = Vec::new();
            for count in [load.ports, super::OBSERVATIONS] {
                let count = u32::try_from(count)?;
                input.extend(count.to_ne_bytes());
            }
            match format {
                Format::CInt8 => input.extend(&load.codes),
                _ => input.extend(load.observations.iter().flat_map(|x| x.to_ne_bytes())),
            }
            fs::write(dir.join("input"), input)?;
            let text = output(Command::new(dir.join("bench")).arg(dir.join("input")))?;
            first_number(&text)
        }),
    })
}

fn first_number(text: &str) -> Result<f64> {
    let word = text.split_whitespace().next().unwrap_or_default();
    word.parse()
        .map_err(|_| anyhow!("printed `{}`", text.trim()))
}

/// Runs a graph with ONNX Runtime on one thread, if Python has it.
fn onnx(source: &Source, folder: &Path) -> Result<Prepared> {
    const PROGRAM: &str = include_str!("onnx.py");
    let dir = write(source, folder, "onnx", Format::Onnx)?;
    output(Command::new("python3").args(["-c", "import numpy, onnxruntime"]))?;
    fs::write(dir.join("bench.py"), PROGRAM)?;
    Ok(Prepared {
        bytes: None,
        nanoseconds: Box::new(move |load, _| {
            let bytes = load.observations.iter().flat_map(|x| x.to_le_bytes());
            fs::write(dir.join("input"), bytes.collect::<Vec<u8>>())?;
            let text = output(
                Command::new("python3")
                    .args(["bench.py", "actor.onnx", "input"])
                    .arg(load.ports.to_string())
                    .current_dir(&dir),
            )?;
            first_number(&text)
        }),
    })
}

/// Runs the BPF program in this machine's kernel.
fn ebpf(source: &Source, folder: &Path) -> Result<Prepared> {
    let dir = write(source, folder, "ebpf", Format::Ebpf)?;
    write(source, folder, "ebpf", Format::CInt8)?;
    let check = include_str!("../../../../dataplane/check_ebpf.c");
    fs::write(dir.join("check_ebpf.c"), check)?;
    let arch = std::env::consts::ARCH;
    output(
        Command::new("clang")
            .args(["-O2", "-g", "-mcpu=v3", "-target", "bpf", "-c", "ndt.bpf.c"])
            .args([
                &format!("-I/usr/include/{arch}-linux-gnu"),
                "-o",
                "ndt.bpf.o",
            ])
            .current_dir(&dir),
    )?;
    output(
        Command::new("cc")
            .args(["-O2", "check_ebpf.c", "ndt_int8.c", "-o", "check", "-lbpf"])
            .current_dir(&dir),
    )?;
    let report = output(Command::new("./check").arg("ndt.bpf.o").current_dir(&dir))?;
    let bytes = fs::read(dir.join("ndt.bpf.o")).ok();
    Ok(Prepared {
        bytes: bytes.and_then(|file| elf::sizes(&file)),
        nanoseconds: Box::new(move |load, _| {
            let begins = format!("{} ports: ", load.ports);
            let line = report.lines().find_map(|line| line.strip_prefix(&begins));
            first_number(line.unwrap_or_default())
        }),
    })
}
