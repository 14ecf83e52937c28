//! The comparison as a table for the terminal.

use crate::data::{Evaluation, PolicySummary};
use crate::format;

const HEADER: [&str; 8] = [
    "policy",
    "mean FCT ms",
    "ratio to DT [95 %]",
    "won/tied/lost",
    "p99 ratio",
    "headroom",
    "drops",
    "timeouts",
];

/// The table, one line per policy, columns aligned, ending in a newline.
///
/// Ratios are to DT (α = 1) on the same traces; `headroom` is the share captured between DT and
/// the unlimited buffer.
pub fn render(policies: &[PolicySummary]) -> String {
    let mut rows: Vec<Vec<String>> = vec![HEADER.map(str::to_string).to_vec()];
    rows.extend(policies.iter().map(row));
    let widths: Vec<usize> = (0..HEADER.len())
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

/// [`render`] for an evaluation, with a line that says what was compared and one per failure.
pub fn render_evaluation(evaluation: &Evaluation) -> String {
    let mut text = format!(
        "{} · {} {} traces, seed {} · ratios to DT (α = 1), lower is better\n\n{}",
        evaluation.scenario.name,
        evaluation.traces,
        evaluation.split,
        evaluation.seed,
        render(&evaluation.policies),
    );
    for failure in evaluation.failures() {
        let reason = failure.failure.as_deref().unwrap_or_default();
        text += &format!(
            "FAILED: {} on trace {}: {reason}\n",
            failure.policy, failure.trace
        );
    }
    text
}

fn row(policy: &PolicySummary) -> Vec<String> {
    let tally = &policy.tally;
    vec![
        policy.entry.policy.clone(),
        format::optional(policy.mean_fct_ms),
        format::interval(policy.ratio_to_dt.as_ref()),
        format!("{}/{}/{}", tally.won, tally.tied, tally.lost),
        format::ratio(policy.p99_ratio_to_dt.map(|ratio| ratio.mean)),
        format::percent(policy.headroom),
        format::count(policy.drops),
        format::count(policy.timeouts),
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
        let text = render(&synthetic::typical(0.8).policies);
        let widths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths.len(), 8);
        assert!(widths.iter().all(|w| *w == widths[0]), "{text}");
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
            "8",
        ];
        assert_eq!(cells, expected);
        assert!(text.contains("FAILED: unlimited on trace 1: 1 of 300 flows did not finish"));
    }
}
