//! Fig. 6 and 7: claims besides those of the files.

use crate::claim::{Claim, Target};
use crate::incast::Regime;
use crate::rules::regimes;
use crate::sweep::{Metric, Point, SweepResults, largest_reduction, on_a_par, reduced};

/// Claims reductions of Credence relative to another policy.
fn against(
    swept: &SweepResults,
    panel: &'static str,
    other: &str,
    at: &[&Point],
    metric: Metric,
    (paper, statement): (f64, &'static str),
) -> Claim {
    let pair: (&str, &[&str]) = ("Credence", &[other]);
    let target = (Target::Reduction(paper), statement);
    let claim = reduced(swept, (swept.sweep.figure, panel), pair, at, metric, target);
    match metric {
        Metric::IncastP95 => claim.remarked(regimes(swept, at, metric)),
        _ => claim,
    }
}

pub(crate) fn claims_over_loads(swept: &SweepResults) -> Vec<Claim> {
    let all: Vec<&Point> = swept.sweep.points.iter().collect();
    let mut claims = Vec::new();
    for (other, paper, statement) in [
        ("DT", 3.77, "DT uses 3.77 % less buffer than Credence."),
        ("ABM", 18.68, "ABM uses 18.68 % less buffer than Credence."),
    ] {
        let target = (Target::Reduction(paper), statement);
        let pair: (&str, &[&str]) = (other, &["Credence"]);
        let at_p99 = swept.reduction(other, &["Credence"], &all, Metric::OccupancyP99);
        let remark = at_p99.map_or_else(String::new, |value| {
            format!(
                "At the 99.99th percentile, as the text says; at the 99th, as the set-up says, {} %.",
                bufgym_eval::format::significant(value.median)
            )
        });
        claims.push(
            reduced(
                swept,
                ("6", "d"),
                pair,
                &all,
                Metric::OccupancyP9999,
                target,
            )
            .remarked(remark),
        );
    }
    claims
}

pub(crate) fn claims_over_requests(swept: &SweepResults) -> Vec<Claim> {
    use Metric::{IncastP95, LongP95};
    let all: Vec<&Point> = swept.sweep.points.iter().collect();
    let leaving = leaving_the_floor(swept);
    let large: Vec<&Point> = all.iter().copied().filter(|point| point.x > 25.0).collect();
    vec![
        against(
            swept,
            "a",
            "DT",
            &large,
            IncastP95,
            (
                95.0,
                "With larger requests Credence’s in-cast tail is 95 % below DT’s on average.",
            ),
        )
        .at("mean over requests above 25 %"),
        against(
            swept,
            "a",
            "ABM",
            &large,
            IncastP95,
            (96.92, "It is 96.92 % below ABM’s."),
        )
        .at("mean over requests above 25 %"),
        on_a_par(
            swept,
            "a",
            ("Credence", "DT"),
            &all[..1],
            IncastP95,
            "With small requests the tails are equal.",
        )
        .remarked(leaving.clone()),
        against(
            swept,
            "c",
            "ABM",
            &all,
            LongP95,
            (12.02, "Long flows are 12.02 % below ABM’s on average."),
        ),
        largest_reduction(
            swept,
            ("7", "c"),
            ("Credence", "ABM"),
            LongP95,
            "largest reduction of the p95 slowdown of long flows, %",
            (22.02, "Long flows are up to 22.02 % below ABM’s."),
        ),
        earlier(swept, leaving),
    ]
}

/// Returns the smallest request at which a policy's in-cast tail is not at the floor.
fn leaves_at(swept: &SweepResults, series: &str) -> Option<f64> {
    let mut points = swept.sweep.points.iter();
    let beyond = points.find(|point| {
        let regime = swept.regime(series, point, Metric::IncastP95);
        regime.is_some_and(|regime| regime != Regime::Floor)
    });
    beyond.map(|point| point.x)
}

fn leaving_the_floor(swept: &SweepResults) -> String {
    let own = swept.sweep.series.iter().filter(|series| !series.added);
    let words = own.map(|series| match leaves_at(swept, &series.name) {
        Some(x) => format!("{} at {x} %", series.name),
        None => format!("{} at none", series.name),
    });
    format!(
        "Requests at which tails leave the floor: {}.",
        words.collect::<Vec<_>>().join(", ")
    )
}

/// Claims that DT and ABM leave the floor at smaller requests than Credence.
fn earlier(swept: &SweepResults, leaving: String) -> Claim {
    let at = |series| leaves_at(swept, series).unwrap_or(f64::INFINITY);
    let own = at("Credence");
    let ran = ["DT", "ABM", "Credence"].iter().all(|name| {
        let points = &swept.sweep.points;
        points
            .iter()
            .all(|point| swept.value(name, point, Metric::IncastP95).is_some())
    });
    Claim::order(
        ("7", "d"),
        "DT, ABM",
        "request at which in-cast tails leave the floor, % of the buffer",
        "DT and ABM cannot use the buffer as requests grow.",
        "DT, ABM < Credence",
    )
    .ranked(ran.then_some(at("DT") < own && at("ABM") < own))
    .remarked(leaving)
}
