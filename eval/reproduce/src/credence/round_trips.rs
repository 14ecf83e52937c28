//! Fig. 9: shorter and longer round trips.

use bufgym_util::convert::floor_u64;

use super::{PRESET, settings};
use crate::claim::{Claim, Target};
use crate::fabric::{FabricConfig, FigurePlan, PanelPlan, in_words};
use crate::sweep::{Metric, Point, Series, Sweep, Swept, reduced};

/// Base round trips, microseconds.
const ROUND_TRIPS: [f64; 5] = [8.0, 16.0, 24.0, 32.0, 64.0];

/// Returns the plan of the figure.
pub fn plan(config: &FabricConfig) -> FigurePlan {
    let seeds = config.seeds();
    FigurePlan {
        sweep: Sweep {
            figure: "9",
            preset: PRESET,
            settings: settings(&["transport=dctcp", "load=0.4", "query_share=0.5"]),
            series: vec![
                Series::new("ABM", "abm"),
                Series::new("Credence", "credence"),
                Series::new("DT", "dt:alpha=0.5").as_addition(),
                Series::new("unlimited", "unlimited").as_addition(),
            ],
            points: ROUND_TRIPS.iter().map(|rtt| point(*rtt)).collect(),
            x_label: "base round trip, µs",
            seeds,
            changes: Vec::new(),
        },
        panels: [
            (
                "9a",
                "tail slowdown of in-cast flows over the round trip",
                Metric::IncastP95,
            ),
            (
                "9b",
                "tail slowdown of short flows over the round trip",
                Metric::ShortP95,
            ),
            (
                "9c",
                "tail slowdown of long flows over the round trip",
                Metric::LongP95,
            ),
            (
                "9d",
                "tail occupancy over the round trip",
                Metric::OccupancyP9999,
            ),
        ]
        .map(|(id, title, metric)| PanelPlan { id, title, metric })
        .to_vec(),
        tail: Metric::IncastP95,
        method: format!(
            "{PRESET}, DCTCP, load 40 %, requests of 50 %, {seeds}; the initial window is the \
             bandwidth-delay product at each round trip, marks are from ten packets on.",
            seeds = in_words(seeds)
        ),
        claims: Box::new(claims),
    }
}

/// Returns the point of a round trip. A path has eight links there and back.
fn point(rtt_us: f64) -> Point {
    let bdp_segments = (1_250.0 * rtt_us / 1_400.0).ceil();
    let settings = [
        format!("propagation_ns={}", floor_u64(125.0 * rtt_us)),
        format!("init_cwnd={}", floor_u64(bdp_segments)),
    ];
    Point::new(rtt_us, format!("RTT {rtt_us} µs"), &settings)
}

fn claims(swept: &Swept) -> Vec<Claim> {
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
fn ratio(swept: &Swept, point: &Point, metric: Metric) -> Option<f64> {
    let value = |series| swept.value(series, point, metric).map(|value| value.median);
    Some(value("ABM")? / value("Credence")?)
}

fn ratios(swept: &Swept) -> String {
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
    swept: &Swept,
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
