//! Learning curves of trainings.

use std::ops::Range;

use super::plot::{Curve, Plot, extent_y};
use super::{Figure, FigureError, style};
use crate::format;

/// Largest number on the horizontal axis.
const MAX_EFFORT: f64 = 1e15;
/// Largest result on the vertical axis.
const MAX_RESULT: f64 = 1e9;

/// One training.
#[derive(Clone, Debug, PartialEq)]
pub struct LearningCurve {
    /// Name in the legend.
    pub name: String,
    /// Numbers of decisions or simulations, each with the validation result at that time, relative to DT (α = 1).
    pub points: Vec<(f64, f64)>,
}

/// Draws results on the validation traces, one curve per training, against what `effort` names, such as
/// "decisions"; `None` without points.
///
/// # Errors
/// Fails if the drawing library refuses the figure.
pub fn learning(trainings: &[LearningCurve], effort: &str) -> Result<Option<Figure>, FigureError> {
    let curves: Vec<Curve> = trainings
        .iter()
        .enumerate()
        .map(|(index, training)| {
            let points = training.points.iter().filter_map(drawable);
            Curve::new(&training.name, style::series(index), points)
        })
        .collect();
    let Some((least, most)) = extent_y(&curves) else {
        return Ok(None);
    };
    let places = curves.iter().flat_map(|curve| &curve.points);
    let last = places.map(|point| point.0).fold(0.0, f64::max);
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
         {} of the training. At the end: {}.",
        effort,
        ends.collect::<Vec<_>>().join(", "),
    );
    let (y, level) = vertical(least, most);
    let plot = Plot {
        name: "learning",
        title: "Learning curves",
        description,
        curves: &curves,
        x: 0.0..last.max(1.0),
        x_label: format!("{effort}, thousands"),
        x_tick: |count| format::tick(count / 1000.0),
        y,
        y_label: "result / DT's",
        level,
    };
    plot.draw().map(Some)
}

/// Returns the vertical range, and DT's line if it is close: with a distant line, curves far below it would
/// be flat.
fn vertical(least: f64, most: f64) -> (Range<f64>, Option<f64>) {
    if most > 0.9 {
        return ((least * 0.98).min(0.95)..(most * 1.02).max(1.02), Some(1.0));
    }
    let margin = (0.02 * most.abs()).max(0.025 - 0.5 * (most - least));
    (least - margin..most + margin, None)
}

/// Limits the point to the range that an axis can show; `None` if it has no position at all. The drawing
/// library would count ticks over a range of any size.
fn drawable(&(decisions, result): &(f64, f64)) -> Option<(f64, f64)> {
    let finite = decisions.is_finite() && result.is_finite();
    let place = (
        decisions.clamp(0.0, MAX_EFFORT),
        result.clamp(-MAX_RESULT, MAX_RESULT),
    );
    finite.then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_is_drawn_or_left_out() {
        let values = [
            1e308,
            -1e308,
            5e-324,
            0.0,
            -0.0,
            1.0,
            f64::NAN,
            f64::INFINITY,
        ];
        for end in values {
            for other in values {
                for decisions in values {
                    let training = LearningCurve {
                        name: "odd".to_owned(),
                        points: vec![(1.0, other), (decisions, end), (decisions, end)],
                    };
                    let figure = learning(&[training], "decisions").unwrap();
                    let drawn = other.is_finite() || end.is_finite() && decisions.is_finite();
                    assert_eq!(figure.is_some(), drawn, "{other} {decisions} {end}");
                    let length = figure.map_or(0, |figure| figure.standalone().len());
                    assert!(length < 100_000, "{other} {decisions} {end}: {length}");
                }
            }
        }
    }

    #[test]
    fn curves_far_below_dt_fill_the_figure() {
        let (range, level) = vertical(0.536, 0.542);
        assert!(range.start > 0.5 && range.end < 0.58 && level.is_none());
        assert!(range.end - range.start > 0.02);
        let (range, level) = vertical(0.7, 0.95);
        assert!(range.contains(&0.7) && range.contains(&1.0) && level == Some(1.0));
    }

    #[test]
    fn every_training_has_a_curve_and_an_end() {
        let training = |name: &str, end: f64| LearningCurve {
            name: name.to_owned(),
            points: vec![(25_000.0, 0.9), (50_000.0, end)],
        };
        let figure = learning(
            &[training("first", 0.8), training("second", 0.75)],
            "decisions",
        );
        let figure = figure.unwrap().unwrap();
        assert!(
            figure.description.contains("first 0.800, second 0.750"),
            "{}",
            figure.description
        );
        assert!(figure.standalone().contains("second"));
        assert!(learning(&[], "decisions").unwrap().is_none());
    }
}
