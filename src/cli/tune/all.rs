//! `bufgym tune all`: every rule with every queue management, with the same number of simulations for each,
//! or more for the best of them.

use bufgym::eval::metric::Metric;
use bufgym::train::tune::{
    AllConfig, AllProgress, AllTuned, Outcome, default_simulations, tune_all,
};
use clap::Args;
use serde_json::json;

use super::{SearchArgs, classify, results};
use crate::cli::Common;
use crate::cli::error::CliResult;
use crate::cli::progress::progress_bar;
use crate::cli::scenario::check_memory;

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

/// Runs the command.
pub(super) fn run(args: &AllArgs, common: &Common) -> CliResult {
    let AllArgs { best, search } = args;
    let scenario = search.scenario.resolve_any()?;
    check_memory(&scenario, search.traces, 0)?;
    let config = AllConfig {
        scenario,
        metric: Metric::of(&search.objective),
        seed: common.seed(),
        simulations: search.simulations(),
        traces: search.traces,
        best: *best,
        results: results(),
        force: search.force,
    };
    let bar = progress_bar(common);
    let mut on_progress = |progress: AllProgress<'_>| {
        if progress.done == 0 {
            bar.reset();
            bar.set_length(progress.total);
        }
        bar.set_position(progress.done);
        bar.set_message(progress.names.to_owned());
    };
    let tuned = tune_all(&config, &common.backend(), &mut on_progress).map_err(classify)?;
    bar.finish_and_clear();
    let value = json!({
        "scenario": config.scenario.name,
        "objective": search.objective,
        "metric": config.metric.comparison(),
        "seed": config.seed,
        "budget": config.simulations,
        "stored": tuned.file,
        "simulations": tuned.simulations,
        "learner_simulations": default_simulations(),
        "policies": tuned.policies,
    });
    common.print(&value, &describe(config.metric, &tuned))
}

fn describe(metric: Metric, all: &AllTuned) -> String {
    let mut text = format!(
        "÷ DT: {}, on validation traces\n   ÷ DT   default   simulations   policy\n",
        metric.comparison()
    );
    let mut from_before = 0;
    for policy in &all.policies {
        let line = match &policy.outcome {
            Outcome::Tuned { tuned, before } => {
                from_before += u64::from(*before);
                format!(
                    "{:>7.4}   {:>7.4}   {:>11}   {}{}\n",
                    tuned.ratio_to_dt,
                    tuned.start_ratio_to_dt,
                    tuned.simulations.unwrap_or_default(),
                    tuned.policy,
                    edge_note(&tuned.edges),
                )
            }
            Outcome::Unfit { problem } => {
                format!("{:>7}   {:>7}   {:>11}   {problem}\n", "–", "–", 0)
            }
        };
        text.push_str(&line);
    }
    text + &format!(
        "{} policies, {from_before} of them from before; {} simulations; {}",
        all.policies.len(),
        all.simulations,
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
