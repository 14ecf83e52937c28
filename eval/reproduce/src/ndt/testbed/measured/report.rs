//! Tables, drawing, claims and page of a measurement.

use std::time::Instant;

use bufgym_eval::agreement::{Agreement, Pairs};
use bufgym_eval::data::{BASELINE, ScenarioFacts};
use bufgym_eval::figures::plot::Curve;
use bufgym_eval::figures::style::Stroke;
use bufgym_eval::format;
use bufgym_eval::stats;

use super::super::super::setting::{Context, stroke};
use super::super::super::{notes, sort};
use super::super::played::{Played, Worst};
use super::super::{RULES, is_added, legend, stretched, workload};
use super::{Panel, Plan, Predicted, baseline, extent};
use crate::claim::Claim;
use crate::report::{Panel as Drawn, Report, Table, cell, cells};
use crate::runs::PapersError;
use crate::verdict::Grade;

/// Columns of the table besides those of the simulated figure.
const COLUMNS: [&str; 15] = [
    "simulated_mean_fct_ms",
    "simulated_ratio_to_dt",
    "simulated_ratio_lo",
    "simulated_ratio_hi",
    "simulated_over_measured",
    "drops",
    "simulated_drops",
    "timeouts",
    "simulated_timeouts",
    "late_p50_us",
    "late_p99_us",
    "late_p50_share",
    "cpu_headroom",
    "void_runs",
    "simulated_propagation_ns",
];

/// Columns of the table of runs.
const RUN_COLUMNS: [&str; 21] = [
    "policy",
    "load_percent",
    "trace",
    "seed",
    "flows",
    "mean_fct_ms",
    "p99_fct_ms",
    "drops",
    "timeouts",
    "decisions",
    "simulated_mean_fct_ms",
    "simulated_drops",
    "simulated_timeouts",
    "late_p50_us",
    "late_p99_us",
    "longest_stall_us",
    "start_late_p99_us",
    "decision_p99_us",
    "rtt_us",
    "cpu_headroom",
    "load_average",
];

/// Builds the whole report.
///
/// # Errors
/// Fails if the learned policy decides nothing or a figure cannot be drawn.
pub(super) fn report(
    plan: &Plan,
    context: &Context<'_>,
    panels: &[Panel<'_>],
    began: Instant,
) -> Result<Report, PapersError> {
    let config = &plan.config.figures;
    let Some((_, low_level)) = config.learned.controller() else {
        return Err(PapersError::NotANetwork(config.learned.name().to_owned()));
    };
    let mut report = Report {
        paper: "ndt",
        title: "“Learning Buffer Management Policies for Shared Memory Switches” (NDT, IEEE INFOCOM \
                2022), measured",
        scale: config.scale.to_string(),
        seeds: config.seeds,
        seed: config.seed,
        extent: described(plan),
        intervals: format!(
            "Intervals are 95 % percentile bootstrap intervals over traces ({} seeded resamples), \
             paired over policies.",
            format::count(config.resamples as u64)
        ),
        notes: notes(config, &low_level.to_string(), low_level.is_default()),
        panels: Vec::new(),
        claims: Vec::new(),
        scenarios: Vec::new(),
        software: concat!("bufgym ", env!("CARGO_PKG_VERSION")).to_owned(),
        wall_s: 0.0,
    };
    for panel in panels {
        report.claims.extend(claims(plan, context, panel));
        report.notes.extend(agreement(plan, panel));
        report.panels.push(drawn(plan, context, panel)?);
        report.scenarios.push(ScenarioFacts {
            name: format!("Figure {}", panel.planned.figure.id()),
            ..ScenarioFacts::of(&panel.planned.scenario)
        });
    }
    sort(&mut report);
    report.wall_s = began.elapsed().as_secs_f64();
    Ok(report)
}

/// Describes the number of runs.
fn described(plan: &Plan) -> String {
    let config = &plan.config.figures;
    let (traces, _) = extent(config);
    let sets = match config.seeds {
        1 => "one set".to_owned(),
        seeds => format!("{seeds} sets"),
    };
    format!(
        "Measured on {}: {} runs, {sets} of {traces} test traces for each of nine loads (the paper \
         repeats 50 times), each played under {} policies. One set of weights.",
        plan.config.machine,
        plan.runs(),
        plan.policies.len(),
    )
}

/// Returns the panel with its tables and its drawing.
fn drawn(plan: &Plan, context: &Context<'_>, panel: &Panel<'_>) -> Result<Drawn, PapersError> {
    let policies = &plan.policies;
    let (measured, predicted) = (panel.measured(policies), panel.predicted(policies));
    let mut curves: Vec<Curve> = Vec::new();
    for policy in policies {
        let name = legend(policy, is_added(policy, &RULES));
        curves.push(measured.curve(context, policy, &name, stroke(policy)));
    }
    for policy in policies.iter().filter(|policy| policy.name() != BASELINE) {
        let dashed = Stroke {
            dash: Some((4, 4)),
            width: 2,
            ..stroke(policy)
        };
        let name = format!("{} (simulated)", policy.name());
        curves.push(predicted.curve(context, policy, &name, dashed));
    }
    let (_, words) = workload(panel.planned.figure);
    let first = panel.planned.loads.first();
    let flows = first.and_then(|load| load.traces.first());
    let method = format!(
        "{words}, measured: the TCP of the Linux kernel in {} hosts, which are network namespaces of one \
         machine, through a software switch; {} runs of {} flows for each load and policy, the same flows \
         for all. {} Dashed: the simulator for the same flows, with links of {:.1} µs, which give it the \
         round trip that was measured. {} The loads are ours: the paper does not list them. NDT was \
         trained on web search.",
        panel.planned.scenario.network.ports,
        first.map_or(0, |load| load.traces.len()),
        flows.map_or(0, |(numbered, _)| numbered.trace.flows.len()),
        stretched::described(&panel.planned.scenario)?,
        panel.propagation_ns as f64 * 1e-3,
        Worst::of(panel.runs()),
    );
    Ok(Drawn {
        id: panel.planned.figure.id(),
        title: match panel.planned.figure {
            super::NdtFigure::DataMining => "mean FCT over load with real TCP, data mining",
            _ => "mean FCT over load with real TCP, web search",
        },
        method,
        tables: vec![table(plan, context, panel), runs(plan, panel)],
        drawings: vec![measured.plot(&curves, " Dashed: as the simulator predicts it.")?],
    })
}

/// Returns the paper's claims of a panel. Claims that differ are compared with the simulator's values for the
/// same flows.
fn claims(plan: &Plan, context: &Context<'_>, panel: &Panel<'_>) -> Vec<Claim> {
    let predicted = panel.predicted(&plan.policies).claims(context);
    let mut claims = panel.measured(&plan.policies).claims(context);
    for claim in &mut claims {
        let Some(same) = predicted.iter().find(|other| other.is_same(claim)) else {
            continue;
        };
        if let Some(ours) = &same.ours {
            let value = format::significant(ours.value());
            claim.remark += &format!(" The simulator has {value} for the same flows.");
        }
        if claim.grade() == Grade::Differs {
            claim.reason = Some(match same.grade() {
                Grade::Differs => {
                    "unexplained; so it does in the simulator for these flows".to_owned()
                }
                grade => format!(
                    "unexplained; in the simulator it {} for these flows",
                    grade.name()
                ),
            });
        }
    }
    if let Some(first) = claims.first_mut() {
        first.remark += &over_all(plan, context, panel);
    }
    claims
}

/// Describes the ratio to DT over all pairs of runs of any load, which shows whether it is significantly
/// below 1.
fn over_all(plan: &Plan, context: &Context<'_>, panel: &Panel<'_>) -> String {
    let dt = baseline(&plan.policies);
    let ratios = panel.played.iter().flat_map(|load| {
        let pairs = load[0].iter().zip(&load[dt]);
        pairs.map(|(own, dt)| own.mean_fct_ms / dt.mean_fct_ms)
    });
    let ratios: Vec<f64> = ratios.collect();
    match stats::bootstrap_mean(&ratios, context.resamples, context.seed) {
        Some(ratio) => format!(
            " Over all {} pairs of runs ndt has {} of DT’s mean FCT.",
            ratios.len(),
            format::interval(Some(&ratio))
        ),
        None => String::new(),
    }
}

/// Describes the simulator's error relative to the measurement, by policy.
fn agreement(plan: &Plan, panel: &Panel<'_>) -> Option<String> {
    let pairs = plan.policies.iter().enumerate();
    let mut pairs: Vec<Pairs> = pairs
        .map(|(place, policy)| Pairs {
            policy: policy.name().to_owned(),
            measured: over_loads(&panel.played, place, |run: &Played| run.mean_fct_ms),
            predicted: over_loads(&panel.predicted, place, |run: &Predicted| run.mean_fct_ms),
        })
        .collect();
    // Ratios are relative to the first policy.
    pairs.swap(0, baseline(&plan.policies));
    let agreement = Agreement::of(&pairs, plan.config.figures.seed)?;
    let errors = agreement.rows.iter().map(|row| {
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        format!(
            "{} {:+.1} % [{:+.1}, {:+.1}]",
            row.policy,
            percent(row.error.mean),
            percent(row.error.low),
            percent(row.error.high)
        )
    });
    Some(format!(
        "Figure {}: the simulator’s mean FCT over all runs against the testbed’s: {}.",
        panel.planned.figure.id(),
        errors.collect::<Vec<_>>().join(", ")
    ))
}

/// Returns a value of every run of a policy.
fn over_loads<T>(by_load: &[Vec<Vec<T>>], policy: usize, value: fn(&T) -> f64) -> Vec<f64> {
    let runs = by_load.iter().flat_map(|load| &load[policy]);
    runs.map(value).collect()
}

/// Returns the table of the simulated figure, with prediction and measurement quality next to each point.
fn table(plan: &Plan, context: &Context<'_>, panel: &Panel<'_>) -> Table {
    let policies = &plan.policies;
    let (measured, predicted) = (panel.measured(policies), panel.predicted(policies));
    let mut table = measured.table(context);
    let beside = predicted.table(context);
    table.columns.extend(COLUMNS);
    let loads = panel.played.len();
    for (number, row) in table.rows.iter_mut().enumerate() {
        // These columns are the mean FCT, the ratio and the ends of its interval.
        row.extend_from_slice(&beside.rows[number][3..7]);
        let (policy, load) = (number / loads, number % loads);
        let (played, predicted) = (&panel.played[load][policy], &panel.predicted[load][policy]);
        row.extend(of_point(context, played, predicted));
        row.push(panel.propagation_ns.to_string());
    }
    table
}

/// Returns the error of the simulator, drops and timeouts of a run on both sides, and the measurement quality
/// of the runs.
fn of_point(context: &Context<'_>, played: &[Played], predicted: &[Predicted]) -> Vec<String> {
    let fct = |runs: &[Played]| runs.iter().map(|run| run.mean_fct_ms).collect::<Vec<_>>();
    let simulated: Vec<f64> = predicted.iter().map(|run| run.mean_fct_ms).collect();
    let [error, ..] = cells(context.ratio(&simulated, &fct(played)).as_ref());
    let mean = |values: Vec<u64>| {
        let values: Vec<f64> = values.into_iter().map(|value| value as f64).collect();
        cell(stats::mean(&values))
    };
    let worst = Worst::of(played);
    vec![
        error,
        mean(played.iter().map(|run| run.drops).collect()),
        mean(predicted.iter().map(|run| run.drops).collect()),
        mean(played.iter().map(|run| run.timeouts).collect()),
        mean(predicted.iter().map(|run| run.timeouts).collect()),
        cell(Some(worst.late_p50_us)),
        cell(Some(worst.late_p99_us)),
        cell(Some(worst.late_p50_share)),
        cell(Some(worst.cpu_headroom)),
        worst.void_runs.to_string(),
    ]
}

/// Returns a row for every run.
fn runs(plan: &Plan, panel: &Panel<'_>) -> Table {
    let name = format!("fig{}-runs", panel.planned.figure.id());
    let mut table = Table::new(&name, &RUN_COLUMNS);
    for (place, policy) in plan.policies.iter().enumerate() {
        for (at, load) in panel.planned.loads.iter().enumerate() {
            for (number, (numbered, _)) in load.traces.iter().enumerate() {
                let played = &panel.played[at][place][number];
                let mut row = vec![
                    policy.name().to_owned(),
                    load.percent.to_string(),
                    numbered.index.to_string(),
                    numbered.seed.to_string(),
                    numbered.trace.flows.len().to_string(),
                ];
                row.extend(of_run(played, &panel.predicted[at][place][number]));
                table.push(row);
            }
        }
    }
    table
}

fn of_run(played: &Played, predicted: &Predicted) -> [String; 16] {
    let truth = &played.truth;
    let number = |value: f64| cell(Some(value));
    [
        number(played.mean_fct_ms),
        number(played.p99_fct_ms),
        played.drops.to_string(),
        played.timeouts.to_string(),
        played.decisions.to_string(),
        number(predicted.mean_fct_ms),
        predicted.drops.to_string(),
        predicted.timeouts.to_string(),
        number(truth.late_p50_us),
        number(truth.late_p99_us),
        number(truth.longest_stall_us),
        number(truth.start_late_p99_us),
        number(truth.decision_p99_us),
        number(truth.rtt_us),
        number(truth.cpu_headroom),
        cell(truth.load_average),
    ]
}
