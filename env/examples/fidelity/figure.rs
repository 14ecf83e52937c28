//! Distributions of the FCT, ns-3's over this simulator's, one panel for each case.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::comparison::Comparison;
use crate::metrics::{Completion, Run};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const PANEL: (u32, u32) = (480, 290);
const COLUMNS: usize = 2;
const LEGEND: u32 = 34;
const TYPE: u32 = 16;
/// Milliseconds: from the shortest flow's completion to the longest's.
const TIMES: std::ops::Range<f64> = 0.02..2_000.0;
/// Points of a curve, at equal steps of the share.
const POINTS: usize = 250;

const NS3: RGBColor = RGBColor(0x30, 0x33, 0x38);
const HERE: RGBColor = RGBColor(0x2f, 0x7d, 0xd1);
const GRID: RGBColor = RGBColor(0xe3, 0xe5, 0xe8);

/// The panels side by side under a common legend.
///
/// # Errors
/// When the drawing library refuses.
pub fn svg(comparisons: &[&Comparison]) -> Result<String, Box<dyn Error>> {
    let rows = comparisons.len().div_ceil(COLUMNS);
    let size = (
        PANEL.0 * COLUMNS as u32,
        LEGEND + PANEL.1 * rows.max(1) as u32,
    );
    let mut text = String::new();
    {
        let canvas = SVGBackend::with_string(&mut text, size).into_drawing_area();
        canvas.fill(&WHITE)?;
        let (top, below) = canvas.split_vertically(LEGEND);
        legend(&top)?;
        let areas = below.split_evenly((rows.max(1), COLUMNS));
        for (area, comparison) in areas.iter().zip(comparisons) {
            panel(area, comparison)?;
        }
        canvas.present()?;
    }
    Ok(text)
}

fn legend(area: &Area<'_>) -> Result<(), Box<dyn Error>> {
    let middle = LEGEND as i32 / 2 + 2;
    let ink = ("sans-serif", TYPE).into_font().color(&NS3);
    let sample = |left| [(left, middle), (left + 30, middle)];
    area.draw(&PathElement::new(sample(20), HERE.stroke_width(3)))?;
    area.draw(&Text::new(
        "this simulator, all jittered runs together",
        (58, middle - 8),
        ink.clone(),
    ))?;
    for dash in [400, 410, 420] {
        let ends = [(dash, middle), (dash + 6, middle)];
        area.draw(&PathElement::new(ends, NS3.stroke_width(2)))?;
    }
    area.draw(&Text::new("ns-3 3.37, one run", (438, middle - 8), ink))?;
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
    chart.draw_series(LineSeries::new(
        distribution(&comparison.jittered),
        HERE.stroke_width(3),
    ))?;
    chart.draw_series(DashedLineSeries::new(
        distribution(std::slice::from_ref(&comparison.ns3)),
        6,
        4,
        NS3.stroke_width(2),
    ))?;
    Ok(())
}

/// The share of flows, over all runs, that takes at most so many milliseconds.
fn distribution(runs: &[Run]) -> Vec<(f64, f64)> {
    let mut times: Vec<f64> = runs
        .iter()
        .flat_map(|run| run.flows.iter().map(Completion::ms))
        .collect();
    times.sort_by(f64::total_cmp);
    (0..=POINTS)
        .map(|point| {
            let rank = (point * times.len()).div_ceil(POINTS).max(1);
            (times[rank - 1], point as f64 / POINTS as f64)
        })
        .collect()
}
