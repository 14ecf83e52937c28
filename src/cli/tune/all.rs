//! `bufgym tune --all`: every rule with every queue management, the same number of simulations each.

use std::path::PathBuf;

use bufgym::eval::metric::Metric;
use bufgym::eval::tune::Tuned;
use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::PolicySpec;
use bufgym::sim::switch::aqm::AqmSpec;
use bufgym::sim::switch::policy::{Deployment, catalogue};
use bufgym::train::TrainError;
use bufgym::train::tune::{TuneConfig, tune};
use serde_json::{Value, json};

use super::kept::{Kept, parameters};
use super::{TuneArgs, classify, learner, settings};
use crate::cli::Common;
use crate::cli::error::{CliError, CliResult, ResultExt as _};
use crate::cli::eval::progress_bar;

/// Queue management behind every rule.
const MANAGEMENT: [&str; 5] = ["none", "random", "red", "codel", "pie"];

/// What became of a rule with its queue management.
struct Row {
    names: String,
    outcome: Result<Tuned, String>,
    /// It was there already.
    before: bool,
}

/// Runs the command.
pub fn run(args: &TuneArgs, common: &Common) -> CliResult {
    args.refuse_linear_options("--all")?;
    let scenario = args.scenario.resolve()?;
    let metric = Metric::of(&args.objective);
    let policies = policies().or_failure()?;
    let (mut rows, wanted) = divide(args, common, &scenario, policies)?;
    let bar = progress_bar(common);
    bar.set_length(wanted.len() as u64 * args.simulations());
    let mut file: Option<PathBuf> = None;
    let mut spent = 0;
    for (number, policy) in wanted.into_iter().enumerate() {
        let kept = kept(args, &scenario, policy.names());
        bar.set_message(kept.names.clone());
        let before = number as u64 * args.simulations();
        let config = settings(args, common, scenario.clone(), policy)?;
        let tuning = tune(&config, &mut |progress| {
            bar.set_position(before + progress.done);
        });
        let outcome = match tuning {
            Ok(tuning) => {
                spent += tuning.simulations;
                let tuned = tuning.kept(&config);
                file = Some(kept.keep(tuned.clone())?);
                Ok(tuned)
            }
            // The scenario is valid, so it is the policy that does not fit it.
            Err(TrainError::Simulation(error)) => Err(error.to_string()),
            Err(error) => return Err(classify(error)),
        };
        rows.push(Row {
            names: kept.names,
            outcome,
            before: false,
        });
    }
    bar.finish_and_clear();
    sort(&mut rows);
    let value = json!({
        "scenario": scenario.name,
        "objective": args.objective,
        "metric": metric.comparison(),
        "seed": common.seed(),
        "budget": args.simulations(),
        "stored": file,
        "simulations": spent,
        "learner_simulations": learner(),
        "policies": rows.iter().map(Row::json).collect::<Vec<Value>>(),
    });
    common.print(&value, &describe(metric, &rows, spent))
}

fn kept<'a>(args: &TuneArgs, scenario: &'a Scenario, names: String) -> Kept<'a> {
    Kept {
        scenario,
        metric: Metric::of(&args.objective),
        names,
        force: args.force,
    }
}

/// Every rule without push-out, alone and with every queue management, that is tuned for mean FCT in the
/// scenario.
///
/// # Errors
/// Bad input: a file of tuned parameters is broken.
pub fn all_tuned(scenario: &Scenario) -> CliResult<Vec<PolicySpec>> {
    let mut tuned = Vec::new();
    for policy in policies().or_failure()? {
        if policy.info().deployment != Deployment::NewHardware {
            tuned.extend(parameters(Metric::MeanFct, &policy.names(), scenario)?);
        }
    }
    Ok(tuned)
}

/// Every rule that a switch can have, with every queue management.
fn policies() -> Result<Vec<PolicySpec>, bufgym::sim::switch::PolicyParseError> {
    let mut policies = Vec::new();
    for definition in catalogue() {
        if definition.info.deployment == Deployment::Reference {
            continue;
        }
        for management in MANAGEMENT {
            let rule = PolicySpec::named(definition.info.name);
            policies.push(rule.managed_by(AqmSpec::parse(management)?));
        }
    }
    Ok(policies)
}

/// Divides the policies into those whose results are there, from the same seed and number of
/// simulations, and those to search.
///
/// # Errors
/// Bad input: results of other searches are in the way and may not be replaced.
fn divide(
    args: &TuneArgs,
    common: &Common,
    scenario: &Scenario,
    policies: Vec<PolicySpec>,
) -> CliResult<(Vec<Row>, Vec<PolicySpec>)> {
    let (mut rows, mut wanted, mut in_the_way) = (Vec::new(), Vec::new(), Vec::new());
    let mut place = None;
    for policy in policies {
        let kept = kept(args, scenario, policy.names());
        let Some((path, tuned)) = kept.there()? else {
            wanted.push(policy);
            continue;
        };
        let config = TuneConfig {
            simulations: args.simulations(),
            traces: args.traces,
            ..TuneConfig::new(scenario.clone(), policy.clone(), common.seed())
        };
        let same = tuned.budget == Some(config.simulations)
            && tuned.traces == config.validation_traces()
            && tuned.seed == config.seed;
        if same {
            rows.push(Row {
                names: kept.names,
                outcome: Ok(tuned),
                before: true,
            });
        } else {
            in_the_way.push(kept.names);
            place = Some(path);
            wanted.push(policy);
        }
    }
    match place {
        Some(path) if !args.force => Err(CliError::bad(format!(
            "{} has results with another seed or number of simulations or traces: {}; give --force to search again, from them, and replace them",
            path.display(),
            in_the_way.join(", ")
        ))),
        _ => Ok((rows, wanted)),
    }
}

/// The best first, and those that do not fit last.
fn sort(rows: &mut [Row]) {
    let key = |row: &Row| {
        row.outcome
            .as_ref()
            .map_or(f64::INFINITY, |tuned| tuned.ratio_to_dt)
    };
    rows.sort_by(|a, b| key(a).total_cmp(&key(b)).then(a.names.cmp(&b.names)));
}

impl Row {
    fn json(&self) -> Value {
        match &self.outcome {
            Ok(tuned) => json!({ "names": self.names, "before": self.before, "tuned": tuned }),
            Err(problem) => json!({ "names": self.names, "problem": problem }),
        }
    }
}

fn describe(metric: Metric, rows: &[Row], spent: u64) -> String {
    let mut text = format!(
        "÷ DT: {}, on validation traces\n   ÷ DT   default   simulations   policy\n",
        metric.comparison()
    );
    for row in rows {
        let line = match &row.outcome {
            Ok(tuned) => format!(
                "{:>7.4}   {:>7.4}   {:>11}   {}{}\n",
                tuned.ratio_to_dt,
                tuned.start_ratio_to_dt,
                tuned.simulations.unwrap_or_default(),
                tuned.policy,
                edge_note(&tuned.edges),
            ),
            Err(problem) => format!("{:>7}   {:>7}   {:>11}   {problem}\n", "–", "–", 0),
        };
        text.push_str(&line);
    }
    let before = rows.iter().filter(|row| row.before).count();
    text + &format!(
        "{} policies, {before} of them from before; {spent} simulations; {}",
        rows.len(),
        super::learner_note()
    )
}

/// What is at an edge of its range, in brackets.
fn edge_note(edges: &[String]) -> String {
    match edges {
        [] => String::new(),
        edges => format!("   (at an edge: {})", edges.join(", ")),
    }
}
