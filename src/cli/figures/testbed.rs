//! Fig. 9 of NDT measured: real TCP through the software switch of this machine.

use std::time::Duration;

use bufgym::reproduce::grid::Learned;
use bufgym::reproduce::ndt::{MeasuredConfig, MeasuredPlan, NdtFigure, Order, Played, SWEPT};
use bufgym::testbed::Run;
use indicatif::ProgressStyle;
use serde_json::json;

use super::{FILES, FiguresArgs, config, refuse_given, weights, write_with};
use crate::cli::Common;
use crate::cli::error::{CliError, CliResult};
use crate::cli::interrupt::stop_at_signal;
use crate::cli::output::{Output, discard};
use crate::cli::policy;
use crate::cli::progress::{by_simulations, progress_bar};
use crate::cli::testbed::{self, Playing};

/// The panels that can be measured.
const PANELS: [NdtFigure; 2] = [NdtFigure::WebSearch, NdtFigure::DataMining];

/// Time limit of a run: a multiple of the simulated time, plus a number of seconds.
const PATIENCE: u32 = 3;
const PATIENCE_S: u64 = 120;

/// Runs the command.
pub fn run(args: &FiguresArgs, common: &Common) -> CliResult {
    refuse_given(args, &[("--model", args.model.is_some())])?;
    let plan = plan(args, common)?;
    let output = Output::folder(&args.out, args.force, &FILES)?;
    let parts = output.parts()?;
    let stop = stop_at_signal(
        "stopping: hosts are ended; finished runs are kept, and the same command resumes",
    )?;
    common.note(format!(
        "{} runs, about {} together; those that are kept in {} are not played again",
        plan.runs(),
        minutes(plan.expected()),
        parts.folder().display()
    ));
    let bar = progress_bar(common);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left") {
        bar.set_style(style);
    }
    let play = |order: &Order<'_>| {
        let run = testbed::Order {
            scenario: order.scenario,
            trace: order.trace,
            policy: order.policy,
            playing: &Playing {
                limit_s: Some((order.expected * PATIENCE).as_secs() + PATIENCE_S),
                ..Playing::default()
            },
            timeline: None,
            capture: None,
        };
        let (run, void_runs) = run.play_until_valid(&stop, common)?;
        Ok(played(&run, void_runs))
    };
    let made = plan.make::<CliError>(&parts, play, &by_simulations(&bar))?;
    bar.finish_and_clear();
    let more = json!({
        "testbed": made.worst,
        "simulated_propagation_ns": made.simulated_propagation_ns,
    });
    write_with(made.report, more, &output, common)?;
    discard(&parts)
}

fn plan(args: &FiguresArgs, common: &Common) -> CliResult<MeasuredPlan> {
    let swept = |setting: &&String| SWEPT.contains(&setting.split('=').next().unwrap_or_default());
    if let Some(setting) = args.set.iter().find(swept) {
        return Err(CliError::bad(format!(
            "--set {setting}: the figure goes through all loads and both workloads; leave it out, or choose a \
             panel with --fig 9a or --fig 9b"
        )));
    }
    let (weights, manifest) = weights(args)?;
    let figures = config(args, &weights, &manifest, common)?;
    let wanted = &figures.figures;
    if wanted.is_empty() || wanted.iter().any(|figure| !PANELS.contains(figure)) {
        return Err(CliError::bad(
            "--testbed measures Fig. 9 and no other: give it --fig 9, 9a or 9b",
        ));
    }
    let config = MeasuredConfig {
        figures,
        settings: args.set.clone(),
        learned: Learned::new(policy::SHIPPED, &weights, &manifest).fingerprint,
        machine: testbed::machine(),
        revision: env!("BUFGYM_REVISION").to_owned(),
    };
    let plan = MeasuredPlan::new(config)?;
    for (scenario, trace) in plan.lists() {
        bufgym::testbed::check(scenario, trace, None).map_err(CliError::input)?;
    }
    Ok(plan)
}

fn minutes(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

/// Returns the stored part of a run.
fn played(run: &Run, void_runs: u64) -> Played {
    let summary = &run.outcome.summary;
    Played {
        mean_fct_ms: summary.mean_fct_ms,
        p99_fct_ms: summary.p99_fct_ms,
        drops: summary.drops,
        timeouts: summary.timeouts,
        decisions: summary.decisions,
        truth: testbed::truth(run, void_runs),
    }
}
