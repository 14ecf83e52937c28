//! What users and the control loop read from a simulation.

use std::time::Duration;

use super::flow::Flow;
use super::{Pause, Simulator, TimelineRecorder};
use crate::network::FlowMeter;
use crate::network::event::Timer;
use crate::network::outcome::{FlowRecord, Outcome, Summary, TimelineRow};
use crate::switch::{Policy, SharedBuffer};
use crate::units::Time;

/// One active flow, as only the simulator can see it.
#[derive(Clone, Copy, Debug)]
pub struct FlowView {
    /// Its place in the trace.
    pub index: u32,
    /// Sending host.
    pub src: u16,
    /// Receiving host and switch port.
    pub dst: u16,
    /// Payload bytes not yet acknowledged.
    pub remaining_bytes: u64,
    /// Congestion window, bytes.
    pub cwnd: u32,
    /// Packets on their way, data and acknowledgements.
    pub in_network: u32,
    /// Segments known to be lost that wait to be sent again.
    pub lost_segments: u32,
    /// Losses are being repaired.
    pub recovering: bool,
    /// The window still doubles.
    pub slow_start: bool,
    /// Only the timer helps, after this long: nothing is on its way, or a loss will go unnoticed.
    pub stalled_for: Option<Time>,
}

impl<P: Policy> Simulator<P> {
    /// Runs to the end and reports.
    ///
    /// A policy that pauses for decisions goes on with what it has.
    pub fn run(&mut self) -> Outcome {
        while !matches!(self.advance(), Pause::Finished | Pause::TimeLimit) {}
        self.outcome()
    }

    /// The current instant on the clock of the hosts. What the switch does now reaches them one
    /// propagation delay after it, so this clock is ahead of the switch's by that.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Whether all flows are complete.
    pub fn finished(&self) -> bool {
        self.completed == self.flows.len()
    }

    /// The shared buffer.
    pub fn buffer(&self) -> &SharedBuffer {
        &self.buffer
    }

    /// The policy.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// The policy, for the control loop.
    pub fn policy_mut(&mut self) -> &mut P {
        &mut self.policy
    }

    /// The policy and the buffer that it sees.
    pub fn policy_and_buffer(&mut self) -> (&mut P, &SharedBuffer) {
        (&mut self.policy, &self.buffer)
    }

    /// Packets whose last bit has left a switch port.
    pub fn packets_forwarded(&self) -> u64 {
        self.counters.forwarded
    }

    /// When the last flow so far was complete.
    pub fn last_finish(&self) -> Time {
        self.last_finish
    }

    /// Wall time spent in the event loop.
    pub fn wall_time(&self) -> Duration {
        self.wall
    }

    /// Flows that have started and are not complete, in no particular but a deterministic order.
    pub fn active_flows(&self) -> impl Iterator<Item = FlowView> + '_ {
        self.active.iter().map(|&index| {
            let flow = &self.flows[index as usize];
            let stalled = flow.signs.established() && (flow.in_network == 0 || flow.signs.doomed());
            FlowView {
                index: self.roster.place(index as usize),
                src: flow.src,
                dst: flow.dst,
                remaining_bytes: flow.sender.unacknowledged_bytes(&self.settings),
                cwnd: flow.sender.cwnd(),
                in_network: flow.in_network,
                lost_segments: flow.sender.lost_unsent(),
                recovering: flow.sender.is_recovering(),
                slow_start: flow.sender.in_slow_start(),
                stalled_for: stalled.then(|| flow.sender.deadline().saturating_since(self.now)),
            }
        })
    }

    /// Makes [`advance`](Simulator::advance) return with `tag` after `delay`.
    pub fn set_alarm(&mut self, delay: Time, tag: u64) {
        self.events.set_timer(self.now, delay, Timer::Alarm(tag));
    }

    pub fn set_meter(&mut self, meter: FlowMeter) {
        self.meter = Some(Box::new(meter));
    }

    pub fn meter_mut(&mut self) -> Option<&mut FlowMeter> {
        self.meter.as_deref_mut()
    }

    /// Records the state of every port that holds bytes, and once when it empties, every
    /// `interval` of simulated time from now on.
    pub fn record_timeline(&mut self, interval: Time) {
        let interval = interval.max(Time(1));
        self.timeline = Some(Box::new(TimelineRecorder {
            interval,
            next: self.switch_now(),
            rows: Vec::new(),
        }));
    }

    /// Records every lost packet from now on.
    pub fn record_drops(&mut self) {
        self.drops.get_or_insert_default();
    }

    /// Measures how long packets wait in the switch, for
    /// [`Summary::p99_queueing_delay_us`]; to be called before the run.
    pub fn measure_waits(&mut self) {
        self.waits = Some(Box::default());
    }

    pub(super) fn record_timeline_until(&mut self, now: Time) {
        let Some(mut recorder) = self.timeline.take() else {
            return;
        };
        if recorder.next <= now {
            // Nothing changes between events: skip to the last sample before this one.
            let missed = (now.0 - recorder.next.0) / recorder.interval.0;
            self.sample_ports(recorder.next, &mut recorder.rows);
            recorder.next = Time(recorder.next.0 + (missed + 1) * recorder.interval.0);
        }
        self.timeline = Some(recorder);
    }

    fn sample_ports(&self, t: Time, rows: &mut Vec<TimelineRow>) {
        for port in 0..self.ports.len() {
            // Of several queues the first one's threshold stands for the port.
            let queue = port * self.queues_per_port;
            rows.push(TimelineRow {
                t,
                port: port as u32,
                queue_bytes: self.buffer.port(port),
                threshold_bytes: self
                    .policy
                    .threshold(self.view(), queue)
                    .unwrap_or(self.buffer.capacity()),
                occupancy_bytes: self.buffer.occupancy(),
                alpha: self.policy.alpha(queue).unwrap_or(f64::NAN),
            });
        }
    }

    /// Records and aggregates as of now. The timeline and the drops are handed over.
    pub fn outcome(&mut self) -> Outcome {
        let records = self.records();
        let wall_s = self.wall.as_secs_f64();
        let summary = Summary {
            drops: self.counters.drops,
            drops_data: self.counters.drops_data,
            dropped_bytes: self.counters.dropped_bytes,
            pushed_out: self.counters.pushed_out,
            marks: self.counters.marks,
            timeouts: self.counters.timeouts,
            packets_forwarded: self.counters.forwarded,
            simulated_s: self.last_finish.as_secs_f64(),
            wall_s,
            packets_per_s: if wall_s > 0.0 {
                self.counters.forwarded as f64 / wall_s
            } else {
                0.0
            },
            max_occupancy_bytes: self.buffer.max_occupancy(),
            p99_occupancy: self.buffer.occupancy_percentile(99.0),
            p99_queueing_delay_us: self
                .waits
                .as_ref()
                .map_or(f64::NAN, |waits| waits.percentile_us(99.0)),
            loss_per_delivered: self.counters.drops_data as f64 / self.delivered_packets() as f64,
            goodput_bps: self.goodput_bps(),
            mean_bytes_by_priority: self.buffer.mean_by_priority(),
            ..Summary::default()
        }
        .with_records(&records);
        Outcome {
            records,
            summary,
            timeline: self
                .timeline
                .take()
                .map(|recorder| recorder.rows)
                .unwrap_or_default(),
            drops: self.drops.take().unwrap_or_default(),
            trigger_intervals_ps: Vec::new(),
        }
    }

    /// Data packets, without duplicates, that receivers have in order.
    fn delivered_packets(&self) -> u64 {
        let of_flow = |flow: &Flow| u64::from(flow.delivered_segments());
        self.flows.iter().map(of_flow).sum()
    }

    fn goodput_bps(&self) -> f64 {
        if self.flows.is_empty() {
            return f64::NAN;
        }
        let delivered = |index: usize| {
            let flow = &self.flows[index];
            let size = self.roster.spec(index, flow, &self.settings).size;
            size.min(u64::from(flow.delivered_segments()) * u64::from(self.settings.mss))
        };
        let bytes: u64 = (0..self.flows.len()).map(delivered).sum();
        let end = if self.finished() {
            self.last_finish
        } else {
            self.now
        };
        let span = end.saturating_since(self.roster.start(0).unwrap_or_default());
        8.0 * bytes as f64 / span.as_secs_f64()
    }

    fn records(&self) -> Vec<FlowRecord> {
        let mut by_place: Vec<(u32, FlowRecord)> = (0..self.flows.len())
            .map(|index| (self.roster.place(index), self.record(index)))
            .collect();
        by_place.sort_by_key(|entry| entry.0);
        by_place.into_iter().map(|entry| entry.1).collect()
    }

    fn record(&self, index: usize) -> FlowRecord {
        let flow = &self.flows[index];
        let spec = self.roster.spec(index, flow, &self.settings);
        let finish = flow.stage.finish();
        let fct = finish.map(|finish| finish - spec.start);
        FlowRecord {
            spec,
            established: self.roster.established(index),
            finish,
            fct,
            slowdown: fct
                .map(|fct| fct.as_secs_f64() / self.isolated.completion(spec.size).as_secs_f64()),
        }
    }
}
