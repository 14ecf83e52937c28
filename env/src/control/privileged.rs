//! Features that a switch cannot measure but a critic may use in training: the state of the senders
//! and future traffic.
//!
//! Future arrivals do not depend on the actions. A critic that knows them therefore leaves the
//! policy's optimum unchanged and reduces noise (Mao et al., ICLR 2019).

use super::ideal::{Arrivals, IdealRun, Lag};
use super::observation::log_scaled;
use super::ways::{ControlTopology, Paths};
use bufgym_sim::network::{FlowView, SwitchId};
use bufgym_sim::switch::SharedBuffer;
use bufgym_sim::units::{Duration, Instant};
use bufgym_util::convert::single;

/// Privileged features per port.
pub const PRIVILEGED: usize = 22;

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
    "flows that an unlimited buffer would have completed",
    "time left to active flows until it would, in units of the minimum RTO / 4",
    "the same for flows that are complete already",
    "flows that start within a quarter of the buffer's drain time, 8 B / C",
    "flows that start within the drain time",
    "flows that start within 4 drain times",
    "bytes of the flows that start within the drain time, in eighths of what fits through",
    "bytes of the flows that start within 4 drain times, likewise",
    "bytes of the flows that start within 16 drain times, likewise",
    "bytes of the flows that start within 64 drain times, likewise",
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

/// Largest number of hosts for which distinct senders are counted exactly.
const MAX_SOURCES: usize = 1024;

/// Horizons for counting arrivals, in quarters of the buffer's drain time.
const WINDOWS: [u64; 5] = [1, 4, 16, 64, 256];

/// Inputs of the features.
pub(super) struct Known<'a, T> {
    pub(super) switch: SwitchId,
    pub(super) ways: &'a Paths<T>,
    pub(super) buffer: &'a SharedBuffer,
    /// Time on the hosts' clock.
    pub(super) now: Instant,
    /// Active flows.
    pub(super) flows: &'a [FlowView],
    /// The ideal run, if it is the reward's baseline.
    pub(super) ideal: Option<&'a IdealRun<T>>,
    /// Future flows by place.
    pub(super) arrivals: &'a Arrivals,
}

/// Writes `[ports, PRIVILEGED]` of the switch. "To the port" means through it on the way to a receiver.
pub(super) fn write<T: ControlTopology>(known: &Known<'_, T>, scale: Scale, out: &mut [f32]) {
    let places = known.ways.places_of(known.switch);
    let ports = places.len();
    let mut sums = vec![Sums::default(); ports];
    let mut senders = vec![[0u64; MAX_SOURCES / 64]; ports];
    for flow in known.flows {
        let source = usize::from(flow.src) % MAX_SOURCES;
        known
            .ways
            .visit_at(known.switch, (flow.number, flow.dst), |port, _| {
                sums[port].add(flow, scale.min_rto_s);
                senders[port][source / 64] |= 1 << (source % 64);
            });
    }
    let now = known.now;
    let mut lags = vec![Lag::default(); ports];
    if let Some(ideal) = known.ideal {
        ideal.compare(known.switch, now, known.flows, &mut lags);
    }
    let occupancy = known.buffer.occupancy() as f64 / scale.buffer;
    let rows = out.chunks_exact_mut(PRIVILEGED);
    for (port, row) in (0..ports).zip(rows) {
        let (sums, senders, lag) = (&sums[port], &senders[port], lags[port]);
        let upcoming = WINDOWS.map(|quarters| {
            let span = (scale.drain / 4).saturating_mul(quarters);
            known.arrivals.within(places.start + port, now, span)
        });
        let flows_within = |window: usize| log_scaled(upcoming[window].0 as f64);
        let bytes_within = |window: usize| {
            let room = scale.buffer * WINDOWS[window] as f64 / 4.0;
            log_scaled(8.0 * upcoming[window].1 as f64 / room)
        };
        let ideal_unit = 4.0 / scale.min_rto_s;
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
            single(occupancy.min(1.0)),
            log_scaled(sums.short),
            log_scaled(lag.overdue),
            log_scaled(lag.slack_s * ideal_unit),
            log_scaled(lag.early_s * ideal_unit),
            flows_within(0),
            flows_within(1),
            flows_within(2),
            bytes_within(1),
            bytes_within(2),
            bytes_within(3),
            bytes_within(4),
        ]);
    }
}

/// Units that features are divided by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// B, bytes.
    pub(super) buffer: f64,
    /// A full packet, bytes.
    pub(super) packet: f64,
    /// Minimum RTO, seconds.
    pub(super) min_rto_s: f64,
    /// Drain time of a full buffer through one port, 8 B / C.
    pub(super) drain: Duration,
}
