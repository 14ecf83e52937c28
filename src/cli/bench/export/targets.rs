//! The forms in which a decision is measured, and the functions that run them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bufgym::env::control::Controller;
use bufgym::export::{self, Format, IntegerActor, Source};
use bufgym::models::FastActor;
#[cfg(feature = "onnx")]
use bufgym::onnx::{OnnxNetwork, Settings};

use super::{Load, elf};
use crate::cli::bench::repeat;

/// A form of the network.
pub struct Target {
    /// Name in the table.
    pub name: &'static str,
    /// Builds the form in a folder, or returns the reason why that is impossible here.
    pub prepare: fn(&Source, &Path) -> Result<Prepared, String>,
}

/// A form that can be run.
pub struct Prepared {
    /// Bytes of instructions, and bytes of constants.
    pub bytes: Option<[usize; 2]>,
    /// Median nanoseconds per decision.
    pub nanoseconds: Measure,
}

/// Measures within a time limit, unless the form chooses its own; or returns the reason why it cannot.
type Measure = Box<dyn FnMut(&Load, Duration) -> Result<f64, String>>;

/// Returns every form, the reference first.
pub fn all() -> Vec<Target> {
    let mut targets = vec![
        Target {
            name: "Rust, f32",
            prepare: |source, _| Ok(rust_float(FastActor::new(&source.weights))),
        },
        Target {
            name: "Rust, int8",
            prepare: |source, _| Ok(rust_integer(source)),
        },
        Target {
            name: "ONNX in Rust (onnx:FILE)",
            prepare: |source, _| onnx_in_rust(source),
        },
        Target {
            name: "ONNX Runtime",
            prepare: onnx,
        },
        Target {
            name: "C, f32",
            prepare: |source, folder| c(source, folder, Format::C, &[]),
        },
        Target {
            name: "C, int8",
            prepare: |source, folder| c(source, folder, Format::CInt8, &[]),
        },
    ];
    if vector_extensions().contains(&"AVX2") {
        targets.push(Target {
            name: "C, f32, AVX2",
            prepare: |source, folder| c(source, folder, Format::C, &["-mavx2", "-mfma"]),
        });
        targets.push(Target {
            name: "C, int8, AVX2",
            prepare: |source, folder| c(source, folder, Format::CInt8, &["-mavx2"]),
        });
    }
    if vector_extensions().contains(&"AVX-512 VNNI") {
        const VNNI: [&str; 3] = ["-mavx512vnni", "-mavx512bw", "-mavx512vl"];
        targets.push(Target {
            name: "C, int8, AVX-512 VNNI",
            prepare: |source, folder| c(source, folder, Format::CInt8, &VNNI),
        });
    }
    targets.push(Target {
        name: "eBPF",
        prepare: ebpf,
    });
    targets
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

/// Returns the median over rounds through all observations.
fn rounds(budget: Duration, count: usize, mut round: impl FnMut()) -> f64 {
    let mut times = Vec::new();
    let timed = repeat(budget, || {
        let started = Instant::now();
        round();
        times.push(started.elapsed().as_secs_f64() * 1e9 / count as f64);
        Ok::<u64, std::convert::Infallible>(1)
    });
    match timed {
        Ok(_) => times.sort_by(f64::total_cmp),
        Err(never) => match never {},
    }
    times[times.len() / 2]
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
fn onnx_in_rust(source: &Source) -> Result<Prepared, String> {
    let files = export::export(source, Format::Onnx).map_err(|error| error.to_string())?;
    let file = files.first().ok_or("there is no file")?;
    let network = OnnxNetwork::parse(&file.bytes, Path::new(&file.path), &Settings::default());
    let network = network.map_err(|error| error.to_string())?;
    Ok(rust_float(network.actor()))
}

#[cfg(not(feature = "onnx"))]
fn onnx_in_rust(_source: &Source) -> Result<Prepared, String> {
    Err("this program was built without the ONNX runtime (--features onnx)".to_owned())
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
fn write(source: &Source, folder: &Path, name: &str, format: Format) -> Result<PathBuf, String> {
    let dir = folder.join(name);
    fs::create_dir_all(&dir).map_err(|error| error.to_string())?;
    for file in export::export(source, format).map_err(|error| error.to_string())? {
        fs::write(dir.join(file.path), file.bytes).map_err(|error| error.to_string())?;
    }
    Ok(dir)
}

/// Runs a program to its end; returns its output, or the reason why there is none.
fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut said = text.lines().chain(errors.lines()).map(str::trim);
    let reason = said.rfind(|line| !line.is_empty());
    Err(format!("{program}: {}", reason.unwrap_or("failed")))
}

/// Compiles C with the system's compiler and runs it.
fn c(source: &Source, folder: &Path, format: Format, flags: &[&str]) -> Result<Prepared, String> {
    let name = format!("{format}{}", flags.concat());
    let dir = write(source, folder, &name, format)?;
    let bench = include_str!("../../../../dataplane/bench.c");
    fs::write(dir.join("bench.c"), bench).map_err(|error| error.to_string())?;
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
                let count = u32::try_from(count).map_err(|error| error.to_string())?;
                input.extend(count.to_ne_bytes());
            }
            match format {
                Format::CInt8 => input.extend(&load.codes),
                _ => input.extend(load.observations.iter().flat_map(|x| x.to_ne_bytes())),
            }
            fs::write(dir.join("input"), input).map_err(|error| error.to_string())?;
            let text = output(Command::new(dir.join("bench")).arg(dir.join("input")))?;
            first_number(&text)
        }),
    })
}

fn first_number(text: &str) -> Result<f64, String> {
    let word = text.split_whitespace().next().unwrap_or_default();
    word.parse()
        .map_err(|_| format!("printed `{}`", text.trim()))
}

/// Runs a graph with ONNX Runtime on one thread, if Python has it.
fn onnx(source: &Source, folder: &Path) -> Result<Prepared, String> {
    const PROGRAM: &str = include_str!("onnx.py");
    let dir = write(source, folder, "onnx", Format::Onnx)?;
    output(Command::new("python3").args(["-c", "import numpy, onnxruntime"]))?;
    fs::write(dir.join("bench.py"), PROGRAM).map_err(|error| error.to_string())?;
    Ok(Prepared {
        bytes: None,
        nanoseconds: Box::new(move |load, _| {
            let bytes = load.observations.iter().flat_map(|x| x.to_le_bytes());
            fs::write(dir.join("input"), bytes.collect::<Vec<u8>>())
                .map_err(|error| error.to_string())?;
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
fn ebpf(source: &Source, folder: &Path) -> Result<Prepared, String> {
    let dir = write(source, folder, "ebpf", Format::Ebpf)?;
    write(source, folder, "ebpf", Format::CInt8)?;
    let check = include_str!("../../../../dataplane/check_ebpf.c");
    fs::write(dir.join("check_ebpf.c"), check).map_err(|error| error.to_string())?;
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
