//! Claims from a paper's values for every series and point.

use bufgym_eval::stats::Spread;

use super::{Metric, Point, SweepResults};
use crate::claim::{Claim, Kind, Target};
use crate::incast::Regime;
use crate::verdict::order_with;

/// Largest share that rounds to 0.0 %.
const ROUNDED_TO_ZERO: f64 = 0.05;

/// The paper's values of a series, one for each point.
#[derive(Clone, Copy, Debug)]
pub struct ReferenceRow {
    /// Name of the series.
    pub series: &'static str,
    /// Values, in the order of the points.
    pub values: &'static [f64],
}

/// A table of a paper's values of one metric.
#[derive(Clone, Copy, Debug)]
pub struct ReferenceTable<'a> {
    /// Figure and panel.
    pub panel: (&'static str, &'static str),
    /// Metric of the values.
    pub metric: Metric,
    /// The claim in words.
    pub statement: &'static str,
    /// Rows.
    pub rows: &'a [ReferenceRow],
}

impl ReferenceTable<'_> {
    /// Returns a claim for every value. The order is that of all series at the same point; if the metric is
    /// an in-cast tail, the same regime counts as the right order.
    pub fn claims(&self, swept: &SweepResults) -> Vec<Claim> {
        let points = swept.sweep.points.iter().enumerate();
        let at = points.flat_map(|(place, point)| {
            let rows = self.rows.iter().enumerate();
            rows.filter_map(move |(row, of)| {
                let value = *of.values.get(place)?;
                Some(self.claim(swept, (place, point), (row, of), value))
            })
        });
        at.collect()
    }

    fn claim(
        &self,
        swept: &SweepResults,
        (place, point): (usize, &Point),
        (row, of): (usize, &ReferenceRow),
        value: f64,
    ) -> Claim {
        let ours = swept.value(of.series, point, self.metric);
        let target = match value {
            0.0 => Target::AtMost(ROUNDED_TO_ZERO),
            value => Target::Value(value),
        };
        let name = self.metric.name();
        let claim = Claim::number(self.panel, of.series, name, self.statement, target);
        claim
            .of_kind(Kind::Data)
            .at(point.label.clone())
            .measured(ours)
            .ranked(self.order(swept, (place, point), row, ours))
            .remarked(self.remark(swept, point, of, value))
            .not_run(swept.refusal(of.series).filter(|_| ours.is_none()))
    }

    /// Returns true if the order with the other series is the paper's, or the regime of the tail is.
    fn order(
        &self,
        swept: &SweepResults,
        (place, point): (usize, &Point),
        row: usize,
        ours: Option<Spread>,
    ) -> Option<bool> {
        ours?;
        let pair = |other: &ReferenceRow| {
            let ours = swept.value(other.series, point, self.metric)?;
            Some((*other.values.get(place)?, ours.median))
        };
        let pairs: Vec<Option<(f64, f64)>> = self.rows.iter().map(pair).collect();
        let before = pairs[..row].iter().flatten().count();
        let known: Vec<(f64, f64)> = pairs.into_iter().flatten().collect();
        let order = order_with(&known, before);
        let regimes = self.regimes(
            swept,
            point,
            &self.rows[row],
            *self.rows[row].values.get(place)?,
        );
        match regimes {
            Some((paper, ours)) if paper == ours => Some(true),
            _ => order,
        }
    }

    /// Returns the regimes of the paper's value and the measured one, both on the measured scales: the flows
    /// are the same.
    fn regimes(
        &self,
        swept: &SweepResults,
        point: &Point,
        of: &ReferenceRow,
        value: f64,
    ) -> Option<(Regime, Regime)> {
        if !self.metric.has_regimes() {
            return None;
        }
        let (floor, timeout) = swept.scales(of.series, point)?;
        let ours = swept.regime(of.series, point, self.metric)?;
        Some((Regime::of(value, floor, timeout), ours))
    }

    fn remark(&self, swept: &SweepResults, point: &Point, of: &ReferenceRow, value: f64) -> String {
        let Some((paper, ours)) = self.regimes(swept, point, of, value) else {
            return String::new();
        };
        let late = swept.value(of.series, point, Metric::Late);
        let late = late.map_or_else(String::new, |late| {
            let share = bufgym_eval::format::significant(late.median);
            format!("; {share} % of our in-cast flows take longer than the minimum RTO")
        });
        format!("Regime: paper {paper}, ours {ours}{late}.")
    }
}
