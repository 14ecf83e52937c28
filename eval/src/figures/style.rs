//! Canvas, type size, colours and legend of all figures.

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::data::Role;
use crate::findings::short_name;
use bufgym_sim::convert::whole_i32;

/// The whole drawing.
pub type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// The result of drawing; the error is already text.
pub type Drawn = Result<(), String>;

/// Width of a figure; two stand side by side on a desktop, one fills a phone.
pub const WIDTH: u32 = 480;
/// Type size of labels. The library draws text at four fifths of it.
pub const TYPE: u32 = 16;
/// Estimated width of a character at [`TYPE`]: SVG cannot measure text before it is drawn.
const CHARACTER: f64 = 7.3;
const LEGEND_LINE: i32 = 22;

/// Colour of text and axes, which becomes `currentColor`.
pub const INK: RGBColor = BLACK;

const BLUE: RGBColor = RGBColor(0x2f, 0x7d, 0xd1);
const PINK: RGBColor = RGBColor(0xc8, 0x57, 0xa5);
const TEAL: RGBColor = RGBColor(0x1a, 0x95, 0x95);
const GREEN: RGBColor = RGBColor(0x4c, 0x99, 0x3f);
const ORANGE: RGBColor = RGBColor(0xd4, 0x72, 0x1f);
const PURPLE: RGBColor = RGBColor(0x95, 0x70, 0xd6);
const GREY: RGBColor = RGBColor(0x80, 0x87, 0x91);
const OLIVE: RGBColor = RGBColor(0x9a, 0x85, 0x1c);

/// How a policy is drawn.
#[derive(Clone, Copy)]
pub struct Stroke {
    /// The colour.
    pub colour: RGBColor,
    /// The width in pixels.
    pub width: u32,
    /// Dash and gap in pixels; `None` for a solid line.
    pub dash: Option<(i32, i32)>,
}

/// The stroke of a policy, the same in every figure. So that colour is not the only difference, learned
/// policies are thicker, the baseline is in ink and the reference is dashed.
pub fn stroke(policy: &str, role: Role, index: usize) -> Stroke {
    let solid = |colour, width| Stroke {
        colour,
        width,
        dash: None,
    };
    match (role, policy) {
        (Role::Learned, _) => solid([BLUE, PINK, TEAL, OLIVE][index % 4], 3),
        (Role::Baseline, _) => solid(INK, 2),
        (Role::Reference, _) => Stroke {
            colour: GREY,
            width: 2,
            dash: Some((6, 4)),
        },
        (_, "edt") => solid(GREEN, 2),
        (_, "cs") => solid(ORANGE, 2),
        (_, "st") => solid(PURPLE, 2),
        _ => Stroke {
            colour: [TEAL, PINK, OLIVE][index % 3],
            width: 2,
            dash: Some((2, 2)),
        },
    }
}

/// The stroke of the curve `index` of a figure whose curves are not policies.
pub fn series(index: usize) -> Stroke {
    Stroke {
        colour: [BLUE, ORANGE, GREEN, PURPLE][index % 4],
        width: 2,
        dash: None,
    }
}

/// Draws on a canvas of the given size into `svg`.
pub fn paint(svg: &mut String, size: (u32, u32), draw: impl FnOnce(&Canvas) -> Drawn) -> Drawn {
    let canvas = SVGBackend::with_string(svg, size).into_drawing_area();
    draw(&canvas)?;
    canvas.present().map_err(text)
}

/// Any error of the drawing library as text.
pub fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// A label style at `size` pixels.
pub fn label(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

/// One entry of a legend.
#[derive(Clone)]
pub struct Key {
    /// The name.
    pub name: String,
    /// Its stroke.
    pub stroke: Stroke,
}

/// The rows of the legend: for each entry its index and the position of its left edge.
fn rows(keys: &[Key]) -> Vec<Vec<(usize, i32)>> {
    let mut rows: Vec<Vec<(usize, i32)>> = vec![Vec::new()];
    let mut left = 8;
    for (index, key) in keys.iter().enumerate() {
        let name = short_name(&key.name).chars().count() as f64 * CHARACTER;
        // A name that is wider than the figure has a row of its own.
        let width = 26 + whole_i32(name.min(f64::from(WIDTH))) + 16;
        if left + width > WIDTH.cast_signed() && left > 8 {
            rows.push(Vec::new());
            left = 8;
        }
        if let Some(row) = rows.last_mut() {
            row.push((index, left));
        }
        left += width;
    }
    rows
}

/// The height of the legend in pixels.
pub fn legend_height(keys: &[Key]) -> u32 {
    line_top(rows(keys).len()).cast_unsigned() + 6
}

/// Where a line of the legend begins.
fn line_top(line: usize) -> i32 {
    i32::try_from(line).expect("a legend has a few lines") * LEGEND_LINE
}

/// Draws the legend along the top of the canvas.
pub fn legend(canvas: &Canvas, keys: &[Key]) -> Drawn {
    for (line, row) in rows(keys).iter().enumerate() {
        let middle = line_top(line) + 10;
        for &(index, left) in row {
            let key = &keys[index];
            sample(canvas, key.stroke, left, middle)?;
            let name = short_name(&key.name).to_string();
            canvas
                .draw(&Text::new(name, (left + 26, middle - 8), label(TYPE)))
                .map_err(text)?;
        }
    }
    Ok(())
}

/// A sample of the stroke, 20 pixels long.
fn sample(canvas: &Canvas, stroke: Stroke, left: i32, middle: i32) -> Drawn {
    let style = stroke.colour.stroke_width(stroke.width);
    let (dash, gap) = stroke.dash.unwrap_or((20, 0));
    let mut start = 0;
    while start < 20 {
        let ends = [left + start, left + (start + dash).min(20)];
        let line = ends.map(|x| (x, middle)).to_vec();
        canvas.draw(&PathElement::new(line, style)).map_err(text)?;
        start += dash + gap;
    }
    Ok(())
}

/// The least and the greatest of the finite values, moved apart if they are equal; `None` without
/// values.
pub fn extent(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.into_iter().filter(|v| v.is_finite());
    let (least, most) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), v| {
        (l.min(v), m.max(v))
    });
    match most - least {
        spread if spread > 1e-9 * most.abs() => Some((least, most)),
        spread if spread >= 0.0 => Some((least * 0.9, most * 1.1 + f64::MIN_POSITIVE)),
        _ => None,
    }
}
