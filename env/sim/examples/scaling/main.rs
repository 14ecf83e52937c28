//! Measures and draws the cost per packet against the number of ports and of concurrent flows.
//!
//! `cargo run --release -p bufgym-sim --example scaling -- [docs/scaling.svg]`

mod load;

use std::path::PathBuf;
use std::time::Instant;

use load::{FLOWS, Load, PORTS, forward};
use plotters::coord::Shift;
use plotters::prelude::*;

type Failure = Box<dyn std::error::Error>;

const PACKETS: u64 = 200_000;
const ROUNDS: usize = 9;

/// Of each figure the number of ports or flows, and nanoseconds per packet.
type Curve = Vec<(f64, f64)>;

fn main() -> Result<(), Failure> {
    let path: PathBuf = std::env::args()
        .nth(1)
        .unwrap_or("docs/scaling.svg".to_owned())
        .into();
    let ports = curve("ports", &PORTS, Load::of_ports);
    let flows = curve("flows", &FLOWS, Load::of_flows);
    let area = SVGBackend::new(&path, (900, 360)).into_drawing_area();
    area.fill(&WHITE)?;
    let (left, right) = area.split_horizontally(450);
    draw(&left, "ports of the switch, 8 flows each", &ports)?;
    draw(&right, "concurrent flows, 16 ports", &flows)?;
    area.present()?;
    println!("{}", path.display());
    Ok(())
}

/// The least of several rounds, taken in turn, so that other work on the machine disturbs neither
/// the figures nor their order.
fn curve(name: &str, values: &[u32], load: impl Fn(u32) -> Load) -> Curve {
    let mut simulators: Vec<_> = values
        .iter()
        .map(|&value| load(value).simulator())
        .collect();
    let mut least = vec![f64::INFINITY; values.len()];
    for _ in 0..ROUNDS {
        for (simulator, least) in simulators.iter_mut().zip(&mut least) {
            let started = Instant::now();
            forward(simulator, PACKETS);
            *least = least.min(started.elapsed().as_secs_f64() * 1e9 / PACKETS as f64);
        }
    }
    for (value, ns) in values.iter().zip(&least) {
        println!("{value:>7} {name}: {ns:.0} ns per packet");
    }
    values
        .iter()
        .map(|&value| f64::from(value))
        .zip(least)
        .collect()
}

/// Ticks between are too close to be named.
fn tick(value: &f64) -> String {
    let named = [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powf(value.log10().floor()));
    if named.iter().any(|name| (value / name - 1.0).abs() < 1e-6) {
        format!("{value:.0}")
    } else {
        String::new()
    }
}

fn draw(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    label: &str,
    curve: &Curve,
) -> Result<(), Failure> {
    let (first, last) = (curve[0].0, curve[curve.len() - 1].0);
    let top = curve.iter().fold(0.0f64, |top, point| top.max(point.1)) * 1.15;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .margin_right(28)
        .x_label_area_size(44)
        .y_label_area_size(52)
        .build_cartesian_2d((first..last).log_scale(), 0.0..top)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(label)
        .y_desc("ns per packet")
        .label_style(("sans-serif", 13))
        .x_label_formatter(&tick)
        .y_label_formatter(&|value| format!("{value:.0}"))
        .draw()?;
    let colour = RGBColor(31, 94, 168);
    chart.draw_series(LineSeries::new(
        curve.iter().copied(),
        colour.stroke_width(2),
    ))?;
    chart.draw_series(
        curve
            .iter()
            .map(|&point| Circle::new(point, 4, colour.filled())),
    )?;
    Ok(())
}
