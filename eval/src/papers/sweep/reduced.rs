//! How much lower a series is than others, as a claim.

use super::{Metric, Point, Swept};
use crate::papers::claim::{Claim, Target};

/// Per cent up to which two values of ours are equal: less is chance, and no order.
const EQUAL: f64 = 1.0;

/// How much lower a series is than the mean of others, against the paper's reduction. The order is that
/// of the series with that mean, which must be apart by more than 1 %.
pub fn reduced(
    swept: &Swept,
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
    let x = match points {
        [point] => point.label.clone(),
        _ => "mean over the points".to_owned(),
    };
    let claim = Claim::number(panel, &name, reduction_of(metric), statement, paper);
    claim
        .at(x)
        .measured(ours)
        .ranked(ours.map(|ours| ours.mean * sign > EQUAL))
        .not_run(refused.filter(|_| ours.is_none()))
}

/// The name of a reduction of a metric, in per cent.
pub fn reduction_of(metric: Metric) -> &'static str {
    match metric {
        Metric::IncastP95 => "reduction of the p95 slowdown of in-cast flows, %",
        Metric::IncastP99 => "reduction of the p99 slowdown of in-cast flows, %",
        Metric::IncastP999 => "reduction of the p99.9 slowdown of in-cast flows, %",
        Metric::ShortP95 => "reduction of the p95 slowdown of short flows, %",
        Metric::ShortP99 => "reduction of the p99 slowdown of short flows, %",
        Metric::ShortP999 => "reduction of the p99.9 slowdown of short flows, %",
        Metric::SecondShortP99 => {
            "reduction of the p99 slowdown of short flows of the second class, %"
        }
        Metric::LongP95 => "reduction of the p95 slowdown of long flows, %",
        Metric::OccupancyP99 => "reduction of the p99 occupancy, %",
        Metric::OccupancyP9999 => "reduction of the p99.99 occupancy, %",
        _ => "reduction, %",
    }
}
