//! Claims of forms that several figures share.

use bufgym_eval::format;
use bufgym_eval::stats::{Interval, Spread};

use super::{ABM, DT, REVERIE};
use crate::claim::{Claim, Target};
use crate::sweep::{Metric, Point, Swept, largest_reduction, reduced, reduction_of};

/// Share up to which two measured values count as equal: a smaller difference is chance, and no trend.
const EQUAL: f64 = 0.01;
/// Share up to which two policies are alike.
const ALIKE: f64 = 0.1;

/// Claims a reduction of Reverie relative to another policy, per cent.
pub fn against(
    swept: &Swept,
    panel: &'static str,
    other: &str,
    at: &[&Point],
    metric: Metric,
    (paper, statement): (f64, &'static str),
) -> Claim {
    let panel = (swept.sweep.figure, panel);
    let target = (Target::Reduction(paper), statement);
    reduced(swept, panel, (REVERIE, &[other]), at, metric, target)
}

/// Remark on a largest gain that the text gives without a figure.
pub(crate) const ANYWHERE: &str =
    "The paper does not say in which figure; here over the points of this one.";

/// Claims the largest reduction of the mean slowdown of in-cast flows relative to another policy, per cent.
pub(crate) fn largest_against(swept: &Swept, other: &str, paper: (f64, &'static str)) -> Claim {
    largest_reduction(
        swept,
        (swept.sweep.figure, "b"),
        (REVERIE, other),
        Metric::IncastMean,
        "largest reduction of the mean slowdown of in-cast flows, %",
        paper,
    )
}

/// Claims that a policy is significantly below another on average over the points.
pub fn below(
    swept: &Swept,
    panel: &'static str,
    (lower, upper): (&str, &str),
    metric: Metric,
    (words, statement): (&'static str, &'static str),
) -> Claim {
    let points: Vec<&Point> = swept.sweep.points.iter().collect();
    let ours = swept.reduction(lower, &[upper], &points, metric);
    let series = format!("{lower} vs {upper}");
    let panel = (swept.sweep.figure, panel);
    Claim::order(panel, &series, reduction_of(metric), statement, words)
        .at("mean over the points")
        .measured(ours)
        .ranked(ours.map(|ours| ours.median > 100.0 * EQUAL))
        .not_run(refusal(swept, &[lower, upper]).filter(|_| ours.is_none()))
}

/// Returns the medians of a series at all points.
fn medians(swept: &Swept, series: &str, metric: Metric) -> Option<Vec<f64>> {
    let at = |point: &Point| Some(swept.value(series, point, metric)?.median);
    swept.sweep.points.iter().map(at).collect()
}

/// The trend of a series over the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
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
    swept: &Swept,
    panel: &'static str,
    series: &str,
    metric: Metric,
    points: usize,
    (trend, statement): (Trend, &'static str),
) -> Claim {
    let values = medians(swept, series, metric);
    let values = values.map(|values| values[..points.min(values.len())].to_vec());
    let panel = (swept.sweep.figure, panel);
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
pub fn trend(
    swept: &Swept,
    panel: &'static str,
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

/// Claims that another policy grows less over the axis than Reverie.
pub(crate) fn grows_less(
    swept: &Swept,
    panel: &'static str,
    other: &str,
    metric: Metric,
    statement: &'static str,
) -> Claim {
    let growth = |series: &str| {
        let values = medians(swept, series, metric)?;
        Some(values.last()? - values.first()?)
    };
    let both = growth(other).zip(growth(REVERIE));
    let panel = (swept.sweep.figure, panel);
    let words = "grows less than Reverie’s";
    Claim::order(panel, other, metric.name(), statement, words)
        .at("growth over the axis")
        .measured(growth(other).map(exactly))
        .ranked(both.map(|(other, own)| other < own))
        .remarked(growth(REVERIE).map_or_else(String::new, |own| {
            format!("Reverie’s grows by {}.", format::significant(own))
        }))
        .not_run(refusal(swept, &[other, REVERIE]).filter(|_| both.is_none()))
}

/// Claims that Reverie pauses as often as DT: numbers differ by at most a tenth of ABM's at every point.
pub(crate) fn pauses_like_dt(swept: &Swept, statement: &'static str) -> Claim {
    let all = [DT, ABM, REVERIE].map(|series| medians(swept, series, Metric::Pauses));
    let [dt, abm, reverie] = &all;
    let farthest = dt.as_ref().zip(abm.as_ref()).zip(reverie.as_ref());
    let farthest = farthest.map(|((dt, abm), reverie)| {
        let apart = (0..dt.len()).map(|at| match (reverie[at] - dt[at]).abs() {
            0.0 => 0.0,
            apart => 100.0 * apart / abm[at],
        });
        apart.fold(0.0, f64::max)
    });
    Claim::order(
        (swept.sweep.figure, "a"),
        &format!("{REVERIE} vs {DT}"),
        "largest difference of the numbers of pauses, % of those with ABM",
        statement,
        "within 10 %",
    )
    .at("largest over the points")
    .measured(farthest.map(exactly))
    .ranked(farthest.map(|farthest| farthest <= 100.0 * ALIKE))
    .not_run(refusal(swept, &[DT, ABM, REVERIE]).filter(|_| farthest.is_none()))
}

/// Claims that all policies are alike: the ratio of the largest to the least, on average over the points.
pub(crate) fn all_alike(
    swept: &Swept,
    panel: &'static str,
    metric: Metric,
    statement: &'static str,
) -> Claim {
    let all = [DT, ABM, REVERIE].map(|series| medians(swept, series, metric));
    let all: Option<Vec<Vec<f64>>> = all.into_iter().collect();
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
    Claim::order(
        (swept.sweep.figure, panel),
        &format!("{DT}, {ABM}, {REVERIE}"),
        "largest over least of the policies, %",
        statement,
        "within 10 %",
    )
    .at("mean over the points")
    .measured(apart.map(exactly))
    .ranked(apart.map(|apart| apart <= 100.0 * ALIKE))
    .remarked(format!("Of the {}.", metric.name()))
    .not_run(refusal(swept, &[DT, ABM, REVERIE]).filter(|_| apart.is_none()))
}

/// Claims that lossless packets take little of the buffer under every policy.
pub(crate) fn small_share(swept: &Swept, statement: &'static str) -> Claim {
    let all = [DT, ABM, REVERIE].map(|series| medians(swept, series, Metric::LosslessP99));
    let all: Option<Vec<Vec<f64>>> = all.into_iter().collect();
    let most = all.map(|all| all.into_iter().flatten().fold(0.0, f64::max));
    Claim::order(
        (swept.sweep.figure, "d"),
        &format!("{DT}, {ABM}, {REVERIE}"),
        Metric::LosslessP99.name(),
        statement,
        "at most 30 %, where the paper’s axis ends",
    )
    .at("largest over policies and points")
    .measured(most.map(exactly))
    .ranked(most.map(|most| most <= 30.0))
    .not_run(refusal(swept, &[DT, ABM, REVERIE]).filter(|_| most.is_none()))
}

/// Returns the reason why one of these series was not run.
fn refusal(swept: &Swept, series: &[&str]) -> Option<String> {
    series.iter().find_map(|series| swept.refusal(series))
}

fn exactly(value: f64) -> Interval {
    Interval {
        mean: value,
        low: value,
        high: value,
    }
}

/// Claims that Reverie has the same results at every point, seed by seed.
pub fn constant(swept: &Swept, panel: &'static str, statement: &'static str) -> Claim {
    let points = &swept.sweep.points;
    let policy = swept.sweep.series.iter().find(|s| s.name == REVERIE);
    let same = policy.and_then(|policy| {
        let first = swept.of(policy, points.first()?);
        let all = points.iter().all(|point| swept.of(policy, point) == first);
        (!first.is_empty()).then_some(all)
    });
    let pauses = points
        .first()
        .and_then(|point| swept.values(REVERIE, point, Metric::Pauses));
    Claim::order(
        (swept.sweep.figure, panel),
        REVERIE,
        Metric::Pauses.name(),
        statement,
        "the same at every point",
    )
    .at("all points")
    .measured(pauses.and_then(Spread::of))
    .ranked(same)
    .remarked("Every result of every seed is compared, not only the pauses.")
    .not_run(swept.refusal(REVERIE).filter(|_| same.is_none()))
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
