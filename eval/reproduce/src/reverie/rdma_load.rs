//! Fig. 11 and 12: web search with RDMA (PowerTCP), in-cast with TCP (CUBIC); over load and over the size of
//! requests.

use super::claims::{ANYWHERE, against, all_alike, largest_against, pauses_like_dt, small_share};
use super::{ABM, DT, PRESET, REVERIE, panels, policies, request, requests, settings};
use crate::claim::Claim;
use crate::fabric::{FabricConfig, FigurePlan, in_words, points};
use crate::sweep::{Metric, Point, Sweep, Swept, on_a_par};

const LOADS: [f64; 4] = [0.2, 0.4, 0.6, 0.8];
/// Sizes of requests, megabytes.
const BURSTS: [f64; 4] = [0.25, 0.5, 1.0, 1.5];

/// Settings that swap the classes of the preset.
const CLASSES: [&str; 4] = [
    "transport=powertcp-rdma",
    "background_priority=3",
    "incast_transport=cubic",
    "incast_priority=1",
];

/// Returns the plan of Fig. 11.
pub(crate) fn over_loads(config: &FabricConfig) -> FigurePlan {
    let label = |load: f64| format!("RDMA load {} %", 100.0 * load);
    let mut own = settings(&CLASSES);
    own.push(request(1.5));
    FigurePlan {
        sweep: Sweep {
            figure: "11",
            preset: PRESET,
            settings: own,
            series: policies(),
            points: points(&LOADS, label, "load", 100.0),
            x_label: "load of RDMA, %",
            seeds: config.seeds(),
            changes: Vec::new(),
        },
        panels: panels(["11a", "11b", "11c", "11d", "11e"], false),
        tail: Metric::IncastP99,
        method: format!(
            "{PRESET} the other way round: web search with PowerTCP in the lossless priority, in-cast of 1.5 MB \
             with CUBIC in the lossy one, {}. Axes of the paper: (a) 0 to 6 thousand rows of the log, \
             (b) 5 to 21, (c) 1 to 4, (d, e) 0 to 30 %.",
            in_words(config.seeds())
        ),
        claims: Box::new(claims_over_loads),
    }
}

/// Returns the plan of Fig. 12.
pub(crate) fn over_bursts(config: &FabricConfig) -> FigurePlan {
    let mut own = settings(&CLASSES);
    own.push("load=0.8".to_owned());
    FigurePlan {
        sweep: Sweep {
            figure: "12",
            preset: PRESET,
            settings: own,
            series: policies(),
            points: requests("TCP burst", &BURSTS),
            x_label: "burst of TCP, MB",
            seeds: config.seeds(),
            changes: Vec::new(),
        },
        panels: panels(["12a", "12b", "12c", "12d", "12e"], false),
        tail: Metric::IncastP99,
        method: format!(
            "As Fig. 11 at an RDMA load of 80 %, {}. The paper’s point at 0.25 MB is drawn from runs \
             with 12.5 KB by its script; ours is of 0.25 MB. Axes of the paper: (a) 0 to 6 thousand rows of \
             the log, (b) 0 to 16, (c) 1 to 4, (d, e) 0 to 30 %.",
            in_words(config.seeds())
        ),
        claims: Box::new(claims_over_bursts),
    }
}

const ALIKE: &str = "Short RDMA flows are similar with all policies.";
const SMALL: &str = "Lossless traffic takes a small part of the buffer with all policies.";

fn claims_over_loads(swept: &Swept) -> Vec<Claim> {
    use Metric::{IncastMean, Pauses, ShortP99};
    let all: Vec<&Point> = swept.sweep.points.iter().collect();
    let against =
        |panel, other: &str, metric, paper| against(swept, panel, other, &all, metric, paper);
    vec![
        against(
            "a",
            ABM,
            Pauses,
            (100.0, "Reverie has 100 % fewer pauses than ABM."),
        ),
        pauses_like_dt(swept, "Reverie and DT have similar numbers of pauses."),
        against(
            "b",
            DT,
            IncastMean,
            (
                33.7,
                "TCP in-cast is 33.7 % faster than with DT on average.",
            ),
        ),
        against(
            "b",
            ABM,
            IncastMean,
            (1.08, "It is 1.08 % faster than with ABM."),
        ),
        largest_against(
            swept,
            DT,
            (46.8, "TCP in-cast is up to 46.8 % faster than with DT."),
        )
        .remarked(ANYWHERE),
        largest_against(swept, ABM, (2.1, "It is up to 2.1 % faster than with ABM."))
            .remarked(ANYWHERE),
        all_alike(swept, "c", ShortP99, ALIKE),
        small_share(swept, SMALL),
    ]
}

fn claims_over_bursts(swept: &Swept) -> Vec<Claim> {
    use Metric::{IncastMean, Pauses, ShortP99};
    let all: Vec<&Point> = swept.sweep.points.iter().collect();
    let fewer = (
        100.0,
        "Reverie has 100 % fewer pauses than ABM over the bursts.",
    );
    vec![
        against(swept, "a", ABM, &all, Pauses, fewer),
        pauses_like_dt(swept, "Reverie and DT have similar numbers of pauses."),
        largest_against(
            swept,
            DT,
            (
                30.0,
                "TCP in-cast is up to 30 % faster than with DT for large bursts.",
            ),
        ),
        on_a_par(
            swept,
            "b",
            (REVERIE, ABM),
            &all,
            IncastMean,
            "TCP in-cast is as fast as with ABM.",
        ),
        all_alike(swept, "c", ShortP99, ALIKE),
        small_share(swept, SMALL),
    ]
}
