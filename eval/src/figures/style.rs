//! Canvas, type size, colours and legend of all figures.

use bufgym_util::convert::{floor_usize, whole_i32};
use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;

use crate::data::Role;
use crate::findings::short_name;

/// The whole drawing.
pub type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// The result of drawing; the error is already text.
pub type Drawn = Result<(), String>;

/// Width of a figure; two stand side by side on a desktop, one fills a phone.
pub const WIDTH: u32 = 480;
/// Type size of labels. The library draws text at four fifths of it.
pub const TYPE: u32 = 16;
/// Estimated width of a character at [`TYPE`]: SVG cannot measure text before it is drawn.
pub(crate) const CHARACTER: f64 = 7.8;
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

/// Colours of the rules that have no fixed colour. After the last one, they start again with the next of
/// [`DASHES`].
const RULES: [RGBColor; 3] = [TEAL, PINK, OLIVE];

/// Dashes and gaps in pixels.
const DASHES: [(i32, i32); 4] = [(2, 2), (7, 3), (1, 5), (12, 3)];

/// The appearance of a policy's line.
#[derive(Clone, Copy, PartialEq)]
pub struct Stroke {
    /// The colour.
    pub colour: RGBColor,
    /// The width in pixels.
    pub width: u32,
    /// Dash and gap in pixels; `None` for a solid line.
    pub dash: Option<(i32, i32)>,
}

/// Returns the stroke of a policy, the same in every figure. So that colour is not the only difference,
/// learned policies are thicker, the baseline is in ink and the reference is dashed.
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
            colour: RULES[index % RULES.len()],
            width: 2,
            dash: Some(DASHES[index / RULES.len() % DASHES.len()]),
        },
    }
}

/// Returns the stroke of the curve `index` of a figure whose curves are not policies. After the last colour,
/// they start again with the next pattern of dashes.
pub fn series(index: usize) -> Stroke {
    const COLOURS: [RGBColor; 4] = [BLUE, ORANGE, GREEN, PURPLE];
    let round = index / COLOURS.len();
    Stroke {
        colour: COLOURS[index % COLOURS.len()],
        width: 2,
        dash: (round > 0).then(|| DASHES[(round - 1) % DASHES.len()]),
    }
}

/// Draws on a canvas of the given size into `svg`.
pub fn paint(svg: &mut String, size: (u32, u32), draw: impl FnOnce(&Canvas) -> Drawn) -> Drawn {
    let canvas = SVGBackend::with_string(svg, size).into_drawing_area();
    draw(&canvas)?;
    canvas.present().map_err(text)
}

/// Converts any error of the drawing library to text.
pub fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Returns a label style at `size` pixels.
pub fn label(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

/// Draws axes and grid in the type and the colours of all figures.
pub fn mesh<X, Y, DB>(mesh: &mut MeshStyle<'_, '_, X, Y, DB>) -> Drawn
where
    X: Ranged + ValueFormatter<X::ValueType>,
    Y: Ranged + ValueFormatter<Y::ValueType>,
    DB: DrawingBackend,
{
    mesh.label_style(label(TYPE))
        .axis_desc_style(label(TYPE))
        .axis_style(INK.mix(0.45))
        .bold_line_style(INK.mix(0.12))
        .light_line_style(TRANSPARENT)
        .draw()
        .map_err(text)
}

/// One entry of a legend.
#[derive(Clone)]
pub struct Key {
    /// The name.
    pub name: String,
    /// The stroke.
    pub stroke: Stroke,
}

/// Distance of an entry's name from the entry's left edge.
const NAME: i32 = 26;

/// An entry with its position.
struct Placed {
    /// Index of the entry.
    index: usize,
    /// Left edge of the entry.
    left: i32,
    /// Index of the entry's first line.
    line: usize,
    /// The name, a text per line.
    name: Vec<String>,
}

/// Returns the position of every entry, and the number of lines of all of them.
fn places(keys: &[Key]) -> (Vec<Placed>, usize) {
    let edge = WIDTH.cast_signed();
    let most = f64::from(edge - 8 - NAME) / CHARACTER;
    let (mut left, mut line, mut lines) = (8, 0, 1);
    let mut placed = Vec::new();
    for (index, key) in keys.iter().enumerate() {
        let name = broken(short_name(&key.name), floor_usize(most));
        let longest = name.iter().map(|part| part.chars().count()).max();
        let width = NAME + whole_i32(longest.unwrap_or(0) as f64 * CHARACTER) + 16;
        // A name that does not fit into the rest of a line begins a new line. A name of several lines has
        // these lines for itself.
        if left > 8 && (left + width > edge + 16 || name.len() > 1) {
            (left, line) = (8, lines);
        }
        lines = lines.max(line + name.len());
        let alone = name.len() > 1;
        placed.push(Placed {
            index,
            left,
            line,
            name,
        });
        (left, line) = if alone {
            (8, lines)
        } else {
            (left + width, line)
        };
    }
    (placed, lines)
}

/// Splits a name into parts of at most `most` characters, if possible after a comma or a plus.
fn broken(name: &str, most: usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    for piece in name.split_inclusive([',', '+']) {
        for character in piece.chars().enumerate() {
            let length = piece.chars().count();
            let used = parts.last().map_or(0, |part| part.chars().count());
            let begins = character.0 == 0 && used + length > most;
            if used > 0 && (begins || used >= most) {
                parts.push(String::new());
            }
            if let Some(part) = parts.last_mut() {
                part.push(character.1);
            }
        }
    }
    parts
}

/// Returns the height of the legend in pixels.
pub(crate) fn legend_height(keys: &[Key]) -> u32 {
    line_top(places(keys).1).cast_unsigned() + 6
}

/// Returns the vertical position of a line of the legend.
fn line_top(line: usize) -> i32 {
    i32::try_from(line).expect("a legend has a few lines") * LEGEND_LINE
}

/// Draws the legend along the top of the canvas.
pub fn legend(canvas: &Canvas, keys: &[Key]) -> Drawn {
    for entry in places(keys).0 {
        let key = &keys[entry.index];
        let middle = |line: usize| line_top(line) + 10;
        sample(canvas, key.stroke, entry.left, middle(entry.line))?;
        for (line, part) in (entry.line..).zip(entry.name) {
            let at = (entry.left + NAME, middle(line) - 8);
            canvas
                .draw(&Text::new(part, at, label(TYPE)))
                .map_err(text)?;
        }
    }
    Ok(())
}

/// Draws a sample of the stroke, 20 pixels long.
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

/// Returns the least and the greatest of the finite values, moved apart if they are equal; `None` without
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

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key {
            name: name.to_owned(),
            stroke: series(0),
        }
    }

    #[test]
    fn a_dozen_rules_can_be_told_apart() {
        let strokes: Vec<Stroke> = (0..12).map(|i| stroke("fab", Role::Heuristic, i)).collect();
        for (i, one) in strokes.iter().enumerate() {
            assert!(!strokes[..i].contains(one), "{i}");
        }
    }

    #[test]
    fn short_names_share_a_line() {
        let (placed, lines) = places(&[key("dt"), key("edt"), key("st")]);
        assert_eq!(lines, 1);
        assert!(placed.windows(2).all(|pair| pair[0].left < pair[1].left));
    }

    #[test]
    fn a_long_name_is_broken_and_has_its_lines_for_itself() {
        let long = "dt:alpha=96.1+red:min_bytes=42,max_bytes=4000000,max_p=0.0772,weight=0.0461,uniform=yes";
        let (placed, lines) = places(&[key("dt"), key(long), key("st")]);
        assert_eq!(placed[1].name.concat(), long);
        assert_eq!(placed[1].name.len(), 2);
        assert_eq!([0, 1, 2].map(|entry| placed[entry].line), [0, 1, 3]);
        assert_eq!(lines, 4);
        let widest = placed.iter().flat_map(|entry| {
            entry
                .name
                .iter()
                .map(|part| f64::from(entry.left + NAME) + part.chars().count() as f64 * CHARACTER)
        });
        assert!(widest.fold(0.0, f64::max) <= f64::from(WIDTH));
    }

    #[test]
    fn a_name_without_commas_is_broken_where_it_must_be() {
        assert_eq!(broken("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(broken("ab,cd", 3), ["ab,", "cd"]);
    }
}
