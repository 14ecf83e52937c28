//! Fig. 7 to 9: web search with TCP (CUBIC), in-cast with RDMA (DCQCN); over load, over the size of requests,
//! over the pool of lossy packets.

use super::claims::{
    ANYWHERE, Trend, against, below, constant, grows_less, largest_against, trend,
};
use super::{ABM, DT, PRESET, REVERIE, panels, policies, request, requests, settings};
use crate::claim::Claim;
use crate::fabric::{FabricConfig, FigurePlan, in_words, points};
use crate::sweep::{Metric, Point, Sweep, Swept, on_a_par};

const LOADS: [f64; 4] = [0.2, 0.4, 0.6, 0.8];
/// Sizes of requests, megabytes.
const BURSTS: [f64; 4] = [0.5, 1.0, 1.5, 2.0];

/// The preset's own setting, repeated here for variants that change it.
const CLASS: &str = "transport=cubic";

/// Returns the plan of Fig. 7.
pub(crate) fn over_loads(config: &FabricConfig) -> FigurePlan {
    let label = |load: f64| format!("TCP load {} %", 100.0 * load);
    FigurePlan {
        sweep: Sweep {
            figure: "7",
            preset: PRESET,
            settings: settings(&[CLASS, &request(2.0)]),
            series: policies(),
            points: points(&LOADS, label, "load", 100.0),
            x_label: "load of TCP, %",
            seeds: config.seeds(),
            changes: Vec::new(),
        },
        panels: panels(["7a", "7b", "7c", "7d", "7e"], false),
        tail: Metric::IncastP99,
        method: format!(
            "{PRESET}: web search with CUBIC in the lossy priority, in-cast of 2 MB with DCQCN in the lossless \
             one, {}. Axes of the paper: (a) 0 to 25 thousand rows of the log, (b) 10 to 25, (c) 5 \
             to 50, (d, e) 0 to 50 %.",
            in_words(config.seeds())
        ),
        claims: Box::new(claims_over_loads),
    }
}

/// Returns the plan of Fig. 8.
pub(crate) fn over_bursts(config: &FabricConfig) -> FigurePlan {
    FigurePlan {
        sweep: Sweep {
            figure: "8",
            preset: PRESET,
            settings: settings(&[CLASS, "load=0.8"]),
            series: policies(),
            points: requests("RDMA burst", &BURSTS),
            x_label: "burst of RDMA, MB",
            seeds: config.seeds(),
            changes: Vec::new(),
        },
        panels: panels(["8a", "8b", "8c", "8d", "8e"], false),
        tail: Metric::IncastP99,
        method: format!(
            "As Fig. 7 at a TCP load of 80 %, {}. Axes of the paper: (a) 0 to 25 thousand rows of the \
             log, (b) 5 to 21, (c) 5 to 60, (d, e) 0 to 50 %.",
            in_words(config.seeds())
        ),
        claims: Box::new(claims_over_bursts),
    }
}

/// Returns the plan of Fig. 9.
pub(crate) fn over_pools(config: &FabricConfig) -> FigurePlan {
    let label = |share: f64| format!("lossy pool {} %", 100.0 * share);
    FigurePlan {
        sweep: Sweep {
            figure: "9",
            preset: PRESET,
            settings: settings(&[CLASS, "load=0.8", &request(2.0)]),
            series: policies(),
            points: points(&[0.2, 0.4, 0.6, 0.8], label, "lossy_pool_share", 100.0),
            x_label: "pool of lossy packets, % of the ingress pool",
            seeds: config.seeds(),
            changes: Vec::new(),
        },
        panels: panels(["9a", "9b", "9c", "9d", "9e"], true),
        tail: Metric::IncastP99,
        method: format!(
            "As Fig. 7 at a TCP load of 80 %, {}. What panels (b) and (d) show is inferred. Axes of \
             the paper: (a) 0 to 25 thousand rows of the log, (b) 10 to 25, (d, e) 0 to 50 %.",
            in_words(config.seeds())
        ),
        claims: Box::new(claims_over_pools),
    }
}

fn claims_over_loads(swept: &Swept) -> Vec<Claim> {
    use Metric::{IncastMean, LosslessP99, LossyP99, Pauses, ShortP99};
    let all: Vec<&Point> = swept.sweep.points.iter().collect();
    let first = &all[..1];
    let against = |panel, other: &str, at: &[&Point], metric, paper| {
        against(swept, panel, other, at, metric, paper)
    };
    let trend = |panel, series: &str, metric, of| trend(swept, panel, series, metric, of);
    vec![
        against(
            "a",
            DT,
            &all,
            Pauses,
            (
                60.0,
                "Reverie has 60 % fewer pauses than DT on average over the loads.",
            ),
        ),
        against(
            "a",
            ABM,
            &all,
            Pauses,
            (71.2, "It has 71.2 % fewer than ABM."),
        ),
        against(
            "a",
            DT,
            first,
            Pauses,
            (58.9, "Even at 20 % load it has 58.9 % fewer than DT."),
        ),
        against(
            "a",
            ABM,
            first,
            Pauses,
            (87.9, "At 20 % load it has 87.9 % fewer than ABM."),
        ),
        against(
            "b",
            DT,
            &all,
            IncastMean,
            (
                18.5,
                "RDMA in-cast is 18.5 % faster than with DT on average.",
            ),
        ),
        against(
            "b",
            ABM,
            &all,
            IncastMean,
            (18.2, "It is 18.2 % faster than with ABM."),
        ),
        largest_against(
            swept,
            DT,
            (33.3, "RDMA in-cast is up to 33.3 % faster than with DT."),
        )
        .remarked(ANYWHERE),
        largest_against(
            swept,
            ABM,
            (50.4, "It is up to 50.4 % faster than with ABM."),
        )
        .remarked(ANYWHERE),
        against(
            "c",
            DT,
            &all,
            ShortP99,
            (
                42.7,
                "Short TCP flows are 42.7 % faster than with DT on average.",
            ),
        ),
        on_a_par(
            swept,
            "c",
            (REVERIE, ABM),
            &all,
            ShortP99,
            "For short TCP flows Reverie is on a par with ABM.",
        ),
        trend(
            "d",
            DT,
            LosslessP99,
            (
                Trend::Falls,
                "DT gives lossless traffic less as the load of TCP grows.",
            ),
        ),
        trend(
            "d",
            REVERIE,
            LosslessP99,
            (
                Trend::Holds,
                "Reverie gives lossless traffic its share at high loads too.",
            ),
        ),
        trend(
            "e",
            DT,
            LossyP99,
            (Trend::Rises, "DT gives TCP more as its load grows."),
        ),
    ]
}

fn claims_over_bursts(swept: &Swept) -> Vec<Claim> {
    use Metric::{IncastMean, LosslessP99, LossyP99, Pauses, ShortP99};
    let all: Vec<&Point> = swept.sweep.points.iter().collect();
    let against =
        |panel, other: &str, metric, paper| against(swept, panel, other, &all, metric, paper);
    vec![
        against(
            "a",
            DT,
            Pauses,
            (
                61.8,
                "Reverie has 61.8 % fewer pauses than DT on average over the bursts.",
            ),
        ),
        against("a", ABM, Pauses, (57.4, "It has 57.4 % fewer than ABM.")),
        against(
            "b",
            DT,
            IncastMean,
            (10.0, "RDMA in-cast is 10 % faster than with DT on average."),
        ),
        against(
            "b",
            ABM,
            IncastMean,
            (17.0, "It is 17 % faster than with ABM."),
        ),
        on_a_par(
            swept,
            "c",
            (REVERIE, ABM),
            &all,
            ShortP99,
            "Short TCP flows are as fast as with ABM.",
        ),
        below(
            swept,
            "c",
            (REVERIE, DT),
            ShortP99,
            ("Reverie < DT", "DT severely penalises short TCP flows."),
        ),
        trend(
            swept,
            "d",
            REVERIE,
            LosslessP99,
            (
                Trend::Rises,
                "Reverie gives RDMA more buffer as its bursts grow.",
            ),
        ),
        grows_less(
            swept,
            "d",
            DT,
            LosslessP99,
            "DT fails to give RDMA more buffer as its bursts grow.",
        ),
        grows_less(
            swept,
            "d",
            ABM,
            LosslessP99,
            "ABM fails to give RDMA more buffer as its bursts grow.",
        ),
        below(
            swept,
            "e",
            (REVERIE, DT),
            LossyP99,
            ("Reverie < DT", "DT gives more buffer to TCP than Reverie."),
        ),
    ]
}

fn claims_over_pools(swept: &Swept) -> Vec<Claim> {
    use Metric::{IncastMean, LongMean, LossyP99, Pauses};
    let mut claims = Vec::new();
    for (panel, metric, of, statement) in [
        (
            "a",
            Pauses,
            Trend::Rises,
            "A smaller lossy pool means fewer pauses.",
        ),
        (
            "b",
            IncastMean,
            Trend::Rises,
            "A smaller lossy pool means faster RDMA in-cast.",
        ),
        (
            "c",
            LongMean,
            Trend::Falls,
            "A smaller lossy pool means slower long TCP flows.",
        ),
        (
            "e",
            LossyP99,
            Trend::Rises,
            "A smaller lossy pool means less buffer for TCP.",
        ),
    ] {
        for policy in [DT, ABM] {
            claims.push(trend(swept, panel, policy, metric, (of, statement)));
        }
    }
    let statement = "Reverie has no such pool and does not depend on its size.";
    claims.push(constant(swept, "a", statement));
    claims
}
