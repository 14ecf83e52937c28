//! Figures of the sweeps as SVG.

use bufgym::credence::sweep::{FlipPoint, TreesPoint};
use bufgym::util::convert::floor_usize;
use plotters::prelude::*;

const WIDTH: u32 = 640;
const HEIGHT: u32 = 420;
const BLUE_LINE: RGBColor = RGBColor(0x2f, 0x7d, 0xd1);
const ORANGE_LINE: RGBColor = RGBColor(0xd4, 0x72, 0x1f);
const GREEN_LINE: RGBColor = RGBColor(0x4c, 0x99, 0x3f);
const PURPLE_LINE: RGBColor = RGBColor(0x7b, 0x4f, 0xa8);
const GREY: RGBColor = RGBColor(0x80, 0x87, 0x91);

type Drawn<T = ()> = Result<T, Box<dyn std::error::Error>>;
type Metric = fn(&FlipPoint) -> f64;

/// One line of a panel: a value for each place on the x axis.
struct Line<'a> {
    name: &'a str,
    colour: RGBColor,
    values: Vec<f64>,
}

/// Axes and legend of a panel.
struct Panel<'a> {
    x: &'a str,
    places: &'a [String],
    y: &'a str,
    /// Number of decimals of the values.
    decimals: usize,
    top: f64,
    /// Space after the last place.
    right: f64,
    legend: SeriesLabelPosition,
}

/// Draws scores against the number of trees.
pub(super) fn trees(points: &[TreesPoint]) -> Result<String, String> {
    let line = |name, colour, value: fn(&TreesPoint) -> f64| Line {
        name,
        colour,
        values: points.iter().map(value).collect(),
    };
    let lines = [
        line("accuracy", BLACK, |p| p.scores.accuracy),
        line("1/eta", GREEN_LINE, |p| {
            p.scores.error_score.unwrap_or(f64::NAN)
        }),
        line("precision", BLUE_LINE, |p| p.scores.precision),
        line("F1", PURPLE_LINE, |p| p.scores.f1),
        line("recall", ORANGE_LINE, |p| p.scores.recall),
    ];
    let places: Vec<String> = points.iter().map(|point| point.trees.to_string()).collect();
    let panel = Panel {
        x: "trees",
        places: &places,
        y: "score on traces not learned from",
        decimals: 1,
        top: 1.05,
        // Space next to the lines, which may be anywhere.
        right: 2.2,
        legend: SeriesLabelPosition::UpperRight,
    };
    on_paper((WIDTH, HEIGHT), |area| paint(area, &panel, &lines))
}

/// Draws completion times against the flip probability: mean, short flows and in-casts, long flows.
pub(super) fn flips(points: &[FlipPoint]) -> Result<String, String> {
    let credence: Vec<&FlipPoint> = points.iter().filter(|point| point.flip.is_some()).collect();
    let places: Vec<String> = credence
        .iter()
        .filter_map(|point| point.flip.map(|flip| flip.to_string()))
        .collect();
    let metrics: [(&str, Metric); 4] = [
        ("mean FCT, ms", |point| point.mean_fct_ms),
        ("99th percentile, short flows, ms", |point| {
            point.short_p99_fct_ms
        }),
        ("99th percentile, in-cast flows, ms", |point| {
            point.incast_p99_fct_ms
        }),
        ("mean FCT, long flows, ms", |point| point.long_mean_fct_ms),
    ];
    on_paper((2 * WIDTH, 2 * HEIGHT), |area| {
        for (area, (name, metric)) in area.split_evenly((2, 2)).iter().zip(metrics) {
            let mut lines = vec![Line {
                name: "credence",
                colour: BLUE_LINE,
                values: credence.iter().map(|point| metric(point)).collect(),
            }];
            let colours = [ORANGE_LINE, BLACK];
            let levels = points.iter().filter(|point| point.flip.is_none());
            for (point, colour) in levels.zip(colours) {
                lines.push(Line {
                    name: &point.policy,
                    colour,
                    values: vec![metric(point); places.len()],
                });
            }
            let all = lines.iter().flat_map(|line| line.values.iter().copied());
            let highest = all.filter(|v| v.is_finite()).fold(0.0, f64::max);
            let panel = Panel {
                x: "probability of a flipped prediction",
                places: &places,
                y: name,
                decimals: usize::from(highest < 10.0),
                // The space above is for the names.
                top: 1.3 * highest.max(1e-9),
                right: 0.2,
                legend: SeriesLabelPosition::UpperLeft,
            };
            paint(area, &panel, &lines)?;
        }
        Ok(())
    })
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn on_paper(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawn) -> Result<String, String> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    let drawn = || -> Drawn {
        area.fill(&WHITE)?;
        draw(&area)?;
        Ok(area.present()?)
    };
    drawn().map_err(|error| error.to_string())?;
    drop(area);
    Ok(svg)
}

fn paint(area: &Area<'_>, panel: &Panel<'_>, lines: &[Line<'_>]) -> Drawn {
    let last = panel.places.len().saturating_sub(1).max(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .margin(14)
        .x_label_area_size(46)
        .y_label_area_size(60)
        .build_cartesian_2d(-0.2..last + panel.right, 0.0..panel.top)?;
    let place = |value: &f64| {
        let nearest = value.round();
        let on_place = (value - nearest).abs() < 1e-6 && nearest >= 0.0;
        let label = on_place.then(|| panel.places.get(floor_usize(nearest)));
        label.flatten().cloned().unwrap_or_default()
    };
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(panel.x)
        .y_desc(panel.y)
        .label_style(("sans-serif", 14))
        .x_labels(floor_usize(last + panel.right) + 1)
        .x_label_formatter(&place)
        .y_label_formatter(&|value| format!("{value:.*}", panel.decimals))
        .draw()?;
    for line in lines {
        let colour = line.colour;
        let points: Vec<(f64, f64)> = line
            .values
            .iter()
            .enumerate()
            .map(|(index, value)| (index as f64, *value))
            .filter(|(_, value)| value.is_finite())
            .collect();
        chart
            .draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?
            .label(line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        chart.draw_series(
            points
                .iter()
                .map(|point| Circle::new(*point, 3, colour.filled())),
        )?;
    }
    chart
        .configure_series_labels()
        .position(panel.legend.clone())
        .background_style(WHITE)
        .border_style(GREY)
        .label_font(("sans-serif", 14))
        .draw()?;
    Ok(())
}
