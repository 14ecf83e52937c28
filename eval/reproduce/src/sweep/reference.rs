//! Claims from a paper's values for every series and point.

use super::{Metric, Point, SweepResults};
use crate::claim::{Claim, Kind, Target};
use crate::incast::Regime;
use crate::verdict::order_with;

/// Largest share that rounds to 0.0 %.
const ROUNDED_TO_ZERO: f64 = 0.05;

/// A table of a paper's values of one metric.
#[derive(Clone, Debug)]
pub struct ReferenceTable<'a> {
    /// Figure and panel.
    pub panel: (&'static str, &'static str),
    /// Metric of the values.
    pub metric: Metric,
    /// The claim in words.
    pub statement: &'static str,
    /// For every series its values, in the order of the points.
    pub rows: Vec<(&'a str, &'a [f64])>,
}

impl ReferenceTable<'_> {
    /// Returns a claim for every value. The order is that of all series at the same point; if the metric is
    /// an in-cast tail, the same regime counts as the right order.
    pub fn claims(&self, swept: &SweepResults) -> Vec<Claim> {
        let points = swept.sweep.points.iter().enumerate();
        let at = points.flat_map(|(place, point)| {
            let rows = self
                .rows
                .iter()
                .map(move |(series, values)| (*series, values.get(place)));
            let rows: Vec<(&str, Option<f64>)> =
                rows.map(|(s, value)| (s, value.copied())).collect();
            self.at(swept, point, &rows)
        });
        at.collect()
    }

    /// Returns the claims at a point: `rows` has the paper's value for every series.
    fn at(&self, swept: &SweepResults, point: &Point, rows: &[(&str, Option<f64>)]) -> Vec<Claim> {
        let ours = |series| Some(swept.value(series, point, self.metric)?.median);
        let pairs = rows
            .iter()
            .map(|(series, value)| Some(((*value)?, ours(series)?)));
        let pairs: Vec<Option<(f64, f64)>> = pairs.collect();
        let known: Vec<(f64, f64)> = pairs.iter().copied().flatten().collect();
        let claims = rows
            .iter()
            .enumerate()
            .filter_map(|(row, (series, value))| {
                let before = pairs[..row].iter().flatten().count();
                let order = pairs[row].and_then(|_| order_with(&known, before));
                Some(self.claim(swept, point, (series, (*value)?), order))
            });
        claims.collect()
    }

    fn claim(
        &self,
        swept: &SweepResults,
        point: &Point,
        (series, value): (&str, f64),
        order: Option<bool>,
    ) -> Claim {
        let ours = swept.value(series, point, self.metric);
        let target = match value {
            0.0 => Target::AtMost(ROUNDED_TO_ZERO),
            value => Target::Value(value),
        };
        let regimes = self.regimes(swept, point, series, value);
        let is_same = regimes.is_some_and(|(paper, ours)| paper == ours);
        let remark = regimes.map_or_else(String::new, |(paper, ours)| {
            let late = swept.value(series, point, Metric::Late);
            let late = late.map_or_else(String::new, |late| {
                let share = bufgym_eval::format::significant(late.median);
                format!("; {share} % of our in-cast flows take longer than the minimum RTO")
            });
            format!("Regime: paper {paper}, ours {ours}{late}.")
        });
        Claim::number(
            self.panel,
            series,
            self.metric.name(),
            self.statement,
            target,
        )
        .of_kind(Kind::Data)
        .at(point.label.clone())
        .measured(ours)
        .ranked(if is_same { Some(true) } else { order })
        .remarked(remark)
        .not_run(swept.refusal(series).filter(|_| ours.is_none()))
    }

    /// Returns the regimes of the paper's value and the measured one, both on the measured scales: the flows
    /// are the same.
    fn regimes(
        &self,
        swept: &SweepResults,
        point: &Point,
        series: &str,
        value: f64,
    ) -> Option<(Regime, Regime)> {
        if !self.metric.has_regimes() {
            return None;
        }
        let (floor, timeout) = swept.scales(series, point)?;
        let ours = swept.regime(series, point, self.metric)?;
        Some((Regime::of(value, floor, timeout), ours))
    }
}
