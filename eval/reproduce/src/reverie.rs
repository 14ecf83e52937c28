//! Reverie: Addanki, Bai, Schmid and Apostolaki, "Reverie: Low Pass Filter-Based Switch Buffer Sharing for
//! Datacenters with RDMA and TCP Traffic" (NSDI 2024), Fig. 4, 5 and 7 to 12.
//!
//! Fig. 4 and 5 follow from formulas (`reverie/pools.rs`); the others are simulations of networks with
//! lossless and lossy packets, most of them described by files. Every value of the paper is from its text.

mod filter;
mod options;
mod pools;
#[cfg(test)]
mod tests;

use super::Scale;
use super::fabric::{FabricConfig, FigurePlan};
use super::figure::Figure;
use super::paper::{Computed, Paper};

/// TCP web search in a lossy priority, RDMA in-cast of 2 MB in a lossless one.
const PRESET: &str = "reverie-leafspine";

/// Name of the paper's policy, on pages and in files.
const REVERIE: &str = "Reverie";

/// The paper.
pub const PAPER: Paper = Paper {
    name: "reverie",
    title: "“Reverie: Low Pass Filter-Based Switch Buffer Sharing for Datacenters with RDMA and TCP \
            Traffic” (NSDI 2024)",
    coded: &["4", "5", "10"],
    last_panel: 'e',
    lossless: true,
    options: options::OPTIONS,
    preset: PRESET,
    settings: &[],
    scaled: |scale| match scale {
        Scale::Quick => &[
            "leaves=4",
            "active_ports=64",
            "incast_degree=63",
            "measure_ms=250",
        ],
        Scale::Paper => &["measure_ms=2000"],
    },
    extent: |scale| match scale {
        Scale::Quick => {
            "four leaves of 16 hosts instead of 16, 250 ms of traffic instead of 2 s, two seeds \
             instead of one; the buffers are the paper’s, at spines for a quarter of the ports"
        }
        Scale::Paper => {
            "16 leaves of 16 hosts and 2 s of traffic as in the paper; five seeds instead of one"
        }
    },
    planned,
    computed,
    notes,
};

fn planned(number: &str, config: &FabricConfig, alpha: &str) -> Option<FigurePlan> {
    match number {
        "10" => Some(filter::plan(config)),
        _ => Figure::planned(PAPER.name, number, config, alpha),
    }
}

fn computed(number: &str) -> Option<Computed> {
    match number {
        "4" => Some(pools::ratio),
        "5" => Some(pools::thresholds),
        _ => None,
    }
}

fn notes(config: &FabricConfig) -> Vec<String> {
    let mut notes = vec![
        "Pauses are frames that ask a neighbour to stop. The paper’s panels count rows of a log, which has \
         about four for each pause (both frames of pause and resume, sent and received), so that only \
         reductions in per cent are compared."
            .to_owned(),
        "Every value of the paper is from its text; ranges of its axes are from the published script that \
         draws them, and are bounds."
            .to_owned(),
        "A trend compares the ends of the axis, which must be apart by more than 1 %. “On a par”, “like” and \
         “similar” are read as within 10 %; numbers of pauses are alike if they differ by at most 10 % of \
         those with ABM."
            .to_owned(),
        "Rules are the paper’s (rules=paper) where its code differs. Answers come from a random other leaf, as \
         the paper says; its code takes the next one."
            .to_owned(),
        "No series is added to the paper’s policies."
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
