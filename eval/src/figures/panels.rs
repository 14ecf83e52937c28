//! Panels of queue lengths over time, one below the other on the same scale; the last one has the
//! axis of time.

use std::ops::Range;

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::style::{self, Canvas, Drawn, TYPE, text};
use crate::format;

/// Height of a panel.
const PANEL: u32 = 150;
/// Height of the axis of time.
pub(crate) const FOOT: u32 = 44;
/// Width to the left of a panel, for its labels and their description.
const LEFT: u32 = 58;
/// Width to the right of a panel.
pub const RIGHT: u32 = 14;

/// A panel that can be drawn on: KB over milliseconds.
pub type Panel<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Returns the height of `count` panels.
pub fn height(count: usize) -> u32 {
    (0..count).map(|_| PANEL).sum::<u32>() + FOOT
}

/// Splits the canvas into `count` panels and calls `draw` for each, with its number and whether it is the
/// last.
///
/// # Errors
/// Returns the error of the first panel that cannot be drawn.
pub fn stack(
    canvas: &Canvas,
    count: usize,
    mut draw: impl FnMut(&Canvas, usize, bool) -> Drawn,
) -> Drawn {
    let mut rest = canvas.clone();
    for index in 0..count {
        let last = index + 1 == count;
        let (panel, below) = rest.split_vertically(if last { PANEL + FOOT } else { PANEL });
        draw(&panel, index, last)?;
        rest = below;
    }
    Ok(())
}

/// Returns the range of an axis of time. The library adds up its ticks, and rounding can move the last one
/// beyond the end; so the axis is longer by an invisible amount.
pub(crate) fn time_axis(from_ms: f64, to_ms: f64) -> Range<f64> {
    from_ms..to_ms + (to_ms - from_ms) * 1e-6
}

/// Draws the axes of a panel, with `label` above it.
///
/// # Errors
/// Fails if the drawing library refuses.
pub fn axes<'a>(
    canvas: &Canvas<'a>,
    label: &str,
    [from_ms, to_ms]: [f64; 2],
    length_kb: Range<f64>,
    last: bool,
) -> Result<Panel<'a>, String> {
    let at = (LEFT.cast_signed(), 2);
    canvas
        .draw(&Text::new(label.to_owned(), at, style::label(TYPE)))
        .map_err(text)?;
    let mut chart = ChartBuilder::on(canvas)
        .margin_right(RIGHT)
        .margin_top(20)
        .x_label_area_size(if last { FOOT } else { 4 })
        .y_label_area_size(LEFT - 2)
        .build_cartesian_2d(time_axis(from_ms, to_ms), length_kb)
        .map_err(text)?;
    let tick = |value: &f64| format::tick(*value);
    let mut mesh = chart.configure_mesh();
    mesh.y_desc("KB")
        .x_labels(if last { 6 } else { 0 })
        .y_labels(4)
        .x_label_formatter(&tick)
        .y_label_formatter(&tick)
        .disable_x_mesh();
    if last {
        mesh.x_desc("time, ms");
    }
    style::mesh(&mut mesh)?;
    Ok(chart)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plotters::coord::ranged1d::{BoldPoints, Ranged};

    /// With plain ranges the library omits the last tick of each axis.
    #[test]
    fn a_tick_at_the_end_is_drawn() {
        for (from, to) in [(0.4, 1.4), (1.4, 2.4), (1.8, 2.8), (2.2, 2.8)] {
            let axis = RangedCoordf64::from(time_axis(from, to));
            let ticks = axis.key_points(BoldPoints(6));
            let last = ticks.last().copied().unwrap_or(f64::NAN);
            assert!((last - to).abs() < 1e-9, "{from} to {to}: {ticks:?}");
        }
    }
}
