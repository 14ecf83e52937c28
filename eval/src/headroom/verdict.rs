//! Decides from the intervals whether a gain is possible.

use serde::{Deserialize, Serialize};

use super::{Row, RowKind};
use crate::format;
use crate::stats::Estimate;

/// The least gain over the best single rule that counts, as a share of its mean FCT.
pub(crate) const MIN_GAIN: f64 = 0.01;

/// The verdict on whether a gain over the best single rule is possible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// True if no row is better than the best single rule, on copies that differ by chance, by more than
    /// 1 % and significantly.
    pub nothing_to_win: bool,
    /// The rows that are better by that much.
    pub better: Vec<RowKind>,
    /// The verdict in sentences.
    pub text: String,
}

/// The rows that are compared with the best single rule.
const RIVALS: [RowKind; 3] = [
    RowKind::Unlimited,
    RowKind::BestRuleOfTrace,
    RowKind::Search,
];

impl Verdict {
    /// Returns the verdict on rows; `best_rule` names the best single rule.
    pub(super) fn of(best_rule: &str, rows: &[Row]) -> Verdict {
        let row = |kind: RowKind| rows.iter().find(|row| row.row == kind);
        let gain = |kind: RowKind| row(kind)?.jittered_ratio_to_best_rule;
        let better: Vec<RowKind> = RIVALS
            .into_iter()
            .filter(|kind| gain(*kind).is_some_and(is_worth))
            .collect();
        let best = row(RowKind::BestRule).and_then(|row| row.jittered_ratio_to_dt);
        let mut text = rule_sentence(best_rule, best);
        if better.is_empty() {
            text += " No gain beyond it: on copies of the traces with new noise, neither an \
                unlimited buffer, nor the best rule of each trace, nor the searched decisions have a \
                mean FCT that is lower by more than 1\u{a0}%, beyond chance.";
        } else {
            let parts: Vec<String> = RIVALS
                .into_iter()
                .map(|kind| clause(kind, gain(kind)))
                .collect();
            text += &format!(
                " Beyond it, on copies of the traces with new noise: {}.",
                parts.join("; ")
            );
        }
        Verdict {
            nothing_to_win: better.is_empty(),
            better,
            text,
        }
    }
}

/// Returns true if a ratio is below 1 significantly and by more than [`MIN_GAIN`].
fn is_worth(ratio: Estimate) -> bool {
    ratio.is_below_one() && ratio.centre < 1.0 - MIN_GAIN
}

fn rule_sentence(rule: &str, ratio: Option<Estimate>) -> String {
    match ratio {
        Some(ratio) if is_worth(ratio) => format!(
            "The best single rule is {rule}: its mean FCT is {} lower than that of DT (α = 1).",
            format::change(ratio.centre)
        ),
        _ => format!(
            "The best single rule is {rule}, which is not better than DT (α = 1) by more than \
             1\u{a0}%, beyond chance."
        ),
    }
}

fn clause(kind: RowKind, ratio: Option<Estimate>) -> String {
    let title = kind.title();
    match ratio {
        Some(ratio) if is_worth(ratio) => format!(
            "{title} {} lower ({})",
            format::change(ratio.centre),
            format::bounds(&ratio)
        ),
        Some(ratio) if ratio.is_above_one() => format!(
            "{title} {} higher ({})",
            format::change(ratio.centre),
            format::bounds(&ratio)
        ),
        Some(ratio) => format!(
            "{title} nothing that can be told from chance or 1\u{a0}% ({})",
            format::bounds(&ratio)
        ),
        None => format!("{title} left flows unfinished"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(gains: [(RowKind, f64, f64, f64); 4]) -> Vec<Row> {
        let row = |(row, low, centre, high)| {
            let interval = Some(Estimate { centre, low, high });
            Row {
                row,
                ratio_to_dt: interval,
                jittered_ratio_to_dt: interval,
                best_ratio: Some(low),
                worst_ratio: Some(high),
                jittered_ratio_to_best_rule: interval,
                jittered_goodput_ratio_to_dt: None,
                jittered_goodput_ratio_to_best_rule: None,
            }
        };
        gains.map(row).to_vec()
    }

    fn with_search(low: f64, mean: f64, high: f64) -> Verdict {
        Verdict::of(
            "dt:alpha=8",
            &rows([
                (RowKind::Unlimited, 0.98, 1.0, 1.02),
                (RowKind::BestRule, 0.6, 0.7, 0.8),
                (RowKind::BestRuleOfTrace, 1.01, 1.02, 1.03),
                (RowKind::Search, low, mean, high),
            ]),
        )
    }

    #[test]
    fn a_gain_must_be_beyond_chance_and_more_than_one_per_cent() {
        let won = with_search(0.9, 0.95, 0.999);
        assert_eq!((won.nothing_to_win, won.better.len()), (false, 1));
        assert!(
            won.text
                .contains("searched decisions 5.0\u{a0}% lower (0.900–0.999)")
        );
        assert!(
            won.text
                .contains("best rule of each trace 2.0\u{a0}% higher")
        );
        assert!(
            won.text
                .contains("unlimited buffer nothing that can be told")
        );
        assert!(
            won.text
                .contains("dt:alpha=8: its mean FCT is 30.0\u{a0}% lower")
        );
        for (low, mean, high) in [(0.9, 0.95, 1.0), (0.99, 0.991, 0.992), (1.0, 1.0, 1.0)] {
            let lost = with_search(low, mean, high);
            assert!(lost.nothing_to_win && lost.better.is_empty());
            assert!(lost.text.contains("No gain"), "{}", lost.text);
        }
    }

    #[test]
    fn a_rule_that_wins_nothing_is_not_praised() {
        let equal = [
            RowKind::Unlimited,
            RowKind::BestRule,
            RowKind::BestRuleOfTrace,
            RowKind::Search,
        ];
        let verdict = Verdict::of("dt", &rows(equal.map(|kind| (kind, 1.0, 1.0, 1.0))));
        assert!(verdict.text.contains("not better than DT"));
        assert!(verdict.nothing_to_win);
    }
}
