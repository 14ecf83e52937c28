//! Dynamic Threshold (Choudhury and Hahne, IEEE/ACM Transactions on Networking, 1998).

use bufgym_util::convert::floor_u64;

use super::{
    Definition, Deployment, Kind, LosslessPolicy, PacketView, ParameterInfo, Policy, PolicyInfo,
    Search, Verdict, View,
};

pub(super) static DEFINITION: Definition = Definition {
    info: PolicyInfo {
        name: "dt",
        summary: "Dynamic Threshold",
        rule: "accept iff q_i < alpha (B - Q); with lossless priorities as sonic",
        source: "Choudhury and Hahne, IEEE/ACM ToN 1998",
        deployment: Deployment::Today,
        parameters: &[ALPHA],
    },
    build: |arguments, scenario| {
        let alpha = arguments.value("alpha");
        if scenario.has_lossless() {
            return Ok(LosslessPolicy::dynamic_threshold(alpha).into());
        }
        Ok(match scenario.queues.alpha.is_empty() {
            true => DynamicThreshold { alpha }.into(),
            false => DynamicThresholds::new(alpha, scenario.queue_count()).into(),
        })
    },
};

/// The control factor α of Dynamic Threshold and of the policies that extend it.
pub(super) const ALPHA: ParameterInfo = ParameterInfo {
    name: "alpha",
    default: "1",
    kind: Kind::Positive,
    search: Search::log(1.0 / 64.0, 4096.0),
    meaning: "control factor, above 0",
};

/// Accepts iff `q_i < T`, `T = α(B - Q)`.
#[derive(Clone, Copy, Debug)]
pub struct DynamicThreshold {
    /// Control factor α.
    pub alpha: f64,
}

impl Policy for DynamicThreshold {
    fn listens(&self) -> bool {
        false
    }

    #[inline]
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        // Numbers of bytes below 2^53 are exact in f64. So is the product if α is a power of two.
        if (view.buffer.queue(packet.queue) as f64) < self.alpha * view.buffer.free() as f64 {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }

    fn threshold(&self, view: View<'_>, _queue: usize) -> Option<u64> {
        Some(floor_u64(self.alpha * view.buffer.free() as f64))
    }

    fn alpha(&self, _queue: usize) -> Option<f64> {
        Some(self.alpha)
    }
}

/// As [`DynamicThreshold`], with a control factor for every queue.
#[derive(Clone, Debug)]
pub struct DynamicThresholds {
    alphas: Box<[f64]>,
}

impl DynamicThresholds {
    /// Creates the policy with the same α for `queues` queues, to be changed for each.
    pub fn new(alpha: f64, queues: usize) -> DynamicThresholds {
        DynamicThresholds {
            alphas: vec![alpha; queues].into_boxed_slice(),
        }
    }
}

impl Policy for DynamicThresholds {
    fn listens(&self) -> bool {
        false
    }

    #[inline]
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        let alpha = self.alphas[packet.queue];
        DynamicThreshold { alpha }.on_arrival(view, packet)
    }

    fn threshold(&self, view: View<'_>, queue: usize) -> Option<u64> {
        let alpha = self.alphas[queue];
        DynamicThreshold { alpha }.threshold(view, queue)
    }

    fn alpha(&self, queue: usize) -> Option<f64> {
        Some(self.alphas[queue])
    }

    fn set_alpha(&mut self, queue: usize, alpha: f64) -> bool {
        self.alphas[queue] = alpha;
        true
    }
}
