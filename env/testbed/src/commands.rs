//! The programs of iproute2, which set up interfaces.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::TestbedError;

/// Runs lines of `ip`; the first that fails ends the batch.
pub(crate) fn ip(lines: &str) -> Result<(), TestbedError> {
    batch("ip", &["-batch", "-"], lines)
}

/// Runs lines of `tc`.
pub(crate) fn tc(lines: &str) -> Result<(), TestbedError> {
    batch("tc", &["-batch", "-"], lines)
}

/// Returns the number of packets that the queue disciplines of an interface have dropped.
pub(crate) fn qdisc_drops(interface: &str) -> Result<u64, TestbedError> {
    #[derive(Deserialize)]
    struct Discipline {
        #[serde(default)]
        drops: u64,
    }
    let arguments = ["-json", "-statistics", "qdisc", "show", "dev", interface];
    let output = Command::new("tc").args(arguments).output();
    let output = output.map_err(|error| failure("tc", &error.to_string()))?;
    if !output.status.success() {
        return Err(failure("tc", &String::from_utf8_lossy(&output.stderr)));
    }
    let disciplines: Vec<Discipline> = serde_json::from_slice(&output.stdout)
        .map_err(|error| failure("tc -json", &error.to_string()))?;
    Ok(disciplines.iter().map(|discipline| discipline.drops).sum())
}

/// Returns a hardware address in the notation of `ip`.
pub(crate) fn hardware(address: [u8; 6]) -> String {
    address.map(|byte| format!("{byte:02x}")).join(":")
}

/// Runs a shell script with private mounts. Returns true if it succeeded. It fails without `unshare`
/// and `mount` of util-linux, or if mounts are forbidden.
pub(crate) fn with_own_mounts(script: &str) -> bool {
    let status = Command::new("unshare")
        .args(["--mount", "sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// Checks that the programs are available.
///
/// # Errors
/// Bad input, naming the missing programs.
pub(crate) fn check() -> Result<(), TestbedError> {
    for program in ["ip", "tc"] {
        let found = Command::new(program)
            .arg("-Version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if let Err(error) = found {
            return Err(TestbedError::Input(format!(
                "the program {program} cannot be run ({error}): install iproute2"
            )));
        }
    }
    Ok(())
}

fn batch(program: &str, arguments: &[&str], lines: &str) -> Result<(), TestbedError> {
    let failed = |error: std::io::Error| failure(program, &error.to_string());
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(lines.as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failure(
            &format!("{program} {}", lines.lines().next().unwrap_or_default()),
            &String::from_utf8_lossy(&output.stderr),
        )),
    }
}

fn failure(command: &str, message: &str) -> TestbedError {
    TestbedError::Command {
        command: command.to_owned(),
        message: message.trim().to_owned(),
    }
}
