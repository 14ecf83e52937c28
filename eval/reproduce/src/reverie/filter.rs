//! Fig. 10: the parameter γ of Reverie's filter.

use bufgym_eval::stats::Spread;

use super::{PRESET, REVERIE};
use crate::claim::{Claim, Target};
use crate::fabric::{FabricConfig, FigurePlan, PanelPlan, in_words};
use crate::rules::{Trend, trend, trend_up_to};
use crate::sweep::{Metric, Point, Series, Sweep, SweepResults};

const GAMMAS: [f64; 5] = [0.8, 0.9, 0.99, 0.999, 0.999_999];

/// Returns the plan of the figure.
pub fn plan(config: &FabricConfig) -> FigurePlan {
    let policy = |point: &Point| (Vec::new(), format!("reverie:gamma={}", point.x));
    FigurePlan {
        sweep: Sweep {
            figure: "10",
            preset: PRESET,
            settings: [
                "transport=dcqcn:preset=reverie",
                "background_priority=3",
                "load=0.8",
                "query_share=0.78125",
            ]
            .map(str::to_owned)
            .to_vec(),
            series: vec![Series::made(REVERIE, policy)],
            points: GAMMAS.iter().map(|gamma| point(*gamma)).collect(),
            x_label: "γ: 0.8, 0.9, 0.99, 0.999, 0.999999, at −log₁₀(1 − γ)",
            seeds: config.seeds(),
            changes: Vec::new(),
        },
        panels: [
            ("10a", "pauses over γ", Metric::Pauses),
            ("10b", "in-cast flows over γ", Metric::IncastMean),
        ]
        .map(|(id, title, metric)| PanelPlan { id, title, metric })
        .to_vec(),
        tail: Metric::IncastP99,
        method: format!(
            "{PRESET} without TCP: web search at 80 % load and in-cast of 2 MB, both with DCQCN in the lossless \
             priority, {}. The filter has real numbers; with rules=ns3 it has whole bytes, as in the \
             published code.",
            in_words(config.seeds())
        ),
        claims: Box::new(claims),
    }
}

/// Returns the point of a γ, drawn by the decades of 1 - γ, the share that the filter forgets with every
/// departure.
fn point(gamma: f64) -> Point {
    let place = -(1.0 - gamma).log10();
    Point::new(gamma, format!("γ = {gamma}"), &[]).drawn_at(place)
}

fn claims(swept: &SweepResults) -> Vec<Claim> {
    let fewer = (Trend::NeverRises, "Pauses become far fewer as γ grows.");
    let faster = (
        Trend::NeverRises,
        "In-cast becomes faster as γ grows up to 0.999.",
    );
    let up_to = GAMMAS.len() - 1;
    vec![
        trend(swept, ("10", "a"), REVERIE, Metric::Pauses, fewer),
        trend_up_to(
            swept,
            ("10", "b"),
            REVERIE,
            Metric::IncastMean,
            up_to,
            faster,
        ),
        slower(swept),
    ]
}

/// Claims that in-cast is slower at the last γ than at the previous one.
fn slower(swept: &SweepResults) -> Claim {
    let [.., before, last] = swept.sweep.points.as_slice() else {
        unreachable!("there are five points")
    };
    let at = |point| swept.values(REVERIE, point, Metric::IncastMean);
    let by_seed = at(before).zip(at(last)).map(|(before, last)| {
        let pairs = before.iter().zip(&last);
        pairs
            .map(|(before, last)| 100.0 * (last / before - 1.0))
            .collect::<Vec<f64>>()
    });
    let ours = by_seed.and_then(Spread::of);
    Claim::number(
        ("10", "b"),
        REVERIE,
        "increase of the mean slowdown of in-cast flows from γ = 0.999, %",
        "With γ = 0.999999 in-cast is 9 % slower.",
        Target::Reduction(9.0),
    )
    .at(last.label.clone())
    .measured(ours)
    .ranked(ours.map(|ours| ours.median > 1.0))
    .not_run(swept.refusal(REVERIE).filter(|_| ours.is_none()))
}
