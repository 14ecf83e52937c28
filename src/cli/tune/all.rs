//! `bufgym tune all`: every rule with every queue management, with the same number of simulations for each,
//! or more for the best of them.

use bufgym::eval::metric::Metric;
use bufgym::eval::tune::Tuned;
use bufgym::sim::network::SimError;
use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::aqm::{self, AqmSpec};
use bufgym::sim::switch::policy::{Deployment, catalogue};
use bufgym::sim::switch::{PolicyParseError, PolicySpec};
use bufgym::sim::traffic::TraceError;
use bufgym::train::TrainError;
use bufgym::train::remote::RemoteError;
use bufgym::train::tune::{MIN_SIMULATIONS, TuneConfig, default_simulations, tune};
use clap::Args;
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::kept::Kept;
use super::{SearchArgs, classify, settings};
use crate::cli::Common;
use crate::cli::error::{CliError, CliResult, ResultExt as _};
use crate::cli::progress::progress_bar;

/// Queue management that marks and never drops: useless for hosts without ECN.
const MARKING: &str = "step";

/// Tune every rule, alone and with each queue management; with step, which only marks, where hosts use ECN
#[derive(Args)]
#[command(
    after_help = "Where it was interrupted, the same command resumes.\n\nExamples:\n  \
    bufgym tune all --simulations 1500 --force\n  \
    bufgym tune all --best 10 --scenario linux-16x1g"
)]
pub(super) struct AllArgs {
    /// Give all rules an eighth of the simulations, and only the N best the rest
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    best: Option<u64>,
    #[command(flatten)]
    search: SearchArgs,
}

/// The result of a rule with its queue management.
struct Row {
    policy: PolicySpec,
    names: String,
    outcome: Result<Tuned, String>,
    /// True if the result existed already.
    before: bool,
}

/// A search that every policy gets, or only the best ones.
#[derive(Clone, Copy)]
struct Stage {
    /// Number of simulations that the search may spend.
    simulations: u64,
    /// Total number of simulations of the policy after the search, with those of the previous stage.
    budget: u64,
}

/// With `--best`, every policy first gets one in this many simulations.
const SCREENING_SHARE: u64 = 8;

impl AllArgs {
    /// Returns the stages. A stage that is too small for a search is left out.
    fn stages(&self) -> Vec<Stage> {
        let all = self.search.simulations();
        let share = all / SCREENING_SHARE;
        if self.best.is_none() || share < MIN_SIMULATIONS {
            return vec![Stage {
                simulations: all,
                budget: all,
            }];
        }
        let stage = |simulations: u64, budget: u64| Stage {
            simulations,
            budget,
        };
        vec![stage(share, share), stage(all - share, all)]
    }
}

/// Runs the command.
pub(super) fn run(args: &AllArgs, common: &Common) -> CliResult {
    let scenario = args.search.scenario.resolve_any()?;
    let stages = args.stages();
    let (mut rows, wanted) = divide(args, common, &scenario, policies(&scenario).or_failure()?)?;
    let bar = progress_bar(common);
    let searches = Searches {
        args,
        common,
        scenario: &scenario,
        bar: &bar,
    };
    let mut spent = searches.run(wanted, stages[0], &mut rows)?;
    if let Some(&rest) = stages.get(1) {
        // With more traces, a rule may turn out worse; then another one is among the best.
        loop {
            let wanted = unfinished(&mut rows, args);
            if wanted.is_empty() {
                break;
            }
            spent += searches.run(wanted, rest, &mut rows)?;
        }
    }
    bar.finish_and_clear();
    let metric = Metric::of(&args.search.objective);
    let file = match rows.iter().find(|row| row.outcome.is_ok()) {
        Some(row) => kept(args, &scenario, row.names.clone()).there()?,
        None => None,
    };
    let value = json!({
        "scenario": scenario.name,
        "objective": args.search.objective,
        "metric": metric.comparison(),
        "seed": common.seed(),
        "budget": args.search.simulations(),
        "stored": file.map(|(path, _)| path),
        "simulations": spent,
        "learner_simulations": default_simulations(),
        "policies": rows.iter().map(Row::json).collect::<Vec<Value>>(),
    });
    common.print(&value, &describe(metric, &rows, spent))
}

/// Removes and returns those of the best rows that have not had all their simulations yet.
fn unfinished(rows: &mut Vec<Row>, args: &AllArgs) -> Vec<PolicySpec> {
    let best = args.best.unwrap_or(u64::MAX);
    let all = Some(args.search.simulations());
    let (mut wanted, mut others) = (Vec::new(), Vec::new());
    for (place, row) in rows.drain(..).enumerate() {
        let screened = row.outcome.as_ref().is_ok_and(|tuned| tuned.budget != all);
        match screened && (place as u64) < best {
            true => wanted.push(row.policy),
            false => others.push(row),
        }
    }
    *rows = others;
    wanted
}

/// The settings that the searches of a run share.
struct Searches<'a> {
    args: &'a AllArgs,
    common: &'a Common,
    scenario: &'a Scenario,
    bar: &'a ProgressBar,
}

impl Searches<'_> {
    /// Searches each policy in turn and stores the results. The rows stay sorted. Returns the simulations
    /// spent.
    fn run(&self, policies: Vec<PolicySpec>, stage: Stage, rows: &mut Vec<Row>) -> CliResult<u64> {
        self.bar.reset();
        self.bar
            .set_length(policies.len() as u64 * stage.simulations);
        let mut spent = 0;
        for (number, policy) in policies.into_iter().enumerate() {
            let (row, simulations) = self.one(policy, number as u64, stage)?;
            rows.push(row);
            spent += simulations;
        }
        sort(rows);
        Ok(spent)
    }

    fn one(&self, policy: PolicySpec, number: u64, stage: Stage) -> CliResult<(Row, u64)> {
        let (args, common) = (self.args, self.common);
        let before = number * stage.simulations;
        let mut kept = kept(args, self.scenario, policy.names());
        self.bar.set_position(before);
        self.bar.set_message(kept.names.clone());
        let config = TuneConfig {
            simulations: stage.simulations,
            ..settings(&args.search, common, self.scenario.clone(), policy.clone())?
        };
        // The result of the previous stage is replaced.
        let earlier = match stage.budget > stage.simulations {
            true => kept.there()?.and_then(|(_, tuned)| tuned.simulations),
            false => None,
        };
        kept.force |= earlier.is_some();
        let tuning = tune(&config, &common.backend(), &mut |progress| {
            self.bar.set_position(before + progress.done);
        });
        let (outcome, spent) = match tuning {
            Ok(tuning) => {
                let tuned = Tuned {
                    budget: Some(stage.budget),
                    simulations: Some(tuning.simulations + earlier.unwrap_or_default()),
                    ..tuning.kept(&config)
                };
                kept.keep(tuned.clone())?;
                (Ok(tuned), tuning.simulations)
            }
            Err(TrainError::Simulation(SimError::Trace(TraceError::NoFlows))) => {
                return Err(CliError::input(TraceError::NoFlows));
            }
            // The scenario is valid, so the policy does not fit it.
            Err(TrainError::Simulation(error)) => (Err(error.to_string()), 0),
            Err(TrainError::Remote(RemoteError::Unfit(problem))) => (Err(problem), 0),
            Err(error) => return Err(classify(error)),
        };
        let names = kept.names;
        let row = Row {
            policy,
            names,
            outcome,
            before: false,
        };
        Ok((row, spent))
    }
}

fn kept<'a>(args: &AllArgs, scenario: &'a Scenario, names: String) -> Kept<'a> {
    Kept {
        scenario,
        metric: Metric::of(&args.search.objective),
        names,
        force: args.search.force,
    }
}

/// Returns every rule that a switch can have, alone and with every queue management that hosts can answer to.
fn policies(scenario: &Scenario) -> Result<Vec<PolicySpec>, PolicyParseError> {
    let disciplines = aqm::catalogue().iter().map(|known| known.info.name);
    let disciplines: Vec<&str> = disciplines
        .filter(|&name| name != MARKING || scenario.uses_ecn())
        .collect();
    let mut policies = Vec::new();
    for definition in catalogue() {
        if definition.info.deployment == Deployment::Reference {
            continue;
        }
        let rule = PolicySpec::named(definition.info.name);
        policies.push(rule.clone());
        for name in &disciplines {
            policies.push(rule.clone().with_aqm(AqmSpec::parse(name)?));
        }
    }
    Ok(policies)
}

/// Divides the policies into those with results, from the same seed and number of simulations, or from the
/// previous stage, and those to search.
///
/// # Errors
/// Bad input: results of other searches are in the way and may not be replaced.
fn divide(
    args: &AllArgs,
    common: &Common,
    scenario: &Scenario,
    policies: Vec<PolicySpec>,
) -> CliResult<(Vec<Row>, Vec<PolicySpec>)> {
    let stages = args.stages();
    let (mut rows, mut wanted, mut in_the_way) = (Vec::new(), Vec::new(), Vec::new());
    let mut place = None;
    for policy in policies {
        let kept = kept(args, scenario, policy.names());
        let Some((path, tuned)) = kept.there()? else {
            wanted.push(policy);
            continue;
        };
        let same = tuned.seed == common.seed()
            && stages.iter().any(|stage| {
                let config = TuneConfig {
                    simulations: stage.simulations,
                    traces: args.search.traces,
                    ..TuneConfig::new(scenario.clone(), policy.clone(), common.seed())
                };
                (tuned.budget, tuned.traces) == (Some(stage.budget), config.validation_traces())
            });
        if same {
            rows.push(Row {
                policy,
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
        Some(path) if !args.search.force => Err(CliError::bad(format!(
            "{} has results with another seed or number of simulations or traces: {}; give --force to search again, from them, and replace them",
            path.display(),
            in_the_way.join(", ")
        ))),
        _ => Ok((rows, wanted)),
    }
}

/// Sorts the rows: the best first, and those that do not fit last.
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

/// Lists parameters at an edge of their range, in brackets.
fn edge_note(edges: &[String]) -> String {
    match edges {
        [] => String::new(),
        edges => format!("   (at an edge: {})", edges.join(", ")),
    }
}
