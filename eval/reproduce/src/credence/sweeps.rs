//! Tables and drawings of the commands `credence sweep` and `slotted --sweep`: Fig. 15 over the number of trees, and
//! Fig. 10 and 14 over false predictions, in a setting of one's own.

use std::path::Path;

use bufgym_credence::Scores;
use bufgym_credence::sweep::{FLIPS, FlipPoint, TreesPoint};
use bufgym_eval::OutputError;
use bufgym_eval::figures::axis::Ticked;
use bufgym_eval::figures::plot::{Curve, Plot, extent_y, logarithmic};
use bufgym_eval::figures::{Figure, FigureError};
use bufgym_eval::format;
use bufgym_eval::output;
use bufgym_slotted::Switch;
use bufgym_slotted::sweep::Figure14;
use bufgym_util::convert::floor_usize;

use super::slotted;
use crate::report::Table;
use crate::sweep::stroke;

/// A quantity of a point.
type Value<T, N> = fn(&T) -> N;

/// Table and drawing of a sweep.
pub struct SweepFigure {
    table: Table,
    drawing: Figure,
    /// The columns for a terminal, with their decimals.
    shown: &'static [(&'static str, usize)],
}

impl SweepFigure {
    /// Returns the name of the figure, which its files have too.
    pub fn name(&self) -> &str {
        &self.table.name
    }

    /// Returns the most important columns as text.
    pub fn text(&self) -> String {
        self.table.text(self.shown)
    }

    /// Writes the table, the drawing and the text of the JSON file into a folder.
    ///
    /// # Errors
    /// Fails if a file exists or cannot be written.
    pub fn write_into(&self, folder: &Path, json: String) -> Result<(), OutputError> {
        let file = |extension: &str| format!("{}.{extension}", self.name());
        let files = [
            (file("csv"), self.table.csv()?),
            (file("json"), json.into_bytes()),
            (file("svg"), self.drawing.standalone().into_bytes()),
        ];
        output::fill(folder, &files)
    }
}

/// Shows scores over the number of trees.
///
/// # Errors
/// Fails if the drawing library refuses the figure.
pub fn trees(points: &[TreesPoint]) -> Result<SweepFigure, FigureError> {
    let scores: [(&'static str, &str, Value<Scores, f64>); 5] = [
        ("accuracy", "accuracy", |scores| scores.accuracy),
        ("precision", "precision", |scores| scores.precision),
        ("recall", "recall", |scores| scores.recall),
        ("f1", "F1", |scores| scores.f1),
        ("error_score", "1/η", |scores| {
            scores.error_score.unwrap_or(f64::NAN)
        }),
    ];
    let counts: [(&'static str, Value<Scores, u64>); 4] = [
        ("true_positives", |scores| scores.true_positives),
        ("false_positives", |scores| scores.false_positives),
        ("true_negatives", |scores| scores.true_negatives),
        ("false_negatives", |scores| scores.false_negatives),
    ];
    let mut rows = Table::of("trees", points)
        .text("trees", |point| point.trees.to_string())
        .text("threshold", |point| point.threshold.to_string());
    let mut curves = Vec::new();
    for (column, name, score) in scores {
        rows = rows.text(column, |point| score(&point.scores).to_string());
        let scores = points
            .iter()
            .map(|point| (f64::from(point.trees), score(&point.scores)));
        let finite = scores.filter(|(_, score)| score.is_finite());
        curves.push(Curve::new(name, stroke(curves.len(), false), finite));
    }
    for (column, count) in counts {
        rows = rows.text(column, |point| count(&point.scores).to_string());
    }
    let most = points.last().map_or(1, |point| point.trees);
    let plot = Plot {
        name: "trees",
        title: "Scores over the number of trees",
        description: "Scores of the forest on traces that it has not learned from; 1 is perfect."
            .to_owned(),
        curves: &curves,
        x: logarithmic(0.9, 1.1 * f64::from(most)),
        x_label: "trees".to_owned(),
        x_tick: format::tick,
        y: 0.0..1.05,
        y_label: "score",
        level: None,
    };
    Ok(SweepFigure {
        table: rows.table(),
        drawing: plot.draw()?,
        shown: &[
            ("trees", 0),
            ("accuracy", 4),
            ("precision", 4),
            ("recall", 4),
            ("f1", 4),
            ("error_score", 4),
        ],
    })
}

/// Shows completion times over the probabilities [`FLIPS`] of an inverted prediction.
///
/// # Errors
/// Fails if the drawing library refuses the figure.
pub fn flips(points: &[FlipPoint]) -> Result<SweepFigure, FigureError> {
    let metrics: [(&'static str, &'static str, Value<FlipPoint, f64>); 7] = [
        ("mean_fct_ms", "mean FCT, ms", |point| point.mean_fct_ms),
        ("p99_fct_ms", "", |point| point.p99_fct_ms),
        ("short_p99_fct_ms", "p99 FCT of short flows, ms", |point| {
            point.short_p99_fct_ms
        }),
        (
            "incast_p99_fct_ms",
            "p99 FCT of in-cast flows, ms",
            |point| point.incast_p99_fct_ms,
        ),
        ("long_mean_fct_ms", "mean FCT of long flows, ms", |point| {
            point.long_mean_fct_ms
        }),
        ("p99_occupancy", "", |point| point.p99_occupancy),
        ("drops", "", |point| point.drops),
    ];
    let flip = |point: &FlipPoint| point.flip.map(|flip| flip.to_string());
    let mut rows = Table::of("flips", points)
        .text("policy", |point| point.policy.clone())
        .text("flip", |point| flip(point).unwrap_or_default());
    for (column, _, value) in metrics {
        rows = rows.text(column, |point| value(point).to_string());
    }
    let drawn = metrics
        .into_iter()
        .filter(|(_, label, _)| !label.is_empty());
    let panels: Vec<(&'static str, Vec<Curve>)> = drawn
        .map(|(_, label, value)| (label, curves_over_flips(points, value)))
        .collect();
    let last = FLIPS.len() as f64 - 1.0;
    let places = || FLIPS.iter().enumerate().map(|(place, _)| place as f64);
    let plots = panels.iter().map(|(y_label, curves)| {
        let (_, most) = extent_y(curves).unwrap_or((0.0, 1.0));
        Plot {
            name: "flips",
            title: "Completion times over the probability of a flipped prediction",
            description: "Completion times of Credence, with LQD and DT beside it.".to_owned(),
            curves,
            x: Ticked::new(-0.2..last + 0.2, places().collect()),
            x_label: "probability of a flipped prediction".to_owned(),
            x_tick: |place| {
                let flip = FLIPS.get(floor_usize(place.round()));
                flip.map_or_else(String::new, f64::to_string)
            },
            y: 0.0..1.08 * most,
            y_label,
            level: None,
        }
    });
    Ok(SweepFigure {
        drawing: Plot::draw_together(plots.collect())?,
        table: rows.table(),
        shown: &[
            ("policy", 0),
            ("flip", 3),
            ("mean_fct_ms", 3),
            ("short_p99_fct_ms", 2),
            ("incast_p99_fct_ms", 2),
            ("long_mean_fct_ms", 2),
            ("p99_occupancy", 3),
            ("drops", 0),
        ],
    })
}

/// Returns a curve for Credence, and a level for every other policy.
fn curves_over_flips(points: &[FlipPoint], value: Value<FlipPoint, f64>) -> Vec<Curve> {
    let (credence, others): (Vec<&FlipPoint>, Vec<&FlipPoint>) =
        points.iter().partition(|point| point.flip.is_some());
    let finite = |points: Vec<(f64, f64)>| points.into_iter().filter(|(_, y)| y.is_finite());
    let own = credence.iter().zip(0_u32..);
    let own = own.map(|(point, place)| (f64::from(place), value(point)));
    let mut curves = vec![Curve::new(
        "credence",
        stroke(0, false),
        finite(own.collect()),
    )];
    let last = FLIPS.len() as f64 - 1.0;
    for point in others {
        let level = vec![(0.0, value(point)), (last, value(point))];
        let stroke = stroke(curves.len(), false);
        curves.push(Curve::new(&point.policy, stroke, finite(level)));
    }
    curves
}

/// Shows LQD's throughput over that of other policies in the slotted model.
///
/// # Errors
/// Fails if the drawing library refuses the figure.
pub fn fig14(switch: &Switch, result: &Figure14) -> Result<SweepFigure, FigureError> {
    let table = Table::of("fig14", &result.credence)
        .text("flip", |point| point.flip.to_string())
        .text("credence", |point| point.ratio.to_string())
        .text("dt", |_| result.dt.to_string())
        .text("cs", |_| result.cs.to_string())
        .text("harmonic", |_| result.harmonic.to_string())
        .text("eta", |point| point.eta.to_string())
        .table();
    let setting = format!(
        "{} ports, a buffer of {} packets",
        switch.ports, switch.buffer
    );
    let added = [("CS", result.cs), ("Harmonic", result.harmonic)];
    Ok(SweepFigure {
        drawing: slotted::drawing(result, slotted::described(&setting), &added)?,
        table,
        shown: &[("flip", 2), ("credence", 3), ("eta", 3)],
    })
}
