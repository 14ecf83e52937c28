//! `bufgym slotted --sweep fig14`.

use std::fs;
use std::path::Path;

use bufgym::slotted::sweep::{Figure14, figure14};
use bufgym::slotted::{Generator, PolicySpec, Switch};
use bufgym::util::input::excerpt;
use plotters::prelude::*;
use serde_json::{Value, json};

use super::SlottedArgs;
use crate::cli::Common;
use crate::cli::error::{CliError, CliResult, ResultExt as _};
use crate::cli::output::Output;

const PORTS: u32 = 16;
/// The buffer has ten packets per port. It is a multiple of the ports, so that Credence's safeguard costs
/// nothing.
const BUFFER: u64 = 160;
const ROUNDS: u64 = 5_000;
/// Steps of the flip probability from 0 to 1.
const STEPS: u32 = 20;
/// DT with the α of the paper (§4.1).
const DT: PolicySpec = PolicySpec::DynamicThreshold { alpha: 0.5 };
const SIZE: (u32, u32) = (640, 420);
const BLUE_LINE: RGBColor = RGBColor(0x2f, 0x7d, 0xd1);
const ORANGE_LINE: RGBColor = RGBColor(0xd4, 0x72, 0x1f);
const GREEN_LINE: RGBColor = RGBColor(0x4c, 0x99, 0x3f);
const GREY: RGBColor = RGBColor(0x80, 0x87, 0x91);

/// Names of the output files.
const FILES: [&str; 3] = ["fig14.csv", "fig14.json", "fig14.svg"];

pub(super) fn run(args: &SlottedArgs, common: &Common) -> CliResult {
    match args.sweep.as_deref() {
        Some("fig14") => {}
        Some("fig15") => {
            return Err(CliError::bad(
                "fig15 is a sweep over the trees of Credence's random forest: it needs arrivals of the packet simulator with their features and a forest trained on them, which the slotted model has not; `bufgym credence sweep --over trees` draws it",
            ));
        }
        other => {
            return Err(CliError::bad(format!(
                "sweep '{}' is not known; the sweeps are fig14 and fig15",
                excerpt(other.unwrap_or_default())
            )));
        }
    }
    if args.until_last_round {
        return Err(CliError::bad(
            "fig14 counts until every queue is empty: leave out --until-last-round",
        ));
    }
    if args.policy.is_some() {
        common.note(
            "fig14 compares credence, dt:alpha=0.5, cs and harmonic with lqd; --policy is not used",
        );
    }
    let switch = args.switch(args.ports.unwrap_or(PORTS), args.buffer.unwrap_or(BUFFER))?;
    let arrivals = args.load(&switch, Some(Generator::PoissonBursts), ROUNDS, common)?;
    let output = args
        .out
        .as_deref()
        .map(|path| Output::folder(path, args.force, &FILES))
        .transpose()?;
    let flips: Vec<f64> = (0..=STEPS)
        .map(|step| f64::from(step) / f64::from(STEPS))
        .collect();
    let result = figure14(&switch, &arrivals, DT, &flips, common.seed()).or_bad_input()?;
    let value = to_json(&switch, &result, common)?;
    if let Some(output) = &output {
        output.write_folder(|folder| write(folder, &result, &value))?;
        if !common.json {
            common.note(format!("written to {}", output.path().display()));
        }
    }
    common.print(&value, &describe(&switch, &result))
}

fn to_json(switch: &Switch, result: &Figure14, common: &Common) -> CliResult<Value> {
    let mut value = serde_json::to_value(result).or_failure()?;
    if let Value::Object(fields) = &mut value {
        fields.insert("sweep".to_owned(), json!("fig14"));
        fields.insert("ports".to_owned(), json!(switch.ports));
        fields.insert("buffer".to_owned(), json!(switch.buffer));
        fields.insert("seed".to_owned(), json!(common.seed()));
        fields.insert("dt_policy".to_owned(), json!(DT.to_string()));
    }
    Ok(value)
}

fn write(folder: &Path, result: &Figure14, value: &Value) -> CliResult {
    fs::write(folder.join("fig14.csv"), to_csv(result)).or_failure()?;
    fs::write(folder.join("fig14.json"), format!("{value}\n")).or_failure()?;
    let svg = draw(result).map_err(|error| CliError::failure(anyhow::anyhow!(error)))?;
    fs::write(folder.join("fig14.svg"), svg).or_failure()
}

fn to_csv(result: &Figure14) -> String {
    let mut csv = String::from("flip,credence,dt,cs,harmonic,eta\n");
    for point in &result.credence {
        csv.push_str(&format!(
            "{},{},{},{},{},{}\n",
            point.flip, point.ratio, result.dt, result.cs, result.harmonic, point.eta
        ));
    }
    csv
}

fn describe(switch: &Switch, result: &Figure14) -> String {
    let mut text = format!(
        "LQD/policy with {} ports, buffer {}; LQD lost {:.1} % of {} packets\n\
         cs {:.3}  dt {:.3} (alpha 0.5)  harmonic {:.3}\n\
         flip  credence      eta",
        switch.ports,
        switch.buffer,
        100.0 * result.lqd_loss,
        result.arrived,
        result.cs,
        result.dt,
        result.harmonic,
    );
    for point in &result.credence {
        text.push_str(&format!(
            "\n{:>4.2}  {:>8.3} {:>8.3}",
            point.flip, point.ratio, point.eta
        ));
    }
    text
}

/// Draws LQD/policy against the probability of a false prediction.
fn draw(result: &Figure14) -> Result<String, String> {
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
    // The space above is for the names.
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
