//! A linear rule over the observation of a switch: the smallest controller that can be learned.
//!
//! It replaces the network in NDT's two-level control, with the same triggers, observation, levels
//! of α and heuristic. The action of a port is `w · f`, clamped to [-1, 1] and quantised to a level
//! of α as the network's output is; w is the same for all ports. With q, e and d the queue, the
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
//!
//! Units are those of the observation ([`FEATURE_NAMES`](bufgym_env::control::FEATURE_NAMES)): q is
//! a share of the buffer, e and d are logarithms of bytes in units of β, time is a logarithm in
//! units of the time that β takes at line rate. So the features do not depend on the size of the
//! buffer, the line rate or the number of ports. The factors bring typical values near 1, so that a
//! search may use one step size for all weights.

mod file;

use bufgym_env::control::{Controller, FEATURES, HISTORY};
use bufgym_env::convert::single;
use serde::{Serialize, Serializer};

use crate::windows::OBSERVATION;

pub use file::{LinearFile, LinearFileError};

/// Number of features.
pub const LINEAR: usize = 12;

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
];

/// A port counts as active above this share of the buffer.
pub const ACTIVE_QUEUE: f64 = 0.02;

/// Indices of features in a step of the observation.
const QUEUE: usize = 0;
const ARRIVALS: usize = 1;
const DROPS: usize = 2;
const ELAPSED: usize = 4;

/// The rule with its weights; in JSON an object of numbers by feature.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearRule {
    weights: [f64; LINEAR],
}

impl LinearRule {
    /// The rule with these weights, in the order of [`LINEAR_FEATURES`].
    ///
    /// # Panics
    /// When a weight is not a finite number.
    pub fn new(weights: [f64; LINEAR]) -> LinearRule {
        assert!(
            weights.iter().all(|weight| weight.is_finite()),
            "a weight is not a finite number"
        );
        LinearRule { weights }
    }

    /// The rule that always takes the same action in [-1, 1], on every port.
    ///
    /// # Panics
    /// When the action is not a finite number.
    pub fn constant(action: f32) -> LinearRule {
        let mut weights = [0.0; LINEAR];
        weights[0] = f64::from(action);
        LinearRule::new(weights)
    }

    /// In the order of [`LINEAR_FEATURES`].
    pub fn weights(&self) -> &[f64; LINEAR] {
        &self.weights
    }
}

impl Controller for LinearRule {
    /// # Panics
    /// When `observation` is not `[ports, HISTORY, FEATURES]`, or `action` not `[ports]`.
    fn act(&mut self, observation: &[f32], ports: usize, action: &mut [f32]) {
        assert_eq!(observation.len(), ports * OBSERVATION);
        assert_eq!(action.len(), ports);
        for (action, features) in action.iter_mut().zip(features(observation)) {
            let pairs = self.weights.iter().zip(&features);
            let sum: f64 = pairs.map(|(weight, feature)| weight * feature).sum();
            *action = single(sum.clamp(-1.0, 1.0));
        }
    }
}

impl Serialize for LinearRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(LINEAR_FEATURES.iter().zip(&self.weights))
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
    f64::from(port[(HISTORY - 1) * FEATURES + feature])
}

fn smoothed(port: &[f32], feature: usize) -> f64 {
    values(port, feature).sum::<f64>() / HISTORY as f64
}

#[cfg(test)]
mod tests;
