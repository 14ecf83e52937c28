//! A linear rule over the observation of a switch: the smallest controller that can be learned.
//!
//! It replaces the network in NDT's two-level control, with the same triggers, observation, levels
//! and heuristic. The action of a port is `w · f`, clamped to [-1, 1] and quantised to a level of α
//! as the network's output is; w is the same for all ports. Where decisions set early drop or the α of
//! ingress queues too, its level is that of `v · f` with other weights v. With q, e and d the queue, the
//! arrivals and the drops of the port in the observation's newest step, and a bar for the mean over
//! its [`HISTORY`] steps, f holds, in the order of [`LINEAR_FEATURES`]:
//!
//! | feature | formula | range |
//! |---|---|---|
//! | `constant` | 1 | 1 |
//! | `queue` | 4 q | 0 to 4 |
//! | `queue_share` | q over the largest q of all ports; 0 where all are empty | 0 to 1 |
//! | `occupancy` | sum of q over all ports | 0 to 1 |
//! | `arrivals` | 2 e | 0 to 2 |
//! | `arrivals_mean` | 2 ē | 0 to 2 |
//! | `drops` | 2 d | 0 to 2 |
//! | `drops_mean` | 4 d̄ | 0 to 4 |
//! | `active_ports` | share of the ports with q above [`ACTIVE_QUEUE`] in any step | 0 to 1 |
//! | `elapsed` | time since the last decision | 0 to 1 |
//! | `queue_mean` | 4 q̄ | 0 to 4 |
//! | `all_drops` | 4 times the mean of d over all ports | 0 to 4 |
//! | `queue_log` | 4/9 log₂ (1 + 511 q), which tells a queue of a few packets from a short one | 0 to 4 |
//! | `drops_recent` | 8 Σ 2⁻ᵏ d(k), d(k) that of k decisions before | 0 to 16 |
//! | `arrivals_before` | 2 e(1), that of the decision before | 0 to 2 |
//! | `actions_mean` | ā | -1 to 1 |
//!
//! Units are those of the observation ([`FEATURE_NAMES`](bufgym_env::control::FEATURE_NAMES)): q is
//! a share of the buffer, e and d are logarithms of bytes in units of β, time is a logarithm in
//! units of the time that β takes at line rate. So the features do not depend on the size of the
//! buffer, the line rate or the number of ports. Where decisions set the α of ingress queues, ingress bytes and pauses
//! replace arrivals and actions ([`INGRESS_FEATURE_NAMES`](bufgym_env::control::INGRESS_FEATURE_NAMES)), and the
//! features keep their names. The factors bring typical values near 1, so that a search may use one step size for all
//! weights.

mod file;

use bufgym_env::control::{ActionSet, Controller, FEATURES, HISTORY};
use bufgym_util::convert::single;
use serde::{Serialize, Serializer};

use crate::windows::OBSERVATION;

pub use file::{LinearFile, LinearFileError};

/// Number of features.
pub const LINEAR: usize = 16;

/// Names of the features in files, in the order of the weights.
pub const LINEAR_FEATURES: [&str; LINEAR] = [
    "constant",
    "queue",
    "queue_share",
    "occupancy",
    "arrivals",
    "arrivals_mean",
    "drops",
    "drops_mean",
    "active_ports",
    "elapsed",
    "queue_mean",
    "all_drops",
    "queue_log",
    "drops_recent",
    "arrivals_before",
    "actions_mean",
];

/// A port counts as active above this share of the buffer.
pub const ACTIVE_QUEUE: f64 = 0.02;

/// Indices of features in a step of the observation.
const QUEUE: usize = 0;
const ARRIVALS: usize = 1;
const DROPS: usize = 2;
const LAST_ACTION: usize = 3;
const ELAPSED: usize = 4;

/// The rule with its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearRule {
    actions: ActionSet,
    alpha: LinearWeights,
    /// Weights for early drop or the α of ingress queues, where decisions set it.
    second: Option<LinearWeights>,
}

/// The weights of one output, in the order of [`LINEAR_FEATURES`]; in JSON an object of numbers by
/// feature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearWeights([f64; LINEAR]);

impl LinearWeights {
    /// Weights in the order of [`LINEAR_FEATURES`].
    ///
    /// # Panics
    /// When a weight is not a finite number.
    pub fn new(weights: [f64; LINEAR]) -> LinearWeights {
        assert!(
            weights.iter().all(|weight| weight.is_finite()),
            "a weight is not a finite number"
        );
        LinearWeights(weights)
    }

    /// The weights with which every port has the same output.
    fn constant(output: f32) -> LinearWeights {
        let mut weights = [0.0; LINEAR];
        weights[0] = f64::from(output);
        LinearWeights::new(weights)
    }

    /// In the order of [`LINEAR_FEATURES`].
    pub fn as_slice(&self) -> &[f64] {
        &self.0
    }

    fn output(&self, features: &[f64; LINEAR]) -> f32 {
        let pairs = self.0.iter().zip(features);
        let sum: f64 = pairs.map(|(weight, feature)| weight * feature).sum();
        single(sum.clamp(-1.0, 1.0))
    }
}

impl LinearRule {
    /// The rule that sets α with these weights.
    pub fn new(alpha: LinearWeights) -> LinearRule {
        LinearRule {
            actions: ActionSet::Alpha,
            alpha,
            second: None,
        }
    }

    /// The rule that sets early drop too, with these weights.
    #[must_use]
    pub fn with_early(self, early: LinearWeights) -> LinearRule {
        LinearRule {
            actions: ActionSet::AlphaEarly,
            second: Some(early),
            ..self
        }
    }

    /// The rule that sets the α of ingress queues too, with these weights.
    #[must_use]
    pub(crate) fn with_ingress(self, ingress: LinearWeights) -> LinearRule {
        LinearRule {
            actions: ActionSet::AlphaIngress,
            second: Some(ingress),
            ..self
        }
    }

    /// The rule that sets `actions` with these weights: `outputs * LINEAR` numbers.
    ///
    /// # Panics
    /// When there is not one such list for each output, or a weight is not finite.
    pub fn from_slice(actions: ActionSet, weights: &[f64]) -> LinearRule {
        let lists = weights.as_chunks::<LINEAR>().0;
        assert_eq!(
            (lists.len(), lists.len() * LINEAR),
            (actions.outputs(), weights.len()),
            "a list of weights for each output"
        );
        LinearRule {
            actions,
            alpha: LinearWeights::new(lists[0]),
            second: lists.get(1).map(|second| LinearWeights::new(*second)),
        }
    }

    /// The rule that always has the same outputs in [-1, 1], on every port: that for α, then that for
    /// early drop if decisions set it.
    ///
    /// # Panics
    /// When there are not one or two outputs, or one is not a finite number.
    pub fn constant(outputs: &[f32]) -> LinearRule {
        let weights = outputs
            .iter()
            .map(|&output| LinearWeights::constant(output));
        let weights: Vec<f64> = weights.flat_map(|weights| weights.0).collect();
        let actions = match outputs.len() {
            1 => ActionSet::Alpha,
            _ => ActionSet::AlphaEarly,
        };
        LinearRule::from_slice(actions, &weights)
    }

    /// The weights for α.
    pub fn alpha(&self) -> &LinearWeights {
        &self.alpha
    }

    /// The weights for early drop or the α of ingress queues, where decisions set it.
    pub fn second(&self) -> Option<&LinearWeights> {
        self.second.as_ref()
    }

    /// Returns the outputs that the rule sets.
    pub fn actions(&self) -> ActionSet {
        self.actions
    }
}

impl Controller for LinearRule {
    fn outputs(&self) -> usize {
        self.actions().outputs()
    }

    /// # Panics
    /// When `observation` is not `[ports, HISTORY, FEATURES]`, or `action` not `[ports, outputs]`.
    fn act(&mut self, observation: &[f32], ports: usize, action: &mut [f32]) {
        let outputs = self.outputs();
        assert_eq!(observation.len(), ports * OBSERVATION);
        assert_eq!(action.len(), ports * outputs);
        let weights = [Some(&self.alpha), self.second.as_ref()];
        for (action, features) in action.chunks_exact_mut(outputs).zip(features(observation)) {
            for (output, weights) in action.iter_mut().zip(weights.iter().flatten()) {
                *output = weights.output(&features);
            }
        }
    }
}

impl Serialize for LinearWeights {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(LINEAR_FEATURES.iter().zip(&self.0))
    }
}

/// The features of every port, in the order of [`LINEAR_FEATURES`], from an observation
/// `[ports, HISTORY, FEATURES]`. O(ports).
pub fn features(observation: &[f32]) -> impl Iterator<Item = [f64; LINEAR]> + '_ {
    let all = AllPorts::new(observation);
    histories(observation).map(move |port| {
        let queue = newest(port, QUEUE);
        let share = match all.longest > 0.0 {
            true => queue / all.longest,
            false => 0.0,
        };
        [
            1.0,
            4.0 * queue,
            share,
            all.occupancy,
            2.0 * newest(port, ARRIVALS),
            2.0 * smoothed(port, ARRIVALS),
            2.0 * newest(port, DROPS),
            4.0 * smoothed(port, DROPS),
            all.active,
            newest(port, ELAPSED),
            4.0 * smoothed(port, QUEUE),
            4.0 * all.drops,
            4.0 / 9.0 * libm::log2(1.0 + 511.0 * queue),
            8.0 * fading(port, DROPS),
            2.0 * step(port, ARRIVALS, 1),
            smoothed(port, LAST_ACTION),
        ]
    })
}

/// The features that are the same for every port.
struct AllPorts {
    /// Share of the buffer.
    longest: f64,
    /// Share of the buffer.
    occupancy: f64,
    /// Share of the ports.
    active: f64,
    /// Mean over the ports.
    drops: f64,
}

impl AllPorts {
    fn new(observation: &[f32]) -> AllPorts {
        let queues = || histories(observation).map(|port| newest(port, QUEUE));
        let is_active = |port: &&[f32]| values(port, QUEUE).any(|queue| queue > ACTIVE_QUEUE);
        let ports = histories(observation).len().max(1) as f64;
        let drops = histories(observation).map(|port| newest(port, DROPS));
        AllPorts {
            longest: queues().fold(0.0, f64::max),
            occupancy: queues().sum(),
            active: histories(observation).filter(is_active).count() as f64 / ports,
            drops: drops.sum::<f64>() / ports,
        }
    }
}

/// `[HISTORY, FEATURES]` of every port.
fn histories(observation: &[f32]) -> std::slice::ChunksExact<'_, f32> {
    observation.chunks_exact(OBSERVATION)
}

/// One feature of the observation, step by step, the newest last.
fn values(port: &[f32], feature: usize) -> impl Iterator<Item = f64> + '_ {
    port.iter()
        .skip(feature)
        .step_by(FEATURES)
        .map(|&value| f64::from(value))
}

fn newest(port: &[f32], feature: usize) -> f64 {
    step(port, feature, 0)
}

/// Returns the value of a feature so many decisions before the newest.
fn step(port: &[f32], feature: usize, before: usize) -> f64 {
    f64::from(port[(HISTORY - 1 - before) * FEATURES + feature])
}

/// Returns the sum of the feature's values, each step with half of the weight of the one after it.
fn fading(port: &[f32], feature: usize) -> f64 {
    values(port, feature).fold(0.0, |sum, value| 0.5 * sum + value)
}

fn smoothed(port: &[f32], feature: usize) -> f64 {
    values(port, feature).sum::<f64>() / HISTORY as f64
}

#[cfg(test)]
mod tests;
