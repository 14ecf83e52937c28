//! The comparison as tables for the terminal.

use bufgym_util::input::visible;

use crate::data::{Evaluation, PolicySummary, Role, SeedGroup};
use crate::metric::{
    LosslessColumn, LosslessRatios, ObjectiveRatios, SlowdownColumn, SlowdownRatios,
};
use crate::{format, label};

const HEADER: [&str; 9] = [
    "policy",
    "mean FCT ms",
    "ratio to DT [95 %]",
    "won/tied/lost",
    "p99 ratio",
    "of unlimited's gain",
    "drops",
    "timeouts/flow",
    "of FCT",
];

/// Renders the main table, one line per policy. Ratios are to DT (α = 1) on the same traces;
/// `of unlimited's gain` is the share of the unlimited buffer's gain over DT, and `of FCT` the part of mean
/// FCT that flows wait for timeouts.
fn render(policies: &[PolicySummary]) -> String {
    aligned(&HEADER, policies.iter().map(row))
}

/// Renders the table of the other objectives: ratios to DT of the means over traces, with 95 % intervals.
fn render_objectives(policies: &[PolicySummary]) -> String {
    let columns = ObjectiveRatios::COLUMNS;
    let header: Vec<&str> = std::iter::once("policy")
        .chain(columns.iter().map(|column| column.full_title))
        .collect();
    let row = |policy: &PolicySummary| {
        let ratios = columns
            .iter()
            .map(|column| (column.field)(&policy.objective_ratios));
        let cells = ratios.map(|ratio| format::interval(ratio.as_ref()));
        std::iter::once(policy.entry.label().to_owned())
            .chain(cells)
            .collect()
    };
    aligned(&header, policies.iter().map(row))
}

/// Renders slowdowns by class of flows, each with its paired ratio to DT's; nothing for a single switch.
fn render_slowdowns(evaluation: &Evaluation) -> String {
    if evaluation.scenario.switches < 2 {
        return String::new();
    }
    let columns = SlowdownRatios::COLUMNS;
    let header: Vec<&str> = std::iter::once("slowdown, ÷ DT's [95 %]")
        .chain(columns.iter().map(|column| column.title))
        .collect();
    let row = |policy: &PolicySummary| {
        let slowdowns = policy.slowdowns();
        let cell = |column: &SlowdownColumn| {
            let value = format::optional((column.field)(&slowdowns));
            let ratio = format::interval((column.ratio)(&policy.slowdown_ratios).as_ref());
            format!("{value}, {ratio}")
        };
        let name = std::iter::once(policy.entry.label().to_owned());
        name.chain(columns.iter().map(cell)).collect()
    };
    aligned(&header, evaluation.policies.iter().map(row)) + "\n"
}

/// Renders pauses, lost lossless packets and occupancy, each with its ratio to DT's; nothing if no packet is
/// lossless.
fn render_lossless(evaluation: &Evaluation) -> String {
    if !evaluation.has_lossless() {
        return String::new();
    }
    let columns = LosslessRatios::COLUMNS;
    let header: Vec<&str> = std::iter::once("pauses, ÷ DT's [95 %]")
        .chain(columns.iter().map(|column| column.title))
        .collect();
    let row = |policy: &PolicySummary| {
        let cell = |column: &LosslessColumn| {
            let value = (column.field)(&policy.lossless);
            let value = match column.is_share {
                true if policy.entry.role == Role::Reference => return format::NONE.to_owned(),
                true => format::percent(value),
                false => format::optional(value),
            };
            let ratio = format::interval((column.ratio)(&policy.lossless_ratios).as_ref());
            format!("{value}, {ratio}")
        };
        let name = std::iter::once(policy.entry.label().to_owned());
        name.chain(columns.iter().map(cell)).collect()
    };
    aligned(&header, evaluation.policies.iter().map(row)) + "\n"
}

/// Renders groups of networks whose trainings differ in the seed only; nothing if there are none.
fn render_seeds(groups: &[SeedGroup]) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let header = [
        "over seeds",
        "seeds",
        "mean FCT ms",
        "ratio to DT [95 %]",
        "best",
        "worst",
        "deviation",
    ];
    let row = |group: &SeedGroup| {
        vec![
            label::of_task(&group.task),
            group.seeds.len().to_string(),
            format::optional(group.mean_fct_ms),
            format::interval(Some(&group.ratio_to_dt)),
            format::ratio(Some(group.best())),
            format::ratio(Some(group.worst())),
            format::ratio(Some(group.deviation)),
        ]
    };
    aligned(&header, groups.iter().map(row)) + "\n"
}

/// Renders ratios to DT by the arrivals of a trace; nothing if all traces are alike.
fn render_arrivals(policies: &[PolicySummary]) -> String {
    let Some(first) = policies.first().filter(|p| !p.by_arrivals.is_empty()) else {
        return String::new();
    };
    let heads = first
        .by_arrivals
        .iter()
        .map(|kind| format!("{}, {} traces", kind.arrivals.name(), kind.traces));
    let heads: Vec<String> = heads.collect();
    let header: Vec<&str> = std::iter::once("ratio to DT by arrivals")
        .chain(heads.iter().map(String::as_str))
        .collect();
    let row = |policy: &PolicySummary| {
        let cells = policy.by_arrivals.iter();
        let cells = cells.map(|kind| format::interval(kind.ratio_to_dt.as_ref()));
        std::iter::once(policy.entry.label().to_owned())
            .chain(cells)
            .collect()
    };
    aligned(&header, policies.iter().map(row)) + "\n"
}

/// Renders the policy strings behind labels; nothing if all are the same.
fn render_labels(policies: &[PolicySummary]) -> String {
    let entries = policies.iter().map(|policy| &policy.entry);
    let others = entries.filter(|entry| entry.label() != entry.policy);
    let lines: String = others
        .map(|entry| format!("{} = {}\n", visible(entry.label()), visible(&entry.policy)))
        .collect();
    match lines.as_str() {
        "" => lines,
        _ => format!("\nlabels\n\n{lines}"),
    }
}

/// Renders a table with aligned columns, ending in a newline.
pub fn aligned(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let header = header.iter().map(|head| (*head).to_string()).collect();
    // The name of a policy may come from a file, and a cell must stay on one line.
    let visible = |row: Vec<String>| row.iter().map(|cell| visible(cell)).collect();
    let rows = rows.map(visible);
    let rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| {
            rows.iter()
                .map(|r| r[column].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let rule: String = widths
        .iter()
        .map(|w| "─".repeat(*w))
        .collect::<Vec<_>>()
        .join("──");
    let mut lines: Vec<String> = rows.iter().map(|row| line(row, &widths)).collect();
    lines.insert(1, rule);
    lines.join("\n") + "\n"
}

/// Renders all tables of an evaluation, with a line about the comparison and one per failed trace.
pub fn render_evaluation(evaluation: &Evaluation) -> String {
    let mut text = format!(
        "{} · {} {} traces, seed {} · ratios to DT (α = 1), lower is better\n\n{}\n{}{}{}{}\
         other objectives: means over traces ÷ DT's [95 %]\n\n{}{}",
        visible(&evaluation.scenario.name),
        evaluation.traces,
        evaluation.split,
        evaluation.seed,
        render(&evaluation.policies),
        render_slowdowns(evaluation),
        render_lossless(evaluation),
        render_seeds(&evaluation.seeds),
        render_arrivals(&evaluation.policies),
        render_objectives(&evaluation.policies),
        render_labels(&evaluation.policies),
    );
    for failure in evaluation.failures() {
        let reason = failure.failure.as_deref().unwrap_or_default();
        text += &format!(
            "FAILED: {} on trace {}: {}\n",
            visible(evaluation.label(&failure.policy)),
            failure.trace,
            visible(reason)
        );
    }
    text
}

fn row(policy: &PolicySummary) -> Vec<String> {
    let tally = &policy.tally;
    vec![
        policy.entry.label().to_owned(),
        format::optional(policy.all_flows.mean_fct_ms),
        format::interval(policy.ratio_to_dt.as_ref()),
        format!("{}/{}/{}", tally.won, tally.tied, tally.lost),
        format::ratio(policy.p99_ratio_to_dt.map(|ratio| ratio.centre)),
        format::percent(policy.headroom),
        format::count(policy.drops),
        format::optional(policy.timeouts_per_flow),
        format::percent(policy.timeout_share),
    ]
}

fn line(row: &[String], widths: &[usize]) -> String {
    let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(text.chars().count()));
    let cells = row
        .iter()
        .zip(widths)
        .enumerate()
        .map(|(column, (text, width))| match column {
            0 => format!("{text}{}", pad(text, *width)),
            _ => format!("{}{text}", pad(text, *width)),
        });
    cells.collect::<Vec<_>>().join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn every_line_is_equally_wide() {
        let policies = synthetic::typical(0.8).policies;
        for text in [render(&policies), render_objectives(&policies)] {
            let widths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
            assert_eq!(widths.len(), 8);
            assert!(widths.iter().all(|w| *w == widths[0]), "{text}");
        }
    }

    #[test]
    fn labels_stand_in_every_table_and_policy_strings_once() {
        let text = render_evaluation(&synthetic::typical(0.8));
        let rows = text.lines().filter(|line| line.starts_with("ndt-fct "));
        assert_eq!(rows.count(), 3, "{text}");
        assert_eq!(text.matches("ndt:checkpoints/ndt-fct").count(), 1);
        assert!(text.ends_with("\nlabels\n\nndt-fct = ndt:checkpoints/ndt-fct\n"));
    }

    #[test]
    fn pauses_stand_beside_their_ratios() {
        let plain = synthetic::evaluation(&[
            ("reverie", &[8.0, 22.0]),
            ("dt", &[10.0, 20.0]),
            ("unlimited", &[5.0, 10.0]),
        ]);
        assert!(!render_evaluation(&plain).contains("lossless drops"));
        let text = render_evaluation(&synthetic::with_pauses(plain));
        let table = &text[text.find("pauses, ÷").unwrap()..];
        let reverie = table
            .lines()
            .find(|line| line.starts_with("reverie"))
            .unwrap();
        let cells: Vec<&str> = reverie.split("  ").filter(|c| !c.is_empty()).collect();
        let expected = [
            "15.0, 1.000 [0.800–1.100]",
            "30.0, 1.000 [0.800–1.100]",
            "0, –",
            "25\u{a0}%, 1.000 [1.000–1.000]",
            "50\u{a0}%, 1.000 [1.000–1.000]",
        ];
        let cells: Vec<&str> = cells[1..].iter().map(|cell| cell.trim()).collect();
        assert_eq!(cells, expected);
        let unlimited = table
            .lines()
            .find(|line| line.starts_with("unlimited"))
            .unwrap();
        assert!(unlimited.trim_end().ends_with('–'), "{unlimited}");
    }

    #[test]
    fn the_numbers_of_a_small_comparison() {
        let text = render_evaluation(&synthetic::evaluation(&[
            ("cs", &[8.0, 22.0]),
            ("dt", &[10.0, 20.0]),
            ("unlimited", &[5.0, f64::NAN]),
        ]));
        let cs = text.lines().find(|line| line.starts_with("cs ")).unwrap();
        let cells: Vec<&str> = cs.split_whitespace().collect();
        let expected = [
            "cs",
            "8.00",
            "0.800",
            "[0.800–0.800]",
            "1/0/0",
            "0.800",
            "40",
            "%",
            "80",
            "0.0267",
            "25",
            "%",
        ];
        assert_eq!(cells, expected);
        let rows: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("cs "))
            .collect();
        let cells: Vec<&str> = rows[1].split_whitespace().collect();
        // The trace that one policy failed counts for none: losses are 8 over 10, goodputs 992 over 990
        // Mbit/s.
        let expected = ["cs", "0.800", "[0.800–0.800]", "1.002", "[1.002–1.002]"];
        assert_eq!(cells[..5], expected);
        assert!(text.contains("FAILED: unlimited on trace 1: 1 of 300 flows did not finish"));
    }
}
