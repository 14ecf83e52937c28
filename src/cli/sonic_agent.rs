//! `bufgym sonic-agent`: sets the buffer profiles of a switch with SONiC.

use std::env::VarError;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use bufgym::models::FastActor;
use bufgym::sim::input;
use bufgym::sonic::counters::Source;
use bufgym::sonic::layout::Wanted;
use bufgym::sonic::monitor::Timing;
use bufgym::sonic::profiles::{self, Restored, Writer};
use bufgym::sonic::{self, Address, Agent, Databases, Error, Event, Login, Settings};
use clap::Args;
use serde_json::json;

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};
use super::interrupt::{self, Stop};
use super::policy;

/// Set the buffer profiles of a switch with SONiC by a learned policy
#[derive(Args)]
#[command(
    after_help = "Counters come from COUNTERS_DB; profiles go to CONFIG_DB, and the old ones come back at the end. \
    docs/sonic.md has all of it.\n\nExamples:\n  \
    bufgym sonic-agent --redis unix:/var/run/redis/redis.sock --checkpoint checkpoints/ndt-fct-dt --dry-run\n  \
    bufgym sonic-agent --redis 127.0.0.1:6379 --checkpoint checkpoints/ndt-fct-dt --min-interval-ms 5000\n  \
    bufgym sonic-agent --redis unix:/var/run/redis/redis.sock --restore"
)]
pub struct SonicAgentArgs {
    /// Redis of the switch: unix:/PATH or HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    redis: String,
    /// User of Redis, where its access control list has users [default: the default user]
    #[arg(long, value_name = "NAME")]
    redis_user: Option<String>,
    /// File with the password of Redis, one line [default: the variable BUFGYM_REDIS_PASSWORD, or none]
    #[arg(long, value_name = "FILE")]
    redis_password_file: Option<PathBuf>,
    /// Checkpoint folder of a network that sets the alpha of Dynamic Threshold alone
    #[arg(long, value_name = "DIR", required_unless_present = "restore")]
    checkpoint: Option<PathBuf>,
    /// Write nothing; print what would be written
    #[arg(long, conflicts_with = "restore")]
    dry_run: bool,
    /// Put back what an agent that was killed has left, and end
    #[arg(long, conflicts_with = "checkpoint")]
    restore: bool,
    /// Ports to control, with commas between them [default: all that are up and have a queue in the pool]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    ports: Vec<String>,
    /// Buffer pool whose queues are controlled
    #[arg(long, value_name = "NAME", default_value = "egress_lossy_pool")]
    pool: String,
    /// Size of the pool, bytes [default: as in the databases]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    buffer_bytes: Option<u64>,
    /// Counters of what was sent and lost: queue or port
    #[arg(long, value_name = "SOURCE", default_value = "queue")]
    counters: Source,
    /// Time between readings of the databases, ms
    #[arg(long, value_name = "MS", default_value = "1000", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    poll_ms: u64,
    /// Shortest time between decisions, and so between writes to a queue, ms
    #[arg(long, value_name = "MS", default_value = "1000", value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    min_interval_ms: u64,
    /// Longest time between decisions, ms; 0: off
    #[arg(long, value_name = "MS", default_value = "0", value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    max_interval_ms: u64,
    /// Without new counters for so long, the old profiles come back, ms
    #[arg(long, value_name = "MS", default_value = "30000", value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    stale_ms: u64,
    /// Largest dynamic_th that the switch takes
    #[arg(long, value_name = "N", default_value = "5", allow_negative_numbers = true, value_parser = clap::value_parser!(i8).range(-2..=5))]
    max_dynamic_th: i8,
    /// End after so long, s [default: at Ctrl-C]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    for_s: Option<u64>,
}

/// The environment variable with the password of Redis. An option would show it to everybody who lists
/// processes.
const PASSWORD: &str = "BUFGYM_REDIS_PASSWORD";

/// Largest size of a file with a password, bytes.
const MAX_PASSWORD: u64 = 4 << 10;

/// Longest sleep between checks for a signal.
const NAP: Duration = Duration::from_millis(50);

/// Runs the command.
pub fn run(args: SonicAgentArgs, common: &Common) -> CliResult {
    let address: Address = args.redis.parse().or_bad_input()?;
    let login = login(&args)?;
    let Some(folder) = &args.checkpoint else {
        return restore(&address, login.as_ref(), common);
    };
    let (weights, manifest) = policy::load_checkpoint(folder)?;
    sonic::fits(&manifest.low_level)
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
        settings(&args),
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

fn settings(args: &SonicAgentArgs) -> Settings {
    Settings {
        wanted: Wanted {
            pool: args.pool.clone(),
            ports: args.ports.clone(),
            buffer_bytes: args.buffer_bytes,
        },
        source: args.counters,
        timing: Timing {
            shortest: Duration::from_millis(args.min_interval_ms),
            longest: Duration::from_millis(args.max_interval_ms),
        },
        stale: Duration::from_millis(args.stale_ms),
        max_threshold: args.max_dynamic_th,
        dry_run: args.dry_run,
    }
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
                let change = |change: &sonic::Change| {
                    format!("{} {} -> {}", change.port, change.from, change.to)
                };
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
