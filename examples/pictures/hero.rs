//! A burst under complete sharing, Dynamic Threshold and the learned policy, one panel below the other.

use bufgym::util::convert::whole_i32;
use plotters::element::DashedPathElement;
use plotters::prelude::*;

use crate::Failure;
use crate::burst::{BYTES, Burst, Run, SENDERS, Sample, kilobytes};
use crate::canvas::{
    BLUE, Canvas, GREY, GRID, HEADING, INK, LABEL, ORANGE, RED, TITLE, Type, line, picture, write,
    write_upwards,
};

/// Milliseconds that are shown, from before the start of the burst.
const FROM: f64 = -2.0;
const TO: f64 = 14.0;

const LEFT: i32 = 74;
const RIGHT: i32 = 624;
/// Top of the first panel, height of its plot, and distance from panel to panel.
const TOP: i32 = 96;
const PLOT: i32 = 134;
const PITCH: i32 = 226;
/// Space of a panel above its plot, with a heading, the result and the lost packets.
const HEAD: i32 = 70;

/// One panel: pixels of a time and of a number of kB.
struct Panel {
    top: i32,
    buffer: f64,
}

impl Panel {
    fn x(&self, at: f64) -> i32 {
        LEFT + whole_i32((at - FROM) / (TO - FROM) * f64::from(RIGHT - LEFT))
    }

    fn y(&self, queue: f64) -> i32 {
        self.top + HEAD + PLOT - whole_i32(queue / self.buffer * f64::from(PLOT))
    }

    fn points<'a>(
        &'a self,
        samples: &'a [&Sample],
        value: impl Fn(&Sample) -> f64 + 'a,
    ) -> impl Iterator<Item = (i32, i32)> + 'a {
        samples
            .iter()
            .map(move |sample| (self.x(sample.at), self.y(value(sample))))
    }
}

/// A picture of the runs: complete sharing, Dynamic Threshold and the learned policy.
pub fn draw(burst: &Burst, runs: &[Run]) -> Result<String, Failure> {
    let buffer = kilobytes(burst.scenario.network.buffer_bytes);
    let headings = [
        "Complete sharing",
        "Dynamic Threshold (α = 1)",
        "Learned policy",
    ];
    let lines: Vec<String> = headings
        .iter()
        .zip(runs)
        .map(|(heading, run)| format!("{heading}: {}", result(run)))
        .collect();
    let description = format!(
        "Queues of two ports over time under three policies while {SENDERS} senders start a burst. {}.",
        lines.join("; ")
    );
    let height = TOP + PITCH * i32::try_from(runs.len())? + 30;
    let title = "One burst, three policies";
    picture(height.unsigned_abs(), title, &description, |canvas| {
        write(canvas, title, (16, 26), Type::new(TITLE, INK).bold())?;
        let plain = Type::new(LABEL, GREY);
        let setting = [
            format!(
                "At 0 ms, {SENDERS} senders start {} kB each to one port. Two long flows already",
                kilobytes(BYTES)
            ),
            format!("congest another port. Buffer: {buffer} kB. Red: lost packets of the burst."),
        ];
        for (text, middle) in setting.iter().zip([53, 74]) {
            write(canvas, text, (16, middle), plain)?;
        }
        for ((index, run), heading) in (0..).zip(runs).zip(headings) {
            let panel = Panel {
                top: TOP + index * PITCH,
                buffer,
            };
            frame(canvas, &panel, heading, run)?;
            curves(canvas, &panel, run)?;
        }
        notes(canvas, buffer, runs)?;
        for at in ticks() {
            let x = LEFT + whole_i32((at - FROM) / (TO - FROM) * f64::from(RIGHT - LEFT));
            write(canvas, &format!("{at}"), (x, height - 38), plain.centred())?;
        }
        let axis = "time after the start of the burst, ms";
        let middle = (LEFT + RIGHT) / 2;
        write(canvas, axis, (middle, height - 15), plain.centred())
    })
}

fn result(run: &Run) -> String {
    let flows = match run.timed_out {
        0 => "no flow times out".to_owned(),
        some => format!("{some} of {SENDERS} flows time out"),
    };
    let early = match run.lost.iter().all(|lost| lost.early) {
        true => "dropped early",
        false => "lost",
    };
    format!(
        "{} packets {early}, {flows}, mean completion {:.0} ms",
        run.lost.len(),
        run.mean_fct_ms
    )
}

/// Heading, grid and axes.
fn frame(canvas: &Canvas, panel: &Panel, heading: &str, run: &Run) -> Result<(), Failure> {
    let small = Type::new(LABEL, GREY);
    let colour = if run.timed_out > 0 { RED } else { BLUE };
    write(
        canvas,
        heading,
        (16, panel.top + 10),
        Type::new(HEADING, INK).bold(),
    )?;
    let at = (16, panel.top + 32);
    write(canvas, &result(run), at, Type::new(LABEL, colour).bold())?;
    for share in [0.0, 0.5, 1.0] {
        let y = panel.y(share * panel.buffer);
        let colour = if share == 0.5 { GRID } else { GREY };
        line(canvas, [(LEFT, y), (RIGHT, y)], colour)?;
        let tick = format!("{}", share * panel.buffer);
        write(canvas, &tick, (LEFT - 8, y), small.right())?;
    }
    write_upwards(
        canvas,
        "queue, kB",
        (16, panel.top + HEAD + PLOT / 2),
        small,
    )?;
    let bottom = panel.y(0.0);
    for at in ticks() {
        let x = panel.x(at);
        line(canvas, [(x, bottom), (x, bottom + 4)], GREY)?;
    }
    Ok(())
}

/// Times with a name.
fn ticks() -> impl Iterator<Item = f64> {
    (0..=7).map(|step| f64::from(2 * step))
}

fn curves(canvas: &Canvas, panel: &Panel, run: &Run) -> Result<(), Failure> {
    let shown: Vec<&Sample> = run
        .samples
        .iter()
        .filter(|sample| (FROM..=TO).contains(&sample.at))
        .collect();
    let bottom = panel.y(0.0);
    let mut area = vec![(LEFT, bottom)];
    area.extend(panel.points(&shown, |sample| sample.queue));
    area.push((RIGHT, bottom));
    canvas.draw(&Polygon::new(area, BLUE.mix(0.35).filled()))?;
    line(
        canvas,
        panel.points(&shown, |sample| sample.queue),
        BLUE.stroke_width(2),
    )?;
    line(
        canvas,
        panel.points(&shown, |sample| sample.other),
        ORANGE.stroke_width(3),
    )?;
    // Only a threshold below the size of the buffer holds a queue back.
    let held = |sample: &&&Sample| sample.threshold < panel.buffer * 0.999;
    let held: Vec<&Sample> = shown.iter().filter(held).copied().collect();
    if !held.is_empty() {
        let points: Vec<(i32, i32)> = panel.points(&held, |sample| sample.threshold).collect();
        canvas.draw(&DashedPathElement::new(points, 7, 4, INK.stroke_width(2)))?;
    }
    let strip = panel.y(panel.buffer);
    let lost = run.lost.iter().map(|lost| panel.x(lost.at));
    for x in lost.filter(|x| (LEFT..=RIGHT).contains(x)) {
        line(
            canvas,
            [(x, strip - 15), (x, strip - 3)],
            RED.stroke_width(1),
        )?;
    }
    write(
        canvas,
        "lost",
        (LEFT - 8, strip - 17),
        Type::new(LABEL, RED).right(),
    )?;
    Ok(())
}

/// Labels within the panels.
fn notes(canvas: &Canvas, buffer: f64, runs: &[Run]) -> Result<(), Failure> {
    let panel = |index: i32| Panel {
        top: TOP + index * PITCH,
        buffer,
    };
    let note = |panel: &Panel, text: &str, (at, queue): (f64, f64), kind: Type| {
        write(canvas, text, (panel.x(at), panel.y(queue)), kind)
    };
    let [ink, blue, orange] = [INK, BLUE, ORANGE].map(|colour| Type::new(LABEL, colour));

    let first = panel(0);
    let text = "other port: it holds the whole buffer";
    note(&first, text, (0.5, 870.0), orange)?;
    let text = "burst’s port: no room, most senders wait 200 ms";
    note(&first, text, (0.5, 130.0), blue)?;

    let second = panel(1);
    if let Some(free) = runs[1].lost.first().map(|lost| lost.free) {
        let text = format!(
            "{:.0} % of the buffer is free, yet packets are refused",
            free * 100.0
        );
        note(&second, &text, (0.5, 860.0), ink)?;
    }
    let text = "threshold of the burst’s port";
    note(&second, text, (10.0, 600.0), ink.right())?;
    note(&second, "other port", (TO, 420.0), orange.right())?;
    note(&second, "burst’s port", (0.7, 120.0), blue)?;

    let third = panel(2);
    if let (Some(low), Some(high)) = (runs[2].alphas.first(), runs[2].alphas.last()) {
        let text = format!("α of {low} to {high} puts the threshold above the buffer size");
        note(&third, &text, (0.5, 820.0), ink)?;
    }
    let text = "early drop keeps queues short, so the burst finds room";
    note(&third, text, (0.5, 620.0), ink)
}
