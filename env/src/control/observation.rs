//! The observation of the policy network: per port an eight-step history of five features, all of
//! which a switch can measure (paper, §III and §V-A).

use bufgym_util::convert::single;

use super::{ActionSet, INITIAL_INDEX, cell_centre};

/// Steps of history.
pub const HISTORY: usize = 8;

/// Features per port and step.
pub const FEATURES: usize = 5;

/// The features, in order, with their scale.
pub const FEATURE_NAMES: [&str; FEATURES] = [
    "queue: q_i / B",
    "enqueued: log(1 + bytes / beta) / log(65)",
    "dropped: log(1 + bytes / beta) / log(65)",
    "last_action: cell centre in [-1, 1]",
    "elapsed: log(1 + t * C / (8 * beta)) / log(65), t in s, C in bit/s",
];

/// The features where decisions set the control factors of [ingress queues](super::ActionSet::AlphaIngress), in order,
/// with their scale. Ingress bytes replace arrivals, and pauses replace the last action, which is a function of earlier
/// observations.
pub const INGRESS_FEATURE_NAMES: [&str; FEATURES] = [
    "queue: q_i / B, lossy and lossless",
    "ingress: log(1 + bytes / beta) / log(65), of lossless packets that came by the port",
    "dropped: log(1 + bytes / beta) / log(65)",
    "paused: share of the time since the last decision for which the port has paused its neighbour",
    "elapsed: log(1 + t * C / (8 * beta)) / log(65), t in s, C in bit/s",
];

/// Base of the logarithmic scale, which reaches 1 at `LOG_RANGE - 1` units. (Not from the paper: at
/// line rate an interval of 20 ms is 40 β, so a linear scale would lose small or large values.)
pub const LOG_RANGE: f64 = 65.0;

/// `log(1 + x)/log 65`, clipped to [0, 1]. Deterministic across platforms.
pub(super) fn log_scaled(x: f64) -> f32 {
    single(libm::log1p(x.max(0.0)) / libm::log(LOG_RANGE)).min(1.0)
}

/// Divisors of the measured quantities of a port in its observation.
#[derive(Clone, Copy, Debug)]
pub struct ObservationScale {
    buffer: f64,
    beta: f64,
    /// Time to send β at line rate, 8β/C, seconds.
    drain_s: f64,
}

impl ObservationScale {
    /// Creates the scale for a buffer B and a trigger sensitivity β in bytes and a line rate C in bit/s, none of them
    /// 0.
    pub fn new(buffer_bytes: u64, beta: u64, rate_bps: u64) -> ObservationScale {
        ObservationScale {
            buffer: buffer_bytes as f64,
            beta: beta as f64,
            drain_s: 8.0 * beta as f64 / rate_bps as f64,
        }
    }

    /// Bytes that wait: q/B.
    #[inline]
    pub fn queue(&self, bytes: u64) -> f32 {
        single(bytes as f64 / self.buffer)
    }

    /// Bytes since the last decision: `log(1 + bytes/β)/log 65`, at most 1.
    #[inline]
    pub fn volume(&self, bytes: u64) -> f32 {
        log_scaled(bytes as f64 / self.beta)
    }

    /// Seconds since the last decision: `log(1 + t·C/(8β))/log 65`, at most 1.
    #[inline]
    pub fn elapsed(&self, seconds: f64) -> f32 {
        log_scaled(seconds / self.drain_s)
    }
}

/// The history of all ports, `[ports, HISTORY, FEATURES]`, newest step last.
///
/// Steps before the first decision are zero, except their last action, which is that of α = 1, where
/// that is observed.
#[derive(Clone, Debug)]
pub struct Observation {
    values: Vec<f32>,
}

impl Observation {
    /// An empty history for decisions at the egress.
    pub fn new(ports: usize) -> Observation {
        Observation::before(ports, ActionSet::Alpha)
    }

    /// An empty history for decisions that set `actions`.
    pub fn before(ports: usize, actions: ActionSet) -> Observation {
        let mut values = vec![0.0; ports * HISTORY * FEATURES];
        if !actions.sets_ingress() {
            for frame in values.chunks_exact_mut(FEATURES) {
                frame[3] = cell_centre(INITIAL_INDEX);
            }
        }
        Observation { values }
    }

    /// `[ports, HISTORY, FEATURES]`, row-major.
    pub fn as_slice(&self) -> &[f32] {
        &self.values
    }

    /// Appends a step for every port and forgets the oldest.
    pub fn push(&mut self, mut features: impl FnMut(usize) -> [f32; FEATURES]) {
        for (port, history) in self.values.chunks_exact_mut(HISTORY * FEATURES).enumerate() {
            history.copy_within(FEATURES.., 0);
            let newest = &mut history[(HISTORY - 1) * FEATURES..];
            for (slot, value) in newest.iter_mut().zip(features(port)) {
                *slot = value.clamp(-1.0, 1.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_step_is_last_and_the_scale_is_logarithmic() {
        let mut observation = Observation::new(2);
        assert_eq!(observation.as_slice()[3], -0.375);
        observation.push(|port| [port as f32, 0.5, 7.0, -1.0, 0.0]);
        let second = &observation.as_slice()[HISTORY * FEATURES..];
        assert_eq!(second[35..40], [1.0, 0.5, 1.0, -1.0, 0.0]);
        assert_eq!(second[30..35], [0.0, 0.0, 0.0, -0.375, 0.0]);
        let scale = ObservationScale::new(1_000, 100, 800);
        assert_eq!(scale.queue(250), 0.25);
        assert_eq!(scale.volume(6_400), 1.0);
        assert_eq!(scale.elapsed(0.5), log_scaled(0.5));
        assert_eq!(log_scaled(0.0), 0.0);
        assert_eq!(log_scaled(64.0), 1.0);
        assert!((f64::from(log_scaled(7.0)) - 8f64.ln() / 65f64.ln()).abs() < 1e-6);
    }
}
