//! Push-out with threshold (Cidon, Georgiadis, Guérin and Khamisy, IEEE JSAC 1995).

use super::lqd::longest_with;
use super::{
    Bound, Definition, Deployment, Kind, PacketView, ParameterInfo, Policy, PolicyInfo, Search,
    Verdict, View,
};

pub(super) static DEFINITION: Definition = Definition {
    info: PolicyInfo {
        name: "pot",
        summary: "Push-out with threshold: only short queues may push out of the longest one",
        rule: "accept; on overflow push out the tail of the longest queue iff q_i < k, else drop",
        source: "Cidon, Georgiadis, Guerin and Khamisy, IEEE JSAC 1995",
        deployment: Deployment::NewHardware,
        parameters: &[ParameterInfo {
            name: "k",
            default: "B/N",
            kind: Kind::Bytes,
            search: Search::log_to(100.0, Bound::Buffer(1.0)).from(Bound::Queue(1.0)),
            meaning: "length below which a queue may push out of others, bytes",
        }],
    },
    build: |arguments, scenario| {
        let share = scenario.network.buffer_bytes / scenario.queue_count() as u64;
        let limit = arguments.optional("k").unwrap_or(share);
        Ok(PushOutWithThreshold { limit }.into())
    },
};

/// Like [`LongestQueueDrop`](super::LongestQueueDrop), but only arrivals with a short queue push
/// other packets out.
#[derive(Clone, Copy, Debug)]
pub struct PushOutWithThreshold {
    /// Arrivals push packets out only if their queue is shorter than this (k), bytes.
    pub limit: u64,
}

impl Policy for PushOutWithThreshold {
    #[inline]
    fn on_arrival(&mut self, _view: View<'_>, _packet: PacketView) -> Verdict {
        Verdict::Accept
    }

    fn pushes_out(&self) -> bool {
        true
    }

    fn victim(&mut self, view: View<'_>, packet: PacketView, lengths: &[u64]) -> Option<usize> {
        if view.buffer.queue(packet.queue) >= self.limit {
            return None;
        }
        let longest = longest_with(lengths, packet.queue, packet.bytes);
        (longest != packet.queue).then_some(longest)
    }

    fn threshold(&self, _view: View<'_>, _queue: usize) -> Option<u64> {
        None
    }
}
