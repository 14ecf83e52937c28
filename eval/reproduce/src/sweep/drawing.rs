//! The drawing of a panel: a curve for every series.

use bufgym_eval::figures::plot::{Curve, Plot, extent_x, extent_y, logarithmic};
use bufgym_eval::figures::style::{self, Stroke};
use bufgym_eval::figures::{Figure, FigureError};
use bufgym_eval::format;

use super::{Metric, Series, SweepResults};

/// Dash and gap of series that the paper does not have, pixels.
const ADDED: (i32, i32) = (6, 4);

impl SweepResults<'_> {
    /// Draws one metric over the points. `None` if nothing was run.
    ///
    /// # Errors
    /// Fails if the figure cannot be drawn.
    pub fn drawing(&self, name: &str, metric: Metric) -> Result<Option<Figure>, FigureError> {
        let series = self.sweep.series.iter().enumerate();
        let curves = series.map(|(place, series)| self.curve(place, series, metric));
        let curves: Vec<Curve> = curves.filter(|curve| !curve.points.is_empty()).collect();
        let Some(((left, right), (least, most))) = extent_x(&curves).zip(extent_y(&curves)) else {
            return Ok(None);
        };
        let margin = if left < right {
            0.04 * (right - left)
        } else {
            1.0
        };
        let x = left - margin..right + margin;
        let title = metric.name();
        // The types of a linear and of a logarithmic range differ.
        macro_rules! drawn {
            ($y:expr) => {
                Plot {
                    name,
                    title,
                    description: format!("Median over the seeds of the {title}."),
                    curves: &curves,
                    x,
                    x_label: self.sweep.x_label.to_owned(),
                    x_tick: format::tick,
                    y: $y,
                    y_label: title,
                    level: None,
                }
                .draw()
            };
        }
        let drawn = match metric.is_logarithmic() && least > 0.0 {
            true => drawn!(logarithmic(0.8 * least, 1.25 * most)),
            false => drawn!(0.0..(1.08 * most).max(1.0)),
        };
        drawn.map(Some)
    }

    fn curve(&self, place: usize, series: &Series, metric: Metric) -> Curve {
        let points = self.sweep.points.iter();
        let points = points.filter_map(|point| {
            let value = self.value(&series.name, point, metric)?;
            Some((point.place, value.median))
        });
        let points: Vec<(f64, f64)> = points.collect();
        let name = match series.added {
            true => format!("{} (added)", series.name),
            false => series.name.clone(),
        };
        Curve::new(&name, stroke(place, series.added), points)
    }
}

/// Returns the colours in turn; beyond four series the next four are thinner and dashed.
pub(crate) fn stroke(place: usize, added: bool) -> Stroke {
    let mut stroke = style::series(place);
    if place >= 4 {
        stroke.dash = Some((2 + 2 * i32::try_from(place / 4).unwrap_or(1), 3));
    }
    if added {
        stroke.dash = Some(ADDED);
        stroke.width = 1;
    }
    stroke
}
