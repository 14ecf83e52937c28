//! What a critic may see in training and a switch cannot: the state of the senders.

use super::observation::log_scaled;
use crate::network::{FlowView, Simulator};
use crate::switch::Policy;

/// Privileged features per port.
pub const PRIVILEGED: usize = 12;

/// The privileged features, in order. Every one is scaled to about [0, 1].
pub const PRIVILEGED_NAMES: [&str; PRIVILEGED] = [
    "active flows to the port",
    "of these, stalled until a timeout",
    "sum of their times to the timeout, in units of the minimum RTO",
    "flows repairing losses",
    "lost segments not yet sent again",
    "bytes not yet acknowledged",
    "packets on their way, as bytes",
    "windows, each at most what is left of its flow",
    "flows in slow start",
    "distinct senders",
    "buffer occupancy / B",
    "flows with at most 100 kB left",
];

#[derive(Clone, Copy, Default)]
struct Sums {
    flows: f64,
    stalled: f64,
    waiting: f64,
    recovering: f64,
    lost: f64,
    remaining: f64,
    in_network: f64,
    windows: f64,
    slow_start: f64,
    short: f64,
}

impl Sums {
    fn add(&mut self, flow: &FlowView, min_rto_s: f64) {
        self.flows += 1.0;
        if let Some(wait) = flow.stalled_for {
            self.stalled += 1.0;
            self.waiting += wait.as_secs_f64() / min_rto_s;
        }
        self.recovering += f64::from(u8::from(flow.recovering));
        self.lost += f64::from(flow.lost_segments);
        self.remaining += flow.remaining_bytes as f64;
        self.in_network += f64::from(flow.in_network);
        self.windows += (u64::from(flow.cwnd)).min(flow.remaining_bytes) as f64;
        self.slow_start += f64::from(u8::from(flow.slow_start));
        self.short += f64::from(u8::from(flow.remaining_bytes <= 100_000));
    }
}

/// Largest port count for which distinct senders are counted exactly.
const MAX_SOURCES: usize = 1024;

/// Writes `[ports, PRIVILEGED]`.
pub(super) fn write<P: Policy>(simulator: &Simulator<P>, scale: Scale, out: &mut [f32]) {
    let ports = simulator.buffer().ports();
    let mut sums = vec![Sums::default(); ports];
    let mut senders = vec![[0u64; MAX_SOURCES / 64]; ports];
    for flow in simulator.active_flows() {
        let port = usize::from(flow.dst);
        sums[port].add(&flow, scale.min_rto_s);
        let source = usize::from(flow.src) % MAX_SOURCES;
        senders[port][source / 64] |= 1 << (source % 64);
    }
    let occupancy = simulator.buffer().occupancy() as f64 / scale.buffer;
    for ((sums, senders), row) in sums
        .iter()
        .zip(&senders)
        .zip(out.chunks_exact_mut(PRIVILEGED))
    {
        let distinct: u32 = senders.iter().map(|word| word.count_ones()).sum();
        row.copy_from_slice(&[
            log_scaled(sums.flows),
            log_scaled(sums.stalled),
            log_scaled(sums.waiting),
            log_scaled(sums.recovering),
            log_scaled(sums.lost / 16.0),
            log_scaled(sums.remaining / scale.buffer),
            log_scaled(8.0 * sums.in_network * scale.packet / scale.buffer),
            log_scaled(sums.windows / scale.buffer),
            log_scaled(sums.slow_start),
            log_scaled(f64::from(distinct)),
            occupancy.min(1.0) as f32,
            log_scaled(sums.short),
        ]);
    }
}

/// Units of the features.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// B, bytes.
    pub(super) buffer: f64,
    /// A full packet, bytes.
    pub(super) packet: f64,
    /// Minimum RTO, seconds.
    pub(super) min_rto_s: f64,
}
