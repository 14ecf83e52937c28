//! ABM: Addanki, Apostolaki, Ghobadi, Schmid and Vanbever, "ABM: Active Buffer Management in Datacenters"
//! (SIGCOMM 2022), Fig. 4 to 12.
//!
//! Fig. 4 and 5 follow from formulas (`abm/analysis.rs`); the others are simulations, most of them described
//! by files. Values of kind `data`
//! are computed from result files that the authors published.

pub mod analysis;
pub mod burst;
pub mod intervals;
pub mod mixed;
pub mod queues;

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

/// Returns the settings of a figure.
fn settings(of: &[&str]) -> Vec<String> {
    of.iter().map(|setting| (*setting).to_owned()).collect()
}
