//! `bufgym slotted --sweep fig14`.

use bufgym::reproduce::credence::slotted::{DT, over_flips};
use bufgym::reproduce::credence::sweeps;
use bufgym::slotted::Generator;
use bufgym::util::input::excerpt;
use serde_json::json;

use super::SlottedArgs;
use crate::cli::Common;
use crate::cli::credence::write_sweep;
use crate::cli::error::{CliError, CliResult, ResultExt as _};
use crate::cli::output::Output;

const PORTS: u32 = 16;
/// The buffer has ten packets per port. It is a multiple of the ports, so that Credence's safeguard costs
/// nothing.
const BUFFER: u64 = 160;
const ROUNDS: u64 = 5_000;

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
    let output = Output::folder_if(args.out.as_deref(), args.force, &FILES)?;
    let result = over_flips(&switch, &arrivals, common.seed()).or_bad_input()?;
    let figure = sweeps::fig14(&switch, &result).or_failure()?;
    let mut value = serde_json::to_value(&result).or_failure()?;
    value["sweep"] = json!("fig14");
    value["ports"] = json!(switch.ports);
    value["buffer"] = json!(switch.buffer);
    value["seed"] = json!(common.seed());
    value["dt_policy"] = json!(DT.to_string());
    write_sweep(output.as_ref(), &figure, format!("{value}\n"), common)?;
    let text = format!(
        "LQD/policy with {} ports, buffer {}; LQD lost {:.1} % of {} packets\n\
         cs {:.3}  dt {:.3} (alpha 0.5)  harmonic {:.3}\n{}",
        switch.ports,
        switch.buffer,
        100.0 * result.lqd_loss,
        result.arrived,
        result.cs,
        result.dt,
        result.harmonic,
        figure.text(),
    );
    common.print(&value, text.trim_end())
}
