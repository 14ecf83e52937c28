//! Occamy (Shan et al., EuroSys 2025): Dynamic Threshold with a large α. Queues above their
//! threshold lose packets as far as the unused memory bandwidth allows.

use bufgym_util::convert::floor_u64;

use super::dt::ALPHA;
use super::{
    Bound, Definition, Deployment, Kind, Loss, PacketView, ParameterInfo, Policy, PolicyInfo,
    Search, Verdict, View,
};
use crate::scenario::Scenario;
use crate::units::{Instant, Rate};

pub(super) static DEFINITION: Definition = Definition {
    info: PolicyInfo {
        name: "occamy",
        summary: "Dynamic Threshold that takes memory back with spare memory bandwidth",
        rule: "accept iff q_i < alpha (B - Q); queues above it lose head packets in turn, within the budget",
        source: "Shan et al., EuroSys 2025",
        deployment: Deployment::NewHardware,
        parameters: &[
            ParameterInfo {
                default: "8",
                ..ALPHA
            },
            ParameterInfo {
                name: "bandwidth",
                default: "1",
                kind: Kind::Positive,
                search: Search::log(0.125, 64.0),
                meaning: "memory bandwidth; 1 lets all ports write and read at line rate at once",
            },
            ParameterInfo {
                name: "burst_bytes",
                default: "a full packet for each port",
                kind: Kind::Bytes,
                search: Search::log_to(1.0, Bound::Buffer(1.0))
                    .at_least(Bound::Packets(1.0))
                    .from(Bound::Packets(16.0)),
                meaning: "unused bandwidth that is kept, bytes, at least a full packet",
            },
        ],
    },
    build: |arguments, scenario| {
        let packet_bytes = scenario.full_packet_bytes();
        let burst = arguments.optional("burst_bytes");
        if let Some(burst) = burst
            && burst < packet_bytes
        {
            return Err(format!(
                "burst_bytes={burst} pays for no full packet; needs at least {packet_bytes}"
            ));
        }
        let burst = burst.unwrap_or(u64::from(scenario.network.ports) * packet_bytes);
        let budget = Budget::new(arguments.value("bandwidth"), burst, scenario);
        Ok(Occamy::new(arguments.value("alpha"), scenario.queue_count(), budget).into())
    },
};

/// The memory bandwidth that arrivals and departures do not use, as a token bucket in bytes.
///
/// The memory has a bandwidth of `bandwidth · 2NC`; with 1 all ports can write and read at line
/// rate C. Every packet that is written, read or removed takes its bytes. Arrivals and departures
/// never wait for tokens.
#[derive(Clone, Copy, Debug)]
struct Budget {
    bytes_per_ps: f64,
    /// Size of the bucket, bytes.
    burst: f64,
    /// Tokens needed to remove a packet: the bytes of a full packet.
    price: f64,
    tokens: f64,
    updated: Instant,
}

impl Budget {
    fn new(bandwidth: f64, burst: u64, scenario: &Scenario) -> Budget {
        let Rate(line) = scenario.rate();
        let lines = 2.0 * f64::from(scenario.network.ports);
        Budget {
            bytes_per_ps: bandwidth * lines * line as f64 / 8e12,
            burst: burst as f64,
            price: scenario.full_packet_bytes() as f64,
            tokens: burst as f64,
            updated: Instant::ZERO,
        }
    }

    #[inline]
    fn refill(&mut self, now: Instant) {
        let elapsed = now.saturating_since(self.updated).0 as f64;
        self.tokens = (self.tokens + elapsed * self.bytes_per_ps).min(self.burst);
        self.updated = now;
    }

    #[inline]
    fn take(&mut self, now: Instant, bytes: u64) {
        self.refill(now);
        self.tokens = (self.tokens - bytes as f64).max(0.0);
    }
}

/// Accepts like DT. Queues longer than `T = α(B - Q)` lose packets at their heads, in turn, as fast
/// as the unused memory bandwidth allows.
#[derive(Clone, Debug)]
pub struct Occamy {
    /// α of every queue.
    alphas: Box<[f64]>,
    least_alpha: f64,
    budget: Budget,
    /// The queue that is checked first.
    turn: usize,
}

impl Occamy {
    fn new(alpha: f64, queues: usize, budget: Budget) -> Occamy {
        Occamy {
            alphas: vec![alpha; queues].into_boxed_slice(),
            least_alpha: alpha,
            budget,
            turn: 0,
        }
    }
}

impl Policy for Occamy {
    #[inline]
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        if (view.buffer.queue(packet.queue) as f64)
            < self.alphas[packet.queue] * view.buffer.free() as f64
        {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }

    #[inline]
    fn on_enqueue(&mut self, view: View<'_>, packet: PacketView) {
        self.budget.take(view.now, packet.bytes);
    }

    #[inline]
    fn on_departure(&mut self, view: View<'_>, packet: PacketView) {
        self.budget.take(view.now, packet.bytes);
    }

    fn on_drop(&mut self, view: View<'_>, packet: PacketView, loss: Loss) {
        if matches!(loss, Loss::PushedOut | Loss::Head) {
            self.budget.take(view.now, packet.bytes);
        }
    }

    fn pushes_out(&self) -> bool {
        true
    }

    fn expel(&mut self, view: View<'_>) -> Option<usize> {
        let free = view.buffer.free() as f64;
        // No queue is longer than the occupancy.
        if view.buffer.occupancy() as f64 <= self.least_alpha * free {
            return None;
        }
        self.budget.refill(view.now);
        if self.budget.tokens < self.budget.price {
            return None;
        }
        let lengths = view.buffer.queues();
        let above = |queue: &usize| lengths[*queue] as f64 > self.alphas[*queue] * free;
        let found = (self.turn..lengths.len()).chain(0..self.turn).find(above)?;
        self.turn = (found + 1) % lengths.len();
        Some(found)
    }

    fn threshold(&self, view: View<'_>, queue: usize) -> Option<u64> {
        Some(floor_u64(self.alphas[queue] * view.buffer.free() as f64))
    }

    fn alpha(&self, queue: usize) -> Option<f64> {
        Some(self.alphas[queue])
    }

    fn set_alpha(&mut self, queue: usize, alpha: f64) -> bool {
        let before = std::mem::replace(&mut self.alphas[queue], alpha);
        if alpha <= self.least_alpha {
            self.least_alpha = alpha;
        } else if before == self.least_alpha {
            self.least_alpha = self.alphas.iter().copied().fold(alpha, f64::min);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::policy::workbench::Workbench;

    /// A packet that queue management drops at the head is read from memory like one that is pushed
    /// out.
    #[test]
    fn drops_at_the_head_take_bandwidth() {
        let budget = Budget::new(1.0, 50_000, &Scenario::default());
        let mut bench = Workbench::new(Occamy::new(8.0, 2, budget), 1_000_000, 2);
        assert!(bench.accepts(0, 1_000) && bench.drop_first(0));
        assert_eq!(bench.policy.budget.tokens, 48_000.0);
    }
}
