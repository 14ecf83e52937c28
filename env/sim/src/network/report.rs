//! The simulation's report: records of flows, and aggregates.

use super::base::BaseTime;
use super::isolated::BaseFlow;
use super::observer::Observer;
use super::outcome::{FlowRecord, Outcome, Summary};
use super::simulator::Simulator;
use crate::engine::link::LinkKind;
use crate::engine::packet::PacketDirection;
use crate::engine::topology::{Route, Topology};
use crate::switch::{Policy, SharedBuffer, Switch};
use crate::traffic::{FlowSpec, host_number};
use crate::units::{Duration, Rate};

impl<P: Policy, O: Observer, T: Topology> Simulator<P, O, T> {
    /// Returns records and aggregates as of now. Recordings of the observer are handed over.
    pub fn outcome(&mut self) -> Outcome {
        let records = self.records();
        let mut outcome = Outcome {
            summary: self.summary().with_records(
                &records,
                self.window.from(),
                self.window.classes_apart,
            ),
            switches: self.switch_rows(),
            records,
            timeline: Vec::new(),
            ingress: Vec::new(),
            drops: Vec::new(),
            trigger_intervals_ps: Vec::new(),
            pauses: self.pauses(),
            first_lossless_drop: self.first_lossless_drop(),
            stuck: self.stuck().map(str::to_owned),
        };
        self.observer.report(&mut outcome);
        outcome
    }

    fn summary(&self) -> Summary {
        let wall_s = self.wall.as_secs_f64();
        let forwarded = self.packets_forwarded();
        let drops_data = self.count(|counters| counters.drops_data);
        let buffers = || self.switches.as_ref().iter().map(Switch::buffer);
        let occupancies = buffers().map(|buffer| buffer.occupancy_percentile(99.0));
        let pauses = self.pause_summary();
        Summary {
            pauses: pauses.pauses,
            drops_lossless: pauses.drops_lossless,
            paused_ms: pauses.paused_ms,
            p99_lossless_occupancy: pauses.p99_lossless,
            p99_lossy_occupancy: pauses.p99_lossy,
            drops: self.drops(),
            drops_data,
            dropped_bytes: self.count(|counters| counters.dropped_bytes),
            pushed_out: self.count(|counters| counters.pushed_out),
            marks: self.count(|counters| counters.marks),
            timeouts: self.hosts.counters().timeouts,
            timeout_wait_ms: self.timeout_wait_ms(),
            tail_probes: self.hosts.counters().tail_probes,
            spurious_retransmissions: self.hosts.counters().duplicates,
            packets_forwarded: forwarded,
            simulated_s: self.last_finish().as_secs_f64(),
            wall_s,
            packets_per_s: if wall_s > 0.0 {
                forwarded as f64 / wall_s
            } else {
                0.0
            },
            max_occupancy_bytes: buffers()
                .map(SharedBuffer::max_occupancy)
                .max()
                .unwrap_or(0),
            p99_occupancy: occupancies.fold(0.0, f64::max),
            p99_queueing_delay_us: f64::NAN,
            loss_per_delivered: drops_data as f64 / self.delivered_segments() as f64,
            goodput_bps: self.goodput_bps(),
            mean_bytes_by_priority: self.mean_bytes_by_priority(),
            ..Summary::default()
        }
    }

    fn timeout_wait_ms(&self) -> f64 {
        let waited = self.hosts.counters().timeout_wait_ps as f64 * 1e-9;
        waited / self.hosts.flows() as f64
    }

    fn mean_bytes_by_priority(&self) -> Vec<f64> {
        let mut sums = Vec::new();
        for switch in self.switches.as_ref() {
            let means = switch.buffer().mean_by_priority();
            sums.resize(means.len(), 0.0);
            sums.iter_mut()
                .zip(means)
                .for_each(|(sum, mean)| *sum += mean);
        }
        sums
    }

    /// Returns the number of data packets, without duplicates, that receivers have in order.
    fn delivered_segments(&self) -> u64 {
        let flows = 0..self.hosts.flows();
        flows
            .map(|number| u64::from(self.hosts.delivered_segments(number)))
            .sum()
    }

    fn goodput_bps(&self) -> f64 {
        if self.hosts.flows() == 0 {
            return f64::NAN;
        }
        let mss = u64::from(self.hosts.settings().mss);
        let delivered = |number: usize| {
            let segments = u64::from(self.hosts.delivered_segments(number));
            self.hosts.spec(number).size.min(segments * mss)
        };
        let bytes: u64 = (0..self.hosts.flows()).map(delivered).sum();
        let end = if self.finished() {
            self.last_finish()
        } else {
            self.now()
        };
        let span = end.saturating_since(self.hosts.first_start());
        8.0 * bytes as f64 / span.as_secs_f64()
    }

    fn records(&self) -> Vec<FlowRecord> {
        let base = BaseTime::new(&self.scenario);
        let mut by_place: Vec<(u32, FlowRecord)> = (0..self.hosts.flows())
            .map(|number| (self.hosts.place(number), self.record(number, &base)))
            .collect();
        by_place.sort_by_key(|entry| entry.0);
        by_place.into_iter().map(|entry| entry.1).collect()
    }

    /// Returns the rates and delays of the links on a flow's path, if those between switches differ.
    fn links_of(&self, number: usize, spec: &FlowSpec) -> Option<Vec<(Rate, Duration)>> {
        let route = Route {
            src: host_number(spec.src),
            dst: host_number(spec.dst),
            flow: u32::try_from(number).unwrap_or(u32::MAX),
            direction: PacketDirection::Forward,
            turn: 0,
            came: None,
        };
        let kinds = self.topology().links_on_path(route)?;
        let links = &self.engine.links;
        let of = |kind: LinkKind| (links.rate(kind), links.propagation(kind));
        Some(kinds.into_iter().map(of).collect())
    }

    fn record(&self, number: usize, times: &BaseTime) -> FlowRecord {
        let spec = self.hosts.spec(number);
        let finish = self.hosts.finish(number);
        let fct = finish.map(|finish| finish - spec.start);
        let base = finish.map(|_| {
            let switch_of = |host: u32| self.topology().switch_of(host_number(host));
            let links = self.links_of(number, &spec);
            let flow = BaseFlow {
                bytes: spec.size,
                across: switch_of(spec.src) != switch_of(spec.dst),
                connected: self.scenario.demand.preconnected && spec.query >= 0,
                transport: self
                    .scenario
                    .transport_of(spec.query >= 0, self.second == Some(spec.kind)),
            };
            times.over(flow, links.as_deref())
        });
        let slowdown = |(fct, base): (Duration, Duration)| fct.as_secs_f64() / base.as_secs_f64();
        FlowRecord {
            spec,
            established: self.hosts.established(number),
            finish,
            fct,
            base,
            slowdown: fct.zip(base).map(slowdown),
            timeouts: self.hosts.timeouts_of(number),
        }
    }
}
