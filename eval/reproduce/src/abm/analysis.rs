//! Fig. 4: the buffer that Dynamic Threshold leaves free, and its thresholds, in the steady state (Eq. 6).

use bufgym_eval::figures::plot::{Curve, Plot};
use bufgym_eval::figures::{Figure, style};
use bufgym_eval::format;
use bufgym_eval::stats::Estimate;

use crate::claim::{Claim, Kind};
use crate::fabric::FabricConfig;
use crate::report::{Panel, Table};
use crate::runs::PapersError;
use crate::verdict::ascending;

/// Control factors of best-effort queues and of the loss-sensitive queue.
const BEST_EFFORT: f64 = 0.5;
const LOSS_SENSITIVE: f64 = 1.0;
/// Largest number of congested best-effort queues.
const MOST: u32 = 32;

/// Returns the free buffer, the threshold of the loss-sensitive queue and the threshold of a best-effort
/// queue, as shares of the buffer, with one congested loss-sensitive queue and `queues` congested best-effort
/// queues.
fn steady(queues: u32) -> [f64; 3] {
    let free = 1.0 / (1.0 + LOSS_SENSITIVE + f64::from(queues) * BEST_EFFORT);
    [free, LOSS_SENSITIVE * free, BEST_EFFORT * free]
}

/// Makes the figure.
///
/// # Errors
/// Fails if the figure cannot be drawn.
pub fn figure(_: &FabricConfig) -> Result<Vec<(Panel, Vec<Claim>)>, PapersError> {
    let columns = [
        "congested_best_effort_queues",
        "free_buffer",
        "threshold_loss_sensitive",
        "threshold_best_effort",
    ];
    let mut table = Table::new("fig4", &columns);
    for queues in 0..=MOST {
        let cells = steady(queues).map(|share| share.to_string());
        table.push([vec![queues.to_string()], cells.to_vec()].concat());
    }
    let panel = Panel {
        id: "4",
        title: "free buffer and thresholds of Dynamic Threshold",
        method: format!(
            "Eq. 6: one congested loss-sensitive queue with α {LOSS_SENSITIVE}, and best-effort queues \
             with α {BEST_EFFORT}. The paper gives neither α nor numbers of queues."
        ),
        tables: vec![table],
        drawings: vec![
            drawing(
                "fig4-free",
                "Free buffer",
                "free, share of the buffer",
                &[("free buffer", 0)],
            )?,
            drawing(
                "fig4-thresholds",
                "Thresholds",
                "threshold, share of the buffer",
                &[("loss-sensitive queue", 1), ("best-effort queue", 2)],
            )?,
        ],
    };
    let claims = vec![
        tends_to_zero(
            "free buffer",
            0,
            "What Dynamic Threshold leaves free tends to zero with the number of congested queues.",
        ),
        tends_to_zero(
            "loss-sensitive queue",
            1,
            "So does the threshold of a loss-sensitive queue, although its α is higher.",
        ),
    ];
    Ok(vec![(panel, claims)])
}

fn drawing(
    name: &'static str,
    title: &'static str,
    y_label: &'static str,
    series: &[(&str, usize)],
) -> Result<Figure, PapersError> {
    let curve = |(place, (name, of)): (usize, &(&str, usize))| {
        let points = (0..=MOST).map(|queues| (f64::from(queues), steady(queues)[*of]));
        Curve::new(name, style::series(place), points)
    };
    let curves: Vec<Curve> = series.iter().enumerate().map(curve).collect();
    let plot = Plot {
        name,
        title,
        description: "In the steady state, over the congested best-effort queues.".to_owned(),
        curves: &curves,
        x: 0.0..f64::from(MOST),
        x_label: "congested best-effort queues".to_owned(),
        x_tick: format::tick,
        y: 0.0..0.55,
        y_label,
        level: None,
    };
    Ok(plot.draw()?)
}

/// Claims that a quantity falls with every queue, to less than a fifth over the range of the figure.
fn tends_to_zero(series: &str, of: usize, statement: &'static str) -> Claim {
    let values = (0..=MOST).rev().map(|queues| Some(steady(queues)[of]));
    let falls = ascending(&values.collect::<Vec<_>>());
    let (first, last) = (steady(0)[of], steady(MOST)[of]);
    let claim = Claim::order(
        ("4", ""),
        series,
        "share of the buffer with 32 congested best-effort queues",
        statement,
        "falls towards 0",
    );
    Claim {
        kind: Kind::Order,
        ..claim
    }
    .measured(Some(Estimate::exact(last)))
    .ranked(falls.map(|falls| falls && last < 0.2 * first))
    .remarked("Follows from Eq. 6; the number of queues is ours.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_buffer_is_free_or_in_queues_at_their_thresholds() {
        for queues in [0, 1, 7, 32] {
            let [free, sensitive, best_effort] = steady(queues);
            let sum = free + sensitive + f64::from(queues) * best_effort;
            assert!((sum - 1.0).abs() < 1e-12, "{queues}");
        }
    }
}
