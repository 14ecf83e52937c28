//! Counts the quantities that the reward of an interval between two decisions needs.

use std::sync::Arc;

use bufgym_sim::network::{
    BaseFlow, BaseTime, FlowRef, HostObserver, LostSegment, Observer, OneSwitch, SwitchObserver,
};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::{Loss, PacketView, SwitchId, View};
use bufgym_sim::traffic::{Trace, host_number};
use bufgym_sim::units::{Duration, Instant};
use bufgym_util::convert::floor_u64;

use super::Objective;
use super::ways::{ControlTopology, Paths, numbered};

#[derive(Clone, Copy, Default, Debug)]
struct PortMeter {
    /// Sum of the weights of the active flows; their number F_i where all have the weight 1.
    active: u64,
    changed_at: Instant,
    /// Time t_k of the last decision.
    epoch: Instant,
    /// ∫ e^{-(t - t_k)/τ} F_i(t) dt since the last decision, seconds.
    discounted: f64,
    /// ∫ F_i(t) dt since the start, seconds.
    flow_time: f64,
    lost: u64,
    delivered: u64,
}

/// Counts active flows, losses and deliveries by place.
#[derive(Clone, Debug)]
pub(super) struct FlowMeter {
    /// Time constant τ of the discount, seconds.
    tau: f64,
    /// The weight of one flow.
    unit: f64,
    ports: Vec<PortMeter>,
}

/// Totals of one port over an interval.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct PortTotals {
    /// ∫ e^{-(t - t_k)/τ} F_i(t) dt, seconds.
    pub(super) discounted_flow_time: f64,
    /// The same, with every flow divided by its base time; zero where that is not measured.
    pub(super) discounted_slowdown: f64,
    /// ∫ F_i(t) dt since the start of the episode, seconds.
    pub(super) flow_time: f64,
    /// Data packets lost.
    pub(super) lost: u64,
    /// Payload bytes delivered in order.
    pub(super) delivered: u64,
}

impl FlowMeter {
    pub(super) fn new(ports: usize, tau: f64, unit: f64) -> FlowMeter {
        FlowMeter {
            tau,
            unit,
            ports: vec![PortMeter::default(); ports],
        }
    }

    fn settle(&mut self, port: usize, now: Instant) {
        let tau = self.tau;
        let meter = &mut self.ports[port];
        if meter.active > 0 && now > meter.changed_at {
            let flows = meter.active as f64;
            let span = (now - meter.changed_at).as_secs_f64();
            let since = meter.changed_at.saturating_since(meter.epoch);
            let weight = libm::exp(-since.as_secs_f64() / tau);
            meter.discounted -= flows * tau * weight * libm::expm1(-span / tau);
            meter.flow_time += flows * span;
        }
        meter.changed_at = now;
    }

    pub(super) fn flow_started(&mut self, port: usize, weight: u64, now: Instant) {
        self.settle(port, now);
        self.ports[port].active += weight;
    }

    pub(super) fn flow_finished(&mut self, port: usize, weight: u64, now: Instant) {
        self.settle(port, now);
        self.ports[port].active -= weight;
    }

    #[inline]
    pub(super) fn lost(&mut self, port: usize) {
        self.ports[port].lost += 1;
    }

    #[inline]
    pub(super) fn delivered(&mut self, port: usize, bytes: u64) {
        self.ports[port].delivered += bytes;
    }

    /// Ends the interval of a port at `now`, and starts the next.
    fn close(&mut self, port: usize, now: Instant) -> PortTotals {
        self.settle(port, now);
        let unit = self.unit;
        let meter = &mut self.ports[port];
        meter.epoch = now;
        PortTotals {
            discounted_flow_time: std::mem::take(&mut meter.discounted) / unit,
            discounted_slowdown: 0.0,
            flow_time: meter.flow_time / unit,
            lost: std::mem::take(&mut meter.lost),
            delivered: std::mem::take(&mut meter.delivered),
        }
    }
}

/// Slowdown weights are integers: this many units per 1/s. So even a base time of one second has a weight of 1,024, and
/// sums of weights are exact.
const SLOWDOWN_UNIT: f64 = 1_024.0;

/// One over the base time of every flow, by number, times the flow's weight. The weight is 1 for an answer to a query.
/// For another flow it is the share of the objective's slowdown weights that applies to all flows.
#[derive(Clone, Debug)]
pub(super) struct BaseRates(Arc<[u64]>);

impl BaseRates {
    /// `None` where the objective has no slowdowns.
    pub(super) fn new<T: ControlTopology>(
        scenario: &Scenario,
        trace: &Trace,
        topology: &T,
        objective: &Objective,
    ) -> Option<BaseRates> {
        if !objective.measures_slowdowns() {
            return None;
        }
        let of_others = objective.slowdown / (objective.slowdown + objective.incast);
        let base = BaseTime::new(scenario);
        let switch_of = |host: u32| topology.switch_of(host_number(host));
        let second = trace.second_kind();
        let rate = |place: u32| {
            let flow = &trace.flows[place as usize];
            let base = base.of(BaseFlow {
                bytes: flow.size.max(1),
                across: switch_of(flow.src) != switch_of(flow.dst),
                connected: scenario.demand.preconnected && flow.query >= 0,
                transport: scenario.transport_of(flow.query >= 0, second == Some(flow.kind)),
            });
            let weight = if flow.query >= 0 { 1.0 } else { of_others };
            let rate = floor_u64(weight * SLOWDOWN_UNIT / base.max(Duration(1)).as_secs_f64());
            if weight > 0.0 { rate.max(1) } else { 0 }
        };
        Some(BaseRates(numbered(trace).into_iter().map(rate).collect()))
    }

    /// One over the base time of a flow, 1/s.
    pub(super) fn of(&self, number: u32) -> f64 {
        self.0[number as usize] as f64 / SLOWDOWN_UNIT
    }
}

/// Active time of flows, by place: each flow counts at every place of its path, in equal parts.
#[derive(Clone, Debug)]
pub(super) struct ActiveTime<T> {
    ways: Paths<T>,
    flows: FlowMeter,
    /// Meter and base rates of slowdowns, if these are measured.
    slowdowns: Option<(FlowMeter, BaseRates)>,
}

impl<T: ControlTopology> ActiveTime<T> {
    pub(super) fn new(ways: Paths<T>, tau: f64, rates: Option<BaseRates>) -> ActiveTime<T> {
        let parts = f64::from(Paths::<T>::parts());
        let meter = |unit| FlowMeter::new(ways.places(), tau, unit);
        ActiveTime {
            flows: meter(parts),
            slowdowns: rates.map(|rates| (meter(parts * SLOWDOWN_UNIT), rates)),
            ways,
        }
    }

    pub(super) fn ways(&self) -> &Paths<T> {
        &self.ways
    }

    pub(super) fn flow_started(&mut self, number: u32, dst: u16, now: Instant) {
        let (flows, slowdowns) = (&mut self.flows, &mut self.slowdowns);
        self.ways.visit(number, dst, |place, share| {
            flows.flow_started(place, u64::from(share), now);
            if let Some((meter, rates)) = slowdowns {
                meter.flow_started(place, u64::from(share) * rates.0[number as usize], now);
            }
        });
    }

    pub(super) fn flow_finished(&mut self, number: u32, dst: u16, now: Instant) {
        let (flows, slowdowns) = (&mut self.flows, &mut self.slowdowns);
        self.ways.visit(number, dst, |place, share| {
            flows.flow_finished(place, u64::from(share), now);
            if let Some((meter, rates)) = slowdowns {
                meter.flow_finished(place, u64::from(share) * rates.0[number as usize], now);
            }
        });
    }

    /// Ends the interval of a switch at `now`, reports the totals of its ports and starts the next
    /// interval.
    pub(super) fn close_interval(
        &mut self,
        switch: SwitchId,
        now: Instant,
        mut report: impl FnMut(usize, PortTotals),
    ) {
        for (port, place) in self.ways.places_of(switch).enumerate() {
            let mut totals = self.flows.close(place, now);
            if let Some((meter, _)) = &mut self.slowdowns {
                totals.discounted_slowdown = meter.close(place, now).discounted_flow_time;
            }
            report(port, totals);
        }
    }
}

/// Integral of a queue's length over time.
#[derive(Clone, Copy, Default, Debug)]
struct QueueArea {
    byte_ps: u128,
    bytes: u64,
    changed_at: Instant,
}

impl QueueArea {
    #[inline]
    fn change(&mut self, bytes: u64, now: Instant) {
        self.byte_ps += u128::from(self.bytes) * u128::from(now.0 - self.changed_at.0);
        self.bytes = bytes;
        self.changed_at = now;
    }
}

/// Observes the controlled switches and the hosts for reward and critics: flow times, losses and
/// deliveries by port, integrals of queue lengths, and losses that only a timeout repairs.
///
/// With a single switch a lost packet counts at the port of its receiver. In a network it counts where
/// it was lost, a SYN too; deliveries count at the port of the receiver.
#[derive(Clone, Debug)]
pub struct RewardMeter<T = OneSwitch> {
    time: ActiveTime<T>,
    /// Integrals of queue lengths by place.
    areas: Vec<QueueArea>,
    /// By number of the flow: a loss that only the retransmission timer can detect. Such are lost
    /// retransmissions (RFC 6675 §5.1) and losses among a flow's last segments, after which too few
    /// duplicate acknowledgements follow.
    awaits_timeout: Vec<bool>,
}

/// Returns true if a packet travels from sender to receiver: the flow's code ends in a bit for the direction.
fn is_forward(packet: PacketView) -> bool {
    packet.flow & 1 == 0
}

impl<T: ControlTopology> RewardMeter<T> {
    /// A meter for `flows` flows.
    pub(super) fn new(time: ActiveTime<T>, flows: usize) -> RewardMeter<T> {
        RewardMeter {
            areas: vec![QueueArea::default(); time.ways().places()],
            time,
            awaits_timeout: vec![false; flows],
        }
    }

    /// Ends the interval of a switch. Returns per port the totals and the integral of its queue length in
    /// byte seconds. `now` is on the hosts' clock, `switch_now` on the switch's.
    pub(super) fn close_interval(
        &mut self,
        switch: SwitchId,
        now: Instant,
        switch_now: Instant,
    ) -> Vec<(PortTotals, f64)> {
        let own = self.ways().places_of(switch);
        let mut terms = Vec::with_capacity(own.len());
        let areas = &mut self.areas[own];
        self.time.close_interval(switch, now, |port, totals| {
            let area = &mut areas[port];
            area.change(area.bytes, switch_now);
            terms.push((totals, std::mem::take(&mut area.byte_ps) as f64 * 1e-12));
        });
        terms
    }

    /// Returns true if a loss of this flow will be repaired only after a timeout.
    pub(super) fn awaits_timeout(&self, flow: u32) -> bool {
        self.awaits_timeout[flow as usize]
    }

    pub(super) fn ways(&self) -> &Paths<T> {
        self.time.ways()
    }

    #[inline]
    fn receiver(&self, flow: FlowRef) -> usize {
        self.ways().receiver(flow.number, flow.dst)
    }

    #[inline]
    fn queue_changes(&mut self, at: SwitchId, view: View<'_>, port: usize) {
        let place = self.ways().place(at, port);
        self.areas[place].change(view.buffer.port(port), view.now);
    }
}

impl<T: ControlTopology> HostObserver for RewardMeter<T> {
    #[inline]
    fn flow_started(&mut self, flow: FlowRef, now: Instant) {
        self.time.flow_started(flow.number, flow.dst, now);
    }

    #[inline]
    fn flow_finished(&mut self, flow: FlowRef, now: Instant) {
        self.time.flow_finished(flow.number, flow.dst, now);
    }

    #[inline]
    fn delivered(&mut self, flow: FlowRef, bytes: u64) {
        let place = self.receiver(flow);
        self.time.flows.delivered(place, bytes);
    }

    #[inline]
    fn segment_lost(&mut self, segment: LostSegment) {
        if !T::IS_FABRIC {
            let place = self.receiver(segment.flow);
            self.time.flows.lost(place);
        }
        if segment.retransmission || segment.is_near_end && !segment.recovering {
            self.awaits_timeout[segment.flow.number as usize] = true;
        }
    }

    #[inline]
    fn timed_out(&mut self, flow: FlowRef) {
        self.awaits_timeout[flow.number as usize] = false;
    }
}

impl<T: ControlTopology> SwitchObserver for RewardMeter<T> {
    #[inline]
    fn enqueued(&mut self, at: SwitchId, view: View<'_>, packet: PacketView) {
        self.queue_changes(at, view, packet.port);
    }

    #[inline]
    fn departed(&mut self, at: SwitchId, view: View<'_>, packet: PacketView) {
        self.queue_changes(at, view, packet.port);
    }

    #[inline]
    fn lost(&mut self, at: SwitchId, view: View<'_>, packet: PacketView, loss: Loss) {
        if matches!(loss, Loss::PushedOut | Loss::Head) {
            self.queue_changes(at, view, packet.port);
        }
        if T::IS_FABRIC && is_forward(packet) {
            let place = self.ways().place(at, packet.port);
            self.time.flows.lost(place);
        }
    }
}

impl<T: ControlTopology> Observer for RewardMeter<T> {}

#[cfg(test)]
mod tests {
    use bufgym_sim::network::EventTime;
    use bufgym_sim::scenario::Scenario;
    use bufgym_sim::switch::{Policy, PolicySpec, Switch};
    use bufgym_sim::traffic::generate;
    use bufgym_util::rng::{Split, trace_seed};

    use super::*;
    use crate::control::SWITCH;

    fn flow_time(meter: &mut FlowMeter, now: Instant) -> f64 {
        let ports = 0..meter.ports.len();
        let closed = ports.map(|port| meter.close(port, now).discounted_flow_time);
        closed.sum()
    }

    /// Splitting an interval does not change the sum, if the second part is discounted to the start
    /// of the first.
    #[test]
    fn the_return_does_not_depend_on_how_intervals_are_split() {
        let tau = 0.5;
        let events = |meter: &mut FlowMeter, cut: Option<Instant>| {
            let mut total = 0.0;
            meter.flow_started(0, 1, Instant::from_ms(1));
            meter.flow_started(1, 1, Instant::from_ms(10));
            if let Some(cut) = cut {
                total += flow_time(meter, cut);
            }
            meter.flow_finished(0, 1, Instant::from_ms(300));
            let rest = flow_time(meter, Instant::from_ms(400));
            let discount = cut.map_or(1.0, |cut| libm::exp(-cut.as_secs_f64() / tau));
            total + discount * rest
        };
        let whole = events(&mut FlowMeter::new(2, tau, 1.0), None);
        let halves = events(
            &mut FlowMeter::new(2, tau, 1.0),
            Some(Instant::from_ms(123)),
        );
        assert!((whole - halves).abs() < 1e-12, "{whole} {halves}");
        // Computed manually: flow 0 is active in [1, 300] ms, flow 1 in [10, 400] ms.
        let by_hand = tau * ((-0.001f64 / tau).exp() - (-0.3f64 / tau).exp())
            + tau * ((-0.010f64 / tau).exp() - (-0.4f64 / tau).exp());
        assert!((whole - by_hand).abs() < 1e-12);
    }

    #[test]
    fn a_flow_that_comes_and_goes_within_the_interval_counts() {
        let mut meter = FlowMeter::new(1, 1e9, 1.0);
        meter.flow_started(0, 1, Instant::from_ms(5));
        meter.flow_finished(0, 1, Instant::from_ms(8));
        assert!((flow_time(&mut meter, Instant::from_ms(10)) - 0.003).abs() < 1e-9);
    }

    /// Integrals of the ports' queue lengths, sampled before every event.
    #[derive(Clone, Debug)]
    struct Sampled {
        last: Instant,
        byte_ps: Vec<u128>,
    }

    impl SwitchObserver for Sampled {}

    impl HostObserver for Sampled {}

    impl Observer for Sampled {
        fn before_event<P: Policy>(&mut self, now: EventTime, switches: &[Switch<P>]) {
            let now = now.at(switches[0].clock_offset());
            for (port, sum) in self.byte_ps.iter_mut().enumerate() {
                let bytes = u128::from(switches[0].buffer().port(port));
                *sum += bytes * u128::from(now.0 - self.last.0);
            }
            self.last = now;
        }
    }

    /// Also for policies that push packets out.
    #[test]
    fn areas_equal_the_integrals_of_queue_lengths() {
        let mut scenario = Scenario::default();
        for change in ["flows=60", "active_ports=4", "buffer_bytes=100000"] {
            scenario.set(change).unwrap();
        }
        let trace = generate(&scenario, trace_seed(Split::Train, 0, 1));
        for name in ["dt", "lqd", "occamy"] {
            let topology = OneSwitch { ports: 16 };
            let ways = Paths::new(topology, 1, &trace);
            let meter = RewardMeter::new(ActiveTime::new(ways, 1.0, None), trace.flows.len());
            let sampled = Sampled {
                last: Instant::ZERO,
                byte_ps: vec![0; 16],
            };
            let simulator = PolicySpec::named(name)
                .simulator::<OneSwitch>(&scenario, &trace)
                .unwrap();
            let mut simulator = simulator.observed((meter, sampled));
            let summary = simulator.run().summary;
            assert_eq!(summary.pushed_out > 0, name != "dt");
            let (now, switch_now) = (simulator.now(), simulator.switch_now(SWITCH));
            let (meter, sampled) = simulator.observer_mut();
            let terms = meter.close_interval(SWITCH, now, switch_now);
            for ((_, area), byte_ps) in terms.into_iter().zip(&sampled.byte_ps) {
                assert_eq!(area, *byte_ps as f64 * 1e-12, "{name}");
            }
            assert!(sampled.byte_ps.iter().any(|&sum| sum > 0));
        }
    }
}
