//! A paper's claim about one number or one order, and the measured value.

use std::fmt;

use serde::Serialize;

use super::verdict::{Grade, Verdict, grade};
pub use super::verdict::{Ours, Target};

/// The source of the paper's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A number in the paper's text.
    Text,
    /// Computed from result files that the authors published.
    Data,
    /// Follows from a formula.
    Derived,
    /// Only a ranking is claimed.
    Order,
}

impl Kind {
    /// All kinds, in the order of the page.
    pub const ALL: [Kind; 4] = [Kind::Text, Kind::Data, Kind::Derived, Kind::Order];

    /// Returns the name for files.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Data => "data",
            Kind::Derived => "derived",
            Kind::Order => "order",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A claim of a paper with the measured value: one row of `verdicts.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Number of the figure, such as `8`.
    pub figure: &'static str,
    /// Panel of the figure, such as `a`; empty without panels.
    pub panel: &'static str,
    /// The policy or policies of the claim.
    pub series: String,
    /// The point on the horizontal axis; empty if the claim is about all of them.
    pub x: String,
    /// The measured quantity, with its unit.
    pub metric: &'static str,
    /// The claim in words.
    pub statement: &'static str,
    /// Source of the paper's value.
    pub kind: Kind,
    /// The paper's value.
    pub paper: Target,
    /// The measured value; `None` if there is none.
    pub ours: Option<Ours>,
    /// True if the order of the series is the paper's; `None` if the claim implies no order.
    pub order: Option<bool>,
    /// Remark for readers of the comparison: assumed settings, or the order that was found.
    pub remark: String,
    /// Reason for a difference, if known, or for a missing measurement.
    pub reason: Option<String>,
}

impl Claim {
    /// Builds a claim about a ranking, with the value that shows it best.
    pub fn order(
        (figure, panel): (&'static str, &'static str),
        series: &str,
        metric: &'static str,
        statement: &'static str,
        words: &'static str,
    ) -> Claim {
        Claim {
            kind: Kind::Order,
            ..Claim::number(
                (figure, panel),
                series,
                metric,
                statement,
                Target::Order(words),
            )
        }
    }

    /// Builds a claim about a number in the text, not yet measured.
    pub fn number(
        (figure, panel): (&'static str, &'static str),
        series: &str,
        metric: &'static str,
        statement: &'static str,
        paper: Target,
    ) -> Claim {
        Claim {
            figure,
            panel,
            series: series.to_owned(),
            x: String::new(),
            metric,
            statement,
            kind: Kind::Text,
            paper,
            ours: None,
            order: None,
            remark: String::new(),
            reason: None,
        }
    }

    /// Sets the measured value.
    #[must_use]
    pub fn measured(self, ours: Option<impl Into<Ours>>) -> Claim {
        let ours = ours.map(Into::into);
        Claim { ours, ..self }
    }

    /// Sets whether the order is the paper's.
    #[must_use]
    pub fn ranked(self, order: Option<bool>) -> Claim {
        Claim { order, ..self }
    }

    /// Sets a remark.
    #[must_use]
    pub(crate) fn remarked(self, remark: impl Into<String>) -> Claim {
        Claim {
            remark: remark.into(),
            ..self
        }
    }

    /// Sets the kind.
    #[must_use]
    pub fn of_kind(self, kind: Kind) -> Claim {
        Claim { kind, ..self }
    }

    /// Marks the claim as left out, for a reason.
    #[must_use]
    pub(crate) fn not_run(self, reason: Option<String>) -> Claim {
        let reason = reason.map(|reason| format!("not run: {reason}"));
        Claim { reason, ..self }
    }

    /// Sets the point of the horizontal axis.
    #[must_use]
    pub fn at(self, x: impl Into<String>) -> Claim {
        Claim {
            x: x.into(),
            ..self
        }
    }

    /// Returns the grade of the agreement, by the rules.
    pub fn grade(&self) -> Grade {
        grade(&self.paper, self.ours.as_ref(), self.order)
    }

    /// Returns the verdict, with the reason if it needs one.
    pub fn verdict(&self) -> Verdict {
        match self.grade() {
            Grade::Agrees => Verdict::Agrees,
            Grade::InFactor => Verdict::AgreesInFactor,
            Grade::InRanking => Verdict::AgreesInRanking,
            Grade::Differs => {
                let reason = self.reason.clone();
                Verdict::Differs(reason.unwrap_or_else(|| "unexplained".to_owned()))
            }
            Grade::NotComparable => Verdict::NotComparable(match &self.paper {
                Target::Open(why) => (*why).to_owned(),
                _ => self
                    .reason
                    .clone()
                    .unwrap_or_else(|| "there is nothing to measure it by in this run".to_owned()),
            }),
        }
    }

    /// Returns true if both are the same claim of the paper, whatever was measured.
    pub(crate) fn is_same(&self, other: &Claim) -> bool {
        let key = |claim: &Claim| {
            let Claim {
                figure,
                panel,
                series,
                metric,
                statement,
                paper,
                ..
            } = claim;
            // Values of a table differ in their point of the axis only.
            let point = matches!(claim.kind, Kind::Data).then(|| claim.x.clone());
            let about = (*figure, *panel, series.clone(), *metric);
            (about, *statement, paper.to_string(), point)
        };
        key(self) == key(other)
    }
}
