//! The ideal run: the same trace with an unlimited buffer, which no policy influences.

use super::meter::{ActiveTime, PortTotals};
use super::ways::{ControlTopology, Paths, numbered};
use bufgym_sim::network::{FlowRecord, FlowView, OneSwitch, SimError, SwitchId};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::{Trace, host_number};
use bufgym_sim::units::{Duration, Instant};

/// Starts and completions of a trace's flows with an unlimited buffer, replayed in step with the
/// controlled run.
#[derive(Clone, Debug)]
pub(super) struct IdealRun<T = OneSwitch> {
    /// Completion time of every flow, by its place in the trace.
    finish: Vec<Instant>,
    /// Starts and completions in order of time, at equal times in order of flows.
    events: Vec<Event>,
    next: usize,
    active: Vec<Event>,
    time: ActiveTime<T>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Event {
    at: Instant,
    /// Place of the flow in the trace.
    flow: u32,
    /// Number of the flow in the order of starts.
    number: u32,
    dst: u16,
    starts: bool,
}

/// Delay or lead of the flows to one port relative to the ideal run.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Lag {
    /// Number of active flows that are complete in the ideal run.
    pub(super) overdue: f64,
    /// Sum over active flows of the time until they complete in the ideal run, seconds.
    pub(super) slack_s: f64,
    /// The same sum over complete flows.
    pub(super) early_s: f64,
}

impl<T: ControlTopology> IdealRun<T> {
    /// Simulates the trace once. `time` is the meter for the run.
    pub(super) fn new(
        scenario: &Scenario,
        trace: &Trace,
        time: ActiveTime<T>,
    ) -> Result<IdealRun<T>, SimError> {
        let records = unlimited_run(scenario, trace)?;
        let end = records.iter().filter_map(|record| record.finish);
        let end = end.max().unwrap_or(Instant::ZERO);
        let finish: Vec<Instant> = records
            .iter()
            .map(|record| record.finish.unwrap_or(end))
            .collect();
        let mut events = Vec::with_capacity(2 * finish.len());
        for (number, flow) in (0..).zip(numbered(trace)) {
            let spec = &trace.flows[flow as usize];
            let finish = finish[flow as usize].max(spec.start);
            for (at, starts) in [(spec.start, true), (finish, false)] {
                events.push(Event {
                    at,
                    flow,
                    number,
                    dst: host_number(spec.dst),
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
            time,
        })
    }

    /// Ends the interval of a switch at `now` and reports the totals of its ports.
    pub(super) fn close_interval(
        &mut self,
        switch: SwitchId,
        now: Instant,
        report: impl FnMut(usize, PortTotals),
    ) {
        while let Some(&event) = self.events.get(self.next).filter(|event| event.at <= now) {
            self.next += 1;
            if event.starts {
                self.time.flow_started(event.number, event.dst, event.at);
                self.active.push(event);
            } else {
                self.time.flow_finished(event.number, event.dst, event.at);
                self.active.retain(|active| active.flow != event.flow);
            }
        }
        self.time.close_interval(switch, now, report);
    }

    fn ways(&self) -> &Paths<T> {
        self.time.ways()
    }

    /// Time until a flow completes in the ideal run, seconds; zero if it has.
    fn left(&self, flow: u32, now: Instant) -> f64 {
        let finish = self.finish[flow as usize];
        finish.saturating_since(now).as_secs_f64()
    }

    /// Returns the time when the last flow completes.
    pub(super) fn end(&self) -> Instant {
        self.events.last().map_or(Instant::ZERO, |event| event.at)
    }

    /// Compares the controlled run's active `flows` with the ideal run at the end of the last
    /// interval of a switch and adds the result to `lags`, one element per port of the switch. A flow counts at the
    /// port through which it leaves the switch.
    pub(super) fn compare(
        &self,
        switch: SwitchId,
        now: Instant,
        flows: &[FlowView],
        lags: &mut [Lag],
    ) {
        let ways = self.ways();
        let left = |flow: u32| self.left(flow, now);
        for active in &self.active {
            let left = left(active.flow);
            ways.visit_at(switch, (active.number, active.dst), |port, _| {
                lags[port].early_s += left;
            });
        }
        for flow in flows {
            let left = left(flow.index);
            ways.visit_at(switch, (flow.number, flow.dst), |port, _| {
                let lag = &mut lags[port];
                lag.slack_s += left;
                lag.early_s -= left;
                lag.overdue += f64::from(u8::from(left == 0.0));
            });
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

    /// Calls `add` with the amount by which the flows' remaining active time exceeds that in the ideal run, discounted,
    /// in seconds. Its arguments are the number of a flow, its port at the switch, and its part. A flow can have
    /// several parts. A flow counts at a switch by the switch's share of its path.
    ///
    /// A flow that waits for its retransmission timer needs that wait plus its bytes at line rate.
    /// The other flows share the line rate of their receiver equally. No flow needs less time than in
    /// the ideal run. Complexity: O(n log n) for n active flows.
    pub(super) fn excess<T: ControlTopology>(
        self,
        switch: SwitchId,
        now: Instant,
        ideal: &IdealRun<T>,
        flows: &[FlowView],
        mut add: impl FnMut(u32, usize, f64),
    ) {
        let ways = ideal.ways();
        for active in &ideal.active {
            let number = active.number;
            let part = -self.weigh(ideal.left(active.flow, now));
            ways.visit_at(switch, (number, active.dst), |port, share| {
                add(number, port, part * share);
            });
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
                let part = self.weigh(needed.max(ideal.left(flow.index, now)));
                ways.visit_at(switch, (flow.number, flow.dst), |port, share| {
                    add(flow.number, port, part * share);
                });
            }
        }
    }
}

/// Records of the trace's flows with an unlimited buffer.
fn unlimited_run(scenario: &Scenario, trace: &Trace) -> Result<Vec<FlowRecord>, SimError> {
    Ok(PolicySpec::unlimited().run(scenario, trace)?.records)
}

/// Future flows of a trace, by the ports through which they leave switches.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    /// By place: every flow's start, and the bytes up to and including it, in order of starts.
    ports: Vec<Vec<(Instant, u64)>>,
}

impl Arrivals {
    pub(super) fn new<T: ControlTopology>(ways: &Paths<T>, trace: &Trace) -> Arrivals {
        let mut by_port = vec![Vec::new(); ways.places()];
        for (number, flow) in (0..).zip(numbered(trace)) {
            let flow = &trace.flows[flow as usize];
            ways.visit(number, host_number(flow.dst), |place, _| {
                by_port[place].push((flow.start, flow.size));
            });
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

    /// Number and bytes of the flows through `place` that start within `span` after `now`.
    pub(super) fn within(&self, place: usize, now: Instant, span: Duration) -> (u64, u64) {
        let flows = &self.ports[place];
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
    use bufgym_sim::traffic::{FlowSpec, generate};
    use bufgym_util::rng::{Split, trace_seed};

    fn ways(trace: &Trace) -> Paths<OneSwitch> {
        Paths::new(OneSwitch { ports: 16 }, 1, trace)
    }

    #[test]
    fn the_areas_add_up_to_the_flow_times_without_drops() {
        let mut scenario = Scenario::default();
        scenario.set("flows=100").unwrap();
        let trace = generate(&scenario, trace_seed(Split::Train, 0, 3));
        let records = PolicySpec::unlimited()
            .run(&scenario, &trace)
            .unwrap()
            .records;
        let expected: f64 = records.iter().map(|r| r.fct.unwrap().as_secs_f64()).sum();
        let time = ActiveTime::new(ways(&trace), 1e12, None);
        let mut ideal = IdealRun::new(&scenario, &trace, time).unwrap();
        let mut sum = 0.0;
        let end = ideal.end();
        for cut in [Instant(end.as_ps() / 3), Instant(end.as_ps() / 2), end] {
            ideal.close_interval(SwitchId(0), cut, |_, totals| {
                sum += totals.discounted_flow_time
            });
        }
        assert!((sum / expected - 1.0).abs() < 1e-6, "{sum} {expected}");
        assert!(ideal.active.is_empty());
    }

    #[test]
    fn arrivals_are_counted_in_a_half_open_window() {
        let mut scenario = Scenario::default();
        scenario.set("flows=100").unwrap();
        let trace = generate(&scenario, trace_seed(Split::Train, 0, 4));
        let arrivals = Arrivals::new(&ways(&trace), &trace);
        let flow = trace.flows[50];
        let now = flow.start;
        let expected = trace.flows.iter().filter(|other| {
            other.dst == flow.dst
                && other.start > now
                && other.start <= now + Duration::from_ms(500)
        });
        let sizes: Vec<u64> = expected.map(|other| other.size).collect();
        assert!(sizes.len() > 1);
        let everything = arrivals
            .within(flow.dst as usize, Instant::ZERO, Duration::MAX)
            .0;
        let later = |other: &&FlowSpec| other.dst == flow.dst && other.start > Instant::ZERO;
        assert_eq!(everything, trace.flows.iter().filter(later).count() as u64);
        let (flows, bytes) = arrivals.within(flow.dst as usize, now, Duration::from_ms(500));
        assert_eq!((flows, bytes), (sizes.len() as u64, sizes.iter().sum()));
    }
}
