//! The tables of the report.

use maud::{Markup, html};

use crate::data::{Evaluation, PolicySummary, Role};
use crate::format;
use crate::stats::Interval;

/// A column: heading, its unit or explanation, and the cell of a policy.
struct Column {
    head: &'static str,
    unit: &'static str,
    cell: fn(&PolicySummary) -> Cell,
}

/// A cell: the number, a smaller second line, and a class.
struct Cell {
    value: String,
    detail: String,
    class: &'static str,
}

fn plain(value: String) -> Cell {
    Cell {
        value,
        detail: String::new(),
        class: "",
    }
}

/// A ratio with its interval, coloured where the interval excludes 1.
fn ratio_cell(ratio: Option<&Interval>) -> Cell {
    let class = match ratio {
        Some(ratio) if ratio.is_below_one() => "wins",
        Some(ratio) if ratio.is_above_one() => "loses",
        _ => "",
    };
    Cell {
        value: format::ratio(ratio.map(|r| r.mean)),
        detail: ratio.map(format::bounds).unwrap_or_default(),
        class,
    }
}

/// A ratio of a policy; DT against itself has no interval, and the reference no verdict.
fn policy_ratio(policy: &PolicySummary, ratio: Option<&Interval>) -> Cell {
    match policy.entry.role {
        Role::Baseline => plain(format::ratio(ratio.map(|r| r.mean))),
        Role::Reference => Cell {
            class: "",
            ..ratio_cell(ratio)
        },
        _ => ratio_cell(ratio),
    }
}

/// A policy string that may break after each part of a path.
fn name(policy: &str) -> Markup {
    html! {
        @for part in policy.split_inclusive([':', '/', ',']) { (part) wbr; }
    }
}

fn role_class(role: Role) -> &'static str {
    match role {
        Role::Learned => "learned",
        Role::Heuristic => "heuristic",
        Role::Baseline => "baseline",
        Role::Reference => "reference",
    }
}

fn table(evaluation: &Evaluation, title: &str, caption: &str, columns: &[Column]) -> Markup {
    html! {
        section {
            h2 { (title) }
            div class="scroll" tabindex="0" role="region" aria-label=(title) {
                table {
                    caption { span { (caption) } }
                    thead {
                        tr {
                            th scope="col" { "Policy" }
                            @for column in columns { (heading(column.head, column.unit)) }
                        }
                    }
                    tbody {
                        @for policy in &evaluation.policies {
                            tr class=(role_class(policy.entry.role)) {
                                th scope="row" { (name(&policy.entry.policy)) }
                                @for column in columns { (cell(&(column.cell)(policy))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn heading(head: &str, unit: &str) -> Markup {
    html! { th scope="col" { (head) @if !unit.is_empty() { small { (unit) } } } }
}

fn cell(cell: &Cell) -> Markup {
    let class = (!cell.class.is_empty()).then_some(cell.class);
    html! {
        td class=[class] {
            (cell.value)
            @if !cell.detail.is_empty() { small { (cell.detail) } }
        }
    }
}

/// The main table.
pub fn comparison(evaluation: &Evaluation) -> Markup {
    let columns = [
        Column {
            head: "Mean FCT",
            unit: "ms",
            cell: |p| plain(format::optional(p.mean_fct_ms)),
        },
        Column {
            head: "Ratio to DT",
            unit: "95 % interval",
            cell: |p| policy_ratio(p, p.ratio_to_dt.as_ref()),
        },
        Column {
            head: "Won · tied · lost",
            unit: "traces",
            cell: |p| plain(tally(p)),
        },
        Column {
            head: "Share won",
            unit: "without ties",
            cell: |p| plain(format::percent(p.share_won)),
        },
        Column {
            head: "p99 ratio",
            unit: "95 % interval",
            cell: |p| policy_ratio(p, p.p99_ratio_to_dt.as_ref()),
        },
        Column {
            head: "Best · worst",
            unit: "ratio on a trace",
            cell: |p| plain(range(p)),
        },
        Column {
            head: "Headroom",
            unit: "captured",
            cell: |p| plain(format::percent(p.headroom)),
        },
    ];
    let caption = "Compared with DT (α = 1) on the same traces; lower ratios are better.";
    table(evaluation, "Comparison", caption, &columns)
}

fn tally(policy: &PolicySummary) -> String {
    if policy.entry.role == Role::Baseline {
        return format::NONE.to_string();
    }
    let tally = &policy.tally;
    format!("{} · {} · {}", tally.won, tally.tied, tally.lost)
}

fn range(policy: &PolicySummary) -> String {
    if policy.entry.role == Role::Baseline {
        return format::NONE.to_string();
    }
    format!(
        "{} · {}",
        format::optional(policy.best_ratio),
        format::optional(policy.worst_ratio)
    )
}

/// FCT percentiles and slowdowns by class.
pub fn completion_times(evaluation: &Evaluation) -> Markup {
    let columns = [
        Column {
            head: "Mean",
            unit: "ms",
            cell: |p| plain(format::optional(p.mean_fct_ms)),
        },
        Column {
            head: "p50",
            unit: "ms",
            cell: |p| plain(format::optional(p.p50_fct_ms)),
        },
        Column {
            head: "p95",
            unit: "ms",
            cell: |p| plain(format::optional(p.p95_fct_ms)),
        },
        Column {
            head: "p99",
            unit: "ms",
            cell: |p| plain(format::optional(p.p99_fct_ms)),
        },
        Column {
            head: "Short mean",
            unit: "ms",
            cell: |p| plain(format::optional(p.short_mean_fct_ms)),
        },
        Column {
            head: "Short p99",
            unit: "ms",
            cell: |p| plain(format::optional(p.short_p99_fct_ms)),
        },
        Column {
            head: "Long mean",
            unit: "ms",
            cell: |p| plain(format::optional(p.long_mean_fct_ms)),
        },
        Column {
            head: "In-cast mean",
            unit: "ms",
            cell: |p| plain(format::optional(p.incast_mean_fct_ms)),
        },
        Column {
            head: "In-cast p99",
            unit: "ms",
            cell: |p| plain(format::optional(p.incast_p99_fct_ms)),
        },
        Column {
            head: "Slowdown",
            unit: "all flows",
            cell: |p| plain(format::optional(p.mean_slowdown)),
        },
        Column {
            head: "Slowdown",
            unit: "short",
            cell: |p| plain(format::optional(p.short_mean_slowdown)),
        },
        Column {
            head: "Slowdown",
            unit: "long",
            cell: |p| plain(format::optional(p.long_mean_slowdown)),
        },
    ];
    let caption = "Means over traces. Short: at most 100 KB; long: at least 1 MB; in-cast: flows that start as a group.";
    table(
        evaluation,
        "Completion times and slowdowns",
        caption,
        &columns,
    )
}

/// What the policies do for objectives other than FCT.
pub fn objectives(evaluation: &Evaluation) -> Markup {
    let columns = [
        Column {
            head: "Loss",
            unit: "lost per delivered",
            cell: |p| plain(format::optional(p.measures.loss_per_delivered)),
        },
        Column {
            head: "Loss ratio",
            unit: "95 % interval",
            cell: |p| policy_ratio(p, p.measure_ratios.loss_ratio_to_dt.as_ref()),
        },
        Column {
            head: "Goodput",
            unit: "Mbit/s",
            cell: |p| plain(format::optional(p.measures.goodput_bps.map(|g| g * 1e-6))),
        },
        Column {
            head: "Goodput ratio",
            unit: "higher is better",
            cell: |p| {
                higher_is_better(policy_ratio(
                    p,
                    p.measure_ratios.goodput_ratio_to_dt.as_ref(),
                ))
            },
        },
        Column {
            head: "Queueing delay p99",
            unit: "µs",
            cell: |p| plain(format::optional(p.measures.p99_queueing_delay_us)),
        },
        Column {
            head: "Delay ratio",
            unit: "95 % interval",
            cell: |p| policy_ratio(p, p.measure_ratios.p99_queueing_delay_ratio_to_dt.as_ref()),
        },
        Column {
            head: "Port slowdowns",
            unit: "variance",
            cell: |p| plain(format::optional(p.measures.port_slowdown_variance)),
        },
        Column {
            head: "Variance ratio",
            unit: "95 % interval",
            cell: |p| {
                policy_ratio(
                    p,
                    p.measure_ratios.port_slowdown_variance_ratio_to_dt.as_ref(),
                )
            },
        },
    ];
    let caption = "Means over traces, and their ratios to DT’s (α = 1).";
    table(evaluation, "Other objectives", caption, &columns)
}

fn higher_is_better(cell: Cell) -> Cell {
    let class = match cell.class {
        "wins" => "loses",
        "loses" => "wins",
        class => class,
    };
    Cell { class, ..cell }
}

/// What happens in the buffer.
pub fn buffer(evaluation: &Evaluation) -> Markup {
    let columns = [
        Column {
            head: "Drops",
            unit: "packets",
            cell: |p| plain(format::count(p.drops)),
        },
        Column {
            head: "Data drops",
            unit: "packets",
            cell: |p| plain(format::count(p.drops_data)),
        },
        Column {
            head: "Timeouts",
            unit: "",
            cell: |p| plain(format::count(p.timeouts)),
        },
        Column {
            head: "Occupancy p99",
            unit: "mean, of the buffer",
            cell: |p| plain(occupancy(p)),
        },
        Column {
            head: "Occupancy max",
            unit: "",
            cell: |p| plain(format::bytes(p.max_occupancy_bytes)),
        },
        Column {
            head: "Decisions",
            unit: "",
            cell: |p| plain(decisions(p)),
        },
    ];
    let caption = "Totals over all traces, except for the occupancy.";
    table(evaluation, "Buffer and losses", caption, &columns)
}

/// The share of a buffer that never fills says nothing.
fn occupancy(policy: &PolicySummary) -> String {
    match policy.entry.role {
        Role::Reference => format::NONE.to_string(),
        _ => format::percent(policy.p99_occupancy),
    }
}

fn decisions(policy: &PolicySummary) -> String {
    match policy.entry.role {
        Role::Learned => format::count(policy.decisions),
        _ => format::NONE.to_string(),
    }
}

/// Learned policies against the rules.
pub fn versus(evaluation: &Evaluation) -> Markup {
    html! {
        @if !evaluation.versus.is_empty() {
            section {
                h2 { "Learned policies against each rule" }
                div class="scroll" tabindex="0" role="region" aria-label="Learned policies against each rule" {
                    table {
                        caption { span { "Mean FCT of the learned policy divided by that of the rule on the same trace." } }
                        thead {
                            tr {
                                th scope="col" { "Policy" }
                                (heading("Against", ""))
                                (heading("Ratio", "95 % interval"))
                                (heading("Won · tied · lost", "traces"))
                                (heading("Share won", "without ties"))
                            }
                        }
                        tbody {
                            @for versus in &evaluation.versus {
                                tr {
                                    th scope="row" { (name(&versus.policy)) }
                                    td { (versus.against) }
                                    (cell(&ratio_cell(Some(&versus.ratio))))
                                    td { (versus.tally.won) " · " (versus.tally.tied) " · " (versus.tally.lost) }
                                    td { (format::percent(versus.tally.share_won())) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The traces that a policy failed; nothing where there are none.
pub fn failures(evaluation: &Evaluation) -> Markup {
    let failures: Vec<_> = evaluation.failures().collect();
    html! {
        @if !failures.is_empty() {
            section {
                h2 { "Failed traces" }
                div class="scroll" tabindex="0" role="region" aria-label="Failed traces" {
                    table {
                        caption { span { "These traces are left out of the means of every policy." } }
                        thead {
                            tr {
                                th scope="col" { "Policy" }
                                (heading("Trace", ""))
                                (heading("Seed", ""))
                                (heading("Reason", ""))
                            }
                        }
                        tbody {
                            @for failure in failures {
                                tr {
                                    th scope="row" { (name(&failure.policy)) }
                                    td { (failure.trace) }
                                    td { (failure.seed) }
                                    td { (failure.failure.as_deref().unwrap_or_default()) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
