//! Runs the program with a library between it and the C library that injects faults (`shim.c`).

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::harness::{Run, Sandbox};

/// The fault at an operation of the file system.
#[derive(Clone, Copy)]
pub enum Fault {
    /// SIGKILL.
    Kill,
    /// From then on the disk is full (ENOSPC).
    Full,
    /// From then on the disk fails (EIO).
    Broken,
    /// From then on the file system is read-only (EROFS).
    ReadOnly,
}

impl Fault {
    fn number(self) -> i32 {
        match self {
            Fault::Kill => 0,
            Fault::Full => 28,
            Fault::Broken => 5,
            Fault::ReadOnly => 30,
        }
    }

    /// Returns the system's message for the fault.
    pub fn message(self) -> String {
        let text = std::io::Error::from_raw_os_error(self.number()).to_string();
        text.split(" (").next().unwrap_or_default().to_owned()
    }
}

/// The compiled library.
pub struct Shim {
    library: PathBuf,
}

impl Shim {
    /// Compiles the library with the compiler that Rust links with.
    pub fn new() -> Shim {
        static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| {
            let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/faults/shim.c");
            let name = format!("faults-{}.so", std::process::id());
            let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
            let output = Command::new("cc")
                .args([
                    "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", source,
                ])
                .arg("-o")
                .arg(&library)
                .arg("-ldl")
                .output()
                .expect("cc, which Rust links with");
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{errors}");
            library
        });
        Shim {
            library: library.clone(),
        }
    }

    fn command(&self, sandbox: &Sandbox, arguments: &str) -> Command {
        let mut command = sandbox.command(arguments);
        command
            .env("LD_PRELOAD", &self.library)
            .env("BUFGYM_FAULT_BELOW", sandbox.path(""));
        command
    }

    /// Returns the number of operations of a run without faults, which must succeed.
    pub fn count(&self, sandbox: &Sandbox, arguments: &str) -> u64 {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut command = self.command(sandbox, arguments);
        let run = Run::from(
            command
                .env("BUFGYM_FAULT_COUNT", file.path())
                .output()
                .unwrap(),
        );
        assert_eq!(run.code, Some(0), "{arguments}: {}", run.stderr);
        fs::read_to_string(file.path())
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    }

    /// Runs with a fault at an operation, counted from 1.
    pub fn run(&self, sandbox: &Sandbox, arguments: &str, at: u64, fault: Fault) -> Run {
        let mut command = self.command(sandbox, arguments);
        command
            .env("BUFGYM_FAULT_AT", at.to_string())
            .env("BUFGYM_FAULT_DO", fault.number().to_string());
        Run::from(command.output().unwrap())
    }
}

/// Returns the operations of 1 to `count` to test: all of them if `BUFGYM_FAULTS` is `all`, otherwise at most
/// `most`, evenly spaced, with the first and the last.
pub fn points(count: u64, most: u64) -> Vec<u64> {
    let all = std::env::var("BUFGYM_FAULTS").is_ok_and(|wanted| wanted == "all");
    if all || count <= most {
        return (1..=count).collect();
    }
    (0..most)
        .map(|index| 1 + index * (count - 1) / (most - 1))
        .collect()
}
