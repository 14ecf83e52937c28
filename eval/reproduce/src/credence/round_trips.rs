//! Fig. 9: claims about shorter and longer round trips.

use crate::claim::{Claim, Target};
use crate::sweep::{Metric, Point, SweepResults, reduced};

pub(crate) fn claims(swept: &SweepResults) -> Vec<Claim> {
    let points = &swept.sweep.points;
    let (shortest, longest) = (&points[0], &points[points.len() - 1]);
    let worse = (
        Target::Reduction(97.73),
        "At 8 µs ABM’s in-cast tail is 97.73 % worse.",
    );
    let pair: (&str, &[&str]) = ("Credence", &["ABM"]);
    let first = reduced(
        swept,
        ("9", "a"),
        pair,
        &[shortest],
        Metric::IncastP95,
        worse,
    );
    vec![
        first.remarked(format!(
            "{} Read as: Credence’s is 97.73 % below it.",
            ratios(swept)
        )),
        order(
            swept,
            ("9", "a"),
            longest,
            Metric::IncastP95,
            "within a factor of 1.5",
            "At long round trips ABM is as good as Credence.",
            |ratio| (1.0 / 1.5..=1.5).contains(&ratio),
        ),
        order(
            swept,
            ("9", "b"),
            shortest,
            Metric::ShortP95,
            "within 10 %",
            "At 8 µs short flows are on a par.",
            |ratio| (0.9..=1.1).contains(&ratio),
        ),
        order(
            swept,
            ("9", "c"),
            shortest,
            Metric::LongP95,
            "Credence < ABM",
            "At 8 µs ABM is worse for long flows.",
            |ratio| ratio > 1.0,
        ),
        order(
            swept,
            ("9", "d"),
            shortest,
            Metric::OccupancyP9999,
            "ABM < Credence",
            "At 8 µs ABM uses less of the buffer.",
            |ratio| ratio < 1.0,
        ),
    ]
}

/// Returns ABM's value over Credence's at a point.
fn ratio(swept: &SweepResults, point: &Point, metric: Metric) -> Option<f64> {
    let value = |series| swept.value(series, point, metric).map(|value| value.median);
    Some(value("ABM")? / value("Credence")?)
}

fn ratios(swept: &SweepResults) -> String {
    let values: Vec<Option<f64>> = swept
        .sweep
        .points
        .iter()
        .map(|point| ratio(swept, point, Metric::IncastP95))
        .collect();
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    let monotone = known.windows(2).all(|pair| pair[0] >= pair[1]);
    let words: Vec<String> = values
        .iter()
        .map(|value| bufgym_eval::format::ratio(*value))
        .collect();
    format!(
        "ABM’s in-cast tail over Credence’s by round trip: {}, {}.",
        words.join(", "),
        if monotone { "falling" } else { "not monotone" }
    )
}

fn order(
    swept: &SweepResults,
    panel: (&'static str, &'static str),
    point: &Point,
    metric: Metric,
    words: &'static str,
    statement: &'static str,
    right: impl Fn(f64) -> bool,
) -> Claim {
    let ratio = ratio(swept, point, metric);
    let refused = swept.refusal("Credence").or(swept.refusal("ABM"));
    Claim::order(panel, "ABM over Credence", metric.name(), statement, words)
        .at(point.label.clone())
        .measured(ratio.and_then(|ratio| bufgym_eval::stats::Spread::of(vec![ratio])))
        .ranked(ratio.map(right))
        .not_run(refused.filter(|_| ratio.is_none()))
}
