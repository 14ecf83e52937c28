//! Fig. 6, 7 and 8: over load with DCTCP, over request size with DCTCP and with PowerTCP.

use super::{PRESET, policies, settings};
use crate::claim::{Claim, Target};
use crate::fabric::{FabricConfig, FigurePlan, PanelPlan, additions, in_words, learned, points};
use crate::incast::Regime;
use crate::sweep::{Metric, Point, Series, Sweep, Swept, largest_reduction, on_a_par, reduced};

/// Returns the plan of Fig. 6.
pub(crate) fn over_loads(config: &FabricConfig, alpha: &str) -> FigurePlan {
    let label = |load: f64| format!("load {} %", 100.0 * load);
    let seeds = config.seeds();
    FigurePlan {
        sweep: Sweep {
            figure: "6",
            preset: PRESET,
            settings: settings(&["transport=dctcp", "query_share=0.5"]),
            series: policies()
                .into_iter()
                .chain(additions(config, alpha))
                .collect(),
            points: points(&[0.2, 0.4, 0.6, 0.8], label, "load", 100.0),
            x_label: "load, %",
            seeds,
            changes: Vec::new(),
        },
        panels: panels(["6a", "6b", "6c", "6d"]),
        tail: Metric::IncastP95,
        method: format!(
            "{PRESET}, DCTCP, requests of 50 % of the buffer, {seeds}.",
            seeds = in_words(seeds)
        ),
        claims: Box::new(claims_over_loads),
    }
}

/// Returns the plan of Fig. 7.
pub(crate) fn over_requests(config: &FabricConfig, alpha: &str) -> FigurePlan {
    let series = policies()
        .into_iter()
        .chain(additions(config, alpha))
        .collect();
    let sweep = requests("7", "transport=dctcp", series, config);
    FigurePlan {
        panels: panels(["7a", "7b", "7c", "7d"]),
        tail: Metric::IncastP95,
        method: format!("{PRESET}, DCTCP, load 40 %, {}.", in_words(sweep.seeds)),
        sweep,
        claims: Box::new(claims_over_requests),
    }
}

/// Returns the plan of Fig. 8.
pub(crate) fn with_powertcp(config: &FabricConfig) -> FigurePlan {
    let series = policies().into_iter().filter(|series| series.name != "LQD");
    let unlimited = Series::new("unlimited", "unlimited").as_addition();
    let learned = learned(config).map(Series::as_addition);
    let series = series.chain([unlimited]).chain(learned).collect();
    let sweep = requests("8", "transport=powertcp", series, config);
    FigurePlan {
        panels: panels(["8a", "8b", "8c", "8d"]),
        tail: Metric::IncastP95,
        method: format!("{PRESET}, PowerTCP, load 40 %, {}.", in_words(sweep.seeds)),
        sweep,
        claims: Box::new(claims_with_powertcp),
    }
}

fn requests(
    figure: &'static str,
    transport: &str,
    series: Vec<Series>,
    config: &FabricConfig,
) -> Sweep {
    let label = |share: f64| format!("request {} %", 100.0 * share);
    let shares: Vec<f64> = (1..=8).map(|eighths| f64::from(eighths) / 8.0).collect();
    Sweep {
        figure,
        preset: PRESET,
        settings: settings(&[transport, "load=0.4"]),
        series,
        points: points(&shares, label, "query_share", 100.0),
        x_label: "request, % of the buffer",
        seeds: config.seeds(),
        changes: Vec::new(),
    }
}

fn panels(ids: [&'static str; 4]) -> Vec<PanelPlan> {
    let panels = [
        ("tail slowdown of in-cast flows", Metric::IncastP95),
        ("tail slowdown of short flows", Metric::ShortP95),
        ("tail slowdown of long flows", Metric::LongP95),
        ("tail occupancy", Metric::OccupancyP9999),
    ];
    let panels = ids.into_iter().zip(panels);
    panels
        .map(|(id, (title, metric))| PanelPlan { id, title, metric })
        .collect()
}

/// Claims reductions of Credence relative to another policy.
fn against(
    swept: &Swept,
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
        Metric::IncastP95 => claim.remarked(regimes(swept, at)),
        _ => claim,
    }
}

/// Describes the regimes of all of the paper's series at all points.
fn regimes(swept: &Swept, at: &[&Point]) -> String {
    let of_series = |series: &Series| {
        let at = at.iter().map(|point| {
            let regime = swept.regime(&series.name, point, Metric::IncastP95);
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

fn claims_over_loads(swept: &Swept) -> Vec<Claim> {
    use Metric::{IncastP95, LongP95, OccupancyP9999, ShortP95};
    let all: Vec<&Point> = swept.sweep.points.iter().collect();
    let against = |panel, other: &str, at: &[&Point], metric, paper| {
        against(swept, panel, other, at, metric, paper)
    };
    let par =
        |panel, pair, metric, statement| on_a_par(swept, panel, pair, &all, metric, statement);
    let mut claims = vec![
        against(
            "a",
            "DT",
            &all,
            IncastP95,
            (95.50, "Credence’s in-cast tail is 95.50 % below DT’s."),
        ),
        against(
            "a",
            "ABM",
            &all,
            IncastP95,
            (95.53, "It is 95.53 % below ABM’s."),
        ),
        par("a", ("Credence", "LQD"), IncastP95, "It is near LQD’s."),
        par(
            "b",
            ("Credence", "DT"),
            ShortP95,
            "Short flows are on a par with DT.",
        ),
        par(
            "b",
            ("Credence", "ABM"),
            ShortP95,
            "Short flows are on a par with ABM.",
        ),
        par(
            "c",
            ("Credence", "DT"),
            LongP95,
            "Long flows are as with DT.",
        ),
        against(
            "c",
            "ABM",
            &all,
            LongP95,
            (28.49, "Long flows are 28.49 % below ABM’s on average."),
        ),
        against(
            "c",
            "ABM",
            &all[3..],
            LongP95,
            (49.34, "At 80 % load they are 49.34 % below."),
        ),
    ];
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
        claims
            .push(reduced(swept, ("6", "d"), pair, &all, OccupancyP9999, target).remarked(remark));
    }
    claims
}

fn claims_over_requests(swept: &Swept) -> Vec<Claim> {
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
fn leaves_at(swept: &Swept, series: &str) -> Option<f64> {
    let mut points = swept.sweep.points.iter();
    let beyond = points.find(|point| {
        let regime = swept.regime(series, point, Metric::IncastP95);
        regime.is_some_and(|regime| regime != Regime::Floor)
    });
    beyond.map(|point| point.x)
}

fn leaving_the_floor(swept: &Swept) -> String {
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
fn earlier(swept: &Swept, leaving: String) -> Claim {
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

fn claims_with_powertcp(swept: &Swept) -> Vec<Claim> {
    use Metric::{IncastP95, LongP95};
    let all: Vec<&Point> = swept.sweep.points.iter().collect();
    let last = &all[all.len() - 1..];
    let against = |panel, other: &str, at: &[&Point], metric, paper| {
        against(swept, panel, other, at, metric, paper)
    };
    vec![
        against(
            "a",
            "DT",
            &all,
            IncastP95,
            (
                93.27,
                "With PowerTCP Credence’s in-cast tail is 93.27 % below DT’s on average.",
            ),
        ),
        against(
            "a",
            "ABM",
            &all,
            IncastP95,
            (93.36, "It is 93.36 % below ABM’s."),
        ),
        against(
            "c",
            "DT",
            &all,
            LongP95,
            (3.31, "Long flows are 3.31 % below DT’s on average."),
        ),
        against(
            "c",
            "ABM",
            &all,
            LongP95,
            (17.35, "They are 17.35 % below ABM’s."),
        ),
        against(
            "c",
            "DT",
            last,
            LongP95,
            (
                5.49,
                "With requests of the whole buffer they are 5.49 % below DT’s.",
            ),
        ),
        against(
            "c",
            "ABM",
            last,
            LongP95,
            (24.09, "They are then 24.09 % below ABM’s."),
        ),
    ]
}
