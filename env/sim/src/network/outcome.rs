//! What a simulation yields: a record per flow, a summary and, on request, a timeline.

use serde::Serialize;

use crate::switch::{Loss, SwitchId};
use crate::traffic::FlowSpec;
use crate::units::Time;

/// Flows of at most this many bytes are short.
pub const SHORT_BYTES: u64 = 100_000;
/// Flows of at least this many bytes are long.
pub const LONG_BYTES: u64 = 1_000_000;

/// What became of one flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowRecord {
    /// The flow as it was specified.
    pub spec: FlowSpec,
    /// When the SYN-ACK arrived at the sender; the start where there is no handshake.
    pub established: Option<Time>,
    /// When the last byte was delivered to the receiving application.
    pub finish: Option<Time>,
    /// Flow completion time: from the start to the finish.
    pub fct: Option<Time>,
    /// FCT divided by the FCT of this flow alone in the network.
    pub slowdown: Option<f64>,
}

/// One port at one instant.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct TimelineRow {
    /// The instant.
    #[serde(skip)]
    pub t: Time,
    /// The port.
    pub port: u32,
    /// Bytes queued.
    pub queue_bytes: u64,
    /// Queue length at which the port stops accepting.
    pub threshold_bytes: u64,
    /// Bytes in the whole buffer.
    pub occupancy_bytes: u64,
    /// Control factor, NaN for policies without one.
    pub alpha: f64,
    /// The switch.
    pub switch: SwitchId,
}

/// One lost packet, and the buffer as it was: without a packet that never entered it, and with one
/// that was pushed out gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DropRow {
    /// The instant, on the clock of the switch.
    pub t: Time,
    /// The switch.
    pub switch: SwitchId,
    /// The port that the packet was for.
    pub port: u32,
    /// Bytes queued at that port.
    pub queue_bytes: u64,
    /// Bytes in the whole buffer.
    pub occupancy_bytes: u64,
    /// Why it was lost.
    pub loss: Loss,
}

/// Everything a simulation yields.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// In the order of the trace.
    pub records: Vec<FlowRecord>,
    /// Aggregates.
    pub summary: Summary,
    /// Rows in order of time; empty unless asked for.
    pub timeline: Vec<TimelineRow>,
    /// Lost packets in order of time; empty unless asked for.
    pub drops: Vec<DropRow>,
    /// Time between consecutive decisions, picoseconds; empty without a control loop.
    pub trigger_intervals_ps: Vec<u64>,
}

/// Aggregates over one simulation. Times are NaN where no flow of the class completed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Flows in the trace.
    pub flows: u64,
    /// Flows that completed.
    pub completed: u64,
    /// Mean flow completion time.
    pub mean_fct_ms: f64,
    /// Median (nearest rank, as the other percentiles).
    pub p50_fct_ms: f64,
    /// 95th percentile.
    pub p95_fct_ms: f64,
    /// 99th percentile.
    pub p99_fct_ms: f64,
    /// Mean of FCT over FCT alone in the network.
    pub mean_slowdown: f64,
    /// Mean FCT of flows of at most 100 kB.
    pub short_mean_fct_ms: f64,
    /// 99th percentile of the same.
    pub short_p99_fct_ms: f64,
    /// Mean FCT of flows of at least 1 MB.
    pub long_mean_fct_ms: f64,
    /// Mean FCT of in-cast flows: those of a group that starts together
    /// ([`FlowSpec::query`] not -1).
    pub incast_mean_fct_ms: f64,
    /// 99th percentile of the same.
    pub incast_p99_fct_ms: f64,
    /// Mean slowdown of flows of at most 100 kB.
    pub short_mean_slowdown: f64,
    /// Mean slowdown of flows of at least 1 MB.
    pub long_mean_slowdown: f64,
    /// Packets lost at the switch, those pushed out among them.
    pub drops: u64,
    /// Data packets among them.
    pub drops_data: u64,
    /// Wire bytes dropped.
    pub dropped_bytes: u64,
    /// Packets among them that were enqueued before.
    pub pushed_out: u64,
    /// ECN marks.
    pub marks: u64,
    /// Expiries of retransmission timers, SYN included.
    pub timeouts: u64,
    /// Packets whose last bit left a switch port.
    pub packets_forwarded: u64,
    /// Simulated time until the last flow completed, seconds.
    pub simulated_s: f64,
    /// Wall time of the event loop, seconds.
    pub wall_s: f64,
    /// `packets_forwarded / wall_s`.
    pub packets_per_s: f64,
    /// Largest buffer occupancy, bytes.
    pub max_occupancy_bytes: u64,
    /// 99th percentile of occupancy over time, as a fraction of the buffer.
    pub p99_occupancy: f64,
    /// 99th percentile over packets, acknowledgements included, of the time from the arrival of the
    /// last bit at the switch to the departure of the first, microseconds; within 0.4 %. Packets
    /// that are lost do not count. NaN unless
    /// [measured](super::Recorders::measure_waits).
    pub p99_queueing_delay_us: f64,
    /// Data packets lost at the switch for each one delivered; retransmissions that the receiver
    /// has already are not delivered.
    pub loss_per_delivered: f64,
    /// Payload bits delivered in order to all receivers together for each second from the start of
    /// the first flow to the completion of the last one, or to the end of the simulation.
    pub goodput_bps: f64,
    /// Bytes stored on average over time, by priority; empty where ports have one queue.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mean_bytes_by_priority: Vec<f64>,
    /// Decisions of the control loop.
    pub decisions: u64,
}

/// The value at or above `percent` per cent of `sorted` (nearest rank); NaN when empty.
pub(crate) fn nearest_rank(sorted: &[f64], percent: f64) -> f64 {
    if sorted.is_empty() {
        return f64::NAN;
    }
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        f64::NAN
    } else {
        values.iter().sum::<f64>() / values.len() as f64
    }
}

impl Summary {
    /// Fills in what follows from the flow records.
    pub(crate) fn with_records(mut self, records: &[FlowRecord]) -> Summary {
        let class = |keep: &dyn Fn(&FlowSpec) -> bool| -> (Vec<f64>, Vec<f64>) {
            let mut fcts: Vec<f64> = Vec::new();
            let mut slowdowns = Vec::new();
            for record in records.iter().filter(|record| keep(&record.spec)) {
                if let (Some(fct), Some(slowdown)) = (record.fct, record.slowdown) {
                    fcts.push(fct.as_ms_f64());
                    slowdowns.push(slowdown);
                }
            }
            fcts.sort_by(f64::total_cmp);
            (fcts, slowdowns)
        };
        let (all, slowdowns) = class(&|_| true);
        let (short, short_slowdowns) = class(&|flow| flow.size <= SHORT_BYTES);
        let (long, long_slowdowns) = class(&|flow| flow.size >= LONG_BYTES);
        let (incast, _) = class(&|flow| flow.query >= 0);
        self.flows = records.len() as u64;
        self.completed = all.len() as u64;
        self.mean_fct_ms = mean(&all);
        self.p50_fct_ms = nearest_rank(&all, 50.0);
        self.p95_fct_ms = nearest_rank(&all, 95.0);
        self.p99_fct_ms = nearest_rank(&all, 99.0);
        self.mean_slowdown = mean(&slowdowns);
        self.short_mean_fct_ms = mean(&short);
        self.short_p99_fct_ms = nearest_rank(&short, 99.0);
        self.long_mean_fct_ms = mean(&long);
        self.incast_mean_fct_ms = mean(&incast);
        self.incast_p99_fct_ms = nearest_rank(&incast, 99.0);
        self.short_mean_slowdown = mean(&short_slowdowns);
        self.long_mean_slowdown = mean(&long_slowdowns);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_rank_takes_an_element() {
        let values = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(nearest_rank(&values, 50.0), 2.0);
        assert_eq!(nearest_rank(&values, 51.0), 3.0);
        assert_eq!(nearest_rank(&values, 99.0), 4.0);
        assert!(nearest_rank(&[], 50.0).is_nan());
    }
}
