//! Where the gain of the learned policy comes from, as bars.

use std::fs;
use std::path::Path;

use bufgym::util::convert::whole_i32;
use plotters::prelude::*;

use crate::Failure;
use crate::canvas::{
    BLUE, Canvas, GREY, GRID, HEADING, INK, LABEL, TITLE, Type, line, picture, write,
};

/// A policy, its mean FCT relative to DT, and the 95 % interval.
pub struct Bar {
    label: String,
    ratio: f64,
    low: f64,
    high: f64,
}

const LEFT: i32 = 258;
const TOP: i32 = 96;
const STEP: i32 = 40;
/// Pixels of the bar of DT.
const UNIT: f64 = 300.0;

/// Reads `label,ratio,low,high`, with a header; labels have no comma.
pub fn read(path: &Path) -> Result<Vec<Bar>, Failure> {
    let text = fs::read_to_string(path)?;
    text.lines().skip(1).map(bar).collect()
}

fn bar(row: &str) -> Result<Bar, Failure> {
    let fields: Vec<&str> = row.split(',').collect();
    let &[label, ratio, low, high] = fields.as_slice() else {
        return Err(format!("not label,ratio,low,high: {row}").into());
    };
    Ok(Bar {
        label: label.to_owned(),
        ratio: ratio.parse()?,
        low: low.parse()?,
        high: high.parse()?,
    })
}

pub fn draw(bars: &[Bar]) -> Result<String, Failure> {
    let count = i32::try_from(bars.len())?;
    let bottom = TOP + count * STEP;
    let values: Vec<String> = bars
        .iter()
        .map(|bar| format!("{} {:.3}", bar.label, bar.ratio))
        .collect();
    let description = format!(
        "Bars of the mean flow completion time relative to Dynamic Threshold: {}.",
        values.join(", ")
    );
    let height = (bottom + 62).unsigned_abs();
    picture(
        height,
        "Where the gain comes from",
        &description,
        |canvas| {
            let plain = Type::new(LABEL, GREY);
            write(
                canvas,
                "Where the gain comes from",
                (16, 26),
                Type::new(TITLE, INK).bold(),
            )?;
            let key = "Mean flow completion time (FCT) on 105 unseen traces";
            write(canvas, key, (16, 53), plain)?;
            write(
                canvas,
                "Blue: learned.",
                (16, 75),
                Type::new(LABEL, BLUE).bold(),
            )?;
            write(
                canvas,
                "Grey: fixed rules. Line: 95 % interval. Shorter is better.",
                (142, 75),
                plain,
            )?;
            for ratio in [0.0, 0.25, 0.5, 0.75, 1.0] {
                let x = pixel(ratio);
                line(canvas, [(x, TOP), (x, bottom)], GRID)?;
                write(
                    canvas,
                    &format!("{ratio:.2}"),
                    (x, bottom + 14),
                    plain.centred(),
                )?;
            }
            let axis = "mean FCT / mean FCT of Dynamic Threshold (DT)";
            write(canvas, axis, (pixel(0.5), bottom + 40), plain.centred())?;
            let middles = (0..).map(|row| TOP + STEP / 2 + row * STEP);
            bars.iter()
                .zip(middles)
                .try_for_each(|(bar, middle)| draw_bar(canvas, bar, middle))
        },
    )
}

fn draw_bar(canvas: &Canvas, bar: &Bar, middle: i32) -> Result<(), Failure> {
    let learned = bar.label.contains("learned");
    let colour = if learned {
        BLUE
    } else {
        RGBColor(0x9a, 0xa1, 0xaa)
    };
    let corners = [(LEFT, middle - 13), (pixel(bar.ratio), middle + 13)];
    canvas.draw(&Rectangle::new(corners, colour.filled()))?;
    if bar.high > bar.low {
        let ends = [bar.low, bar.high].map(pixel);
        line(canvas, ends.map(|x| (x, middle)), INK.stroke_width(2))?;
        for x in ends {
            line(
                canvas,
                [(x, middle - 5), (x, middle + 5)],
                INK.stroke_width(2),
            )?;
        }
    }
    let mut name = Type::new(LABEL, if learned { BLUE } else { INK }).right();
    name.bold = learned;
    write(canvas, &bar.label, (LEFT - 8, middle), name)?;
    let value = Type::new(HEADING, INK).bold();
    let after = pixel(bar.high.max(bar.ratio)) + 8;
    write(canvas, &format!("{:.3}", bar.ratio), (after, middle), value)
}

fn pixel(ratio: f64) -> i32 {
    LEFT + whole_i32(ratio * UNIT)
}
