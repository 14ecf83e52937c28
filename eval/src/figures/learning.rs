//! How policies became better in training.

use super::curves::{Axes, Curve, plot};
use super::style::{self, Key};
use super::{Figure, FigureError};
use crate::format;

/// One training.
#[derive(Clone, Debug, PartialEq)]
pub struct LearningCurve {
    /// What the legend calls it.
    pub name: String,
    /// Decisions, and the result of the validation there relative to DT (α = 1).
    pub points: Vec<(f64, f64)>,
}

/// Results on the validation traces against decisions, a curve per training; `None` without a
/// point.
///
/// # Errors
/// When the drawing library refuses the figure.
pub fn learning(trainings: &[LearningCurve]) -> Result<Option<Figure>, FigureError> {
    let points = || trainings.iter().flat_map(|training| &training.points);
    let results = style::extent(points().map(|point| point.1));
    let last = points().map(|point| point.0).fold(0.0, f64::max);
    let Some((least, most)) = results else {
        return Ok(None);
    };
    let curves: Vec<Curve> = trainings
        .iter()
        .enumerate()
        .map(|(index, training)| Curve {
            key: Key {
                name: training.name.clone(),
                stroke: style::series(index),
            },
            points: training.points.clone(),
        })
        .collect();
    let ends = trainings.iter().filter_map(|training| {
        let (_, result) = training.points.last()?;
        Some(format!(
            "{} {}",
            training.name,
            format::significant(*result)
        ))
    });
    let description = format!(
        "Results on the validation traces relative to DT (α = 1), lower is better, against the \
         decisions of the training. At the end: {}.",
        ends.collect::<Vec<_>>().join(", "),
    );
    let axes = Axes {
        x: "decisions, thousands".to_owned(),
        y: "result / DT's",
        x_tick: |decisions| format::tick(decisions / 1000.0),
    };
    plot(
        "learning",
        "Learning curves",
        description,
        &curves,
        0.0..last.max(1.0),
        (least * 0.98).min(0.95)..(most * 1.02).max(1.02),
        axes,
        Some(1.0),
    )
    .map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_training_has_a_curve_and_an_end() {
        let training = |name: &str, end: f64| LearningCurve {
            name: name.to_owned(),
            points: vec![(25_000.0, 0.9), (50_000.0, end)],
        };
        let figure = learning(&[training("first", 0.8), training("second", 0.75)]);
        let figure = figure.unwrap().unwrap();
        assert!(
            figure.description.contains("first 0.800, second 0.750"),
            "{}",
            figure.description
        );
        assert!(figure.standalone().contains("second"));
        assert!(learning(&[]).unwrap().is_none());
    }
}
