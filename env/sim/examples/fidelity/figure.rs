//! Distributions of the FCT, this simulator's drawn over ns-3's, one panel for each case.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::comparison::Comparison;
use crate::metrics::milliseconds;
use crate::run::Run;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const PANEL: (u32, u32) = (480, 290);
const COLUMNS: usize = 2;
const LEGEND: u32 = 34;
const TYPE: u32 = 16;
/// Milliseconds: from the completion of the shortest flow to that of the longest.
const TIMES: std::ops::Range<f64> = 0.02..2_000.0;
/// Points of a curve, at equal steps of the share.
const POINTS: usize = 250;

const INK: RGBColor = RGBColor(0x30, 0x33, 0x38);
/// Wide enough to show under the other curve.
const NS3: (RGBColor, u32) = (RGBColor(0xb9, 0xbe, 0xc6), 9);
const HERE: (RGBColor, u32) = (RGBColor(0x1f, 0x6f, 0xc9), 2);
const GRID: RGBColor = RGBColor(0xe3, 0xe5, 0xe8);

/// Draws the panels side by side under a common legend.
///
/// # Errors
/// When the drawing library refuses.
pub fn svg(comparisons: &[&Comparison]) -> Result<String, Box<dyn Error>> {
    let rows = comparisons.len().div_ceil(COLUMNS).max(1);
    let size = (
        PANEL.0 * u32::try_from(COLUMNS)?,
        LEGEND + PANEL.1 * u32::try_from(rows)?,
    );
    let mut text = String::new();
    {
        let canvas = SVGBackend::with_string(&mut text, size).into_drawing_area();
        canvas.fill(&WHITE)?;
        let (top, below) = canvas.split_vertically(LEGEND);
        legend(&top)?;
        let areas = below.split_evenly((rows, COLUMNS));
        for (area, comparison) in areas.iter().zip(comparisons) {
            panel(area, comparison)?;
        }
        canvas.present()?;
    }
    Ok(text)
}

fn legend(area: &Area<'_>) -> Result<(), Box<dyn Error>> {
    let middle = LEGEND.cast_signed() / 2 + 2;
    let ink = ("sans-serif", TYPE).into_font().color(&INK);
    for (left, (colour, width), text) in [
        (20, NS3, "ns-3 3.37"),
        (160, HERE, "this simulator, on top of it"),
    ] {
        let sample = [(left, middle), (left + 30, middle)];
        area.draw(&PathElement::new(sample, colour.stroke_width(width)))?;
        area.draw(&Text::new(text, (left + 38, middle - 8), ink.clone()))?;
    }
    Ok(())
}

fn panel(area: &Area<'_>, comparison: &Comparison) -> Result<(), Box<dyn Error>> {
    let case = &comparison.case;
    let title = format!(
        "{}, {}, minRTO {} ms",
        case.policy_spec(),
        case.transport,
        case.min_rto_ms
    );
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", TYPE + 2))
        .margin_left(4)
        .margin_right(18)
        .margin_bottom(6)
        .x_label_area_size(44)
        .y_label_area_size(52)
        .build_cartesian_2d(TIMES.log_scale(), 0.0..1.0)?;
    chart
        .configure_mesh()
        .x_desc("FCT from establishment, ms (log scale)")
        .y_desc("share of flows")
        .label_style(("sans-serif", TYPE - 1))
        .axis_desc_style(("sans-serif", TYPE))
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .x_label_formatter(&|ms| ms.to_string())
        .y_labels(6)
        .draw()?;
    for ((colour, width), run) in [(NS3, &comparison.ns3), (HERE, &comparison.here)] {
        let style = colour.stroke_width(width);
        chart.draw_series(LineSeries::new(distribution(run), style))?;
    }
    Ok(())
}

/// Returns the shares of flows that take at most a number of milliseconds.
fn distribution(run: &Run) -> Vec<(f64, f64)> {
    let mut times: Vec<f64> = run.flows.iter().map(milliseconds).collect();
    times.sort_by(f64::total_cmp);
    (0..=POINTS)
        .map(|point| {
            let rank = (point * times.len()).div_ceil(POINTS).max(1);
            (times[rank - 1], point as f64 / POINTS as f64)
        })
        .collect()
}
