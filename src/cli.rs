//! The command line: converts arguments into objects and runs them. One file per subcommand.

mod bench;
mod choose;
mod credence;
mod curves;
pub mod embed;
mod error;
mod eval;
mod explain;
mod export;
mod figures;
mod former;
mod headroom;
mod infer;
mod interrupt;
mod output;
mod policies;
mod policy;
mod progress;
#[cfg(test)]
mod reference;
mod scenario;
mod scenarios;
mod sim;
mod slotted;
mod sonic_agent;
#[cfg(target_os = "linux")]
mod testbed;
mod trace;
mod train;
mod tune;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use bufgym::eval::EvalError;
use bufgym::reproduce::PapersError;
use bufgym::train::remote::Cluster;
use bufgym::train::tune::KeptError;
use bufgym::train::{Backend, TrainError};
use bufgym::util::input;
use clap::{Args, Parser, Subcommand};

use error::{CliError, CliResult, ResultExt as _};

const EXIT_SUCCESS: u8 = 0;
/// Exit code of a failure of the work itself.
const EXIT_FAILURE: u8 = 1;
/// Exit code of bad usage and bad input.
const EXIT_BAD_INPUT: u8 = 2;

#[derive(Parser)]
#[command(
    name = "bufgym",
    version,
    about = "Learn and compare buffer-management policies for shared-memory switches",
    after_help = "Examples:\n  \
        bufgym train --workers 32 --objective fct\n  \
        bufgym eval --out reports/mine --policy ndt:runs/fct-ndt-16x1g-1/checkpoints/best\n  \
        bufgym sim --policy dt:alpha=8 --scenario ndt-16x1g --seed 3 --out out"
)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// Options of every subcommand.
#[derive(Args, Clone)]
struct Common {
    /// Seed of everything random [default: 1]
    #[arg(
        long,
        global = true,
        value_name = "S",
        display_order = 900,
        allow_negative_numbers = true
    )]
    seed: Option<u64>,
    /// Threads to compute on; results do not depend on it [default: one for each core]
    #[arg(
        long,
        global = true,
        value_name = "N",
        display_order = 901,
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(u16).range(1..=4096)
    )]
    threads: Option<u16>,
    /// Print results and errors only
    #[arg(long, short, global = true, display_order = 902)]
    quiet: bool,
    /// Print one JSON object on stdout; everything else goes to stderr
    #[arg(long, global = true, display_order = 903)]
    json: bool,
    /// Hosts that simulate instead of this process, where the program that called has some.
    #[arg(skip)]
    cluster: Option<Cluster>,
}

impl Common {
    /// Returns where simulations run: on the hosts, if there are any.
    fn backend(&self) -> Backend {
        self.cluster.as_ref().map(Backend::from).unwrap_or_default()
    }

    /// Returns the given seed, or 1.
    fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// Says where the files are, unless the result is for programs.
    fn note_written(&self, output: &output::Output) {
        if !self.json {
            self.note(format!("written to {}", output.path().display()));
        }
    }

    /// Returns a line with the place of a command's main file, unless the result is for programs. Without an output
    /// folder it says what `--out` would add.
    fn place(&self, output: Option<&output::Output>, what: &str, file: &str, more: &str) -> String {
        match output {
            Some(output) if !self.json => {
                format!("\n{what}: {}", output::shown(&output.path().join(file)))
            }
            Some(_) => String::new(),
            None => {
                self.note(format_args!("no files written; give --out DIR for {more}"));
                String::new()
            }
        }
    }

    /// Prints the result of a command: `value` as one JSON line with `--json`, otherwise `text`, in which
    /// names and contents of files cannot control a terminal.
    fn print(&self, value: &serde_json::Value, text: &str) -> CliResult {
        let mut out = std::io::stdout().lock();
        let written = if self.json {
            writeln!(out, "{value}")
        } else {
            writeln!(out, "{}", input::lines(text))
        };
        match written {
            // The reader of a pipe has read enough (`bufgym list policies | head -1`).
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(CliError::failure),
        }
    }

    /// Prints a remark on stderr, unless `--quiet`.
    fn note(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            say(text);
        }
    }
}

/// Converts errors that know whether the input was wrong.
macro_rules! judged {
    ($($error:ty),*) => {$(
        impl From<$error> for CliError {
            fn from(error: $error) -> CliError {
                match error.is_bad_input() {
                    true => CliError::input(error),
                    false => CliError::failure(error),
                }
            }
        }
    )*};
}

judged!(EvalError, KeptError, PapersError, TrainError);

#[derive(Subcommand)]
enum Command {
    Train(train::TrainArgs),
    Eval(eval::EvalArgs),
    Headroom(headroom::HeadroomArgs),
    Explain(explain::ExplainArgs),
    Figures(figures::FiguresArgs),
    Export(export::ExportArgs),
    /// Draw the learning curves of several trainings, or choose the best
    #[command(
        subcommand,
        after_help = "Examples:\n  \
            bufgym runs curves runs/fct-ndt-16x1g-1 runs/fct-ndt-16x1g-2 --out learning.svg\n  \
            bufgym runs choose runs/fct-ndt-16x1g-1 runs/fct-ndt-16x1g-2 --out checkpoints/mine"
    )]
    Runs(Runs),
    Sim(sim::SimArgs),
    Trace(trace::TraceArgs),
    Tune(tune::TuneArgs),
    Infer(infer::InferArgs),
    /// List policies or scenarios, or show one
    #[command(
        subcommand,
        after_help = "Examples:\n  \
            bufgym list policies\n  \
            bufgym list policies edt\n  \
            bufgym list scenarios ndt-16x1g > mine.toml"
    )]
    List(List),
    Credence(credence::CredenceArgs),
    Slotted(slotted::SlottedArgs),
    SonicAgent(sonic_agent::SonicAgentArgs),
    #[cfg(target_os = "linux")]
    Testbed(testbed::TestbedArgs),
    Bench(bench::BenchArgs),
}

#[derive(Subcommand)]
enum Runs {
    Curves(curves::CurvesArgs),
    Choose(choose::ChooseArgs),
}

#[derive(Subcommand)]
enum List {
    Policies(policies::PoliciesArgs),
    Scenarios(scenarios::ScenariosArgs),
}

impl Command {
    /// Returns true if hosts of a cluster can simulate for the command.
    fn has_hosts(&self) -> bool {
        matches!(
            self,
            Self::Train(_) | Self::Eval(_) | Self::Tune(_) | Self::Figures(_)
        )
    }
}

/// Parses the arguments, runs the subcommand, and turns an error into one line and an exit code.
pub fn main() -> ExitCode {
    ExitCode::from(run_with(std::env::args_os().collect(), None))
}

/// Does the same as [`main`] with these arguments, the first of which is the program's name. Commands that
/// support hosts use those of `cluster`.
fn run_with(arguments: Vec<OsString>, cluster: Option<Cluster>) -> u8 {
    let (arguments, note) = former::present(arguments);
    let mut cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return usage(error),
    };
    cli.common.cluster = cluster;
    let log = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("BUFGYM_LOG")
                .unwrap_or_else(|_| if cli.common.quiet { "error" } else { "warn" }.into()),
        )
        .without_time();
    // It already exists if a program runs several commands.
    let _ = log.try_init();
    let common = cli.common.clone();
    match on_threads(common.threads, || run(cli, &arguments)) {
        Ok(()) => {
            note.into_iter().for_each(|note| common.note(note));
            EXIT_SUCCESS
        }
        Err(CliError::Interrupted(code)) => code,
        Err(error) => {
            say(format_args!("error: {error}"));
            match error {
                CliError::Input(_) => EXIT_BAD_INPUT,
                _ => EXIT_FAILURE,
            }
        }
    }
}

/// Prints a line on stderr, without control characters from names or contents of files. Stderr may be closed
/// or on a full disk, which must not end the work.
fn say(line: impl std::fmt::Display) {
    let line = input::line(&line.to_string(), error::LINE);
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Runs `work` on so many threads, by default those that the process shares. A process may run several commands.
fn on_threads(threads: Option<u16>, work: impl FnOnce() -> CliResult + Send) -> CliResult {
    let Some(threads) = threads else {
        return work();
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.into());
    pool.build().or_failure()?.install(work)
}

fn run(cli: Cli, arguments: &[OsString]) -> CliResult {
    let common = cli.common;
    if common.cluster.is_some() && !cli.command.has_hosts() {
        return Err(CliError::bad(
            "hosts of a cluster simulate for train, eval, tune and figures; run other commands without them",
        ));
    }
    match cli.command {
        Command::Train(args) => train::run(args, &common),
        Command::Eval(args) => eval::run(args, &common),
        Command::Headroom(args) => headroom::run(args, &common),
        Command::Explain(args) => explain::run(args, &common),
        Command::Figures(args) => figures::run(args, &common),
        Command::Export(args) => export::run(args, &common),
        Command::Runs(Runs::Curves(args)) => curves::run(args, &common),
        Command::Runs(Runs::Choose(args)) => choose::run(args, &common),
        Command::Sim(args) => sim::run(args, &common),
        Command::Trace(args) => trace::run(args, &common),
        Command::Tune(args) => tune::run(args, &common),
        Command::Infer(args) => infer::run(args, &common),
        Command::List(List::Policies(args)) => policies::run(args, &common),
        Command::List(List::Scenarios(args)) => scenarios::run(args, &common),
        Command::Credence(args) => credence::run(args, &common),
        Command::Slotted(args) => slotted::run(args, &common),
        Command::SonicAgent(_) => sonic_agent::run(arguments),
        #[cfg(target_os = "linux")]
        Command::Testbed(args) => testbed::run(args, &common),
        Command::Bench(args) => bench::run(args, &common),
    }
}

/// Prints help and version to stdout; turns a usage error into one line on stderr.
fn usage(error: clap::Error) -> u8 {
    use clap::error::ErrorKind;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Nothing useful can be done if stdout is closed.
            let _ = error.print();
            EXIT_SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            EXIT_BAD_INPUT
        }
        _ => {
            say(error::usage(error));
            EXIT_BAD_INPUT
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_subcommand_shows_an_example() {
        for command in Cli::command().get_subcommands() {
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(
                help.contains("bufgym "),
                "{} has no example",
                command.get_name()
            );
        }
    }
}
