//! Claims about the reduction of a series relative to others.

use super::{Metric, Point, SweepResults};
use crate::claim::{Claim, Target};

/// Per cent up to which two measured values count as equal: a smaller difference is chance, and no order.
const EQUAL: f64 = 1.0;

/// Compares the reduction of a series relative to the mean of others with the paper's reduction. The order
/// holds if the reduction has the paper's sign and exceeds 1 %.
pub fn reduced(
    swept: &SweepResults,
    panel: (&'static str, &'static str),
    (series, others): (&str, &[&str]),
    points: &[&Point],
    metric: Metric,
    (paper, statement): (Target, &'static str),
) -> Claim {
    let ours = swept.reduction(series, others, points, metric);
    let sign = match paper {
        Target::Reduction(value) => value.signum(),
        _ => 1.0,
    };
    let name = format!("{series} vs {}", others.join(", "));
    let refused = others
        .iter()
        .chain([&series])
        .find_map(|name| swept.refusal(name));
    let claim = Claim::number(panel, &name, metric.reduction(), statement, paper);
    claim
        .at(place_of(points))
        .measured(ours)
        .ranked(ours.map(|ours| ours.median * sign > EQUAL))
        .not_run(refused.filter(|_| ours.is_none()))
}

/// Claims that two policies are within 10 % of each other on average over the points.
pub(crate) fn on_a_par(
    swept: &SweepResults,
    panel: &'static str,
    pair: (&str, &str),
    at: &[&Point],
    metric: Metric,
    statement: &'static str,
) -> Claim {
    let ours = swept.reduction(pair.0, &[pair.1], at, metric);
    let claim = Claim::order(
        (swept.sweep.figure, panel),
        &format!("{} vs {}", pair.0, pair.1),
        metric.reduction(),
        statement,
        "within 10 %",
    );
    let refused = swept.refusal(pair.0).or(swept.refusal(pair.1));
    claim
        .at(place_of(at))
        .measured(ours)
        .ranked(ours.map(|ours| ours.median.abs() <= 10.0))
        .not_run(refused.filter(|_| ours.is_none()))
}

/// Compares the largest reduction of a series relative to another at any point with the paper's.
pub(crate) fn largest_reduction(
    swept: &SweepResults,
    panel: (&'static str, &'static str),
    (series, other): (&str, &str),
    metric: Metric,
    name: &'static str,
    (paper, statement): (f64, &'static str),
) -> Claim {
    let points = swept.sweep.points.iter();
    let at = |point: &Point| swept.reduction(series, &[other], &[point], metric);
    let all: Option<Vec<_>> = points.map(at).collect();
    let most = all.and_then(|all| all.into_iter().max_by(|a, b| a.median.total_cmp(&b.median)));
    let refused = swept.refusal(series).or(swept.refusal(other));
    let series = format!("{series} vs {other}");
    Claim::number(panel, &series, name, statement, Target::Reduction(paper))
        .measured(most)
        .ranked(most.map(|most| most.median > 0.0))
        .not_run(refused.filter(|_| most.is_none()))
}

/// Returns the point label of a claim about these points.
fn place_of<'a>(points: &[&'a Point]) -> &'a str {
    match points {
        [point] => &point.label,
        _ => "mean over the points",
    }
}
