//! The ideal run: the same trace with an unlimited buffer, which no policy influences.

use super::meter::{FlowMeter, PortTotals};
use bufgym_sim::network::{FlowView, OneSwitch, SimError};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::{Trace, host_number};
use bufgym_sim::units::Time;

/// Starts and completions of a trace's flows with an unlimited buffer, replayed in step with the
/// controlled run.
#[derive(Clone, Debug)]
pub(super) struct IdealRun {
    /// Completion time of every flow.
    finish: Vec<Time>,
    /// Starts and completions in order of time, at equal times in order of flows.
    events: Vec<Event>,
    next: usize,
    active: Vec<Event>,
    meter: FlowMeter,
    topology: OneSwitch,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Event {
    at: Time,
    flow: u32,
    port: u32,
    starts: bool,
}

/// How far the flows to one port are behind or ahead of the ideal run.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Lag {
    /// Number of active flows that are complete in the ideal run.
    pub(super) overdue: f64,
    /// Sum over active flows of the time until they complete in the ideal run, seconds.
    pub(super) slack_s: f64,
    /// The same sum over complete flows.
    pub(super) early_s: f64,
}

impl IdealRun {
    /// Simulates the trace once.
    pub(super) fn new(
        scenario: &Scenario,
        trace: &Trace,
        tau_s: f64,
    ) -> Result<IdealRun, SimError> {
        let mut simulator = PolicySpec::unlimited()
            .simulator(scenario, trace)?
            .observed(());
        let outcome = simulator.run();
        let topology = *simulator.topology();
        let end = outcome.records.iter().filter_map(|record| record.finish);
        let end = end.max().unwrap_or(Time::ZERO);
        let finish: Vec<Time> = outcome
            .records
            .iter()
            .map(|record| record.finish.unwrap_or(end))
            .collect();
        let mut events = Vec::with_capacity(2 * finish.len());
        for ((spec, &finish), flow) in trace.flows.iter().zip(&finish).zip(0..) {
            let start = spec.start;
            for (at, starts) in [(start, true), (finish.max(start), false)] {
                events.push(Event {
                    at,
                    flow,
                    port: u32::from(host_number(spec.dst)),
                    starts,
                });
            }
        }
        events.sort_unstable();
        Ok(IdealRun {
            finish,
            events,
            next: 0,
            active: Vec::new(),
            meter: FlowMeter::new(topology.ports, tau_s),
            topology,
        })
    }

    /// Ends the interval at `now` and reports the totals of every port.
    pub(super) fn close_interval(&mut self, now: Time, report: impl FnMut(usize, PortTotals)) {
        while let Some(&event) = self.events.get(self.next).filter(|event| event.at <= now) {
            self.next += 1;
            let port = event.port as usize;
            if event.starts {
                self.meter.flow_started(port, event.at);
                self.active.push(event);
            } else {
                self.meter.flow_finished(port, event.at);
                self.active.retain(|active| active.flow != event.flow);
            }
        }
        self.meter.close_interval(now, report);
    }

    /// The port that a host is attached to.
    pub(super) fn port_of(&self, host: u16) -> usize {
        self.topology.port_of(host)
    }

    /// Time until a flow completes in the ideal run, seconds; zero if it has.
    fn left(&self, flow: u32, now: Time) -> f64 {
        let finish = self.finish[flow as usize];
        finish.saturating_since(now).as_secs_f64()
    }

    /// When the last flow completes.
    pub(super) fn end(&self) -> Time {
        self.events.last().map_or(Time::ZERO, |event| event.at)
    }

    /// Compares the controlled run's active `flows` with the ideal run at the end of the last
    /// interval and adds the result to `lags`, one element per port.
    pub(super) fn compare(&self, now: Time, flows: &[FlowView], lags: &mut [Lag]) {
        let left = |flow: u32| self.left(flow, now);
        for active in &self.active {
            lags[active.port as usize].early_s += left(active.flow);
        }
        for flow in flows {
            let lag = &mut lags[self.port_of(flow.dst)];
            let left = left(flow.index);
            lag.slack_s += left;
            lag.early_s -= left;
            lag.overdue += f64::from(u8::from(left == 0.0));
        }
    }
}

/// Estimates how long flows will remain active.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lookahead {
    /// Time constant τ of the discount, seconds.
    pub(super) tau_s: f64,
    /// Rate of a port, bit/s.
    pub(super) rate_bps: f64,
}

impl Lookahead {
    /// `τ(1 - e^{-t/τ})`: the discounted weight of the next `seconds` of activity.
    fn weigh(self, seconds: f64) -> f64 {
        -self.tau_s * libm::expm1(-seconds / self.tau_s)
    }

    /// Adds to `excess`, one element per port, by how much the flows' remaining active time exceeds
    /// that in the ideal run, discounted, in seconds.
    ///
    /// A flow that waits for its retransmission timer needs that wait plus its bytes at line rate.
    /// The other flows share their port's line rate equally. No flow needs less time than in the
    /// ideal run. Complexity: O(n log n) for n active flows.
    pub(super) fn excess(
        self,
        now: Time,
        ideal: &IdealRun,
        flows: &[FlowView],
        excess: &mut [f64],
    ) {
        for active in &ideal.active {
            excess[active.port as usize] -= self.weigh(ideal.left(active.flow, now));
        }
        let mut flows: Vec<FlowView> = flows.to_vec();
        flows.sort_unstable_by_key(|flow| (flow.dst, flow.remaining_bytes, flow.index));
        for port in flows.chunk_by(|a, b| a.dst == b.dst) {
            let mut sharing = port.iter().filter(|f| f.stalled_for.is_none()).count() as u64;
            let mut smaller = 0;
            for flow in port {
                let (wait, bytes) = match flow.stalled_for {
                    Some(wait) => (wait.as_secs_f64(), flow.remaining_bytes),
                    None => (0.0, smaller + sharing * flow.remaining_bytes),
                };
                if flow.stalled_for.is_none() {
                    sharing -= 1;
                    smaller += flow.remaining_bytes;
                }
                let needed = wait + 8.0 * bytes as f64 / self.rate_bps;
                let left = needed.max(ideal.left(flow.index, now));
                excess[ideal.port_of(flow.dst)] += self.weigh(left);
            }
        }
    }
}

/// Future flows of a trace by port.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    /// By port: every flow's start, and the bytes up to and including it, in order of starts.
    ports: Vec<Vec<(Time, u64)>>,
}

impl Arrivals {
    pub(super) fn new(topology: OneSwitch, trace: &Trace) -> Arrivals {
        let mut by_port = vec![Vec::new(); topology.ports];
        for flow in &trace.flows {
            let port = topology.port_of(host_number(flow.dst));
            by_port[port].push((flow.start, flow.size));
        }
        for flows in &mut by_port {
            flows.sort_unstable();
            let mut bytes = 0u64;
            for (_, size) in flows {
                bytes = bytes.saturating_add(*size);
                *size = bytes;
            }
        }
        Arrivals { ports: by_port }
    }

    /// Number and bytes of the flows to `port` that start within `span` after `now`.
    pub(super) fn within(&self, port: usize, now: Time, span: Time) -> (u64, u64) {
        let flows = &self.ports[port];
        let end = now.saturating_add(span);
        let first = flows.partition_point(|&(start, _)| start <= now);
        let last = flows.partition_point(|&(start, _)| start <= end);
        let bytes = |end: usize| end.checked_sub(1).map_or(0, |index| flows[index].1);
        ((last - first) as u64, bytes(last) - bytes(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bufgym_sim::rng::{Split, trace_seed};
    use bufgym_sim::traffic::{FlowSpec, generate};

    #[test]
    fn the_areas_add_up_to_the_flow_times_without_drops() {
        let mut scenario = Scenario::default();
        scenario.set("flows=100").unwrap();
        let trace = generate(&scenario, trace_seed(Split::Train, 0, 3));
        let records = PolicySpec::unlimited()
            .simulator(&scenario, &trace)
            .unwrap()
            .run()
            .records;
        let expected: f64 = records.iter().map(|r| r.fct.unwrap().as_secs_f64()).sum();
        let mut ideal = IdealRun::new(&scenario, &trace, 1e12).unwrap();
        let mut sum = 0.0;
        let end = ideal.end();
        for cut in [Time(end.as_ps() / 3), Time(end.as_ps() / 2), end] {
            ideal.close_interval(cut, |_, totals| sum += totals.discounted_flow_time);
        }
        assert!((sum / expected - 1.0).abs() < 1e-6, "{sum} {expected}");
        assert!(ideal.active.is_empty());
    }

    #[test]
    fn arrivals_are_counted_in_a_half_open_window() {
        let mut scenario = Scenario::default();
        scenario.set("flows=100").unwrap();
        let trace = generate(&scenario, trace_seed(Split::Train, 0, 4));
        let arrivals = Arrivals::new(OneSwitch { ports: 16 }, &trace);
        let flow = trace.flows[50];
        let now = flow.start;
        let expected = trace.flows.iter().filter(|other| {
            other.dst == flow.dst && other.start > now && other.start <= now + Time::from_ms(500)
        });
        let sizes: Vec<u64> = expected.map(|other| other.size).collect();
        assert!(sizes.len() > 1);
        let everything = arrivals.within(flow.dst as usize, Time::ZERO, Time::MAX).0;
        let later = |other: &&FlowSpec| other.dst == flow.dst && other.start > Time::ZERO;
        assert_eq!(everything, trace.flows.iter().filter(later).count() as u64);
        let (flows, bytes) = arrivals.within(flow.dst as usize, now, Time::from_ms(500));
        assert_eq!((flows, bytes), (sizes.len() as u64, sizes.iter().sum()));
    }
}
