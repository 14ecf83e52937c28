//! Tables, drawing, claims and page of a measurement.

use std::time::Instant;

use bufgym_eval::agreement::{Agreement, Pairs};
use bufgym_eval::data::{BASELINE, ScenarioFacts};
use bufgym_eval::figures::plot::Curve;
use bufgym_eval::figures::style::Stroke;
use bufgym_eval::format;
use bufgym_eval::stats;
use bufgym_eval::testbed::Worst;

use super::super::super::setting::{Context, stroke};
use super::super::super::{notes, sort};
use super::super::played::Played;
use super::super::{stretched, workload};
use super::{MeasuredPlan, Panel, Predicted, extent};
use crate::claim::Claim;
use crate::report::{Panel as Drawn, Report, Table};
use crate::runs::PapersError;
use crate::verdict::Grade;

/// Builds the whole report.
///
/// # Errors
/// Fails if the learned policy decides nothing or a figure cannot be drawn.
pub(super) fn report(
    plan: &MeasuredPlan,
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
fn described(plan: &MeasuredPlan) -> String {
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
fn drawn(
    plan: &MeasuredPlan,
    context: &Context<'_>,
    panel: &Panel<'_>,
) -> Result<Drawn, PapersError> {
    let policies = &plan.policies;
    let (measured, predicted) = (panel.measured(policies), panel.predicted(policies));
    let mut curves: Vec<Curve> = Vec::new();
    for policy in policies.iter() {
        let name = policies.legend(policy);
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
        Worst::of(panel.runs().map(|run| &run.truth)),
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
fn claims(plan: &MeasuredPlan, context: &Context<'_>, panel: &Panel<'_>) -> Vec<Claim> {
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
fn over_all(plan: &MeasuredPlan, context: &Context<'_>, panel: &Panel<'_>) -> String {
    let dt = plan.policies.place(BASELINE).unwrap_or(0);
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
fn agreement(plan: &MeasuredPlan, panel: &Panel<'_>) -> Option<String> {
    let pairs = plan.policies.iter().enumerate();
    let mut pairs: Vec<Pairs> = pairs
        .map(|(place, policy)| Pairs {
            policy: policy.name().to_owned(),
            measured: over_loads(&panel.played, place, |run: &Played| run.mean_fct_ms),
            predicted: over_loads(&panel.predicted, place, |run: &Predicted| run.mean_fct_ms),
        })
        .collect();
    // Ratios are relative to the first policy.
    pairs.swap(0, plan.policies.place(BASELINE).unwrap_or(0));
    let agreement = Agreement::of(&pairs, plan.config.figures.seed)?;
    let errors = agreement.rows.iter().map(|row| {
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        format!(
            "{} {:+.1} % [{:+.1}, {:+.1}]",
            row.policy,
            percent(row.error.centre),
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
fn table(plan: &MeasuredPlan, context: &Context<'_>, panel: &Panel<'_>) -> Table {
    let policies = &plan.policies;
    let (measured, predicted) = (panel.measured(policies), panel.predicted(policies));
    let names = [
        "simulated_mean_fct_ms",
        "simulated_ratio_to_dt",
        "simulated_ratio_lo",
        "simulated_ratio_hi",
    ];
    let played = |row: &(usize, usize)| panel.played[row.1][row.0].as_slice();
    let simulated = |row: &(usize, usize)| panel.predicted[row.1][row.0].as_slice();
    let worst = |row: &(usize, usize)| Worst::of(played(row).iter().map(|run| &run.truth));
    predicted
        .add_means(context, measured.table(context), names)
        .number("simulated_over_measured", |row| {
            let simulated = values(simulated(row), |run| run.mean_fct_ms);
            let measured = values(played(row), |run| run.mean_fct_ms);
            Some(context.ratio(&simulated, &measured)?.centre)
        })
        .number("drops", |row| mean(played(row), |run| run.drops))
        .number("simulated_drops", |row| {
            mean(simulated(row), |run| run.drops)
        })
        .number("timeouts", |row| mean(played(row), |run| run.timeouts))
        .number("simulated_timeouts", |row| {
            mean(simulated(row), |run| run.timeouts)
        })
        .number("late_p50_us", |row| Some(worst(row).late_p50_us))
        .number("late_p99_us", |row| Some(worst(row).late_p99_us))
        .number("late_p50_share", |row| Some(worst(row).late_p50_share))
        .number("cpu_headroom", |row| Some(worst(row).cpu_headroom))
        .text("void_runs", |row| worst(row).void_runs.to_string())
        .text("simulated_propagation_ns", |_| {
            panel.propagation_ns.to_string()
        })
        .table()
}

fn values<T>(runs: &[T], value: fn(&T) -> f64) -> Vec<f64> {
    runs.iter().map(value).collect()
}

fn mean<T>(runs: &[T], count: fn(&T) -> u64) -> Option<f64> {
    let counts: Vec<f64> = runs.iter().map(|run| count(run) as f64).collect();
    stats::mean(&counts)
}

/// Returns a row for every run.
fn runs(plan: &MeasuredPlan, panel: &Panel<'_>) -> Table {
    let name = format!("fig{}-runs", panel.planned.figure.id());
    let of_load = |place: usize, at: usize| {
        let load = &panel.planned.loads[at];
        let (played, predicted) = (&panel.played[at][place], &panel.predicted[at][place]);
        let runs = load.traces.iter().zip(played).zip(predicted);
        runs.map(move |(((numbered, _), played), predicted)| {
            (place, load.percent, numbered, played, predicted)
        })
    };
    let places = 0..plan.policies.len();
    let loads = panel.planned.loads.len();
    let rows = places.flat_map(|place| (0..loads).flat_map(move |at| of_load(place, at)));
    Table::of(&name, rows)
        .text("policy", |row| plan.policies[row.0].name().to_owned())
        .text("load_percent", |row| row.1.to_string())
        .text("trace", |row| row.2.index.to_string())
        .text("seed", |row| row.2.seed.to_string())
        .text("flows", |row| row.2.trace.flows.len().to_string())
        .number("mean_fct_ms", |row| Some(row.3.mean_fct_ms))
        .number("p99_fct_ms", |row| Some(row.3.p99_fct_ms))
        .text("drops", |row| row.3.drops.to_string())
        .text("timeouts", |row| row.3.timeouts.to_string())
        .text("decisions", |row| row.3.decisions.to_string())
        .number("simulated_mean_fct_ms", |row| Some(row.4.mean_fct_ms))
        .text("simulated_drops", |row| row.4.drops.to_string())
        .text("simulated_timeouts", |row| row.4.timeouts.to_string())
        .number("late_p50_us", |row| Some(row.3.truth.late_p50_us))
        .number("late_p99_us", |row| Some(row.3.truth.late_p99_us))
        .number("longest_stall_us", |row| Some(row.3.truth.longest_stall_us))
        .number("start_late_p99_us", |row| {
            Some(row.3.truth.start_late_p99_us)
        })
        .number("decision_p99_us", |row| Some(row.3.truth.decision_p99_us))
        .number("rtt_us", |row| Some(row.3.truth.rtt_us))
        .number("cpu_headroom", |row| Some(row.3.truth.cpu_headroom))
        .number("load_average", |row| row.3.truth.load_average)
        .table()
}
