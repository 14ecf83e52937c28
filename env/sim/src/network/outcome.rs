//! The results of a simulation: a record per flow, a summary and, on request, timeline and drops.

use bufgym_util::convert::{self, index};
use serde::Serialize;

use super::ingress::IngressRow;
use crate::switch::{Loss, LosslessDrop, PfcInterval, SwitchId};
use crate::traffic::FlowSpec;
use crate::units::{Duration, Instant};

/// Flows of at most this many bytes are short.
pub const SHORT_BYTES: u64 = 100_000;
/// Flows of at least this many bytes are long.
pub const LONG_BYTES: u64 = 1_000_000;

/// Class that a flow counts towards in the summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowClass {
    /// One of a group of flows that starts together.
    Incast,
    /// At most 100 kB.
    Short,
    /// More than 100 kB and less than 1 MB.
    Medium,
    /// At least 1 MB.
    Long,
}

impl FlowClass {
    /// Returns the class of a flow.
    pub fn of(flow: &FlowSpec) -> FlowClass {
        match flow.size {
            _ if flow.query >= 0 => FlowClass::Incast,
            ..=SHORT_BYTES => FlowClass::Short,
            LONG_BYTES.. => FlowClass::Long,
            _ => FlowClass::Medium,
        }
    }

    /// Returns the name used in files.
    pub fn name(self) -> &'static str {
        match self {
            FlowClass::Incast => "incast",
            FlowClass::Short => "short",
            FlowClass::Medium => "medium",
            FlowClass::Long => "long",
        }
    }
}

/// The result of one flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowRecord {
    /// The flow as it was specified.
    pub spec: FlowSpec,
    /// Time at which the SYN-ACK arrived at the sender; the start time without a handshake.
    pub established: Option<Instant>,
    /// Time at which the last byte was delivered to the receiving application; for RDMA, as the setting
    /// `fct` defines.
    pub finish: Option<Instant>,
    /// Flow completion time: from the start to the finish.
    pub fct: Option<Duration>,
    /// Time that the completion time is compared with (`slowdown_base`), if there is one.
    pub base: Option<Duration>,
    /// FCT divided by the base.
    pub slowdown: Option<f64>,
    /// Expiries of the flow's retransmission timers, including those for SYN and SYN-ACK; 255 also
    /// stands for more.
    pub timeouts: u32,
}

/// State of one port at one instant.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct TimelineRow {
    /// The instant.
    #[serde(skip)]
    pub t: Instant,
    /// The port.
    pub port: u32,
    /// Bytes queued.
    pub queue_bytes: u64,
    /// Threshold: the queue length at which the port stops accepting.
    pub threshold_bytes: u64,
    /// Bytes in the whole buffer.
    pub occupancy_bytes: u64,
    /// Control factor, NaN for policies without one.
    pub alpha: f64,
    /// The switch.
    pub switch: SwitchId,
}

/// One lost packet, and the state of the buffer without it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DropRow {
    /// The instant, on the clock of the switch.
    pub t: Instant,
    /// The switch.
    pub switch: SwitchId,
    /// The port that the packet was for.
    pub port: u32,
    /// Bytes queued at that port.
    pub queue_bytes: u64,
    /// Bytes in the whole buffer.
    pub occupancy_bytes: u64,
    /// Reason of the loss.
    pub loss: Loss,
}

/// Results of one switch: losses and marks of the whole run. Other values are those within the measured
/// time, if the scenario has one (`measure_ms`), or else until the end of the run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct SwitchRow {
    /// Number of the switch.
    pub switch: SwitchId,
    /// `leaf` or `spine`; a single switch is a leaf.
    pub kind: &'static str,
    /// Size of the switch's buffer, bytes.
    pub buffer_bytes: u64,
    /// Packets that left its ports.
    pub packets_forwarded: u64,
    /// Packets lost, including those pushed out.
    pub drops: u64,
    /// Unscheduled packets among them.
    pub drops_unscheduled: u64,
    /// ECN marks of packets that were enqueued.
    pub marks: u64,
    /// Lost packets that the policy pushed out of their queues.
    pub pushed_out: u64,
    /// Median of the occupancy over time, as a share of the buffer, as all percentiles.
    pub p50_occupancy: f64,
    /// 95th percentile.
    pub p95_occupancy: f64,
    /// 99th percentile.
    pub p99_occupancy: f64,
    /// 99.99th percentile.
    pub p9999_occupancy: f64,
    /// Largest occupancy.
    pub max_occupancy: f64,
    /// Wire bytes that a leaf's links to the spines carried, as a share of their rates; NaN if
    /// there are none.
    pub uplink_throughput: f64,
}

/// Results of a simulation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Flow records in the order of the trace.
    pub records: Vec<FlowRecord>,
    /// Aggregates.
    pub summary: Summary,
    /// The switches, by number.
    pub switches: Vec<SwitchRow>,
    /// Timeline rows in order of time; empty unless requested.
    pub timeline: Vec<TimelineRow>,
    /// Lossless ingress queues in order of time; empty unless requested.
    pub ingress: Vec<IngressRow>,
    /// Lost packets in order of time; empty unless requested.
    pub drops: Vec<DropRow>,
    /// Time between consecutive decisions, picoseconds; empty without a control loop.
    pub trigger_intervals_ps: Vec<u64>,
    /// Times during which switches paused their neighbours, in the order of their beginnings.
    pub pauses: Vec<PfcInterval>,
    /// The first lossless packet that was lost.
    pub first_lossless_drop: Option<LosslessDrop>,
    /// Reason for which the watchdog stopped the run: which queues wait for which.
    pub stuck: Option<String>,
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
    /// Median flow completion time (nearest rank, as all percentiles).
    pub p50_fct_ms: f64,
    /// 95th percentile of flow completion times.
    pub p95_fct_ms: f64,
    /// 99th percentile of flow completion times.
    pub p99_fct_ms: f64,
    /// Mean of [`FlowRecord::slowdown`].
    pub mean_slowdown: f64,
    /// Mean FCT of flows of at most 100 kB.
    pub short_mean_fct_ms: f64,
    /// 99th percentile of FCT of flows of at most 100 kB.
    pub short_p99_fct_ms: f64,
    /// Mean FCT of flows of at least 1 MB.
    pub long_mean_fct_ms: f64,
    /// Mean FCT of in-cast flows: those of a group that starts together
    /// ([`FlowSpec::query`] not -1).
    pub incast_mean_fct_ms: f64,
    /// 99th percentile of FCT of in-cast flows.
    pub incast_p99_fct_ms: f64,
    /// Mean slowdown of flows of at most 100 kB.
    pub short_mean_slowdown: f64,
    /// Mean slowdown of flows of at least 1 MB.
    pub long_mean_slowdown: f64,
    /// Mean slowdown of in-cast flows.
    pub incast_mean_slowdown: f64,
    /// 99th percentile of the slowdown of flows of at most 100 kB.
    pub short_p99_slowdown: f64,
    /// 99th percentile of the slowdown of flows of at least 1 MB.
    pub long_p99_slowdown: f64,
    /// 99th percentile of the slowdown of in-cast flows.
    pub incast_p99_slowdown: f64,
    /// Packets lost at the switch, including those pushed out.
    pub drops: u64,
    /// Data packets among [`drops`](Summary::drops).
    pub drops_data: u64,
    /// Wire bytes of lost packets.
    pub dropped_bytes: u64,
    /// Lost packets that the policy pushed out of their queues.
    pub pushed_out: u64,
    /// ECN marks of packets that were enqueued.
    pub marks: u64,
    /// Expiries of retransmission timers, including those for SYNs.
    pub timeouts: u64,
    /// Part of the mean FCT that flows spent waiting for timers that expired: the lengths of all
    /// timeouts before the flows were complete, over the number of flows.
    pub timeout_wait_ms: f64,
    /// Tail loss probes (RFC 8985 §7).
    pub tail_probes: u64,
    /// Data packets that arrived at receivers that already had their segments.
    pub spurious_retransmissions: u64,
    /// Packets whose last bit left a switch port.
    pub packets_forwarded: u64,
    /// Simulated time until the last flow completed, seconds.
    pub simulated_s: f64,
    /// Wall time of the event loop, seconds.
    pub wall_s: f64,
    /// `packets_forwarded / wall_s`.
    pub packets_per_s: f64,
    /// Largest buffer occupancy, bytes; like the next field, without the warm-up.
    pub max_occupancy_bytes: u64,
    /// 99th percentile of occupancy over time, as a fraction of the buffer.
    pub p99_occupancy: f64,
    /// 99th percentile of queueing delay over forwarded packets, acknowledgements included,
    /// microseconds, within 0.4 %: from the arrival of the last bit at the switch to the departure
    /// of the first. NaN unless [measured](super::Recorders::measure_waits).
    pub p99_queueing_delay_us: f64,
    /// Data packets lost at the switch per data packet delivered. Retransmissions of segments that
    /// the receiver already has do not count as delivered.
    pub loss_per_delivered: f64,
    /// Payload bits per second delivered in order to all receivers, from the start of the first
    /// flow to the completion of the last one or the end of the simulation.
    pub goodput_bps: f64,
    /// Time-weighted mean of the bytes stored, by priority; empty if ports have one queue.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mean_bytes_by_priority: Vec<f64>,
    /// Pauses sent: frames that asked a neighbour to stop a lossless priority, without repetitions of
    /// the same pause.
    pub pauses: u64,
    /// Lossless packets among [`drops`](Summary::drops).
    pub drops_lossless: u64,
    /// Time during which a priority of a link was paused, milliseconds, all links together.
    pub paused_ms: f64,
    /// 99th percentile of the buffer space used by lossless packets, headroom included: a share of
    /// the buffer, over samples of all leaves. NaN without lossless priorities.
    pub p99_lossless_occupancy: f64,
    /// 99th percentile of the buffer space used by lossy packets, likewise.
    pub p99_lossy_occupancy: f64,
    /// Number of decisions of the control loop.
    pub decisions: u64,
}

/// Returns the value at or above `percent` per cent of `sorted` (nearest rank); NaN when empty.
pub(crate) fn nearest_rank(sorted: &[f64], percent: f64) -> f64 {
    if sorted.is_empty() {
        return f64::NAN;
    }
    let rank = convert::nearest_rank(percent / 100.0, sorted.len() as u64);
    sorted[index(rank) - 1]
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        f64::NAN
    } else {
        values.iter().sum::<f64>() / values.len() as f64
    }
}

impl Summary {
    /// Fills in the fields that are computed from flow records; those of flows that start before
    /// `from` do not count. In-cast flows count as neither short nor long if `apart`.
    pub(crate) fn with_records(
        mut self,
        records: &[FlowRecord],
        from: Instant,
        apart: bool,
    ) -> Summary {
        let counted = |spec: &FlowSpec| spec.start >= from;
        let class = |keep: &dyn Fn(&FlowSpec) -> bool| -> (Vec<f64>, Vec<f64>) {
            let mut fcts: Vec<f64> = Vec::new();
            let mut slowdowns = Vec::new();
            let kept = |record: &&FlowRecord| counted(&record.spec) && keep(&record.spec);
            for record in records.iter().filter(kept) {
                if let (Some(fct), Some(slowdown)) = (record.fct, record.slowdown) {
                    fcts.push(fct.as_ms_f64());
                    slowdowns.push(slowdown);
                }
            }
            fcts.sort_by(f64::total_cmp);
            (fcts, slowdowns)
        };
        let (all, slowdowns) = class(&|_| true);
        let sized = |flow: &FlowSpec| !apart || flow.query < 0;
        let (short, short_slowdowns) = class(&|flow| sized(flow) && flow.size <= SHORT_BYTES);
        let (long, long_slowdowns) = class(&|flow| sized(flow) && flow.size >= LONG_BYTES);
        let (incast, incast_slowdowns) = class(&|flow| flow.query >= 0);
        let p99 = |mut slowdowns: Vec<f64>| {
            slowdowns.sort_by(f64::total_cmp);
            nearest_rank(&slowdowns, 99.0)
        };
        let measured = records.iter().filter(|record| counted(&record.spec));
        self.flows = measured.count() as u64;
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
        self.incast_mean_slowdown = mean(&incast_slowdowns);
        self.short_p99_slowdown = p99(short_slowdowns);
        self.long_p99_slowdown = p99(long_slowdowns);
        self.incast_p99_slowdown = p99(incast_slowdowns);
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
