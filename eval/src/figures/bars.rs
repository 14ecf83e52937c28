//! Bars with intervals, one per policy.

use plotters::prelude::*;

use super::axis::Ticked;
use super::plot::HEIGHT;
use super::style::{self, Canvas, Drawn, Key, Stroke, WIDTH, text};
use super::{Figure, FigureError, draw};
use crate::format;
use crate::stats::Estimate;

/// A figure of bars. The legend names them.
pub struct Bars<'a> {
    /// See [`Figure::name`].
    pub name: &'a str,
    /// See [`Figure::title`].
    pub title: &'a str,
    /// See [`Figure::description`].
    pub description: String,
    /// Name, stroke and value of each bar; without a value there is no bar.
    pub bars: Vec<(String, Stroke, Option<Estimate>)>,
    /// The label of the vertical axis.
    pub y_label: &'static str,
}

impl Bars<'_> {
    /// Draws the legend above the bars.
    ///
    /// # Errors
    /// Fails if the drawing library refuses the figure.
    pub fn draw(self) -> Result<Figure, FigureError> {
        let keys: Vec<Key> = self
            .bars
            .iter()
            .map(|(name, stroke, _)| Key {
                name: name.clone(),
                stroke: Stroke {
                    width: 8,
                    dash: None,
                    ..*stroke
                },
            })
            .collect();
        let top = style::legend_height(&keys);
        let size = (WIDTH, HEIGHT + top);
        let (name, title) = (self.name, self.title);
        draw(name, size, title, self.description.clone(), |canvas| {
            style::legend(canvas, &keys)?;
            let (_, area) = canvas.split_vertically(top);
            self.draw_on(&area)
        })
    }

    fn draw_on(&self, area: &Canvas) -> Drawn {
        let ends = self.bars.iter().filter_map(|(_, _, value)| *value);
        let most = ends.fold(0.0f64, |most, value| most.max(value.high).max(value.centre));
        let top = if most > 0.0 { most * 1.05 } else { 1.0 };
        let range = Ticked::new(-0.6..self.bars.len() as f64 - 0.4, Vec::new());
        let mut chart = ChartBuilder::on(area)
            .margin_right(14)
            .margin_top(6)
            .x_label_area_size(10)
            .y_label_area_size(58)
            .build_cartesian_2d(range, 0.0..top)
            .map_err(text)?;
        let tick = |value: &f64| format::tick(*value);
        style::mesh(
            chart
                .configure_mesh()
                .y_desc(self.y_label)
                .disable_x_mesh()
                .y_labels(6)
                .y_label_formatter(&tick),
        )?;
        for (place, (_, stroke, value)) in self.bars.iter().enumerate() {
            let Some(value) = value else { continue };
            let middle = place as f64;
            let corners = [(middle - 0.35, 0.0), (middle + 0.35, value.centre)];
            let bar = Rectangle::new(corners, stroke.colour.mix(0.7).filled());
            chart.draw_series([bar]).map_err(text)?;
            let whisker = vec![(middle, value.low), (middle, value.high)];
            let whisker = PathElement::new(whisker, style::INK.stroke_width(2));
            chart.draw_series([whisker]).map_err(text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Role;

    #[test]
    fn bars_are_drawn_where_there_is_a_value() {
        let stroke = style::stroke("dt", Role::Baseline, 0);
        let value = Estimate {
            centre: 2.0,
            low: 1.0,
            high: 3.0,
        };
        let drawn = |values: [Option<Estimate>; 2]| {
            let bars = ["one", "two"].into_iter().zip(values);
            let bars = bars.map(|(name, value)| (name.to_owned(), stroke, value));
            let figure = Bars {
                name: "bars",
                title: "Bars",
                description: "Two bars.".to_owned(),
                bars: bars.collect(),
                y_label: "unit",
            };
            figure.draw().unwrap().standalone()
        };
        let rectangles = |svg: &str| svg.matches("<rect").count();
        let (both, one) = (drawn([Some(value); 2]), drawn([Some(value), None]));
        assert_eq!(rectangles(&both), rectangles(&one) + 1);
        assert!(both.contains("one") && both.contains("two") && both.contains("unit"));
        assert_eq!(rectangles(&drawn([None; 2])), 0);
    }
}
