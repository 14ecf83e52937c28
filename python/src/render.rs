//! A picture of a switch: the queue of every port against its threshold.

use bufgym::env::control::{ALPHAS, ControlEnv};
use bufgym::env::gym::BufferEnv;
use bufgym::sim::switch::SwitchId;
use bufgym::util::convert::floor_usize;

const HEIGHT: usize = 240;
/// Heights above and below the axis.
const TOP: usize = 20;
const BOTTOM: usize = 24;
/// Widths of the bar of the whole buffer, of a port's column, and of its bar.
const LEFT: usize = 44;
const COLUMN: usize = 22;
const BAR: usize = 14;

const PAPER: [u8; 3] = [255, 255, 255];
const INK: [u8; 3] = [60, 60, 60];
const GRID: [u8; 3] = [225, 225, 225];
const QUEUE: [u8; 3] = [66, 118, 180];
const FULL: [u8; 3] = [200, 60, 50];
const THRESHOLD: [u8; 3] = [235, 140, 30];
const OCCUPANCY: [u8; 3] = [130, 130, 130];

/// The drawn state of a port, in shares of the buffer.
struct Port {
    queue: f64,
    threshold: f64,
    alpha: f64,
}

/// Pixels of an RGB image, row by row.
pub struct Image {
    /// Number of columns.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
    /// The `height * width * 3` bytes.
    pub pixels: Vec<u8>,
}

/// Draws the state of the switch at its last decision; before the first reset, an empty buffer.
///
/// On the left is the bar of the whole buffer, then one bar per port: its queue, red if it has reached its
/// threshold, the line of the threshold, and α below. Axes are shares of the buffer; lines are at quarters.
pub fn draw(env: &BufferEnv) -> Image {
    let control = env.control();
    let ports = control.map_or_else(Vec::new, ports);
    let occupancy = control.map_or(0.0, |control| {
        let buffer = control.simulator().switch(SwitchId(0)).buffer();
        buffer.occupancy() as f64 / buffer.capacity() as f64
    });
    let mut image = Image::blank(LEFT + env.ports() * COLUMN + 8);
    for quarter in 0..=4 {
        let y = Image::level(f64::from(quarter) / 4.0);
        image.fill(LEFT - 10, y, image.width - LEFT + 2, 1, GRID);
        if quarter % 2 == 0 {
            image.text(2, y.saturating_sub(2), &format!("{}", quarter * 25), INK);
        }
    }
    image.bar(LEFT - 16, 8, occupancy, OCCUPANCY);
    for (number, port) in ports.iter().enumerate() {
        let left = LEFT + number * COLUMN;
        let color = if port.queue >= port.threshold {
            FULL
        } else {
            QUEUE
        };
        image.bar(left, BAR, port.queue, color);
        let y = Image::level(port.threshold.min(1.0));
        image.fill(left - 2, y.saturating_sub(1), BAR + 4, 2, THRESHOLD);
        let alpha = match port.alpha {
            alpha if alpha < 1.0 => format!("1/{}", 1.0 / alpha),
            alpha => format!("{alpha}"),
        };
        image.text(left, HEIGHT - BOTTOM + 4, &alpha, THRESHOLD);
        image.text(left, HEIGHT - BOTTOM + 13, &format!("{number}"), INK);
    }
    if let Some(control) = control {
        let us = control.simulator().now().as_ns() / 1_000;
        let text = format!("{}.{:03} ms", us / 1_000, us % 1_000);
        image.text(LEFT, 6, &text, INK);
    }
    image
}

fn ports(control: &ControlEnv) -> Vec<Port> {
    let now = control.simulator().now();
    let switch = control.simulator().switch(SwitchId(0));
    let buffer = switch.buffer();
    let share = |bytes: u64| bytes as f64 / buffer.capacity() as f64;
    let levels = switch.policy().indices();
    (0..buffer.ports())
        .map(|port| {
            let threshold = switch.threshold(port * buffer.queues_per_port(), now);
            Port {
                queue: share(buffer.port(port)),
                threshold: share(threshold.unwrap_or(buffer.capacity())),
                alpha: ALPHAS[usize::from(levels[port])],
            }
        })
        .collect()
}

impl Image {
    fn blank(width: usize) -> Image {
        Image {
            width,
            height: HEIGHT,
            pixels: PAPER.repeat(width * HEIGHT),
        }
    }

    /// Returns the row at a share of the buffer.
    fn level(share: f64) -> usize {
        let span = HEIGHT - TOP - BOTTOM;
        let rows = floor_usize(share.clamp(0.0, 1.0) * span as f64);
        TOP + span - rows
    }

    fn fill(&mut self, left: usize, top: usize, width: usize, height: usize, color: [u8; 3]) {
        for y in top..(top + height).min(self.height) {
            let right = (left + width).min(self.width);
            for x in left..right {
                let at = (y * self.width + x) * 3;
                self.pixels[at..at + 3].copy_from_slice(&color);
            }
        }
    }

    /// Draws a bar from the axis up to a share of the buffer; even one byte takes a row.
    fn bar(&mut self, left: usize, width: usize, share: f64, color: [u8; 3]) {
        let axis = Image::level(0.0);
        let top = Image::level(share);
        let top = if share > 0.0 { top.min(axis - 1) } else { axis };
        self.fill(left, top, width, axis - top, color);
    }

    fn text(&mut self, left: usize, top: usize, text: &str, color: [u8; 3]) {
        for (number, letter) in text.chars().enumerate() {
            let rows = glyph(letter);
            for (y, row) in rows.into_iter().enumerate() {
                for x in 0..3 {
                    if row >> (2 - x) & 1 == 1 {
                        self.fill(left + number * 4 + x, top + y, 1, 1, color);
                    }
                }
            }
        }
    }
}

/// Returns a letter of three by five pixels, a number per row.
fn glyph(letter: char) -> [u8; 5] {
    match letter {
        '0' => [7, 5, 5, 5, 7],
        '1' => [2, 6, 2, 2, 7],
        '2' => [7, 1, 7, 4, 7],
        '3' => [7, 1, 7, 1, 7],
        '4' => [5, 5, 7, 1, 1],
        '5' => [7, 4, 7, 1, 7],
        '6' => [7, 4, 7, 5, 7],
        '7' => [7, 1, 2, 2, 2],
        '8' => [7, 5, 7, 5, 7],
        '9' => [7, 5, 7, 1, 7],
        '/' => [1, 1, 2, 4, 4],
        '.' => [0, 0, 0, 0, 2],
        'm' => [0, 7, 7, 5, 5],
        's' => [0, 3, 4, 1, 6],
        _ => [0; 5],
    }
}
