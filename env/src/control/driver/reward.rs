//! The reward of an interval, from what the meter counted.

use super::ControlOptions;
use crate::control::Objective;
use crate::control::meter::PortTotals;
use bufgym_sim::network::{SimError, isolated_port};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::Trace;
use bufgym_sim::units::Duration;
use bufgym_util::convert::single;

/// Reward of one interval between two decisions.
#[derive(Clone, Debug, Default)]
pub struct IntervalReward {
    /// Rewards by destination port; their sum is `total`.
    pub port_rewards: Vec<f32>,
    /// Sum over ports.
    pub total: f64,
    /// Discount from the end of the interval to its start: `e^{-Δt/τ}`, or `e^{-Δt/horizon}` with
    /// [`horizon_s`](ControlOptions::horizon_s).
    pub discount: f32,
    /// Weight of the entropy of the decision at the start, `τ(1 - e^{-Δt/τ})/Δt_ref`. It grows with
    /// the interval, because the agent influences how often decisions are due.
    pub entropy_weight: f32,
    /// Length Δt of the interval.
    pub elapsed: Duration,
}

impl IntervalReward {
    pub(super) fn new(ports: usize) -> IntervalReward {
        IntervalReward {
            port_rewards: vec![0.0; ports],
            ..IntervalReward::default()
        }
    }
}

/// Constants of the scenario that scale every term to order one. If they depended on trace or step,
/// the values of states would drift.
#[derive(Clone, Debug)]
pub(super) struct RewardScale {
    objective: Objective,
    /// Mean isolated FCT times mean number of active ports, seconds. In a network the mean base time
    /// times the number of the switch's ports.
    flow_time_s: f64,
    /// Slowdowns: mean number of active ports, or the number of the switch's ports.
    slowdowns: f64,
    /// Full packets in β.
    beta_packets: f64,
    /// β, bytes.
    beta: f64,
    /// B·Δt_ref, byte seconds.
    queue_area: f64,
    /// Total pause time if all ports pause for Δt_ref, seconds.
    paused_s: f64,
    /// Total time for which every port had paused its neighbour at its last charge.
    charged: Vec<Duration>,
    fairness: Option<Fairness>,
}

/// Running port slowdowns: flow time so far divided by that of the port's flows on their own.
#[derive(Clone, Debug)]
struct Fairness {
    /// By port: flow time of its flows on their own, seconds.
    isolated_s: Vec<f64>,
    /// By port: its share of the variance so far.
    deviations: Vec<f64>,
}

impl RewardScale {
    /// Creates the scale of a switch that sees the scenario as `at`.
    pub(super) fn new(
        scenario: &Scenario,
        at: &Scenario,
        trace: &Trace,
        options: &ControlOptions,
    ) -> Result<RewardScale, SimError> {
        let mean_ports = match scenario.is_fabric() {
            true => f64::from(at.network.ports),
            false => scenario.traffic.active_ports.mean(),
        };
        let beta = at.network.buffer_bytes as f64 / f64::from(at.network.ports);
        let fairness = if options.objective.fairness > 0.0 {
            scenario.require_single()?;
            Some(Fairness {
                isolated_s: isolated_flow_times(scenario, trace)?,
                deviations: vec![0.0; scenario.port_count()],
            })
        } else {
            None
        };
        Ok(RewardScale {
            objective: options.objective,
            flow_time_s: match options.objective.fct > 0.0 {
                true => options.flow_times.mean_s(scenario) * mean_ports,
                false => 1.0,
            },
            slowdowns: mean_ports,
            beta_packets: beta / scenario.full_packet_bytes() as f64,
            beta,
            queue_area: at.network.buffer_bytes as f64 * options.reference_interval_s,
            paused_s: f64::from(at.network.ports) * options.reference_interval_s,
            charged: vec![Duration::ZERO; at.port_count()],
            fairness,
        })
    }

    /// Cost of a second of a flow's time, in units of the reward.
    pub(super) fn flow_time_price(&self) -> f64 {
        self.objective.fct / self.flow_time_s
    }

    /// Cost of a slowdown of 1, in units of the reward.
    pub(super) fn slowdown_price(&self) -> f64 {
        (self.objective.slowdown + self.objective.incast) / self.slowdowns
    }

    /// Returns true if pauses cost anything.
    pub(super) fn charges_pauses(&self) -> bool {
        self.objective.paused > 0.0
    }

    /// Charges every port for the time for which it has paused its neighbour since the last charge; `paused` returns
    /// that time in total.
    pub(super) fn charge_pauses(
        &mut self,
        paused: impl Fn(usize) -> Duration,
        reward: &mut IntervalReward,
    ) {
        let price = self.objective.paused / self.paused_s;
        let ports = reward.port_rewards.iter_mut().zip(&mut self.charged);
        for (port, (paid, charged)) in ports.enumerate() {
            let now = paused(port);
            *paid -= single(price * (now - *charged).as_secs_f64());
            *charged = now;
        }
        reward.total = reward.port_rewards.iter().map(|&r| f64::from(r)).sum();
    }

    /// Computes an interval's rewards. `terms` has per port the totals of the meter and the
    /// integral of the queue length in byte seconds.
    pub(super) fn weigh(&mut self, terms: &[(PortTotals, f64)], reward: &mut IntervalReward) {
        let objective = self.objective;
        for ((totals, area), paid) in terms.iter().zip(&mut reward.port_rewards) {
            let value = -objective.fct * totals.discounted_flow_time / self.flow_time_s
                - objective.loss * totals.lost as f64 / self.beta_packets
                + objective.throughput * totals.delivered as f64 / self.beta
                - objective.delay * area / self.queue_area;
            let slowdown = self.slowdown_price() * totals.discounted_slowdown;
            *paid = single(value - slowdown);
        }
        if let Some(fairness) = &mut self.fairness {
            fairness.charge(terms, objective.fairness, &mut reward.port_rewards);
        }
        reward.total = reward.port_rewards.iter().map(|&r| f64::from(r)).sum();
    }
}

impl Fairness {
    /// Charges each port the growth of its share of the variance, so that an episode's charges add
    /// up to the variance at its end.
    fn charge(&mut self, terms: &[(PortTotals, f64)], weight: f64, rewards: &mut [f32]) {
        let slowdown = |port: usize| terms[port].0.flow_time / self.isolated_s[port];
        let busy: Vec<usize> = (0..terms.len())
            .filter(|&port| self.isolated_s[port] > 0.0)
            .collect();
        if busy.is_empty() {
            return;
        }
        let count = busy.len() as f64;
        let mean = busy.iter().map(|&port| slowdown(port)).sum::<f64>() / count;
        for port in busy {
            let deviation = (slowdown(port) - mean) * (slowdown(port) - mean) / count;
            rewards[port] -= single(weight * (deviation - self.deviations[port]));
            self.deviations[port] = deviation;
        }
    }
}

/// By port: flow time in seconds if only the port's flows are simulated, with the same buffer and
/// complete sharing (paper, §VI-D). Zero for ports without flows.
fn isolated_flow_times(scenario: &Scenario, trace: &Trace) -> Result<Vec<f64>, SimError> {
    let flow_time = |port| {
        let records = isolated_port(scenario, trace, port)?;
        let fcts = records.iter().filter_map(|record| record.fct);
        Ok(fcts.map(Duration::as_secs_f64).sum())
    };
    (0..scenario.port_count()).map(flow_time).collect()
}
