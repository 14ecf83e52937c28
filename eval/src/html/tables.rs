//! The tables of the report.

use maud::{Markup, html};

use crate::data::{Entry, Evaluation, PolicySummary, Role};
use crate::metric::{
    self, AllFlows, ClassSlowdowns, FlowClasses, LosslessMetrics, LosslessRatios, ObjectiveMetrics,
    ObjectiveRatios, SlowdownRatios,
};
use crate::stats::{Estimate, Tally};
use crate::{format, label};

/// A column of a table with one row per policy: heading, unit or explanation, and the cell of a
/// policy.
struct Column {
    head: &'static str,
    unit: &'static str,
    cell: Box<dyn Fn(&PolicySummary) -> Cell>,
}

/// Builds a column of cells that may have a detail or a class.
fn cells(
    head: &'static str,
    unit: &'static str,
    cell: impl Fn(&PolicySummary) -> Cell + 'static,
) -> Column {
    let cell = Box::new(cell);
    Column { head, unit, cell }
}

/// Builds a column of plain texts.
fn texts(
    head: &'static str,
    unit: &'static str,
    text: impl Fn(&PolicySummary) -> String + 'static,
) -> Column {
    cells(head, unit, move |policy| plain(text(policy)))
}

/// Builds a column for each metric of a group.
fn of_group<G: 'static>(
    columns: &'static [metric::Column<G>],
    group: fn(&PolicySummary) -> &G,
) -> impl Iterator<Item = Column> {
    columns.iter().map(move |column| {
        texts(column.title, column.unit, move |policy| {
            let value = (column.field)(group(policy));
            format::optional(value.map(|value| value * column.scale))
        })
    })
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

/// Builds a cell for a ratio with its interval, coloured if the interval excludes 1.
fn ratio_cell(ratio: Option<Estimate>) -> Cell {
    let class = match ratio {
        Some(ratio) if ratio.is_below_one() => "wins",
        Some(ratio) if ratio.is_above_one() => "loses",
        _ => "",
    };
    Cell {
        value: format::ratio(ratio.map(|r| r.centre)),
        detail: ratio.as_ref().map(format::bounds).unwrap_or_default(),
        class,
    }
}

/// Builds a cell for a ratio of a policy to DT. DT's own ratio has no interval, and that of the reference has
/// no colour.
fn policy_ratio(policy: &PolicySummary, ratio: Option<Estimate>) -> Cell {
    match policy.entry.role {
        Role::Baseline => plain(format::ratio(ratio.map(|r| r.centre))),
        Role::Reference => Cell {
            class: "",
            ..ratio_cell(ratio)
        },
        _ => ratio_cell(ratio),
    }
}

/// Swaps the colours of a cell for a metric whose higher values are better.
fn higher_is_better(cell: Cell) -> Cell {
    let class = match cell.class {
        "wins" => "loses",
        "loses" => "wins",
        class => class,
    };
    Cell { class, ..cell }
}

/// Renders a label or a policy string that may break after each part of a path.
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

/// Renders a table that scrolls sideways if it does not fit. `heads` are the headings of the columns with
/// their units.
pub fn scrolling(label: &str, caption: &Markup, heads: &[(&str, &str)], rows: &Markup) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label=(label) {
            table {
                caption { span { (caption) } }
                thead {
                    tr {
                        @for (head, unit) in heads {
                            th scope="col" { (head) @if !unit.is_empty() { small { (unit) } } }
                        }
                    }
                }
                tbody { (rows) }
            }
        }
    }
}

/// Renders a section with one table.
fn section(title: &str, caption: &str, heads: &[(&str, &str)], rows: &Markup) -> Markup {
    html! {
        section {
            h2 { (title) }
            (scrolling(title, &html! { (caption) }, heads, rows))
        }
    }
}

/// Renders a section with a table of one row per policy.
fn by_policy(evaluation: &Evaluation, title: &str, caption: &str, columns: &[Column]) -> Markup {
    let mut heads = vec![("Policy", "")];
    heads.extend(columns.iter().map(|column| (column.head, column.unit)));
    let rows = html! {
        @for policy in &evaluation.policies {
            tr class=(role_class(policy.entry.role)) {
                th scope="row" { (name(policy.entry.label())) }
                @for column in columns { (data_cell(&(column.cell)(policy))) }
            }
        }
    };
    section(title, caption, &heads, &rows)
}

fn data_cell(cell: &Cell) -> Markup {
    let class = (!cell.class.is_empty()).then_some(cell.class);
    html! {
        td class=[class] {
            (cell.value)
            @if !cell.detail.is_empty() { small { (cell.detail) } }
        }
    }
}

/// Renders the main table.
pub fn comparison(evaluation: &Evaluation) -> Markup {
    let interval = "95 % interval";
    let columns = [
        texts("Mean FCT", "ms", |p| {
            format::optional(p.all_flows.mean_fct_ms)
        }),
        cells("Ratio to DT", interval, |p| policy_ratio(p, p.ratio_to_dt)),
        texts("Won · tied · lost", "traces", |p| {
            not_baseline(p, won_tied_lost(&p.tally))
        }),
        texts("Share won", "without ties", |p| {
            format::percent(p.share_won)
        }),
        cells("p99 ratio", interval, |p| {
            policy_ratio(p, p.p99_ratio_to_dt)
        }),
        texts("Best · worst", "ratio on a trace", |p| {
            not_baseline(p, best_and_worst(p))
        }),
        texts("Share of the", "unlimited buffer’s gain", |p| {
            format::percent(p.headroom)
        }),
    ];
    let caption = "Compared with DT (α = 1) on the same traces; lower ratios are better.";
    by_policy(evaluation, "Comparison", caption, &columns)
}

/// Renders the policies in full.
pub fn policies(evaluation: &Evaluation) -> Markup {
    let heads = [("Label", ""), ("Policy", ""), ("Origin", "")];
    let rows = html! {
        @for entry in evaluation.policies.iter().map(|policy| &policy.entry) {
            tr class=(role_class(entry.role)) {
                th scope="row" { (name(entry.label())) }
                td { (name(&entry.policy)) }
                td { (origin(entry)) }
            }
        }
    };
    let caption =
        "The policy strings that `bufgym eval --policy` takes, and where the policies come from.";
    section("Policies", caption, &heads, &rows)
}

fn origin(entry: &Entry) -> &str {
    match (entry.origin.as_str(), entry.role) {
        ("", Role::Baseline) => "baseline of all ratios",
        ("", Role::Reference) => "reference, no real switch",
        ("", Role::Learned) => "learned",
        ("", Role::Heuristic) => "fixed rule",
        (origin, _) => origin,
    }
}

/// Returns the text, except for the baseline, which is not compared with itself.
fn not_baseline(policy: &PolicySummary, text: String) -> String {
    match policy.entry.role {
        Role::Baseline => format::NONE.to_string(),
        _ => text,
    }
}

fn won_tied_lost(tally: &Tally) -> String {
    format!("{} · {} · {}", tally.won, tally.tied, tally.lost)
}

fn best_and_worst(policy: &PolicySummary) -> String {
    let [best, worst] = [policy.best_ratio, policy.worst_ratio].map(format::optional);
    format!("{best} · {worst}")
}

/// Renders FCT percentiles and slowdowns by class.
pub(crate) fn completion_times(evaluation: &Evaluation) -> Markup {
    let (times, slowdown) = AllFlows::COLUMNS.split_at(4);
    let columns: Vec<Column> = of_group(times, |p| &p.all_flows)
        .chain(of_group(FlowClasses::COLUMNS, |p| &p.flow_classes))
        .chain(of_group(slowdown, |p| &p.all_flows))
        .chain(of_group(ClassSlowdowns::COLUMNS, |p| &p.class_slowdowns))
        .collect();
    let caption = "Means over traces. Short: at most 100 KB; long: at least 1 MB; in-cast: flows that start as a group.";
    by_policy(
        evaluation,
        "Completion times and slowdowns",
        caption,
        &columns,
    )
}

/// Renders slowdowns by class of flows, each next to its ratio to DT's; nothing for a single switch.
pub fn slowdowns(evaluation: &Evaluation) -> Markup {
    if evaluation.scenario.switches < 2 {
        return html! {};
    }
    let columns: Vec<Column> = SlowdownRatios::COLUMNS
        .into_iter()
        .flat_map(|column| {
            let value = texts(column.title, "slowdown", move |policy| {
                format::optional((column.field)(&policy.slowdowns()))
            });
            let ratio = cells(column.title, "ratio to DT", move |policy| {
                policy_ratio(policy, (column.ratio)(&policy.slowdown_ratios))
            });
            [value, ratio]
        })
        .collect();
    let caption = "Means over traces, and means of the ratios to DT’s (α = 1) on the same trace.";
    by_policy(evaluation, "Slowdowns by class", caption, &columns)
}

/// Renders pauses, lost lossless packets and occupancy, each next to its ratio to DT's; nothing if no packet
/// is lossless.
pub fn lossless(evaluation: &Evaluation) -> Markup {
    if !evaluation.has_lossless() {
        return html! {};
    }
    let ratios = LosslessRatios::COLUMNS;
    let columns: Vec<Column> = LosslessMetrics::COLUMNS
        .iter()
        .zip(ratios)
        .flat_map(|(metric, column)| {
            let has_none =
                move |p: &PolicySummary| column.is_share && p.entry.role == Role::Reference;
            let value = texts(metric.title, metric.unit, move |policy| {
                match has_none(policy) {
                    true => format::NONE.to_string(),
                    false => {
                        let value = (metric.field)(&policy.lossless);
                        format::optional(value.map(|value| value * metric.scale))
                    }
                }
            });
            let ratio = cells("Ratio to DT", "95 % interval", move |policy| {
                let ratio = (column.ratio)(&policy.lossless_ratios);
                match has_none(policy) {
                    true => plain(format::NONE.to_string()),
                    false if column.lower_is_better => policy_ratio(policy, ratio),
                    false => Cell {
                        class: "",
                        ..policy_ratio(policy, ratio)
                    },
                }
            });
            [value, ratio]
        })
        .collect();
    let caption = "Means over traces, and their ratios to DT’s (α = 1), which is SONiC here.";
    by_policy(evaluation, "Pauses and lossless packets", caption, &columns)
}

/// Renders the metric of each objective other than FCT, and its ratio to DT's.
pub fn objectives(evaluation: &Evaluation) -> Markup {
    let ratios = ObjectiveRatios::COLUMNS.into_iter().map(|column| {
        let higher = column.metric.higher_is_better();
        let unit = if higher {
            "higher is better"
        } else {
            "95 % interval"
        };
        cells(column.title, unit, move |policy| {
            let cell = policy_ratio(policy, (column.field)(&policy.objective_ratios));
            if higher { higher_is_better(cell) } else { cell }
        })
    });
    let columns: Vec<Column> = of_group(ObjectiveMetrics::COLUMNS, |p| &p.objectives)
        .zip(ratios)
        .flat_map(|(metric, ratio)| [metric, ratio])
        .collect();
    let caption = "Means over traces, and their ratios to DT’s (α = 1).";
    by_policy(evaluation, "Other objectives", caption, &columns)
}

/// Renders metrics of the buffer.
pub fn buffer(evaluation: &Evaluation) -> Markup {
    let columns = [
        texts("Drops", "packets", |p| format::count(p.drops)),
        texts("Data drops", "packets", |p| format::count(p.drops_data)),
        texts("Timeouts", "", |p| format::count(p.timeouts)),
        texts("Timeouts", "per flow", |p| {
            format::optional(p.timeouts_per_flow)
        }),
        texts("Timeouts", "of mean FCT", |p| {
            format::percent(p.timeout_share)
        }),
        texts("Occupancy p99", "mean, of the buffer", occupancy),
        texts("Occupancy max", "", |p| {
            format::bytes(p.max_occupancy_bytes)
        }),
        texts("Decisions", "", decisions),
    ];
    let caption = "Totals over all traces, except for the occupancy.";
    by_policy(evaluation, "Buffer and losses", caption, &columns)
}

/// Formats the share of the buffer in use; none for the unlimited buffer, which never fills.
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

/// Renders learned policies against the rules; nothing without learned policies.
pub fn versus(evaluation: &Evaluation) -> Markup {
    if evaluation.versus.is_empty() {
        return html! {};
    }
    let heads = [
        ("Policy", ""),
        ("Against", ""),
        ("Ratio", "95 % interval"),
        ("Won · tied · lost", "traces"),
        ("Share won", "without ties"),
    ];
    let rows = html! {
        @for versus in &evaluation.versus {
            tr {
                th scope="row" { (name(evaluation.label(&versus.policy))) }
                td { (name(evaluation.label(&versus.against))) }
                (data_cell(&ratio_cell(Some(versus.ratio))))
                td { (won_tied_lost(&versus.tally)) }
                td { (format::percent(versus.tally.share_won())) }
            }
        }
    };
    let caption = "Mean FCT of the learned policy divided by that of the rule on the same trace.";
    section("Learned policies against each rule", caption, &heads, &rows)
}

/// Renders groups of networks whose trainings differ in the seed only; nothing if there are none.
pub fn seeds(evaluation: &Evaluation) -> Markup {
    if evaluation.seeds.is_empty() {
        return html! {};
    }
    let heads = [
        ("Training", ""),
        ("Seeds", ""),
        ("Mean FCT", "ms"),
        ("Ratio to DT", "mean over seeds, 95 % interval over traces"),
        ("Best · worst", "seed"),
        ("Deviation", "over seeds"),
        ("p99 ratio", "95 % interval"),
    ];
    let rows = html! {
        @for group in &evaluation.seeds {
            tr class="learned" {
                th scope="row" { (name(&label::of_task(&group.task))) }
                td { (group.seeds.len()) }
                td { (format::optional(group.mean_fct_ms)) }
                (data_cell(&ratio_cell(Some(group.ratio_to_dt))))
                td { (format!("{:.3} · {:.3}", group.best(), group.worst())) }
                td { (format!("{:.3}", group.deviation)) }
                (data_cell(&ratio_cell(group.p99_ratio_to_dt)))
            }
        }
    };
    let caption = "Trainings that differ in their seed only, taken together.";
    section("Over seeds", caption, &heads, &rows)
}

/// Renders traces whose flows start one by one and traces whose flows start in groups; nothing if all traces
/// are alike.
pub(crate) fn by_arrivals(evaluation: &Evaluation) -> Markup {
    let Some(first) = evaluation.policies.first() else {
        return html! {};
    };
    let kinds: Vec<(usize, &str, u64)> = first
        .by_arrivals
        .iter()
        .enumerate()
        .map(|(place, kind)| (place, kind.arrivals.name(), kind.traces))
        .collect();
    if kinds.is_empty() {
        return html! {};
    }
    let mut columns = Vec::new();
    for &(place, kind, _) in &kinds {
        columns.push(texts("Mean FCT", "ms", move |p| {
            let own = p.by_arrivals.get(place);
            format::optional(own.and_then(|own| own.mean_fct_ms))
        }));
        columns.push(cells("Ratio to DT", kind, move |p| {
            let own = p.by_arrivals.get(place);
            policy_ratio(p, own.and_then(|own| own.ratio_to_dt))
        }));
    }
    let counts = kinds
        .iter()
        .map(|(_, kind, traces)| format!("{traces} {kind}"));
    let caption = format!(
        "Traces whose flows start one by one (spread) and in groups (synchronised): {}.",
        counts.collect::<Vec<_>>().join(", ")
    );
    by_policy(evaluation, "By arrivals", &caption, &columns)
}

/// Renders the traces that a policy failed; nothing if there are none.
pub fn failures(evaluation: &Evaluation) -> Markup {
    if evaluation.failures().next().is_none() {
        return html! {};
    }
    let heads = [("Policy", ""), ("Trace", ""), ("Seed", ""), ("Reason", "")];
    let rows = html! {
        @for failure in evaluation.failures() {
            tr {
                th scope="row" { (name(evaluation.label(&failure.policy))) }
                td { (failure.trace) }
                td { (failure.seed) }
                td { (failure.failure.as_deref().unwrap_or_default()) }
            }
        }
    };
    let caption = "These traces are left out of the means of every policy.";
    section("Failed traces", caption, &heads, &rows)
}
