//! Fig. 10: the number of queues per port.

use super::{ABM, DT, PRESET, artefact_alphas, rows, settings, without_alpha};
use crate::claim::{Claim, Target};
use crate::fabric::{FabricConfig, FigurePlan, PanelPlan, in_words};
use crate::sweep::{
    Metric, Point, ReferenceRow, ReferenceTable, Series, Sweep, SweepResults, reduced,
};
use crate::verdict::ascending;

const TABLE: ReferenceTable = ReferenceTable {
    panel: ("10", "a"),
    metric: Metric::IncastP99,
    statement: "99th percentile of the slowdown of in-cast flows.",
    rows: rows! {
        "CUBIC, DT": [109.0, 103.0, 98.3, 130.0, 148.0, 165.0, 202.0],
        "CUBIC, ABM": [9.0, 12.8, 14.0, 13.6, 13.7, 13.6, 14.4],
        "DCTCP, DT": [9.4, 14.7, 16.8, 188.0, 209.0, 213.0, 210.0],
        "DCTCP, ABM": [9.0, 13.5, 13.4, 14.1, 14.0, 14.0, 13.7],
    },
};

/// Returns the plan of the figure, with α 0.5 throughout like in the paper and, as additions, with those of
/// the published code.
pub fn plan(config: &FabricConfig) -> FigurePlan {
    FigurePlan {
        sweep: Sweep {
            figure: "10",
            preset: PRESET,
            settings: settings(&["load=0.4", "query_share=0.25"]),
            series: series(),
            points: (2..=8).map(point).collect(),
            x_label: "queues per port",
            seeds: config.seeds(),
            changes: Vec::new(),
        },
        panels: vec![
            PanelPlan {
                id: "10a",
                title: "tail slowdown of in-cast flows over queues per port",
                metric: Metric::IncastP99,
            },
            PanelPlan {
                id: "10b",
                title: "tail occupancy over queues per port",
                metric: Metric::OccupancyP99,
            },
        ],
        tail: Metric::IncastP99,
        method: format!(
            "{PRESET}, load 40 %, requests of 25 %, {}; acknowledgements in queue 0, web search in a \
             random other queue for each flow, in-cast in the last one. “α of the artefact” gives the last \
             queues 0.125, 0.0625, 0.03125 and 0.015625, a second cause of the jump at five queues.",
            in_words(config.seeds())
        ),
        claims: Box::new(claims),
    }
}

fn point(queues: usize) -> Point {
    let settings = [
        format!("queues_per_port={queues}"),
        "ack_queue=0".to_owned(),
        "flow_priority=random_per_flow".to_owned(),
        format!("incast_priority={}", queues - 1),
    ];
    Point::new(queues as f64, format!("{queues} queues"), &settings)
}

fn series() -> Vec<Series> {
    let mut series = Vec::new();
    for (transport, setting) in [("CUBIC", "transport=cubic"), ("DCTCP", "transport=dctcp")] {
        for (policy, spec) in [("DT", DT), ("ABM", ABM)] {
            series.push(Series::with(
                &format!("{transport}, {policy}"),
                spec,
                &[setting],
            ));
        }
    }
    for (transport, setting) in [("CUBIC", "transport=cubic"), ("DCTCP", "transport=dctcp")] {
        for (policy, spec) in [("DT", DT), ("ABM", ABM)] {
            let name = format!("{transport}, {policy}, α of the artefact");
            let made = move |point: &Point| {
                let queues = bufgym_util::convert::floor_usize(point.x).clamp(1, 8);
                let settings = vec![setting.to_owned(), artefact_alphas(queues)];
                (settings, without_alpha(spec).to_owned())
            };
            series.push(Series::made(&name, made).as_addition());
        }
        let name = format!("{transport}, unlimited");
        series.push(Series::with(&name, "unlimited", &[setting]).as_addition());
    }
    series
}

fn claims(swept: &SweepResults) -> Vec<Claim> {
    let mut claims = TABLE.claims(swept);
    let points = &swept.sweep.points;
    for (name, at, paper, statement) in [
        (
            "DCTCP",
            2,
            10.0,
            "With four queues ABM’s tail is 10 % lower with DCTCP.",
        ),
        (
            "CUBIC",
            3,
            88.9,
            "With five queues ABM’s tail is 88.9 % lower (CUBIC).",
        ),
        (
            "DCTCP",
            3,
            88.9,
            "With five queues ABM’s tail is 88.9 % lower (DCTCP).",
        ),
        (
            "CUBIC",
            6,
            92.6,
            "With eight queues ABM’s tail is 92.6 % lower (CUBIC).",
        ),
        (
            "DCTCP",
            6,
            92.6,
            "With eight queues ABM’s tail is 92.6 % lower (DCTCP).",
        ),
    ] {
        let (abm, dt) = (format!("{name}, ABM"), format!("{name}, DT"));
        let metric = Metric::IncastP99;
        let target = (Target::Reduction(paper), statement);
        let claim = reduced(
            swept,
            ("10", "a"),
            (&abm, &[&dt]),
            &[&points[at]],
            metric,
            target,
        );
        claims.push(claim.remarked(with_the_artefact(swept, name, &points[at])));
    }
    claims.push(occupancy(swept));
    claims
}

/// Describes the same reduction with the control factors of the published code.
fn with_the_artefact(swept: &SweepResults, transport: &str, point: &Point) -> String {
    let name = |policy: &str| format!("{transport}, {policy}, α of the artefact");
    let (abm, dt) = (name("ABM"), name("DT"));
    let reduction = swept.reduction(&abm, &[&dt], &[point], Metric::IncastP99);
    reduction.map_or_else(String::new, |reduction| {
        let value = bufgym_eval::format::significant(reduction.median);
        format!("With the α of the artefact it is {value} %.")
    })
}

/// Claims that DCTCP's occupancy grows with the number of queues under DT, and that ABM's stays below it.
fn occupancy(swept: &SweepResults) -> Claim {
    let points = &swept.sweep.points;
    let at = |series: &str, point: &Point| {
        swept
            .value(series, point, Metric::OccupancyP99)
            .map(|value| value.median)
    };
    let (first, last) = (&points[0], &points[points.len() - 1]);
    let grows = ascending(&[at("DCTCP, DT", first), at("DCTCP, DT", last)]);
    let below = ascending(&[at("DCTCP, ABM", last), at("DCTCP, DT", last)]);
    let ours = swept.value("DCTCP, DT", last, Metric::OccupancyP99);
    let claim = Claim::order(
        ("10", "b"),
        "DCTCP, DT",
        "p99 occupancy of leaves, %",
        "Even DCTCP uses more buffer with more queues under DT, and ABM’s occupancy stays low.",
        "2 queues < 8 queues under DT, ABM < DT",
    );
    claim
        .at("8 queues")
        .measured(ours)
        .ranked(grows.zip(below).map(|(grows, below)| grows && below))
        .not_run(swept.refusal("DCTCP, DT"))
}
