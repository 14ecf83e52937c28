//! Fig. 8: claims besides the tables.

use crate::claim::{Claim, Target};
use crate::sweep::{Metric, Point, SweepResults, reduced};

/// The tail of each transport with its panel.
const TAILS: [(&str, Metric); 3] = [
    ("a", Metric::ShortP99),
    ("b", Metric::SecondShortP99),
    ("c", Metric::IncastP99),
];

pub(crate) fn claims(swept: &SweepResults) -> Vec<Claim> {
    let last = &swept.sweep.points[swept.sweep.points.len() - 1];
    let levels = [
        (20.0, "With ABM the tail of CUBIC levels off near 20."),
        (20.0, "With ABM the tail of DCTCP levels off near 20."),
        (10.0, "With ABM the tail of θ-PowerTCP levels off near 10."),
    ];
    let levels = TAILS.into_iter().zip(levels);
    let levels = levels.map(|((panel, metric), (level, statement))| {
        let target = Target::Value(level);
        let claim = Claim::number(("8", panel), "ABM", metric.name(), statement, target);
        let ours = swept.value("ABM", last, metric);
        let refused = swept.refusal("ABM").filter(|_| ours.is_none());
        claim.at(last.label.clone()).measured(ours).not_run(refused)
    });
    [largest_reduction(swept)]
        .into_iter()
        .chain(levels)
        .collect()
}

/// Claims "by up to 90.92 %": the maximum of all loads and classes. In the published file it is that of
/// θ-PowerTCP.
fn largest_reduction(swept: &SweepResults) -> Claim {
    let reduction = |metric: Metric, point: &Point| {
        let reduction = swept.reduction("ABM", &["DT"], &[point], metric);
        reduction.map_or(f64::NEG_INFINITY, |reduction| reduction.median)
    };
    let points = swept.sweep.points.iter();
    let all = points.flat_map(|point| TAILS.iter().map(move |tail| (tail, point)));
    let largest = all.max_by(|(a, at), (b, other)| {
        let (a, b) = (reduction(a.1, at), reduction(b.1, other));
        a.total_cmp(&b)
    });
    let ((panel, metric), point) = largest.unwrap_or((&TAILS[2], &swept.sweep.points[0]));
    let statement = "ABM lowers the tail of a transport by up to 90.92 %.";
    let target = (Target::Reduction(90.92), statement);
    reduced(
        swept,
        ("8", panel),
        ("ABM", &["DT"]),
        &[point],
        *metric,
        target,
    )
}
