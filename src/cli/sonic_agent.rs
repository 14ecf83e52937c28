//! `bufgym sonic-agent`: runs the agent for switches with SONiC, which is a program of its own.

mod arguments;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use arguments::SonicAgentArgs;

use super::error::{CliError, CliResult};

/// Name of this command.
const NAME: &str = "sonic-agent";

/// Name of the program.
const PROGRAM: &str = "bufgym-sonic-agent";

/// Runs the program with the same arguments. `arguments` are all of this process.
///
/// # Errors
/// Bad input: there is no such program. Failure: it cannot be started.
pub fn run(arguments: &[OsString]) -> CliResult {
    let program = found().ok_or_else(|| {
        CliError::bad(format!(
            "{NAME} runs {PROGRAM}, which is neither next to this program nor on the path; \
             install it with `cargo install --path adapters/sonic`"
        ))
    })?;
    let mut agent = Command::new(&program);
    agent.args(for_agent(arguments));
    let failed =
        |error| CliError::failure(anyhow::Error::new(error).context(program.display().to_string()));
    replace(agent).map_err(failed)
}

/// Returns the arguments behind the program's name without the name of this command and without the number of threads:
/// the agent has one. The options that may stand before the name have no such value.
fn for_agent(arguments: &[OsString]) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.iter().skip(1).cloned().collect();
    if let Some(place) = arguments.iter().position(|argument| argument == NAME) {
        arguments.remove(place);
    }
    if let Some(place) = arguments
        .iter()
        .position(|argument| argument == "--threads")
    {
        arguments.drain(place..(place + 2).min(arguments.len()));
    }
    arguments
}

/// Returns the program: that next to this one, or the first on the path.
fn found() -> Option<PathBuf> {
    let name = format!("{PROGRAM}{}", env::consts::EXE_SUFFIX);
    let own = env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(Path::to_owned);
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(env::split_paths(&path));
    // A relative folder depends on where the command is called.
    let folders = folders.filter(|folder| folder.is_absolute());
    folders
        .map(|folder| folder.join(&name))
        .find(|program| program.is_file())
}

/// Becomes the program, so that signals reach it.
#[cfg(unix)]
fn replace(mut program: Command) -> std::io::Result<()> {
    use std::os::unix::process::CommandExt as _;
    Err(program.exec())
}

/// Runs the program and ends as it has ended.
#[cfg(not(unix))]
fn replace(mut program: Command) -> std::io::Result<()> {
    let status = program.status()?;
    std::process::exit(status.code().unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_gets_all_arguments_but_the_name_of_the_command() {
        let arguments = "bufgym --threads 2 -q sonic-agent --pool sonic-agent"
            .split(' ')
            .map(OsString::from);
        let arguments: Vec<OsString> = arguments.collect();
        assert_eq!(for_agent(&arguments), ["-q", "--pool", "sonic-agent"]);
    }
}
