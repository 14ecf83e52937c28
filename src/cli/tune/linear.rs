//! `bufgym tune linear`: the weights of a linear rule.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bufgym::env::control::{LowLevelPolicy, Objective};
use bufgym::eval::Entrant;
use bufgym::eval::entrant::LINEAR;
use bufgym::eval::tune::TRACES;
use bufgym::models::LinearFile;
use bufgym::sim::scenario::Scenario;
use bufgym::train::linear::{CheckedRule, Generation, LinearConfig, LinearTuning, tune_linear};
use bufgym::train::tune::names::{candidates, key, new_file};
use bufgym::util::files::file_name;
use clap::Args;
use serde_json::json;

use super::classify;
use crate::cli::Common;
use crate::cli::error::{CliError, CliResult, ResultExt as _};
use crate::cli::output::Output;
use crate::cli::scenario::{ScenarioArgs, check_memory};

/// Default folder of the rules, one file per scenario with all its settings.
const FOLDER: &str = "checkpoints";

/// Start of the names of these files.
const PREFIX: &str = "linear-";

/// Objective of the rule `linear:tuned`.
const KEPT_OBJECTIVE: &str = "fct";

/// Search the sixteen weights of a linear rule, which sets every port's alpha from what the switch sees
#[derive(Args)]
#[command(after_help = "The file is a policy: linear:FILE.\n\nExamples:\n  \
    bufgym tune linear\n  \
    bufgym tune linear --low-level fab:alpha_short=2048 --generations 40 --out rule.json")]
pub(super) struct LinearArgs {
    /// Objective, as in training: fct, slowdown, loss, throughput, delay, fairness, pfc or tails
    #[arg(long, value_name = "OBJECTIVE", default_value = "fct")]
    objective: Objective,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Heuristic whose alpha is set: dt, edt, tdt, fab, ib, abm, occamy [default: that of `bufgym train`]
    #[arg(long, value_name = "POLICY")]
    low_level: Option<LowLevelPolicy>,
    /// Training traces
    #[arg(long, value_name = "N", default_value_t = TRACES, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    traces: u64,
    /// Length of the search [default: 25]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    generations: Option<u64>,
    /// File for the weights [default: checkpoints/linear-SCENARIO.json, named as in checkpoints/tuned;
    /// linear:tuned stands for it]
    #[arg(long, value_name = "FILE.json")]
    out: Option<PathBuf>,
    /// Replace the file that is there
    #[arg(long)]
    force: bool,
}

/// Refuses a linear rule where the parameters of another policy are searched.
pub(super) fn refuse(policy: &str) -> CliResult {
    match policy.split(':').next() == Some(LINEAR) {
        false => Ok(()),
        true => Err(CliError::bad(format!(
            "policy {policy}: the search for a linear rule has its own start; run `bufgym tune {LINEAR}`"
        ))),
    }
}

/// Runs the command.
pub(super) fn run(args: &LinearArgs, common: &Common) -> CliResult {
    let config = args.config(common)?;
    check_memory(&config.scenario, config.traces, 0)?;
    let path = match &args.out {
        Some(path) => path.clone(),
        None => default_file(&config)?,
    };
    let output = Output::file(&path, args.force)?;
    let tuning = tune_linear(&config, &common.backend(), &mut |generation| {
        common.note(progress(&config, generation));
    })
    .map_err(classify)?;
    let text = tuning.file(&config).to_json();
    output.write_file(|file| file.write_all(text.as_bytes()).or_failure())?;
    let value = json!({
        "scenario": config.scenario.name,
        "objective": config.objective,
        "low_level": config.low_level,
        "metric": tuning.best.result.metric,
        "seed": config.seed,
        "stored": output.path().to_string_lossy(),
        "tuning": tuning,
    });
    common.print(&value, &describe(&tuning, output.path()))
}

impl LinearArgs {
    fn config(&self, common: &Common) -> CliResult<LinearConfig> {
        let defaults = LinearConfig::new(self.scenario.resolve_any()?, common.seed());
        Ok(LinearConfig {
            objective: self.objective,
            low_level: self.low_level.clone().unwrap_or(defaults.low_level),
            traces: self.traces,
            generations: self.generations.unwrap_or(defaults.generations),
            ..defaults
        })
    }
}

fn progress(config: &LinearConfig, generation: &Generation<'_>) -> String {
    let checked = generation
        .checked
        .map(|found| format!("; mean {}", result(found)))
        .unwrap_or_default();
    format!(
        "generation {}/{}  best {:.4} × DT, average {:.4}, step {:.3}{checked}",
        generation.number, config.generations, generation.best, generation.mean, generation.step
    )
}

fn result(found: &CheckedRule) -> String {
    let result = &found.result;
    format!(
        "{:.4} [{:.3}–{:.3}] on {} traces",
        result.value, result.low, result.high, result.traces
    )
}

fn describe(tuning: &LinearTuning, file: &Path) -> String {
    let best = &tuning.best;
    let mut text = format!("÷ DT: {}\n", best.result.metric);
    for found in &tuning.checked {
        text.push_str(&format!(
            "generation {:>4}: {}, FCT ÷ DT {:.4}\n",
            found.generation,
            result(found),
            found.fct_ratio_to_dt
        ));
    }
    text + &format!(
        "best after {} generations: {:.4}; {} simulations in {:.0} s; policy {LINEAR}:{}",
        best.generation,
        best.result.value,
        tuning.simulations,
        tuning.wall_s,
        file.display()
    )
}

/// Returns the file of the scenario's rule: the existing one, if there is one. The objective is part of the
/// name unless it is `fct`.
///
/// # Errors
/// Bad input: a file of that name cannot be used.
fn default_file(config: &LinearConfig) -> CliResult<PathBuf> {
    let scenario = &config.scenario;
    let objective = config.objective.to_string();
    if objective != KEPT_OBJECTIVE {
        return Ok(file(&format!("{}-{objective}", key(scenario))));
    }
    if let Some((path, _)) = stored(scenario)? {
        return Ok(path);
    }
    Ok(new_file(Path::new(FOLDER), PREFIX, scenario))
}

fn file(name: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{PREFIX}{}.json", file_name(name)))
}

/// Returns the rule that was found for the scenario, with its file.
fn stored(scenario: &Scenario) -> CliResult<Option<(PathBuf, LinearFile)>> {
    let prefix = format!("{PREFIX}{}", file_name(&scenario.name));
    let folder = Path::new(FOLDER);
    let candidates = candidates(folder, &prefix);
    for path in candidates.context(FOLDER).or_bad_input()? {
        let found = LinearFile::load(&path).or_bad_input()?;
        let origin = path.display().to_string();
        let settings = Scenario::from_toml_str(&found.scenario_toml, &origin).or_bad_input()?;
        if settings == *scenario {
            return Ok(Some((path, found)));
        }
    }
    Ok(None)
}

/// Returns the rule of `linear:tuned`: the one in the scenario's file.
///
/// # Errors
/// Bad input: there is none, it cannot be used, or it was tuned for other settings.
pub fn tuned(scenario: &Scenario) -> CliResult<Entrant> {
    let Some((path, found)) = stored(scenario)? else {
        return Err(CliError::bad(format!(
            "policy {LINEAR}:tuned was not tuned for scenario {} with these settings (looked for {}); run `bufgym tune {LINEAR}` with the same --scenario and --set first",
            scenario.name,
            file(&key(scenario)).display()
        )));
    };
    Ok(Entrant::linear(
        &format!("{LINEAR}:{}", path.display()),
        &found,
    ))
}
