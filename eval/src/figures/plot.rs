//! Plots of curves: legend, axes and lines.

use bufgym_util::convert::{lower_u32, whole_i32};
use plotters::coord::combinators::WithKeyPoints;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

use super::style::{self, Canvas, Drawn, Key, Stroke, WIDTH, text};
use super::{Figure, FigureError, draw};
use crate::format;

/// The height of the plot without its legend.
pub const HEIGHT: u32 = 300;

/// One line of a plot.
pub struct Curve {
    /// Its entry in the legend.
    pub key: Key,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

impl Curve {
    /// Builds a line with its name in the legend.
    pub fn new(name: &str, stroke: Stroke, points: impl IntoIterator<Item = (f64, f64)>) -> Curve {
        Curve {
            key: Key {
                name: name.to_owned(),
                stroke,
            },
            points: points.into_iter().collect(),
        }
    }
}

/// Returns the least and the greatest horizontal position of the curves; `None` without points.
pub fn extent_x(curves: &[Curve]) -> Option<(f64, f64)> {
    style::extent(curves.iter().flat_map(|curve| &curve.points).map(|p| p.0))
}

/// Returns the least and the greatest vertical position of the curves; `None` without points.
pub fn extent_y(curves: &[Curve]) -> Option<(f64, f64)> {
    style::extent(curves.iter().flat_map(|curve| &curve.points).map(|p| p.1))
}

/// Builds a logarithmic axis with ticks at 1, 2 and 5 in each decade, or only at the decades if there are
/// many. The library has ticks only at the decades, of which there is often just one.
pub fn logarithmic(least: f64, most: f64) -> WithKeyPoints<LogCoord<f64>> {
    let least = least.max(1e-6);
    let decades = (most / least).log10();
    let steps: &[f64] = if decades > 2.5 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let exponents = whole_i32(least.log10().floor())..=whole_i32(most.log10().ceil());
    let ticks = exponents.flat_map(|e| steps.iter().map(move |step| step * 10f64.powi(e)));
    let ticks: Vec<f64> = ticks.filter(|tick| (least..=most).contains(tick)).collect();
    (least..most).log_scale().with_key_points(ticks)
}

/// Returns percentiles in equal steps as the points of a distribution function.
pub fn distribution(percentiles: &[f64]) -> Vec<(f64, f64)> {
    let last = percentiles.len().saturating_sub(1).max(1) as f64;
    let ranked = percentiles.iter().enumerate();
    ranked.map(|(rank, v)| (*v, rank as f64 / last)).collect()
}

/// A figure of curves.
pub struct Plot<'a, X, Y> {
    /// See [`Figure::name`].
    pub name: &'a str,
    /// See [`Figure::title`].
    pub title: &'a str,
    /// See [`Figure::description`].
    pub description: String,
    /// The curves, the most important first. Earlier curves are drawn over later ones.
    pub curves: &'a [Curve],
    /// The horizontal range.
    pub x: X,
    /// The label of the horizontal axis.
    pub x_label: String,
    /// Formats a tick on the horizontal axis.
    pub x_tick: fn(f64) -> String,
    /// The vertical range.
    pub y: Y,
    /// The label of the vertical axis.
    pub y_label: &'static str,
    /// Height of a horizontal line.
    pub level: Option<f64>,
}

impl<X, Y> Plot<'_, X, Y>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    /// Draws the legend above the plot.
    ///
    /// # Errors
    /// Fails if the drawing library refuses the figure.
    pub fn draw(self) -> Result<Figure, FigureError> {
        Self::draw_together(vec![self])
    }

    /// Draws plots of the same curves as one figure, two in a row and one legend above them. The figure has name,
    /// title and description of the first.
    ///
    /// # Errors
    /// Fails if there is no plot, or if the drawing library refuses the figure.
    pub fn draw_together(mut plots: Vec<Self>) -> Result<Figure, FigureError> {
        let (rows, columns) = (plots.len().div_ceil(2), plots.len().min(2));
        let Some(first) = plots.first_mut() else {
            return Err(FigureError {
                name: String::new(),
                reason: "there is no plot".to_owned(),
            });
        };
        let description = std::mem::take(&mut first.description);
        let (name, title, curves) = (first.name, first.title, first.curves);
        let keys: Vec<Key> = curves.iter().map(|curve| curve.key.clone()).collect();
        let top = style::legend_height(&keys);
        let size = (
            WIDTH * lower_u32(columns as u64),
            HEIGHT * lower_u32(rows as u64) + top,
        );
        draw(name, size, title, description, |canvas| {
            style::legend(canvas, &keys)?;
            let (_, below) = canvas.split_vertically(top);
            let areas = below.split_evenly((rows, columns));
            let mut drawn = plots.into_iter().zip(&areas);
            drawn.try_for_each(|(plot, area)| plot.draw_on(area))
        })
    }

    fn draw_on(self, area: &Canvas) -> Drawn {
        let points = self.curves.iter().flat_map(|curve| curve.points.iter());
        // Numbers of five digits would overlap the label of the axis.
        let wide = points.map(|point| point.1).any(|value| value >= 10_000.0);
        let mut chart = ChartBuilder::on(area)
            .margin_right(14)
            .margin_top(6)
            .x_label_area_size(44)
            .y_label_area_size(if wide { 70 } else { 58 })
            .build_cartesian_2d(self.x, self.y)
            .map_err(text)?;
        let tick = |value: &f64| format::tick(*value);
        style::mesh(
            chart
                .configure_mesh()
                .x_desc(self.x_label)
                .y_desc(self.y_label)
                .x_labels(6)
                .y_labels(6)
                .x_label_formatter(&|value: &f64| (self.x_tick)(*value))
                .y_label_formatter(&tick),
        )?;
        if let Some(level) = self.level {
            let (left, right) = (chart.x_range().start, chart.x_range().end);
            let line = PathElement::new(vec![(left, level), (right, level)], style::INK.mix(0.6));
            chart.draw_series([line]).map_err(text)?;
        }
        for curve in self.curves.iter().rev() {
            let points = curve.points.iter().copied();
            let Stroke {
                colour,
                width,
                dash,
            } = curve.key.stroke;
            let style = colour.stroke_width(width);
            match dash {
                None => chart.draw_series(LineSeries::new(points, style)).map(drop),
                Some((on, off)) => chart
                    .draw_series(DashedLineSeries::new(points, on, off, style))
                    .map(drop),
            }
            .map_err(text)?;
        }
        Ok(())
    }
}
