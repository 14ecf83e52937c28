//! Rules of claims besides reductions, for figures of networks.

use bufgym_eval::format;
use bufgym_eval::stats::{Estimate, Spread};
use serde::Deserialize;

use super::claim::{Claim, Target};
use super::sweep::{Metric, Point, Series, SweepResults};

/// Figure and panel of a claim.
pub(crate) type Place = (&'static str, &'static str);

/// Share up to which two measured values count as equal: a smaller difference is chance, and no trend.
const EQUAL: f64 = 0.01;
/// Share up to which two policies are alike.
const ALIKE: f64 = 0.1;

/// Claims that a policy is significantly below another on average over the points.
pub(crate) fn below(
    swept: &SweepResults,
    panel: Place,
    (lower, upper): (&str, &str),
    metric: Metric,
    statement: &'static str,
) -> Claim {
    let points: Vec<&Point> = swept.sweep.points.iter().collect();
    let ours = swept.reduction(lower, &[upper], &points, metric);
    let series = format!("{lower} vs {upper}");
    Claim::order(panel, &series, metric.reduction(), statement, "below")
        .at("mean over the points")
        .measured(ours)
        .ranked(ours.map(|ours| ours.median > 100.0 * EQUAL))
        .not_run(refusal(swept, &[lower, upper]).filter(|_| ours.is_none()))
}

/// Returns the medians of a series at all points.
fn medians(swept: &SweepResults, series: &str, metric: Metric) -> Option<Vec<f64>> {
    let at = |point: &Point| Some(swept.value(series, point, metric)?.median);
    swept.sweep.points.iter().map(at).collect()
}

/// The trend of a series over the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Trend {
    /// The last value is above the first.
    Rises,
    /// The last value is below the first.
    Falls,
    /// The last value is not far below the first.
    Holds,
    /// No value is above the previous one, and the last is below the first.
    NeverRises,
}

impl Trend {
    fn words(self) -> &'static str {
        match self {
            Trend::Rises => "rises over the axis",
            Trend::Falls => "falls over the axis",
            Trend::Holds => "does not fall by more than 10 % over the axis",
            Trend::NeverRises => "falls from point to point",
        }
    }

    fn is_of(self, values: &[f64]) -> Option<bool> {
        let (first, last) = (*values.first()?, *values.last()?);
        let above = |a: f64, b: f64| a > b * (1.0 + EQUAL);
        Some(match self {
            Trend::Rises => above(last, first),
            Trend::Falls => above(first, last),
            Trend::Holds => last >= (1.0 - ALIKE) * first,
            Trend::NeverRises => {
                above(first, last) && values.windows(2).all(|pair| !above(pair[1], pair[0]))
            }
        })
    }
}

/// Claims a trend of a series over the first `points` points.
pub(crate) fn trend_up_to(
    swept: &SweepResults,
    panel: Place,
    series: &str,
    metric: Metric,
    points: usize,
    (trend, statement): (Trend, &'static str),
) -> Claim {
    let values = medians(swept, series, metric);
    let values = values.map(|values| values[..points.min(values.len())].to_vec());
    let last = swept.sweep.points[..points].last();
    let ours = last.and_then(|point| swept.value(series, point, metric));
    Claim::order(panel, series, metric.name(), statement, trend.words())
        .at(last.map_or("", |point| &point.label))
        .measured(ours)
        .ranked(values.as_deref().and_then(|values| trend.is_of(values)))
        .remarked(found(values.as_deref()))
        .not_run(swept.refusal(series).filter(|_| ours.is_none()))
}

/// Claims a trend of a series over all points.
pub(crate) fn trend(
    swept: &SweepResults,
    panel: Place,
    series: &str,
    metric: Metric,
    trend: (Trend, &'static str),
) -> Claim {
    let points = swept.sweep.points.len();
    trend_up_to(swept, panel, series, metric, points, trend)
}

fn found(values: Option<&[f64]>) -> String {
    let Some(values) = values else {
        return String::new();
    };
    let words: Vec<String> = values.iter().map(|v| format::significant(*v)).collect();
    format!("Found: {}.", words.join(", "))
}

/// Claims that a series grows less over the axis than another.
pub(crate) fn grows_less(
    swept: &SweepResults,
    panel: Place,
    (series, other): (&str, &str),
    metric: Metric,
    statement: &'static str,
) -> Claim {
    let growth = |series: &str| {
        let values = medians(swept, series, metric)?;
        Some(values.last()? - values.first()?)
    };
    let both = growth(series).zip(growth(other));
    Claim::order(panel, series, metric.name(), statement, "grows less")
        .at("growth over the axis")
        .measured(growth(series).map(Estimate::exact))
        .ranked(both.map(|(own, other)| own < other))
        .remarked(growth(other).map_or_else(String::new, |grown| {
            format!("{other}’s grows by {}.", format::significant(grown))
        }))
        .not_run(refusal(swept, &[series, other]).filter(|_| both.is_none()))
}

/// Claims that two series are alike: at every point they differ by at most a tenth of a third one.
pub(crate) fn alike(
    swept: &SweepResults,
    panel: Place,
    (series, other, third): (&str, &str, &str),
    metric: Metric,
    statement: &'static str,
) -> Claim {
    let values = |series: &str| medians(swept, series, metric);
    let all = values(other).zip(values(third)).zip(values(series));
    let farthest = all.map(|((other, third), own)| {
        let apart = (0..own.len()).map(|at| match (own[at] - other[at]).abs() {
            0.0 => 0.0,
            apart => 100.0 * apart / third[at],
        });
        apart.fold(0.0, f64::max)
    });
    let name = format!("{series} vs {other}");
    Claim::order(panel, &name, metric.name(), statement, "within 10 %")
        .at("largest over the points")
        .measured(farthest.map(Estimate::exact))
        .ranked(farthest.map(|farthest| farthest <= 100.0 * ALIKE))
        .not_run(refusal(swept, &[other, third, series]).filter(|_| farthest.is_none()))
}

/// Claims that all series are similar: the ratio of the largest to the least, on average over the points.
pub(crate) fn similar(
    swept: &SweepResults,
    panel: Place,
    series: &[&str],
    metric: Metric,
    statement: &'static str,
) -> Claim {
    let all: Option<Vec<Vec<f64>>> = series.iter().map(|s| medians(swept, s, metric)).collect();
    let apart = all.and_then(|all| {
        let at = |place: usize| {
            let values = all.iter().map(|values| values[place]);
            let (least, most) = values.fold((f64::INFINITY, 0.0), |(least, most), value| {
                (f64::min(least, value), f64::max(most, value))
            });
            100.0 * (most / least - 1.0)
        };
        let apart: Vec<f64> = (0..swept.sweep.points.len()).map(at).collect();
        bufgym_eval::stats::mean(&apart)
    });
    let quantity = "largest over least of the policies, %";
    Claim::order(
        panel,
        &series.join(", "),
        quantity,
        statement,
        "within 10 %",
    )
    .at("mean over the points")
    .measured(apart.map(Estimate::exact))
    .ranked(apart.map(|apart| apart <= 100.0 * ALIKE))
    .remarked(format!("Of the {}.", metric.name()))
    .not_run(refusal(swept, series).filter(|_| apart.is_none()))
}

/// Claims that no series is above a limit at any point.
pub(crate) fn at_most(
    swept: &SweepResults,
    panel: Place,
    series: &[&str],
    metric: Metric,
    (limit, statement): (f64, &'static str),
) -> Claim {
    let all: Option<Vec<Vec<f64>>> = series.iter().map(|s| medians(swept, s, metric)).collect();
    let most = all.map(|all| all.into_iter().flatten().fold(0.0, f64::max));
    let words = "at most the limit";
    Claim::order(panel, &series.join(", "), metric.name(), statement, words)
        .at("largest over policies and points")
        .measured(most.map(Estimate::exact))
        .ranked(most.map(|most| most <= limit))
        .not_run(refusal(swept, series).filter(|_| most.is_none()))
}

/// Returns the reason why one of these series was not run.
fn refusal(swept: &SweepResults, series: &[&str]) -> Option<String> {
    series.iter().find_map(|series| swept.refusal(series))
}

/// Claims that a series has the same results at every point, seed by seed.
pub(crate) fn constant(
    swept: &SweepResults,
    panel: Place,
    series: &str,
    metric: Metric,
    statement: &'static str,
) -> Claim {
    let points = &swept.sweep.points;
    let found = swept.sweep.series.iter().find(|s| s.name == series);
    let same = found.and_then(|series| {
        let first = swept.of(series, points.first()?);
        let all = points.iter().all(|point| swept.of(series, point) == first);
        (!first.is_empty()).then_some(all)
    });
    let ours = points
        .first()
        .and_then(|point| swept.value(series, point, metric));
    let words = "the same at every point";
    Claim::order(panel, series, metric.name(), statement, words)
        .at("all points")
        .measured(ours)
        .ranked(same)
        .not_run(swept.refusal(series).filter(|_| same.is_none()))
}

/// Claims how many times as large as a series another is at a point. The order holds from 1.5 on.
pub(crate) fn ratio(
    swept: &SweepResults,
    panel: Place,
    (lower, upper): (&str, &str),
    point: &Point,
    metric: Metric,
    (paper, statement): (f64, &'static str),
) -> Claim {
    let name = format!("{upper} vs {lower}");
    let values = |series| swept.values(series, point, metric);
    let ratios = values(upper).zip(values(lower)).map(|(upper, lower)| {
        let pairs = upper.iter().zip(&lower);
        pairs
            .map(|(upper, lower)| upper / lower)
            .collect::<Vec<f64>>()
    });
    let ours = ratios.and_then(Spread::of);
    Claim::number(panel, &name, metric.name(), statement, Target::Value(paper))
        .at(point.label.clone())
        .measured(ours)
        .ranked(ours.map(|ours| ours.median > 1.5))
        .not_run(swept.refusal(upper))
}

/// Describes the regimes of all of the paper's series at all points.
pub(crate) fn regimes(swept: &SweepResults, at: &[&Point], metric: Metric) -> String {
    let of_series = |series: &Series| {
        let at = at.iter().map(|point| {
            let regime = swept.regime(&series.name, point, metric);
            regime.map_or_else(|| "–".to_owned(), |regime| regime.to_string())
        });
        format!("{} {}", series.name, at.collect::<Vec<_>>().join(", "))
    };
    let own = swept.sweep.series.iter().filter(|series| !series.added);
    format!(
        "Regimes: {}.",
        own.map(of_series).collect::<Vec<_>>().join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trends_compare_the_ends_beyond_chance() {
        for (values, trend, expected) in [
            (vec![1.0, 5.0, 2.0], Trend::Rises, true),
            (vec![1.0, 5.0, 1.005], Trend::Rises, false),
            (vec![2.0, 0.0, 1.0], Trend::Falls, true),
            (vec![2.0, 2.0], Trend::Falls, false),
            (vec![10.0, 4.0, 9.0], Trend::Holds, true),
            (vec![10.0, 12.0, 8.9], Trend::Holds, false),
            (vec![0.0, 0.0], Trend::Holds, true),
            (vec![9.0, 5.0, 5.0, 1.0], Trend::NeverRises, true),
            (vec![9.0, 5.0, 6.0, 1.0], Trend::NeverRises, false),
            (vec![0.0, 0.0], Trend::NeverRises, false),
        ] {
            assert_eq!(trend.is_of(&values), Some(expected), "{trend:?} {values:?}");
        }
        assert_eq!(Trend::Rises.is_of(&[]), None);
    }
}
