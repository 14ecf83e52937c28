//! `bufgym tune`: the best parameters of a policy on training traces.

mod linear;

use std::path::{Path, PathBuf};

use bufgym::env::control::{BasePolicy, Objective};
use bufgym::eval::entrant::LINEAR;
use bufgym::eval::metric::Metric;
use bufgym::eval::tune::{self, Candidate, Stored, TuneConfig, Tuning};
use bufgym::eval::{Entrant, EvalError};
use bufgym::sim::input;
use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::PolicySpec;
use clap::Args;
use serde_json::json;

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};
use super::output::{Output, file_name};
use super::scenario::{ScenarioArgs, check_memory};

include!(concat!(env!("OUT_DIR"), "/tuned.rs"));

/// Folder of the results, one file per scenario.
const FOLDER: &str = "checkpoints/tuned";

/// Suffix of a policy string that stands for the tuned parameters.
const TUNED: &str = ":tuned";

/// Search a policy's parameters on training traces
#[derive(Args)]
#[command(
    after_help = "The result for mean FCT is kept in checkpoints/tuned, and `P:tuned` is then a policy \
    wherever that scenario is used. Results for other objectives are printed only.\n\n\
    `linear` is a rule of twelve weights that sets the alpha of every port from what the switch sees, as ndt's \
    network does. Its file is a policy too: linear:FILE.\n\nExamples:\n  \
    bufgym tune --policy dt\n  \
    bufgym tune --policy edt --scenario ndt-96x10g-incast --traces 32\n  \
    bufgym tune --policy dt --objective loss\n  \
    bufgym tune --policy linear --low-level fab:alpha_short=2048 --generations 40 --out rule.json\n  \
    bufgym eval --policy dt:tuned --policy edt:tuned --policy linear:rule.json"
)]
pub struct TuneArgs {
    /// Policy to tune, or `linear`; the search starts from its parameters
    #[arg(long, value_name = "P")]
    policy: String,
    /// What to judge by, as in training: fct, loss, throughput, delay or fairness
    #[arg(long, value_name = "OBJECTIVE", default_value = "fct")]
    objective: Objective,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Training traces
    #[arg(long, value_name = "N", default_value_t = tune::TRACES, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    traces: u64,
    /// Of `linear`: the heuristic whose alpha is set: dt, edt, tdt, fab, ib, abm, occamy [default: that of `bufgym train`]
    #[arg(long, value_name = "POLICY")]
    low_level: Option<BasePolicy>,
    /// Of `linear`: length of the search; --traces are then those that choose the result
    /// [default: 25]
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    generations: Option<u64>,
    /// Of `linear`: file for the weights [default: checkpoints/linear-SCENARIO.json, which
    /// linear:tuned stands for]
    #[arg(long, value_name = "FILE.json")]
    out: Option<PathBuf>,
    /// Of `linear`: replace the file named with --out
    #[arg(long, requires = "out")]
    force: bool,
}

/// Runs the command.
pub fn run(args: TuneArgs, common: &Common) -> CliResult {
    if linear::is_linear(&args.policy) {
        return linear::run(&args, common);
    }
    args.refuse_linear_options()?;
    let scenario = args.scenario.resolve()?;
    let policy: PolicySpec = args.policy.parse().or_bad_input()?;
    check_memory(&scenario, args.traces, 0)?;
    let metric = Metric::of(&args.objective);
    let kept = match metric {
        Metric::MeanFct => Some(Kept::open(&scenario)?),
        _ => None,
    };
    let config = TuneConfig {
        scenario,
        policy,
        traces: args.traces,
        seed: common.seed(),
        metric,
    };
    let mut on_round = |best: &Candidate| {
        common.note(format!(
            "best so far {}  {:.4} × DT",
            best.policy, best.ratio_to_dt
        ));
    };
    let tuning = tune::tune(&config, &mut on_round).map_err(classify)?;
    let file = kept.map(|kept| kept.keep(&config, &tuning)).transpose()?;
    let value = json!({
        "scenario": config.scenario.name,
        "objective": args.objective,
        "metric": metric.comparison(),
        "seed": config.seed,
        "stored": file,
        "tuning": tuning,
    });
    common.print(&value, &describe(metric, &tuning, file.as_deref()))
}

/// The results file of a scenario, opened to add a result.
struct Kept {
    output: Output,
    stored: Stored,
}

impl Kept {
    fn open(scenario: &Scenario) -> CliResult<Kept> {
        let output = Output::file(&file_of(scenario), true)?;
        let stored = stored_in(output.path(), scenario)?.unwrap_or(Stored::new(scenario));
        Ok(Kept { output, stored })
    }

    fn keep(mut self, config: &TuneConfig, tuning: &Tuning) -> CliResult<PathBuf> {
        self.stored.keep(config.policy.name(), tuning, config.seed);
        let text = self.stored.to_json();
        let path = self.output.path().to_owned();
        self.output
            .write_file(|file| file.write_all(text.as_bytes()).or_failure())?;
        Ok(path)
    }
}

fn describe(metric: Metric, tuning: &Tuning, file: Option<&Path>) -> String {
    let mut text = format!(
        "÷ DT: {}\n   ÷ DT   FCT ÷ DT   traces   policy\n",
        metric.comparison()
    );
    for candidate in tuning.tried.iter().take(12) {
        text.push_str(&format!(
            "{:>7.4}   {:>8.4}   {:>6}   {}\n",
            candidate.ratio_to_dt, candidate.fct_ratio_to_dt, candidate.traces, candidate.policy
        ));
    }
    if !tuning.not_tuned.is_empty() {
        text.push_str(&format!("not searched: {}\n", tuning.not_tuned.join(", ")));
    }
    let place = file.map_or_else(
        || "not kept, as only results for mean FCT are".to_owned(),
        |file| format!("kept in {}", file.display()),
    );
    text + &format!(
        "best {}: {:.4} (start {}: {:.4}); {} simulations in {:.0} s; {place}",
        tuning.best.policy,
        tuning.best.ratio_to_dt,
        tuning.start.policy,
        tuning.start.ratio_to_dt,
        tuning.simulations,
        tuning.wall_s,
    )
}

fn classify(error: EvalError) -> CliError {
    match error {
        EvalError::Scenario(_) | EvalError::NoTraces | EvalError::Simulation { .. } => {
            CliError::input(error)
        }
        _ => CliError::failure(error),
    }
}

fn file_of(scenario: &Scenario) -> PathBuf {
    Path::new(FOLDER).join(format!("{}.json", file_name(&scenario.name)))
}

/// The results in the file, if it exists and belongs to the scenario.
fn stored_in(path: &Path, scenario: &Scenario) -> CliResult<Option<Stored>> {
    let origin = path.display().to_string();
    let text = match input::read_text(path, input::MAX_JSON) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CliError::bad(format!("{origin}: {error}"))),
    };
    let stored = Stored::read(&text, &origin).or_bad_input()?;
    let fits = stored.is_for(scenario, &origin).or_bad_input()?;
    Ok(fits.then_some(stored))
}

/// The policy of a policy string `P:tuned`; `None` for other strings.
///
/// # Errors
/// Bad input: no such policy, or it was not tuned for this scenario.
pub fn tuned(text: &str, scenario: &Scenario) -> CliResult<Option<Entrant>> {
    let Some(name) = text.strip_suffix(TUNED) else {
        return Ok(None);
    };
    if name == LINEAR {
        return linear::tuned(scenario).map(Some);
    }
    let policy: PolicySpec = name.parse().or_bad_input()?;
    let found = if_tuned(policy.name(), scenario)?;
    found.map(Some).ok_or_else(|| {
        CliError::bad(format!(
            "policy {text} was not tuned for scenario {} with these settings; run `bufgym tune --policy {name}` with the same --scenario and --set first",
            scenario.name
        ))
    })
}

/// The policy of that name with the parameters tuned for the scenario: those in the results file, or
/// else those that come with the program.
///
/// # Errors
/// Bad input: the file of tuned parameters is broken.
pub fn if_tuned(name: &str, scenario: &Scenario) -> CliResult<Option<Entrant>> {
    let file = file_of(scenario);
    let found = match stored_in(&file, scenario)? {
        Some(stored) => stored.policy(name, &file.display().to_string()),
        None => Ok(None),
    };
    let spec = match found.or_bad_input()? {
        Some(spec) => Some(spec),
        None => built_in(name, scenario)?,
    };
    Ok(spec.map(Entrant::tuned))
}

/// A tuned policy that comes with the program.
fn built_in(name: &str, scenario: &Scenario) -> CliResult<Option<PolicySpec>> {
    for (origin, text) in BUILT_IN {
        let stored = Stored::read(text, origin).or_failure()?;
        if stored.is_for(scenario, origin).or_failure()? {
            return stored.policy(name, origin).or_failure();
        }
    }
    Ok(None)
}
