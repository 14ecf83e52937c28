//! Figure 14 as SVG.

use bufgym::slotted::sweep::Figure14;
use plotters::prelude::*;

const SIZE: (u32, u32) = (640, 420);
const BLUE_LINE: RGBColor = RGBColor(0x2f, 0x7d, 0xd1);
const ORANGE_LINE: RGBColor = RGBColor(0xd4, 0x72, 0x1f);
const GREEN_LINE: RGBColor = RGBColor(0x4c, 0x99, 0x3f);
const GREY: RGBColor = RGBColor(0x80, 0x87, 0x91);

/// LQD/policy against the probability of a false prediction.
pub(super) fn draw(result: &Figure14) -> Result<String, String> {
    let mut svg = String::new();
    paint(&mut svg, result).map_err(|error| error.to_string())?;
    Ok(svg)
}

fn paint(svg: &mut String, result: &Figure14) -> Result<(), Box<dyn std::error::Error>> {
    let credence: Vec<(f64, f64)> = result.credence.iter().map(|p| (p.flip, p.ratio)).collect();
    let levels = [
        ("DT, alpha 0.5", result.dt, BLACK),
        ("CS", result.cs, ORANGE_LINE),
        ("Harmonic", result.harmonic, GREEN_LINE),
    ];
    let all = credence.iter().map(|point| point.1);
    let all = all
        .chain(levels.map(|level| level.1))
        .filter(|r| r.is_finite());
    // Space above for the names.
    let top = all.fold(1.0_f64, f64::max) * 1.3;
    let bottom = 0.9_f64;

    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(14)
        .x_label_area_size(46)
        .y_label_area_size(54)
        .build_cartesian_2d(0.0..1.0, bottom..top)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("probability of a false prediction")
        .y_desc("throughput of LQD / policy (lower is better)")
        .label_style(("sans-serif", 14))
        .x_label_formatter(&|value| format!("{value:.1}"))
        .y_label_formatter(&|value| format!("{value:.1}"))
        .draw()?;
    for (name, ratio, colour) in levels {
        chart
            .draw_series(LineSeries::new(
                [(0.0, ratio), (1.0, ratio)],
                colour.stroke_width(2),
            ))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    chart
        .draw_series(LineSeries::new(credence.clone(), BLUE_LINE.stroke_width(3)))?
        .label("Credence")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], BLUE_LINE.stroke_width(3)));
    chart.draw_series(
        credence
            .iter()
            .map(|point| Circle::new(*point, 4, BLUE_LINE.filled())),
    )?;
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE)
        .border_style(GREY)
        .label_font(("sans-serif", 14))
        .draw()?;
    area.present()?;
    Ok(())
}
