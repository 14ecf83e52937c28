//! `bufgym slotted --sweep fig14`.

use std::fs;
use std::path::Path;

use bufgym::slotted::sweep::{Figure14, figure14};
use bufgym::slotted::{Generator, PolicySpec, Switch};
use serde_json::{Value, json};

use super::{SlottedArgs, figure};
use crate::cli::Common;
use crate::cli::error::{CliError, CliResult, ResultExt as _};
use crate::cli::output::Output;

const PORTS: u32 = 16;
/// Ten packets per port: divided by the ports, so that Credence's safeguard costs nothing.
const BUFFER: u64 = 160;
const ROUNDS: u64 = 5_000;
/// Steps of the flip probability from 0 to 1.
const STEPS: u32 = 20;
/// DT as the paper sets it (§4.1).
const DT: PolicySpec = PolicySpec::DynamicThreshold { alpha: 0.5 };

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
                other.unwrap_or_default()
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
        .map(|path| Output::folder(path, args.force))
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
    let svg = figure::draw(result).map_err(|error| CliError::failure(anyhow::anyhow!(error)))?;
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
