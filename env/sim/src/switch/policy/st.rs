//! Static thresholds (complete partitioning).

use super::{Definition, Deployment, PacketView, Policy, PolicyInfo, Verdict, View};

pub(super) static DEFINITION: Definition = Definition {
    info: PolicyInfo {
        name: "st",
        summary: "static threshold (complete partitioning)",
        rule: "accept iff q_i + L <= B/N",
        source: "Kamoun and Kleinrock 1980",
        deployment: Deployment::Today,
        parameters: &[],
    },
    build: |_, _| Ok(StaticThreshold.into()),
};

/// Every queue has a fixed part of the buffer: accepts iff `q_i + L <= B/N`.
#[derive(Clone, Copy, Default, Debug)]
pub struct StaticThreshold;

impl StaticThreshold {
    fn share(view: View<'_>) -> u64 {
        view.buffer.capacity() / view.buffer.queues().len() as u64
    }
}

impl Policy for StaticThreshold {
    fn listens(&self) -> bool {
        false
    }

    #[inline]
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        if view.buffer.queue(packet.queue) + packet.bytes <= Self::share(view) {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }

    fn threshold(&self, view: View<'_>, _queue: usize) -> Option<u64> {
        Some(Self::share(view))
    }
}
