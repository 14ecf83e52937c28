//! `bufgym tune`: the best parameters of a policy on training traces.

mod linear;
mod place;

use std::path::{Path, PathBuf};

use bufgym::env::control::{BasePolicy, Objective};
use bufgym::eval::entrant::LINEAR;
use bufgym::eval::metric::Metric;
use bufgym::eval::tune::{self, Candidate, Stored, TuneConfig, Tuning};
use bufgym::eval::{Entrant, EvalError};
use bufgym::sim::files::{self, Lock};
use bufgym::sim::input::{MAX_JSON, excerpt, read_text};
use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::PolicySpec;
use clap::Args;
use serde_json::json;

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};
use super::output::{Output, file_name};
use super::scenario::{ScenarioArgs, check_memory};

include!(concat!(env!("OUT_DIR"), "/tuned.rs"));

/// Folder of the results, one file per scenario with all its settings.
const FOLDER: &str = "checkpoints/tuned";

/// Held in that folder while a result is added.
const LOCK: &str = ".lock";

/// Suffix of a policy string that stands for the tuned parameters.
const TUNED: &str = ":tuned";

/// Search a policy's parameters on training traces
#[derive(Args)]
#[command(
    after_help = "The result for mean FCT is kept in checkpoints/tuned, and `P:tuned` is then a policy \
    wherever that scenario is used. Every scenario has a file of its own: NAME.json for a preset, \
    NAME-HASH.json for other settings. A result that is there is replaced with --force only. Results for \
    other objectives are printed only.\n\n\
    `linear` is a rule of twelve weights that sets the alpha of every port from what the switch sees, as ndt's \
    network does. Its file is a policy too: linear:FILE.\n\nExamples:\n  \
    bufgym tune --policy dt\n  \
    bufgym tune --policy edt --scenario ndt-96x10g-incast --traces 32\n  \
    bufgym tune --policy dt --traces 128 --force\n  \
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
    /// Of `linear`: file for the weights [default: checkpoints/linear-SCENARIO.json, named as the
    /// files of checkpoints/tuned are; linear:tuned stands for it]
    #[arg(long, value_name = "FILE.json")]
    out: Option<PathBuf>,
    /// Replace the result that is there
    #[arg(long)]
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
        Metric::MeanFct => Some(Kept::check(&scenario, policy.name(), args.force)?),
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
    let (file, problem) = match kept.map(|kept| kept.keep(&config, &tuning)) {
        None => (None, None),
        Some(Ok(file)) => (Some(file), None),
        Some(Err(problem)) => (None, Some(problem)),
    };
    let value = json!({
        "scenario": config.scenario.name,
        "objective": args.objective,
        "metric": metric.comparison(),
        "seed": config.seed,
        "stored": file,
        "tuning": tuning,
    });
    // What was found is shown also where it cannot be kept.
    common.print(&value, &describe(metric, &tuning, file.as_deref()))?;
    problem.map_or(Ok(()), Err)
}

/// A place for a result that is not there yet, or may be replaced.
struct Kept {
    force: bool,
}

impl Kept {
    /// Refuses before the search what would be refused after it.
    fn check(scenario: &Scenario, name: &str, force: bool) -> CliResult<Kept> {
        let (path, stored) = Kept::place(scenario, name)?;
        if stored.has(name) && !force {
            return Err(CliError::bad(format!(
                "{} has {name} tuned for scenario {} with these settings: use {name}{TUNED}, or give --force to search again and replace it",
                path.display(),
                scenario.name
            )));
        }
        Output::file(&path, true)?;
        Ok(Kept { force })
    }

    /// The file for a result and what is in it now: the file that has a result for the policy, else one
    /// of the scenario, else a new one.
    fn place(scenario: &Scenario, name: &str) -> CliResult<(PathBuf, Stored)> {
        let mut files = stored(scenario)?;
        let found = files.iter().position(|(_, stored)| stored.has(name));
        if !files.is_empty() {
            return Ok(files.swap_remove(found.unwrap_or(0)));
        }
        let path = Path::new(FOLDER).join(format!("{}.json", place::key(scenario)));
        let path = match path.exists() {
            // Its name is this scenario's and its settings are not: so earlier versions named files.
            true => Path::new(FOLDER).join(format!("{}.json", place::hashed(scenario))),
            false => path,
        };
        Ok((path, Stored::new(scenario)))
    }

    /// Adds the result to what the file has at this moment. Other searches may have ended meanwhile.
    fn keep(&self, config: &TuneConfig, tuning: &Tuning) -> CliResult<PathBuf> {
        let name = config.policy.name();
        let failure = |error: std::io::Error| {
            CliError::failure(anyhow::Error::new(error).context(format!("cannot write {FOLDER}")))
        };
        std::fs::create_dir_all(FOLDER).map_err(failure)?;
        let _lock = Lock::wait(&Path::new(FOLDER).join(LOCK)).map_err(failure)?;
        let (path, mut stored) = Kept::place(&config.scenario, name)?;
        if stored.has(name) && !self.force {
            return Err(CliError::failure(anyhow::anyhow!(
                "{} has got {name} tuned by another search meanwhile: the result above is not kept; --force replaces",
                path.display()
            )));
        }
        stored.keep(name, tuning, config.seed);
        files::replace(&path, stored.to_json().as_bytes()).map_err(failure)?;
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

/// The files of results for the scenario, with what is in them.
fn stored(scenario: &Scenario) -> CliResult<Vec<(PathBuf, Stored)>> {
    let mut found = Vec::new();
    for path in place::candidates(Path::new(FOLDER), &file_name(&scenario.name))? {
        let origin = path.display().to_string();
        let text = read_text(&path, MAX_JSON)
            .map_err(|error| CliError::bad(format!("{origin}: {error}")))?;
        let stored = Stored::read(&text, &origin).or_bad_input()?;
        if stored.is_for(scenario, &origin).or_bad_input()? {
            found.push((path, stored));
        }
    }
    Ok(found)
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
    if name != policy.name() {
        return Err(CliError::bad(format!(
            "policy {}: tuned stands for all parameters; write {}{TUNED}, or the parameters alone",
            excerpt(text),
            policy.name()
        )));
    }
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
    for (path, stored) in stored(scenario)? {
        let found = stored.policy(name, &path.display().to_string());
        if let Some(spec) = found.or_bad_input()? {
            return Ok(Some(Entrant::tuned(spec)));
        }
    }
    let spec = built_in(name, scenario)?;
    Ok(spec.map(Entrant::tuned))
}

/// A tuned policy that comes with the program.
fn built_in(name: &str, scenario: &Scenario) -> CliResult<Option<PolicySpec>> {
    for (origin, text) in BUILT_IN {
        let stored = Stored::read(text, origin).or_failure()?;
        if stored.has(name) && stored.is_for(scenario, origin).or_failure()? {
            return stored.policy(name, origin).or_failure();
        }
    }
    Ok(None)
}
