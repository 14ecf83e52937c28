//! Counts what the reward needs from an interval between two decisions.

use bufgym_sim::network::{
    FlowRef, HostObserver, LostSegment, Observer, OneSwitch, SwitchObserver,
};
use bufgym_sim::switch::{Loss, PacketView, SwitchId, View};
use bufgym_sim::units::Time;

#[derive(Clone, Copy, Default, Debug)]
struct PortMeter {
    /// Number of active flows F_i.
    active: u32,
    changed_at: Time,
    /// ∫ e^{-(t - t_k)/τ} F_i(t) dt since the last decision, seconds.
    discounted: f64,
    /// ∫ F_i(t) dt since the start, seconds.
    flow_time: f64,
    lost: u64,
    delivered: u64,
}

/// Counts active flows, losses and deliveries by destination port.
#[derive(Clone, Debug)]
pub(super) struct FlowMeter {
    /// Time constant τ of the discount, seconds.
    tau: f64,
    /// Time t_k of the last decision.
    epoch: Time,
    ports: Vec<PortMeter>,
}

/// Totals of one port over an interval.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct PortTotals {
    /// ∫ e^{-(t - t_k)/τ} F_i(t) dt, seconds.
    pub(super) discounted_flow_time: f64,
    /// ∫ F_i(t) dt since the start of the episode, seconds.
    pub(super) flow_time: f64,
    /// Data packets lost.
    pub(super) lost: u64,
    /// Payload bytes delivered in order.
    pub(super) delivered: u64,
}

impl FlowMeter {
    pub(super) fn new(ports: usize, tau: f64) -> FlowMeter {
        FlowMeter {
            tau,
            epoch: Time::ZERO,
            ports: vec![PortMeter::default(); ports],
        }
    }

    fn settle(&mut self, port: usize, now: Time) {
        let (tau, epoch) = (self.tau, self.epoch);
        let meter = &mut self.ports[port];
        if meter.active > 0 && now > meter.changed_at {
            let flows = f64::from(meter.active);
            let span = (now - meter.changed_at).as_secs_f64();
            let weight = libm::exp(-meter.changed_at.saturating_since(epoch).as_secs_f64() / tau);
            meter.discounted -= flows * tau * weight * libm::expm1(-span / tau);
            meter.flow_time += flows * span;
        }
        meter.changed_at = now;
    }

    pub(super) fn flow_started(&mut self, port: usize, now: Time) {
        self.settle(port, now);
        self.ports[port].active += 1;
    }

    pub(super) fn flow_finished(&mut self, port: usize, now: Time) {
        self.settle(port, now);
        self.ports[port].active -= 1;
    }

    #[inline]
    pub(super) fn lost(&mut self, port: usize) {
        self.ports[port].lost += 1;
    }

    #[inline]
    pub(super) fn delivered(&mut self, port: usize, bytes: u64) {
        self.ports[port].delivered += bytes;
    }

    /// Ends the interval at `now`, reports every port's totals and starts the next interval.
    pub(super) fn close_interval(&mut self, now: Time, mut report: impl FnMut(usize, PortTotals)) {
        for port in 0..self.ports.len() {
            self.settle(port, now);
            let meter = &mut self.ports[port];
            report(
                port,
                PortTotals {
                    discounted_flow_time: std::mem::take(&mut meter.discounted),
                    flow_time: meter.flow_time,
                    lost: std::mem::take(&mut meter.lost),
                    delivered: std::mem::take(&mut meter.delivered),
                },
            );
        }
        self.epoch = now;
    }
}

/// Integral of a queue's length over time.
#[derive(Clone, Copy, Default, Debug)]
struct QueueArea {
    byte_ps: u128,
    bytes: u64,
    changed_at: Time,
}

impl QueueArea {
    #[inline]
    fn change(&mut self, bytes: u64, now: Time) {
        self.byte_ps += u128::from(self.bytes) * u128::from(now.0 - self.changed_at.0);
        self.bytes = bytes;
        self.changed_at = now;
    }
}

/// Observes the controlled switch and its hosts for reward and critics: flow times, losses and
/// deliveries by port, integrals of queue lengths, and losses that only a timeout repairs.
#[derive(Clone, Debug)]
pub struct RewardMeter {
    topology: OneSwitch,
    flows: FlowMeter,
    /// Integrals of queue lengths by port.
    areas: Vec<QueueArea>,
    /// By number of the flow: a loss that only the retransmission timer can detect. Such are lost
    /// retransmissions (RFC 6675 §5.1) and losses among a flow's last segments, after which too few
    /// duplicate acknowledgements follow.
    awaits_timeout: Vec<bool>,
}

impl RewardMeter {
    /// A meter for `flows` flows; `tau` is the time constant of the discount, seconds.
    pub(super) fn new(topology: OneSwitch, flows: usize, tau: f64) -> RewardMeter {
        RewardMeter {
            topology,
            flows: FlowMeter::new(topology.ports, tau),
            areas: vec![QueueArea::default(); topology.ports],
            awaits_timeout: vec![false; flows],
        }
    }

    /// Ends the interval. Returns per port the totals and the integral of its queue length in byte
    /// seconds. `now` is on the hosts' clock, `switch_now` on the switch's.
    pub(super) fn close_interval(&mut self, now: Time, switch_now: Time) -> Vec<(PortTotals, f64)> {
        let mut terms = Vec::with_capacity(self.areas.len());
        let areas = &mut self.areas;
        self.flows.close_interval(now, |port, totals| {
            let area = &mut areas[port];
            area.change(area.bytes, switch_now);
            terms.push((totals, std::mem::take(&mut area.byte_ps) as f64 * 1e-12));
        });
        terms
    }

    /// Whether a loss of this flow will be repaired only after a timeout.
    pub(super) fn awaits_timeout(&self, flow: u32) -> bool {
        self.awaits_timeout[flow as usize]
    }

    #[inline]
    fn port_of(&self, flow: FlowRef) -> usize {
        self.topology.port_of(flow.dst)
    }

    #[inline]
    fn queue_changes(&mut self, view: View<'_>, port: usize) {
        self.areas[port].change(view.buffer.port(port), view.now);
    }
}

impl HostObserver for RewardMeter {
    #[inline]
    fn flow_started(&mut self, flow: FlowRef, now: Time) {
        self.flows.flow_started(self.port_of(flow), now);
    }

    #[inline]
    fn flow_finished(&mut self, flow: FlowRef, now: Time) {
        self.flows.flow_finished(self.port_of(flow), now);
    }

    #[inline]
    fn delivered(&mut self, flow: FlowRef, bytes: u64) {
        self.flows.delivered(self.port_of(flow), bytes);
    }

    #[inline]
    fn segment_lost(&mut self, segment: LostSegment) {
        self.flows.lost(self.port_of(segment.flow));
        if segment.retransmission || segment.is_near_end && !segment.recovering {
            self.awaits_timeout[segment.flow.number as usize] = true;
        }
    }

    #[inline]
    fn timed_out(&mut self, flow: FlowRef) {
        self.awaits_timeout[flow.number as usize] = false;
    }
}

impl SwitchObserver for RewardMeter {
    #[inline]
    fn enqueued(&mut self, _at: SwitchId, view: View<'_>, packet: PacketView) {
        self.queue_changes(view, packet.port);
    }

    #[inline]
    fn departed(&mut self, _at: SwitchId, view: View<'_>, packet: PacketView) {
        self.queue_changes(view, packet.port);
    }

    #[inline]
    fn lost(&mut self, _at: SwitchId, view: View<'_>, packet: PacketView, loss: Loss) {
        if matches!(loss, Loss::PushedOut | Loss::Head) {
            self.queue_changes(view, packet.port);
        }
    }
}

impl Observer for RewardMeter {}

#[cfg(test)]
mod tests {
    use bufgym_sim::network::EventTime;
    use bufgym_sim::rng::{Split, trace_seed};
    use bufgym_sim::scenario::Scenario;
    use bufgym_sim::switch::{Policy, PolicySpec, Switch};
    use bufgym_sim::traffic::generate;

    use super::*;
    use crate::control::SWITCH;

    fn flow_time(meter: &mut FlowMeter, now: Time) -> f64 {
        let mut sum = 0.0;
        meter.close_interval(now, |_, totals| sum += totals.discounted_flow_time);
        sum
    }

    /// Splitting an interval does not change the sum, if the second part is discounted to the start
    /// of the first.
    #[test]
    fn the_return_does_not_depend_on_how_intervals_are_split() {
        let tau = 0.5;
        let events = |meter: &mut FlowMeter, cut: Option<Time>| {
            let mut total = 0.0;
            meter.flow_started(0, Time::from_ms(1));
            meter.flow_started(1, Time::from_ms(10));
            if let Some(cut) = cut {
                total += flow_time(meter, cut);
            }
            meter.flow_finished(0, Time::from_ms(300));
            let rest = flow_time(meter, Time::from_ms(400));
            let discount = cut.map_or(1.0, |cut| libm::exp(-cut.as_secs_f64() / tau));
            total + discount * rest
        };
        let whole = events(&mut FlowMeter::new(2, tau), None);
        let halves = events(&mut FlowMeter::new(2, tau), Some(Time::from_ms(123)));
        assert!((whole - halves).abs() < 1e-12, "{whole} {halves}");
        // By hand: flow 0 is active in [1, 300] ms, flow 1 in [10, 400] ms.
        let by_hand = tau * ((-0.001f64 / tau).exp() - (-0.3f64 / tau).exp())
            + tau * ((-0.010f64 / tau).exp() - (-0.4f64 / tau).exp());
        assert!((whole - by_hand).abs() < 1e-12);
    }

    #[test]
    fn a_flow_that_comes_and_goes_within_the_interval_counts() {
        let mut meter = FlowMeter::new(1, 1e9);
        meter.flow_started(0, Time::from_ms(5));
        meter.flow_finished(0, Time::from_ms(8));
        assert!((flow_time(&mut meter, Time::from_ms(10)) - 0.003).abs() < 1e-9);
    }

    /// Integrals of the ports' queue lengths, sampled before every event.
    #[derive(Clone, Debug)]
    struct Sampled {
        last: Time,
        byte_ps: Vec<u128>,
    }

    impl SwitchObserver for Sampled {}

    impl HostObserver for Sampled {}

    impl Observer for Sampled {
        fn before_event<P: Policy>(&mut self, now: EventTime, switches: &[Switch<P>]) {
            let now = now.at(switches[0].potential());
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
            let meter = RewardMeter::new(topology, trace.flows.len(), 1.0);
            let sampled = Sampled {
                last: Time::ZERO,
                byte_ps: vec![0; 16],
            };
            let simulator = PolicySpec::named(name)
                .simulator(&scenario, &trace)
                .unwrap();
            let mut simulator = simulator.observed((meter, sampled));
            let summary = simulator.run().summary;
            assert_eq!(summary.pushed_out > 0, name != "dt");
            let (now, switch_now) = (simulator.now(), simulator.switch_now(SWITCH));
            let (meter, sampled) = simulator.observer_mut();
            let terms = meter.close_interval(now, switch_now);
            for ((_, area), byte_ps) in terms.into_iter().zip(&sampled.byte_ps) {
                assert_eq!(area, *byte_ps as f64 * 1e-12, "{name}");
            }
            assert!(sampled.byte_ps.iter().any(|&sum| sum > 0));
        }
    }
}
