//! The program `bufgym-sonic-agent`: the agent with its options, its log and its exit codes.

mod arguments;
mod error;
mod interrupt;

use std::env::VarError;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use bufgym_models::{FastActor, checkpoint};
use bufgym_sonic::layout::Wanted;
use bufgym_sonic::monitor::Timing;
use bufgym_sonic::profiles::{self, Restored, Writer};
use bufgym_sonic::{Address, Agent, Change, Databases, Error, Event, Login, Settings};
use bufgym_util::input;
use clap::{Args, Parser};
use serde_json::json;

use arguments::SonicAgentArgs;
use error::{CliError, CliResult, ResultExt as _};
use interrupt::Stop;

#[derive(Parser)]
#[command(name = "bufgym-sonic-agent", version)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    args: SonicAgentArgs,
}

/// Options of every subcommand of `bufgym`.
#[derive(Args)]
struct Common {
    /// Taken from `bufgym`; nothing here is random
    #[arg(long, hide = true, allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Print results and errors only
    #[arg(long, short, display_order = 901)]
    quiet: bool,
    /// Print one JSON object on stdout; everything else goes to stderr
    #[arg(long, display_order = 902)]
    json: bool,
}

impl Common {
    /// Prints the result: `value` as one JSON line with `--json`, otherwise `text`, in which names cannot
    /// control a terminal.
    fn print(&self, value: &serde_json::Value, text: &str) -> CliResult {
        let mut out = std::io::stdout().lock();
        let written = match self.json {
            true => writeln!(out, "{value}"),
            false => writeln!(out, "{}", input::lines(text)),
        };
        match written {
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

/// Parses the arguments, runs the agent, and turns an error into one line and an exit code.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            say(error::usage(error));
            return ExitCode::from(2);
        }
        Err(help) => {
            // Nothing useful can be done if stdout is closed.
            let _ = help.print();
            return ExitCode::SUCCESS;
        }
    };
    match run(cli.args, &cli.common) {
        Ok(()) => ExitCode::SUCCESS,
        Err(CliError::Interrupted(code)) => ExitCode::from(code),
        Err(error) => {
            say(format_args!("error: {error}"));
            ExitCode::from(match error {
                CliError::Input(_) => 2,
                _ => 1,
            })
        }
    }
}

/// Prints a line on stderr, without control characters from names or contents of files.
fn say(line: impl std::fmt::Display) {
    let line = input::line(&line.to_string(), error::LINE);
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The environment variable with the password of Redis. An option would show it to everybody who lists
/// processes.
const PASSWORD: &str = "BUFGYM_REDIS_PASSWORD";

/// Largest size of a file with a password, bytes.
const MAX_PASSWORD: u64 = 4 << 10;

/// Longest sleep between checks for a signal.
const NAP: Duration = Duration::from_millis(50);

/// Runs the agent.
fn run(args: SonicAgentArgs, common: &Common) -> CliResult {
    let address: Address = args.redis.parse().or_bad_input()?;
    let login = login(&args)?;
    let Some(folder) = &args.checkpoint else {
        return restore(&address, login.as_ref(), common);
    };
    let (weights, manifest) = checkpoint::load_actor(folder).or_bad_input()?;
    bufgym_sonic::fits(&manifest.low_level)
        .map_err(|error| CliError::bad(format!("{}: {error}", folder.display())))?;
    if args.stale_ms < args.poll_ms {
        return Err(CliError::bad(format!(
            "--stale-ms {} is below --poll-ms {}: counters would count as stopped between two readings",
            args.stale_ms, args.poll_ms
        )));
    }
    let stop =
        interrupt::stop_at_signal("putting the old profiles back; a second signal ends at once")?;
    let databases = Databases::connect_as(&address, login.as_ref()).or_bad_input()?;
    let start = Instant::now();
    let (agent, restored) = Agent::start(
        databases,
        FastActor::new(&weights),
        settings(&args)?,
        start.elapsed(),
    )
    .map_err(at_start)?;
    if restored != Restored::default() {
        common.note(format_args!(
            "an agent that was killed had left profiles: {}",
            describe(restored)
        ));
    }
    disown(&agent.namesakes(), common);
    introduce(&agent, &args, common);
    let running = Running {
        args: &args,
        common,
        stop: &stop,
        start,
    };
    running.run(agent)
}

fn settings(args: &SonicAgentArgs) -> CliResult<Settings> {
    Ok(Settings {
        wanted: Wanted {
            pool: args.pool.clone(),
            ports: args.ports.clone(),
            buffer_bytes: args.buffer_bytes,
        },
        source: args.counters.parse().map_err(CliError::bad)?,
        timing: Timing {
            shortest: Duration::from_millis(args.min_interval_ms),
            longest: Duration::from_millis(args.max_interval_ms),
        },
        stale: Duration::from_millis(args.stale_ms),
        max_threshold: args.max_dynamic_th,
        dry_run: args.dry_run,
    })
}

fn at_start(error: Error) -> CliError {
    match error.is_input() {
        true => CliError::input(error),
        false => CliError::failure(error),
    }
}

/// Returns user and password, if there is a password.
fn login(args: &SonicAgentArgs) -> CliResult<Option<Login>> {
    let password = match &args.redis_password_file {
        Some(path) => Some(password_in(path)?),
        None => match std::env::var(PASSWORD) {
            Ok(password) => Some(password).filter(|password| !password.is_empty()),
            Err(VarError::NotPresent) => None,
            // The error itself would show the password.
            Err(VarError::NotUnicode(_)) => {
                return Err(CliError::bad(format!("{PASSWORD}: not a text in UTF-8")));
            }
        },
    };
    let user = args.redis_user.clone();
    match (user, password) {
        (user, Some(password)) => Ok(Some(Login { user, password })),
        (Some(user), None) => Err(CliError::bad(format!(
            "--redis-user {user} needs a password: give it with --redis-password-file or {PASSWORD}"
        ))),
        (None, None) => Ok(None),
    }
}

/// Reads the password from a file of one line.
fn password_in(path: &Path) -> CliResult<String> {
    let failed = |problem: String| CliError::bad(format!("{}: {problem}", path.display()));
    let text = input::read_text(path, MAX_PASSWORD).map_err(|error| failed(error.to_string()))?;
    let mut lines = text.lines();
    match (lines.next(), lines.next()) {
        (Some(password), None) if !password.is_empty() => Ok(password.to_owned()),
        _ => Err(failed("must be one line, the password of Redis".to_owned())),
    }
}

/// Restores what an agent has left.
fn restore(address: &Address, login: Option<&Login>, common: &Common) -> CliResult {
    let mut databases = Databases::connect_as(address, login).or_bad_input()?;
    databases.claim().or_bad_input()?;
    let restored = profiles::restore(&mut databases).or_failure()?;
    disown(
        &Writer::new(&mut databases).or_failure()?.namesakes(),
        common,
    );
    let value = json!({
        "redis": address.to_string(),
        "restored_queues": restored.queues,
        "removed_profiles": restored.profiles,
    });
    common.print(&value, &describe(restored))
}

/// Reports profiles that stay, because no journal contains them.
fn disown(namesakes: &[&str], common: &Common) {
    let Some(first) = namesakes.first() else {
        return;
    };
    let more = match namesakes.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    common.note(format_args!(
        "BUFFER_PROFILE {first}{more}: named like the agent's, but not in its journal; left alone"
    ));
}

fn describe(restored: Restored) -> String {
    let Restored { queues, profiles } = restored;
    format!("{queues} queue keys have their old profile, {profiles} profiles of the agent removed")
}

fn introduce(agent: &Agent<FastActor>, args: &SonicAgentArgs, common: &Common) {
    let layout = agent.layout();
    let keys: usize = layout.ports.iter().map(|port| port.queues.len()).sum();
    let mode = if args.dry_run { ", dry run" } else { "" };
    let idle = match layout.idle {
        0 => String::new(),
        idle => format!(" ({idle} down or with zero profiles)"),
    };
    common.note(format_args!(
        "{}: {} of {} ports{idle}, {keys} queue keys in {} of {} bytes, beta {} bytes{mode}",
        args.redis,
        layout.ports.len(),
        layout.present,
        layout.pool,
        layout.buffer_bytes,
        layout.beta(),
    ));
}

/// A running agent.
struct Running<'a> {
    args: &'a SonicAgentArgs,
    common: &'a Common,
    stop: &'a Stop,
    start: Instant,
}

impl Running<'_> {
    fn run(&self, mut agent: Agent<FastActor>) -> CliResult {
        let failed = self.poll_until_told(&mut agent).err();
        let (tally, ports) = (agent.tally(), agent.layout().ports.len());
        let finished = agent.finish();
        let restored = match (failed, finished) {
            (Some(failed), Ok(restored)) => {
                let done = describe(restored);
                return Err(CliError::failure(anyhow::anyhow!("{failed} ({done})")));
            }
            (Some(failed), Err(error)) => {
                let remedy = "bufgym sonic-agent --restore puts the old profiles back";
                return Err(CliError::failure(anyhow::anyhow!(
                    "{failed}; and {error}; {remedy}"
                )));
            }
            (None, Err(error)) => {
                let remedy = "bufgym sonic-agent --restore puts the old profiles back";
                return Err(CliError::failure(anyhow::anyhow!("{error}; {remedy}")));
            }
            (None, Ok(restored)) => restored,
        };
        let value = json!({
            "redis": self.args.redis,
            "dry_run": self.args.dry_run,
            "ports": ports,
            "readings": tally.readings,
            "decisions": tally.decisions,
            "writes": tally.writes,
            "stale": tally.stale,
            "restored_queues": restored.queues,
            "removed_profiles": restored.profiles,
        });
        let text = format!(
            "{} readings, {} decisions, {} writes, counters stopped {} times; {}",
            tally.readings,
            tally.decisions,
            tally.writes,
            tally.stale,
            describe(restored)
        );
        self.common.print(&value, &text)?;
        match self.is_told() {
            true => Err(CliError::Interrupted(self.stop.exit_code())),
            false => Ok(()),
        }
    }

    fn is_told(&self) -> bool {
        self.stop.flag().load(Ordering::SeqCst)
    }

    /// Polls until a signal arrives or the time is over. Reconnects if the connection is gone.
    fn poll_until_told(&self, agent: &mut Agent<FastActor>) -> Result<(), Error> {
        let end = self.args.for_s.map(Duration::from_secs);
        let mut next = Duration::ZERO;
        let mut connected = true;
        while !self.is_told() && end.is_none_or(|end| self.start.elapsed() < end) {
            let clock = self.start.elapsed();
            if clock < next {
                sleep(NAP.min(next - clock));
                continue;
            }
            next = clock + Duration::from_millis(self.args.poll_ms);
            if !connected {
                connected = agent.reconnect().is_ok();
                if !connected {
                    continue;
                }
                self.log(clock, "connected again");
            }
            match agent.poll(clock) {
                Ok(event) => self.report(clock, &event),
                Err(error) if error.is_disconnected() => {
                    self.log(clock, &format!("{error}; trying again"));
                    connected = false;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn report(&self, clock: Duration, event: &Event) {
        match event {
            Event::Nothing | Event::Counted => {}
            Event::Began => self.log(clock, "counting"),
            Event::Stale(restored) => {
                let done = describe(*restored);
                self.log(clock, &format!("the counters have stopped: {done}"));
            }
            Event::Decided {
                cause,
                changes,
                writes,
            } => {
                let change =
                    |change: &Change| format!("{} {} -> {}", change.port, change.from, change.to);
                let changes: Vec<String> = changes.iter().map(change).collect();
                let changes = match changes.is_empty() {
                    true => "no change".to_owned(),
                    false => changes.join(", "),
                };
                self.log(clock, &format!("{}: {changes}", cause.name()));
                if self.args.dry_run {
                    for write in writes {
                        self.log(clock, &format!("would write: {write}"));
                    }
                }
            }
        }
    }

    /// Writes a line of the log to stderr.
    fn log(&self, clock: Duration, text: &str) {
        self.common
            .note(format_args!("{:10.3} s  {text}", clock.as_secs_f64()));
    }
}
