//! Sweeps over the number of trees (Fig. 15) and the share of false predictions (Fig. 10).

use bufgym_sim::network::{SimError, Summary};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::switch::policy::{Forest, ForestError};
use bufgym_sim::traffic;
use bufgym_util::rng::{Split, trace_seed};
use rayon::prelude::*;
use serde::Serialize;
use thiserror::Error;

use crate::record::Data;
use crate::score::Scores;
use crate::threshold::best_threshold;
use crate::train::{Settings, TrainError, train};

/// Numbers of trees of the command `credence sweep`.
pub const TREES: [u16; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// Flip probabilities of the command `credence sweep`: those of the paper's Fig. 10, and larger ones.
pub const FLIPS: [f64; 9] = [0.0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0];

/// The reason why a sweep failed.
#[derive(Debug, Error)]
pub enum SweepError {
    /// A forest could not be grown.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// A forest could not be compiled.
    #[error(transparent)]
    Forest(#[from] ForestError),
    /// A simulation could not be built.
    #[error(transparent)]
    Simulation(#[from] SimError),
}

/// Scores with a number of trees.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct TreesPoint {
    /// Trees in the forest.
    pub trees: u16,
    /// Threshold: a loss is predicted from this share of lost arrivals on.
    pub threshold: f32,
    /// Scores of the forest on the test traces.
    #[serde(flatten)]
    pub scores: Scores,
}

/// Scores by number of trees, otherwise with the same settings and data. Without a threshold each
/// forest has its [`best_threshold`].
///
/// # Errors
/// When a forest cannot be grown.
pub fn over_trees(
    data: &Data,
    scenario: &Scenario,
    settings: Settings,
    threshold: Option<f32>,
    numbers: &[u16],
) -> Result<Vec<TreesPoint>, SweepError> {
    let point = |&trees: &u16| {
        let grown = train(&data.train, Settings { trees, ..settings })?;
        let threshold = match threshold {
            Some(threshold) => threshold,
            None => best_threshold(&grown, &data.train)?,
        };
        let forest = Forest::new(&grown, threshold)?;
        Ok(TreesPoint {
            trees,
            threshold,
            scores: Scores::of(&forest, &data.test, scenario),
        })
    };
    numbers.par_iter().map(point).collect()
}

/// Completion times under a policy, each averaged over the traces that have one.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlipPoint {
    /// The policy.
    pub policy: String,
    /// Probability with which a prediction is flipped; none where there are no predictions.
    pub flip: Option<f64>,
    /// Mean completion time, ms.
    pub mean_fct_ms: f64,
    /// 99th percentile of completion times, ms.
    pub p99_fct_ms: f64,
    /// 99th percentile of flows of at most 100 kB, ms.
    pub short_p99_fct_ms: f64,
    /// 99th percentile of in-cast flows, ms.
    pub incast_p99_fct_ms: f64,
    /// Mean of flows of at least 1 MB, ms.
    pub long_mean_fct_ms: f64,
    /// 99th percentile of the occupancy, as a share of the buffer.
    pub p99_occupancy: f64,
    /// Packets lost, on average.
    pub drops: f64,
}

/// Credence with each share of flipped predictions, then LQD and DT with α = 0.5 (§4.1), all on
/// validation traces `0..traces` of experiment `seed`.
///
/// # Errors
/// When the scenario or a policy does not fit.
pub fn over_flips(
    scenario: &Scenario,
    credence: &PolicySpec,
    flips: &[f64],
    seed: u64,
    traces: u64,
) -> Result<Vec<FlipPoint>, SweepError> {
    let mut entrants = Vec::new();
    for flip in flips {
        let spec = credence.clone().with("flip", &flip.to_string());
        entrants.push((Some(*flip), spec.map_err(SimError::Policy)?));
    }
    let dt = PolicySpec::named("dt").with("alpha", "0.5");
    entrants.push((None, PolicySpec::named("lqd")));
    entrants.push((None, dt.map_err(SimError::Policy)?));
    let point = |(flip, spec): &(Option<f64>, PolicySpec)| {
        let run = |index| {
            let trace = traffic::generate(scenario, trace_seed(Split::Validation, seed, index));
            Ok(spec.run(scenario, &trace)?.summary)
        };
        let summaries: Result<Vec<Summary>, SimError> =
            (0..traces).into_par_iter().map(run).collect();
        Ok(averaged(spec, *flip, &summaries?))
    };
    entrants.iter().map(point).collect()
}

fn averaged(spec: &PolicySpec, flip: Option<f64>, summaries: &[Summary]) -> FlipPoint {
    let mean = |value: fn(&Summary) -> f64| {
        let finite = summaries
            .iter()
            .map(value)
            .filter(|value| value.is_finite());
        let (sum, count) =
            finite.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
        sum / count
    };
    FlipPoint {
        policy: spec.name().to_owned(),
        flip,
        mean_fct_ms: mean(|summary| summary.mean_fct_ms),
        p99_fct_ms: mean(|summary| summary.p99_fct_ms),
        short_p99_fct_ms: mean(|summary| summary.short_p99_fct_ms),
        incast_p99_fct_ms: mean(|summary| summary.incast_p99_fct_ms),
        long_mean_fct_ms: mean(|summary| summary.long_mean_fct_ms),
        p99_occupancy: mean(|summary| summary.p99_occupancy),
        drops: mean(|summary| summary.drops as f64),
    }
}
