//! Dynamic Threshold (Choudhury and Hahne, IEEE/ACM Transactions on Networking, 1998).

use super::{
    Definition, Deployment, Kind, PacketView, Search, ParameterInfo, Policy, PolicyInfo, Verdict, View,
};
use crate::convert::floor_u64;

pub(super) static DEFINITION: Definition = Definition {
    info: PolicyInfo {
        name: "dt",
        summary: "Dynamic Threshold",
        rule: "accept iff q_i < alpha (B - Q)",
        source: "Choudhury and Hahne, IEEE/ACM ToN 1998",
        deployment: Deployment::Today,
        parameters: &[ALPHA],
    },
    build: |arguments, _| {
        let alpha = arguments.value("alpha");
        Ok(DynamicThreshold { alpha }.into())
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
