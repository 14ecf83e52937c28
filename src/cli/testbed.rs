//! `bufgym testbed`: real TCP between network namespaces through a software switch.

mod compare;
mod play;

use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bufgym::eval::Entrant;
use bufgym::eval::testbed::Truth;
use bufgym::sim::scenario::Scenario;
use bufgym::sim::traffic::Trace;
use bufgym::sim::units::{self, Instant};
use bufgym::testbed::{self, Decider, Run, Settings, TestbedError};
use clap::{Args, Subcommand};

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};
use super::interrupt::Stop;
use super::scenario::ScenarioArgs;

/// The arguments with which this program runs as the process of a host.
const HOST: [&str; 2] = ["testbed", "host"];

/// The default scenario, which a program on one processor can serve.
const SCENARIO: &str = "testbed-4x100m";

/// Help of `--set`.
const SET: &str =
    "Change one setting of the scenario, for example `rate_bps=50000000`; may be repeated";

/// Default time for flows to finish after the last one has started, seconds.
const PATIENCE_S: u64 = 180;

/// Largest number of attempts until a run counts.
const ATTEMPTS: u64 = 3;

/// Play flows through real TCP and a software switch on this machine (Linux; needs root or `unshare -Urn`)
#[derive(Args)]
#[command(
    after_help = "Hosts are network namespaces with the kernel's TCP; the switch is a program with the simulator's \
    policies. A run takes as long as its trace. Namespaces and interfaces end with the command, however it \
    ends. docs/testbed.md says what it can and cannot show.\n\nExamples:\n  \
    sudo bufgym testbed run --policy dt --seed 3 --out out\n  \
    unshare -Urn bufgym testbed run --policy ndt --trace flows.csv --set ports=4 --out out --timeline\n  \
    sudo bufgym testbed run --policy dt:alpha=8 --congestion bbr --set rate_bps=50000000\n  \
    sudo bufgym testbed compare --policy edt --policy st --policy ndt --traces 8 --out report"
)]
pub struct TestbedArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Run(play::PlayArgs),
    Compare(compare::CompareArgs),
    /// The process of a host, which the switch starts
    #[command(hide = true)]
    Host,
}

/// Runs the command.
pub fn run(args: TestbedArgs, common: &Common) -> CliResult {
    match args.action {
        Action::Run(args) => play::run(&args, common),
        Action::Compare(args) => compare::run(&args, common),
        Action::Host => match testbed::serve_host() {
            true => Ok(()),
            false => Err(CliError::Interrupted(super::EXIT_FAILURE)),
        },
    }
}

/// Which scenario, with another default than in other commands.
#[derive(Args, Clone)]
#[command(mut_arg("scenario", |arg| arg.default_value(SCENARIO)))]
#[command(mut_arg("set", |arg| arg.help(SET)))]
struct Chosen {
    #[command(flatten)]
    args: ScenarioArgs,
}

/// Settings for playing flows, besides the scenario.
#[derive(Args, Clone, Default)]
pub(super) struct Playing {
    /// Congestion control of the kernel, such as cubic, reno, bbr or dctcp [default: that of the
    /// scenario's transport]
    #[arg(long, value_name = "NAME")]
    pub(super) congestion: Option<String>,
    /// Longest time for the flows of a trace, seconds [default: 180 s after the start of the last one]
    #[arg(long, value_name = "S", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) limit_s: Option<u64>,
}

/// One run of the testbed.
pub(super) struct Order<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) trace: &'a Trace,
    pub(super) policy: &'a Entrant,
    pub(super) playing: &'a Playing,
    pub(super) timeline: Option<units::Duration>,
    pub(super) capture: Option<&'a Path>,
}

impl Order<'_> {
    /// Plays the run.
    fn play(&self, stop: &Stop) -> CliResult<Run> {
        let settings = Settings {
            host_command: host_command()?,
            congestion: self.playing.congestion.clone(),
            timeline: self.timeline,
            capture: self.capture.map(Path::to_path_buf),
            limit: self.limit(),
        };
        let played = run_policy(
            self.policy,
            self.scenario,
            self.trace,
            &settings,
            stop.flag(),
        );
        played.map_err(|error| match error {
            TestbedError::Stopped => CliError::Interrupted(stop.exit_code()),
            error if error.is_input() => CliError::input(error),
            error => CliError::failure(error),
        })
    }

    /// Plays the run until one counts, at most [`ATTEMPTS`] times. Returns it with the number of void runs
    /// before it.
    pub(super) fn play_until_valid(&self, stop: &Stop, common: &Common) -> CliResult<(Run, u64)> {
        let mut reason = String::new();
        for void_runs in 0..ATTEMPTS {
            let mut run = self.play(stop)?;
            match run.truth.void.take() {
                None => return Ok((run, void_runs)),
                Some(void) => reason = void,
            }
            common.note(format!(
                "{}: the run is void and played again: {reason}",
                self.policy.name()
            ));
        }
        Err(CliError::failure(anyhow::anyhow!(
            "{}: {ATTEMPTS} runs were void, the last one because {reason}",
            self.policy.name()
        )))
    }

    fn limit(&self) -> Duration {
        let last = self.trace.flows.iter().map(|flow| flow.start).max();
        let last = Duration::from_nanos(last.unwrap_or(Instant::ZERO).as_ns());
        match self.playing.limit_s {
            Some(seconds) => Duration::from_secs(seconds),
            None => last + Duration::from_secs(PATIENCE_S),
        }
    }
}

fn run_policy(
    policy: &Entrant,
    scenario: &Scenario,
    trace: &Trace,
    settings: &Settings,
    stop: &AtomicBool,
) -> Result<Run, TestbedError> {
    let controller = || {
        policy
            .controller()
            .expect("a policy without a rule decides")
            .0
    };
    let decider = match (policy.spec(), policy.controller()) {
        (Some(spec), _) => Decider::Rule(spec),
        (None, Some((_, low_level))) => Decider::Learned(&controller, low_level),
        (None, None) => {
            let problem = format!("policy {} neither is a rule nor decides", policy.name());
            return Err(TestbedError::Input(problem));
        }
    };
    testbed::run(scenario, trace, &decider, settings, stop)
}

/// Returns the command that starts this program as a host.
///
/// # Errors
/// Bad input: the program runs inside Python.
fn host_command() -> CliResult<Vec<OsString>> {
    let program = std::env::current_exe().or_failure()?;
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("python") {
        return Err(CliError::bad(
            "testbed: hosts are processes of the program bufgym, which the Python package does not \
             have; build it from the sources",
        ));
    }
    // The link refers to this program even if its file is replaced meanwhile.
    let program = OsString::from("/proc/self/exe");
    let arguments = HOST.map(OsString::from);
    Ok(std::iter::once(program).chain(arguments).collect())
}

/// Returns the measurement quality of a run that void ones preceded.
pub(super) fn truth(run: &Run, void_runs: u64) -> Truth {
    let truth = &run.truth;
    Truth {
        late_p50_us: truth.late_us.p50,
        late_p99_us: truth.late_us.p99,
        packet_us: truth.packet_us,
        cpu_headroom: truth.cpu_headroom,
        longest_stall_us: truth.longest_stall_us,
        start_late_p99_us: truth.start_late_us.p99,
        decision_p99_us: truth.decision_us.p99,
        rtt_us: truth.rtt_us,
        rtt_ideal_us: truth.rtt_ideal_us,
        load_average: truth.load_average,
        void_runs,
    }
}

/// Describes the kernel and the processors.
pub(super) fn machine() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!("Linux {} with {processors} processors", kernel.trim())
}
