//! Learning curves of trainings.

use super::plot::{Curve, Plot, extent_y};
use super::{Figure, FigureError, style};
use crate::format;

/// One training.
#[derive(Clone, Debug, PartialEq)]
pub struct LearningCurve {
    /// Name in the legend.
    pub name: String,
    /// Numbers of decisions with the result of the validation then, relative to DT (α = 1).
    pub points: Vec<(f64, f64)>,
}

/// Results on the validation traces against decisions, one curve per training; `None` without points.
///
/// # Errors
/// When the drawing library refuses the figure.
pub fn learning(trainings: &[LearningCurve]) -> Result<Option<Figure>, FigureError> {
    let curves: Vec<Curve> = trainings
        .iter()
        .enumerate()
        .map(|(index, training)| {
            let points = training.points.iter().copied();
            Curve::new(&training.name, style::series(index), points)
        })
        .collect();
    let Some((least, most)) = extent_y(&curves) else {
        return Ok(None);
    };
    let decisions = trainings.iter().flat_map(|training| &training.points);
    let last = decisions.map(|point| point.0).fold(0.0, f64::max);
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
    let plot = Plot {
        name: "learning",
        title: "Learning curves",
        description,
        curves: &curves,
        x: 0.0..last.max(1.0),
        x_label: "decisions, thousands".to_owned(),
        x_tick: |decisions| format::tick(decisions / 1000.0),
        y: (least * 0.98).min(0.95)..(most * 1.02).max(1.02),
        y_label: "result / DT's",
        level: Some(1.0),
    };
    plot.draw().map(Some)
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
