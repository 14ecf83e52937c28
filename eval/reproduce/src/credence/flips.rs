//! Fig. 10: predictions that are inverted.

use bufgym_eval::stats::Spread;

use super::{PRESET, settings};
use crate::claim::{Claim, Target};
use crate::fabric::{FabricConfig, FigurePlan, PanelPlan, in_words};
use crate::sweep::{Metric, Point, Series, Sweep, SweepResults};

/// Probabilities of an inversion.
const FLIPS: [f64; 6] = [0.0, 0.001, 0.005, 0.01, 0.05, 0.1];
/// Ratio to LQD from which predictions count as harmful.
const APART: f64 = 1.5;

/// Returns the plan of the figure.
pub fn plan(config: &FabricConfig) -> FigurePlan {
    let seeds = config.seeds();
    let flipped = |point: &Point| format!("credence:flip={}", FLIPS[place(point)]);
    FigurePlan {
        sweep: Sweep {
            figure: "10",
            preset: PRESET,
            settings: settings(&["transport=dctcp", "load=0.4", "query_share=0.5"]),
            series: vec![
                Series::made("Credence", move |point| (Vec::new(), flipped(point))),
                Series::new("LQD", "lqd"),
                Series::new("DT", "dt:alpha=0.5").as_addition(),
                Series::new("unlimited", "unlimited").as_addition(),
            ],
            points: (0..FLIPS.len())
                .map(|place| Point::new(place as f64, format!("p = {}", FLIPS[place]), &[]))
                .collect(),
            x_label: "flip probability: 0, 0.001, 0.005, 0.01, 0.05, 0.1",
            seeds,
            changes: Vec::new(),
        },
        panels: [
            (
                "10a",
                "tail slowdown of in-cast flows over flips",
                Metric::IncastP95,
            ),
            (
                "10b",
                "tail slowdown of short flows over flips",
                Metric::ShortP95,
            ),
            (
                "10c",
                "tail slowdown of long flows over flips",
                Metric::LongP95,
            ),
            ("10d", "tail occupancy over flips", Metric::OccupancyP9999),
        ]
        .map(|(id, title, metric)| PanelPlan { id, title, metric })
        .to_vec(),
        tail: Metric::IncastP95,
        method: format!(
            "{PRESET}, DCTCP, load 40 %, requests of 50 %, {seeds}. Only predictions that decide are \
             flipped. The column x of the table is the number of the probability.",
            seeds = in_words(seeds)
        ),
        claims: Box::new(claims),
    }
}

fn place(point: &Point) -> usize {
    bufgym_util::convert::floor_usize(point.x.round()).min(FLIPS.len() - 1)
}

fn claims(swept: &SweepResults) -> Vec<Claim> {
    let near = |place: usize, statement: &'static str| {
        let ratio = |ratio: f64| ratio < APART;
        order(swept, place, "ratio below 1.5", statement, ratio)
    };
    let apart = |place: usize, words: &'static str, statement: &'static str, least: f64| {
        order(swept, place, words, statement, move |ratio| ratio > least)
    };
    vec![
        near(1, "At 0.001 Credence is near LQD."),
        near(2, "At 0.005 Credence is near LQD."),
        apart(
            3,
            "ratio above 1",
            "At 0.01 Credence departs from LQD.",
            1.0,
        ),
        apart(
            5,
            "ratio above 1.5",
            "At 0.1 Credence is much worse than LQD.",
            APART,
        ),
    ]
}

/// Returns Credence's tail over LQD's.
fn ratio(swept: &SweepResults, point: &Point, metric: Metric) -> Option<f64> {
    let value = |series| swept.value(series, point, metric).map(|value| value.median);
    Some(value("Credence")? / value("LQD")?)
}

fn order(
    swept: &SweepResults,
    place: usize,
    words: &'static str,
    statement: &'static str,
    right: impl Fn(f64) -> bool,
) -> Claim {
    let point = &swept.sweep.points[place];
    let incast = ratio(swept, point, Metric::IncastP95);
    let class = |(name, metric): (&str, Metric)| {
        let of_all = swept.sweep.points.iter();
        let first = of_all
            .filter(|point| ratio(swept, point, metric).is_some_and(|ratio| ratio > APART))
            .map(|point| point.label.clone())
            .next();
        let value = bufgym_eval::format::ratio(ratio(swept, point, metric));
        format!(
            "{name} {value} (above {APART} first at {})",
            first.unwrap_or_else(|| "none".to_owned())
        )
    };
    let classes = [
        ("in-cast", Metric::IncastP95),
        ("short", Metric::ShortP95),
        ("long", Metric::LongP95),
    ];
    let remark = format!("Over LQD’s: {}.", classes.map(class).join(", "));
    let refused = swept.refusal("Credence").or(swept.refusal("LQD"));
    let metric = "p95 slowdown of in-cast flows over LQD’s";
    let claim = Claim::number(
        ("10", "a"),
        "Credence",
        metric,
        statement,
        Target::Order(words),
    );
    claim
        .of_kind(crate::claim::Kind::Order)
        .at(point.label.clone())
        .measured(incast.and_then(|ratio| Spread::of(vec![ratio])))
        .ranked(incast.map(right))
        .remarked(remark)
        .not_run(refused.filter(|_| incast.is_none()))
}
