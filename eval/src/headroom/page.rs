//! A measurement as tables for terminal and page, and its files.

use std::fmt::Write as _;
use std::path::Path;

use bufgym_util::input::visible;

use super::{Headroom, Row};
use crate::format;
use crate::output::{OutputError, fill, pretty_json, rows_csv};
use crate::table::aligned;

const HEADER: [&str; 6] = [
    "mean FCT",
    "÷ DT as chosen [95 %]",
    "÷ DT, new noise [95 %]",
    "best trace",
    "worst trace",
    "÷ best rule, new noise [95 %]",
];

const GOODPUT_HEADER: [&str; 3] = [
    "goodput, higher is better",
    "÷ DT, new noise [95 %]",
    "÷ best rule, new noise [95 %]",
];

/// Number of rules that tables show.
const SHOWN: usize = 12;

/// The columns of `per_trace.csv`, in order: fields of a row in `headroom.json`.
const PER_TRACE_COLUMNS: [&str; 16] = [
    "row",
    "trace",
    "seed",
    "flows",
    "policy",
    "dt_mean_fct_ms",
    "mean_fct_ms",
    "ratio_to_dt",
    "jittered_dt_mean_fct_ms",
    "jittered_mean_fct_ms",
    "jittered_ratio_to_dt",
    "jittered_ratio_to_best_rule",
    "jittered_dt_goodput_bps",
    "jittered_goodput_bps",
    "jittered_goodput_ratio_to_dt",
    "jittered_goodput_ratio_to_best_rule",
];

/// Renders the tables and the verdict for the terminal.
pub fn render(headroom: &Headroom) -> String {
    let rows = headroom.rows.iter().map(cells);
    let goodput = headroom.rows.iter().map(goodput_cells);
    let rules = headroom.rules.iter().take(SHOWN).map(|rule| {
        vec![
            rule.policy.clone(),
            format::interval(rule.ratio_to_dt.as_ref()),
            rule.best_on.to_string(),
        ]
    });
    format!(
        "{}\n\n{}\n{}\n{}{}\n{}\n\n{}\n",
        scope(headroom),
        aligned(&HEADER, rows),
        aligned(&GOODPUT_HEADER, goodput),
        aligned(&["rule", "÷ DT [95 %]", "best on traces"], rules),
        rest(headroom),
        method(headroom),
        headroom.verdict.text
    )
}

/// Renders them as a page in Markdown.
fn page(headroom: &Headroom) -> String {
    let mut text = format!(
        "# Possible gain in `{}`\n\n{}\n\n{}\n\n",
        headroom.scenario.name,
        headroom.verdict.text,
        scope(headroom)
    );
    let heads = |columns: &[&str]| {
        let rule = "--:|".repeat(columns.len() - 1);
        format!("| {} |\n|---|{rule}\n", columns.join(" | "))
    };
    text += &heads(&HEADER);
    for row in &headroom.rows {
        _ = writeln!(text, "| {} |", cells(row).join(" | "));
    }
    text += "\n## Goodput\n\nOf the same rows, which are chosen by mean FCT.\n\n";
    text += &heads(&GOODPUT_HEADER);
    for row in &headroom.rows {
        _ = writeln!(text, "| {} |", goodput_cells(row).join(" | "));
    }
    text += "\n## Rules to choose from\n\n";
    text += &heads(&["rule", "÷ DT [95 %]", "best on traces"]);
    for rule in &headroom.rules {
        let ratio = format::interval(rule.ratio_to_dt.as_ref());
        _ = writeln!(text, "| `{}` | {ratio} | {} |", rule.policy, rule.best_on);
    }
    _ = write!(text, "\n{}\n", method(headroom));
    text
}

fn scope(headroom: &Headroom) -> String {
    let left_out = match headroom.left_out.len() {
        0 => String::new(),
        count => format!(" ({count} more left out: DT left flows unfinished)"),
    };
    format!(
        "{} · {} {} traces{left_out}, seed {} · ratios of mean FCT to DT (α = 1), lower is better · \
         new noise: the mean of {} copies of each trace",
        visible(&headroom.scenario.name),
        headroom.traces,
        headroom.split,
        headroom.seed,
        headroom.jittered,
    )
}

fn method(headroom: &Headroom) -> String {
    let seen = match headroom.planned {
        1 => "on the trace itself".to_owned(),
        planned => format!("on {planned} copies of the trace together"),
    };
    format!(
        "searched: alpha of {} every {}, each candidate followed for {}, {seen}; it also picks chance, and what \
         survives new noise is in the columns of that name. An unlimited buffer and ideal senders \
         (no queues, losses and slow starts) are scales, not bounds.\n\
         cost: {} simulations, and forks worth {} more",
        headroom.low_level,
        format::microseconds(headroom.step_us),
        format::microseconds(headroom.horizon_us),
        format::count(headroom.cost.runs),
        format::count(bufgym_util::convert::floor_u64(headroom.cost.forks_as_runs)),
    )
}

fn rest(headroom: &Headroom) -> String {
    match headroom.rules.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("and {more} more rules\n"),
    }
}

fn cells(row: &Row) -> Vec<String> {
    vec![
        row.row.title().to_owned(),
        format::interval(row.ratio_to_dt.as_ref()),
        format::interval(row.jittered_ratio_to_dt.as_ref()),
        format::ratio(row.best_ratio),
        format::ratio(row.worst_ratio),
        format::interval(row.jittered_ratio_to_best_rule.as_ref()),
    ]
}

fn goodput_cells(row: &Row) -> Vec<String> {
    vec![
        row.row.title().to_owned(),
        format::interval(row.jittered_goodput_ratio_to_dt.as_ref()),
        format::interval(row.jittered_goodput_ratio_to_best_rule.as_ref()),
    ]
}

/// Writes `headroom.md`, `headroom.json` and `per_trace.csv` into an empty folder.
///
/// # Errors
/// Fails if a file cannot be written.
pub fn write_into(headroom: &Headroom, folder: &Path) -> Result<(), OutputError> {
    let files = [
        ("headroom.md", page(headroom).into_bytes()),
        ("headroom.json", pretty_json("headroom.json", headroom)?),
        (
            "per_trace.csv",
            rows_csv("per_trace.csv", &PER_TRACE_COLUMNS, &headroom.per_trace)?,
        ),
    ];
    fill(folder, &files.map(|(name, bytes)| (name.to_owned(), bytes)))
}
