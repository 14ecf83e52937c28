//! Fig. 8: three transports, each with its own hosts and queue.

use super::{ABM, DT, rows, settings};
use crate::claim::{Claim, Target};
use crate::fabric::{FabricConfig, FigurePlan, PanelPlan, additions, in_words, points};
use crate::sweep::{Metric, Point, Series, Sweep, Swept, Tabled, TabledRow, reduced};

/// The network of the published file, with its classes.
const PRESET: &str = "abm-artefact-mixed";

const TABLES: [Tabled; 3] = [
    Tabled {
        panel: ("8", "a"),
        metric: Metric::ShortP99,
        statement: "99th percentile of the slowdown of short flows with CUBIC.",
        rows: rows! {
            "DT": [10.8, 18.4, 27.6, 42.8, 65.7, 81.3],
            "ABM": [8.5, 12.4, 18.0, 24.7, 27.0, 24.9],
        },
    },
    Tabled {
        panel: ("8", "b"),
        metric: Metric::SecondShortP99,
        statement: "99th percentile of the slowdown of short flows with DCTCP.",
        rows: rows! {
            "DT": [9.5, 25.7, 26.7, 40.3, 41.1, 34.5],
            "ABM": [9.1, 13.8, 17.1, 29.1, 23.2, 19.9],
        },
    },
    Tabled {
        panel: ("8", "c"),
        metric: Metric::IncastP99,
        statement: "99th percentile of the slowdown of in-cast flows with θ-PowerTCP.",
        rows: rows! {
            "DT": [9.2, 9.2, 99.4, 99.8, 101.0, 101.0],
            "ABM": [9.2, 9.2, 9.2, 10.4, 9.2, 9.2],
        },
    },
];

/// Returns the plan of the figure.
pub fn plan(config: &FabricConfig, alpha: &str) -> FigurePlan {
    let label = |load: f64| format!("CUBIC load {} %", 100.0 * load);
    let own = [Series::new("DT", DT), Series::new("ABM", ABM)];
    FigurePlan {
        sweep: Sweep {
            figure: "8",
            preset: PRESET,
            settings: settings(&["second_load=0.1", "query_share=0.3"]),
            series: own.into_iter().chain(additions(config, alpha)).collect(),
            points: points(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], label, "load", 100.0),
            x_label: "load of CUBIC, %",
            seeds: config.seeds(),
            changes: Vec::new(),
        },
        panels: vec![
            PanelPlan {
                id: "8a",
                title: "tail slowdown of short flows with CUBIC",
                metric: Metric::ShortP99,
            },
            PanelPlan {
                id: "8b",
                title: "tail slowdown of short flows with DCTCP",
                metric: Metric::SecondShortP99,
            },
            PanelPlan {
                id: "8c",
                title: "tail slowdown of in-cast flows with θ-PowerTCP",
                metric: Metric::IncastP99,
            },
        ],
        tail: Metric::IncastP99,
        method: format!(
            "{PRESET}: five leaves of 32 hosts, eight queues per port, {}. CUBIC web search in queue 1 \
             between 16 hosts each of leaves 0 and 1, DCTCP web search at load 10 % in queue 2 between eight \
             hosts of each, requests of 30 % in queue 3 of eight more, which eight hosts of each other leaf \
             answer with θ-PowerTCP. Loads are relative to the uplinks.",
            in_words(config.seeds())
        ),
        claims: Box::new(claims),
    }
}

fn claims(swept: &Swept) -> Vec<Claim> {
    let tables = TABLES.iter().flat_map(|table| table.claims(swept));
    let mut claims: Vec<Claim> = tables.collect();
    claims.push(largest_reduction(swept));
    let last = &swept.sweep.points[swept.sweep.points.len() - 1];
    for (table, level, statement) in [
        (
            &TABLES[0],
            20.0,
            "With ABM the tail of CUBIC levels off near 20.",
        ),
        (
            &TABLES[1],
            20.0,
            "With ABM the tail of DCTCP levels off near 20.",
        ),
        (
            &TABLES[2],
            10.0,
            "With ABM the tail of θ-PowerTCP levels off near 10.",
        ),
    ] {
        let (metric, target) = (table.metric, Target::Value(level));
        let claim = Claim::number(table.panel, "ABM", metric.name(), statement, target);
        let ours = swept.value("ABM", last, metric);
        let refused = swept.refusal("ABM").filter(|_| ours.is_none());
        claims.push(claim.at(last.label.clone()).measured(ours).not_run(refused));
    }
    claims
}

/// Claims "by up to 90.92 %": the maximum of all loads and classes. In the published file it is that of
/// θ-PowerTCP.
fn largest_reduction(swept: &Swept) -> Claim {
    let reduction = |table: &Tabled, point: &Point| {
        let reduction = swept.reduction("ABM", &["DT"], &[point], table.metric);
        reduction.map_or(f64::NEG_INFINITY, |reduction| reduction.median)
    };
    let points = swept.sweep.points.iter();
    let all = points.flat_map(|point| TABLES.iter().map(move |table| (table, point)));
    let largest = all.max_by(|(a, at), (b, other)| {
        let (a, b) = (reduction(a, at), reduction(b, other));
        a.total_cmp(&b)
    });
    let (table, point) = largest.unwrap_or((&TABLES[2], &swept.sweep.points[0]));
    let statement = "ABM lowers the tail of a transport by up to 90.92 %.";
    let target = (Target::Reduction(90.92), statement);
    reduced(
        swept,
        table.panel,
        ("ABM", &["DT"]),
        &[point],
        table.metric,
        target,
    )
}
