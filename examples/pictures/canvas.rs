//! What the pictures share: canvas, colours and type.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::Failure;

/// The whole picture.
pub type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Width of a picture; half of it can still be read on a phone.
pub const WIDTH: u32 = 640;

pub const INK: RGBColor = RGBColor(0x1c, 0x1e, 0x21);
pub const GREY: RGBColor = RGBColor(0x5b, 0x62, 0x6b);
pub const GRID: RGBColor = RGBColor(0xdd, 0xe0, 0xe4);
pub const BLUE: RGBColor = RGBColor(0x1f, 0x5f, 0xb0);
pub const ORANGE: RGBColor = RGBColor(0xb8, 0x5a, 0x0c);
pub const RED: RGBColor = RGBColor(0xc6, 0x28, 0x28);

/// Type sizes in pixels.
pub const LABEL: f64 = 15.0;
pub const HEADING: f64 = 17.0;
pub const TITLE: f64 = 22.0;

/// The library draws text smaller than asked for by this factor.
const EM: f64 = 1.24;

/// How a text is set.
#[derive(Clone, Copy)]
pub struct Type {
    pub size: f64,
    pub colour: RGBColor,
    pub bold: bool,
    pub anchor: HPos,
}

impl Type {
    pub fn new(size: f64, colour: RGBColor) -> Type {
        Type {
            size,
            colour,
            bold: false,
            anchor: HPos::Left,
        }
    }

    pub fn bold(self) -> Type {
        Type { bold: true, ..self }
    }

    pub fn centred(self) -> Type {
        Type {
            anchor: HPos::Center,
            ..self
        }
    }

    pub fn right(self) -> Type {
        Type {
            anchor: HPos::Right,
            ..self
        }
    }

    fn style(self) -> TextStyle<'static> {
        let font = ("sans-serif", self.size * EM).into_font();
        let weight = if self.bold {
            FontStyle::Bold
        } else {
            FontStyle::Normal
        };
        let anchor = Pos::new(self.anchor, VPos::Center);
        font.style(weight).color(&self.colour).pos(anchor)
    }
}

/// Writes `text` with its middle at the height of `at`.
pub fn write(canvas: &Canvas, text: &str, at: (i32, i32), kind: Type) -> Result<(), Failure> {
    canvas.draw(&Text::new(text.to_owned(), at, kind.style()))?;
    Ok(())
}

/// Writes `text` upwards.
pub fn write_upwards(
    canvas: &Canvas,
    text: &str,
    at: (i32, i32),
    kind: Type,
) -> Result<(), Failure> {
    let style = kind.centred().style();
    let turned = style.transform(FontTransform::Rotate270);
    canvas.draw(&Text::new(text.to_owned(), at, turned))?;
    Ok(())
}

/// Draws a line through points in pixels.
pub fn line(
    canvas: &Canvas,
    points: impl IntoIterator<Item = (i32, i32)>,
    style: impl Into<ShapeStyle>,
) -> Result<(), Failure> {
    let points: Vec<(i32, i32)> = points.into_iter().collect();
    canvas.draw(&PathElement::new(points, style))?;
    Ok(())
}

/// A picture with a white background of its own, for light and dark pages.
pub fn picture(
    height: u32,
    title: &str,
    description: &str,
    paint: impl FnOnce(&Canvas) -> Result<(), Failure>,
) -> Result<String, Failure> {
    let mut svg = String::new();
    {
        let canvas = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        canvas.fill(&WHITE)?;
        paint(&canvas)?;
        canvas.present()?;
    }
    // The library's opening tag has neither a description nor a style.
    let body = svg.find('>').map_or("", |end| &svg[end + 1..]);
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{}\" height=\"{}\" \
         role=\"img\">\n<title>{title}</title>\n<desc>{description}</desc>\n\
         <style>text{{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"DejaVu Sans\",sans-serif}}</style>\n{}\n",
        WIDTH * 5 / 4,
        height * 5 / 4,
        body.trim()
    ))
}
