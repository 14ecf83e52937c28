//! What an objective needs to know about an interval between two decisions, counted as it happens.

use crate::units::Time;

#[derive(Clone, Copy, Default, Debug)]
struct PortMeter {
    active: u32,
    changed_at: Time,
    /// ∫ e^{-(t - t_k)/τ} F_i(t) dt since the last decision, seconds.
    discounted: f64,
    /// ∫ F_i(t) dt since the start, seconds.
    flow_time: f64,
    lost: u64,
    delivered: u64,
}

/// Active flows, losses and deliveries by destination port.
#[derive(Clone, Debug)]
pub struct FlowMeter {
    /// Time constant τ of the discount, seconds.
    tau: f64,
    /// The last decision, t_k.
    epoch: Time,
    ports: Vec<PortMeter>,
}

/// Totals of one port over an interval.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct PortTotals {
    /// ∫ e^{-(t - t_k)/τ} F_i(t) dt, seconds.
    pub discounted_flow_time: f64,
    /// ∫ F_i(t) dt since the start of the episode, seconds.
    pub flow_time: f64,
    /// Data packets lost.
    pub lost: u64,
    /// Payload bytes delivered in order.
    pub delivered: u64,
}

impl FlowMeter {
    pub fn new(ports: usize, tau: f64) -> FlowMeter {
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

    pub fn flow_started(&mut self, port: usize, now: Time) {
        self.settle(port, now);
        self.ports[port].active += 1;
    }

    pub fn flow_finished(&mut self, port: usize, now: Time) {
        self.settle(port, now);
        self.ports[port].active -= 1;
    }

    #[inline]
    pub fn lost(&mut self, port: usize) {
        self.ports[port].lost += 1;
    }

    #[inline]
    pub fn delivered(&mut self, port: usize, bytes: u64) {
        self.ports[port].delivered += bytes;
    }

    /// Ends the interval at `now`, reports every port's totals and starts the next interval.
    pub fn close_interval(&mut self, now: Time, mut report: impl FnMut(usize, PortTotals)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn flow_time(meter: &mut FlowMeter, now: Time) -> f64 {
        let mut sum = 0.0;
        meter.close_interval(now, |_, totals| sum += totals.discounted_flow_time);
        sum
    }

    /// Cutting an interval in two changes nothing once the second part is discounted to the start
    /// of the first.
    #[test]
    fn the_return_does_not_depend_on_the_cuts() {
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
}
