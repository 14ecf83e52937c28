//! Credence: Addanki, Pacut and Schmid, "Credence: Augmenting Datacenter Switch Buffer Sharing with ML
//! Predictions" (NSDI 2024), Fig. 6 to 10 and 14.
//!
//! Every value of the paper is from its text.

mod flips;
mod loads;
mod round_trips;
pub mod slotted;
pub mod sweeps;

use super::Scale;
use super::fabric::{FabricConfig, FigurePlan};
use super::figure::Figure;
use super::paper::{Computed, OPTIONS, Paper};

const PRESET: &str = "credence-leafspine";

/// The paper.
pub const PAPER: Paper = Paper {
    name: "credence",
    title: "“Credence: Augmenting Datacenter Switch Buffer Sharing with ML Predictions” (NSDI 2024)",
    coded: &["10", "14"],
    last_panel: 'd',
    lossless: false,
    options: OPTIONS,
    preset: PRESET,
    settings: &["slowdown_base=paper"],
    scaled: |scale| match scale {
        Scale::Quick => &[
            "leaves=4",
            "active_ports=64",
            "incast_degree=63",
            "measure_ms=600",
        ],
        Scale::Paper => &["measure_ms=3000"],
    },
    extent: |scale| match scale {
        Scale::Quick => {
            "four leaves of 16 hosts instead of 16, 600 ms of traffic, two seeds; the paper says neither \
             how long it measures nor how many seeds it has"
        }
        Scale::Paper => "16 leaves of 16 hosts as in the paper; 3 s, five seeds",
    },
    planned,
    computed,
    notes,
};

fn planned(number: &str, config: &FabricConfig, alpha: &str) -> Option<FigurePlan> {
    let file = || Figure::planned(PAPER.name, number, config, alpha);
    match number {
        "6" => Some(file()?.with(loads::claims_over_loads)),
        "7" => Some(file()?.with(loads::claims_over_requests)),
        "9" => Some(file()?.with(round_trips::claims)),
        "10" => Some(flips::plan(config)),
        _ => file(),
    }
}

fn computed(number: &str) -> Option<Computed> {
    (number == "14").then_some(slotted::figure as Computed)
}

fn notes(config: &FabricConfig) -> Vec<String> {
    let oracle = match &config.forests {
        Some(forests) => format!("Credence’s oracle: {}.", forests.origin),
        None => "Credence’s oracle is the forest that comes with the program, of a single switch with other \
                 traffic, at leaves and spines alike; `--model` takes forests of such a network."
            .to_owned(),
    };
    let mut notes = vec![
        oracle,
        "Every value of the paper is from its text. Which model the paper’s switches had is not known: it \
         trained on a network of two leaves and evaluates on another."
            .to_owned(),
        "Figures 11 to 13 (distributions), 15 and Table 1 are not among these: `bufgym slotted` has the bounds \
         of Table 1, `bufgym credence sweep` has Fig. 15."
            .to_owned(),
    ];
    if config.scale == Scale::Quick {
        notes.push(
            "What differs was not run again with other options of the setting: that is done at \
             --scale paper."
                .to_owned(),
        );
    }
    notes
}

/// Returns the settings of a figure.
fn settings(of: &[&str]) -> Vec<String> {
    of.iter().map(|setting| (*setting).to_owned()).collect()
}
