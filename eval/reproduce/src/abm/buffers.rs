//! Fig. 11: smaller buffers.

use super::loads::rows;
use super::{ABM, DT, PRESET, settings};
use crate::claim::{Claim, Target};
use crate::fabric::{FabricConfig, FigurePlan, PanelPlan, in_words};
use crate::sweep::{Metric, Point, Series, Sweep, Swept, Tabled, TabledRow, reduced};

/// Buffer sizes, KB per port and Gbit/s.
const SIZES: [f64; 6] = [9.6, 8.0, 7.0, 6.0, 5.12, 3.44];

/// Size of the request: a quarter of the largest buffer, whatever the buffer is.
const REQUEST: f64 = 0.25 * SIZES[0];

const TABLES: [Tabled; 4] = [
    Tabled {
        panel: ("11", "a"),
        metric: Metric::IncastP99,
        statement: "99th percentile of the slowdown of in-cast flows, DCTCP.",
        rows: rows! {
            "DCTCP, DT": [9.6, 9.6, 102.0, 107.0, 126.0, 294.0],
            "DCTCP, IB": [9.5, 10.0, 98.3, 107.0, 126.0, 292.0],
            "DCTCP, ABM": [8.8, 9.0, 8.6, 8.4, 8.9, 8.9],
        },
    },
    Tabled {
        panel: ("11", "a"),
        metric: Metric::Late,
        statement: "Share of in-cast flows that take longer than 10 ms, DCTCP.",
        rows: rows! {
            "DCTCP, DT": [0.1, 0.4, 1.6, 4.3, 15.0, 46.0],
            "DCTCP, IB": [0.2, 0.5, 1.1, 3.6, 15.0, 46.0],
            "DCTCP, ABM": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        },
    },
    Tabled {
        panel: ("11", "a"),
        metric: Metric::OccupancyP99,
        statement: "99th percentile of the occupancy of leaf 0, DCTCP.",
        rows: rows! {
            "DCTCP, DT": [41.0, 46.0, 42.0, 46.0, 50.0, 57.0],
            "DCTCP, IB": [37.0, 37.0, 42.0, 46.0, 50.0, 57.0],
            "DCTCP, ABM": [24.0, 28.0, 29.0, 29.0, 33.0, 42.0],
        },
    },
    Tabled {
        panel: ("11", "b"),
        metric: Metric::IncastP99,
        statement: "99th percentile of the slowdown of in-cast flows, PowerTCP.",
        rows: rows! {
            "PowerTCP, DT": [8.3, 8.3, 8.3, 8.3, 103.0, 103.0],
            "PowerTCP, IB": [8.3, 8.3, 8.3, 8.3, 103.0, 103.0],
            "PowerTCP, ABM": [8.25, 8.25, 8.25, 8.25, 8.25, 8.25],
        },
    },
];

/// Returns the plan of the figure.
pub fn plan(config: &FabricConfig) -> FigurePlan {
    FigurePlan {
        sweep: Sweep {
            figure: "11",
            preset: PRESET,
            settings: settings(&["load=0.4"]),
            series: series(),
            points: SIZES.iter().map(|size| point(*size)).collect(),
            x_label: "buffer, KB per port and Gbit/s",
            seeds: config.seeds(),
            changes: Vec::new(),
        },
        panels: vec![
            PanelPlan {
                id: "11a",
                title: "tail slowdown of in-cast flows over buffer size",
                metric: Metric::IncastP99,
            },
            PanelPlan {
                id: "11b",
                title: "in-cast flows beyond the minimum RTO over buffer size",
                metric: Metric::Late,
            },
        ],
        tail: Metric::IncastP99,
        method: format!(
            "{PRESET}, load 40 %, {}; requests of 983,040 B at every size. The published files stop \
             after 0.26 to 0.42 s of 3 s.",
            in_words(config.seeds())
        ),
        claims,
    }
}

fn point(size: f64) -> Point {
    let settings = [
        format!("buffer_bytes_per_port_gbps={size}"),
        format!("query_share={}", REQUEST / size),
    ];
    Point::new(size, format!("{size} KB"), &settings)
}

fn series() -> Vec<Series> {
    let transports = [
        ("DCTCP", "transport=dctcp"),
        ("PowerTCP", "transport=powertcp"),
    ];
    let of = |(transport, setting): (&str, &'static str)| {
        [
            ("DT", DT),
            ("IB", "ib"),
            ("ABM", ABM),
            ("unlimited", "unlimited"),
        ]
        .map(|(name, spec)| {
            let series = Series::with(&format!("{transport}, {name}"), spec, &[setting]);
            match name {
                "unlimited" => series.as_addition(),
                _ => series,
            }
        })
    };
    transports.into_iter().flat_map(of).collect()
}

fn claims(swept: &Swept) -> Vec<Claim> {
    let mut claims: Vec<Claim> = TABLES
        .iter()
        .flat_map(|table| table.claims(swept))
        .collect();
    let points = &swept.sweep.points;
    for (panel, transport, from, statement) in [
        (
            "a",
            "DCTCP",
            2,
            "With DCTCP the tails of DT and IB are about ten times ABM’s from 7 KB down.",
        ),
        (
            "b",
            "PowerTCP",
            4,
            "With PowerTCP they are from 5.12 KB down.",
        ),
    ] {
        claims.push(tenfold(swept, panel, transport, &points[from], statement));
    }
    for (panel, transport, paper, statement) in [
        (
            "a",
            "DCTCP",
            96.0,
            "At 3.44 KB ABM’s tail is 96 % lower with DCTCP.",
        ),
        (
            "b",
            "PowerTCP",
            92.0,
            "At 3.44 KB it is 92 % lower with PowerTCP.",
        ),
    ] {
        let name = |policy: &str| format!("{transport}, {policy}");
        let (abm, dt, ib) = (name("ABM"), name("DT"), name("IB"));
        let target = (Target::Reduction(paper), statement);
        let metric = Metric::IncastP99;
        let last = &points[points.len() - 1];
        claims.push(reduced(
            swept,
            ("11", panel),
            (&abm, &[&dt, &ib]),
            &[last],
            metric,
            target,
        ));
    }
    claims
}

/// Claims that DT's tail is ten times ABM's at the point where it leaves the floor.
fn tenfold(
    swept: &Swept,
    panel: &'static str,
    transport: &str,
    point: &Point,
    statement: &'static str,
) -> Claim {
    let name = |policy: &str| format!("{transport}, {policy}");
    let series = format!("{transport}, DT vs ABM");
    let metric = "p99 slowdown of in-cast flows, DT’s over ABM’s";
    let claim = Claim::number(
        ("11", panel),
        &series,
        metric,
        statement,
        Target::Value(10.0),
    );
    let tails = |policy: &str| swept.values(&name(policy), point, Metric::IncastP99);
    let ratios = tails("DT").zip(tails("ABM")).map(|(dt, abm)| {
        let pairs = dt.iter().zip(&abm);
        pairs.map(|(dt, abm)| dt / abm).collect::<Vec<f64>>()
    });
    let ours = ratios.and_then(bufgym_eval::stats::Spread::of);
    claim
        .at(point.label.clone())
        .measured(ours)
        .ranked(ours.map(|ours| ours.median > 1.5))
        .not_run(swept.refusal(&name("DT")))
}
