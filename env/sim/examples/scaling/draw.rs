//! The picture: two charts side by side.

use bufgym_util::convert::whole_i32;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::{Curve, Failure};

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const SIZE: (u32, u32) = (640, 350);
const INK: RGBColor = RGBColor(0x1c, 0x1e, 0x21);
const GREY: RGBColor = RGBColor(0x5b, 0x62, 0x6b);
const GRID: RGBColor = RGBColor(0xdd, 0xe0, 0xe4);
const BLUE: RGBColor = RGBColor(0x1f, 0x5f, 0xb0);
/// Factor by which the library draws text smaller than requested.
const EM: f64 = 1.24;
/// Top and bottom of both plots, and the nanoseconds at the top.
const TOP: i32 = 96;
const BOTTOM: i32 = 288;
const MOST: f64 = 200.0;
/// Width of a plot.
const PLOT: i32 = 240;

/// Draws the cost against ports and against flows.
pub fn both(ports: &Curve, flows: &Curve) -> Result<String, Failure> {
    let mut svg = String::new();
    {
        let canvas = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        canvas.fill(&WHITE)?;
        let title = "The cost of a packet grows slowly";
        write(&canvas, title, (16, 26), (22.0, INK, HPos::Left))?;
        let axis = "processor time per packet, ns";
        write(&canvas, axis, (16, 58), (15.0, GREY, HPos::Left))?;
        let ports_named = [(4.0, "4"), (16.0, "16"), (64.0, "64"), (256.0, "256")];
        chart(&canvas, 52, "ports, 8 flows each", ports, &ports_named)?;
        let flows_named = [
            (1e2, "100"),
            (1e3, "1,000"),
            (1e4, "10,000"),
            (1e5, "100,000"),
        ];
        chart(
            &canvas,
            366,
            "concurrent flows, 16 ports",
            flows,
            &flows_named,
        )?;
        canvas.present()?;
    }
    // The library's opening tag has neither a title nor a style.
    let body = svg.find('>').map_or("", |end| &svg[end + 1..]);
    let (width, height) = SIZE;
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{}\" height=\"{}\" \
         role=\"img\">\n<title>Processor time per packet against ports and against concurrent flows</title>\n\
         <style>text{{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"DejaVu Sans\",sans-serif}}</style>\n{}\n",
        width * 5 / 4,
        height * 5 / 4,
        body.trim()
    ))
}

fn chart(
    canvas: &Canvas,
    left: i32,
    label: &str,
    curve: &Curve,
    named: &[(f64, &str)],
) -> Result<(), Failure> {
    let (Some(&(first, _)), Some(&(last, _))) = (curve.first(), curve.last()) else {
        return Err(format!("no numbers for: {label}").into());
    };
    let x =
        |count: f64| left + whole_i32((count / first).ln() / (last / first).ln() * f64::from(PLOT));
    let y = |ns: f64| BOTTOM - whole_i32(ns / MOST * f64::from(BOTTOM - TOP));
    for ns in [0.0, 50.0, 100.0, 150.0, 200.0] {
        let ends = vec![(left, y(ns)), (left + PLOT, y(ns))];
        canvas.draw(&PathElement::new(ends, if ns == 0.0 { GREY } else { GRID }))?;
        write(
            canvas,
            &format!("{ns}"),
            (left - 8, y(ns)),
            (15.0, GREY, HPos::Right),
        )?;
    }
    for &(count, name) in named {
        let ends = vec![(x(count), BOTTOM), (x(count), BOTTOM + 4)];
        canvas.draw(&PathElement::new(ends, GREY))?;
        write(
            canvas,
            name,
            (x(count), BOTTOM + 16),
            (15.0, GREY, HPos::Center),
        )?;
    }
    let middle = (left + PLOT / 2, BOTTOM + 42);
    write(canvas, label, middle, (15.0, GREY, HPos::Center))?;
    let points: Vec<(i32, i32)> = curve.iter().map(|&(count, ns)| (x(count), y(ns))).collect();
    canvas.draw(&PathElement::new(points.clone(), BLUE.stroke_width(3)))?;
    for &point in &points {
        canvas.draw(&Circle::new(point, 5, BLUE.filled()))?;
    }
    let ends = [
        (curve.first(), points.first(), 14),
        (curve.last(), points.last(), 0),
    ];
    for (value, point, aside) in ends {
        if let (Some((_, ns)), Some((x, y))) = (value, point) {
            let at = (x + aside, y - 18);
            write(canvas, &format!("{ns:.0}"), at, (17.0, BLUE, HPos::Center))?;
        }
    }
    Ok(())
}

/// Writes `text` with its middle at the height of `at`.
fn write(
    canvas: &Canvas,
    text: &str,
    at: (i32, i32),
    (size, colour, anchor): (f64, RGBColor, HPos),
) -> Result<(), Failure> {
    let weight = if size > 15.0 {
        FontStyle::Bold
    } else {
        FontStyle::Normal
    };
    let font = ("sans-serif", size * EM).into_font().style(weight);
    let style = font.color(&colour).pos(Pos::new(anchor, VPos::Center));
    canvas.draw(&Text::new(text.to_owned(), at, style))?;
    Ok(())
}
