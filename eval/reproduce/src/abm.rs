//! ABM: Addanki, Apostolaki, Ghobadi, Schmid and Vanbever, "ABM: Active Buffer Management in Datacenters"
//! (SIGCOMM 2022), Fig. 4 to 12.
//!
//! Fig. 4 and 5 follow from formulas (`abm/analysis.rs`); the others are simulations, most of them described
//! by files. Values of kind `data`
//! are computed from result files that the authors published.

mod analysis;
mod burst;
mod intervals;
mod mixed;
mod queues;

use super::Scale;
use super::fabric::{FabricConfig, FigurePlan};
use super::figure::Figure;
use super::paper::{Computed, OPTIONS, Paper};

/// The paper's network of 64 hosts, which fits the published files.
const PRESET: &str = "abm-artefact";

/// The policies of the paper.
const DT: &str = "dt:alpha=0.5";
const ABM: &str = "abm";

/// Control factors of queues 0 to 7 in the authors' published code.
const ARTEFACT_ALPHAS: [&str; 8] = [
    "1", "0.5", "0.5", "0.5", "0.125", "0.0625", "0.03125", "0.015625",
];

/// The rows of a table.
macro_rules! rows {
    ($($series:literal: $values:expr),+ $(,)?) => {
        const { &[$(ReferenceRow { series: $series, values: &$values }),+] }
    };
}
use rows;

/// Returns the setting that gives the given number of queues their control factors of the published code.
fn artefact_alphas(queues: usize) -> String {
    format!("queue_alpha={}", ARTEFACT_ALPHAS[..queues].join(","))
}

/// Returns a policy of the paper without its own α, for queues that have theirs.
fn without_alpha(policy: &str) -> &str {
    policy.split(':').next().unwrap_or(policy)
}

/// The paper.
pub const PAPER: Paper = Paper {
    name: "abm",
    title: "“ABM: Active Buffer Management in Datacenters” (SIGCOMM 2022)",
    coded: &["4", "5", "10", "12"],
    last_panel: 'd',
    lossless: false,
    options: OPTIONS,
    preset: PRESET,
    settings: &["slowdown_base=paper"],
    scaled: |scale| match scale {
        Scale::Quick => &["measure_ms=400"],
        Scale::Paper => &["measure_ms=3000"],
    },
    extent: |scale| match scale {
        Scale::Quick => {
            "two leaves of 32 hosts as in the published files; 400 ms instead of 3 s, two seeds"
        }
        Scale::Paper => {
            "two leaves of 32 hosts as in the published files, not eight; 3 s as in the paper, five \
             seeds instead of one"
        }
    },
    planned,
    computed,
    notes,
};

fn planned(number: &str, config: &FabricConfig, alpha: &str) -> Option<FigurePlan> {
    let file = || Figure::planned(PAPER.name, number, config, alpha);
    match number {
        "10" => Some(queues::plan(config)),
        "12" => Some(intervals::plan(config)),
        "8" => Some(file()?.with(mixed::claims)),
        _ => file(),
    }
}

fn computed(number: &str) -> Option<Computed> {
    match number {
        "4" => Some(analysis::figure),
        "5" => Some(burst::figure),
        _ => None,
    }
}

fn notes(config: &FabricConfig) -> Vec<String> {
    let mut notes = vec![
        "Values of kind “data” are from per-flow result files that the authors published: one seed, two \
         leaves of 32 hosts. They give most percentages of the text within a point, but not in Fig. 10; \
         some of the files stop early (Fig. 11, 12)."
            .to_owned(),
        "Slowdowns are relative to round trip and payload at line rate, as the paper’s; in-cast \
         answers are sent at once on open connections. Short flows are those of at most 100,000 B of \
         payload; the paper’s limit is on wire bytes."
            .to_owned(),
        "Only DCTCP uses ECN, as in the published code; CUBIC is not marked.".to_owned(),
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
