//! Fig. 12: the update interval of n_p and μ.

use super::{DT, PRESET, artefact_alphas, rows, settings, without_alpha};
use crate::Scale;
use crate::claim::{Claim, Target};
use crate::fabric::{FabricConfig, FigurePlan, PanelPlan, in_words};
use crate::sweep::{
    Metric, Point, ReferenceRow, ReferenceTable, Series, Sweep, SweepResults, reduced,
};
use crate::verdict::ascending;

/// Base round trips between two updates.
const INTERVALS: [u32; 4] = [1, 10, 100, 1000];
/// The base round trip, microseconds.
const BASE_RTT_US: u32 = 80;

const TABLES: [ReferenceTable; 2] = [
    ReferenceTable {
        panel: ("12", "a"),
        metric: Metric::IncastP999,
        statement: "99.9th percentile of the slowdown of in-cast flows; the text calls the class short \
                    flows.",
        rows: rows! {
            "ABM": [31.1, 32.2, 112.0, 207.0],
            "DT": [202.0, 202.0, 202.0, 202.0],
        },
    },
    ReferenceTable {
        panel: ("12", "b"),
        metric: Metric::LargestP50,
        statement: "Median of the slowdown of long flows.",
        rows: rows! {
            "ABM": [2.0, 2.0, 2.0, 1.9],
            "DT": [1.7, 1.7, 1.7, 1.7],
        },
    },
];

/// Returns the plan of the figure: flows in random queues and α 0.5 throughout, like in the paper. Additions
/// are without the unscheduled α, and with the queues and the α of the published code, each separately and
/// both.
pub fn plan(config: &FabricConfig) -> FigurePlan {
    let seeds = config.seeds.unwrap_or(match config.scale {
        Scale::Quick => config.seeds(),
        Scale::Paper => 10,
    });
    FigurePlan {
        sweep: Sweep {
            figure: "12",
            preset: PRESET,
            settings: settings(&[
                "transport=cubic",
                "load=0.4",
                "query_share=0.75",
                "queues_per_port=8",
                "flow_priority=random_per_flow",
                "incast_priority=7",
            ]),
            series: series(),
            points: INTERVALS.iter().map(|rtts| point(*rtts)).collect(),
            x_label: "update interval, log10 of base RTT",
            seeds,
            changes: Vec::new(),
        },
        panels: vec![
            PanelPlan {
                id: "12a",
                title: "extreme tail of in-cast flows over the update interval",
                metric: Metric::IncastP999,
            },
            PanelPlan {
                id: "12b",
                title: "median of long flows over the update interval",
                metric: Metric::LargestP50,
            },
        ],
        tail: Metric::IncastP999,
        method: format!(
            "{PRESET}, CUBIC, load 40 %, requests of 75 %, eight queues per port, {seeds}; each flow \
             in a random queue, in-cast in the last. The published files stop at 2.1 to 2.2 s, and a second \
             set of them shows no trend. “ABM without the unscheduled α” treats all packets alike, so that \
             the interval can matter.",
            seeds = in_words(seeds)
        ),
        claims: Box::new(claims),
    }
}

fn point(rtts: u32) -> Point {
    Point::new(f64::from(rtts).log10(), format!("{rtts} RTT"), &[])
}

/// Returns the base round trips of a point.
fn rtts(point: &Point) -> u32 {
    let place = bufgym_util::convert::floor_usize(point.x.round());
    INTERVALS.get(place).copied().unwrap_or(1)
}

/// Returns variants of the flows' queues and the queues' control factors according to the published code,
/// which differs from the paper: the flows of a leaf have one queue, and in-cast has queue 5.
fn readings() -> [(&'static str, Vec<String>); 3] {
    let per_leaf = ["flow_priority=random_per_leaf", "incast_priority=5"].map(str::to_owned);
    let alphas = artefact_alphas(8);
    [
        ("a queue per leaf", per_leaf.to_vec()),
        ("α of the artefact", vec![alphas.clone()]),
        (BOTH, per_leaf.into_iter().chain([alphas]).collect()),
    ]
}

const BOTH: &str = "a queue per leaf and α of the artefact";
const ALIKE: &str = "ABM without the unscheduled α";

fn series() -> Vec<Series> {
    let updated = |point: &Point| format!("abm:update_us={}", BASE_RTT_US * rtts(point));
    let alike = |point: &Point| format!("abm:periodic_rtts={}", rtts(point));
    let mut series = vec![
        Series::made("ABM", move |point| (Vec::new(), updated(point))),
        Series::new("DT", DT),
        Series::made(ALIKE, move |point| (Vec::new(), alike(point))).as_addition(),
    ];
    for (reading, settings) in readings() {
        let (of_abm, of_dt) = (settings.clone(), settings.clone());
        let abm = move |point: &Point| (of_abm.clone(), updated(point));
        series.push(Series::made(&format!("ABM, {reading}"), abm).as_addition());
        let dt = match reading {
            "a queue per leaf" => DT,
            _ => without_alpha(DT),
        };
        let dt = move |_: &Point| (of_dt.clone(), dt.to_owned());
        series.push(Series::made(&format!("DT, {reading}"), dt).as_addition());
        if reading == BOTH {
            let alike = move |point: &Point| (settings.clone(), alike(point));
            series.push(Series::made(&format!("{ALIKE}, {reading}"), alike).as_addition());
        }
    }
    series.push(Series::new("unlimited", "unlimited").as_addition());
    series
}

fn claims(swept: &SweepResults) -> Vec<Claim> {
    let mut claims: Vec<Claim> = TABLES
        .iter()
        .flat_map(|table| table.claims(swept))
        .collect();
    let points = &swept.sweep.points;
    for (at, paper, statement) in [
        (1, 84.05, "Updates every 10 RTT lower DT’s tail by 84.05 %."),
        (2, 44.78, "Updates every 100 RTT lower it by 44.78 %."),
    ] {
        let target = (Target::Reduction(paper), statement);
        let metric = Metric::IncastP999;
        let claim = reduced(
            swept,
            ("12", "a"),
            ("ABM", &["DT"]),
            &[&points[at]],
            metric,
            target,
        );
        claims.push(claim.remarked(in_other_readings(swept, &points[at])));
    }
    claims.push(trend(swept, "ABM"));
    claims.push(trend(swept, ALIKE));
    claims.push(trend(swept, &format!("{ALIKE}, {BOTH}")));
    claims.push(long_flows(swept));
    claims
}

/// Describes the same reduction with other queues and control factors, and without the unscheduled α.
fn in_other_readings(swept: &SweepResults, point: &Point) -> String {
    let alike = (
        ALIKE.to_owned(),
        "DT".to_owned(),
        "without the unscheduled α",
    );
    let others = readings().map(|(reading, _)| {
        let of = |policy: &str| format!("{policy}, {reading}");
        (of("ABM"), of("DT"), reading)
    });
    let reductions = [alike].into_iter().chain(others);
    let found = reductions.filter_map(|(abm, dt, reading)| {
        let reduction = swept.reduction(&abm, &[&dt], &[point], Metric::IncastP999)?;
        let value = bufgym_eval::format::significant(reduction.median);
        Some(format!("{reading} {value} %"))
    });
    let found: Vec<String> = found.collect();
    match found.is_empty() {
        true => String::new(),
        false => format!("Otherwise: {}.", found.join(", ")),
    }
}

/// Claims that the tail grows with the interval.
fn trend(swept: &SweepResults, series: &str) -> Claim {
    let values = swept.sweep.points.iter().map(|point| {
        let tail = swept.value(series, point, Metric::IncastP999);
        tail.map(|tail| tail.median)
    });
    let values: Vec<Option<f64>> = values.collect();
    let last = swept.sweep.points.last();
    let claim = Claim::order(
        ("12", "a"),
        series,
        "p99.9 slowdown of in-cast flows",
        "The tail grows with the update interval and meets DT’s at 1000 RTT.",
        "1 < 10 < 100 < 1000 RTT",
    );
    claim
        .measured(last.and_then(|last| swept.value(series, last, Metric::IncastP999)))
        .ranked(ascending(&values))
        .remarked(format!(
            "Found: {}.",
            values
                .iter()
                .map(|value| value.map_or_else(|| "–".to_owned(), bufgym_eval::format::significant))
                .collect::<Vec<_>>()
                .join(", ")
        ))
        .not_run(swept.refusal(series))
}

/// Claims that long flows do not depend on the interval: they stay within a quarter of each other.
fn long_flows(swept: &SweepResults) -> Claim {
    let values = swept.sweep.points.iter().filter_map(|point| {
        let value = swept.value("ABM", point, Metric::LargestP50);
        value.map(|value| value.median)
    });
    let values: Vec<f64> = values.collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let all = values.len() == swept.sweep.points.len();
    let claim = Claim::order(
        ("12", "b"),
        "ABM",
        "median slowdown of flows of at least 30 MB, largest over least",
        "Long flows are unaffected by the update interval.",
        "within 25 %",
    );
    claim
        .measured(bufgym_eval::stats::Spread::of(vec![most / least]).filter(|_| all))
        .ranked(all.then_some(most <= 1.25 * least))
        .not_run(swept.refusal("ABM"))
}
